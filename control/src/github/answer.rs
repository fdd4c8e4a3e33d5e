//! An answer of the forge's API as bytes, and the signs by which it says "slower".

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::{HeaderMap, StatusCode};
use serde::Deserialize;

use crate::forge::MintError;

/// What an outage that names no end is held for.
pub(super) const UNAVAILABLE: MintError = MintError::Unavailable(Duration::from_secs(10));
/// What a rate limit that names no end is held for.
const UNNAMED: Duration = Duration::from_mins(1);
/// A rate limit is never held shorter: GitHub's secondary limits grow with impatience.
pub(super) const SHORTEST: Duration = Duration::from_secs(30);
/// GitHub's longest window; a wrong header must not silence the door for longer.
const LONGEST: Duration = Duration::from_hours(1);

/// Status, headers and the whole body. Not `Debug`: a body may hold a token.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
}

#[derive(Deserialize)]
struct Message {
    message: String,
}

impl Answer {
    /// What an error says, in lower case.
    pub(super) fn message(&self) -> String {
        let text = match serde_json::from_slice(&self.body) {
            Ok(Message { message }) => message,
            Err(_) => String::from_utf8_lossy(&self.body).into_owned(),
        };
        text.to_lowercase()
    }

    /// Until when a 403 or 429 asks for patience, or none when it means something else.
    ///
    /// <https://docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api#exceeding-the-rate-limit>
    pub(super) fn limited(&self, now: SystemTime) -> Option<Duration> {
        let exhausted = self.number("x-ratelimit-remaining") == Some(0);
        let message = self.message();
        let told = self.status == StatusCode::TOO_MANY_REQUESTS
            || message.contains("rate limit")
            || message.contains("abuse");
        if !told && !exhausted && !self.headers.contains_key("retry-after") {
            return None;
        }
        let after = self.number("retry-after").map(Duration::from_secs);
        let reset = || self.number("x-ratelimit-reset").filter(|_| exhausted).map(|epoch| until(epoch, now));
        Some(after.or_else(reset).unwrap_or(UNNAMED).clamp(SHORTEST, LONGEST))
    }

    fn number(&self, header: &str) -> Option<u64> {
        self.headers.get(header)?.to_str().ok()?.trim().parse().ok()
    }
}

fn until(epoch: u64, now: SystemTime) -> Duration {
    Duration::from_secs(epoch).saturating_sub(now.duration_since(UNIX_EPOCH).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    const NOW: u64 = 1_800_000_000;

    fn limited(status: u16, headers: &[(&'static str, &str)], body: &str) -> Option<u64> {
        let headers = headers
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap()))
            .collect();
        let status = StatusCode::from_u16(status).unwrap();
        let answer = Answer { status, headers, body: body.as_bytes().to_vec() };
        answer.limited(UNIX_EPOCH + Duration::from_secs(NOW)).map(|wait| wait.as_secs())
    }

    #[test]
    fn a_rate_limit_is_told_from_a_refusal_by_its_signs() {
        let reset = (NOW + 90).to_string();
        let past = (NOW - 90).to_string();
        let exhausted = |reset| [("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", reset)];
        assert_eq!(limited(403, &[], r#"{"message":"Resource not accessible by integration"}"#), None);
        assert_eq!(limited(403, &[("x-ratelimit-remaining", "12"), ("x-ratelimit-reset", &reset)], "{}"), None);
        assert_eq!(limited(429, &[], ""), Some(60));
        assert_eq!(limited(403, &[], r#"{"message":"You have exceeded a secondary rate limit"}"#), Some(60));
        assert_eq!(limited(403, &[], r#"{"message":"You have triggered an Abuse detection mechanism"}"#), Some(60));
        assert_eq!(limited(403, &[], "<html>API rate limit exceeded"), Some(60));
        assert_eq!(limited(403, &[("retry-after", "120")], "{}"), Some(120));
        assert_eq!(limited(403, &[("retry-after", "1")], "{}"), Some(30));
        assert_eq!(limited(403, &[("retry-after", "soon")], "{}"), Some(60));
        assert_eq!(limited(403, &[("retry-after", "18446744073709551615")], "{}"), Some(3600));
        assert_eq!(limited(403, &exhausted(&reset), "{}"), Some(90));
        assert_eq!(limited(403, &exhausted(&past), "{}"), Some(30));
        assert_eq!(limited(403, &exhausted("never"), "{}"), Some(60));
    }
}
