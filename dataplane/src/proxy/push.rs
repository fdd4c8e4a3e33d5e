//! A push: commands judged, a lease kept, bytes up and answer down at the same time, an outcome in the ledger.
//!
//! The push is a task of its own: once its last byte went up, its outcome is awaited and recorded even when the client
//! has left.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use gitdoor_proto::permit::Grant;
use gitdoor_proto::{Reason, RepositoryName, Token, v1};
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, Response};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::carry::{Begun, HeldBack, Most, give_back_refused, late, length, pump};
use super::discovery::expect;
use super::{Allowed, Exchange, Limits, Proxy, forwardable};
use crate::body::{Body, Inbound, Outbound, Watch, pipe};
use crate::gate::{Gate, GateError, Granted, Term};
use crate::git::report_status::{Outcome, Reader};
use crate::intent::Push;
use crate::record::{Interruption, Record};
use crate::refusal::Refusal;
use crate::route::Service;
use crate::upstream::{GitRequest, Lease, PushConnection, Upstream, UpstreamError};

mod downlink;

use downlink::Downlink;

/// A lease lasts two seconds; it is renewed at half its time.
const RENEWAL: Duration = Duration::from_secs(1);
/// The end of a push, which goes up only once its body has ended: a forge acts on a pack as soon as that is whole,
/// although a client has appended bytes to it and leaves the body open.
const HELD_BACK: usize = 64 * 1024;
/// A push whose lease has been over for this long is given up: control closes its row about now.
const LAPSED: Duration = Duration::from_secs(10);
/// How often an outcome is told to a control that does not answer before the client sees the end of its push.
const REPORTS: usize = 3;
/// And after that: for at least so many seconds, in which a store fails over or a control is started again.
const LATE_REPORTS: usize = 60;

impl Proxy {
    /// Forwards a push that control let through.
    pub(super) async fn push(
        &self,
        exchange: &mut Exchange,
        allowed: Allowed,
        push: Push,
    ) -> Result<Response<Body>, Refusal> {
        let Allowed { granted, term } = allowed;
        let Grant::Forward { lease: Some(duration), .. } = granted.permit.grant() else {
            return Err(GateError::Unreadable.into());
        };
        let lease = Lease::new(granted.asked, *duration);
        let (begin, response) = oneshot::channel();
        let carrier = Carrier {
            gate: self.gate.clone(),
            upstream: Arc::clone(&self.upstream),
            limits: self.limits,
            headers: exchange.head.headers.clone(),
            term,
            record: exchange.record.clone(),
            granted,
            lease,
            push,
        };
        self.tasks.spawn(carrier.carry(exchange.inbound.take(), begin));
        exchange.begun(response).await
    }
}

/// Everything that a push under way needs.
struct Carrier {
    gate: Gate,
    upstream: Arc<Upstream>,
    limits: Limits,
    headers: HeaderMap,
    term: Arc<Term>,
    record: Record,
    granted: Granted,
    lease: Arc<Lease>,
    push: Push,
}

impl Carrier {
    /// Carries the push to its end, records that, and only then lets the client see the end.
    async fn carry(self, mut inbound: Inbound, begin: oneshot::Sender<Begun>) {
        let capabilities = &self.push.section.capabilities;
        let mut down = Downlink::new(begin, capabilities.side_band_64k, self.upstream.config().idle_timeout);
        let end = self.exchange(&mut inbound, &mut down).await;
        let report = self.closing(&end);
        let told = self.tell(&report, REPORTS).await;
        match end {
            Ok(_) => {
                // An answer may come before the body's end; the client is heard out, or it would lose the answer.
                let until = Instant::now() + self.upstream.config().idle_timeout;
                inbound.drain(self.limits.drain_bytes, until).await;
                down.end().await;
            }
            Err(refusal) => {
                down.refuse(refusal, inbound, &self.push, &self.record, self.limits.drain_bytes).await;
            }
        }
        if !told && !self.tell(&report, LATE_REPORTS).await {
            tracing::warn!(request_id = self.record.id(), "the outcome could not be told to control");
        }
    }

