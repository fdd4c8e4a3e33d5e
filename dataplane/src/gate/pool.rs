//! The pool: a session with every address of every control, kept by a driver each, and the choice among those that
//! live.

use std::fmt::Display;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use gitdoor_proto::endpoint::{Address, Connector, Endpoint};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::keeper::Keeper;
use super::session::{Load, Session};
use super::streams::Streams;

/// A name of control that can be looked up.
pub(super) trait Resolve: Display + Send + Sync + 'static {
    /// The places that it stands for now.
    fn resolve(&self) -> impl Future<Output = io::Result<Vec<Address>>> + Send;
}

impl Resolve for Endpoint {
    fn resolve(&self) -> impl Future<Output = io::Result<Vec<Address>>> + Send {
        Self::resolve(self)
    }
}

/// The times of a pool.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    /// How often names are looked up.
    pub(super) lookup: Duration,
    /// Time for the questions of a session that is let go.
    pub(super) grace: Duration,
}

/// The live sessions; dropped, they end.
pub(super) struct Pool {
    /// The sessions.
    pub(super) live: Arc<Live>,
    turn: AtomicUsize,
    _leave: DropGuard,
}

/// The sessions that live.
pub(super) struct Live(watch::Sender<Vec<Arc<Session>>>);

impl Live {
    /// Adds a session.
    pub(super) fn publish(&self, session: &Arc<Session>) {
        self.0.send_modify(|live| live.push(Arc::clone(session)));
    }

    /// Waits until so many sessions live.
    pub(super) async fn until(&self, enough: impl Fn(usize) -> bool) {
        // The sender is here, and so not gone.
        let _ = self.0.subscribe().wait_for(|live| enough(live.len())).await;
    }

    /// Takes a session out.
    pub(super) fn withdraw(&self, session: &Arc<Session>) {
        self.0.send_modify(|live| live.retain(|other| !Arc::ptr_eq(other, session)));
    }
}

/// Where an authorization is at home: with the session that answered for it last, whose control knows its push. That of
/// another control would have to take the push over.
pub(super) struct Home(Mutex<Weak<Session>>);

impl Home {
    /// At this session.
    pub(super) fn at(session: &Arc<Session>) -> Self {
        Self(Mutex::new(Arc::downgrade(session)))
    }

    /// From now on at this session.
    pub(super) fn move_to(&self, session: &Arc<Session>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(session);
    }

    fn is(&self, session: &Arc<Session>) -> bool {
        std::ptr::eq(self.0.lock().unwrap_or_else(PoisonError::into_inner).as_ptr(), Arc::as_ptr(session))
    }
}

/// What a question needs of a session.
#[derive(Clone, Copy)]
pub(super) struct Wish<'a> {
    /// Where it should go, if that can be.
    pub(super) home: Option<&'a Home>,
    /// Whether it may be put to another session too.
    pub(super) repeatable: bool,
}

/// A choice among the sessions.
pub(super) enum Choice {
    /// This one.
    Session(Arc<Session>),
    /// All that live have too many questions waiting, or have this one already.
    Full,
    /// None lives.
    Dead,
}

impl Pool {
    /// Starts the drivers on this runtime.
    pub(super) fn start(
        controls: Vec<impl Resolve>,
        connector: Connector,
        streams: Arc<Streams>,
        times: Times,
    ) -> Self {
        let live = Arc::new(Live(watch::channel(Vec::new()).0));
        let leave = CancellationToken::new();
        let keeper = Keeper::new(Arc::clone(&live), connector, streams, leave.clone(), times);
        tokio::spawn(keeper.keep(controls));
        Self { live, turn: AtomicUsize::new(0), _leave: leave.drop_guard() }
    }

    /// Waits until a session lives.
    pub(super) async fn connected(&self) {
        self.live.until(|sessions| sessions > 0).await;
    }

    /// The home, or else the less busy of two. A session that is passed over is the last resort.
    pub(super) fn choose(&self, wish: Wish<'_>, not: impl Fn(&Arc<Session>) -> bool) -> Choice {
        let live = self.live.0.borrow();
        if live.is_empty() {
            return Choice::Dead;
        }
        let trial = wish.repeatable.then(Instant::now);
        let load = |session: &Arc<Session>| if not(session) { None } else { session.load(trial) };
        let ready = live.iter().filter_map(|session| load(session).map(|load| (session, load)));
        let good = ready.clone().filter(|(_, load)| !load.passed_over);
        if let Some(home) = wish.home
            && let Some((session, _)) = good.clone().find(|(session, _)| home.is(session))
        {
            return Choice::Session(Arc::clone(session));
        }
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        match less_busy(good, turn).or_else(|| less_busy(ready, turn)) {
            Some(session) => Choice::Session(Arc::clone(session)),
            None => Choice::Full,
        }
    }
}

/// The less busy of two sessions, which are other ones with each turn.
fn less_busy<'a>(
    sessions: impl Iterator<Item = (&'a Arc<Session>, Load)> + Clone,
    turn: usize,
) -> Option<&'a Arc<Session>> {
    let count = sessions.clone().count();
    let first = turn.checked_rem(count)?;
    let two = sessions.cycle().skip(first).take(count.min(2));
    two.min_by_key(|(_, load)| load.pending).map(|(session, _)| session)
}
