//! A push: commands judged, a lease kept, bytes up and answer down at the same time, an outcome in the ledger.
//!
//! The push is a task of its own: once its last byte went up, its outcome is awaited and recorded even when the client
//! has left.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use gitdoor_proto::permit::Grant;
use gitdoor_proto::{Permit, RepositoryName, Token, v1};
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, Response, StatusCode};
use http_body_util::BodyExt as _;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::discovery::{expect, is_coded};
use super::{Exchange, Limits, Proxy};
use crate::body::{Body, Inbound, Outbound};
use crate::gate::{Cut, Gate, GateError, Guard};
use crate::git::report_status::{Outcome, Reader};
use crate::intent::Push;
use crate::record::{Interruption, Record};
use crate::refusal::Refusal;
use crate::route::Service;
use crate::upstream::{GitRequest, Lease, PushConnection, Upstream, UpstreamError};

mod downlink;

use downlink::{Begun, Downlink};

/// A lease lasts two seconds; it is renewed at half its time.
const RENEWAL: Duration = Duration::from_secs(1);
/// How often an outcome is told to a control that does not answer.
const REPORTS: usize = 3;

impl Proxy {
    /// Forwards a push that control let through.
    pub(super) async fn push(
        &self,
        exchange: &mut Exchange,
        permit: Permit,
        asked: Instant,
        push: Push,
    ) -> Result<Response<Body>, Refusal> {
        let Grant::Forward { lease: Some(duration), .. } = permit.grant() else {
            return Err(GateError::Unreadable.into());
        };
        let lease = Lease::new(asked, *duration);
        let (responder, response) = oneshot::channel();
        let carrier = Carrier {
            gate: self.gate.clone(),
            upstream: Arc::clone(&self.upstream),
            limits: self.limits,
            headers: exchange.head.headers.clone(),
            guard: exchange.guard.take().ok_or(GateError::Unreadable)?,
            record: exchange.record.clone(),
            permit,
            lease,
            push,
        };
        let inbound = exchange.inbound.take();
        self.tasks.spawn(carrier.carry(inbound, responder));
        match response.await {
            Ok(Begun::Answer(headers, frames)) => {
                Ok(exchange.respond(&headers, Body::fed(frames, exchange.record.clone())))
            }
            Ok(Begun::Refused(refusal, inbound)) => {
                exchange.inbound = *inbound;
                Err(refusal)
            }
            Err(_) => Err(Refusal::Draining),
        }
    }
}

/// Everything that a push under way needs.
struct Carrier {
    gate: Gate,
    upstream: Arc<Upstream>,
    limits: Limits,
    headers: HeaderMap,
    guard: Guard,
    record: Record,
    permit: Permit,
    lease: Arc<Lease>,
    push: Push,
}

impl Carrier {
    /// Carries the push to its end, records that, and only then lets the client see the end.
    async fn carry(self, mut inbound: Inbound, responder: oneshot::Sender<Begun>) {
        let capabilities = &self.push.section.capabilities;
        let mut down = Downlink::new(responder, capabilities.side_band_64k);
        let end = self.exchange(&mut inbound, &mut down).await;
        self.report(&end).await;
        match end {
            Ok(_) => {
                // An answer may come before the body's end; the client is heard out, or it would lose the answer.
                let until = Instant::now() + self.upstream.config().idle_timeout;
                inbound.drain(self.limits.drain_bytes, until).await;
                down.end().await;
            }
            Err(refusal) => down.refuse(refusal, inbound, &self.push, self.limits.drain_bytes).await,
        }
    }

    /// Bytes up, answer down, lease kept: until the answer ends or something breaks.
    async fn exchange(&self, inbound: &mut Inbound, down: &mut Downlink) -> Result<Outcome, Refusal> {
        let (repository, token) = super::forwardable(&self.permit)?;
        let mut connection = self.upstream.connect(Arc::clone(&self.lease)).await?;
        let (up, frames) = mpsc::channel(1);
        let request = self.request(repository, token, inbound);
        let left = request.length.and_then(|length| length.to_str().ok()?.parse().ok());
        let body = Outbound::Fed { frames, left, lease: Arc::clone(&self.lease) };
        let request = self.upstream.build_push(request, body)?;
        let mut keep = std::pin::pin!(self.keep());
        let mut pump = std::pin::pin!(self.pump(inbound, up));
        let mut answer = std::pin::pin!(self.answer(&mut connection, request, down));
        let mut pumping = true;
        loop {
            tokio::select! {
                biased;
                refusal = &mut keep => return Err(refusal),
                pumped = &mut pump, if pumping => {
                    pumped?;
                    pumping = false;
                }
                answered = &mut answer => return answered,
            }
        }
    }

