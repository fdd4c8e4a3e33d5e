//! The run bearer: `sbr_<runId>.<secret>`, the only credential that a sandbox holds.
//!
//! The secret is 32 random bytes in base64url without padding. It is kept as a SHA-256 hash and compared in
//! constant time; no `Debug` or `Display` here shows it.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// Bytes of randomness in a secret.
const SECRET_BYTES: usize = 32;
/// Characters of a secret: 32 bytes in base64url without padding.
const SECRET_CHARS: usize = 43;
/// Most characters of a run id.
const RUN_ID_CHARS: usize = 64;

/// The id of a run: 1 to 64 of `A-Z a-z 0-9 _ -`. Public: it is in logs and in the ledger.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunId(String);

/// Text that is no run id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a run id is 1 to 64 of A-Z, a-z, 0-9, \"_\" and \"-\"")]
pub struct InvalidRunId;

impl RunId {
    /// Parses a run id.
    pub fn parse(text: &str) -> Result<Self, InvalidRunId> {
        let named = text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
        if named && (1..=RUN_ID_CHARS).contains(&text.len()) {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidRunId)
        }
    }

    /// The id's text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A well-formed bearer. Whether it is any run's is for control to say.
#[derive(Clone)]
pub struct Bearer {
    run_id: RunId,
    secret: SecretString,
}

/// Text that is no bearer by its shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a run bearer is sbr_<runId>.<secret>")]
pub struct InvalidBearer;

/// The system has no randomness to give.
#[derive(Debug, thiserror::Error)]
#[error("the system's random source failed")]
pub struct NoRandomness(#[source] getrandom::Error);

impl Bearer {
    /// Makes a new bearer for a run from the system's randomness. Every other secret has an underscore, and is not taken.
    pub fn generate(run_id: RunId) -> Result<Self, NoRandomness> {
        loop {
            let mut bytes = [0_u8; SECRET_BYTES];
            getrandom::fill(&mut bytes).map_err(NoRandomness)?;
            let secret = SecretString::from(URL_SAFE_NO_PAD.encode(bytes));
            // `gh auth status`, up to 2.23 at least, shows a token as far as its last underscore.
            if !secret.expose_secret().contains('_') {
                return Ok(Self { run_id, secret });
            }
        }
    }

    /// Parses `sbr_<runId>.<secret>`. The secret must be the one base64url spelling of 32 bytes.
    pub fn parse(text: &str) -> Result<Self, InvalidBearer> {
        let (run_id, secret) =
            text.strip_prefix("sbr_").and_then(|rest| rest.split_once('.')).ok_or(InvalidBearer)?;
        Self::from_parts(run_id, secret)
    }

    /// Puts a bearer together from a message's fields, under the same rules as [`Bearer::parse`].
    pub fn from_parts(run_id: &str, secret: &str) -> Result<Self, InvalidBearer> {
        let run_id = RunId::parse(run_id).map_err(|InvalidRunId| InvalidBearer)?;
        if secret.len() != SECRET_CHARS {
            return Err(InvalidBearer);
        }
        match URL_SAFE_NO_PAD.decode(secret) {
            Ok(bytes) if bytes.len() == SECRET_BYTES => Ok(Self { run_id, secret: secret.to_owned().into() }),
            Ok(_) | Err(_) => Err(InvalidBearer),
        }
    }

    /// The run that it claims to be of.
    #[must_use]
    pub fn run_id(&self) -> &RunId {
        &self.run_id
    }

    /// The secret part, for the message to control and for nothing else.
    #[must_use]
    pub fn expose_secret(&self) -> &str {
        self.secret.expose_secret()
    }

    /// The whole bearer as text, for the one answer that shows it.
    #[must_use]
    pub fn expose(&self) -> String {
        format!("sbr_{}.{}", self.run_id, self.secret.expose_secret())
    }

    /// What is stored of it.
    #[must_use]
    pub fn hash(&self) -> BearerHash {
        BearerHash(Sha256::digest(self.secret.expose_secret().as_bytes()).into())
    }
}

impl fmt::Debug for Bearer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sbr_{}.***", self.run_id)
    }
}

/// SHA-256 of a bearer's secret.
#[derive(Clone, Copy)]
pub struct BearerHash([u8; 32]);

impl BearerHash {
    /// A hash as it was stored.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The hash, to store it or to key a MAC.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Whether both are the same, in constant time.
    #[must_use]
    pub fn matches(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl fmt::Debug for BearerHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BearerHash(***)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECRET: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8";

    #[test]
    fn a_generated_bearer_parses_and_hashes_to_itself() {
        let made = Bearer::generate(RunId::parse("run-1").unwrap()).unwrap();
        let read = Bearer::parse(&made.expose()).unwrap();
        assert_eq!(read.run_id().as_str(), "run-1");
        assert!(read.hash().matches(&made.hash()));
    }

    #[test]
    fn a_generated_secret_has_no_underscore_up_to_which_a_client_would_show_it() {
        for _ in 0..100 {
            let made = Bearer::generate(RunId::parse("run_1").unwrap()).unwrap();
            assert!(!made.expose_secret().contains('_'));
        }
    }

    #[test]
    fn what_is_no_bearer_by_its_shape_is_refused() {
        let padded = format!("sbr_run-1.{SECRET}=");
        let short = format!("sbr_run-1.{}", SECRET.trim_start_matches('A'));
        let loose_end = format!("sbr_run-1.{}9", SECRET.trim_end_matches('8'));
        let long_id = format!("sbr_{}.{SECRET}", "a".repeat(65));
        for text in [
            "",
            "sbr_",
            "sbr_.",
            "sbr_a.",
            "ghs_abc",
            "sbr_run 1.x",
            "SBR_a.b",
            padded.as_str(),
            short.as_str(),
            loose_end.as_str(),
            long_id.as_str(),
        ] {
            assert_eq!(Bearer::parse(text).unwrap_err(), InvalidBearer, "{text:?}");
        }
    }

    #[test]
    fn debug_shows_the_run_id_alone() {
        let bearer = Bearer::parse(&format!("sbr_run-1.{SECRET}")).unwrap();
        assert_eq!(format!("{bearer:?} {:?}", bearer.hash()), "sbr_run-1.*** BearerHash(***)");
    }

    proptest! {
        #[test]
        fn any_text_parses_or_is_refused(text in ".{0,200}") {
            if let Ok(bearer) = Bearer::parse(&text) {
                prop_assert_eq!(bearer.expose(), text);
            }
        }
    }
}
