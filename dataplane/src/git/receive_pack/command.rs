//! One command of a push: which ref, from what, to what.

use super::Malformed;
use bytes::Bytes;

/// `<old> <new> <ref>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// What the client believes the ref to be; zero creates it.
    pub old: Oid,
    /// What the ref shall become; zero deletes it, whatever `old` says.
    pub new: Oid,
    /// The ref's name as it came. It is not empty and holds no NUL and no LF; nothing else is judged here.
    pub ref_name: Bytes,
}

impl Command {
    /// Parses a line that has lost its LF and its capabilities.
    pub(super) fn parse(line: &[u8]) -> Result<Self, Malformed> {
        let mut words = line.splitn(3, |byte| *byte == b' ');
        let (Some(old), Some(new), Some(ref_name)) = (words.next(), words.next(), words.next()) else {
            return Err(Malformed::Command);
        };
        let (old, new) = (Oid::parse(old)?, Oid::parse(new)?);
        if ref_name.is_empty() {
            return Err(Malformed::EmptyRef);
        }
        if ref_name.contains(&b'\n') {
            return Err(Malformed::RefLineFeed);
        }
        Ok(Self { old, new, ref_name: Bytes::copy_from_slice(ref_name) })
    }

    /// The command removes its ref. Zero to zero does too: git then deletes the ref without comparing it.
    #[must_use]
    pub fn is_delete(&self) -> bool {
        self.new.is_zero()
    }
}

/// An object id: 40 or 64 hex digits, in lower case. Git reads both cases as the same id.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Oid(String);

impl Oid {
    /// Parses 40 or 64 hex digits of either case, and nothing around them.
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let is_id = matches!(bytes.len(), 40 | 64) && bytes.iter().all(u8::is_ascii_hexdigit);
        match str::from_utf8(bytes) {
            Ok(digits) if is_id => Ok(Self(digits.to_ascii_lowercase())),
            Ok(_) | Err(_) => Err(Malformed::ObjectId),
        }
    }

    /// The null id, which stands for no object.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.0.bytes().all(|digit| digit == b'0')
    }

    /// The lower-case hex digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The object format that has ids of this width.
    #[must_use]
    pub fn format(&self) -> ObjectFormat {
        if self.0.len() == 64 { ObjectFormat::Sha256 } else { ObjectFormat::Sha1 }
    }
}

/// Which hash names the objects of a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectFormat {
    /// Ids of 40 digits.
    Sha1,
    /// Ids of 64 digits.
    Sha256,
}
