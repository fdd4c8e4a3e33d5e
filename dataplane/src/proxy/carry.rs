//! What a push and a long fetch have in common: a body that goes up while an answer comes down, on a connection of
//! their own, by a task that gives the request back when it is refused.

use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http::header::CONTENT_LENGTH;
use tokio::time::{sleep, timeout};

use crate::body::{Drink, Feed, Inbound};
use crate::refusal::Refusal;
use crate::upstream::{Lease, UpstreamError};

/// How often it is looked whether a body has gone up.
const LOOK: Duration = Duration::from_millis(200);

/// How an answer begins.
pub(super) enum Begun {
    /// With the forge's head, and then these bytes.
    Answer(HeaderMap, Drink),
    /// With a refusal; the rest of the request's body is given back.
    Refused(Refusal, Box<Inbound>),
}

/// Most bytes of a body, and the refusal of one that has more.
#[derive(Clone, Copy)]
pub(super) struct Most(pub(super) u64, pub(super) fn(u64) -> Refusal);

/// Hands a body up, chunk by chunk, no faster than the forge takes it.
pub(super) async fn pump(
    first: Bytes,
    inbound: &mut Inbound,
    up: Feed,
    Most(most, refusal): Most,
    idle: Duration,
) -> Result<(), Refusal> {
    let mut total = 0;
    let mut next = Some(first);
    while let Some(bytes) = next {
        total += bytes.len() as u64;
        if total > most {
            return Err(refusal(most));
        }
        match timeout(idle, up.send(bytes)).await {
            Err(_) => return Err(UpstreamError::Silent.into()),
            // The connection is gone; what became of the request is for the answer to say.
            Ok(Err(_)) => return Ok(()),
            Ok(Ok(())) => {}
        }
        next = inbound.next().await?;
    }
    up.end().await;
    Ok(())
}

/// Returns when the forge has had the whole body for as long as it may take to answer.
pub(super) async fn late(lease: &Lease, most: Duration) {
    while !lease.is_sent() {
        sleep(LOOK).await;
    }
    sleep(most).await;
}

/// The length that a request's head gives its body.
pub(super) fn length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}
