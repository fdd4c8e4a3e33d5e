//! The pushes in progress and the runs that ended lately, under one lock.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use gitdoor_proto::RunId;
use tokio::time::Instant;

use super::{End, Ended, LEASE, LOST_AFTER};
use crate::push::PushId;

/// How long the end of a run is remembered: longer than any question takes that found the run live before it,
/// and than a data plane takes to come back after it lost its session.
const REMEMBERED: Duration = Duration::from_mins(1);

/// What the lock is around.
#[derive(Debug, Default)]
pub(super) struct Registry {
    runs: HashMap<RunId, Pushes>,
    ends: HashMap<RunId, (End, Instant)>,
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
}

impl Lease {
    fn writes(&self, now: Instant) -> bool {
        !self.sent && self.until > now
    }

    /// It may write, or its outcome is awaited.
    fn in_progress(&self, now: Instant) -> bool {
        self.sent || self.writes(now)
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
        if let Some((end, _)) = self.ends.get(run) {
            return Err(*end);
        }
        let lease = self.lease(run, push, expires_at, now);
        lease.until = now + LEASE;
        Ok(())
    }

    /// Ends a lease with the last byte of its push.
    pub(super) fn sent(&mut self, run: &RunId, push: PushId, expires_at: SystemTime, now: Instant) {
        let lease = self.lease(run, push, expires_at, now);
        lease.sent = true;
        lease.until = now + LEASE;
    }

    fn lease(&mut self, run: &RunId, push: PushId, expires_at: SystemTime, now: Instant) -> &mut Lease {
        let pushes = self.runs.entry(run.clone()).or_insert_with(|| Pushes { expires_at, leases: HashMap::new() });
        pushes.leases.entry(push).or_insert(Lease { until: now, sent: false })
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

    /// Notes the end of a run. The first stands.
    pub(super) fn end(&mut self, run: &RunId, end: End, now: Instant) {
        self.ends.entry(run.clone()).or_insert((end, now));
    }

    /// Pushes of a run that count against its limit.
    pub(super) fn in_progress(&self, run: &RunId, now: Instant) -> usize {
        self.leases(run).filter(|(_, lease)| lease.in_progress(now)).count()
    }

    /// When the last lease of a run lapses that may still be written under.
    pub(super) fn last_until(&self, run: &RunId, now: Instant) -> Option<Instant> {
        self.leases(run).filter(|(_, lease)| lease.writes(now)).map(|(_, lease)| lease.until).max()
    }

    pub(super) fn knows(&self, run: &RunId, push: PushId) -> bool {
        self.leases(run).any(|(known, _)| *known == push)
    }

    fn leases(&self, run: &RunId) -> impl Iterator<Item = (&PushId, &Lease)> {
        self.runs.get(run).into_iter().flat_map(|pushes| &pushes.leases)
    }

    /// Every push in the registry.
    pub(super) fn pushes(&self) -> impl Iterator<Item = PushId> {
        self.runs.values().flat_map(|pushes| pushes.leases.keys().copied())
    }

    pub(super) fn len(&self) -> usize {
        self.runs.values().map(|pushes| pushes.leases.len()).sum()
    }

    /// Runs with a push in progress whose time is over and whose end was not told.
    pub(super) fn expired(&self, now: SystemTime) -> Vec<RunId> {
        let over = |(run, pushes): &(&RunId, &Pushes)| pushes.expires_at <= now && !self.ends.contains_key(*run);
        self.runs.iter().filter(over).map(|(run, _)| run.clone()).collect()
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
        self.ends.retain(|run, (_, at)| *at + REMEMBERED > now || runs.contains_key(run));
    }

    pub(super) fn recently_ended(&self) -> Vec<Ended> {
        self.ends.iter().map(|(run, (end, _))| Ended { run: run.clone(), end: *end }).collect()
    }
}
