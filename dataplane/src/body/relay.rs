//! The forge's answer on its way to the client, in constant memory: cut when the run ends, when the forge is silent
//! for too long, or when the run's time is over.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body as _, SizeHint};
use hyper::body::Incoming;
use tokio::time::{Instant, Sleep, sleep, sleep_until};

use crate::gate::{Cut, Guard};
use crate::record::Interruption;

/// What ends a relay before its end.
pub struct RelayLimits {
    /// The run's entry among the streams.
    pub guard: Guard,
    /// When the run's time is over.
    pub expires: Instant,
    /// Longest silence of the forge.
    pub idle: Duration,
}

/// An answer under way.
pub struct Relay {
    first: Option<Bytes>,
    incoming: Incoming,
    idle: Duration,
    silence: Pin<Box<Sleep>>,
    expiry: Pin<Box<Sleep>>,
    cut: Pin<Box<dyn Future<Output = Cut> + Send>>,
}

impl Relay {
    /// Passes an answer on as it is.
    #[must_use]
    pub fn new(incoming: Incoming, limits: RelayLimits) -> Self {
        let RelayLimits { guard, expires, idle } = limits;
        Self {
            first: None,
            incoming,
            idle,
            silence: Box::pin(sleep(idle)),
            expiry: Box::pin(sleep_until(expires)),
            cut: Box::pin(async move { guard.cut().await }),
        }
    }

    /// Passes on what was made of an answer's beginning, then the rest as it is.
    #[must_use]
    pub fn after(first: Bytes, incoming: Incoming, limits: RelayLimits) -> Self {
        Self { first: Some(first), ..Self::new(incoming, limits) }
    }

    /// The answer's length, where it is passed on unchanged.
    #[must_use]
    pub fn size_hint(&self) -> SizeHint {
        if self.first.is_some() { SizeHint::default() } else { self.incoming.size_hint() }
    }

    /// The next bytes for the client; none: the answer has ended.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Interruption>> {
        if let Poll::Ready(cut) = self.cut.as_mut().poll(cx) {
            return Poll::Ready(Err(match cut {
                Cut::Revoked => Interruption::Revoked,
                Cut::Expired => Interruption::Expired,
            }));
        }
        if self.expiry.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(Interruption::Expired));
        }
        if let Some(first) = self.first.take().filter(|first| !first.is_empty()) {
            return Poll::Ready(Ok(Some(first)));
        }
        loop {
            let frame = match Pin::new(&mut self.incoming).poll_frame(cx) {
                Poll::Pending => {
                    let silent = self.silence.as_mut().poll(cx);
                    return silent.map(|()| Err(Interruption::UpstreamIdle));
                }
                Poll::Ready(None) => return Poll::Ready(Ok(None)),
                Poll::Ready(Some(Err(_))) => return Poll::Ready(Err(Interruption::UpstreamCut)),
                Poll::Ready(Some(Ok(frame))) => frame,
            };
            self.silence.as_mut().reset(Instant::now() + self.idle);
            if let Some(bytes) = frame.into_data().ok().filter(|bytes| !bytes.is_empty()) {
                return Poll::Ready(Ok(Some(bytes)));
            }
        }
    }
}
