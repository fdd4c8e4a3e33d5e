//! The places that permits take at control among the requests of their run, and how they are given back: with the next
//! question of their session, or by a message of their own where none comes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};

/// Most places that one message gives back: control takes a message of 1 MiB, and a report may need most of it.
const AT_ONCE: usize = 1024;

/// The place of one request; dropped, it is given back.
#[derive(Debug)]
pub struct Place {
    given_back: Arc<GivenBack>,
    id: u64,
}

impl Place {
    /// The place that the permit took which this question was answered with.
    pub(super) fn of(id: u64, given_back: &Arc<GivenBack>) -> Self {
        Self { given_back: Arc::clone(given_back), id }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.given_back.add(self.id);
    }
}

/// The places of a session that control has not been told of yet. It holds no more than were taken, and waits for no
/// queue.
#[derive(Debug, Default)]
pub(super) struct GivenBack(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    ids: Vec<u64>,
    /// Woken by the first place, where nothing else is on its way.
    resting: Option<Waker>,
}

impl GivenBack {
    fn add(&self, id: u64) {
        let resting = {
            let mut inner = self.inner();
            inner.ids.push(id);
            inner.resting.take()
        };
        if let Some(waker) = resting {
            waker.wake();
        }
    }

    /// As many as one message may tell of.
    pub(super) fn take(&self) -> Vec<u64> {
        let mut inner = self.inner();
        let most = inner.ids.len().min(AT_ONCE);
        inner.ids.drain(..most).collect()
    }

    /// Has the task woken by the next. False: there is one.
    pub(super) fn rest(&self, context: &Context<'_>) -> bool {
        let mut inner = self.inner();
        if inner.ids.is_empty() {
            inner.resting = Some(context.waker().clone());
        }
        inner.ids.is_empty()
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
