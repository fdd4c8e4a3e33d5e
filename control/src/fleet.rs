//! Several controls on one store: how each knows who is alive, answers for what the dead left open, and hears of
//! the ends that another recorded.
//!
//! They tell each other nothing but through the store. That a revocation holds needs none of this: every lease is
//! given on a run that the store has just called live.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::time::{MissedTickBehavior, interval, sleep};

use crate::clock;
use crate::gate::cause;
use crate::id::id;
use crate::lease::{End, Leases};
use crate::metrics::{self, Taken};
use crate::store::{Store, StoreError};

/// How often a control says that it is alive.
const BEAT: Duration = Duration::from_secs(2);
/// Wait after a beat that failed: one of many must come through for others not to take this control for dead.
const AGAIN: Duration = Duration::from_millis(200);
/// How long a control may be silent before others answer for its pushes. One that goes on all the same takes each
/// back as it renews it.
pub const DEAD_AFTER: Duration = Duration::from_secs(15);
/// How often ends are asked for.
const HEAR: Duration = Duration::from_secs(1);
/// How far back: a minute and a half for reads that fail and commits that are late, and half a minute by which the
/// clock of the control that wrote the time may be behind. Ends are remembered for longer, so each is told once.
const BACK: Duration = Duration::from_mins(2);

id! {
    /// Names a control process, from its start to its end.
    ControlId
}

/// Says that this control is alive, and answers for the pushes of those that are not, until it is dropped.
pub async fn beat<S: Store>(store: Arc<S>, leases: Arc<Leases>) {
    let mut ticks = ticks(BEAT);
    loop {
        ticks.tick().await;
        while let Err(error) = beat_once(&*store, &leases).await {
            tracing::error!(error = cause(&error), "the beat of this control failed; trying again");
            sleep(AGAIN).await;
        }
    }
}

async fn beat_once<S: Store>(store: &S, leases: &Leases) -> Result<(), StoreError> {
    store.beat(leases.control()).await?;
    leases.beaten();
    let known = leases.known();
    let claimed = leases.claimed(&known, store.claim_pushes(leases.control()).await?);
    if claimed > 0 {
        metrics::taken(Taken::Claimed, u64::try_from(claimed).unwrap_or(u64::MAX));
        tracing::info!(pushes = claimed, "answering for pushes of a control that has ended");
    }
    Ok(())
}

/// Tells this control's sessions of the runs that others revoked, until it is dropped.
pub async fn hear<S: Store>(store: Arc<S>, leases: Arc<Leases>) {
    let mut ticks = ticks(HEAR);
    let mut heard = clock::now();
    loop {
        ticks.tick().await;
        let now = clock::now();
        match hear_once(&*store, &leases, heard).await {
            Ok(()) => heard = now,
            // From where the last good read left off, however long it takes.
            Err(error) => tracing::error!(error = cause(&error), "ends of runs were not read; trying again"),
        }
    }
}

/// Tells of the ends since `heard`, and of some before.
async fn hear_once<S: Store>(store: &S, leases: &Leases, heard: SystemTime) -> Result<(), StoreError> {
    let since = heard.checked_sub(BACK).unwrap_or(SystemTime::UNIX_EPOCH);
    for run in store.ended_since(since).await? {
        leases.end(&run, End::Revoked);
    }
    Ok(())
}

fn ticks(period: Duration) -> tokio::time::Interval {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}
