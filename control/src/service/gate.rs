//! `Gate`: the questions of data planes, over a session or one at a time.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::Stream;
use gitdoor_proto::v1::gate_server::Gate as GateRpc;
use gitdoor_proto::v1::{self, session_request, session_response};
use gitdoor_proto::{Denial, Reason};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status, Streaming};

use super::context::{Context, Trace};
use super::session::{self, Asker};
use crate::clock;
use crate::forge::Forge;
use crate::gate::question::{self, Question};
use crate::gate::{Gate, Permitted, Report, RequestPlace};
use crate::limit::{Limit, QUESTIONS};
use crate::metrics;
use crate::run::Invalid;
use crate::status;
use crate::store::Store;
use crate::ticket::{Holder, Presented, Shown};
use crate::trust::layer::Peer;

/// No answer is of use to a data plane after this.
const DEADLINE: Duration = Duration::from_secs(10);

/// Answers for one gate.
#[derive(Debug)]
pub struct GateService<S, F> {
    gate: Arc<Gate<S, F>>,
    drain: CancellationToken,
    /// Places of the questions of all sessions.
    questions: Arc<Semaphore>,
}

impl<S, F> Clone for GateService<S, F> {
    fn clone(&self) -> Self {
        Self { gate: self.gate.clone(), drain: self.drain.clone(), questions: self.questions.clone() }
    }
}

impl<S: Store, F: Forge> GateService<S, F> {
    /// The service; its sessions end when `drain` is cancelled.
    #[must_use]
    pub fn new(gate: Arc<Gate<S, F>>, drain: CancellationToken) -> Self {
        Self { gate, drain, questions: Arc::new(Semaphore::new(QUESTIONS)) }
    }

    pub(super) fn gate(&self) -> &Gate<S, F> {
        &self.gate
    }

    pub(super) fn drain(&self) -> &CancellationToken {
        &self.drain
    }

    /// Answers one question of a session, whose places are kept with its asker. One that cannot be read has no answer but its
    /// id: the data plane then lets nothing through.
    pub(super) async fn answer(self, request: v1::SessionRequest, asker: &Asker) -> v1::SessionResponse {
        use session_request::Question as Asked;
        use session_response::Answer;
        let v1::SessionRequest { id, ended: _, question } = request;
        let holder = asker.holder();
        let answer = match question {
            Some(Asked::Authorize(message)) => self.authorized(message, holder).await.map(|(answer, place)| {
                asker.keep(id, place);
                Answer::Authorize(answer)
            }),
            Some(Asked::Bind(message)) => Ok(Answer::Bind(self.bound(message, holder).await)),
            Some(Asked::Renew(message)) => Ok(Answer::Renew(self.renewed(message, holder).await)),
            Some(Asked::Report(message)) => self.reported(message, holder).await.map(Answer::Report),
            Some(Asked::ReplaceToken(message)) => Ok(Answer::ReplaceToken(self.replaced(message, holder).await)),
            None => Err(Invalid::Question),
        };
        let answer = answer.inspect_err(|invalid| tracing::warn!(%invalid, "a question cannot be read"));
        v1::SessionResponse { id, answer: answer.ok() }
    }

    /// An answer within its time, if there is a place for its question.
    async fn worked_on<T>(&self, answer: impl Future<Output = Result<T, Denial>>) -> Result<T, Denial> {
        let Ok(_place) = self.questions.try_acquire() else { return Err(busy()) };
        timeout(DEADLINE, answer).await.unwrap_or_else(|_elapsed| {
            let denial = Denial::new(Reason::ForgeUnavailable, "the forge did not answer in time; try again");
            Err(denial.retry_after(Duration::from_secs(1)))
        })
    }

    async fn authorized(
        &self,
        message: v1::AuthorizeRequest,
        holder: Option<Holder>,
    ) -> Result<(v1::AuthorizeResponse, Option<RequestPlace>), Invalid> {
        use v1::authorize_response::Verdict;
        let trace = Trace::read(&message.trace_parent);
        let question = Question::read(message, holder)?;
        let asked = Asked::of(&question, trace);
        let answer = self.worked_on(self.gate.authorize(question, clock::now())).await;
        asked.answered(&answer);
        let (verdict, place) = match answer {
            Ok(Permitted { permit, place }) => (Verdict::Permit(permit), place),
            Err(denial) => (Verdict::Refusal(denial.into()), None),
        };
        Ok((v1::AuthorizeResponse { verdict: Some(verdict) }, place))
    }

    async fn bound(&self, message: v1::BindRunRequest, holder: Option<Holder>) -> v1::BindRunResponse {
        use v1::bind_run_response::Verdict;
        let start = Instant::now();
        let Context { request_id, trace } = Context::read(message.context);
        let run = run_of(&message.authorization);
        let ticket = Shown { text: &message.authorization, holder };
        let answer = self.worked_on(self.gate.bind(ticket, clock::now())).await;
        let verdict = status::verdict(&answer);
        metrics::question("bind", verdict, start.elapsed());
        let binding = answer.as_ref().ok();
        tracing::info!(
            run,
            repository = binding.map(|binding| binding.repository.to_string()),
            repository_id = binding.map(|binding| binding.repository_id),
            verdict,
            request_id,
            trace_id = trace.trace_id,
            parent_id = trace.parent_id,
            "bind"
        );
        let verdict = match answer {
            Ok(binding) => Verdict::Bound(v1::Bound {
                repository: binding.repository.to_string(),
                repository_id: binding.repository_id,
            }),
            Err(denial) => Verdict::Refusal(denial.into()),
        };
        v1::BindRunResponse { verdict: Some(verdict) }
    }

