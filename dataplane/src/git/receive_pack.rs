//! The command section of a git-receive-pack request: what stands before the first flush.
//!
//! `shallow <id>` lines, then `<old> <new> <ref>` commands, NUL and the capabilities after the first. A section is
//! read as strictly as `git receive-pack` reads it, or more so. Format: <https://git-scm.com/docs/gitprotocol-pack>.

mod capabilities;
mod command;
mod pack;

use super::pktline::{self, InvalidLength, Packet};
use super::{chomp, split_once};
use bytes::Bytes;

pub use capabilities::{Capabilities, Report};
pub use command::{Command, ObjectFormat, Oid};
pub use pack::PackStart;

/// Most bytes of a section, every length and the flush included: some 700 commands, and no pack is let in as one.
pub const SECTION_BYTES: usize = 64 * 1024;

/// A whole command section.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Section {
    /// The commands, as they came. None makes the section a probe.
    pub commands: Vec<Command>,
    /// How many `shallow` lines came before them.
    pub shallow: usize,
    /// What the first command asked for.
    pub capabilities: Capabilities,
    /// Bytes of the section, the flush included; after them the pack begins.
    pub length: usize,
}

impl Section {
    /// No command at all: a client asks whether it may push.
    #[must_use]
    pub fn is_probe(&self) -> bool {
        self.commands.is_empty()
    }

    /// Every command deletes: no pack follows.
    #[must_use]
    pub fn deletes_only(&self) -> bool {
        !self.is_probe() && self.commands.iter().all(Command::is_delete)
    }
}

/// Why the bytes are no push that the door takes. The words are for the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// A packet has no valid length.
    #[error("{0}")]
    PktLine(#[from] InvalidLength),
    /// Longer than [`SECTION_BYTES`].
    #[error("the command section is longer than 64 KiB; push fewer refs at once")]
    TooLong,
    /// The body has no byte.
    #[error("the body is empty")]
    Empty,
    /// The body ended before the flush.
    #[error("the body ended inside the command section")]
    Truncated,
    /// A line is neither `shallow <id>` nor `<old> <new> <ref>`.
    #[error("a command is not '<old> <new> <ref>'")]
    Command,
    /// A word that should be an object id is not 40 or 64 hex digits.
    #[error("an object id is not 40 or 64 hex digits")]
    ObjectId,
    /// An id's width is not the object format's.
    #[error("an object id's width is not that of the push's object format")]
    IdWidth,
    /// A command names no ref.
    #[error("a command names no ref")]
    EmptyRef,
    /// A line feed inside a ref's name.
    #[error("a ref's name holds a line feed")]
    RefLineFeed,
    /// A `shallow` line after a command.
    #[error("a shallow line follows a command")]
    LateShallow,
    /// A NUL in a command that is not the first.
    #[error("only the first command may carry capabilities")]
    LateCapabilities,
    /// A capability byte that is not printable ASCII.
    #[error("the capabilities are not printable ASCII words")]
    CapabilityBytes,
    /// `object-format` twice, without a value, or neither sha1 nor sha256.
    #[error("the object format is not one of sha1 and sha256")]
    ObjectFormat,
    /// The client would send push options.
    #[error("push options are not accepted; push without --push-option")]
    PushOptions,
    /// The commands would be inside a push certificate.
    #[error("push certificates are not accepted; push without --signed")]
    PushCertificate,
    /// Bytes after a section that nothing follows.
    #[error("bytes follow a command section that has no pack")]
    UnexpectedPack,
    /// Commands that need a pack, and no pack.
    #[error("no pack follows the commands")]
    PackMissing,
    /// What follows the commands does not begin as a pack.
    #[error("what follows the commands is not a pack")]
    NotAPack,
}

/// Reads the section out of a body that comes in chunks.
#[derive(Debug, Default)]
pub struct SectionReader {
    pushed: Vec<u8>,
    lines: Lines,
    complete: bool,
}

impl SectionReader {
    /// A reader that has seen nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next bytes of the decoded body; the section, once its flush is read. Of all that was pushed the first
    /// [`Section::length`] bytes are the section, the rest is pack.
    ///
    /// Until then at most 64 KiB and the last chunk are held.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Option<Section>, Malformed> {
        self.pushed.extend_from_slice(bytes);
        while !self.complete {
            let rest = self.pushed.get(self.lines.section.length..).unwrap_or_default();
            // The limit is judged by the announced length: nothing too long is ever waited for.
            if pktline::size(rest)?.is_some_and(|size| self.lines.section.length + size > SECTION_BYTES) {
                return Err(Malformed::TooLong);
            }
            let Some((packet, taken)) = pktline::read(rest)? else {
                return Ok(None);
            };
            match packet {
                Packet::Flush => self.complete = true,
                Packet::Data(line) => self.lines.take(chomp(line))?,
            }
            self.lines.section.length += taken;
        }
        Ok(Some(self.lines.section.clone()))
    }

    /// The body has ended: the section, if its flush was read.
    pub fn finish(self) -> Result<Section, Malformed> {
        match (self.complete, self.pushed.is_empty()) {
            (true, _) => Ok(self.lines.section),
            (false, true) => Err(Malformed::Empty),
            (false, false) => Err(Malformed::Truncated),
        }
    }

    /// Everything that was pushed, unchanged: it goes upstream first.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        self.pushed.into()
    }
}

/// The lines read so far, and the object format they agree on.
#[derive(Debug, Default)]
struct Lines {
    section: Section,
    format: Option<ObjectFormat>,
}

impl Lines {
    fn take(&mut self, line: &[u8]) -> Result<(), Malformed> {
        // Git compares a C string here: what follows a NUL does not matter to it.
        if line == b"push-cert" || line.starts_with(b"push-cert\0") {
            return Err(Malformed::PushCertificate);
        }
        match line.strip_prefix(b"shallow ") {
            Some(id) => self.take_shallow(id),
            None => self.take_command(line),
        }
    }

    /// Git takes a `shallow` line anywhere and ignores what follows the id; no client sends either.
    fn take_shallow(&mut self, id: &[u8]) -> Result<(), Malformed> {
        if !self.section.commands.is_empty() {
            return Err(Malformed::LateShallow);
        }
        self.agree(Oid::parse(id)?.format())?;
        self.section.shallow += 1;
        Ok(())
    }

    fn take_command(&mut self, line: &[u8]) -> Result<(), Malformed> {
        let first = self.section.commands.is_empty();
        let (words, capabilities) = match split_once(line, 0) {
            // Git would take a second set and let it win.
            Some(_) if !first => return Err(Malformed::LateCapabilities),
            Some((words, capabilities)) => (words, capabilities),
            None => (line, &b""[..]),
        };
        let command = Command::parse(words)?;
        if first {
            let capabilities = Capabilities::parse(capabilities)?;
            self.agree(capabilities.object_format.unwrap_or(ObjectFormat::Sha1))?;
            self.section.capabilities = capabilities;
        }
        self.agree(command.old.format())?;
        self.agree(command.new.format())?;
        self.section.commands.push(command);
        Ok(())
    }

    fn agree(&mut self, format: ObjectFormat) -> Result<(), Malformed> {
        if *self.format.get_or_insert(format) == format { Ok(()) } else { Err(Malformed::IdWidth) }
    }
}

#[cfg(test)]
mod tests;