    fn request<'a>(
        &'a self,
        repository: &'a RepositoryName,
        token: &'a Token,
        inbound: &Inbound,
    ) -> GitRequest<'a> {
        let length = if inbound.is_decoded() { None } else { self.headers.get(CONTENT_LENGTH) };
        GitRequest {
            discovery: false,
            service: Service::ReceivePack,
            repository,
            client: &self.headers,
            token,
            length,
        }
    }

    /// Keeps the lease, until the push may not go on.
    async fn keep(&self) -> Refusal {
        let renew = async {
            let mut next = Instant::now() + RENEWAL;
            loop {
                sleep_until(next).await;
                let sent = self.lease.is_sent();
                match self.gate.renew(self.permit.authorization(), sent).await {
                    Ok((duration, asked)) => {
                        self.lease.extend(asked, duration);
                        next = asked + RENEWAL;
                    }
                    Err(Refusal::Denied(denial)) if !self.lease.is_sent() => return Refusal::Denied(denial),
                    // Without control nothing more is written once the lease is over; it may come back.
                    Err(_) => next = Instant::now() + RENEWAL,
                }
            }
        };
        let cut = async {
            let cut = self.guard.cut().await;
            if self.lease.is_sent() {
                return std::future::pending().await;
            }
            match cut {
                Cut::Revoked => Refusal::Cut(Interruption::Revoked),
                Cut::Expired => Refusal::Cut(Interruption::Expired),
            }
        };
        let lost = async {
            loop {
                sleep(RENEWAL).await;
                if !self.lease.is_sent() && self.lease.lapsed_for() > self.upstream.config().connect_timeout {
                    return Refusal::Cut(Interruption::Control);
                }
            }
        };
        tokio::select! { refusal = renew => refusal, refusal = cut => refusal, refusal = lost => refusal }
    }

    /// Hands the body up, chunk by chunk, no faster than the forge takes it.
    async fn pump(&self, inbound: &mut Inbound, up: mpsc::Sender<Bytes>) -> Result<(), Refusal> {
        let mut total = 0;
        let mut next = Some(self.push.first.clone());
        while let Some(bytes) = next {
            total += bytes.len() as u64;
            if total > self.limits.push_bytes {
                self.record.interrupted(Interruption::Limit);
                return Err(Refusal::TooLarge(self.limits.push_bytes));
            }
            match timeout(self.upstream.config().idle_timeout, up.send(bytes)).await {
                Err(_) => return Err(UpstreamError::Silent.into()),
                // The connection is gone; what became of the push is for the answer to say.
                Ok(Err(_)) => return Ok(()),
                Ok(Ok(())) => {}
            }
            next = inbound.next().await.inspect_err(|error| self.record.interrupted((*error).into()))?;
        }
        Ok(())
    }

    /// Sends the request and passes the answer down as it comes, reading the report in it.
    async fn answer(
        &self,
        connection: &mut PushConnection,
        request: http::Request<Outbound>,
        down: &mut Downlink,
    ) -> Result<Outcome, Refusal> {
        let answer = tokio::select! {
            answer = connection.send(request) => answer?,
            () = self.head_is_late() => return Err(UpstreamError::Silent.into()),
        };
        self.record.upstream(answer.status());
        if answer.status() == StatusCode::UNAUTHORIZED {
            let (_, token) = super::forwardable(&self.permit)?;
            // The push is not repeated; the next one gets another token.
            drop(self.gate.replace_token(self.permit.authorization(), token).await);
        }
        if let Some(error) = UpstreamError::of(answer.status(), answer.headers()) {
            return Err(error.into());
        }
        expect(&answer, Service::ReceivePack, "result")?;
        if is_coded(answer.headers()) {
            return Err(UpstreamError::Coded.into());
        }
        let (head, mut incoming) = answer.into_parts();
        down.head(head.headers);
        let mut report = Reader::new(self.push.section.capabilities.side_band_64k);
        loop {
            let frame = timeout(self.upstream.config().idle_timeout, incoming.frame()).await;
            match frame {
                Err(_) if !self.lease.is_sent() => {}
                Err(_) => return Err(UpstreamError::Silent.into()),
                Ok(Some(Err(_))) => return Err(UpstreamError::Cut.into()),
                Ok(None) => break,
                Ok(Some(Ok(frame))) => {
                    if let Ok(bytes) = frame.into_data() {
                        report.push(&bytes);
                        down.send(&bytes).await;
                    }
                }
            }
        }
        Ok(report.finish(self.push.section.commands.iter().map(|command| command.ref_name.as_ref())))
    }

    /// The forge has had the whole body for as long as it may take to answer.
    async fn head_is_late(&self) {
        while !self.lease.is_sent() {
            sleep(RENEWAL).await;
        }
        sleep(self.upstream.config().head_timeout).await;
    }

    /// Closes the push in the ledger.
    async fn report(&self, end: &Result<Outcome, Refusal>) {
        let (result, name) = match end {
            Ok(Outcome::Done) => (v1::PushResult::Done, "done"),
            Ok(Outcome::Refused(_)) => (v1::PushResult::RefusedUpstream, "refused-upstream"),
            Ok(Outcome::Unreadable) => (v1::PushResult::Interrupted, "unreadable"),
            Err(_) => (v1::PushResult::Interrupted, "interrupted"),
        };
        self.record.outcome(name);
        let refused = match end {
            Ok(Outcome::Refused(refs)) => refs.as_slice(),
            Ok(Outcome::Done | Outcome::Unreadable) | Err(_) => &[],
        };
        let upstream_refusals = refused
            .iter()
            .map(|(name, message)| v1::UpstreamRefusal { ref_name: name.to_vec(), message: message.clone() })
            .collect();
        let report = v1::ReportPushRequest {
            authorization: self.permit.authorization().to_owned(),
            result: result.into(),
            upstream_refusals,
            request_bytes: self.record.request_bytes(),
        };
        for _ in 0..REPORTS {
            match self.gate.report(report.clone()).await {
                Ok(()) => return,
                Err(Refusal::Gate(_)) => {}
                Err(refusal) => {
                    tracing::warn!(request_id = self.record.id(), %refusal, "the outcome was not recorded");
                    return;
                }
            }
        }
        tracing::warn!(request_id = self.record.id(), "the outcome could not be told to control");
    }
}
