//! When a run that ended can no longer write, whichever controls its pushes were asking.

use std::time::Duration;

use gitdoor_proto::RunId;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::LEASE;
use crate::gate::cause;
use crate::store::Store;

/// How often the ledger is read for reports, which may come to any control.
const POLL: Duration = Duration::from_millis(100);

/// Returns once no push of an ended run can be written any more: each was reported, or every lease is over.
/// `ended` is a moment after the end was durable; any lease was asked for before it.
///
/// One that went up whole is waited for like the others: its report says that the forge is done with it. One that
/// was closed as unknown was reported by nobody: a control that stood still meanwhile may have given it a lease.
/// Nor does a lease that has lapsed here say anything: its data plane may have gone to another control, and come
/// from there.
pub async fn settled<S: Store>(store: &S, run: &RunId, ended: Instant) {
    let over = ended + LEASE;
    loop {
        match timeout_at(over, store.unreported(run)).await {
            Ok(Ok(pushes)) if pushes.is_empty() => return,
            Ok(Ok(_)) => {}
            Ok(Err(error)) => {
                tracing::warn!(%run, error = cause(&error), "waiting for every lease: the ledger was not read");
            }
            Err(_over) => return,
        }
        if Instant::now() >= over {
            return;
        }
        sleep_until(over.min(Instant::now() + POLL)).await;
    }
}
