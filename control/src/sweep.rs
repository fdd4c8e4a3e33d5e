//! What control does by itself: closes pushes whose data plane was lost, tells of runs that expired, counts those that
//! live, and removes what is older than is kept.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use gitdoor_proto::RunId;
use tokio::time::{MissedTickBehavior, interval};

use crate::clock;
use crate::forge::Forge;
use crate::gate::{Gate, cause};
use crate::lease::{End, Leases, Swept};
use crate::metrics;
use crate::push::Outcome;
use crate::run::{Identity, State};
use crate::store::{LiveRuns, Store, StoreError};

/// How often leases are looked at: an expiry is told within this time.
const SWEEP: Duration = Duration::from_secs(1);
/// How often old rows are looked for.
const PRUNE: Duration = Duration::from_mins(10);
/// How often live runs are counted: a gauge is that old at most.
const COUNT: Duration = Duration::from_secs(15);
/// Rows removed in one write: others wait behind it, for some milliseconds.
const PRUNED_AT_ONCE: u32 = 500;

/// Sweeps until it is dropped.
pub async fn sweep<S: Store, F: Forge>(store: Arc<S>, leases: Arc<Leases>, gate: Arc<Gate<S, F>>) {
    let mut ticks = ticks(SWEEP);
    loop {
        ticks.tick().await;
        once(&*store, &leases, clock::now()).await;
        gate.tidy();
    }
}

/// What fails is found again by the next sweep, and keeps nothing else from being done.
pub(crate) async fn once<S: Store>(store: &S, leases: &Leases, now: SystemTime) {
    let Swept { due, lost } = leases.sweep(now);
    for run in due {
        if let Err(error) = look_up(store, leases, &run, now).await {
            tracing::error!(%run, error = cause(&error), "whether a run has expired was not read");
        }
    }
    for (run, push) in lost {
        // Another control may answer for it by now; and one that was reported meanwhile is closed.
        match store.lose_push(push, leases.control(), now).await {
            Ok(true) => {
                metrics::push(Outcome::Unknown);
                tracing::warn!(%run, %push, "a push ended unknown: its data plane was lost");
                leases.close(&run, push);
            }
            Ok(false) => leases.close(&run, push),
            Err(error) => tracing::error!(%run, %push, error = cause(&error), "a lost push was not closed"),
        }
    }
}

/// Ends a run that is over, and not one that was prolonged.
async fn look_up<S: Store>(store: &S, leases: &Leases, id: &RunId, now: SystemTime) -> Result<(), StoreError> {
    let run = store.run(id).await?;
    match run.as_ref().map(|run| (run.state(now), run.expires_at)) {
        Some((State::Live, expires_at)) => leases.prolong(id, expires_at),
        Some((State::Revoked, _)) => leases.end(id, End::Revoked),
        Some((State::Expired, expires_at)) => leases.expire(id, expires_at),
        None => leases.end(id, End::Expired),
    }
    Ok(())
}

/// Removes what is older than is kept, until it is dropped.
pub async fn prune<S: Store>(store: Arc<S>, keep: Duration) {
    let mut ticks = ticks(PRUNE);
    loop {
        ticks.tick().await;
        let Some(before) = clock::now().checked_sub(keep) else { continue };
        match prune_before(&*store, before).await {
            Ok(0) => {}
            Ok(rows) => tracing::info!(rows, "removed what is older than is kept"),
            Err(error) => tracing::error!(error = cause(&error), "old rows were not removed"),
        }
    }
}

async fn prune_before<S: Store>(store: &S, before: SystemTime) -> Result<u32, StoreError> {
    let mut rows = 0_u32;
    loop {
        let gone = store.prune(before, PRUNED_AT_ONCE).await?;
        metrics::pruned(gone);
        rows = rows.saturating_add(gone);
        if gone < PRUNED_AT_ONCE {
            return Ok(rows);
        }
    }
}

/// Counts the runs that live, until it is dropped.
pub async fn count<S: Store>(store: Arc<S>) {
    let mut ticks = ticks(COUNT);
    loop {
        ticks.tick().await;
        // One that fails is counted as a failure of the store; the gauges stay until the next.
        if let Ok(live) = store.live_runs(clock::now()).await {
            tell(&live);
        }
    }
}

fn tell(live: &[LiveRuns]) {
    for (identity, bound) in
        [(Identity::None, false), (Identity::Read, false), (Identity::Write, false), (Identity::Write, true)]
    {
        let kind = live.iter().find(|kind| (kind.identity, kind.bound) == (identity, bound));
        metrics::live_runs(identity, bound, kind.map_or(0, |kind| kind.count));
    }
}

