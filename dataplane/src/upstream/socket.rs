//! The socket of a push: it writes only while the push's lease is young, and goes on reading when it cannot write.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Instant;

use crate::metrics::{Pool, UpstreamConnection};

/// Longer than any request.
const UNLIMITED: Duration = Duration::from_hours(24 * 365);

/// How long a push may write upstream. Shared by the socket, which obeys it, and the keeper, which extends it.
pub struct Lease(Mutex<State>);

struct State {
    until: Instant,
    /// The body's end was handed over.
    body_ended: bool,
    /// Every byte went up: the push can no longer be stopped, and the connection may end in peace.
    sent: bool,
    waiting: Option<Waker>,
}

impl Lease {
    /// A lease from a question's time on.
    #[must_use]
    pub fn new(asked: Instant, duration: Duration) -> Arc<Self> {
        Arc::new(Self(Mutex::new(State { until: asked + duration, body_ended: false, sent: false, waiting: None })))
    }

    /// A lease for what needs none: it cannot be revoked before its end.
    #[must_use]
    pub fn unlimited() -> Arc<Self> {
        Self::new(Instant::now(), UNLIMITED)
    }

    /// Extends the lease, counted from the question that granted it.
    pub fn extend(&self, asked: Instant, duration: Duration) {
        let mut state = self.state();
        state.until = asked + duration;
        if let Some(waiting) = state.waiting.take() {
            waiting.wake();
        }
    }

    /// The body's end was handed over: the next flush is the last.
    pub fn body_ended(&self) {
        self.state().body_ended = true;
    }

    /// All that was handed over has been written.
    fn flushed(&self) {
        let mut state = self.state();
        state.sent = state.body_ended;
    }

    /// How long the lease has been over.
    #[must_use]
    pub fn lapsed_for(&self) -> Duration {
        Instant::now().saturating_duration_since(self.state().until)
    }

    /// Whether the body has gone up whole.
    #[must_use]
    pub fn is_sent(&self) -> bool {
        self.state().sent
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a write through while the lease is young. Else the writer waits: an extension wakes it, and without one
    /// the keeper ends the push.
    fn poll_young(&self, cx: &Context<'_>) -> Poll<()> {
        let mut state = self.state();
        if Instant::now() < state.until {
            return Poll::Ready(());
        }
        state.waiting = Some(cx.waker().clone());
        Poll::Pending
    }
}

/// A TCP connection under a lease.
pub(super) struct LeasedSocket {
    stream: TcpStream,
    lease: Arc<Lease>,
    /// The forge reads no more. What it has answered is still to be read: a write error must not hide it.
    deaf: bool,
    _open: UpstreamConnection,
}

impl LeasedSocket {
    pub(super) fn new(stream: TcpStream, lease: Arc<Lease>) -> Self {
        Self { stream, lease, deaf: false, _open: UpstreamConnection::open(Pool::Push) }
    }
}

impl AsyncRead for LeasedSocket {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for LeasedSocket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let all = bytes.iter().map(|part| part.len()).sum();
        if self.deaf {
            return Poll::Ready(Ok(all));
        }
        if self.lease.poll_young(cx).is_pending() {
            return Poll::Pending;
        }
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bytes);
        if matches!(written, Poll::Ready(Err(_))) {
            self.deaf = true;
            return Poll::Ready(Ok(all));
        }
        written
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    // The layers above flush only once they have written everything that they hold.
    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // What was swallowed has not gone up.
        if !self.deaf {
            self.lease.flushed();
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

impl Drop for LeasedSocket {
    fn drop(&mut self) {
        // A push that is cut must not complete from the kernel's buffer: reset, so that what waits there is lost.
        if !self.lease.is_sent() {
            let _ = SockRef::from(&self.stream).set_linger(Some(Duration::ZERO));
        }
    }
}
