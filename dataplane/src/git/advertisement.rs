//! The advertisement that answers a push discovery, passed on without the capabilities that the door does not take.
//!
//! Only the capabilities of the first ref are touched; every other byte passes as it came. Format:
//! <https://git-scm.com/docs/http-protocol#_smart_server_response>.

use super::pktline::{self, InvalidLength, Packet};
use super::{chomp, receive_pack::Oid, split_once};
use bytes::{Bytes, BytesMut};

/// Most bytes held until the first ref is complete. GitHub's head takes some 400.
const HEAD_BYTES: usize = 64 * 1024;

/// Why bytes are no advertisement of a repository to push to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// A packet has no valid length.
    #[error("{0}")]
    PktLine(#[from] InvalidLength),
    /// The first packet is not `# service=git-receive-pack`.
    #[error("the advertisement is not one of git-receive-pack")]
    Service,
    /// No flush after the service.
    #[error("the advertisement's service is not ended by a flush")]
    ServiceEnd,
    /// The first ref is not `<id> <ref>`, NUL, capabilities.
    #[error("the advertisement's first ref has no id, name and capabilities")]
    FirstRef,
    /// The first ref ends above 64 KiB.
    #[error("the advertisement's first ref does not end within 64 KiB")]
    TooLong,
    /// It ended before the first ref was complete.
    #[error("the advertisement ended before its first ref")]
    Truncated,
}

/// Rewrites an advertisement that comes in chunks.
#[derive(Debug, Default)]
pub struct Rewriter {
    next: Next,
    /// What came and is not read yet.
    unread: Vec<u8>,
    /// What was read and waits for the rest of the head.
    head: BytesMut,
}

/// What the next packet has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Next {
    #[default]
    Service,
    ServiceEnd,
    VersionOrFirstRef,
    FirstRef,
    /// The head is complete: anything, and it passes as it is.
    Tail,
}

impl Rewriter {
    /// A rewriter that has seen nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next bytes; what can be sent of them. Nothing is, before the advertisement is [confirmed].
    ///
    /// [confirmed]: Rewriter::confirmed
    pub fn push(&mut self, bytes: &[u8]) -> Result<Bytes, Malformed> {
        if self.next == Next::Tail {
            return Ok(Bytes::copy_from_slice(bytes));
        }
        self.unread.extend_from_slice(bytes);
        let mut read = 0;
        while self.next != Next::Tail {
            let rest = self.unread.get(read..).unwrap_or_default();
            if pktline::size(rest)?.is_some_and(|size| self.head.len() + size > HEAD_BYTES) {
                return Err(Malformed::TooLong);
            }
            let Some((packet, taken)) = pktline::read(rest)? else {
                break;
            };
            self.next = read_head(self.next, packet, &mut self.head)?;
            read += taken;
        }
        self.unread.drain(..read);
        if !self.confirmed() {
            return Ok(Bytes::new());
        }
        let mut out = std::mem::take(&mut self.head);
        out.extend_from_slice(&std::mem::take(&mut self.unread));
        Ok(out.freeze())
    }

    /// The body has ended; what is left to send.
    pub fn finish(self) -> Result<Bytes, Malformed> {
        if self.confirmed() { Ok(Bytes::new()) } else { Err(Malformed::Truncated) }
    }

    /// The service, its flush and the first ref were read: this is a repository that upstream lets be pushed to.
    #[must_use]
    pub fn confirmed(&self) -> bool {
        self.next == Next::Tail
    }
}

/// Judges one packet of the head and appends what goes on to the client.
fn read_head(next: Next, packet: Packet<'_>, head: &mut BytesMut) -> Result<Next, Malformed> {
    match (next, packet) {
        (Next::Service, Packet::Data(line @ b"# service=git-receive-pack\n")) => {
            pktline::encode(head, line);
            Ok(Next::ServiceEnd)
        }
        (Next::Service, Packet::Data(_) | Packet::Flush) => Err(Malformed::Service),
        (Next::ServiceEnd, Packet::Flush) => {
            head.extend_from_slice(pktline::FLUSH);
            Ok(Next::VersionOrFirstRef)
        }
        (Next::ServiceEnd, Packet::Data(_)) => Err(Malformed::ServiceEnd),
        (Next::VersionOrFirstRef, Packet::Data(line)) if chomp(line) == b"version 1" => {
            pktline::encode(head, line);
            Ok(Next::FirstRef)
        }
        (Next::VersionOrFirstRef | Next::FirstRef, Packet::Data(line)) => {
            pktline::encode(head, &first_ref(line).ok_or(Malformed::FirstRef)?);
            Ok(Next::Tail)
        }
        (Next::VersionOrFirstRef | Next::FirstRef, Packet::Flush) => Err(Malformed::FirstRef),
        (Next::Tail, Packet::Data(_) | Packet::Flush) => Ok(Next::Tail),
    }
}

/// The line without the capabilities that are not passed on.
fn first_ref(line: &[u8]) -> Option<Vec<u8>> {
    let (named, capabilities) = split_once(line, 0)?;
    let (id, name) = split_once(named, b' ')?;
    // A client splits at every blank and stops at a NUL: one that hid a word here would show it there.
    let is_text = |bytes: &[u8]| bytes.iter().all(|byte| !byte.is_ascii_control());
    if Oid::parse(id).is_err() || name.is_empty() || !is_text(name) || !is_text(chomp(capabilities)) {
        return None;
    }
    let passed: Vec<_> = chomp(capabilities).split(|byte| *byte == b' ').filter(|word| is_passed(word)).collect();
    let end: &[u8] = if capabilities.ends_with(b"\n") { b"\n" } else { b"" };
    Some([named, b"\0", &passed.join(&b' '), end].concat())
}

fn is_passed(capability: &[u8]) -> bool {
    let name = split_once(capability, b'=').map_or(capability, |(name, _)| name);
    !matches!(name, b"push-options" | b"push-cert")
}

#[cfg(test)]
mod tests;
