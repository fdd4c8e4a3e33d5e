//! The App's own credential: a JWT that the App's RSA key signs, good for some minutes.
//!
//! <https://docs.github.com/en/apps/creating-github-apps/authenticating-with-a-github-app/generating-a-json-web-token-jwt-for-a-github-app>

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jsonwebtoken::{Algorithm, EncodingKey, Header};
use secrecy::SecretString;
use serde::Serialize;

/// GitHub refuses a JWT from its future, so it is dated back by more than clocks usually drift.
const BACKDATED: Duration = Duration::from_mins(1);
/// GitHub refuses more than ten minutes ahead by its clock; one minute is left for drift.
const AHEAD: Duration = Duration::from_mins(9);

/// The App's id and private key. Shows neither the key nor what it signs.
pub(super) struct AppKey {
    app_id: String,
    key: EncodingKey,
}

/// Why there is no JWT.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unsigned {
    #[error("not a private RSA key in PEM")]
    Key,
    #[error("the clock is before 1970")]
    Clock,
}

/// GitHub takes the times as integers only.
#[derive(Serialize)]
struct Claims<'a> {
    iat: u64,
    exp: u64,
    iss: &'a str,
}

impl AppKey {
    /// Reads a key in PKCS#1 (as GitHub hands it out) or PKCS#8, and signs once, so that a key that cannot sign is
    /// found at start.
    pub(super) fn from_pem(app_id: &str, pem: &[u8]) -> Result<Self, Unsigned> {
        let key = EncodingKey::from_rsa_pem(pem).map_err(|_hides_the_key| Unsigned::Key)?;
        let key = Self { app_id: app_id.to_owned(), key };
        key.sign(UNIX_EPOCH + BACKDATED)?;
        Ok(key)
    }

    /// A JWT for requests made now.
    pub(super) fn sign(&self, now: SystemTime) -> Result<SecretString, Unsigned> {
        let now = now.duration_since(UNIX_EPOCH).map_err(|_early| Unsigned::Clock)?;
        let iat = now.checked_sub(BACKDATED).ok_or(Unsigned::Clock)?.as_secs();
        let exp = now.saturating_add(AHEAD).as_secs();
        let claims = Claims { iat, exp, iss: &self.app_id };
        jsonwebtoken::encode(&Header::new(Algorithm::RS256), &claims, &self.key)
            .map(SecretString::from)
            .map_err(|_hides_the_key| Unsigned::Key)
    }
}

impl fmt::Debug for AppKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AppKey").field("app_id", &self.app_id).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;
    use serde_json::Value;

    use super::*;
    use crate::github::stand_in::{Keys, NOW, now};

    #[test]
    fn both_pem_forms_of_a_key_sign_what_github_takes() {
        let keys = Keys::generate();
        for pem in [keys.pkcs1(), keys.pkcs8()] {
            let jwt = AppKey::from_pem("1234", pem.as_bytes()).unwrap().sign(now()).unwrap();
            let claims: Value = keys.verify(jwt.expose_secret()).unwrap();
            let expected = serde_json::json!({ "iat": NOW - 60, "exp": NOW + 540, "iss": "1234" });
            assert_eq!(claims, expected);
        }
    }

    #[test]
    fn what_is_no_private_rsa_key_is_refused_at_start() {
        let keys = Keys::generate();
        let elliptic = rcgen::KeyPair::generate().unwrap().serialize_pem();
        let cut = keys.pkcs1().replacen("MII", "MIJ", 1);
        for pem in ["", "no key", &keys.public(), &elliptic, &cut] {
            assert_eq!(AppKey::from_pem("1", pem.as_bytes()).unwrap_err(), Unsigned::Key, "{pem}");
        }
    }

    #[test]
    fn a_clock_before_the_epoch_is_named() {
        let key = AppKey::from_pem("1", Keys::generate().pkcs8().as_bytes()).unwrap();
        assert_eq!(key.sign(UNIX_EPOCH).unwrap_err(), Unsigned::Clock);
    }

    #[test]
    fn a_key_shows_its_app_alone() {
        let key = AppKey::from_pem("1234", Keys::generate().pkcs8().as_bytes()).unwrap();
        assert_eq!(format!("{key:?}"), r#"AppKey { app_id: "1234", .. }"#);
    }
}
