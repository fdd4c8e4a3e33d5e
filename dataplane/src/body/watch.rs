//! An answer of the forge, looked through for credentials as it goes down. The token that the very request went up with
//! never passes, neither plain nor as basic authentication writes it. What else has the shape of a token of the forge may
//! be a text of its users, so it passes and is told.

use bytes::{Bytes, BytesMut};
use gitdoor_proto::{Token, token_prefix};
use http::HeaderMap;
use memchr::memchr_iter;
use memchr::memmem::Finder;

use crate::credential::basic;
use crate::upstream::UpstreamError;

/// More than a token's prefix, and than what its shape is known by, before and after its last underscore.
const SPAN: usize = 64;

/// The request's own token is in its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenInAnswer;

impl From<TokenInAnswer> for UpstreamError {
    fn from(TokenInAnswer: TokenInAnswer) -> Self {
        Self::TokenInAnswer
    }
}

/// Looks through one answer.
pub struct Watch {
    /// The token, in each form that a request can carry it in.
    forms: Box<[Finder<'static>; 2]>,
    /// The end of what came, which one of them may begin with.
    held: BytesMut,
    shapes: Option<Shapes>,
}

impl Watch {
    /// Keeps this token from passing; in a `text`, shapes of tokens are looked for, too.
    #[must_use]
    pub fn new(token: &Token, text: bool) -> Self {
        let forms = [Finder::new(token.expose()).into_owned(), Finder::new(&basic(token)).into_owned()];
        Self { forms: Box::new(forms), held: BytesMut::new(), shapes: text.then(Shapes::default) }
    }

    /// Whether a head may go on.
    pub fn head(&self, head: &HeaderMap) -> Result<(), TokenInAnswer> {
        if head.values().any(|value| self.shows(value.as_bytes())) { Err(TokenInAnswer) } else { Ok(()) }
    }

    fn shows(&self, bytes: &[u8]) -> bool {
        self.forms.iter().any(|form| form.find(bytes).is_some())
    }

    /// Takes the next bytes; what may go on of them.
    pub fn push(&mut self, bytes: Bytes) -> Result<Bytes, TokenInAnswer> {
        let mut bytes = if self.held.is_empty() {
            bytes
        } else {
            self.held.extend_from_slice(&bytes);
            self.held.split().freeze()
        };
        if self.shows(&bytes) {
            return Err(TokenInAnswer);
        }
        let begun = self.forms.iter().map(|form| begun(&bytes, form.needle())).max().unwrap_or_default();
        let held = bytes.split_off(bytes.len() - begun);
        self.held.extend_from_slice(&held);
        if let Some(shapes) = &mut self.shapes {
            shapes.push(&bytes);
        }
        Ok(bytes)
    }

    /// The body has ended: what was held back was not the token.
    pub fn finish(&mut self) -> Bytes {
        let rest = self.held.split().freeze();
        if let Some(shapes) = &mut self.shapes {
            shapes.push(&rest);
        }
        rest
    }

    /// Whether something in the shape of a token has passed.
    #[must_use]
    pub fn saw_shape(&self) -> bool {
        self.shapes.as_ref().is_some_and(|shapes| shapes.seen)
    }
}

/// Length of the longest end of the bytes that the needle begins with, and is not over with.
fn begun(bytes: &[u8], needle: &[u8]) -> usize {
    let Some((first, _)) = needle.split_first() else { return 0 };
    let from = bytes.len().saturating_sub(needle.len() - 1);
    let end = bytes.get(from..).unwrap_or_default();
    let begins = |at: &usize| end.get(*at..).is_some_and(|end| needle.starts_with(end));
    memchr_iter(*first, end).find(begins).map_or(0, |at| end.len() - at)
}

/// Looks for what has the shape of a token, at any chunking.
#[derive(Default)]
struct Shapes {
    seen: bool,
    /// The end of what passed, in which one may have begun.
    before: Vec<u8>,
    /// Whether something passed before that, too.
    cut: bool,
}

impl Shapes {
    fn push(&mut self, bytes: &[u8]) {
        if self.seen || bytes.is_empty() {
            return;
        }
        // What stands at the beginning of either is judged by what was before it.
        let (judged, judged_before) =
            (if self.before.is_empty() { 0 } else { SPAN }, if self.cut { SPAN } else { 0 });
        self.before.extend_from_slice(bytes.get(..2 * SPAN).unwrap_or(bytes));
        self.seen = has_shape(&self.before, judged_before) || has_shape(bytes, judged);
        let end = if bytes.len() < 2 * SPAN { self.before.as_slice() } else { bytes };
        let from = end.len().saturating_sub(2 * SPAN);
        self.cut |= from > 0 || bytes.len() >= 2 * SPAN;
        self.before = end.get(from..).unwrap_or_default().to_vec();
    }
}

/// Whether there is one whose prefix does not end before `from`. Every prefix ends with an underscore.
fn has_shape(bytes: &[u8], from: usize) -> bool {
    let rest = bytes.get(from..).unwrap_or_default();
    memchr_iter(b'_', rest).any(|at| token_prefix(bytes, from + at).is_some())
}

#[cfg(test)]
mod tests {
    use gitdoor_proto::v1;
    use proptest::prelude::*;

