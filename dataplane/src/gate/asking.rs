//! One question on its way to an answer: put to a session, and put again to another where that does no harm.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use gitdoor_proto::v1::session_request::Question;
use gitdoor_proto::v1::session_response::Answer;
use tokio::task::yield_now;
use tokio::time::{Instant, timeout_at};

use super::GateError;
use super::place::Place;
use super::pool::{Choice, Pool, Wish};
use super::session::{Reply, Session, Waiting};
use super::verdict;
use crate::metrics::{self, Again};

/// Sessions that a question may be put to.
const ATTEMPTS: usize = 3;
/// Least time between two looks for another session.
const LOOK: Duration = Duration::from_millis(20);

/// An answer, and where it comes from.
pub(super) struct Answered {
    /// The answer.
    pub(super) answer: Answer,
    /// When the question was put to the session that answered.
    pub(super) asked: Instant,
    /// That session.
    pub(super) session: Arc<Session>,
    /// The place that the permit took.
    pub(super) place: Option<Place>,
}

/// A question under way. Dropped, it is nobody's: late answers fall to the floor.
pub(super) struct Asking<'a> {
    pool: &'a Pool,
    question: Question,
    wish: Wish<'a>,
    /// The whole of its time.
    time: Duration,
    by: Instant,
    /// Where it was put and may still be answered.
    under_way: Vec<Waiting>,
    /// Whose control has answered that its store does not.
    storeless: Vec<Arc<Session>>,
    attempts: usize,
}

impl<'a> Asking<'a> {
    /// A question that has so much time.
    pub(super) fn new(pool: &'a Pool, question: Question, wish: Wish<'a>, time: Duration) -> Self {
        let by = Instant::now() + time;
        Self { pool, question, wish, time, by, under_way: Vec::new(), storeless: Vec::new(), attempts: 0 }
    }

    /// Asks until there is an answer, or none can be had in time. That a store does not answer is one if nobody has
    /// another.
    pub(super) async fn answer(mut self) -> Result<Answered, GateError> {
        let mut outage = None;
        let answered = self.ask(&mut outage).await;
        answered.or_else(|error| outage.ok_or(error))
    }

    async fn ask(&mut self, outage: &mut Option<Answered>) -> Result<Answered, GateError> {
        let mut again = None;
        loop {
            self.put(again).await?;
            again = match self.next().await {
                None if Instant::now() >= self.by => return Err(GateError::Timeout),
                None => Some(Again::Silent),
                Some((session, asked, Reply::Answer { answer, place })) => {
                    // Whether a push was opened all the same, that answer does not say.
                    let elsewhere = self.wish.repeatable && verdict::is_outage(&answer);
                    let answered = Answered { answer, asked, session, place };
                    if !elsewhere {
                        return Ok(answered);
                    }
                    self.storeless.push(Arc::clone(&answered.session));
                    self.attempts -= 1;
                    outage.get_or_insert(answered);
                    Some(Again::Storeless)
                }
                Some((_, _, Reply::Unreadable)) => return Err(GateError::Unreadable),
                Some((_, _, Reply::Lost { sent: true })) if !self.wish.repeatable => return Err(GateError::Lost),
                Some((_, _, Reply::Lost { .. })) => Some(Again::Lost),
            };
        }
    }

    /// Puts the question to one more session, where there is one and it may be.
    async fn put(&mut self, again: Option<Again>) -> Result<(), GateError> {
        while self.under_way.is_empty() || (self.wish.repeatable && self.attempts < ATTEMPTS) {
            if self.attempts == ATTEMPTS {
                return Err(GateError::Unreachable);
            }
            let asked = self.under_way.iter().map(|waiting| &waiting.session).chain(&self.storeless);
            let has_it = |session: &Arc<Session>| asked.clone().any(|other| Arc::ptr_eq(other, session));
            match self.pool.choose(self.wish, has_it) {
                Choice::Session(session) => {
                    if let Some(waiting) = session.put(self.question.clone()) {
                        self.under_way.push(waiting);
                        self.attempts += 1;
                        again.into_iter().for_each(metrics::asked_again);
                        return Ok(());
                    }
                    // The driver of a session that ends is on this thread: it must have its turn.
                    yield_now().await;
                }
                Choice::Full | Choice::Dead if !self.under_way.is_empty() => return Ok(()),
                Choice::Full => return Err(GateError::Busy),
                Choice::Dead if !self.storeless.is_empty() => return Err(GateError::Unreachable),
                Choice::Dead => {
                    let lives = timeout_at(self.by, self.pool.connected()).await;
                    lives.map_err(|_elapsed| GateError::Unreachable)?;
                }
            }
        }
        Ok(())
    }

    /// The next thing that becomes of the question. None: for half of the time that it has left, nothing did.
    async fn next(&mut self) -> Option<(Arc<Session>, Instant, Reply)> {
        let now = Instant::now();
        let patience = self.by.saturating_duration_since(now) / 2;
        let until = (now + patience.max(LOOK)).min(self.by);
        let became = timeout_at(until, first(&mut self.under_way)).await.ok();
        if became.is_none() {
            // A little less than half of the time: a timer may be early by what it took to put the question.
            let late = |waiting: &&Waiting| waiting.asked.elapsed() * 2 + LOOK >= self.time;
            self.under_way.iter().filter(late).for_each(|waiting| waiting.session.suspect());
        }
        became
    }
}

/// The first of the waiting that has a reply, which waits no more.
async fn first(waiting: &mut Vec<Waiting>) -> (Arc<Session>, Instant, Reply) {
    poll_fn(|context| {
        let replies = waiting.iter_mut().map(|one| Pin::new(one).poll(context));
        let Some((place, Poll::Ready(reply))) = replies.enumerate().find(|(_, reply)| reply.is_ready()) else {
            return Poll::Pending;
        };
        waiting.swap_remove(place);
        Poll::Ready(reply)
    })
    .await
}
