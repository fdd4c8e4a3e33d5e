//! The name of a token of the forge: what it is called where it must not be shown.

use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

/// Bytes of the hash in a name; 64 bits tell apart all tokens that one control ever holds.
const BYTES: usize = 8;

/// Names a token without showing it: 16 hex digits of its SHA-256.
#[must_use]
pub fn token_id(token: &str) -> String {
    let hash = Sha256::digest(token);
    hash.iter().take(BYTES).fold(String::with_capacity(2 * BYTES), |mut id, byte| {
        let _infallible = write!(id, "{byte:02x}");
        id
    })
}

/// Whether a text is the name of some token.
#[must_use]
pub fn is_token_id(text: &str) -> bool {
    text.len() == 2 * BYTES && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tokens_name_is_of_16_hex_digits_and_known_for_one() {
        assert_eq!(token_id("abc"), "ba7816bf8f01cfea");
        assert!(is_token_id("ba7816bf8f01cfea"));
        for text in
            ["", "ba7816bf8f01cfe", "ba7816bf8f01cfeaa", "BA7816BF8F01CFEA", "ba7816bf8f01cfe ", "ghs_hush12345678"]
        {
            assert!(!is_token_id(text), "{text}");
        }
    }
}
