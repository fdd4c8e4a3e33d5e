//! The GitHub App: its key, its installation, and the JWT it proves itself by.

use std::sync::Mutex;

use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode};
use rcgen::{KeyPair, PKCS_RSA_SHA256, RsaKeySize};
use serde_json::Value;

use super::tokens::Permissions;

/// The App's id, as its JWT names it.
pub const APP_ID: &str = "424242";
/// The id of its one installation.
pub const INSTALLATION_ID: &str = "7070";

/// The name of the account that the App acts as.
pub const BOT: &str = "acme-door[bot]";

/// How far a clock may be ahead, in seconds.
const LEEWAY: i64 = 60;
/// Longest life of a JWT, in seconds.
const JWT_LIFE: i64 = 600;

/// The App and its installation.
pub(crate) struct App {
    /// The private key, PEM.
    pub(crate) key: String,
    public: DecodingKey,
    pub(crate) installation: Mutex<Installation>,
}

/// What the account's owner granted.
#[derive(Debug, Clone)]
pub(crate) struct Installation {
    pub(crate) suspended: bool,
    pub(crate) permissions: Permissions,
}

impl App {
    pub(crate) fn new() -> Self {
        let key = KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048).expect("an RSA key pair");
        let public = DecodingKey::from_rsa_pem(key.public_key_pem().as_bytes()).expect("its public half");
        let granted = ["contents", "workflows"].map(|name| (name.to_owned(), "write".to_owned()));
        let readable = ["pull_requests", "issues", "actions", "checks", "statuses", "metadata"];
        let readable = readable.map(|name| (name.to_owned(), "read".to_owned()));
        let permissions = granted.into_iter().chain(readable).collect();
        let installation = Mutex::new(Installation { suspended: false, permissions });
        Self { key: key.serialize_pem(), public, installation }
    }

    /// Checks an `Authorization` value; the error is GitHub's message.
    pub(crate) fn verify(&self, authorization: Option<&str>, now: i64) -> Result<(), &'static str> {
        let jwt = authorization.and_then(|value| value.strip_prefix("Bearer "));
        let mut rules = Validation::new(Algorithm::RS256);
        rules.validate_exp = false;
        rules.validate_aud = false;
        rules.required_spec_claims.clear();
        let claims = decode::<Value>(jwt.unwrap_or_default(), &self.public, &rules);
        let claims = claims.map_err(|_broken| "A JSON web token could not be decoded")?.claims;
        let app = claims["iss"].as_str().map_or_else(|| claims["iss"].to_string(), str::to_owned);
        if app != APP_ID {
            return Err("Integration not found");
        }
        match (claims["iat"].as_i64(), claims["exp"].as_i64()) {
            (Some(from), _) if from > now + LEEWAY => Err(ISSUED_AT),
            (None, _) => Err(ISSUED_AT),
            (_, None) => Err("'Expiration time' claim ('exp') must be a numeric value"),
            (_, Some(until)) if until <= now => Err("'Expiration time' claim ('exp') is in the past"),
            (_, Some(until)) if until > now + JWT_LIFE => {
                Err("'Expiration time' claim ('exp') is too far in the future")
            }
            (Some(_), Some(_)) => Ok(()),
        }
    }
}

/// What GitHub says of a time that is no integer, and of one that its own clock has not reached.
const ISSUED_AT: &str =
    "'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued";
