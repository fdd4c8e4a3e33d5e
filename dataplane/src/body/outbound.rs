//! The bodies that go out: to the forge, and to the client.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

use super::pipe::Drink;
use crate::record::{Interruption, Record};
use crate::upstream::Lease;

/// A request body for the forge.
pub enum Outbound {
    /// No body, or all of it.
    Full(Option<Bytes>),
    /// Fed while it goes up.
    Fed {
        /// The bytes.
        drink: Drink,
        /// Bytes that are still to come, where the head said how many. Who writes the body stops asking then.
        left: Option<u64>,
        /// Told of the end.
        lease: Arc<Lease>,
    },
}

/// The body broke off: the request must not look whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the request's body broke off")]
pub struct BrokenOff;

impl http_body::Body for Outbound {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        let next = match &mut *self {
            Self::Full(bytes) => Ok(bytes.take().filter(|bytes| !bytes.is_empty())),
            Self::Fed { drink, left, lease } => {
                let next = ready!(drink.poll_next(cx));
                match (&next, left) {
                    (Ok(Some(bytes)), Some(left)) => {
                        *left = left.saturating_sub(bytes.len() as u64);
                        if *left == 0 {
                            lease.body_ended();
                        }
                    }
                    (Ok(None), _) => lease.body_ended(),
                    (Ok(Some(_)), None) | (Err(_), _) => {}
                }
                next.map_err(|_broken| BrokenOff)
            }
        };
        Poll::Ready(next.transpose().map(|frame| frame.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Full(bytes) if bytes.as_ref().is_none_or(Bytes::is_empty))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Full(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            Self::Fed { .. } => SizeHint::default(),
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
    Fed {
        drink: Drink,
        /// Bytes that are still to come, where the head says how many. Who writes the body stops asking then.
        left: Option<u64>,
    },
}

impl Body {
    /// A short answer of the door's own.
    #[must_use]
    pub fn full(bytes: Bytes, record: Record) -> Self {
        Self { source: Source::Full(Some(bytes)), record }
    }

    /// Fed while it goes down, as many bytes as the head says, if it does. Who feeds it notes in the record why it
    /// breaks off.
    #[must_use]
    pub fn fed(drink: Drink, left: Option<u64>, record: Record) -> Self {
        let source = if left == Some(0) { Source::Full(None) } else { Source::Fed { drink, left } };
        Self { source, record }
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        let next = match &mut self.source {
            Source::Full(bytes) => Ok(bytes.take().filter(|bytes| !bytes.is_empty())),
            Source::Fed { drink, .. } => ready!(drink.poll_next(cx)).map_err(|_broken| BrokenOff),
        };
        match &next {
            Ok(Some(bytes)) => {
                self.record.sent(bytes.len());
                if let Source::Fed { left: Some(left), .. } = &mut self.source {
                    *left = left.saturating_sub(bytes.len() as u64);
                }
            }
            Ok(None) | Err(_) => self.source = Source::Full(None),
        }
        if matches!(self.source, Source::Fed { left: Some(0), .. }) {
            self.source = Source::Full(None);
        }
        Poll::Ready(next.transpose().map(|frame| frame.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.source, Source::Full(bytes) if bytes.as_ref().is_none_or(Bytes::is_empty))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            Source::Full(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, Bytes::len) as u64),
            Source::Fed { .. } => SizeHint::default(),
        }
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        // Dropped before its end: nobody reads any more. A finished body was replaced by an empty one.
        if matches!(self.source, Source::Fed { .. }) {
            self.record.interrupted(Interruption::ClientLeft);
        }
    }
}
