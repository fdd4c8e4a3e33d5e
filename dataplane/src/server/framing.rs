//! A second reader of every HTTP/1 connection, stricter than the server's own.
//!
//! The server's parser repairs some ambiguous heads before anyone can see them: it merges equal lengths, drops a length
//! beside a transfer coding, takes a bare line feed for a line's end. Here the raw bytes are judged as they pass, and a
//! request is let in only where both readers saw the same one. RFC 9112, sections 2.2, 5, 6 and 7.1.

mod head;
mod scanner;

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};

use http::header::{CONTENT_LENGTH, HeaderName, TRANSFER_ENCODING};
use http::{HeaderMap, Request, Version};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::headers::BadFraming;
use head::Framing;
use scanner::{Scanner, Seen};

/// What was judged of a connection's heads, in the order in which they came. The server answers the requests of an
/// HTTP/1 connection in that order too. It reads no further ahead than its buffer, which bounds the queue.
#[derive(Clone, Default)]
pub(super) struct Heads(Arc<Mutex<VecDeque<Result<Framing, BadFraming>>>>);

impl Heads {
    /// The judgement of the next request. One that was not seen in the raw bytes, or was seen with another framing
    /// than this, is refused. HTTP/2 frames its messages itself.
    pub(super) fn judge<B>(&self, request: &Request<B>) -> Result<(), BadFraming> {
        if request.version() == Version::HTTP_2 {
            return Ok(());
        }
        let next = self.0.lock().ok().and_then(|mut heads| heads.pop_front());
        let framing = next.unwrap_or(Err(BadFraming::Step))?;
        if is_told(request.headers(), framing) { Ok(()) } else { Err(BadFraming::Step) }
    }

    fn push(&self, judged: Result<Framing, BadFraming>) {
        if let Ok(mut heads) = self.0.lock() {
            heads.push_back(judged);
        }
    }
}

fn is_told(headers: &HeaderMap, framing: Framing) -> bool {
    let only = |name: HeaderName| {
        let mut values = headers.get_all(name).iter();
        values.next().filter(|_| values.next().is_none())
    };
    let has = |name: HeaderName| headers.contains_key(name);
    match framing {
        Framing::Empty => !has(CONTENT_LENGTH) && !has(TRANSFER_ENCODING),
        Framing::Length(length) => {
            let told = only(CONTENT_LENGTH).and_then(|told| told.to_str().ok()?.parse().ok());
            told == Some(length) && !has(TRANSFER_ENCODING)
        }
        Framing::Chunked => only(TRANSFER_ENCODING).is_some() && !has(CONTENT_LENGTH),
    }
}

/// A connection whose heads are judged as its bytes are read.
pub(super) struct Scanned<S> {
    stream: S,
    scanner: Scanner,
    heads: Heads,
    broken: bool,
}

impl<S> Scanned<S> {
    /// The connection, and where its heads are judged.
    pub(super) fn new(stream: S) -> (Self, Heads) {
        let heads = Heads::default();
        (Self { stream, scanner: Scanner::default(), heads: heads.clone(), broken: false }, heads)
    }

    /// How many of these bytes may be read: all, or those before a body's framing breaks.
    fn scan(&mut self, bytes: &[u8]) -> usize {
        let mut rest = bytes;
        while let Some(seen) = self.scanner.next(&mut rest) {
            match seen {
                Seen::Head(judged) => self.heads.push(judged),
                // The request was let in: its body must not end where only some readers see an end.
                Seen::Broken => {
                    self.broken = true;
                    return bytes.len() - rest.len();
                }
            }
        }
        bytes.len()
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Scanned<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        if !self.broken {
            ready!(Pin::new(&mut self.stream).poll_read(cx, buf))?;
            let sound = self.scan(buf.filled().get(before..).unwrap_or_default());
            buf.set_filled(before + sound);
        }
        if self.broken && buf.filled().len() == before {
            return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Scanned<S> {
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
mod tests;
