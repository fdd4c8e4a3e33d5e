//! The gate: asks control about every request, over a long-lived session with each control.
//!
//! A question has a deadline and an id that never repeats, so a late answer can reach nobody else. A session that is
//! lost fails what waited on it at once. What is safe to ask twice is asked again of another session, within the same
//! deadline, when its session is lost or silent, or its control has no store. A full queue is a refusal, not a wait.

mod asking;
mod context;
mod driver;
mod holder;
mod keeper;
mod outgoing;
mod place;
mod pool;
mod session;
mod streams;
mod term;
#[cfg(test)]
mod tests;
mod verdict;

use std::sync::Arc;
use std::time::Duration;

use gitdoor_proto::endpoint::{Connector, Endpoint};
use gitdoor_proto::permit::Incomplete;
use gitdoor_proto::reason::Unspecified;
use gitdoor_proto::v1::session_request::Question;
use gitdoor_proto::v1::session_response::Answer;
use gitdoor_proto::{Bearer, Denial, Permit, Token, v1};
use tokio::time::Instant;

pub use context::Context;
pub use place::Place;
pub use streams::{Cut, Guard, Streams, Watch};
pub use term::Term;

use crate::refusal::Refusal;
use asking::{Answered, Asking};
use pool::{Home, Pool, Resolve, Times, Wish};

/// How often control's names are looked up.
const LOOKUP: Duration = Duration::from_secs(10);

/// Why control did not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum GateError {
    /// There is no session, or none came in time.
    #[error("the door's control is not reachable; nothing was decided, ask again")]
    Unreachable,
    /// The session ended under the question, and it is not safe to ask twice.
    #[error("the door's control went away before it answered; ask again")]
    Lost,
    /// No answer within the deadline.
    #[error("the door's control did not answer in time; ask again")]
    Timeout,
    /// Too many questions wait.
    #[error("the door has too many questions waiting; ask again")]
    Busy,
    /// The answer is not one to the question, or is incomplete.
    #[error("the door's control gave an answer that this door cannot read")]
    Unreadable,
}

impl From<Incomplete> for GateError {
    fn from(Incomplete: Incomplete) -> Self {
        Self::Unreadable
    }
}

impl From<Unspecified> for GateError {
    fn from(Unspecified: Unspecified) -> Self {
        Self::Unreadable
    }
}

/// What control granted one request.
pub struct Granted {
    /// The permit.
    pub permit: Permit,
    /// When control was asked: a lease and the run's time count from here.
    pub asked: Instant,
    /// The request's place at control among those that its run has at once. To be kept as long as the request has
    /// streams.
    pub place: Option<Place>,
    /// The request that it was granted to.
    context: Context,
    home: Home,
}

/// A handle to the gate; clones share the sessions.
#[derive(Clone)]
pub struct Gate {
    pool: Arc<Pool>,
    deadline: Duration,
    streams: Arc<Streams>,
}

impl Gate {
    /// Starts the sessions' drivers on this runtime. They end with the last handle.
    #[must_use]
    pub fn start(controls: Vec<Endpoint>, connector: Connector, deadline: Duration) -> Self {
        Self::over(controls, connector, deadline, LOOKUP)
    }

    fn over(controls: Vec<impl Resolve>, connector: Connector, deadline: Duration, lookup: Duration) -> Self {
        let streams = Arc::new(Streams::default());
        let times = Times { lookup, grace: deadline };
        let pool = Pool::start(controls, connector, Arc::clone(&streams), times);
        Self { pool: Arc::new(pool), deadline, streams }
    }

    /// The streams that a revocation cuts.
    #[must_use]
    pub fn streams(&self) -> &Arc<Streams> {
        &self.streams
    }

    /// Waits until there is a session.
    pub async fn connected(&self) {
        self.pool.connected().await;
    }

    /// May this bearer do this?
    pub async fn authorize(
        &self,
        bearer: &Bearer,
        context: &Context,
        intent: v1::authorize_request::Intent,
    ) -> Result<Granted, Refusal> {
        // A push opens a row in the ledger: asking twice opens two, unless it has a name.
        let repeatable = !matches!(&intent, v1::authorize_request::Intent::Push(push) if push.key.is_empty());
        let question = Question::Authorize(v1::AuthorizeRequest {
            run_id: bearer.run_id().as_str().to_owned(),
            secret: bearer.expose_secret().to_owned(),
            request_id: context.request_id.clone(),
            intent: Some(intent),
            trace_parent: context.trace_parent(),
        });
        let wish = Wish { home: None, repeatable };
        let Answered { answer, asked, session, place } = self.ask(question, wish).await?;
        let Answer::Authorize(answer) = answer else { return Err(GateError::Unreadable.into()) };
        match Permit::from_answer(answer).map_err(GateError::from)? {
            Ok(permit) => Ok(Granted { permit, asked, place, context: context.clone(), home: Home::at(&session) }),
            Err(denial) => Err(Refusal::Denied(denial)),
        }
    }

