//! Who an authorization was given to.

use sha2::{Digest as _, Sha256};

/// The hash of what a data plane showed when it opened its session. What was authorized over one session is good over
/// another only if its data plane shows the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holder([u8; 32]);

impl Holder {
    /// The holder that shows this.
    #[must_use]
    pub fn of(shown: &[u8]) -> Self {
        Self(Sha256::digest(shown).into())
    }

    /// The hash.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// An authorization as it is presented.
#[derive(Debug, Clone, Copy)]
pub struct Shown<'a> {
    /// Its text.
    pub text: &'a str,
    /// Who presents it, if it was said.
    pub holder: Option<Holder>,
}
