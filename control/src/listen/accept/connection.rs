//! A connection as the services get it: it has a place among the open ones, and has to begin HTTP/2 within a time.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Sleep, sleep};
use tokio_rustls::server::TlsStream;
use tokio_util::either::Either;
use tonic::transport::server::Connected;

use crate::limit::Limit;
use crate::metrics;
use crate::trust::Side;
use crate::trust::layer::Peer;

/// Bytes with which a client of HTTP/2 begins, whatever it wants.
const PREFACE: usize = 24;

pub(super) type Stream = Either<Box<TlsStream<TcpStream>>, Either<TcpStream, UnixStream>>;

/// A connection, and who is at its other end.
pub struct Connection {
    stream: Stream,
    peer: Peer,
    /// None once the client has begun.
    begins: Option<Begins>,
    _place: OwnedSemaphorePermit,
}

/// What a client has yet to send by a time.
struct Begins {
    side: Side,
    left: usize,
    until: Pin<Box<Sleep>>,
}

impl Connection {
    pub(super) fn new(
        side: Side,
        (stream, peer): (Stream, Peer),
        place: OwnedSemaphorePermit,
        silence: Duration,
    ) -> Self {
        let begins = Begins { side, left: PREFACE, until: Box::pin(sleep(silence)) };
        Self { stream, peer, begins: Some(begins), _place: place }
    }
}

impl Begins {
    fn late(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.until.as_mut().poll(cx).map(|()| {
            metrics::limited(self.side.as_str(), Limit::Time);
            Err(io::ErrorKind::TimedOut.into())
        })
    }
}

impl Connected for Connection {
    type ConnectInfo = Peer;

    fn connect_info(&self) -> Peer {
        self.peer.clone()
    }
}

impl AsyncRead for Connection {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        let read = Pin::new(&mut this.stream).poll_read(cx, buf);
        let Some(begins) = &mut this.begins else { return read };
        if read.is_pending() {
            return begins.late(cx);
        }
        begins.left = begins.left.saturating_sub(buf.filled().len() - before);
        if begins.left == 0 {
            this.begins = None;
        }
        read
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bytes)
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
