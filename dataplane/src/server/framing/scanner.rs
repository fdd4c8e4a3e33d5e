//! Finds every head in the raw bytes of an HTTP/1 connection, and follows each body to the next one.
//!
//! Total, bounded, and indifferent to how the bytes are cut: it holds at most one unended line, and passes over the data
//! of a body by arithmetic.

use std::borrow::Cow;

use super::head::{Framing, Head, is_text, is_trailer};
use crate::headers::BadFraming;
use crate::upstream::BUFFER;

/// Most bytes of a head: no more than the server's parser would take.
const HEAD_BYTES: usize = BUFFER;
/// Most bytes of a chunk's size with its extensions, and of all trailers: no more than the server's parser would take.
const CHUNK_LINE_BYTES: usize = 16 * 1024;
/// Most digits of a chunk's size: as many as 64 bits have.
const SIZE_DIGITS: usize = 16;

/// What was found in the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen {
    /// A head, and its framing. After a bad one nothing more is looked for.
    Head(Result<Framing, BadFraming>),
    /// A body that is not framed as its head said; the bytes from here on are no part of it.
    Broken,
}

/// The state between two reads.
#[derive(Debug, Default)]
pub(super) struct Scanner {
    state: State,
    /// The bytes of a line whose end has not come.
    held: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
enum State {
    Head {
        head: Head,
        room: usize,
    },
    Body(Body),
    /// Nothing is looked for any more.
    Over,
}

/// What is due of a body.
#[derive(Debug, Clone, Copy)]
enum Body {
    Length { left: u64 },
    ChunkSize,
    ChunkData { left: u64 },
    ChunkEnd,
    Trailers { room: usize },
}

impl Default for State {
    fn default() -> Self {
        Self::Head { head: Head::default(), room: HEAD_BYTES }
    }
}

/// Bytes that are not what is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Unfit;

impl Scanner {
    /// Takes bytes from the front until there is something to tell. Nothing: all were taken.
    pub(super) fn next(&mut self, rest: &mut &[u8]) -> Option<Seen> {
        while !rest.is_empty() {
            let start = *rest;
            let seen = match self.state {
                State::Head { head, room } => self.head(head, room, rest).map(Seen::Head),
                State::Body(body) => self.body(body, rest).err().map(|Unfit| Seen::Broken),
                State::Over => {
                    *rest = &[];
                    None
                }
            };
            match seen {
                None => {}
                Some(Seen::Head(Ok(_))) => return seen,
                Some(Seen::Head(Err(_))) => {
                    self.stop();
                    return seen;
                }
                Some(Seen::Broken) => {
                    self.stop();
                    *rest = start;
                    return seen;
                }
            }
        }
        None
    }

    fn stop(&mut self) {
        self.state = State::Over;
        self.held = Vec::new();
    }

    /// The next line of a head.
    fn head(&mut self, mut head: Head, room: usize, rest: &mut &[u8]) -> Option<Result<Framing, BadFraming>> {
        let line = match self.line(rest, room) {
            Err(Unfit) => return Some(Err(BadFraming::Line)),
            Ok(line) => line?,
        };
        match head.line(&line) {
            Err(bad) => Some(Err(bad)),
            Ok(None) => {
                self.state = State::Head { head, room: room.saturating_sub(line.len() + 2) };
                None
            }
            Ok(Some(framing)) => {
                self.state = match framing {
                    Framing::Empty | Framing::Length(0) => State::default(),
                    Framing::Length(left) => State::Body(Body::Length { left }),
                    Framing::Chunked => State::Body(Body::ChunkSize),
                };
                Some(Ok(framing))
            }
        }
    }

    /// The next piece of a body.
    fn body(&mut self, body: Body, rest: &mut &[u8]) -> Result<(), Unfit> {
        let next = match body {
            Body::Length { left } => match pass(left, rest) {
                0 => None,
                left => Some(Body::Length { left }),
            },
            Body::ChunkData { left } => match pass(left, rest) {
                0 => Some(Body::ChunkEnd),
                left => Some(Body::ChunkData { left }),
            },
            Body::ChunkSize => {
                let Some(line) = self.line(rest, CHUNK_LINE_BYTES)? else { return Ok(()) };
                match chunk_size(&line).ok_or(Unfit)? {
                    0 => Some(Body::Trailers { room: CHUNK_LINE_BYTES }),
                    left => Some(Body::ChunkData { left }),
                }
            }
            Body::ChunkEnd => match self.line(rest, b"\r\n".len())? {
                None => return Ok(()),
                Some(_) => Some(Body::ChunkSize),
            },
            Body::Trailers { room } => match self.line(rest, room)? {
                None => return Ok(()),
                Some(line) if line.is_empty() => None,
                Some(line) if is_trailer(&line) => {
                    Some(Body::Trailers { room: room.saturating_sub(line.len() + 2) })
                }
                Some(_) => return Err(Unfit),
            },
        };
        self.state = next.map_or_else(State::default, State::Body);
        Ok(())
    }

    /// The next line of at most this many bytes, without the CRLF that alone ends it. Nothing: its end has not come.
    fn line<'a>(&mut self, rest: &mut &'a [u8], room: usize) -> Result<Option<Cow<'a, [u8]>>, Unfit> {
        let piece = rest.split_inclusive(|byte| *byte == b'\n').next().unwrap_or_default();
        if self.held.len() + piece.len() > room {
            return Err(Unfit);
        }
        *rest = rest.get(piece.len()..).unwrap_or_default();
        if piece.last() != Some(&b'\n') {
            self.held.extend_from_slice(piece);
            return Ok(None);
        }
        if self.held.is_empty() {
            return piece.strip_suffix(b"\r\n").map(|line| Some(Cow::Borrowed(line))).ok_or(Unfit);
        }
        let mut line = std::mem::take(&mut self.held);
        line.extend_from_slice(piece);
        if !line.ends_with(b"\r\n") {
            return Err(Unfit);
        }
        line.truncate(line.len().saturating_sub(2));
        Ok(Some(Cow::Owned(line)))
    }
}

/// Passes over at most this many bytes of data; how many are left.
fn pass(left: u64, rest: &mut &[u8]) -> u64 {
    let taken = usize::try_from(left).unwrap_or(usize::MAX).min(rest.len());
    *rest = rest.get(taken..).unwrap_or_default();
    left.saturating_sub(taken as u64)
}

/// The size on a chunk's line. Blanks may come before an extension, and nowhere else (RFC 9112, section 7.1.1).
fn chunk_size(line: &[u8]) -> Option<u64> {
    let size = match line.iter().position(|byte| *byte == b';') {
        None => line,
        Some(at) => line.get(..at)?.trim_ascii_end(),
    };
    let plain = (1..=SIZE_DIGITS).contains(&size.len()) && size.iter().all(u8::is_ascii_hexdigit);
    let size = std::str::from_utf8(size).ok().filter(|_| plain && is_text(line))?;
    u64::from_str_radix(size, 16).ok()
}
