//! The forge's answer on its way to the client, in constant memory. It ends when the run does, whether or not the
//! client takes what comes: so it is passed on by a task, and not by the body that a client may leave unread.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::time::timeout;

use super::api::{ApiBody, Unreadable};
use super::pipe::{Feed, Unwanted};
use super::watch::{TokenInAnswer, Watch};
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
    pub change: Option<ApiBody>,
    /// What looks for credentials in what comes of it; nothing: nobody does.
    pub watch: Option<Watch>,
}

impl Answer {
    /// A body that goes as it is, unless it shows what is watched for.
    #[must_use]
    pub fn watched(incoming: Incoming, watch: Watch) -> Self {
        Self { watch: Some(watch), ..incoming.into() }
    }
}

impl From<Incoming> for Answer {
    fn from(incoming: Incoming) -> Self {
        Self { first: Bytes::new(), incoming, change: None, watch: None }
    }
}

/// Passes an answer on. False: it broke off.
pub async fn pass(mut answer: Answer, feed: Feed, limits: RelayLimits, record: Record) -> bool {
    let passed = tokio::select! {
        biased;
        why = limits.term.ended() => Err(why),
        // Before the next: a reader that knows the length leaves with the last byte.
        passed = flow(&mut answer, &feed, limits.idle) => passed,
        () = feed.unwanted() => Err(Interruption::ClientLeft),
    };
    answer.tell(&record);
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

impl Answer {
    /// Notes the credentials that were in it.
    fn tell(&self, record: &Record) {
        if let Some(change) = &self.change {
            record.stopped(change.stopped());
        }
        if self.watch.as_ref().is_some_and(Watch::saw_shape) {
            record.saw_token_shape();
        }
    }

    /// What may go down of bytes that are ready to.
    fn allowed(&mut self, bytes: Bytes) -> Result<Bytes, TokenInAnswer> {
        match &mut self.watch {
            Some(watch) => watch.push(bytes),
            None => Ok(bytes),
        }
    }
}

async fn flow(answer: &mut Answer, feed: &Feed, idle: Duration) -> Result<(), Interruption> {
    let mut next = Some(std::mem::take(&mut answer.first));
    loop {
        match (next.take(), &mut answer.change) {
            (Some(bytes), None) => hand_down(answer.allowed(bytes)?, feed, idle).await?,
            (Some(bytes), Some(change)) => {
                change.feed(bytes);
                while let Some(bytes) = answer.change.as_mut().map_or(Ok(None), ApiBody::step)? {
                    hand_down(answer.allowed(bytes)?, feed, idle).await?;
                }
            }
            (None, _) => {}
        }
        match timeout(idle, answer.incoming.frame()).await.map_err(|_elapsed| Interruption::UpstreamIdle)? {
            None => break,
            Some(Err(_)) => return Err(Interruption::UpstreamCut),
            // Trailers are of no meaning here and end with this hop.
            Some(Ok(frame)) => next = frame.into_data().ok(),
        }
    }
    if let Some(change) = &mut answer.change {
        let rest = change.finish()?;
        hand_down(answer.allowed(rest)?, feed, idle).await?;
    }
    match &mut answer.watch {
        Some(watch) => hand_down(watch.finish(), feed, idle).await,
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

impl From<TokenInAnswer> for Interruption {
    fn from(TokenInAnswer: TokenInAnswer) -> Self {
        Self::TokenInAnswer
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
