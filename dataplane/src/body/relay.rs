//! The forge's answer on its way to the client, in constant memory. It ends when the run does, whether or not the
//! client takes what comes: so it is passed on by a task, and not by the body that a client may leave unread.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::time::{Instant, timeout};

use super::pipe::{Feed, Unwanted};
use crate::gate::{Cut, Guard};
use crate::record::{Interruption, Record};

/// What ends a relay before its end.
pub struct RelayLimits {
    /// The run's entry among the streams.
    pub guard: Guard,
    /// When the run's time is over.
    pub expires: Instant,
    /// Longest silence of either side.
    pub idle: Duration,
}

/// Passes an answer on: what was made of its beginning, then the rest as it is. False: it broke off.
pub async fn pass(first: Bytes, incoming: Incoming, feed: Feed, limits: RelayLimits, record: Record) -> bool {
    let over = limits.guard.watch();
    let passed = tokio::select! {
        biased;
        cut = over.ended(limits.expires) => Err(cut.into()),
        // Before the next: a reader that knows the length leaves with the last byte.
        passed = flow(first, incoming, &feed, limits.idle) => passed,
        () = feed.unwanted() => Err(Interruption::ClientLeft),
    };
    match passed {
        Ok(()) => {
            feed.end();
            true
        }
        Err(why) => {
            record.interrupted(why);
            false
        }
    }
}

async fn flow(first: Bytes, mut incoming: Incoming, feed: &Feed, idle: Duration) -> Result<(), Interruption> {
    let mut next = Some(first);
    loop {
        if let Some(bytes) = next.take().filter(|bytes| !bytes.is_empty()) {
            let sent = timeout(idle, feed.send(bytes)).await.map_err(|_elapsed| Interruption::ClientIdle)?;
            sent.map_err(|Unwanted| Interruption::ClientLeft)?;
        }
        match timeout(idle, incoming.frame()).await.map_err(|_elapsed| Interruption::UpstreamIdle)? {
            None => return Ok(()),
            Some(Err(_)) => return Err(Interruption::UpstreamCut),
            // Trailers are of no meaning here and end with this hop.
            Some(Ok(frame)) => next = frame.into_data().ok(),
        }
    }
}

impl From<Cut> for Interruption {
    fn from(cut: Cut) -> Self {
        match cut {
            Cut::Revoked => Self::Revoked,
            Cut::Expired => Self::Expired,
        }
    }
}
