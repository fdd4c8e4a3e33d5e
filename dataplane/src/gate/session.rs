//! One session as its askers see it: questions go into a queue, and each waits for the answer that has its id.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use gitdoor_proto::v1;
use gitdoor_proto::v1::session_request::Question;
use gitdoor_proto::v1::session_response::Answer;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_stream::Stream;

use super::outgoing::{Outgoing, Sent};
use super::place::{GivenBack, Place};
use super::verdict;
use crate::metrics::{Counted, SessionState};

/// Questions that may wait to be sent on one session; more are refused.
const QUEUE: usize = 1024;
/// A session that is passed over is tried again with a single question after this.
const TRIAL: Duration = Duration::from_secs(10);

/// What becomes of a question.
#[derive(Debug)]
pub(super) enum Reply {
    /// It was answered.
    Answer {
        /// With this.
        answer: Answer,
        /// The place that its permit took.
        place: Option<Place>,
    },
    /// Control could not read it.
    Unreadable,
    /// The session ended before an answer came.
    Lost {
        /// Whether control may have seen the question.
        sent: bool,
    },
}

/// A session that takes questions until it is closed.
pub(super) struct Session {
    questions: mpsc::Sender<v1::SessionRequest>,
    next: AtomicU64,
    sent: Arc<Sent>,
    given_back: Arc<GivenBack>,
    inner: Mutex<Inner>,
}

struct Inner {
    waiting: HashMap<u64, oneshot::Sender<Reply>>,
    /// Since when new questions go elsewhere: one has gone unanswered for too long, and nothing was answered, or the last
    /// answer was that control's store does not answer.
    passed_over: Option<Instant>,
    /// Whether new questions are taken; none: the session is over.
    open: bool,
    counted: Option<Counted>,
}

/// How busy a session is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Load {
    /// Questions that have no answer yet.
    pub(super) pending: usize,
    /// Whether it is passed over while there is another.
    pub(super) passed_over: bool,
}

impl Session {
    /// A session, and the questions that it is to send.
    pub(super) fn new() -> (Arc<Self>, impl Stream<Item = v1::SessionRequest> + Send + 'static) {
        let (questions, queue) = mpsc::channel(QUEUE);
        let (sent, given_back) = (Arc::new(Sent::new()), Arc::new(GivenBack::default()));
        let outgoing = Outgoing::new(queue, Arc::clone(&sent), Arc::clone(&given_back));
        let inner = Inner { waiting: HashMap::new(), passed_over: None, open: true, counted: None };
        let session = Self { questions, next: AtomicU64::new(1), sent, given_back, inner: inner.into() };
        (Arc::new(session), outgoing)
    }

    /// Control has opened it.
    pub(super) fn opened(&self) {
        self.inner().counted = Some(Counted::new(SessionState::Live));
    }

    /// How busy it is; none: it takes no question now. One that is passed over and has long been asked nothing is not
    /// called so at a trial, which has the time: a single question shows whether it answers again.
    pub(super) fn load(&self, trial: Option<Instant>) -> Option<Load> {
        let inner = self.inner();
        if !inner.open || self.questions.capacity() == 0 {
            return None;
        }
        let pending = inner.waiting.len();
        let due = |since| pending == 0 && trial.is_some_and(|now| now >= since + TRIAL);
        Some(Load { pending, passed_over: inner.passed_over.is_some_and(|since| !due(since)) })
    }

    /// Puts a question. None: it was not taken, and control does not see it.
    pub(super) fn put(self: &Arc<Self>, question: Question) -> Option<Waiting> {
        let (reply, receiver) = oneshot::channel();
        let mut inner = self.inner();
        if !inner.open {
            return None;
        }
        // Under the lock, so that ids go out in their order.
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        // Before it is sent: a lease counts from here.
        let now = Instant::now();
        let request = v1::SessionRequest { id, question: Some(question), ended: Vec::new() };
        if let Err(refused) = self.questions.try_send(request) {
            // Its connection is gone, and its driver has not seen that yet.
            inner.open &= !matches!(refused, mpsc::error::TrySendError::Closed(_));
            return None;
        }
        inner.waiting.insert(id, reply);
        if let Some(since) = &mut inner.passed_over {
            *since = now;
        }
        drop(inner);
        Some(Waiting { session: Arc::clone(self), id, asked: now, reply: receiver })
    }

    /// Takes an answer in. Whatever it is, control is heard; and the place of a permit that nobody waits for any more is
    /// given back.
    pub(super) fn answer(&self, id: u64, answer: Option<Answer>) {
        let permits = answer.as_ref().is_some_and(verdict::permits);
        let place = permits.then(|| Place::of(id, &self.given_back));
        let waiting = {
            let mut inner = self.inner();
            inner.heard(answer.as_ref().is_some_and(verdict::is_outage));
            inner.waiting.remove(&id)
        };
        if let Some(waiting) = waiting {
            let reply = answer.map_or(Reply::Unreadable, |answer| Reply::Answer { answer, place });
            let _ = waiting.send(reply);
        }
    }

    /// Marks it: a question has waited for too long.
    pub(super) fn suspect(&self) {
        let mut inner = self.inner();
        if inner.passed_over.is_none() {
            inner.pass_over(SessionState::Silent);
        }
    }

