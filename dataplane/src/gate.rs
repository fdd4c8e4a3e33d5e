//! The gate: asks control about every request, over one long-lived session a runtime.
//!
//! A question has a deadline and an id that never repeats, so a late answer can reach nobody else. A session that is
//! lost fails what waited on it at once; what is safe to ask twice is asked again of the next session, within the
//! same deadline. A full queue is a refusal, not a wait.

mod session;
mod streams;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gitdoor_proto::endpoint::{Connector, Endpoint};
use gitdoor_proto::permit::Incomplete;
use gitdoor_proto::reason::Unspecified;
use gitdoor_proto::v1::session_request::Question;
use gitdoor_proto::v1::session_response::Answer;
use gitdoor_proto::{Bearer, Denial, Permit, Token, v1};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, timeout_at};

pub use streams::{Cut, Guard, Streams, Watch};

use crate::refusal::Refusal;

/// Questions that may wait to be sent on one session; more are refused.
const QUEUE: usize = 1024;
/// Sessions that a question may be put to.
const ATTEMPTS: usize = 3;

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

/// One session as its askers see it.
pub(crate) struct Session {
    questions: mpsc::Sender<v1::SessionRequest>,
    pending: Mutex<HashMap<u64, oneshot::Sender<Answer>>>,
    next: AtomicU64,
}

/// A handle to the gate; clones share the session.
#[derive(Clone)]
pub struct Gate {
    current: watch::Receiver<Option<Arc<Session>>>,
    deadline: Duration,
    streams: Arc<Streams>,
}

impl Gate {
    /// Starts the session's driver on this runtime. It ends with the handle.
    #[must_use]
    pub fn start(controls: Vec<Endpoint>, connector: Connector, deadline: Duration) -> Self {
        let (publish, current) = watch::channel(None);
        let streams = Arc::new(Streams::default());
        tokio::spawn(session::drive(controls, connector, publish, Arc::clone(&streams)));
        Self { current, deadline, streams }
    }

    /// The streams that a revocation cuts.
    #[must_use]
    pub fn streams(&self) -> &Arc<Streams> {
        &self.streams
    }

    /// Waits for the first session.
    pub async fn connected(&self) {
        let mut current = self.current.clone();
        // The driver outlives its handles, so the sender is never gone while one waits.
        let _ = current.wait_for(Option::is_some).await;
    }

    /// May this bearer do this? Returns the permit and the time of the question, from which a lease counts.
    pub async fn authorize(
        &self,
        bearer: &Bearer,
        request_id: &str,
        intent: v1::authorize_request::Intent,
    ) -> Result<(Permit, Instant), Refusal> {
        // A push opens a row in the ledger: asking twice would open two.
        let safe = !matches!(intent, v1::authorize_request::Intent::Push(_));
        let question = Question::Authorize(v1::AuthorizeRequest {
            run_id: bearer.run_id().as_str().to_owned(),
            secret: bearer.expose_secret().to_owned(),
            request_id: request_id.to_owned(),
            intent: Some(intent),
        });
        match self.ask(question, safe).await? {
            (Answer::Authorize(answer), asked) => match Permit::from_answer(answer).map_err(GateError::from)? {
                Ok(permit) => Ok((permit, asked)),
                Err(denial) => Err(Refusal::Denied(denial)),
            },
            _ => Err(GateError::Unreadable.into()),
        }
    }

    /// Binds the run to the repository of a push discovery that the forge confirmed.
    pub async fn bind(&self, authorization: &str) -> Result<(), Refusal> {
        use v1::bind_run_response::Verdict;
        let question = Question::Bind(v1::BindRunRequest { authorization: authorization.to_owned() });
        let (Answer::Bind(answer), _) = self.ask(question, true).await? else {
            return Err(GateError::Unreadable.into());
        };
        match answer.verdict.ok_or(GateError::Unreadable)? {
            Verdict::Bound(_) => Ok(()),
            Verdict::Refusal(refusal) => Err(denied(refusal)?),
        }
    }

