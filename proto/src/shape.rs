//! Tokens of GitHub by their shape, in any bytes.
//!
//! <https://github.blog/engineering/platform-security/behind-githubs-new-authentication-token-formats/>. Placeholders
//! of documents are not taken for tokens.

use std::collections::BTreeSet;

/// What every token begins with: of a person, fine-grained or not, of an OAuth app, of a user, of an installation, and
/// what is exchanged for another.
pub const TOKEN_PREFIXES: [&str; 6] = ["ghp_", "github_pat_", "gho_", "ghu_", INSTALLATION, "ghr_"];

const INSTALLATION: &str = "ghs_";
/// Fewest characters after a token's prefix; GitHub's have 36 or more.
const TOKEN_CHARS: usize = 30;
/// Fewest different ones among them: `ghp_xxxx...` is a document's.
const TOKEN_DIFFERENT: usize = 8;

/// The prefix that ends with the byte at `last`, if a token begins with it there.
#[must_use]
pub fn token_prefix(bytes: &[u8], last: usize) -> Option<&'static str> {
    let (before, after) = bytes.split_at_checked(last.checked_add(1)?)?;
    let prefix = TOKEN_PREFIXES.into_iter().find(|prefix| before.ends_with(prefix.as_bytes()))?;
    let outside = before.get(..before.len() - prefix.len()).unwrap_or_default().last();
    if outside.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_') {
        return None;
    }
    // An installation token may hold a JWT.
    let is_part = |byte: &&u8| {
        byte.is_ascii_alphanumeric() || **byte == b'_' || (prefix == INSTALLATION && matches!(byte, b'.' | b'-'))
    };
    let token = after.iter().take(TOKEN_CHARS).take_while(is_part);
    let (count, different) = (token.clone().count(), token.collect::<BTreeSet<_>>().len());
    (count == TOKEN_CHARS && different >= TOKEN_DIFFERENT).then_some(prefix)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &str = "AbCdEfGhIjKlMnOpQrStUvWxYz0123456789";

    #[test]
    fn a_token_begins_with_its_prefix_and_goes_on_long_enough() {
        let at = |text: &str, last| token_prefix(text.as_bytes(), last);
        for prefix in TOKEN_PREFIXES {
            let text = format!("{prefix}{BODY}");
            assert_eq!(at(&text, prefix.len() - 1), Some(prefix));
            assert_eq!(at(&format!("={text}"), prefix.len()), Some(prefix));
            for (text, last) in [
                (format!("x{text}"), prefix.len()),
                (format!("_{text}"), prefix.len()),
                (text.clone(), prefix.len()),
                (text.clone(), text.len()),
                (text.clone(), usize::MAX),
                (format!("{prefix}short"), prefix.len() - 1),
                (format!("{prefix}{}", "x".repeat(36)), prefix.len() - 1),
                (format!("{prefix}YOUR-TOKEN-{BODY}").replace("ghs_", "ghp_"), prefix.len() - 1),
            ] {
                assert_eq!(at(&text, last), None, "{text} {last}");
            }
        }
        assert_eq!(at(&format!("ghs_1234_eyJ0.eyJp-{BODY}"), 3), Some("ghs_"));
    }
}
