//! Changes in a JSON body on its way down, at any chunking and without holding it.
//!
//! String values that are URLs of the API come to lead to the door, and the credentials that a forge writes into its
//! answers go. Every other byte passes as it came. Format: RFC 8259, in UTF-8.

mod place;
mod text;

use std::borrow::Cow;
use std::mem;

use bytes::Bytes;

use super::links::{Links, ends_base};
use place::{Key, Place, Role, Treatment};
use text::{Torn, Unit};

/// What is changed in a body, besides the credentials: those go from every one.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    /// Where string values lead that begin with a URL of the API; none: as they are.
    pub links: Option<Links>,
    /// The `installed_version` that an object is given which has none.
    pub version: Option<&'static str>,
}

/// How many credentials did not pass.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stopped {
    /// Passwords for git that came empty.
    pub clone_tokens: u64,
    /// Queries of files' URLs.
    pub download_urls: u64,
}

/// Containers inside each other, more than there are in any answer of an API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the forge's JSON is nested deeper than the {} levels that pass", place::LEVELS)]
pub struct TooDeep;

/// Rewrites a body that comes in chunks.
///
/// Of the input it holds back what it cannot judge yet: an escape that is cut, or the beginning of a string that may
/// still become a key or a URL that it looks for. What is no JSON passes.
pub struct Rewriter {
    changes: Changes,
    place: Place,
    at: At,
    /// Whether the root, an object, has a member.
    has_members: bool,
    stopped: Stopped,
    /// The end of what came, which is not judged yet.
    held: Vec<u8>,
}

/// Where the next byte is.
#[derive(Clone, Copy)]
enum At {
    /// Outside of strings.
    Between,
    /// Behind the opening quote of a key.
    Key,
    /// Behind the opening quote of a value.
    Value(Treatment),
    /// In a string. Up to its end it is treated so.
    Text(Treatment),
    /// Where nothing passes any more.
    TooDeep,
}

/// Why the next byte is not taken.
enum Stop {
    /// More must come first.
    Torn,
    TooDeep,
}

impl Rewriter {
    /// A rewriter that has seen nothing.
    #[must_use]
    pub fn new(changes: Changes) -> Self {
        let (place, at) = (Place::default(), At::Between);
        Self { changes, place, at, has_members: false, stopped: Stopped::default(), held: Vec::new() }
    }