    use super::*;

    const TOKEN: &str = "ghs_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789";

    fn made(token: &str) -> Token {
        let age = Some(prost_types::Duration::default());
        Token::try_from(v1::Token { value: token.into(), id: "1".into(), age }).unwrap()
    }

    /// What passes of chunks, and whether a shape was seen.
    fn pass<'a>(token: &str, chunks: impl IntoIterator<Item = &'a [u8]>) -> Result<(Vec<u8>, bool), Vec<u8>> {
        let (mut watch, mut passed) = (Watch::new(&made(token), true), Vec::new());
        for chunk in chunks {
            match watch.push(Bytes::copy_from_slice(chunk)) {
                Ok(bytes) => passed.extend_from_slice(&bytes),
                Err(TokenInAnswer) => return Err(passed),
            }
        }
        passed.extend_from_slice(&watch.finish());
        Ok((passed, watch.saw_shape()))
    }

    #[test]
    fn not_a_byte_of_the_requests_own_token_passes_at_any_chunking() {
        for (before, after) in [("{\"a\":\"", "\"}"), ("", ""), ("ghs_", "x"), ("ghs_AbCghs_AbCd", "")] {
            let text = format!("{before}{TOKEN}{after}");
            for size in 1..=text.len() {
                let passed = pass(TOKEN, text.as_bytes().chunks(size)).unwrap_err();
                assert!(before.as_bytes().starts_with(&passed), "{text} by {size}: {}", passed.escape_ascii());
            }
        }
    }

    #[test]
    fn nor_does_it_as_basic_authentication_writes_it() {
        // Of three lengths, for base64 writes three bytes at a time.
        for length in [TOKEN.len(), TOKEN.len() - 1, TOKEN.len() - 2] {
            let token = TOKEN.get(..length).unwrap();
            let text = format!("Authorization: Basic {}\n", basic(&made(token)));
            for size in 1..=text.len() {
                let passed = pass(token, text.as_bytes().chunks(size)).unwrap_err();
                assert!(b"Authorization: Basic ".starts_with(&passed), "by {size}: {}", passed.escape_ascii());
            }
        }
    }

    #[test]
    fn what_only_begins_like_the_token_passes_whole() {
        let almost = TOKEN.get(..TOKEN.len() - 1).unwrap();
        for text in
            [almost.to_owned(), format!("{almost}0"), format!("a{almost}{almost}"), "g".repeat(90), "gh".into()]
        {
            for size in 1..=text.len() {
                assert_eq!(
                    pass(TOKEN, text.as_bytes().chunks(size)).unwrap().0,
                    text.as_bytes(),
                    "{text} by {size}"
                );
            }
        }
    }

    #[test]
    fn the_shape_of_another_token_is_told_at_any_chunking_and_passes() {
        let body = TOKEN.get(4..).unwrap();
        for (prefix, expected) in [
            ("ghs_", true),
            ("ghp_", true),
            ("gho_", true),
            ("ghu_", true),
            ("ghr_", true),
            ("github_pat_", true),
            ("sbr_", false),
            ("xghs_", false),
            ("ghs", false),
        ] {
            let text = format!("{}\"{prefix}{body}\"{}", "a_b".repeat(60), "c_d".repeat(60));
            for size in 1..=text.len() {
                let (passed, seen) = pass("ghs_other", text.as_bytes().chunks(size)).unwrap();
                assert_eq!((passed.as_slice(), seen), (text.as_bytes(), expected), "{prefix} by {size}");
            }
        }
    }

    proptest! {
        #[test]
        fn all_bytes_but_the_tokens_pass_as_they_came(text in "[ghs_A]{0,60}", size in 1_usize..70, token in "ghs_[gA]{1,4}") {
            match pass(&token, text.as_bytes().chunks(size)) {
                Ok((passed, _)) => prop_assert!(passed == text.as_bytes() && !text.contains(&token)),
                Err(passed) => {
                    let at = text.find(&token).unwrap();
                    prop_assert!(text.as_bytes()[..at].starts_with(&passed), "{} of {}", passed.escape_ascii(), text);
                }
            }
        }
    }
}
