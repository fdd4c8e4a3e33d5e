//! Fetch and clone, and the probe that precedes a large push: a body up, an answer down, both as they come.

mod long;

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::Response;
use tokio::time::{Instant, timeout_at};

use super::discovery::{Asked, expect};
use super::{Allowed, Exchange, Proxy, forwardable, until};
use crate::body::{Body, Coding};
use crate::refusal::Refusal;
use crate::route::Service;
use crate::upstream::UpstreamError;

/// A negotiation up to this is held whole, so that it can be asked again: git's own limit for a body of known length.
const HELD_BYTES: usize = 1024 * 1024;
/// Time for a client to send what is held.
const HELD_TIME: Duration = Duration::from_mins(1);

impl Proxy {
    /// Forwards a fetch.
    pub(super) async fn fetch(&self, exchange: &mut Exchange, allowed: Allowed) -> Result<Response<Body>, Refusal> {
        Coding::of(&exchange.head.headers)?;
        let term = Arc::clone(&allowed.term);
        match until(&term, exchange.hold()).await? {
            Held::Whole(body) => until(&term, self.fetch_held(exchange, allowed, body)).await,
            // It ends with its run by itself.
            Held::Part(first) => self.fetch_long(exchange, allowed, first).await,
        }
    }

    /// Forwards a fetch whose whole body was read.
    async fn fetch_held(
        &self,
        exchange: &Exchange,
        allowed: Allowed,
        body: Bytes,
    ) -> Result<Response<Body>, Refusal> {
        let (repository, _) = forwardable(&allowed.granted.permit)?;
        let ask = |name| self.ask(exchange, &allowed.granted, Service::UploadPack, name, Some(body.clone()));
        let answered = match ask(repository).await? {
            Asked::Answered(answered) => answered,
            Asked::Moved(name) => ask(&name).await?.or(UpstreamError::Redirect)?,
        };
        expect(&answered.head.headers, Service::UploadPack, "result")?;
        Ok(self.relay(exchange, allowed, answered))
    }

    /// Forwards a probe: the whole body was read, and the answer says whether a push would be heard.
    pub(super) async fn probe(
        &self,
        exchange: &Exchange,
        allowed: Allowed,
        body: Bytes,
    ) -> Result<Response<Body>, Refusal> {
        let (repository, _) = forwardable(&allowed.granted.permit)?;
        let asked = self.ask(exchange, &allowed.granted, Service::ReceivePack, repository, Some(body)).await?;
        let answered = asked.or(UpstreamError::Renamed)?;
        expect(&answered.head.headers, Service::ReceivePack, "result")?;
        Ok(self.relay(exchange, allowed, answered))
    }
}

/// A negotiation as far as it was read.
enum Held {
    Whole(Bytes),
    Part(Bytes),
}

impl Exchange {
    /// Reads the body as far as it is small.
    async fn hold(&mut self) -> Result<Held, Refusal> {
        let mut held = BytesMut::new();
        let by = Instant::now() + HELD_TIME;
        while held.len() <= HELD_BYTES {
            match timeout_at(by, self.inbound.next()).await.map_err(|_elapsed| Refusal::ClientIdle)?? {
                Some(bytes) => held.extend_from_slice(&bytes),
                None => return Ok(Held::Whole(held.freeze())),
            }
        }
        Ok(Held::Part(held.freeze()))
    }
}
