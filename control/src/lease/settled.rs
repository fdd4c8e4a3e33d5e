//! When a run that ended can no longer write, whichever controls its pushes were asking.

use std::time::Duration;

use gitdoor_proto::RunId;
use tokio::time::{Instant, sleep_until};

use super::{LEASE, Leases};
use crate::gate::cause;
use crate::store::Store;

/// How often the ledger is read for reports, which may come to any control.
const POLL: Duration = Duration::from_millis(100);

impl Leases {
    /// Returns once no push of an ended run can be written any more: each was sent whole or reported, or every lease
    /// is over. `ended` is a moment after the end was durable; any lease was asked for before it.
    ///
    /// A push that was closed as unknown was reported by nobody: a control that stood still meanwhile may have given
    /// it a lease. Nor does a lease that has lapsed here say anything: its data plane may have gone to another
    /// control, and come from there.
    pub async fn settled<S: Store>(&self, store: &S, run: &RunId, ended: Instant) {
        let over = ended + LEASE;
        loop {
            match store.unreported(run).await {
                Ok(pushes) if self.registry().all_sent(run, &pushes) => return,
                Ok(_) => {}
                Err(error) => {
                    tracing::warn!(%run, error = cause(&error), "waiting for every lease: the ledger was not read");
                }
            }
            let now = Instant::now();
            if now >= over {
                return;
            }
            sleep_until(over.min(now + POLL)).await;
        }
    }
}
