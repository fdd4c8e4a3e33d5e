//! What is left of time, requests and bytes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::args::Args;

/// Longest time for one request.
const REQUEST: Duration = Duration::from_mins(1);
/// For what is under way when the time is over.
const GRACE: Duration = Duration::from_secs(10);

/// The bounds of the whole work.
pub(super) struct Budget {
    began: Instant,
    ends: Instant,
    requests: u64,
    bytes: u64,
    begun: AtomicU64,
    moved: AtomicU64,
}

impl Budget {
    /// From now on.
    pub(super) fn begin(args: &Args) -> Self {
        let began = Instant::now();
        Self {
            began,
            ends: began + Duration::from_secs(args.seconds),
            requests: args.most_requests,
            bytes: args.most_bytes,
            begun: AtomicU64::new(0),
            moved: AtomicU64::new(0),
        }
    }

    /// The number of the next request, from 0, while none of the bounds is reached.
    pub(super) fn next(&self) -> Option<u64> {
        let in_time = Instant::now() < self.ends;
        if !in_time || self.moved.load(Ordering::Relaxed) >= self.bytes {
            return None;
        }
        let number = self.begun.fetch_add(1, Ordering::Relaxed);
        Some(number).filter(|number| *number < self.requests)
    }

    /// These bytes have come, or gone.
    pub(super) fn moved(&self, bytes: u64) {
        self.moved.fetch_add(bytes, Ordering::Relaxed);
    }

    /// How long a request that begins now may take.
    pub(super) fn limit(&self) -> Duration {
        REQUEST.min((self.ends + GRACE).saturating_duration_since(Instant::now()))
    }

    /// Whether what did not end in its time was ended by the end of the whole.
    pub(super) fn is_over(&self) -> bool {
        Instant::now() >= self.ends + GRACE
    }

    /// The time so far.
    pub(super) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }
}
