//! Fetch and clone, and the probe that precedes a large push: a body up, an answer down, both as they come.

use bytes::{Bytes, BytesMut};
use gitdoor_proto::Permit;
use http::Response;
use http::header::CONTENT_LENGTH;

use super::discovery::expect;
use super::{Exchange, Proxy, forwardable};
use crate::body::{Body, Coding, Outbound};
use crate::refusal::Refusal;
use crate::route::Service;
use crate::upstream::{GitRequest, UpstreamError, is_redirect};

/// A negotiation up to this is held, so that it can follow a renamed repository; git's are almost all smaller.
const HELD_BYTES: usize = 64 * 1024;
/// Most bytes of a negotiation: 30,000 wants and as many haves are 3 MB.
const NEGOTIATION_BYTES: u64 = 64 * 1024 * 1024;

impl Proxy {
    /// Forwards a fetch.
    pub(super) async fn fetch(&self, exchange: &mut Exchange, permit: Permit) -> Result<Response<Body>, Refusal> {
        Coding::of(&exchange.head.headers)?;
        let (repository, token) = forwardable(&permit)?;
        let answer = match exchange.hold().await? {
            Held::Whole(body) => {
                let held = Some(body.clone());
                match self.ask(exchange, &permit, Service::UploadPack, repository, held).await? {
                    (answer, None) => answer,
                    (_, Some(name)) => {
                        let (answer, moved) =
                            self.ask(exchange, &permit, Service::UploadPack, &name, Some(body)).await?;
                        moved.map_or(Ok(answer), |_again| Err(UpstreamError::Redirect))?
                    }
                }
            }
            Held::Part(first) => {
                let length = exchange.head.headers.get(CONTENT_LENGTH).cloned();
                let request = GitRequest {
                    discovery: false,
                    service: Service::UploadPack,
                    repository,
                    client: &exchange.head.headers,
                    token,
                    length: length.as_ref(),
                };
                let rest = exchange.inbound.take();
                let body = Outbound::Stream { first: Some(first), rest: Box::new(rest), left: NEGOTIATION_BYTES };
                let answer = self.upstream.send(request, body).await?;
                exchange.record.upstream(answer.status());
                if is_redirect(answer.status()) {
                    return Err(UpstreamError::Renamed.into());
                }
                UpstreamError::of(answer.status(), answer.headers()).map_or(Ok(answer), Err)?
            }
        };
        expect(&answer, Service::UploadPack, "result")?;
        self.relay(exchange, &permit, answer)
    }

    /// Forwards a probe: the whole body was read, and the answer says whether a push would be heard.
    pub(super) async fn probe(
        &self,
        exchange: &mut Exchange,
        permit: Permit,
        body: Bytes,
    ) -> Result<Response<Body>, Refusal> {
        let (repository, _) = forwardable(&permit)?;
        match self.ask(exchange, &permit, Service::ReceivePack, repository, Some(body)).await? {
            (answer, None) => self.relay(exchange, &permit, answer),
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
