//! How often an unbound run may ask for a push discovery: each may mint a token for another repository.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use gitdoor_proto::{Denial, Reason, RunId};
use tokio::time::Instant;

/// Push discoveries that a run has before it is bound, in [`WINDOW`].
const DISCOVERIES: usize = 10;
/// The time that they are counted in.
const WINDOW: Duration = Duration::from_mins(1);

/// When each unbound run asked last.
#[derive(Debug, Default)]
pub(super) struct Discoveries(Mutex<HashMap<RunId, VecDeque<Instant>>>);

impl Discoveries {
    /// Counts a discovery, or refuses it.
    pub(super) fn take(&self, run: &RunId) -> Result<(), Denial> {
        let now = Instant::now();
        let mut runs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let times = runs.entry(run.clone()).or_default();
        while times.front().is_some_and(|first| *first + WINDOW <= now) {
            times.pop_front();
        }
        if let (Some(first), DISCOVERIES..) = (times.front(), times.len()) {
            let words = "a run that is bound to no repository may start 10 pushes a minute; wait";
            let wait = (*first + WINDOW).saturating_duration_since(now);
            return Err(Denial::new(Reason::DiscoveryLimit, words).retry_after(wait));
        }
        times.push_back(now);
        Ok(())
    }

    /// Forgets runs that did not ask for a while.
    pub(super) fn tidy(&self) {
        let now = Instant::now();
        let mut runs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        runs.retain(|_, times| times.back().is_some_and(|last| *last + WINDOW > now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_eleventh_in_a_minute_is_refused_until_the_first_is_a_minute_old() {
        let discoveries = Discoveries::default();
        let run = RunId::parse("r").unwrap();
        for _ in 0..DISCOVERIES {
            discoveries.take(&run).unwrap();
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        let denial = discoveries.take(&run).unwrap_err();
        assert_eq!((denial.reason, denial.retry_after), (Reason::DiscoveryLimit, Some(Duration::from_secs(50))));
        discoveries.take(&RunId::parse("s").unwrap()).unwrap();
        tokio::time::advance(Duration::from_secs(50)).await;
        discoveries.take(&run).unwrap();
        tokio::time::advance(WINDOW).await;
        discoveries.tidy();
        assert!(discoveries.0.lock().unwrap().is_empty());
    }
}