    /// Takes no more questions. Those under way may still be answered.
    pub(super) fn close(&self) {
        self.inner().open = false;
    }

    /// Whether no question waits.
    pub(super) fn is_idle(&self) -> bool {
        self.inner().waiting.is_empty()
    }

    /// Ends it, and every question under way.
    pub(super) fn lose(&self) {
        let last = self.sent.end();
        let waiting = {
            let mut inner = self.inner();
            inner.open = false;
            inner.counted = None;
            std::mem::take(&mut inner.waiting)
        };
        for (id, waiting) in waiting {
            let _ = waiting.send(Reply::Lost { sent: id <= last });
        }
    }

    /// The last question that the connection has taken.
    #[cfg(test)]
    pub(super) fn taken(&self) -> u64 {
        self.sent.last()
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Control has answered; in an outage, that its store does not.
    fn heard(&mut self, outage: bool) {
        if outage {
            self.pass_over(SessionState::Storeless);
        } else if self.passed_over.take().is_some() {
            self.count(SessionState::Live);
        }
    }

    fn pass_over(&mut self, why: SessionState) {
        self.passed_over = Some(Instant::now());
        self.count(why);
    }

    fn count(&mut self, state: SessionState) {
        if let Some(counted) = &mut self.counted {
            counted.turn_to(state);
        }
    }
}

/// A question that was put; dropped, it forgets its entry, so that a late answer falls to the floor.
pub(super) struct Waiting {
    /// Where it was put.
    pub(super) session: Arc<Session>,
    /// When.
    pub(super) asked: Instant,
    id: u64,
    reply: oneshot::Receiver<Reply>,
}

impl Future for Waiting {
    type Output = (Arc<Session>, Instant, Reply);

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.reply).poll(context).map(|reply| {
            let reply = reply.unwrap_or(Reply::Lost { sent: true });
            (Arc::clone(&self.session), self.asked, reply)
        })
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.session.inner().waiting.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use gitdoor_proto::v1::session_request::Question;
    use tokio_stream::StreamExt as _;

    use super::*;

    fn put(session: &Arc<Session>) -> Waiting {
        session.put(Question::Report(v1::ReportPushRequest::default())).unwrap()
    }

    #[tokio::test]
    async fn a_lost_question_is_known_to_have_been_sent_or_not() {
        let (session, mut queue) = Session::new();
        let (sent, unsent) = (put(&session), put(&session));
        assert_eq!(queue.next().await.map(|request| request.id), Some(1));
        session.lose();
        assert!(matches!(sent.await, (_, _, Reply::Lost { sent: true })));
        assert!(matches!(unsent.await, (_, _, Reply::Lost { sent: false })));
        assert!(queue.next().await.is_none(), "what was said to be unsent was sent");
        assert!(session.put(Question::Report(v1::ReportPushRequest::default())).is_none());
    }

    #[tokio::test]
    async fn a_question_that_control_cannot_read_is_answered_at_once() {
        let (session, _queue) = Session::new();
        let waiting = put(&session);
        session.answer(1, None);
        assert!(matches!(waiting.await, (_, _, Reply::Unreadable)));
        assert!(session.is_idle());
    }

    #[tokio::test]
    async fn a_silent_session_is_tried_with_one_question_after_a_while() {
        let (session, _queue) = Session::new();
        let waiting = put(&session);
        let (now, later) = (Instant::now(), Instant::now() + TRIAL);
        let silent = |trial| session.load(trial).unwrap().passed_over;
        assert!(!silent(None));
        session.suspect();
        assert!(silent(Some(now)) && silent(Some(later)), "a question waits for it");
        drop(waiting);
        let later = later + TRIAL;
        assert!(silent(Some(now)) && silent(None) && !silent(Some(later)));
        let trial = put(&session);
        assert!(silent(Some(later)), "it was tried twice");
        session.answer(trial.id, None);
        assert!(!silent(None));
    }

    #[tokio::test]
    async fn what_is_permitted_after_its_asker_has_left_is_given_back_even_by_a_full_session() {
        let (session, mut queue) = Session::new();
        let permit = || {
            use v1::authorize_response::Verdict;
            let verdict = Some(Verdict::Permit(v1::Permit::default()));
            Some(Answer::Authorize(v1::AuthorizeResponse { verdict }))
        };
        let (left, answered, waits) = (put(&session), put(&session), put(&session));
        while let Some(filler) = session.put(Question::Report(v1::ReportPushRequest::default())) {
            drop(filler);
        }
        drop(left);
        session.answer(1, permit());
        session.answer(2, permit());
        session.answer(3, permit());
        // The answer has come, and is not looked at.
        drop(answered);
        assert_eq!(queue.next().await.map(|request| (request.id, request.ended)), Some((1, vec![1, 2])));
        drop(waits.await);
        assert_eq!(queue.next().await.map(|request| (request.id, request.ended)), Some((2, vec![3])));
    }

    #[tokio::test]
    async fn a_full_queue_takes_no_question() {
        let (session, _queue) = Session::new();
        let waiting: Vec<_> = (0..QUEUE).map(|_| put(&session)).collect();
        assert_eq!(session.load(None).map(|load| load.pending), None);
        assert!(session.put(Question::Report(v1::ReportPushRequest::default())).is_none());
        drop(waiting);
        assert!(session.is_idle());
    }
}
