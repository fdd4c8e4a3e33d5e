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