    /// May this push go on? Returns how long, and the time of the question from which that counts.
    pub async fn renew(&self, authorization: &str, sent: bool) -> Result<(Duration, Instant), Refusal> {
        use v1::renew_lease_response::Verdict;
        let question = Question::Renew(v1::RenewLeaseRequest { authorization: authorization.to_owned(), sent });
        let (Answer::Renew(answer), asked) = self.ask(question, true).await? else {
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

    /// Closes a push in the ledger.
    pub async fn report(&self, report: v1::ReportPushRequest) -> Result<(), Refusal> {
        let (Answer::Report(answer), _) = self.ask(Question::Report(report), true).await? else {
            return Err(GateError::Unreadable.into());
        };
        match answer.refusal {
            None => Ok(()),
            Some(refusal) => Err(denied(refusal)?),
        }
    }

    /// Gives back a token that the forge answered 401 to, for another.
    pub async fn replace_token(&self, authorization: &str, token: &Token) -> Result<Token, Refusal> {
        use v1::replace_token_response::Verdict;
        let question = Question::ReplaceToken(v1::ReplaceTokenRequest {
            authorization: authorization.to_owned(),
            token_id: token.id.clone(),
        });
        let (Answer::ReplaceToken(answer), _) = self.ask(question, true).await? else {
            return Err(GateError::Unreadable.into());
        };
        match answer.verdict.ok_or(GateError::Unreadable)? {
            Verdict::Token(token) => Ok(Token::try_from(token).map_err(GateError::from)?),
            Verdict::Refusal(refusal) => Err(denied(refusal)?),
        }
    }

    async fn ask(&self, question: Question, safe: bool) -> Result<(Answer, Instant), GateError> {
        let deadline = Instant::now() + self.deadline;
        let mut current = self.current.clone();
        for _ in 0..ATTEMPTS {
            let session = match timeout_at(deadline, current.wait_for(Option::is_some)).await {
                Ok(Ok(session)) => session.clone(),
                Ok(Err(_)) | Err(_) => None,
            };
            let session = session.ok_or(GateError::Unreachable)?;
            let asked = Instant::now();
            let waiting = session.ask(question.clone())?;
            match timeout_at(deadline, waiting.answer).await {
                Ok(Ok(answer)) => return Ok((answer, asked)),
                Err(_) => return Err(GateError::Timeout),
                Ok(Err(_)) if !safe => return Err(GateError::Lost),
                Ok(Err(_)) => drop(timeout_at(deadline, current.changed()).await),
            }
        }
        Err(GateError::Unreachable)
    }
}

fn denied(refusal: v1::Refusal) -> Result<Refusal, GateError> {
    Ok(Refusal::Denied(Denial::try_from(refusal)?))
}

/// A question that was sent; dropped, it forgets its entry, so that a late answer falls to the floor.
struct Waiting {
    answer: oneshot::Receiver<Answer>,
    _entry: Entry,
}

struct Entry {
    session: Arc<Session>,
    id: u64,
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.session.pending().remove(&self.id);
    }
}

impl Session {
    fn new(questions: mpsc::Sender<v1::SessionRequest>) -> Arc<Self> {
        Arc::new(Self { questions, pending: Mutex::default(), next: AtomicU64::new(1) })
    }

    fn pending(&self) -> MutexGuard<'_, HashMap<u64, oneshot::Sender<Answer>>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ask(self: &Arc<Self>, question: Question) -> Result<Waiting, GateError> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (answered, answer) = oneshot::channel();
        self.pending().insert(id, answered);
        let waiting = Waiting { answer, _entry: Entry { session: Arc::clone(self), id } };
        match self.questions.try_send(v1::SessionRequest { id, question: Some(question) }) {
            Ok(()) => Ok(waiting),
            Err(mpsc::error::TrySendError::Full(_)) => Err(GateError::Busy),
            // The session has just ended: the receiver reads that as a loss, as for questions under way.
            Err(mpsc::error::TrySendError::Closed(_)) => {
                self.pending().remove(&id);
                Ok(waiting)
            }
        }
    }

    fn answer(&self, id: u64, answer: Answer) {
        if let Some(waiting) = self.pending().remove(&id) {
            let _ = waiting.send(answer);
        }
    }

    /// Fails every question under way.
    fn lose(&self) {
        self.pending().clear();
    }
}