    /// Bytes up, answer down, lease kept: until the answer ends or something breaks.
    async fn exchange(&self, inbound: &mut Inbound, down: &mut Downlink) -> Result<Outcome, Refusal> {
        let (repository, token) = forwardable(&self.granted.permit)?;
        let mut keep = std::pin::pin!(self.keep());
        let mut connection = tokio::select! {
            biased;
            why = &mut keep => return Err(Refusal::Cut(why)),
            connection = self.upstream.connect(Arc::clone(&self.lease)) => connection?,
        };
        let (up, drink) = pipe();
        let left = if inbound.is_decoded() { None } else { length(&self.headers) };
        let body = Outbound::Fed { drink, left, lease: Arc::clone(&self.lease) };
        let request = self.upstream.build_own(self.request(repository, token, inbound), body)?;
        let (most, idle) = (Most(self.limits.push_bytes, Refusal::TooLarge), self.upstream.config().idle_timeout);
        let end = HeldBack::of(HELD_BACK);
        let mut pump = std::pin::pin!(pump(self.push.first.clone(), inbound, up, most, end, idle));
        let mut answer = std::pin::pin!(self.answer(&mut connection, request, down));
        let mut pumping = true;
        loop {
            tokio::select! {
                biased;
                why = &mut keep => return Err(Refusal::Cut(why)),
                pumped = &mut pump, if pumping => {
                    pumped?;
                    pumping = false;
                }
                answered = &mut answer => return answered.map_err(|refusal| self.settle(refusal)),
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

    /// Keeps the lease, until the push may not go on. A push that has gone up whole cannot be stopped any more.
    async fn keep(&self) -> Interruption {
        let cut = async {
            let why = self.term.cut().await;
            if self.lease.is_sent() { std::future::pending().await } else { why }
        };
        tokio::select! { why = self.renew() => why, why = cut => why }
    }

    async fn renew(&self) -> Interruption {
        let mut next = self.granted.asked + RENEWAL;
        loop {
            sleep_until(next).await;
            next = Instant::now() + RENEWAL;
            let sent = self.lease.is_sent();
            match self.gate.renew(&self.granted, sent).await {
                Ok((duration, asked)) => {
                    self.lease.extend(asked, duration);
                    next = asked + RENEWAL;
                }
                Err(_) if self.lease.is_sent() => {}
                Err(Refusal::Denied(denial)) if !is_outage(denial.reason) => return interruption(denial.reason),
                // Without control nothing more is written once the lease is over. It may come back.
                Err(_) if self.lease.lapsed_for() > LAPSED => return Interruption::Control,
                Err(_) => {}
            }
        }
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
            () = late(&self.lease, self.upstream.config().head_timeout) => return Err(UpstreamError::Silent.into()),
        };
        self.record.upstream(answer.status());
        let (_, token) = forwardable(&self.granted.permit)?;
        give_back_refused(&answer, &self.gate, &self.granted, token).await;
        if let Some(error) = UpstreamError::of(answer.status(), answer.headers()) {
            return Err(error.into());
        }
        expect(answer.headers(), Service::ReceivePack, "result")?;
        let mut watch = Watch::new(token, false);
        watch.head(answer.headers()).map_err(UpstreamError::from)?;
        let (head, mut incoming) = answer.into_parts();
        down.head(head.headers);
        let mut report = Reader::new(self.push.section.capabilities.side_band_64k);
        while let Some(bytes) = self.frame(&mut incoming).await? {
            report.push(&bytes);
            down.send(&watch.push(bytes).map_err(UpstreamError::from)?).await;
        }
        down.send(&watch.finish()).await;
        Ok(report.finish(self.push.section.commands.iter().map(|command| command.ref_name.as_ref())))
    }

    /// What an upstream that fails after the last byte made of the push is not known.
    fn settle(&self, refusal: Refusal) -> Refusal {
        let Refusal::Upstream(error) = refusal else { return refusal };
        if self.lease.is_sent() && error.is_unsettling() { Refusal::Unsettled(error) } else { refusal }
    }

    /// The next bytes of the answer. While the body goes up the forge may well be silent.
    async fn frame(&self, incoming: &mut Incoming) -> Result<Option<Bytes>, UpstreamError> {
        loop {
            match timeout(self.upstream.config().idle_timeout, incoming.frame()).await {
                Err(_) if self.lease.is_sent() => return Err(UpstreamError::Silent),
                Err(_) => {}
                Ok(None) => return Ok(None),
                Ok(Some(Err(_))) => return Err(UpstreamError::Cut),
                Ok(Some(Ok(frame))) => {
                    if let Ok(bytes) = frame.into_data() {
                        return Ok(Some(bytes));
                    }
                }
            }
        }
    }

    /// What is to stand in the ledger of the push.
    fn closing(&self, end: &Result<Outcome, Refusal>) -> v1::ReportPushRequest {
        let (result, name) = match end {
            Ok(Outcome::Done) => (v1::PushResult::Done, "done"),
            Ok(Outcome::Refused(_)) => (v1::PushResult::RefusedUpstream, "refused-upstream"),
            Ok(Outcome::Unreadable) => (v1::PushResult::Interrupted, "unreadable"),
            Err(_) => (v1::PushResult::Interrupted, "interrupted"),
        };
        self.record.outcome(name);
        if let Err(refusal) = end {
            self.record.interrupted(refusal.interruption());
        }
        let refused = match end {
            Ok(Outcome::Refused(refs)) => refs.as_slice(),
            Ok(Outcome::Done | Outcome::Unreadable) | Err(_) => &[],
        };
        let upstream_refusals = refused
            .iter()
            .map(|(name, message)| v1::UpstreamRefusal { ref_name: name.to_vec(), message: message.clone() })
            .collect();
        v1::ReportPushRequest {
            result: result.into(),
            upstream_refusals,
            request_bytes: self.record.request_bytes(),
            ..Default::default()
        }
    }

    /// Closes the push in the ledger. False: control cannot say whether it is.
    async fn tell(&self, report: &v1::ReportPushRequest, times: usize) -> bool {
        for _ in 0..times {
            match self.gate.report(&self.granted, report.clone()).await {
                Ok(()) => return true,
                Err(Refusal::Gate(_)) => sleep(RENEWAL).await,
                Err(Refusal::Denied(denial)) if is_outage(denial.reason) => sleep(RENEWAL).await,
                Err(refusal) => {
                    tracing::warn!(request_id = self.record.id(), %refusal, "the outcome was not recorded");
                    return true;
                }
            }
        }
        false
    }
}

/// Whether control only cannot say just now.
fn is_outage(reason: Reason) -> bool {
    reason == Reason::StoreUnavailable || reason == Reason::ForgeUnavailable
}

/// Why control lets a push go on no longer. Whatever it is, the push was let through once: it ends in a report.
fn interruption(reason: Reason) -> Interruption {
    if reason == Reason::RunRevoked {
        Interruption::Revoked
    } else if reason == Reason::RunExpired {
        Interruption::Expired
    } else if reason == Reason::BearerWrong {
        Interruption::Replaced
    } else {
        Interruption::Lapsed
    }
}
