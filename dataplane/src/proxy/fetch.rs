//! Fetch and clone, and the probe that precedes a large push: a body up, an answer down, both as they come.

mod long;

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::Response;
use tokio::time::timeout;

use super::discovery::expect;
use super::{Allowed, Exchange, Proxy, forwardable};
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
        let held = timeout(HELD_TIME, exchange.hold()).await.map_err(|_elapsed| Refusal::ClientIdle)??;
        let body = match held {
            Held::Whole(body) => body,
            Held::Part(first) => return self.fetch_long(exchange, allowed, first).await,
        };
        let (repository, _) = forwardable(&allowed.permit)?;
        let ask = |name| self.ask(exchange, &allowed.permit, Service::UploadPack, name, Some(body.clone()));
        let answer = match ask(repository).await? {
            (answer, None) => answer,
            (_, Some(name)) => match ask(&name).await? {
                (answer, None) => answer,
                (_, Some(_again)) => return Err(UpstreamError::Redirect.into()),
            },
        };
        expect(&answer, Service::UploadPack, "result")?;
        Ok(self.relay(exchange, allowed, answer))
    }

    /// Forwards a probe: the whole body was read, and the answer says whether a push would be heard.
    pub(super) async fn probe(
        &self,
        exchange: &Exchange,
        allowed: Allowed,
        body: Bytes,
    ) -> Result<Response<Body>, Refusal> {
        let (repository, _) = forwardable(&allowed.permit)?;
        match self.ask(exchange, &allowed.permit, Service::ReceivePack, repository, Some(body)).await? {
            (answer, None) => {
                expect(&answer, Service::ReceivePack, "result")?;
                Ok(self.relay(exchange, allowed, answer))
            }
            (_, Some(_)) => Err(UpstreamError::Renamed.into()),
        }
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
        while held.len() <= HELD_BYTES {
            match self.inbound.next().await? {
                Some(bytes) => held.extend_from_slice(&bytes),
                None => return Ok(Held::Whole(held.freeze())),
            }
        }
        Ok(Held::Part(held.freeze()))
    }
}
