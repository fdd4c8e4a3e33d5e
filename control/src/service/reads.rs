//! Lists and shows: so many in work at once, lest what is short and must not wait stands behind them in the store.

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

use crate::limit::{Limit, READ_WAIT, READS};
use crate::metrics;
use crate::status::Failure;
use crate::trust::Side;

/// The places for lists and shows, of all services of a listener.
#[derive(Debug)]
pub struct Reads(Semaphore);

impl Default for Reads {
    fn default() -> Self {
        Self(Semaphore::new(READS))
    }
}

impl Reads {
    /// Takes a place, or waits for one, but not for long.
    pub(super) async fn enter(&self) -> Result<SemaphorePermit<'_>, Failure> {
        // Closed by nobody.
        if let Ok(Ok(place)) = timeout(READ_WAIT, self.0.acquire()).await {
            return Ok(place);
        }
        metrics::limited(Side::Runs.as_str(), Limit::Reads);
        Err(Failure::Reads)
    }
}
