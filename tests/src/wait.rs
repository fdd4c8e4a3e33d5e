//! Waiting for what will be so in a moment, on a machine that may be slow.

use std::time::{Duration, Instant};

/// How long that moment may be.
const LIMIT: Duration = Duration::from_secs(20);

/// Waits until it holds; a panic that says what did not.
#[track_caller]
pub fn until(what: &str, holds: impl AsyncFn() -> bool) -> impl Future<Output = ()> {
    let place = std::panic::Location::caller();
    async move {
        let began = Instant::now();
        while !holds().await {
            assert!(began.elapsed() < LIMIT, "{place}: after {LIMIT:?} it is still not so: {what}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}