    async fn renewed(&self, message: v1::RenewLeaseRequest, holder: Option<Holder>) -> v1::RenewLeaseResponse {
        use v1::renew_lease_response::Verdict;
        let start = Instant::now();
        let v1::RenewLeaseRequest { authorization, sent } = message;
        let ticket = Shown { text: &authorization, holder };
        let answer = self.worked_on(self.gate.renew(ticket, sent, clock::now())).await;
        metrics::question("renew", status::verdict(&answer), start.elapsed());
        let verdict = match answer {
            Ok(lease) => Verdict::Lease(v1::Lease { duration: lease.try_into().ok() }),
            Err(denial) => Verdict::Refusal(denial.into()),
        };
        v1::RenewLeaseResponse { verdict: Some(verdict) }
    }

    async fn reported(
        &self,
        message: v1::ReportPushRequest,
        holder: Option<Holder>,
    ) -> Result<v1::ReportPushResponse, Invalid> {
        let start = Instant::now();
        let outcome = question::outcome(message.result())?;
        let v1::ReportPushRequest { authorization, result: _, upstream_refusals, request_bytes, context } = message;
        let Context { request_id, trace } = Context::read(context);
        let refusal = |refusal: v1::UpstreamRefusal| (refusal.ref_name, refusal.message);
        let upstream_refusals = upstream_refusals.into_iter().map(refusal).collect();
        let run = run_of(&authorization);
        let report = Report { ticket: authorization, holder, outcome, upstream_refusals, request_bytes };
        let answer = self.worked_on(self.gate.report(report, clock::now())).await;
        let verdict = status::verdict(&answer);
        metrics::question("report", verdict, start.elapsed());
        tracing::info!(
            run,
            outcome = outcome.as_str(),
            request_bytes,
            verdict,
            request_id,
            trace_id = trace.trace_id,
            parent_id = trace.parent_id,
            "report"
        );
        Ok(v1::ReportPushResponse { refusal: answer.err().map(Into::into) })
    }

    async fn replaced(&self, message: v1::ReplaceTokenRequest, holder: Option<Holder>) -> v1::ReplaceTokenResponse {
        use v1::replace_token_response::Verdict;
        let start = Instant::now();
        let v1::ReplaceTokenRequest { authorization, token_id, context } = message;
        let Context { request_id, trace } = Context::read(context);
        let run = run_of(&authorization);
        let ticket = Shown { text: &authorization, holder };
        let answer = self.worked_on(self.gate.replace_token(ticket, &token_id, clock::now())).await;
        let verdict = status::verdict(&answer);
        metrics::question("replace_token", verdict, start.elapsed());
        tracing::info!(
            run,
            verdict,
            request_id,
            trace_id = trace.trace_id,
            parent_id = trace.parent_id,
            "replace token"
        );
        let verdict = answer.map_or_else(|denial| Verdict::Refusal(denial.into()), Verdict::Token);
        v1::ReplaceTokenResponse { verdict: Some(verdict) }
    }
}

#[tonic::async_trait]
impl<S: Store, F: Forge> GateRpc for GateService<S, F> {
    type SessionStream = Pin<Box<dyn Stream<Item = Result<v1::SessionResponse, Status>> + Send>>;

    async fn session(
        &self,
        request: Request<Streaming<v1::SessionRequest>>,
    ) -> Result<Response<Self::SessionStream>, Status> {
        let asker = Asker::of(request.metadata())?;
        let time = request.extensions().get::<Peer>().and_then(|peer| peer.remaining(clock::now()));
        Ok(Response::new(Box::pin(session::run(self.clone(), asker, request.into_inner(), time))))
    }

    async fn authorize(
        &self,
        request: Request<v1::AuthorizeRequest>,
    ) -> Result<Response<v1::AuthorizeResponse>, Status> {
        let answer = self.authorized(request.into_inner(), None).await;
        // Nobody would say when the request has ended, and nothing is asked about it later.
        answer.map(|(answer, _place)| Response::new(answer)).map_err(|invalid| status::invalid(&invalid))
    }
}

/// The run that a ticket claims to be of, for the log.
fn run_of(ticket: &str) -> Option<String> {
    Presented::parse(Shown { text: ticket, holder: None }).ok().map(|ticket| ticket.run().to_string())
}

/// No place for a question. To a data plane it is an outage like another, in which it asks again.
fn busy() -> Denial {
    metrics::limited("gate", Limit::Questions);
    let words = "the door has as many questions at once as it takes; try again in a moment";
    Denial::new(Reason::StoreUnavailable, words).retry_after(Duration::from_secs(1))
}

/// What is logged of an authorize question: never its secret.
struct Asked {
    run: String,
    request_id: String,
    trace: Trace,
    intent: &'static str,
    repository: Option<String>,
    refs: usize,
    start: Instant,
}

impl Asked {
    fn of(question: &Question, trace: Trace) -> Self {
        Self {
            run: question.bearer.run_id().to_string(),
            request_id: question.request_id.clone(),
            trace,
            intent: question.intent.as_str(),
            repository: question.intent.repository().map(ToString::to_string),
            refs: question.intent.refs(),
            start: Instant::now(),
        }
    }

    fn answered<T>(self, answer: &Result<T, Denial>) {
        let Self { run, request_id, trace, intent, repository, refs, start } = self;
        let verdict = status::verdict(answer);
        metrics::question(intent, verdict, start.elapsed());
        tracing::info!(
            run,
            intent,
            repository,
            refs,
            verdict,
            request_id,
            trace_id = trace.trace_id,
            parent_id = trace.parent_id,
            "authorize"
        );
    }
}
