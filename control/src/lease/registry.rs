//! The pushes in progress and the runs that ended lately, under one lock.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, SystemTime};

use gitdoor_proto::RunId;
use tokio::time::Instant;

use super::{End, Ended, LEASE, LOST_AFTER};
use crate::push::PushId;

/// How long the end of a run is remembered: longer than any question takes that found the run live before it,
/// than a data plane takes to come back after it lost its session, and than it is found among the latest ends.
const REMEMBERED: Duration = Duration::from_mins(3);

/// What the lock is around.
#[derive(Debug, Default)]
pub(super) struct Registry {
    runs: HashMap<RunId, Pushes>,
    /// Runs that were adopted here, until their end. A data plane knows the time that a run had when it was asked for;
    /// it has to be told of an earlier end, whether or not the run has a push.
    adopted: HashMap<RunId, SystemTime>,
    ends: HashMap<RunId, Remembered>,
}

/// The end of a run.
#[derive(Debug)]
struct Remembered {
    end: End,
    /// When the run's time was over, where that was its end.
    expired_at: Option<SystemTime>,
    noted_at: Instant,
}

impl Remembered {
    /// A run that was found live with more time than it ended with was prolonged meanwhile.
    fn is_refuted_by(&self, expires_at: SystemTime) -> bool {
        self.expired_at.is_some_and(|expired_at| expires_at > expired_at)
    }
}

#[derive(Debug)]
struct Pushes {
    expires_at: SystemTime,
    leases: HashMap<PushId, Lease>,
}

#[derive(Debug)]
struct Lease {
    /// When it lapses, or would have, had the push not ended it.
    until: Instant,
    /// The last byte went up.
    sent: bool,
    /// This control answers for it in the ledger, as far as is known.
    own: bool,
}

impl Lease {
    /// It may write, or its outcome is awaited.
    fn in_progress(&self, now: Instant) -> bool {
        self.sent || self.until > now
    }
}

impl Registry {
    /// Grants or renews a lease, unless the run has ended. What is sent stays sent.
    pub(super) fn hold(
        &mut self,
        run: &RunId,
        push: PushId,
        expires_at: SystemTime,
        now: Instant,
    ) -> Result<(), End> {
        self.forget_refuted(run, expires_at);
        if let Some(Remembered { end, .. }) = self.ends.get(run) {
            return Err(*end);
        }
        let lease = self.lease(run, push, expires_at, now);
        lease.until = now + LEASE;
        lease.own = true;
        Ok(())
    }

    /// Ends a lease with the last byte of its push.
    pub(super) fn sent(&mut self, run: &RunId, push: PushId, expires_at: SystemTime, now: Instant) {
        let lease = self.lease(run, push, expires_at, now);
        lease.sent = true;
        lease.until = now + LEASE;
    }

    /// Enters a push whose lease has lapsed, unless it is known.
    pub(super) fn enter(&mut self, run: &RunId, push: PushId, expires_at: SystemTime, now: Instant) {
        self.lease(run, push, expires_at, now);
    }

    /// Every caller has just read when the run expires.
    fn lease(&mut self, run: &RunId, push: PushId, expires_at: SystemTime, now: Instant) -> &mut Lease {
        let pushes = self.runs.entry(run.clone()).or_insert_with(|| Pushes { expires_at, leases: HashMap::new() });
        pushes.expires_at = expires_at;
        pushes.leases.entry(push).or_insert(Lease { until: now, sent: false, own: true })
    }

    /// Forgets a push.
    pub(super) fn close(&mut self, run: &RunId, push: PushId) {
        if let Some(pushes) = self.runs.get_mut(run) {
            pushes.leases.remove(&push);
            if pushes.leases.is_empty() {
                self.runs.remove(run);
            }
        }
    }

    /// Notes the end of a run. The first stands, but that a revocation is told of one that had expired, too; false:
    /// it was known.
    pub(super) fn end(&mut self, run: &RunId, end: End, expired_at: Option<SystemTime>, now: Instant) -> bool {
        if self.ends.get(run).is_some_and(|known| known.end == end || known.end == End::Revoked) {
            return false;
        }
        self.adopted.remove(run);
        self.ends.insert(run.clone(), Remembered { end, expired_at, noted_at: now });
        true
    }

