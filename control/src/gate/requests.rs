//! The requests of each run that are under way here: how many there may be at once, each with a place of its own.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gitdoor_proto::{Denial, Reason, RunId};

use crate::metrics;

/// Most requests of a run at once. A clone has one or two, gh some, a page of a browser six for each host: enough for a
/// few tools side by side, and far from what one door carries.
pub const REQUESTS: u32 = 32;
/// When to ask again: what has ended is told of within some milliseconds.
const SOON: Duration = Duration::from_secs(1);

/// How many requests of each run are under way. A run has an entry while it has one.
#[derive(Debug, Clone, Default)]
pub(super) struct Requests(Arc<Mutex<Counts>>);

#[derive(Debug, Default)]
struct Counts {
    runs: HashMap<RunId, u32>,
    total: u32,
}

/// A place among the requests that a run has at once; given back when it is dropped.
#[derive(Debug)]
pub struct RequestPlace {
    requests: Requests,
    run: RunId,
}

impl Requests {
    /// Takes a place. To be called for a run whose bearer was verified: who knows no more than a run's id must not take
    /// the places of its requests.
    pub(super) fn take(&self, run: &RunId) -> Result<RequestPlace, Denial> {
        let mut counts = self.counts();
        let count = counts.runs.entry(run.clone()).or_default();
        if *count >= REQUESTS {
            return Err(limit());
        }
        *count += 1;
        let total = counts.total.saturating_add(1);
        counts.change(total);
        Ok(RequestPlace { requests: self.clone(), run: run.clone() })
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counts {
    fn change(&mut self, total: u32) {
        self.total = total;
        metrics::requests(total);
    }
}

impl Drop for RequestPlace {
    fn drop(&mut self) {
        let mut counts = self.requests.counts();
        let Entry::Occupied(mut count) = counts.runs.entry(self.run.clone()) else { return };
        match count.get().checked_sub(1) {
            None | Some(0) => drop(count.remove()),
            Some(left) => *count.get_mut() = left,
        }
        let total = counts.total.saturating_sub(1);
        counts.change(total);
    }
}

fn limit() -> Denial {
    let words = format!("this run has {REQUESTS} requests in progress; wait until one has ended");
    Denial::new(Reason::RequestLimit, words).retry_after(SOON)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_run_has_its_places_and_is_forgotten_with_the_last() {
        let (requests, run) = (Requests::default(), RunId::parse("r").unwrap());
        let mut places: Vec<_> = (0..REQUESTS).map(|_| requests.take(&run).unwrap()).collect();
        let refused = requests.take(&run).unwrap_err();
        assert_eq!((refused.reason, refused.retry_after), (Reason::RequestLimit, Some(SOON)));
        let other = requests.take(&RunId::parse("s").unwrap()).unwrap();
        assert_eq!(requests.counts().total, REQUESTS + 1);
        places.pop();
        places.push(requests.take(&run).unwrap());
        requests.take(&run).unwrap_err();
        drop((places, other));
        assert!(requests.counts().runs.is_empty());
        assert_eq!(requests.counts().total, 0);
    }
}
