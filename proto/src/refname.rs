//! Ref names by the rules of `git check-ref-format`, and the patterns that narrow which branches a run may push.
//!
//! Rules: <https://git-scm.com/docs/git-check-ref-format>. The door adds one: a name is UTF-8, because it is
//! echoed in words.

use std::fmt;

/// Most bytes of a ref name that the door takes; git's own files stop at 255 a component, GitHub at 255 in all.
const REF_NAME_BYTES: usize = 1024;
/// Most bytes of a pattern.
const PATTERN_BYTES: usize = 255;

/// A full ref name, such as `refs/heads/fix-x`, that git would take. Compared by its bytes, as git does.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RefName(String);

/// Why bytes are no ref name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRefName {
    /// Not UTF-8.
    #[error("the ref's name is not UTF-8")]
    Encoding,
    /// Breaks `git check-ref-format`.
    #[error("the ref's name breaks git's rules")]
    Format,
    /// Longer than the door takes.
    #[error("the ref's name is longer than 1024 bytes")]
    Length,
}

impl RefName {
    /// Parses a full ref name.
    pub fn parse(bytes: &[u8]) -> Result<Self, InvalidRefName> {
        if bytes.len() > REF_NAME_BYTES {
            return Err(InvalidRefName::Length);
        }
        let Ok(name) = std::str::from_utf8(bytes) else {
            return Err(InvalidRefName::Encoding);
        };
        if is_well_formed(name) { Ok(Self(name.to_owned())) } else { Err(InvalidRefName::Format) }
    }

    /// The branch, when it is one: what follows `refs/heads/`.
    #[must_use]
    pub fn branch(&self) -> Option<&str> {
        self.0.strip_prefix("refs/heads/")
    }

    /// The whole name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RefName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for RefName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The numbered rules of `git check-ref-format`, for a full name.
#[expect(clippy::case_sensitive_file_extension_comparisons, reason = "git's rule on .lock minds the case")]
fn is_well_formed(name: &str) -> bool {
    let component = |part: &str| !part.is_empty() && !part.starts_with('.') && !part.ends_with(".lock");
    let forbidden = |c: char| c.is_ascii_control() || " ~^:?*[\\".contains(c);
    name.contains('/')
        && name.split('/').all(component)
        && !name.contains(forbidden)
        && !name.contains("..")
        && !name.contains("@{")
        && !name.ends_with('.')
}

/// A branch or a glob of branches, without `refs/heads/`. `*` stands for any run of characters but `/`.
#[derive(Clone, PartialEq, Eq)]
pub struct Pattern(String);

/// Text that is no branch pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "a branch pattern is a branch name without refs/heads/, in which \"*\" stands for any characters but \"/\""
)]
pub struct InvalidPattern;

impl Pattern {
    /// Parses a pattern: what would be a branch name if each `*` were a letter.
    pub fn parse(text: &str) -> Result<Self, InvalidPattern> {
        let sample = format!("refs/heads/{}", text.replace('*', "x"));
        if text.is_empty() || text.len() > PATTERN_BYTES || text.starts_with("refs/") || !is_well_formed(&sample) {
            return Err(InvalidPattern);
        }
        Ok(Self(text.to_owned()))
    }

    /// Whether a branch, without `refs/heads/`, is one of those meant.
    #[must_use]
    pub fn matches(&self, branch: &str) -> bool {
        let (mut patterns, mut branches) = (self.0.split('/'), branch.split('/'));
        loop {
            match (patterns.next(), branches.next()) {
                (None, None) => return true,
                (Some(pattern), Some(part)) if glob(pattern, part) => {}
                (Some(_), Some(_) | None) | (None, Some(_)) => return false,
            }
        }
    }

    /// The pattern's text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Matches one path component; the leftmost place for each piece is as good as any, so there is no backtracking.
fn glob(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(mut text) = text.strip_prefix(first) else {
        return false;
    };
    let mut pieces = rest.split('*').peekable();
    while let Some(piece) = pieces.next() {
        if pieces.peek().is_none() {
            return text.ends_with(piece);
        }
        match text.split_once(piece) {
            Some((_, after)) => text = after,
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_that_git_refuses_are_refused() {
        for name in [
            "",
            "main",
            "refs/heads/",
            "/refs/heads/a",
            "refs//heads/a",
            "refs/heads/.a",
            "refs/heads/a.lock",
            "refs/heads/a.lock/b",
            "refs/heads/a..b",
            "refs/heads/a b",
            "refs/heads/a~",
            "refs/heads/a^",
            "refs/heads/a:b",
            "refs/heads/a?",
            "refs/heads/a*",
            "refs/heads/a[",
            "refs/heads/a\\b",
            "refs/heads/a.",
            "refs/heads/a@{b",
            "refs/heads/a\u{7f}",
            "refs/heads/a\n",
            "refs/heads/../../config",
        ] {
            assert_eq!(RefName::parse(name.as_bytes()), Err(InvalidRefName::Format), "{name:?}");
        }
        assert_eq!(RefName::parse(b"refs/heads/\xc0"), Err(InvalidRefName::Encoding));
        assert_eq!(RefName::parse(&[b'a'; 1025]), Err(InvalidRefName::Length));
    }

    #[test]
    fn names_that_git_takes_are_taken() {
        for name in
            ["refs/heads/fix-x", "refs/heads/JDK-PACK", "refs/heads/ä/ß", "refs/tags/v1.0", "refs/heads/@", "a/b"]
        {
            assert_eq!(RefName::parse(name.as_bytes()).unwrap().as_str(), name);
        }
    }

    #[test]
    fn a_star_stops_at_a_slash() {
        for (pattern, branch, matches) in [
            ("agent/*", "agent/fix", true),
            ("agent/*", "agent/a/b", false),
            ("agent/*", "agent/", true),
            ("agent/*", "agents", false),
            ("*", "main", true),
            ("*", "a/b", false),
            ("a*c", "abc", true),
            ("a*c", "ac", true),
            ("a*c", "acb", false),
            ("a*b*c", "aXbYc", true),
            ("a*b*c", "aXbY", false),
            ("*a*", "bab", true),
            ("fix-x", "fix-x", true),
            ("fix-x", "Fix-x", false),
            ("a**b", "ab", true),
            ("*ab", "aab", true),
            ("*/x", "y/x", true),
            ("a*a", "a", false),
        ] {
            assert_eq!(Pattern::parse(pattern).unwrap().matches(branch), matches, "{pattern} {branch}");
        }
    }

    #[test]
    fn what_could_never_be_a_branch_is_no_pattern() {
        for text in ["", "refs/heads/a", "a b", "/a", "a/", "a//b", "a..b", "a\\b", "a?"] {
            assert_eq!(Pattern::parse(text), Err(InvalidPattern), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_parse_or_are_refused(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = RefName::parse(&bytes);
        }

        #[test]
        fn a_pattern_without_a_star_matches_itself_alone(a in "[a-z]{1,4}", b in "[a-z]{1,4}") {
            prop_assert_eq!(Pattern::parse(&a).unwrap().matches(&b), a == b);
        }
    }
}