fn ticks(period: Duration) -> tokio::time::Interval {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::from_micros;
    use crate::fleet::ControlId;
    use crate::lease::{Ended, LEASE, LOST_AFTER};
    use crate::push::{Push, PushId};
    use crate::run::tests::run;
    use crate::store::sqlite::Sqlite;
    use crate::store::{Adopted, Limit};
    use tokio::time::advance;

    fn start() -> SystemTime {
        from_micros(1_800_000_000_000_000)
    }

    fn me() -> ControlId {
        ControlId::from_bytes([1; 16])
    }

    fn open_push(number: u8) -> Push {
        let run = RunId::parse("r").unwrap();
        crate::push::tests::open_push(&run, PushId::from_bytes([number; 16]), start())
    }

    async fn store_with_pushes(numbers: &[u8]) -> (tempfile::TempDir, Sqlite) {
        let dir = tempfile::tempdir().unwrap();
        let store = Sqlite::open(&dir.path().join("store")).unwrap();
        store.register(&run("r", start())).await.unwrap();
        for number in numbers {
            store.open_push(&open_push(*number), 1, Limit { most: 9, lapsed: &[] }, start()).await.unwrap();
        }
        (dir, store)
    }

    async fn outcome(store: &Sqlite, number: u8) -> Outcome {
        store.push(PushId::from_bytes([number; 16])).await.unwrap().unwrap().outcome
    }

    /// Time passes for leases alone: the store has threads of its own.
    async fn pass(time: Duration) {
        tokio::time::pause();
        advance(time).await;
        tokio::time::resume();
    }

    #[tokio::test]
    async fn a_push_whose_data_plane_is_silent_ends_unknown() {
        let (_dir, store) = store_with_pushes(&[1, 2]).await;
        let (leases, push) = (Leases::new(me()), open_push(1));
        let expiry = start() + Duration::from_hours(1);
        leases.hold(&push.run, push.id, expiry).unwrap();
        leases.hold(&push.run, open_push(2).id, expiry).unwrap();
        pass(LEASE + LOST_AFTER).await;
        leases.beaten();
        assert!(leases.renew(&push.run, open_push(2).id, expiry).unwrap());
        once(&store, &leases, start()).await;
        assert_eq!((outcome(&store, 1).await, outcome(&store, 2).await), (Outcome::Unknown, Outcome::Open));
        assert!(!leases.renew(&push.run, push.id, expiry).unwrap());
    }

    #[tokio::test]
    async fn a_push_that_another_control_answers_for_is_forgotten_and_left_open() {
        let (_dir, store) = store_with_pushes(&[1]).await;
        let (leases, push) = (Leases::new(me()), open_push(1));
        leases.hold(&push.run, push.id, start() + Duration::from_hours(1)).unwrap();
        assert!(store.take_push(push.id, &push.run, ControlId::from_bytes([2; 16])).await.unwrap());
        pass(LEASE + LOST_AFTER).await;
        once(&store, &leases, start()).await;
        assert_eq!(outcome(&store, 1).await, Outcome::Open);
        assert!(leases.known().is_empty());
    }

    #[tokio::test]
    async fn a_run_is_over_when_its_record_says_so_and_not_when_it_was_prolonged() {
        let (_dir, store) = store_with_pushes(&[1]).await;
        let (leases, push) = (Leases::new(me()), open_push(1));
        // What was true when the push began: since then the run was given more time.
        leases.hold(&push.run, push.id, start() + Duration::from_secs(5)).unwrap();
        once(&store, &leases, start() + Duration::from_secs(10)).await;
        assert_eq!(leases.news().0, []);
        let expiry = store.run(&push.run).await.unwrap().unwrap().expires_at;
        once(&store, &leases, expiry - Duration::from_micros(1)).await;
        assert_eq!(leases.news().0, []);
        once(&store, &leases, expiry).await;
        assert_eq!(leases.news().0, [Ended { run: push.run.clone(), end: End::Expired }]);
    }

    #[tokio::test]
    async fn the_end_of_an_adopted_run_is_told_although_it_pushes_nothing() {
        let (_dir, store) = store_with_pushes(&[]).await;
        let (leases, id) = (Leases::new(me()), RunId::parse("r").unwrap());
        for minutes in [1, 2, 1] {
            // The end that the one before was told of is not the run's any more.
            let adopted = store.adopt(&id, Duration::from_mins(minutes), start()).await.unwrap();
            let Adopted::Adopted(run) = adopted else { panic!("{adopted:?}") };
            leases.adopt(&id, run.expires_at);
        }
        let expiry = store.run(&id).await.unwrap().unwrap().expires_at;
        once(&store, &leases, expiry - Duration::from_micros(1)).await;
        assert_eq!(leases.news().0, []);
        for _ in 0..2 {
            once(&store, &leases, expiry).await;
            assert_eq!(leases.news().0, [Ended { run: id.clone(), end: End::Expired }]);
        }
        // One that was adopted elsewhere since has more time.
        let leases = Leases::new(me());
        leases.adopt(&id, start());
        once(&store, &leases, start()).await;
        assert_eq!(leases.news().0, []);
        once(&store, &leases, expiry).await;
        assert_eq!(leases.news().0.len(), 1, "it was forgotten");
    }

    #[tokio::test]
    async fn everything_that_is_older_than_kept_is_removed() {
        let (_dir, store) = store_with_pushes(&[1, 2, 3]).await;
        assert_eq!(prune_before(&store, start()).await.unwrap(), 0);
        assert_eq!(prune_before(&store, start() + Duration::from_hours(1)).await.unwrap(), 4);
    }
}
