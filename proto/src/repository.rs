//! `owner/name` of a repository at the forge, by GitHub's rules for names.
//!
//! An owner is 1 to 39 of `A-Z a-z 0-9 - _`, a name 1 to 100 of `A-Z a-z 0-9 . - _` other than `.` and `..`.
//! Both compare without case, as at GitHub.

use std::fmt;
use std::hash::{Hash, Hasher};

/// Most characters of an owner. GitHub allows 39; managed users add a suffix within that.
const OWNER_CHARS: usize = 39;
/// Most characters of a repository's name.
const NAME_CHARS: usize = 100;

/// `owner/name`, compared and hashed without case, shown as it was spelled.
#[derive(Clone)]
pub struct RepositoryName {
    owner: String,
    name: String,
}

/// Why a pair of segments is no repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRepository {
    /// Not exactly two segments.
    #[error("a repository is named owner/name")]
    Segments,
    /// The owner breaks GitHub's rules.
    #[error("an owner is 1 to 39 of A-Z, a-z, 0-9, \"-\" and \"_\"")]
    Owner,
    /// The door keeps `api` for its own routes.
    #[error("the owner \"api\" is reserved")]
    Reserved,
    /// The name breaks GitHub's rules.
    #[error("a repository's name is 1 to 100 of A-Z, a-z, 0-9, \".\", \"-\" and \"_\", and does not end in .git")]
    Name,
}

impl RepositoryName {
    /// Parses `owner/name`, without `.git`.
    pub fn parse(text: &str) -> Result<Self, InvalidRepository> {
        let (owner, name) = text.split_once('/').ok_or(InvalidRepository::Segments)?;
        Self::from_segments(owner, name)
    }

    /// Checks an owner and a name. A name that ends in `.git` is refused: the caller strips one.
    pub fn from_segments(owner: &str, name: &str) -> Result<Self, InvalidRepository> {
        let word = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
        if !(1..=OWNER_CHARS).contains(&owner.len()) || !owner.bytes().all(word) {
            return Err(InvalidRepository::Owner);
        }
        if owner.eq_ignore_ascii_case("api") {
            return Err(InvalidRepository::Reserved);
        }
        let named = name.bytes().all(|b| word(b) || b == b'.');
        let suffixed = name.to_ascii_lowercase().ends_with(".git");
        if !named || !(1..=NAME_CHARS).contains(&name.len()) || name == "." || name == ".." || suffixed {
            return Err(InvalidRepository::Name);
        }
        Ok(Self { owner: owner.to_owned(), name: name.to_owned() })
    }

    /// The owner, as spelled.
    #[must_use]
    pub fn owner(&self) -> &str {
        &self.owner
    }

    /// The name, as spelled.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// `owner/name` in lower case: the key under which all spellings are one.
    #[must_use]
    pub fn to_key(&self) -> String {
        self.to_string().to_ascii_lowercase()
    }
}

impl PartialEq for RepositoryName {
    fn eq(&self, other: &Self) -> bool {
        self.owner.eq_ignore_ascii_case(&other.owner) && self.name.eq_ignore_ascii_case(&other.name)
    }
}

impl Eq for RepositoryName {}

impl Hash for RepositoryName {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.to_key().hash(state);
    }
}

impl fmt::Display for RepositoryName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.owner, self.name)
    }
}

impl fmt::Debug for RepositoryName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_spellings_are_one_repository() {
        let a = RepositoryName::parse("Acme/API").unwrap();
        let b = RepositoryName::parse("acme/api").unwrap();
        assert_eq!(a, b);
        assert_eq!(a.to_key(), b.to_key());
        assert_eq!(a.to_string(), "Acme/API");
    }

    #[test]
    fn names_that_github_would_not_give_are_refused() {
        use InvalidRepository::{Name, Owner, Reserved, Segments};
        let long_owner = format!("{}/r", "o".repeat(40));
        let long_name = format!("o/{}", "r".repeat(101));
        for (text, why) in [
            ("", Segments),
            ("o", Segments),
            ("/r", Owner),
            ("o/", Name),
            ("o/r/x", Name),
            ("o/.", Name),
            ("o/..", Name),
            ("../r", Owner),
            ("o.o/r", Owner),
            ("o/r%2f", Name),
            ("o/r\\x", Name),
            ("o/r\0", Name),
            ("o/é", Name),
            ("API/r", Reserved),
            ("o/r.git", Name),
            ("o/r.GIT", Name),
            (long_owner.as_str(), Owner),
            (long_name.as_str(), Name),
        ] {
            assert_eq!(RepositoryName::parse(text).unwrap_err(), why, "{text:?}");
        }
    }
}
