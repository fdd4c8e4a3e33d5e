//! The one place that reads the wall clock.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Seconds since 1970, moved by `skew`.
pub(crate) fn unix_seconds(skew: i64) -> i64 {
    #[expect(clippy::disallowed_methods, reason = "the edge at which the stand-in and the harness read the clock")]
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX).saturating_add(skew)
}

/// Seconds since 1970 as GitHub writes a time: `2026-03-01T12:00:00Z`.
pub(crate) fn to_rfc3339(seconds: i64) -> String {
    let time = UNIX_EPOCH + Duration::from_secs(seconds.max(0).unsigned_abs());
    humantime::format_rfc3339_seconds(time).to_string()
}
