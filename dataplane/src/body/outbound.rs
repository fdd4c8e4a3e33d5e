//! The bodies that go out: to the forge, and to the client.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use tokio::sync::mpsc;

use super::{BodyError, Inbound, Relay};
use crate::record::{Interruption, Record};
use crate::upstream::Lease;

/// A request body for the forge.
pub enum Outbound {
    /// No body, or all of it.
    Full(Option<Bytes>),
    /// What was read already, then the rest of the client's.
    Stream {
        /// Read already.
        first: Option<Bytes>,
        /// The rest.
        rest: Box<Inbound>,
        /// Bytes that may still come.
        left: u64,
    },
    /// Fed by a push; dropped unfinished by a push that breaks.
    Fed {
        /// The bytes.
        frames: mpsc::Receiver<Bytes>,
        /// Bytes that are still to come, where the head names a length: nobody asks for more after the last.
        left: Option<u64>,
        /// Told of the end.
        lease: Arc<Lease>,
    },
}

impl http_body::Body for Outbound {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let next = match &mut *self {
            Self::Full(bytes) => bytes.take().filter(|bytes| !bytes.is_empty()).map(Ok),
            Self::Fed { frames, left, lease } => {
                let next = ready!(frames.poll_recv(cx));
                if let (Some(left), Some(bytes)) = (left.as_mut(), &next) {
                    *left = left.saturating_sub(bytes.len() as u64);
                }
                if next.is_none() || *left == Some(0) {
                    lease.body_ended();
                }
                next.map(Ok)
            }
            Self::Stream { first, rest, left } => match first.take() {
                Some(first) => Some(Ok(first)),
                None => match ready!(rest.poll_next(cx)).transpose() {
                    Some(Ok(bytes)) => match left.checked_sub(bytes.len() as u64) {
                        Some(after) => {
                            *left = after;
                            Some(Ok(bytes))
                        }
                        // A negotiation this long is none: the upstream sees it break off.
                        None => Some(Err(BodyError::Left)),
                    },
                    other => other,
                },
            },
        };
        Poll::Ready(next.map(|frame| frame.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Full(bytes) if bytes.as_ref().is_none_or(Bytes::is_empty))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Full(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            Self::Stream { .. } | Self::Fed { .. } => SizeHint::default(),
        }
    }
}

/// An answer's body. It holds the request's record, which so closes when the body ends.
pub struct Body {
    source: Source,
    record: Record,
}

enum Source {
    Full(Option<Bytes>),
    Relay(Box<Relay>),
    Fed(mpsc::Receiver<Result<Bytes, Interruption>>),
}

impl Body {
    /// A short answer of the door's own.
    #[must_use]
    pub fn full(bytes: Bytes, record: Record) -> Self {
        Self { source: Source::Full(Some(bytes)), record }
    }

    /// The forge's answer, as it comes.
    #[must_use]
    pub fn relay(relay: Relay, record: Record) -> Self {
        Self { source: Source::Relay(Box::new(relay)), record }
    }

    /// Fed by a push.
    #[must_use]
    pub fn fed(frames: mpsc::Receiver<Result<Bytes, Interruption>>, record: Record) -> Self {
        Self { source: Source::Fed(frames), record }
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Interruption;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Interruption>>> {
        let next = match &mut self.source {
            Source::Full(bytes) => bytes.take().filter(|bytes| !bytes.is_empty()).map(Ok),
            Source::Relay(relay) => ready!(relay.poll_next(cx)).transpose(),
            Source::Fed(frames) => ready!(frames.poll_recv(cx)),
        };
        match &next {
            Some(Ok(bytes)) => self.record.sent(bytes.len()),
            Some(Err(why)) => self.record.interrupted(*why),
            None => {}
        }
        if matches!(next, None | Some(Err(_))) {
            self.source = Source::Full(None);
        }
        Poll::Ready(next.map(|frame| frame.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.source, Source::Full(bytes) if bytes.as_ref().is_none_or(Bytes::is_empty))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            Source::Full(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            Source::Relay(relay) => relay.size_hint(),
            Source::Fed(_) => SizeHint::default(),
        }
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        // Dropped before its end: nobody reads any more. A finished body was replaced by an empty one.
        if !matches!(self.source, Source::Full(_)) {
            self.record.interrupted(Interruption::ClientLeft);
        }
    }
}
