//! How much a run may do of what costs the others something: a token bucket for each run.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use gitdoor_proto::RunId;
use tokio::time::Instant;

use crate::run::Run;

/// Longer than any run lives: a bucket that takes as long to regain one token regains none.
const NEVER: Duration = Duration::from_hours(48);

/// How large a bucket is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Size {
    /// Tokens in a full one.
    pub(super) burst: u32,
    /// Tokens that it regains in a second.
    pub(super) rate: f64,
}

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
    /// Takes so many tokens of the run's bucket; or, when it has fewer, says how long until it has them. It never has
    /// more than its size: more than that are given when it is full.
    pub(super) fn take(&self, run: &Run, size: Size, tokens: u32, now: SystemTime) -> Result<(), Duration> {
        let interval = interval(size.rate);
        let cost = interval.saturating_mul(tokens.min(size.burst));
        let instant = Instant::now();
        let mut buckets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let full_at = buckets.get(&run.id).map_or(instant, |bucket| bucket.full_at.max(instant)) + cost;
        // An empty bucket is full after the time of all its tokens; one that would take longer has not these.
        let whole = interval.saturating_mul(size.burst);
        let wait = full_at.duration_since(instant).saturating_sub(whole);
        if !wait.is_zero() {
            return Err(wait);
        }
        buckets.insert(run.id.clone(), Bucket { full_at, expires_at: instant + run.remaining(now) });
        Ok(())
    }

    /// Gives back what was taken for nothing.
    pub(super) fn give_back(&self, run: &Run, size: Size, tokens: u32) {
        let cost = interval(size.rate).saturating_mul(tokens.min(size.burst));
        let mut buckets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bucket) = buckets.get_mut(&run.id) {
            bucket.full_at = bucket.full_at.checked_sub(cost).unwrap_or(bucket.full_at);
        }
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
    use super::*;
    use crate::run::tests;

    const START: SystemTime = SystemTime::UNIX_EPOCH;

    /// A run, and the size of its bucket.
    fn run(id: &str, burst: u32, rate: f64) -> (Run, Size) {
        (tests::run(id, START), Size { burst, rate })
    }

    fn take(buckets: &Buckets, (run, size): &(Run, Size), tokens: u32) -> Result<(), Duration> {
        buckets.take(run, *size, tokens, START)
    }

    fn taken(buckets: &Buckets, run: &(Run, Size)) -> usize {
        (0..100_000).take_while(|_| take(buckets, run, 1).is_ok()).count()
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
                assert_eq!(take(&buckets, &run, 1), Err(interval), "{rate}: being refused costs nothing");
                tokio::time::advance(interval / 2).await;
                assert_eq!(take(&buckets, &run, 1), Err(interval / 2), "{rate}");
                tokio::time::advance(interval / 2).await;
                assert_eq!(taken(&buckets, &run), 1, "{rate}");
            }
            tokio::time::advance(interval * burst * 9).await;
            assert_eq!(taken(&buckets, &run), burst as usize, "{rate}: it never holds more than its size");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn several_are_taken_together_or_none_and_more_than_there_ever_are_when_it_is_full() {
        let (buckets, run) = (Buckets::default(), run("r", 10, 2.0));
        take(&buckets, &run, 7).unwrap();
        assert_eq!(take(&buckets, &run, 4), Err(Duration::from_millis(500)));
        take(&buckets, &run, 3).unwrap();
        assert_eq!(take(&buckets, &run, 1), Err(Duration::from_millis(500)));
        assert_eq!(take(&buckets, &run, 11), Err(Duration::from_secs(5)));
        advance(5).await;
        take(&buckets, &run, 11).unwrap();
        assert_eq!(take(&buckets, &run, 1), Err(Duration::from_millis(500)));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_given_back_is_there_again_and_never_more_than_its_size() {
        let (buckets, run) = (Buckets::default(), run("r", 10, 2.0));
        take(&buckets, &run, 7).unwrap();
        buckets.give_back(&run.0, run.1, 4);
        assert_eq!(taken(&buckets, &run), 7);
        advance(5).await;
        buckets.give_back(&run.0, run.1, 10);
        assert_eq!(taken(&buckets, &run), 10);
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
            assert!(take(&buckets, &run, 1).is_err(), "{rate}");
        }
        let (buckets, run) = (Buckets::default(), run("r", u32::MAX, f64::MIN_POSITIVE));
        assert_eq!(taken(&buckets, &run), 100_000);
    }
}
