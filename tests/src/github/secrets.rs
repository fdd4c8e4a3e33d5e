//! The secrets that GitHub's answers carry, made up here and remembered, so that a test can look for all of them.

use std::collections::BTreeMap;
use std::sync::Mutex;

/// What secrets of GitHub are written with.
const ALPHABET: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// Every secret that went into an answer.
#[derive(Debug, Default)]
pub(crate) struct Secrets {
    returned: Mutex<Vec<String>>,
    /// Those that stay the same, by what they are for.
    kept: Mutex<BTreeMap<String, String>>,
}

impl Secrets {
    /// A new one, of 29 characters as a clone token has.
    pub(crate) fn make(&self) -> String {
        let mut random = [0_u8; 28];
        getrandom::fill(&mut random).expect("randomness");
        let letters = random.iter().map(|byte| char::from(ALPHABET[usize::from(*byte) % ALPHABET.len()]));
        let secret = std::iter::once('A').chain(letters).collect::<String>();
        self.returned.lock().unwrap().push(secret.clone());
        secret
    }

    /// The one for this purpose, made at the first time.
    pub(crate) fn of(&self, purpose: &str) -> String {
        let mut kept = self.kept.lock().unwrap();
        kept.entry(purpose.to_owned()).or_insert_with(|| self.make()).clone()
    }

    /// All that were ever put into an answer.
    pub(crate) fn all(&self) -> Vec<String> {
        self.returned.lock().unwrap().clone()
    }
}
