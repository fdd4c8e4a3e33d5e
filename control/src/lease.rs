//! The leases of pushes: how long a data plane may go on writing a push upstream without asking again.
//!
//! Ending a run ends its leases: none is renewed after it, and [`Leases::settled`] returns once none can still be
//! in use. A lease counts here from its answer, at the data plane from its question, so it ends there first.

mod registry;

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use gitdoor_proto::{Reason, RunId};
use tokio::sync::{Notify, broadcast};
use tokio::time::{Instant, sleep_until, timeout_at};

use self::registry::Registry;
use crate::metrics;
use crate::push::PushId;

/// How long a push may write upstream without asking again.
pub const LEASE: Duration = Duration::from_secs(2);
/// How long after its lease a push may still report, before it is recorded as unknown.
pub const LOST_AFTER: Duration = Duration::from_secs(10);
/// Most pushes of a run at once.
pub const PUSHES: usize = 4;
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

/// Why a push got no lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoLease {
    /// The run has too many pushes in progress.
    TooMany,
    /// The run ended.
    Ended(End),
}

/// Every lease that this control granted.
#[derive(Debug)]
pub struct Leases {
    registry: Mutex<Registry>,
    /// Woken when a lease ends before its time.
    ended: Notify,
    news: broadcast::Sender<Ended>,
    /// Leases of before this are not known here; they are over one lease later.
    started: Instant,
}

impl Default for Leases {
    fn default() -> Self {
        Self::new()
    }
}

impl Leases {
    /// No leases, as of now.
    #[must_use]
    pub fn new() -> Self {
        Self {
            registry: Mutex::default(),
            ended: Notify::new(),
            news: broadcast::channel(NEWS).0,
            started: Instant::now(),
        }
    }

