//! Notices request heads that state their length in more than one way, which the HTTP parser would quietly settle.
//!
//! Another reader before the door could settle them differently and see other requests in the same bytes (RFC 9112,
//! section 11.2). Only heads are read, and of bodies what it takes to find the next head; nothing is changed.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes of a line that are kept: enough for a length or a chunk's size, however it is padded within reason.
const LINE_BYTES: usize = 256;

/// A connection whose heads are watched.
pub(super) struct Heads<S> {
    stream: S,
    watch: Watch,
    ambiguous: Arc<AtomicBool>,
}

impl<S> Heads<S> {
    /// Sets `ambiguous` before the parser gets to see the end of such a head; it stays set.
    pub(super) fn new(stream: S, ambiguous: Arc<AtomicBool>) -> Self {
        Self { stream, watch: Watch::default(), ambiguous }
    }
}

/// Where in a connection's bytes the next one is.
#[derive(Debug, Default, PartialEq, Eq)]
enum Place {
    /// Before a request line.
    #[default]
    Start,
    /// Among a head's fields.
    Fields,
    /// Inside a body, or a chunk and what ends it: so many bytes are left.
    Data { left: u64, chunked: bool },
    /// In the line that tells a chunk's size.
    Size,
    /// After the last chunk.
    Trailer,
    /// This connection is watched no more.
    Off,
}

#[derive(Debug, Default)]
struct Watch {
    place: Place,
    line: Vec<u8>,
    lengths: usize,
    length: u64,
    codings: usize,
    ambiguous: bool,
}

impl Watch {
    fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() && self.place != Place::Off {
            bytes = match self.place {
                Place::Data { left, chunked } => self.skip(left, chunked, bytes),
                Place::Start | Place::Fields | Place::Size | Place::Trailer | Place::Off => self.read(bytes),
            };
        }
    }

    fn skip<'a>(&mut self, left: u64, chunked: bool, bytes: &'a [u8]) -> &'a [u8] {
        let taken = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
        let left = left - taken as u64;
        self.place = match (left, chunked) {
            (0, true) => Place::Size,
            (0, false) => Place::Start,
            (left, chunked) => Place::Data { left, chunked },
        };
        bytes.get(taken..).unwrap_or_default()
    }

    fn read<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let (part, rest) = bytes.split_at_checked(end.map_or(bytes.len(), |end| end + 1)).unwrap_or((bytes, &[]));
        let room = LINE_BYTES.saturating_sub(self.line.len());
        self.line.extend_from_slice(part.get(..room).unwrap_or(part));
        if end.is_some() {
            let line = std::mem::take(&mut self.line);
            self.end_line(line.trim_ascii_end());
        }
        rest
    }

    fn end_line(&mut self, line: &[u8]) {
        match (&self.place, line) {
            (Place::Start | Place::Trailer, []) => self.place = Place::Start,
            (Place::Start, line) if line.starts_with(b"PRI * HTTP/2") => self.place = Place::Off,
            (Place::Start, _) => self.place = Place::Fields,
            (Place::Fields, []) => self.end_head(),
            (Place::Fields, field) => self.field(field),
            (Place::Size, size) => match chunk_size(size) {
                Some(0) => self.place = Place::Trailer,
                Some(size) => self.place = Place::Data { left: size.saturating_add(2), chunked: true },
                None => self.doubt(),
            },
            (Place::Trailer | Place::Data { .. } | Place::Off, _) => {}
        }
    }

    fn field(&mut self, field: &[u8]) {
        let Some(colon) = field.iter().position(|byte| *byte == b':') else { return };
        let (name, value) = field.split_at_checked(colon).unwrap_or_default();
        let name = name.trim_ascii();
        if name.eq_ignore_ascii_case(b"transfer-encoding") {
            self.codings += 1;
        } else if name.eq_ignore_ascii_case(b"content-length") {
            self.lengths += 1;
            match number(value.trim_ascii_start().strip_prefix(b":").unwrap_or_default().trim_ascii(), 10) {
                Some(length) => self.length = length,
                None => self.doubt(),
            }
        }
    }

    fn end_head(&mut self) {
        let (lengths, codings) = (std::mem::take(&mut self.lengths), std::mem::take(&mut self.codings));
        let length = std::mem::take(&mut self.length);
        match (lengths, codings) {
            (0, 1) => self.place = Place::Size,
            (1, 0) if length > 0 => self.place = Place::Data { left: length, chunked: false },
            (0 | 1, 0) => self.place = Place::Start,
            (_, _) => self.doubt(),
        }
    }

    fn doubt(&mut self) {
        self.ambiguous = true;
        self.place = Place::Off;
    }
}

/// What a chunk's line says, without its extensions.
fn chunk_size(line: &[u8]) -> Option<u64> {
    let size = line.split(|byte| *byte == b';').next().unwrap_or_default();
    number(size.trim_ascii(), 16)
}

fn number(digits: &[u8], radix: u32) -> Option<u64> {
    let digits = str::from_utf8(digits).ok().filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))?;
    u64::from_str_radix(digits, radix).ok()
}

impl<S: AsyncRead + Unpin> AsyncRead for Heads<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
        self.watch.push(buf.filled().get(before..).unwrap_or_default());
        if self.watch.ambiguous {
            self.ambiguous.store(true, Ordering::Release);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Heads<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_ambiguous(bytes: &str) -> bool {
        let told = |chunk| {
            let mut watch = Watch::default();
            bytes.as_bytes().chunks(chunk).for_each(|chunk| watch.push(chunk));
            watch.ambiguous
        };
        let whole = told(usize::MAX);
        assert_eq!(told(1), whole, "{bytes:?}");
        whole
    }

    #[test]
    fn a_head_with_two_statements_of_its_length_is_noticed_wherever_it_stands() {
        let before = [
            "",
            "\r\n",
            "GET / HTTP/1.1\r\nHost: h\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5;a=\"b\"\r\nhello\r\nA\r\n0123456789\r\n0\r\nX: y\r\n\r\n",
        ];
        for before in before {
            for fields in [
                "Content-Length: 5\r\nContent-Length: 5",
                "content-length: 5\r\nTransfer-Encoding: chunked",
                "Transfer-Encoding: chunked\r\nA: b\r\nCONTENT-LENGTH: 5",
                "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
                "Content-Length: +5",
                "Content-Length : 5\r\nContent-Length: 5",
                "Content-Length: 5\nContent-Length: 5",
            ] {
                assert!(
                    is_ambiguous(&format!("{before}POST / HTTP/1.1\r\n{fields}\r\n\r\n")),
                    "{before:?} {fields:?}"
                );
            }
        }
    }

    #[test]
    fn any_other_head_passes_and_a_body_is_not_taken_for_one() {
        let body = "\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n";
        let long = "x".repeat(5000);
        for bytes in [
            format!(
                "GET / HTTP/1.1\r\nX: {long}\r\nContent-Length: 0\r\n\r\nGET / HTTP/1.1\r\nContent-Length: 0\r\n\r\n"
            ),
            format!("POST / HTTP/1.1\r\nContent-Length: {}\r\n\r\n{body}GET / HTTP/1.1\r\n\r\n", body.len()),
            format!("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n", body.len()),
            format!("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n{body}"),
        ] {
            assert!(!is_ambiguous(&bytes), "{bytes:?}");
        }
    }
}
