//! The leases of pushes: how long a data plane may go on writing a push upstream without asking again.
//!
//! A lease is given on a run that the store has just called live, and counts at the data plane from the sending of
//! its question. So whichever control gave it, it is over [`LEASE`] after the end of its run was durable: that is
//! the most that [`settled()`] waits.

mod registry;
mod settled;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use gitdoor_proto::{Reason, RunId};
use tokio::sync::broadcast;
use tokio::time::Instant;

use self::registry::Registry;
pub use self::settled::settled;
use crate::fleet::ControlId;
use crate::metrics;
use crate::push::PushId;
use crate::store::Claimed;

/// How long a push may write upstream without asking again.
pub const LEASE: Duration = Duration::from_secs(2);
/// How long after its lease a push may still report, before it is recorded as unknown.
pub const LOST_AFTER: Duration = Duration::from_secs(10);
/// Most pushes of a run at once.
pub const PUSHES: u32 = 4;
/// A control that has not said for this long that it is alive looks each push up before it renews it. Others take it
/// for dead a little later.
const DOUBTFUL: Duration = Duration::from_secs(10);
/// Ends of runs that a session may lag behind before it is closed.
const NEWS: usize = 4096;

/// The end of a run, as news for data planes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// The run.
    pub run: RunId,
    /// How it ended.
    pub end: End,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// By its owner.
    Revoked,
    /// By its time.
    Expired,
}

impl From<End> for Reason {
    fn from(end: End) -> Self {
        match end {
            End::Revoked => Self::RunRevoked,
            End::Expired => Self::RunExpired,
        }
    }
}

/// What a sweep found.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Runs whose time was over when it was last read; it may have been prolonged since.
    pub due: Vec<RunId>,
    /// Pushes whose data plane has not been heard of for [`LOST_AFTER`] after their lease.
    pub lost: Vec<(RunId, PushId)>,
}

/// The pushes that this control answers for, with their leases, and the runs that ended lately.
#[derive(Debug)]
pub struct Leases {
    control: ControlId,
    /// When this control last said that it is alive.
    beaten: Mutex<Instant>,
    registry: Mutex<Registry>,
    news: broadcast::Sender<Ended>,
}

impl Leases {
    /// No leases yet, of a control.
    #[must_use]
    pub fn new(control: ControlId) -> Self {
        Self {
            control,
            beaten: Mutex::new(Instant::now()),
            registry: Mutex::default(),
            news: broadcast::channel(NEWS).0,
        }
    }

    /// The control that gives them.
    #[must_use]
    pub fn control(&self) -> ControlId {
        self.control
    }

    fn registry(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the registry and measures what is in it then.
    fn change<T>(&self, change: impl FnOnce(&mut Registry) -> T) -> T {
        let mut registry = self.registry();
        let done = change(&mut registry);
        metrics::leases(registry.len());
        done
    }

    /// Notes that this control has just said that it is alive.
    pub fn beaten(&self) {
        *self.beaten.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// One that has not said for a while that it is alive may have lost all of its pushes to others.
    fn is_doubtful(&self) -> bool {
        self.beaten.lock().unwrap_or_else(PoisonError::into_inner).elapsed() >= DOUBTFUL
    }

    /// Whether this control answers for a push, as far as is known.
    #[must_use]
    pub fn owns(&self, run: &RunId, push: PushId) -> bool {
        !self.is_doubtful() && self.registry().owns(run, push)
    }

    /// Renews the lease of a push, on a run that was found live. False: this control does not answer for the push.
    pub fn renew(&self, run: &RunId, push: PushId, expires_at: SystemTime) -> Result<bool, End> {
        let doubtful = self.is_doubtful();
        let mut registry = self.registry();
        if doubtful || !registry.owns(run, push) {
            return Ok(false);
        }
        registry.hold(run, push, expires_at, Instant::now()).map(|()| true)
    }

    /// Grants a lease to a push that this control answers for from now on. How many the run has counts when its row is
    /// written: those of every control.
    pub fn hold(&self, run: &RunId, push: PushId, expires_at: SystemTime) -> Result<(), End> {
        self.change(|registry| registry.hold(run, push, expires_at, Instant::now()))
    }

    /// Ends the lease of a push whose last byte went up; its outcome is still awaited.
    pub fn sent(&self, run: &RunId, push: PushId, expires_at: SystemTime) {
        self.change(|registry| registry.sent(run, push, expires_at, Instant::now()));
    }

    /// Forgets a push: it never began, its end is recorded, or another control answers for it.
    pub fn close(&self, run: &RunId, push: PushId) {
        self.change(|registry| registry.close(run, push));
    }

    /// The pushes of a run that are known here and whose leases have lapsed: they do not count against its limit.
    #[must_use]
    pub fn lapsed(&self, run: &RunId) -> Vec<PushId> {
        self.registry().lapsed(run, Instant::now())
    }

    /// Every push that is known here.
    #[must_use]
    pub fn known(&self) -> HashSet<PushId> {
        self.registry().pushes().collect()
    }

    /// Takes in which open pushes this control answers for. One that is new here gets a lease that has lapsed; one
    /// of those that were `known` before the ledger was read, and is not among them, has gone to another control
    /// or is closed. Returns how many are new.
    pub fn claimed(&self, known: &HashSet<PushId>, pushes: Vec<Claimed>) -> usize {
        let own = pushes.iter().map(|claimed| claimed.push).collect();
        self.change(|registry| {
            registry.disown(known, &own);
            let before = registry.len();
            for Claimed { push, run, expires_at } in pushes {
                registry.enter(&run, push, expires_at, Instant::now());
            }
            registry.len().saturating_sub(before)
        })
    }

    /// Ends a run: no lease of it is granted or renewed any more, and every session is told, once. To be called
    /// after the end is durable.
    pub fn end(&self, run: &RunId, end: End) {
        self.note(run, end, None);
    }

    /// Ends a run whose time was over at this time. One that proves to have more was prolonged, and goes on.
    pub fn expire(&self, run: &RunId, expires_at: SystemTime) {
        self.note(run, End::Expired, Some(expires_at));
    }

    fn note(&self, run: &RunId, end: End, expired_at: Option<SystemTime>) {
        if self.registry().end(run, end, expired_at, Instant::now()) {
            metrics::revocation(Reason::from(end).as_str());
            // No receiver: no session is open.
            drop(self.news.send(Ended { run: run.clone(), end }));
        }
    }

    /// Notes when a run that was adopted here expires: every session is told then, as the end may be an earlier one
    /// than was granted.
    pub fn adopt(&self, run: &RunId, expires_at: SystemTime) {
        self.registry().adopt(run, expires_at);
    }

    /// Notes that a run that is live expires at another time.
    pub fn prolong(&self, run: &RunId, expires_at: SystemTime) {
        self.registry().prolong(run, expires_at);
    }

    /// The ends of runs from now on, and those of the last minutes: a session that replaces a lost one misses none.
    #[must_use]
    pub fn news(&self) -> (Vec<Ended>, broadcast::Receiver<Ended>) {
        let receiver = self.news.subscribe();
        (self.registry().recently_ended(), receiver)
    }

    /// Says which runs seem to be over, to be looked up and then ended or prolonged; and which pushes are lost, to
    /// be recorded as unknown and then closed.
    #[must_use]
    pub fn sweep(&self, now: SystemTime) -> Swept {
        let mut registry = self.registry();
        registry.forget_ends(Instant::now());
        Swept { due: registry.due(now), lost: registry.lost(Instant::now()) }
    }
}