    fn registry(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Grants the lease of a new push. To be called before its row is written: a run that is revoked after the
    /// row must find the lease.
    pub fn grant(&self, run: &RunId, push: PushId, expires_at: SystemTime) -> Result<(), NoLease> {
        let mut registry = self.registry();
        let now = Instant::now();
        if registry.in_progress(run, now) >= PUSHES {
            return Err(NoLease::TooMany);
        }
        registry.hold(run, push, expires_at, now).map_err(NoLease::Ended)?;
        metrics::leases(registry.len());
        Ok(())
    }

    /// Renews the lease of a push whose row is open and whose run was found live; also one that a control before
    /// this one granted.
    pub fn renew(&self, run: &RunId, push: PushId, expires_at: SystemTime) -> Result<(), NoLease> {
        self.registry().hold(run, push, expires_at, Instant::now()).map_err(NoLease::Ended)
    }

    /// Ends the lease of a push whose last byte went up; its outcome is still awaited.
    pub fn sent(&self, run: &RunId, push: PushId, expires_at: SystemTime) {
        self.registry().sent(run, push, expires_at, Instant::now());
        self.ended.notify_waiters();
    }

    /// Whether a push is in progress here.
    #[must_use]
    pub fn knows(&self, run: &RunId, push: PushId) -> bool {
        self.registry().knows(run, push)
    }

    /// Forgets a push: it never began, or its end is recorded.
    pub fn close(&self, run: &RunId, push: PushId) {
        let mut registry = self.registry();
        registry.close(run, push);
        metrics::leases(registry.len());
        drop(registry);
        self.ended.notify_waiters();
    }

    /// Ends a run: no lease of it is granted or renewed any more, and every session is told. To be called after
    /// the end is durable.
    pub fn end(&self, run: &RunId, end: End) {
        self.registry().end(run, end, Instant::now());
        metrics::revocation(Reason::from(end).as_str());
        // No receiver: no session is open.
        drop(self.news.send(Ended { run: run.clone(), end }));
    }

    /// Returns once no lease of an ended run can still be in use. `open` are its open pushes in the store: those
    /// that are not known here were granted before this control started.
    pub async fn settled(&self, run: &RunId, open: &[PushId]) {
        if open.iter().any(|push| !self.registry().knows(run, *push)) {
            sleep_until(self.started + LEASE).await;
        }
        loop {
            let mut woken = std::pin::pin!(self.ended.notified());
            // Registered before the look, so that an end between the two is not missed.
            woken.as_mut().enable();
            let Some(until) = self.registry().last_until(run, Instant::now()) else {
                return;
            };
            // Woken or not: look again.
            drop(timeout_at(until, woken).await);
        }
    }

    /// The ends of runs from now on, and those of the last minute: a session that replaces a lost one misses none.
    #[must_use]
    pub fn news(&self) -> (Vec<Ended>, broadcast::Receiver<Ended>) {
        let receiver = self.news.subscribe();
        (self.registry().recently_ended(), receiver)
    }

    /// Ends the runs whose time is over, and returns the pushes whose data plane has not been heard of for
    /// [`LOST_AFTER`] after their lease. Those are to be recorded as unknown and then closed.
    #[must_use]
    pub fn sweep(&self, now: SystemTime) -> Vec<(RunId, PushId)> {
        let (expired, lost) = {
            let mut registry = self.registry();
            registry.forget_ends(Instant::now());
            (registry.expired(now), registry.lost(Instant::now()))
        };
        for run in expired {
            self.end(&run, End::Expired);
        }
        lost
    }

    /// Whether pushes of before this control's start have had their time to be heard of.
    #[must_use]
    pub fn predecessors_are_over(&self) -> bool {
        Instant::now() >= self.started + LEASE + LOST_AFTER
    }

    /// Of these, the pushes that are not known here.
    #[must_use]
    pub fn unknown(&self, pushes: &[PushId]) -> Vec<PushId> {
        let registry = self.registry();
        let known: HashSet<PushId> = registry.pushes().collect();
        pushes.iter().filter(|push| !known.contains(*push)).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use tokio::time::advance;

    const FAR: SystemTime = SystemTime::UNIX_EPOCH;

    fn far() -> SystemTime {
        FAR + Duration::from_hours(1)
    }

    fn run() -> RunId {
        RunId::parse("r").unwrap()
    }

    fn push(number: u8) -> PushId {
        PushId::from_bytes([number; 16])
    }

    /// How long an ended run takes to settle.
    async fn settling(leases: &Leases, open: &[PushId]) -> Duration {
        let start = Instant::now();
        leases.settled(&run(), open).await;
        start.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn a_run_without_pushes_settles_at_once() {
        let leases = Leases::new();
        leases.end(&run(), End::Revoked);
        assert_eq!(settling(&leases, &[]).await, Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_run_settles_when_its_last_lease_has_lapsed() {
        let leases = Leases::new();
        leases.grant(&run(), push(1), far()).unwrap();
        advance(Duration::from_secs(1)).await;
        leases.renew(&run(), push(1), far()).unwrap();
        advance(Duration::from_millis(500)).await;
        leases.end(&run(), End::Revoked);
        let took = settling(&leases, &[push(1)]).await;
        assert!((Duration::from_millis(1_500)..Duration::from_millis(1_510)).contains(&took), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn no_lease_is_granted_or_renewed_after_its_run_ended() {
        let leases = Leases::new();
        leases.grant(&run(), push(1), far()).unwrap();
        leases.end(&run(), End::Revoked);
        assert_eq!(leases.renew(&run(), push(1), far()), Err(NoLease::Ended(End::Revoked)));
        assert_eq!(leases.renew(&run(), push(2), far()), Err(NoLease::Ended(End::Revoked)));
        assert_eq!(leases.grant(&run(), push(3), far()), Err(NoLease::Ended(End::Revoked)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_push_that_is_sent_or_reported_keeps_no_revocation_waiting() {
        for report in [false, true] {
            let leases = Arc::new(Leases::new());
            leases.grant(&run(), push(1), far()).unwrap();
            leases.end(&run(), End::Revoked);
            let waiting = tokio::spawn({
                let leases = leases.clone();
                async move { settling(&leases, &[push(1)]).await }
            });
            advance(Duration::from_millis(300)).await;
            tokio::task::yield_now().await;
            if report {
                leases.close(&run(), push(1));
            } else {
                leases.sent(&run(), push(1), far());
            }
            assert!(waiting.await.unwrap() < Duration::from_millis(400));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn leases_of_a_control_before_this_one_are_waited_for() {
        let leases = Leases::new();
        advance(Duration::from_millis(500)).await;
        leases.end(&run(), End::Revoked);
        let took = settling(&leases, &[push(1)]).await;
        assert!((Duration::from_millis(1_500)..Duration::from_millis(1_510)).contains(&took), "{took:?}");
        assert_eq!(settling(&leases, &[push(1)]).await, Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_run_has_four_pushes_at_once() {
        let leases = Leases::new();
        for number in 0..4 {
            leases.grant(&run(), push(number), far()).unwrap();
        }
        assert_eq!(leases.grant(&run(), push(4), far()), Err(NoLease::TooMany));
        leases.grant(&RunId::parse("s").unwrap(), push(5), far()).unwrap();
        leases.close(&run(), push(0));
        leases.grant(&run(), push(4), far()).unwrap();
        leases.sent(&run(), push(1), far());
        assert_eq!(leases.grant(&run(), push(6), far()), Err(NoLease::TooMany));
        advance(LEASE + Duration::from_millis(1)).await;
        leases.grant(&run(), push(6), far()).unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_push_is_lost_ten_seconds_after_its_lease_and_not_before() {
        let leases = Leases::new();
        leases.grant(&run(), push(1), far()).unwrap();
        leases.grant(&run(), push(2), far()).unwrap();
        advance(Duration::from_millis(11_999)).await;
        leases.sent(&run(), push(2), far());
        assert_eq!(leases.sweep(FAR), []);
        advance(Duration::from_millis(2)).await;
        assert_eq!(leases.sweep(FAR), [(run(), push(1))]);
        leases.close(&run(), push(1));
        assert_eq!(leases.sweep(FAR), []);
    }

    #[tokio::test(start_paused = true)]
    async fn the_expiry_of_a_run_is_told_once_and_ends_its_leases() {
        let leases = Leases::new();
        let (_, mut news) = leases.news();
        leases.grant(&run(), push(1), far()).unwrap();
        assert_eq!(leases.sweep(far() - Duration::from_secs(1)), []);
        assert!(news.is_empty());
        for _ in 0..3 {
            assert_eq!(leases.sweep(far()), []);
        }
        assert_eq!(news.recv().await.unwrap(), Ended { run: run(), end: End::Expired });
        assert!(news.is_empty());
        assert_eq!(leases.renew(&run(), push(1), far()), Err(NoLease::Ended(End::Expired)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_new_session_hears_of_the_ends_of_the_last_minute() {
        let leases = Leases::new();
        leases.end(&run(), End::Revoked);
        assert_eq!(leases.news().0, [Ended { run: run(), end: End::Revoked }]);
        advance(Duration::from_secs(61)).await;
        assert_eq!(leases.sweep(FAR), []);
        assert_eq!(leases.news().0, []);
    }

    #[tokio::test(start_paused = true)]
    async fn pushes_of_before_a_restart_are_those_that_are_not_renewed_here() {
        let leases = Leases::new();
        leases.renew(&run(), push(1), far()).unwrap();
        assert!(!leases.predecessors_are_over());
        advance(LEASE + LOST_AFTER).await;
        assert!(leases.predecessors_are_over());
        assert_eq!(leases.unknown(&[push(1), push(2)]), [push(2)]);
    }
}
