//! What a push and a long fetch have in common: a body that goes up while an answer comes down, on a connection of
//! their own, by a task that gives the request back when it is refused.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use gitdoor_proto::Token;
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, Response, StatusCode};
use hyper::body::Incoming;
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use super::Exchange;
use crate::body::{Body, Drink, Feed, Inbound};
use crate::gate::{Gate, Granted};
use crate::headers;
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

impl Exchange {
    /// Waits for the beginning of an answer that a task carries.
    pub(super) async fn begun(&mut self, begun: oneshot::Receiver<Begun>) -> Result<Response<Body>, Refusal> {
        match begun.await {
            Ok(Begun::Answer(head, drink)) => Ok(self.respond_fed(StatusCode::OK, headers::downward(&head), drink)),
            Ok(Begun::Refused(refusal, inbound)) => {
                self.inbound = *inbound;
                Err(refusal)
            }
            Err(_) => Err(Refusal::Draining),
        }
    }
}

/// Most bytes of a body, and the refusal of one that has more.
#[derive(Clone, Copy)]
pub(super) struct Most(pub(super) u64, pub(super) fn(u64) -> Refusal);

/// Hands a body up, chunk by chunk, no faster than the forge takes it. Its end goes up only once it has ended.
pub(super) async fn pump(
    first: Bytes,
    inbound: &mut Inbound,
    up: Feed,
    Most(most, refusal): Most,
    mut end: HeldBack,
    idle: Duration,
) -> Result<(), Refusal> {
    let mut total = 0;
    let mut next = Some(first);
    while let Some(bytes) = next {
        total += bytes.len() as u64;
        if total > most {
            return Err(refusal(most));
        }
        end.push(bytes);
        while let Some(bytes) = end.pop() {
            if !hand_up(bytes, &up, idle).await? {
                return Ok(());
            }
        }
        next = inbound.next().await?;
    }
    for bytes in end.chunks {
        if !hand_up(bytes, &up, idle).await? {
            return Ok(());
        }
    }
    up.end();
    Ok(())
}

/// False when the connection is gone: what became of the request is for the answer to say.
async fn hand_up(bytes: Bytes, up: &Feed, idle: Duration) -> Result<bool, Refusal> {
    match timeout(idle, up.send(bytes)).await {
        Err(_) => Err(UpstreamError::Silent.into()),
        Ok(sent) => Ok(sent.is_ok()),
    }
}

/// The newest bytes of a body, which stay here until more come or it ends.
pub(super) struct HeldBack {
    most: usize,
    length: usize,
    chunks: VecDeque<Bytes>,
}

impl HeldBack {
    /// Holds so many bytes.
    pub(super) fn of(most: usize) -> Self {
        Self { most, length: 0, chunks: VecDeque::new() }
    }

    fn push(&mut self, bytes: Bytes) {
        self.length += bytes.len();
        self.chunks.push_back(bytes);
    }

    /// The oldest bytes, where there are more than are held.
    fn pop(&mut self) -> Option<Bytes> {
        let free = self.length.checked_sub(self.most).filter(|free| *free > 0)?;
        let oldest = self.chunks.front_mut()?;
        let bytes = if oldest.len() <= free { self.chunks.pop_front()? } else { oldest.split_to(free) };
        self.length -= bytes.len();
        Some(bytes)
    }
}

/// Returns when the forge has had the whole body for as long as it may take to answer.
pub(super) async fn late(lease: &Lease, most: Duration) {
    while !lease.is_sent() {
        sleep(LOOK).await;
    }
    sleep(most).await;
}

/// Gives a token back that the forge answered 401 to. A body that streamed is not repeated: the next request gets
/// another token.
pub(super) async fn give_back_refused(answer: &Response<Incoming>, gate: &Gate, granted: &Granted, token: &Token) {
    if answer.status() == StatusCode::UNAUTHORIZED {
        drop(gate.replace_token(granted, token).await);
    }
}

/// The length that a head gives its body.
pub(super) fn length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_body_is_held_back_in_any_chunking() {
        let body: Vec<u8> = (0_u8..=250).cycle().take(3000).collect();
        for most in [0, 1, 1000] {
            for size in [1, 7, 999, 1000, 1001, body.len()] {
                let (mut end, mut gone) = (HeldBack::of(most), Vec::new());
                for chunk in body.chunks(size) {
                    end.push(Bytes::copy_from_slice(chunk));
                    while let Some(bytes) = end.pop() {
                        gone.extend_from_slice(&bytes);
                    }
                }
                assert_eq!(gone.len(), body.len() - most, "{most}, {size}");
                end.chunks.iter().for_each(|bytes| gone.extend_from_slice(bytes));
                assert_eq!(gone, body, "{most}, {size}");
            }
        }
    }
}
