//! The streams under way, by run, so that a revocation ends them at once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gitdoor_proto::RunId;
use tokio::sync::watch;

/// Why a stream was cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// The run was revoked.
    Revoked,
    /// The run's time is over.
    Expired,
}

/// The runs that have streams here. A run's entry goes with its last stream.
#[derive(Default)]
pub struct Streams {
    runs: Mutex<HashMap<RunId, Entry>>,
}

struct Entry {
    cut: watch::Sender<Option<Cut>>,
    streams: usize,
}

/// One stream of a run; dropped, it leaves the registry.
pub struct Guard {
    streams: Arc<Streams>,
    run: RunId,
    watch: Watch,
}

/// Sees the end of a run.
#[derive(Clone)]
pub struct Watch(watch::Receiver<Option<Cut>>);

impl Streams {
    /// Enters a stream.
    #[must_use]
    pub fn enter(self: &Arc<Self>, run: &RunId) -> Guard {
        let mut runs = self.runs();
        let entry = runs.entry(run.clone()).or_insert_with(|| Entry { cut: watch::channel(None).0, streams: 0 });
        entry.streams += 1;
        // Control has just called the run live: what was cut before is no end of this stream.
        if entry.cut.borrow().is_some() {
            entry.cut = watch::channel(None).0;
        }
        Guard { streams: Arc::clone(self), run: run.clone(), watch: Watch(entry.cut.subscribe()) }
    }

    /// Ends every stream of a run.
    pub fn cut(&self, run: &str, cut: Cut) {
        let Ok(run) = RunId::parse(run) else { return };
        if let Some(entry) = self.runs().get(&run) {
            entry.cut.send_replace(Some(cut));
        }
    }

    fn runs(&self) -> MutexGuard<'_, HashMap<RunId, Entry>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Guard {
    /// What sees the end of this stream's run.
    #[must_use]
    pub fn watch(&self) -> Watch {
        self.watch.clone()
    }
}

impl Watch {
    /// Waits until the run is ended.
    pub async fn cut(&self) -> Cut {
        let mut cut = self.0.clone();
        match cut.wait_for(Option::is_some).await.map(|cut| *cut) {
            Ok(Some(cut)) => cut,
            // No stream of the run is left, and so nobody to end one.
            Ok(None) | Err(_) => std::future::pending().await,
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let mut runs = self.streams.runs();
        let Some(entry) = runs.get_mut(&self.run) else { return };
        entry.streams -= 1;
        if entry.streams == 0 {
            runs.remove(&self.run);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_cut_ends_the_streams_of_its_run_alone() {
        let streams = Arc::new(Streams::default());
        let (a, b) = (RunId::parse("a").unwrap(), RunId::parse("b").unwrap());
        let (first, second, other) = (streams.enter(&a), streams.enter(&a), streams.enter(&b));
        streams.cut("a", Cut::Revoked);
        assert_eq!((first.watch().cut().await, second.watch().cut().await), (Cut::Revoked, Cut::Revoked));
        assert!(other.watch.0.borrow().is_none());
        let later = streams.enter(&a);
        assert!(later.watch.0.borrow().is_none());
        streams.cut("a", Cut::Expired);
        assert_eq!((first.watch().cut().await, later.watch().cut().await), (Cut::Revoked, Cut::Expired));
        drop((first, second, other, later));
        assert!(streams.runs().is_empty());
    }
}
