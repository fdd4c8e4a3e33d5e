//! The forge's answer on its way to the client, in constant memory. It ends when the run does, whether or not the
//! client takes what comes: so it is passed on by a task, and not by the body that a client may leave unread.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::time::timeout;

use super::json::{JsonBody, Unreadable};
use super::pipe::{Feed, Unwanted};
use crate::gate::{Cut, Term};
use crate::record::{Interruption, Record};

/// What ends a relay before its end.
pub struct RelayLimits {
    /// How long the run lives.
    pub term: Arc<Term>,
    /// Longest silence of either side.
    pub idle: Duration,
}

/// An answer's body on its way down.
pub struct Answer {
    /// What was made of its beginning.
    pub first: Bytes,
    /// The rest, or all of it.
    pub incoming: Incoming,
    /// What is changed in it; nothing: it goes as it is.
    pub change: Option<JsonBody>,
}

impl From<Incoming> for Answer {
    fn from(incoming: Incoming) -> Self {
        Self { first: Bytes::new(), incoming, change: None }
    }
}

/// Passes an answer on. False: it broke off.
pub async fn pass(answer: Answer, feed: Feed, limits: RelayLimits, record: Record) -> bool {
    let passed = tokio::select! {
        biased;
        why = limits.term.ended() => Err(why),
        // Before the next: a reader that knows the length leaves with the last byte.
        passed = flow(answer, &feed, limits.idle) => passed,
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

async fn flow(answer: Answer, feed: &Feed, idle: Duration) -> Result<(), Interruption> {
    let Answer { first, mut incoming, mut change } = answer;
    let mut next = Some(first);
    loop {
        match (next.take(), &mut change) {
            (Some(bytes), None) => hand_down(bytes, feed, idle).await?,
            (Some(bytes), Some(change)) => {
                change.feed(bytes);
                while let Some(bytes) = change.step()? {
                    hand_down(bytes, feed, idle).await?;
                }
            }
            (None, _) => {}
        }
        match timeout(idle, incoming.frame()).await.map_err(|_elapsed| Interruption::UpstreamIdle)? {
            None => break,
            Some(Err(_)) => return Err(Interruption::UpstreamCut),
            // Trailers are of no meaning here and end with this hop.
            Some(Ok(frame)) => next = frame.into_data().ok(),
        }
    }
    match change {
        Some(change) => hand_down(change.finish()?, feed, idle).await,
        None => Ok(()),
    }
}

async fn hand_down(bytes: Bytes, feed: &Feed, idle: Duration) -> Result<(), Interruption> {
    if bytes.is_empty() {
        return Ok(());
    }
    let sent = timeout(idle, feed.send(bytes)).await.map_err(|_elapsed| Interruption::ClientIdle)?;
    sent.map_err(|Unwanted| Interruption::ClientLeft)
}

impl From<Unreadable> for Interruption {
    fn from(Unreadable: Unreadable) -> Self {
        Self::UpstreamUnreadable
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