    fn forget_refuted(&mut self, run: &RunId, expires_at: SystemTime) {
        if self.ends.get(run).is_some_and(|end| end.is_refuted_by(expires_at)) {
            self.ends.remove(run);
        }
    }

    /// Notes when a run expires.
    pub(super) fn prolong(&mut self, run: &RunId, expires_at: SystemTime) {
        self.forget_refuted(run, expires_at);
        if let Some(pushes) = self.runs.get_mut(run) {
            pushes.expires_at = expires_at;
        }
        if let Some(adopted) = self.adopted.get_mut(run) {
            *adopted = expires_at;
        }
    }

    /// Notes when a run that was adopted expires, so that its end is told.
    pub(super) fn adopt(&mut self, run: &RunId, expires_at: SystemTime) {
        self.adopted.insert(run.clone(), expires_at);
        self.prolong(run, expires_at);
    }

    /// Pushes of a run that do not count against its limit.
    pub(super) fn lapsed(&self, run: &RunId, now: Instant) -> Vec<PushId> {
        self.leases(run).filter(|(_, lease)| !lease.in_progress(now)).map(|(push, _)| *push).collect()
    }

    /// Whether a push is known and this control's own.
    pub(super) fn owns(&self, run: &RunId, push: PushId) -> bool {
        self.leases(run).any(|(known, lease)| *known == push && lease.own)
    }

    /// Every push in the registry.
    pub(super) fn pushes(&self) -> impl Iterator<Item = PushId> {
        self.runs.values().flat_map(|pushes| pushes.leases.keys().copied())
    }

    /// Notes that of the pushes `known` only those in `own` are this control's.
    pub(super) fn disown(&mut self, known: &HashSet<PushId>, own: &HashSet<PushId>) {
        for (push, lease) in self.runs.values_mut().flat_map(|pushes| &mut pushes.leases) {
            lease.own &= own.contains(push) || !known.contains(push);
        }
    }

    fn leases(&self, run: &RunId) -> impl Iterator<Item = (&PushId, &Lease)> {
        self.runs.get(run).into_iter().flat_map(|pushes| &pushes.leases)
    }

    pub(super) fn len(&self) -> usize {
        self.runs.values().map(|pushes| pushes.leases.len()).sum()
    }

    /// Runs with a push in progress, or adopted, whose time seems to be over and whose end was not told.
    pub(super) fn due(&self, now: SystemTime) -> Vec<RunId> {
        let pushing = self.runs.iter().map(|(run, pushes)| (run, pushes.expires_at));
        let adopted = self.adopted.iter().map(|(run, expires_at)| (run, *expires_at));
        let over = |(run, expires_at): &(&RunId, SystemTime)| *expires_at <= now && !self.ends.contains_key(*run);
        let due: HashSet<_> = pushing.chain(adopted).filter(over).map(|(run, _)| run).collect();
        due.into_iter().cloned().collect()
    }

    /// Pushes whose data plane has not been heard of for too long.
    pub(super) fn lost(&self, now: Instant) -> Vec<(RunId, PushId)> {
        let lost = |lease: &Lease| lease.until + LOST_AFTER <= now;
        self.runs
            .iter()
            .flat_map(|(run, pushes)| pushes.leases.iter().map(move |(push, lease)| (run, *push, lease)))
            .filter(|(_, _, lease)| lost(lease))
            .map(|(run, push, _)| (run.clone(), push))
            .collect()
    }

    /// Forgets ends of long ago, but not of runs that still have a push here.
    pub(super) fn forget_ends(&mut self, now: Instant) {
        let runs = &self.runs;
        self.ends.retain(|run, end| end.noted_at + REMEMBERED > now || runs.contains_key(run));
    }

    pub(super) fn recently_ended(&self) -> Vec<Ended> {
        self.ends.iter().map(|(run, known)| Ended { run: run.clone(), end: known.end }).collect()
    }
}