    /// Binds the run to the repository of a push discovery that the forge confirmed.
    pub async fn bind(&self, granted: &Granted) -> Result<(), Refusal> {
        use v1::bind_run_response::Verdict;
        let question = Question::Bind(v1::BindRunRequest {
            authorization: granted.authorization(),
            context: Some(granted.context()),
        });
        let (Answer::Bind(answer), _) = self.follow(granted, question).await? else {
            return Err(GateError::Unreadable.into());
        };
        match answer.verdict.ok_or(GateError::Unreadable)? {
            Verdict::Bound(_) => Ok(()),
            Verdict::Refusal(refusal) => Err(denied(refusal)?),
        }
    }

    /// May this push go on? Returns how long, and the time of the question from which that counts.
    pub async fn renew(&self, granted: &Granted, sent: bool) -> Result<(Duration, Instant), Refusal> {
        use v1::renew_lease_response::Verdict;
        let question = Question::Renew(v1::RenewLeaseRequest { authorization: granted.authorization(), sent });
        let (Answer::Renew(answer), asked) = self.follow(granted, question).await? else {
            return Err(GateError::Unreadable.into());
        };
        match answer.verdict.ok_or(GateError::Unreadable)? {
            Verdict::Refusal(refusal) => Err(denied(refusal)?),
            Verdict::Lease(lease) => {
                let duration = lease.duration.and_then(|duration| Duration::try_from(duration).ok());
                Ok((duration.ok_or(GateError::Unreadable)?, asked))
            }
        }
    }

    /// Closes a push in the ledger. The report's authorization and context are those of what was granted.
    pub async fn report(&self, granted: &Granted, report: v1::ReportPushRequest) -> Result<(), Refusal> {
        let (authorization, context) = (granted.authorization(), Some(granted.context()));
        let report = v1::ReportPushRequest { authorization, context, ..report };
        let (Answer::Report(answer), _) = self.follow(granted, Question::Report(report)).await? else {
            return Err(GateError::Unreadable.into());
        };
        match answer.refusal {
            None => Ok(()),
            Some(refusal) => Err(denied(refusal)?),
        }
    }

    /// Gives back a token that the forge answered 401 to, for another.
    pub async fn replace_token(&self, granted: &Granted, token: &Token) -> Result<Token, Refusal> {
        use v1::replace_token_response::Verdict;
        let question = Question::ReplaceToken(v1::ReplaceTokenRequest {
            authorization: granted.authorization(),
            token_id: token.id.clone(),
            context: Some(granted.context()),
        });
        let (Answer::ReplaceToken(answer), _) = self.follow(granted, question).await? else {
            return Err(GateError::Unreadable.into());
        };
        match answer.verdict.ok_or(GateError::Unreadable)? {
            Verdict::Token(token) => Ok(Token::try_from(token).map_err(GateError::from)?),
            Verdict::Refusal(refusal) => Err(denied(refusal)?),
        }
    }

    /// Asks what follows an authorization. Whoever answers is where the next goes.
    async fn follow(&self, granted: &Granted, question: Question) -> Result<(Answer, Instant), GateError> {
        let wish = Wish { home: Some(&granted.home), repeatable: true };
        let Answered { answer, asked, session, place: _ } = self.ask(question, wish).await?;
        granted.home.move_to(&session);
        Ok((answer, asked))
    }

    async fn ask(&self, question: Question, wish: Wish<'_>) -> Result<Answered, GateError> {
        Asking::new(&self.pool, question, wish, self.deadline).answer().await
    }
}

impl Granted {
    /// When the run's time is over. One that no clock reaches is over at once.
    #[must_use]
    pub fn expires(&self) -> Instant {
        self.asked.checked_add(self.permit.remaining()).unwrap_or(self.asked)
    }

    fn context(&self) -> v1::RequestContext {
        (&self.context).into()
    }

    fn authorization(&self) -> String {
        self.permit.authorization().to_owned()
    }
}

fn denied(refusal: v1::Refusal) -> Result<Refusal, GateError> {
    Ok(Refusal::Denied(Denial::try_from(refusal)?))
}
