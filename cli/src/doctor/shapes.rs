//! Credentials by their shape, in any bytes: GitHub's tokens, private keys in PEM, and URLs of GitHub's with a password.
//!
//! Placeholders of documents and variables of scripts are not taken for credentials.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use gitdoor_proto::{Bearer, token_prefix};
use memchr::memchr_iter;
use memchr::memmem::find_iter;

use super::Kind;

/// How many characters of base64 may hold a token.
const ENCODED_CHARS: RangeInclusive<usize> = 48..=4096;
/// Base64 without what stands at its end.
const ENCODED: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::RequireNone),
);
/// Fewest characters of base64 after the first line of a key.
const KEY_CHARS: usize = 16;
/// Most characters between a URL's scheme and its host.
const USER_INFO_CHARS: usize = 512;
/// Fewest characters of a password in a URL.
const PASSWORD_CHARS: usize = 8;

/// The kinds of credentials that are in here.
pub(super) fn find(bytes: &[u8]) -> BTreeSet<Kind> {
    let mut kinds: BTreeSet<Kind> = tokens(bytes).chain(encoded_tokens(bytes)).collect();
    if has_private_key(bytes) {
        kinds.insert(Kind::PrivateKey);
    }
    if [&b"@github.com"[..], b"@api.github.com"]
        .iter()
        .any(|host| find_iter(bytes, host).any(|at| is_url(bytes, at)))
    {
        kinds.insert(Kind::UrlPassword);
    }
    kinds
}

fn tokens(bytes: &[u8]) -> impl Iterator<Item = Kind> {
    memchr_iter(b'_', bytes).filter_map(|at| token_prefix(bytes, at)).map(kind)
}

/// Those in base64: the user and password of a header, or of a registry in docker's settings.
fn encoded_tokens(bytes: &[u8]) -> impl Iterator<Item = Kind> {
    let words = bytes.split(|byte| !(byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/')));
    let words = words.filter(|word| ENCODED_CHARS.contains(&word.len()));
    // A single character at the end is of no byte.
    let whole = words.filter_map(|word| word.get(..word.len() - usize::from(word.len() % 4 == 1)));
    whole.filter_map(|word| ENCODED.decode(word).ok()).flat_map(|decoded| tokens(&decoded).collect::<Vec<_>>())
}

fn kind(prefix: &str) -> Kind {
    match prefix {
        "ghp_" => Kind::PersonalToken,
        "github_pat_" => Kind::FineGrainedToken,
        "gho_" => Kind::OauthToken,
        "ghu_" => Kind::UserToken,
        "ghr_" => Kind::RefreshToken,
        _ => Kind::InstallationToken,
    }
}

/// Whether a text is a run's bearer, which is no credential of GitHub's.
pub(super) fn is_bearer(text: &str) -> bool {
    Bearer::parse(text).is_ok()
}

/// Whether a private key begins in here.
pub(super) fn has_private_key(bytes: &[u8]) -> bool {
    const END: &[u8] = b"PRIVATE KEY-----";
    find_iter(bytes, b"-----BEGIN ").any(|at| {
        let rest = bytes.get(at..).unwrap_or_default();
        let head = rest.get(..64).unwrap_or(rest);
        let Some(end) = find_iter(head, END).next() else { return false };
        let mut body = rest.get(end + END.len()..).unwrap_or_default();
        // A line's end as it is, or as a string in JSON or in a variable has it.
        for end in [&b"\r"[..], b"\n", b"\\r", b"\\n", b" "] {
            body = body.strip_prefix(end).unwrap_or(body);
        }
        let base64 = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'+' || **byte == b'/';
        body.starts_with(b"Proc-Type:") || body.iter().take(KEY_CHARS).take_while(base64).count() == KEY_CHARS
    })
}

/// Whether a user and password stand before this `@`.
fn is_url(bytes: &[u8], at: usize) -> bool {
    let before = bytes.get(at.saturating_sub(USER_INFO_CHARS)..at).unwrap_or_default();
    let Some(scheme) = memchr::memmem::rfind(before, b"://") else { return false };
    let Some(Ok(user_info)) = before.get(scheme + 3..).map(str::from_utf8) else { return false };
    let Some((_user, password)) = user_info.split_once(':') else { return false };
    // `${TOKEN}`, `<token>`, `***`: no password.
    let is_plain = |c: char| c.is_ascii_graphic() && !"/${}<>*()[]\"'`\\".contains(c);
    password.len() >= PASSWORD_CHARS && password.chars().all(is_plain) && !is_bearer(password)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &str = "AbCdEfGhIjKlMnOpQrStUvWxYz0123456789";
    const BEARER: &str = "sbr_r1.AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8";

    fn kinds(text: &str) -> Vec<Kind> {
        find(text.as_bytes()).into_iter().collect()
    }

    #[test]
    fn a_token_is_known_by_its_prefix_wherever_it_stands() {
        for (prefix, kind) in [
            ("ghp_", Kind::PersonalToken),
            ("github_pat_", Kind::FineGrainedToken),
            ("gho_", Kind::OauthToken),
            ("ghu_", Kind::UserToken),
            ("ghs_", Kind::InstallationToken),
            ("ghr_", Kind::RefreshToken),
        ] {
            let token = format!("{prefix}{BODY}");
            for text in [token.clone(), format!("a={token}"), format!("\"{token}\"\n"), format!("x:{token}@h")] {
                assert_eq!(kinds(&text), [kind], "{text}");
            }
            assert_eq!(kinds(&format!("x{token}")), [], "part of a word");
        }
        assert_eq!(kinds(&format!("ghs_123456_eyJ0eXAi.eyJpc3Mi-{BODY}")), [Kind::InstallationToken]);
    }

    #[test]
    fn what_only_begins_like_a_token_is_none() {
        for text in
            ["ghp_", "ghp_short", "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "github_pat_YOUR-TOKEN", BEARER]
        {
            assert_eq!(kinds(text), [], "{text}");
        }
    }

    #[test]
    fn a_private_key_is_known_by_its_first_lines() {
        for label in ["", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "] {
            for end in ["\n", "\r\n", "\\n"] {
                let text = format!("x-----BEGIN {label}PRIVATE KEY-----{end}MIIEvQIBADANBgkqhkiG9w0B");
                assert_eq!(kinds(&text), [Kind::PrivateKey], "{text}");
            }
        }
        assert_eq!(kinds("-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n"), [Kind::PrivateKey]);
        for text in [
            "-----BEGIN PUBLIC KEY-----\nMIIEvQIBADANBgkqhkiG9w0B",
            "if line == \"-----BEGIN PRIVATE KEY-----\" {",
            "-----BEGIN PRIVATE KEY-----\n...\n",
        ] {
            assert_eq!(kinds(text), [], "{text}");
        }
    }

    #[test]
    fn a_password_in_a_url_of_githubs_is_known_and_a_placeholder_is_none() {
        assert_eq!(kinds("git clone https://octo:hunter2hunter2@github.com/acme/api"), [Kind::UrlPassword]);
        for text in [
            "https://github.com/acme/api",
            "https://octo@github.com/acme/api",
            "git@github.com:acme/api",
            "https://x-access-token:${GITHUB_TOKEN}@github.com/acme/api",
            "https://x:<your-token>@github.com/",
            &format!("https://x:{BEARER}@github.com/"),
        ] {
            assert_eq!(kinds(text), [], "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_looked_through(bytes: Vec<u8>) {
            find(&bytes);
            find(&[b"-----BEGIN ", bytes.as_slice(), b"PRIVATE KEY-----", bytes.as_slice(), b"@github.com"].concat());
        }
    }
}
