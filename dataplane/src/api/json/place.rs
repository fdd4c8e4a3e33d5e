//! Where in a document a string is: whether it is a key, and what the keys above mean for it.

use super::TooDeep;
use super::text::{self, Torn};

/// Most containers inside each other. GitHub's answers have some ten; a query can select some more.
pub(super) const LEVELS: usize = 512;

/// What happens to the text of a string. A later one outdoes an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) enum Treatment {
    /// It passes.
    #[default]
    Keep,
    /// It passes up to the first question mark.
    CutQuery,
    /// It goes.
    Empty,
}

/// A key that means something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    /// A password for git, good for an hour.
    TempCloneToken,
    /// Where a file is; of a private one with a token in the query.
    DownloadUrl,
    /// How gh learns the version of an Enterprise host.
    InstalledVersion,
    Other,
}

impl Key {
    pub(super) const INSTALLED_VERSION: &str = "installed_version";

    /// Reads the text of a key, up to where it is none of these.
    pub(super) fn read(text: &[u8]) -> Result<Self, Torn> {
        for (name, key) in [
            ("temp_clone_token", Self::TempCloneToken),
            ("download_url", Self::DownloadUrl),
            (Self::INSTALLED_VERSION, Self::InstalledVersion),
        ] {
            if text::prefix(text, name, |_| false)?.is_some() {
                return Ok(key);
            }
        }
        Ok(Self::Other)
    }

    fn treatment(self) -> Treatment {
        match self {
            Self::TempCloneToken => Treatment::Empty,
            Self::DownloadUrl => Treatment::CutQuery,
            Self::InstalledVersion | Self::Other => Treatment::Keep,
        }
    }
}

/// What a string is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Key,
    Value(Treatment),
}

/// The containers around the next byte.
#[derive(Debug, Default)]
pub(super) struct Place {
    levels: Vec<Level>,
    /// What happens to the next value.
    value: Treatment,
    /// The next string is a key.
    awaits_key: bool,
}

/// A container, and what happens to the strings in it.
#[derive(Debug, Clone, Copy)]
enum Level {
    Object(Treatment),
    Array(Treatment),
}

impl Place {
    pub(super) fn open_object(&mut self) -> Result<(), TooDeep> {
        self.open(Level::Object(self.value))
    }

    pub(super) fn open_array(&mut self) -> Result<(), TooDeep> {
        self.open(Level::Array(self.value))
    }

    fn open(&mut self, level: Level) -> Result<(), TooDeep> {
        if self.levels.len() == LEVELS {
            return Err(TooDeep);
        }
        self.levels.push(level);
        self.separate();
        Ok(())
    }

    /// The innermost container ends; whether it was an object.
    pub(super) fn close(&mut self) -> bool {
        let closed = self.levels.pop();
        self.separate();
        matches!(closed, Some(Level::Object(_)))
    }

    /// Another member of the innermost container may come.
    pub(super) fn separate(&mut self) {
        (self.awaits_key, self.value) = match self.levels.last() {
            Some(Level::Object(treatment)) => (true, *treatment),
            Some(Level::Array(treatment)) => (false, *treatment),
            None => (false, Treatment::Keep),
        };
    }

    /// A string begins; what it is.
    pub(super) fn string(&self) -> Role {
        if self.awaits_key { Role::Key } else { Role::Value(self.value) }
    }

    /// The key of the next value.
    pub(super) fn key(&mut self, key: Key) {
        self.value = self.value.max(key.treatment());
        self.awaits_key = false;
    }

    /// Whether the innermost container is the root.
    pub(super) fn is_root(&self) -> bool {
        self.levels.len() == 1
    }

    /// Whether there is no container.
    pub(super) fn is_outside(&self) -> bool {
        self.levels.is_empty()
    }
}
