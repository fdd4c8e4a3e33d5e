//! The one place of this crate that reads the clock. Decisions take the time as an argument.

use std::time::{Duration, SystemTime};

/// The present, in whole microseconds: what a store keeps, so that a time compares equal after it was stored.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "the edge: services read the clock here, once a question")]
pub fn now() -> SystemTime {
    whole_micros(SystemTime::now())
}

/// The same instant without what is below a microsecond. A time before 1970 becomes 1970.
#[must_use]
pub fn whole_micros(time: SystemTime) -> SystemTime {
    from_micros(to_micros(time))
}

/// Microseconds since 1970: what a store keeps.
#[must_use]
pub fn to_micros(time: SystemTime) -> i64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

/// The time that a store kept.
#[must_use]
pub fn from_micros(micros: i64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_micros(u64::try_from(micros).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_the_same_after_it_was_stored() {
        let time = now();
        assert_eq!(from_micros(to_micros(time)), time);
        assert_eq!(to_micros(SystemTime::UNIX_EPOCH - Duration::from_secs(1)), 0);
    }
}