    /// Takes the next bytes; what can be sent of them. After an error nothing can.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Bytes, TooDeep> {
        let held = mem::take(&mut self.held);
        let input = if held.is_empty() { Cow::Borrowed(bytes) } else { Cow::Owned([&held, bytes].concat()) };
        let mut rest = &*input;
        // The door's URLs may be longer than those that they take the place of.
        let mut out = Vec::with_capacity(rest.len() + rest.len() / 4);
        while !rest.is_empty() {
            match self.step(&mut rest, &mut out) {
                Ok(()) => {}
                Err(Stop::Torn) => break,
                Err(Stop::TooDeep) => {
                    self.at = At::TooDeep;
                    return Err(TooDeep);
                }
            }
        }
        self.held = rest.to_vec();
        Ok(out.into())
    }

    /// What did not pass so far.
    #[must_use]
    pub fn stopped(&self) -> Stopped {
        self.stopped
    }

    /// The body has ended; what was held back of a string that was not complete.
    pub fn finish(&mut self) -> Result<Bytes, TooDeep> {
        match self.at {
            At::TooDeep => Err(TooDeep),
            At::Text(Treatment::Empty) => Ok(Bytes::new()),
            At::Between | At::Key | At::Value(_) | At::Text(_) => Ok(mem::take(&mut self.held).into()),
        }
    }

    /// Takes at least a byte from the front, or goes on to what it is part of.
    fn step(&mut self, rest: &mut &[u8], out: &mut Vec<u8>) -> Result<(), Stop> {
        match self.at {
            At::Between => self.between(rest, out)?,
            At::Key => self.key(rest)?,
            At::Value(treatment) => self.value(treatment, rest, out)?,
            At::Text(treatment) => self.text(treatment, rest, out)?,
            At::TooDeep => return Err(Stop::TooDeep),
        }
        Ok(())
    }

    /// Up to the next byte that opens, closes or separates.
    fn between(&mut self, rest: &mut &[u8], out: &mut Vec<u8>) -> Result<(), TooDeep> {
        let mark = rest.iter().position(|byte| matches!(byte, b'"' | b'{' | b'}' | b'[' | b']' | b','));
        out.extend_from_slice(take(rest, mark.unwrap_or(rest.len())));
        let mark = take(rest, 1);
        match mark {
            b"{" => self.place.open_object()?,
            b"[" => self.place.open_array()?,
            b"}" | b"]" => self.close(out),
            b"," => self.place.separate(),
            b"\"" => {
                self.at = match self.place.string() {
                    Role::Key => At::Key,
                    Role::Value(treatment) => At::Value(treatment),
                };
            }
            _ => {}
        }
        out.extend_from_slice(mark);
        Ok(())
    }

    /// A container ends. The root does so once.
    fn close(&mut self, out: &mut Vec<u8>) {
        let was_object = self.place.close();
        if !self.place.is_outside() {
            return;
        }
        if let Some(version) = self.changes.version.take().filter(|_| was_object) {
            let comma = if self.has_members { "," } else { "" };
            out.extend_from_slice(format!("{comma}\"{}\":\"{version}\"", Key::INSTALLED_VERSION).as_bytes());
        }
    }

    /// What a key means; its text passes.
    fn key(&mut self, rest: &[u8]) -> Result<(), Torn> {
        let key = Key::read(rest)?;
        if self.place.is_root() {
            self.has_members = true;
            if key == Key::InstalledVersion {
                self.changes.version = None;
            }
        }
        self.place.key(key);
        self.at = At::Text(Treatment::Keep);
        Ok(())
    }

    /// The beginning of a value, if it is that of a URL of the API.
    fn value(&mut self, treatment: Treatment, rest: &mut &[u8], out: &mut Vec<u8>) -> Result<(), Torn> {
        if treatment == Treatment::Empty {
            self.stopped.clone_tokens += u64::from(!rest.starts_with(b"\""));
        } else {
            for (base, door) in self.changes.links.iter().flat_map(Links::pairs) {
                if let Some(taken) = text::prefix(rest, base, ends_base)? {
                    take(rest, taken);
                    out.extend_from_slice(door.as_bytes());
                    break;
                }
            }
        }
        self.at = At::Text(treatment);
        Ok(())
    }

    /// Up to the next quote, escape or question mark of a string, or over it.
    fn text(&mut self, treatment: Treatment, rest: &mut &[u8], out: &mut Vec<u8>) -> Result<(), Torn> {
        let cut = treatment == Treatment::CutQuery;
        let end = rest.iter().position(|byte| matches!(byte, b'"' | b'\\') || (cut && *byte == b'?'));
        let run = take(rest, end.unwrap_or(rest.len()));
        if treatment != Treatment::Empty {
            out.extend_from_slice(run);
        }
        if rest.is_empty() {
            return Ok(());
        }
        let (unit, length) = text::unit(rest)?;
        match unit {
            Unit::Character(b'?') if cut => {
                self.stopped.download_urls += 1;
                self.at = At::Text(Treatment::Empty);
            }
            Unit::End => {
                out.extend_from_slice(take(rest, length));
                self.at = At::Between;
            }
            Unit::Character(_) | Unit::Other => {
                let escape = take(rest, length);
                if treatment != Treatment::Empty {
                    out.extend_from_slice(escape);
                }
            }
        }
        Ok(())
    }
}

/// Takes this many bytes from the front, or all.
fn take<'a>(rest: &mut &'a [u8], length: usize) -> &'a [u8] {
    let (taken, after) = rest.split_at_checked(length).unwrap_or((*rest, &[]));
    *rest = after;
    taken
}

impl From<Torn> for Stop {
    fn from(Torn: Torn) -> Self {
        Self::Torn
    }
}

impl From<TooDeep> for Stop {
    fn from(TooDeep: TooDeep) -> Self {
        Self::TooDeep
    }
}

#[cfg(test)]
mod tests;
