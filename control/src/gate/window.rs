//! How often a run may do something in a minute.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use gitdoor_proto::RunId;
use tokio::time::Instant;

/// The time that is counted in.
const MINUTE: Duration = Duration::from_mins(1);

/// When each run did it last.
#[derive(Debug)]
pub(super) struct Window {
    most: usize,
    runs: Mutex<HashMap<RunId, VecDeque<Instant>>>,
}

impl Window {
    /// So many times in any minute.
    pub(super) fn new(most: usize) -> Self {
        Self { most, runs: Mutex::default() }
    }

    /// Counts it; or, when the run did it too often, says how long to wait.
    pub(super) fn take(&self, run: &RunId) -> Result<(), Duration> {
        let now = Instant::now();
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        let times = runs.entry(run.clone()).or_default();
        while times.front().is_some_and(|first| *first + MINUTE <= now) {
            times.pop_front();
        }
        match times.front() {
            Some(first) if times.len() >= self.most => Err((*first + MINUTE).saturating_duration_since(now)),
            Some(_) | None => {
                times.push_back(now);
                Ok(())
            }
        }
    }

    /// Forgets runs that did not do it for a minute.
    pub(super) fn tidy(&self) {
        let now = Instant::now();
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        runs.retain(|_, times| times.back().is_some_and(|last| *last + MINUTE > now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_too_many_waits_until_the_first_is_a_minute_old() {
        let window = Window::new(10);
        let run = RunId::parse("r").unwrap();
        for _ in 0..10 {
            window.take(&run).unwrap();
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        assert_eq!(window.take(&run), Err(Duration::from_secs(50)));
        window.take(&RunId::parse("s").unwrap()).unwrap();
        tokio::time::advance(Duration::from_secs(50)).await;
        window.take(&run).unwrap();
        tokio::time::advance(MINUTE).await;
        window.tidy();
        assert!(window.runs.lock().unwrap().is_empty());
    }
}
