//! What control does by itself: closes pushes whose data plane was lost, tells of runs that expired, and removes
//! what is older than is kept.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::time::{MissedTickBehavior, interval};

use crate::clock;
use crate::forge::Forge;
use crate::gate::{Gate, cause};
use crate::lease::Leases;
use crate::metrics;
use crate::push::{Closing, Outcome, PushId};
use crate::store::{Closed, Store, StoreError};

/// How often leases are looked at: an expiry is told within this time.
const SWEEP: Duration = Duration::from_secs(1);
/// How often old rows are looked for.
const PRUNE: Duration = Duration::from_mins(10);
/// Rows removed in one write: others wait behind it.
const PRUNED_AT_ONCE: u32 = 200;

/// Sweeps until it is dropped.
pub async fn sweep<S: Store, F: Forge>(store: Arc<S>, leases: Arc<Leases>, gate: Arc<Gate<S, F>>) {
    let mut predecessors = Predecessors::default();
    let mut ticks = ticks(SWEEP);
    loop {
        ticks.tick().await;
        let done = once(&*store, &leases, &mut predecessors, clock::now()).await;
        if let Err(error) = done {
            // What was not closed is found again by the next sweep.
            tracing::error!(error = cause(&error), "the sweep failed");
        }
        gate.tidy();
    }
}

/// Pushes that a control before this one left open.
#[derive(Debug, Default)]
enum Predecessors {
    #[default]
    NotRead,
    Waiting(Vec<PushId>),
    Closed,
}

async fn once<S: Store>(
    store: &S,
    leases: &Leases,
    predecessors: &mut Predecessors,
    now: SystemTime,
) -> Result<(), StoreError> {
    for (run, push) in leases.sweep(now) {
        close_unknown(store, push, now).await?;
        leases.close(&run, push);
    }
    match predecessors {
        Predecessors::NotRead => {
            let open = store.open_pushes(None).await?;
            // Those that are known here are this control's own.
            *predecessors = Predecessors::Waiting(leases.unknown(&open));
        }
        Predecessors::Waiting(open) if leases.predecessors_are_over() => {
            for push in leases.unknown(open) {
                close_unknown(store, push, now).await?;
            }
            *predecessors = Predecessors::Closed;
        }
        Predecessors::Waiting(_) | Predecessors::Closed => {}
    }
    Ok(())
}

async fn close_unknown<S: Store>(store: &S, push: PushId, now: SystemTime) -> Result<(), StoreError> {
    if store.close_push(push, &Closing::unknown(now)).await? == Closed::Now {
        metrics::push(Outcome::Unknown);
        tracing::warn!(%push, "a push ended unknown: its data plane was lost");
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

fn ticks(period: Duration) -> tokio::time::Interval {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::from_micros;
    use crate::lease::{LEASE, LOST_AFTER};
    use crate::push::{Push, TicketHash};
    use crate::run::tests::run;
    use crate::store::sqlite::Sqlite;
    use gitdoor_proto::RepositoryName;
    use tokio::time::advance;

    fn start() -> SystemTime {
        from_micros(1_800_000_000_000_000)
    }

    fn open_push(number: u8) -> Push {
        Push {
            id: PushId::from_bytes([number; 16]),
            run: gitdoor_proto::RunId::parse("r").unwrap(),
            request_id: "q".into(),
            repository: RepositoryName::parse("acme/api").unwrap(),
            refs: Vec::new(),
            ticket: Some(TicketHash::of("t")),
            outcome: Outcome::Open,
            request_bytes: 0,
            opened_at: start(),
            closed_at: None,
        }
    }

    async fn store_with_pushes(numbers: &[u8]) -> (tempfile::TempDir, Sqlite) {
        let dir = tempfile::tempdir().unwrap();
        let store = Sqlite::open(&dir.path().join("store")).unwrap();
        store.register(&run("r", start())).await.unwrap();
        for number in numbers {
            store.open_push(&open_push(*number), 1, start()).await.unwrap();
        }
        (dir, store)
    }

    async fn outcome(store: &Sqlite, number: u8) -> Outcome {
        store.push(PushId::from_bytes([number; 16])).await.unwrap().unwrap().outcome
    }

    #[tokio::test]
    async fn a_push_whose_data_plane_is_silent_ends_unknown() {
        let (_dir, store) = store_with_pushes(&[1, 2]).await;
        tokio::time::pause();
        let (leases, push) = (Leases::new(), open_push(1));
        leases.grant(&push.run, push.id, start() + Duration::from_hours(1)).unwrap();
        leases.grant(&push.run, open_push(2).id, start() + Duration::from_hours(1)).unwrap();
        advance(LEASE + LOST_AFTER).await;
        leases.renew(&push.run, open_push(2).id, start() + Duration::from_hours(1)).unwrap();
        tokio::time::resume();
        let mut predecessors = Predecessors::Closed;
        once(&store, &leases, &mut predecessors, start()).await.unwrap();
        assert_eq!((outcome(&store, 1).await, outcome(&store, 2).await), (Outcome::Unknown, Outcome::Open));
        assert!(!leases.knows(&push.run, push.id));
    }

    #[tokio::test]
    async fn pushes_of_a_control_before_this_one_end_unknown_unless_they_are_renewed() {
        let (_dir, store) = store_with_pushes(&[1, 2]).await;
        tokio::time::pause();
        let (leases, mut predecessors) = (Leases::new(), Predecessors::default());
        tokio::time::resume();
        once(&store, &leases, &mut predecessors, start()).await.unwrap();
        once(&store, &leases, &mut predecessors, start()).await.unwrap();
        assert_eq!(outcome(&store, 1).await, Outcome::Open);
        tokio::time::pause();
        advance(LEASE + LOST_AFTER).await;
        leases.renew(&open_push(2).run, open_push(2).id, start() + Duration::from_hours(1)).unwrap();
        tokio::time::resume();
        once(&store, &leases, &mut predecessors, start()).await.unwrap();
        assert_eq!((outcome(&store, 1).await, outcome(&store, 2).await), (Outcome::Unknown, Outcome::Open));
        assert!(matches!(predecessors, Predecessors::Closed));
    }

    #[tokio::test]
    async fn everything_that_is_older_than_kept_is_removed() {
        let (_dir, store) = store_with_pushes(&[1, 2, 3]).await;
        assert_eq!(prune_before(&store, start()).await.unwrap(), 0);
        assert_eq!(prune_before(&store, start() + Duration::from_hours(1)).await.unwrap(), 4);
    }
}
