//! A negotiation that is too long to hold: it streams up on a connection of its own, as a push does, so that an early
//! answer reaches the client and its bytes never share a connection with another request.

use std::sync::Arc;

use bytes::Bytes;
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, Response};
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::body::{Body, Inbound, Outbound, RelayLimits, pass, pipe};
use crate::gate::{Gate, Granted};
use crate::proxy::carry::{Begun, HeldBack, Most, give_back_refused, late, length, pump};
use crate::proxy::discovery::{Answered, expect};
use crate::proxy::{Allowed, Exchange, Proxy, forwardable};
use crate::record::Record;
use crate::refusal::Refusal;
use crate::route::Service;
use crate::upstream::{GitRequest, Lease, PushConnection, Upstream, UpstreamError, is_redirect};

/// Most bytes of a negotiation: 100,000 wants and as many haves are 10 MB.
const NEGOTIATION: Most = Most(64 * 1024 * 1024, Refusal::NegotiationTooLarge);

impl Proxy {
    /// Forwards a fetch whose body is long; `first` was read of it.
    pub(super) async fn fetch_long(
        &self,
        exchange: &mut Exchange,
        allowed: Allowed,
        first: Bytes,
    ) -> Result<Response<Body>, Refusal> {
        let (begin, response) = oneshot::channel();
        let (granted, limits) = allowed.split(&self.upstream);
        let carrier = Carrier {
            gate: self.gate.clone(),
            upstream: Arc::clone(&self.upstream),
            headers: exchange.head.headers.clone(),
            record: exchange.record.clone(),
            drain_bytes: self.limits.drain_bytes,
            granted,
        };
        self.tasks.spawn(carrier.carry(first, exchange.inbound.take(), limits, begin));
        exchange.begun(response).await
    }
}

/// Everything that a long fetch under way needs.
struct Carrier {
    gate: Gate,
    upstream: Arc<Upstream>,
    headers: HeaderMap,
    record: Record,
    drain_bytes: u64,
    granted: Granted,
}

impl Carrier {
    async fn carry(
        self,
        first: Bytes,
        mut inbound: Inbound,
        limits: RelayLimits,
        mut begin: oneshot::Sender<Begun>,
    ) {
        let (up, drink) = pipe();
        let lease = Lease::unlimited();
        let body = Outbound::Fed { drink, left: length(&self.headers), lease: Arc::clone(&lease) };
        let term = Arc::clone(&limits.term);
        let idle = limits.idle;
        let mut connection = None;
        let mut pump = Box::pin(pump(first, &mut inbound, up, NEGOTIATION, HeldBack::of(0), idle));
        let mut pumping = true;
        let answered = {
            let mut answer = std::pin::pin!(self.answer(&mut connection, body, &lease));
            let mut ended = std::pin::pin!(term.ended());
            loop {
                tokio::select! {
                    biased;
                    why = &mut ended => break Err(Refusal::Cut(why)),
                    // The client has left, and nothing of a fetch is worth knowing without it.
                    () = begin.closed() => return,
                    pumped = &mut pump, if pumping => match pumped {
                        Ok(()) => pumping = false,
                        Err(refusal) => break Err(refusal),
                    },
                    answered = &mut answer => break answered,
                }
            }
        };
        let answered = match answered {
            Ok(answered) => answered,
            Err(refusal) => {
                drop(pump);
                let _ = begin.send(Begun::Refused(refusal, Box::new(inbound)));
                return;
            }
        };
        let Answered { head, body } = answered;
        let (feed, drink) = pipe();
        let _ = begin.send(Begun::Answer(head.headers, drink));
        let mut passing = std::pin::pin!(pass(body, feed, limits, self.record.clone()));
        // A head may come while the body still goes up.
        loop {
            tokio::select! {
                // A body that breaks off breaks the answer too.
                pumped = &mut pump, if pumping => {
                    pumping = false;
                    if let Err(refusal) = pumped {
                        self.record.interrupted(refusal.interruption());
                    }
                }
                _ = &mut passing => break,
            }
        }
        drop(pump);
        // The answer has ended before the body: the client is heard out, or it could lose the answer.
        inbound.drain(self.drain_bytes, Instant::now() + idle).await;
    }

    /// Sends the request and returns an answer that may be passed on. The connection outlives it in `connection`.
    async fn answer(
        &self,
        connection: &mut Option<PushConnection>,
        body: Outbound,
        lease: &Arc<Lease>,
    ) -> Result<Answered, Refusal> {
        let (repository, token) = forwardable(&self.granted.permit)?;
        let request = GitRequest {
            discovery: false,
            service: Service::UploadPack,
            repository,
            client: &self.headers,
            token,
            length: self.headers.get(CONTENT_LENGTH),
        };
        let request = self.upstream.build_own(request, body)?;
        let connection = connection.insert(self.upstream.connect(Arc::clone(lease)).await?);
        let answer = tokio::select! {
            answer = connection.send(request) => answer?,
            () = late(lease, self.upstream.config().head_timeout) => return Err(UpstreamError::Silent.into()),
        };
        self.record.upstream(answer.status());
        give_back_refused(&answer, &self.gate, &self.granted, token).await;
        if is_redirect(answer.status()) {
            return Err(UpstreamError::Renamed.into());
        }
        if let Some(error) = UpstreamError::of(answer.status(), answer.headers()) {
            return Err(error.into());
        }
        expect(answer.headers(), Service::UploadPack, "result")?;
        Ok(Answered::of(answer, token)?)
    }
}
