//! What goes out on a session: its questions, each with the places that were given back since the one before.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use gitdoor_proto::v1;
use tokio::sync::mpsc;
use tokio::time::{Instant, Sleep, sleep};
use tokio_stream::Stream;

use super::place::GivenBack;

/// How long a place waits for a question that it can go with, where some went a moment ago. A session that is busy so
/// sends and wakes for no place alone, and a run that asks again at once finds its place free.
const WAIT: Duration = Duration::from_millis(10);

/// The messages of a session, in order.
pub(super) struct Outgoing {
    queue: mpsc::Receiver<v1::SessionRequest>,
    sent: Arc<Sent>,
    given_back: Arc<GivenBack>,
    wait: Pin<Box<Sleep>>,
    /// Whether something went out so lately that places wait.
    waits: bool,
}

impl Outgoing {
    pub(super) fn new(
        queue: mpsc::Receiver<v1::SessionRequest>,
        sent: Arc<Sent>,
        given_back: Arc<GivenBack>,
    ) -> Self {
        Self { queue, sent, given_back, wait: Box::pin(sleep(WAIT)), waits: false }
    }

    fn begin_wait(&mut self) {
        if !self.waits {
            self.wait.as_mut().reset(Instant::now() + WAIT);
            self.waits = true;
        }
    }

    /// Places alone, once there are some and none has to wait.
    fn poll_places(&mut self, context: &mut Context<'_>) -> Poll<v1::SessionRequest> {
        loop {
            if self.waits {
                ready!(self.wait.as_mut().poll(context));
                self.waits = false;
            }
            let ended = self.given_back.take();
            if !ended.is_empty() {
                self.begin_wait();
                return Poll::Ready(v1::SessionRequest { id: 0, ended, question: None });
            }
            if self.given_back.rest(context) {
                return Poll::Pending;
            }
        }
    }
}

impl Stream for Outgoing {
    type Item = v1::SessionRequest;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<v1::SessionRequest>> {
        match self.queue.poll_recv(context) {
            Poll::Ready(Some(request)) if self.sent.take(request.id) => {
                self.begin_wait();
                let ended = self.given_back.take();
                Poll::Ready(Some(v1::SessionRequest { ended, ..request }))
            }
            Poll::Ready(Some(_) | None) => Poll::Ready(None),
            Poll::Pending => self.poll_places(context).map(Some),
        }
    }
}

/// The last question that the connection has taken from the queue: a later one was not sent.
pub(super) struct Sent(AtomicU64);

impl Sent {
    const ENDED: u64 = u64::MAX;

    /// None was taken yet.
    pub(super) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// False once the session is over: what is still in the queue then stays there.
    fn take(&self, id: u64) -> bool {
        let advance = |last| (last != Self::ENDED).then_some(id);
        self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, advance).is_ok()
    }

    /// Lets nothing more be taken; the last that was.
    pub(super) fn end(&self) -> u64 {
        self.0.swap(Self::ENDED, Ordering::AcqRel)
    }

    /// The last that was taken.
    #[cfg(test)]
    pub(super) fn last(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use gitdoor_proto::v1::session_request::Question;
    use tokio::time::timeout;
    use tokio_stream::StreamExt as _;

    use super::*;
    use crate::gate::place::Place;

    struct Session {
        queue: mpsc::Sender<v1::SessionRequest>,
        given_back: Arc<GivenBack>,
        outgoing: Outgoing,
        next: u64,
    }

    impl Session {
        fn new() -> Self {
            let (queue, receiver) = mpsc::channel(4);
            let given_back = Arc::new(GivenBack::default());
            let outgoing = Outgoing::new(receiver, Arc::new(Sent::new()), Arc::clone(&given_back));
            Self { queue, given_back, outgoing, next: 0 }
        }

        fn ask(&mut self) -> bool {
            self.next += 1;
            let question = Some(Question::Report(v1::ReportPushRequest::default()));
            self.queue.try_send(v1::SessionRequest { id: self.next, question, ended: Vec::new() }).is_ok()
        }

        fn give_back(&self, ids: impl IntoIterator<Item = u64>) {
            ids.into_iter().for_each(|id| drop(Place::of(id, &self.given_back)));
        }

        /// The id and the places of the next message, and how long it took to come.
        async fn next(&mut self) -> (u64, Vec<u64>, Duration) {
            let start = Instant::now();
            let message = self.outgoing.next().await.unwrap();
            assert_eq!(message.id == 0, message.question.is_none());
            (message.id, message.ended, start.elapsed())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn places_go_with_the_next_question_and_alone_where_none_comes() {
        let mut session = Session::new();
        session.ask();
        session.give_back([7, 8]);
        assert_eq!(session.next().await, (1, vec![7, 8], Duration::ZERO));
        session.give_back([9]);
        let early = timeout(WAIT / 2, session.outgoing.next()).await;
        assert!(early.is_err(), "a busy session has sent {early:?}");
        session.ask();
        session.give_back([10]);
        assert_eq!(session.next().await, (2, vec![9, 10], Duration::ZERO));
        session.give_back([11]);
        session.give_back([12]);
        let (id, ended, waited) = session.next().await;
        assert_eq!((id, ended), (0, vec![11, 12]));
        assert!(waited <= WAIT * 2, "{waited:?}");
        let nothing = timeout(WAIT * 10, session.outgoing.next()).await;
        assert!(nothing.is_err(), "{nothing:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_session_is_woken_by_the_first_place() {
        let mut session = Session::new();
        let given_back = Arc::clone(&session.given_back);
        let ((), (id, ended, waited)) = tokio::join!(
            async {
                tokio::time::sleep(WAIT * 100).await;
                drop(Place::of(3, &given_back));
            },
            session.next()
        );
        assert_eq!((id, ended, waited), (0, vec![3], WAIT * 100));
    }

    #[tokio::test(start_paused = true)]
    async fn no_place_is_lost_where_the_queue_is_full_and_none_makes_a_message_too_large() {
        let mut session = Session::new();
        while session.ask() {}
        session.give_back(1..=2500);
        let mut told = Vec::new();
        for id in 1..=4 {
            let (next, ended, _) = session.next().await;
            assert!(next == id && ended.len() <= 1024, "{}", ended.len());
            told.extend(ended);
        }
        assert_eq!(told, (1..=2500).collect::<Vec<_>>());
        session.give_back(1..=1025);
        assert_eq!(session.next().await.1.len(), 1024);
        assert_eq!(session.next().await.1, [1025]);
    }
}
