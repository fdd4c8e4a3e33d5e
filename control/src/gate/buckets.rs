//! How many API requests a run may make: a token bucket for each run, of the size and the rate in its options.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use gitdoor_proto::RunId;
use tokio::time::Instant;

use crate::run::{Options, Run};

/// Longer than any run lives: a bucket that takes as long to regain one token regains none.
const NEVER: Duration = Duration::from_hours(48);

/// The buckets of all runs. Kept in memory: after a restart of control each is full.
#[derive(Debug, Default)]
pub(super) struct Buckets(Mutex<HashMap<RunId, Bucket>>);

/// A bucket that is not full, as two times: how much it holds follows from the first.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    full_at: Instant,
    expires_at: Instant,
}

impl Buckets {
    /// Takes a token of the run's bucket; or, when it is empty, says how long until it has one.
    pub(super) fn take(&self, run: &Run, now: SystemTime) -> Result<(), Duration> {
        let Options { api_burst, api_rate, .. } = run.terms.options;
        let interval = interval(api_rate);
        let instant = Instant::now();
        let mut buckets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let full_at = buckets.get(&run.id).map_or(instant, |bucket| bucket.full_at.max(instant)) + interval;
        // An empty bucket is full after the time of all its tokens; one that would take longer has not this one.
        let whole = interval.saturating_mul(api_burst.get());
        let wait = full_at.duration_since(instant).saturating_sub(whole);
        if !wait.is_zero() {
            return Err(wait);
        }
        buckets.insert(run.id.clone(), Bucket { full_at, expires_at: instant + run.remaining(now) });
        Ok(())
    }

    /// Forgets buckets that are full again, and those of runs that have expired.
    pub(super) fn tidy(&self) {
        let instant = Instant::now();
        let mut buckets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        buckets.retain(|_, bucket| bucket.full_at.min(bucket.expires_at) > instant);
    }
}

/// Time in which a bucket regains a token.
fn interval(rate: f64) -> Duration {
    Duration::try_from_secs_f64(rate.recip()).map_or(NEVER, |interval| interval.min(NEVER))
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;
    use crate::run::tests;

    const START: SystemTime = SystemTime::UNIX_EPOCH;

    fn run(id: &str, burst: u32, rate: f64) -> Run {
        let mut run = tests::run(id, START);
        run.terms.options.api_burst = NonZeroU32::new(burst).unwrap();
        run.terms.options.api_rate = rate;
        run
    }

    fn taken(buckets: &Buckets, run: &Run) -> usize {
        (0..100_000).take_while(|_| buckets.take(run, START).is_ok()).count()
    }

    async fn advance(seconds: u64) {
        tokio::time::advance(Duration::from_secs(seconds)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_bucket_gives_its_size_at_once_and_then_its_rate() {
        for (burst, rate, micros) in
            [(3, 2.0, 500_000), (1, 0.5, 2_000_000), (200, 10_000.0, 100), (7, 8.0, 125_000)]
        {
            let (buckets, run, interval) =
                (Buckets::default(), run("r", burst, rate), Duration::from_micros(micros));
            assert_eq!(taken(&buckets, &run), burst as usize, "{rate}");
            for _ in 0..3 {
                assert_eq!(buckets.take(&run, START), Err(interval), "{rate}: being refused costs nothing");
                tokio::time::advance(interval / 2).await;
                assert_eq!(buckets.take(&run, START), Err(interval / 2), "{rate}");
                tokio::time::advance(interval / 2).await;
                assert_eq!(taken(&buckets, &run), 1, "{rate}");
            }
            tokio::time::advance(interval * burst * 9).await;
            assert_eq!(taken(&buckets, &run), burst as usize, "{rate}: it never holds more than its size");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn each_run_has_a_bucket_of_its_own() {
        let buckets = Buckets::default();
        let (one, other) = (run("r", 2, 1.0), run("s", 5, 1.0));
        assert_eq!((taken(&buckets, &one), taken(&buckets, &other)), (2, 5));
        advance(1).await;
        assert_eq!((taken(&buckets, &one), taken(&buckets, &other)), (1, 1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_bucket_is_forgotten_when_it_is_full_or_its_run_has_expired_and_not_before() {
        let buckets = Buckets::default();
        let held = || buckets.0.lock().unwrap().len();
        // Five seconds until it is full; and never, so it goes with its run, after 50 minutes.
        let (quick, slow) = (run("r", 10, 2.0), run("s", 10, 1e-9));
        assert_eq!((taken(&buckets, &quick), taken(&buckets, &slow)), (10, 10));
        advance(4).await;
        buckets.tidy();
        assert_eq!(held(), 2);
        assert_eq!(taken(&buckets, &quick), 8);
        advance(5).await;
        buckets.tidy();
        assert_eq!(held(), 1);
        advance(50 * 60 - 10).await;
        buckets.tidy();
        assert_eq!(held(), 1);
        advance(1).await;
        buckets.tidy();
        assert_eq!(held(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_rate_that_no_time_can_hold_regains_nothing() {
        for rate in [f64::MIN_POSITIVE, 5e-324, 1e-9, 0.0, -1.0, f64::NAN] {
            let (buckets, run) = (Buckets::default(), run("r", 4, rate));
            assert_eq!(taken(&buckets, &run), 4, "{rate}");
            advance(24 * 60 * 60).await;
            assert!(buckets.take(&run, START).is_err(), "{rate}");
        }
        let (buckets, run) = (Buckets::default(), run("r", u32::MAX, f64::MIN_POSITIVE));
        assert_eq!(taken(&buckets, &run), 100_000);
    }
}
