//! Headers of the API: what goes up, where an answer leads, what is not true any more of one that was changed.

use http::header::{
    ACCEPT, ACCEPT_ENCODING, ACCEPT_LANGUAGE, ACCEPT_RANGES, AUTHORIZATION, CONTENT_ENCODING, CONTENT_LENGTH,
    HeaderName, IF_MODIFIED_SINCE, IF_NONE_MATCH, LOCATION, USER_AGENT,
};
use http::{HeaderMap, HeaderValue, Response};
use url::Url;

use super::{IDENTITY, agent, copy};

const GZIP: HeaderValue = HeaderValue::from_static("gzip");

/// Headers of an API request that go up as the client sent them.
const PASSED: [HeaderName; 8] = [
    ACCEPT,
    ACCEPT_LANGUAGE,
    IF_MODIFIED_SINCE,
    IF_NONE_MATCH,
    HeaderName::from_static("graphql-features"),
    HeaderName::from_static("time-zone"),
    HeaderName::from_static("x-github-api-version"),
    HeaderName::from_static("x-github-next-global-id"),
];

/// The headers of a request to the API: those named, and one credential, ours. An answer's JSON is changed here, so it
/// comes in a coding that is undone here, if in any.
#[must_use]
pub fn upward_api(client: &HeaderMap, credential: HeaderValue) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for name in PASSED {
        copy(client, &mut headers, &name);
    }
    headers.insert(ACCEPT_ENCODING, if accepts_gzip(client) { GZIP } else { IDENTITY });
    headers.insert(USER_AGENT, agent(client));
    headers.insert(AUTHORIZATION, credential);
    headers
}

/// Whether `gzip` is named, and not with a weight of nothing (RFC 9110, section 12.5.3).
fn accepts_gzip(client: &HeaderMap) -> bool {
    let codings = client.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    codings.flat_map(|value| value.split(',')).any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
        let weight = weight.trim().strip_prefix("q=").map_or(Ok(1.0), str::parse::<f32>);
        name.trim().eq_ignore_ascii_case("gzip") && weight.is_ok_and(|weight| weight > 0.0)
    })
}

/// Where an answer's `Location` leads from the place that was asked; none: nowhere that can be read.
#[must_use]
pub fn location<B>(answer: &Response<B>, asked: &Url) -> Option<Url> {
    let mut locations = answer.headers().get_all(LOCATION).iter();
    let location = locations.next()?.to_str().ok()?;
    if locations.next().is_some() { None } else { asked.join(location).ok() }
}

/// What tells of an answer's bytes.
const OF_BYTES: [HeaderName; 7] = [
    ACCEPT_RANGES,
    CONTENT_ENCODING,
    CONTENT_LENGTH,
    HeaderName::from_static("content-digest"),
    HeaderName::from_static("content-md5"),
    HeaderName::from_static("digest"),
    HeaderName::from_static("repr-digest"),
];

/// Takes out what is not true any more once a body was changed.
pub fn forget_bytes(headers: &mut HeaderMap) {
    for name in OF_BYTES {
        headers.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn only_named_headers_go_up_to_the_api_and_the_credential_is_ours() {
        let client = headers(&[
            ("authorization", "token sbr_x.y"),
            ("accept", ""),
            ("accept-encoding", "gzip"),
            ("content-type", "application/json; charset=utf-8"),
            ("cookie", "a=b"),
            ("graphql-features", "merge_queue"),
            ("if-none-match", "\"a\""),
            ("range", "bytes=0-1"),
            ("time-zone", "UTC"),
            ("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
            ("tracestate", "a=b"),
            ("user-agent", "GitHub CLI 2.102.0"),
            ("x-forwarded-for", "10.0.0.1"),
            ("x-github-api-version", "2022-11-28"),
            ("x-http-method-override", "DELETE"),
        ]);
        let up = upward_api(&client, HeaderValue::from_static("Bearer ours"));
        let mut names: Vec<_> = up.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        let expected = [
            "accept",
            "accept-encoding",
            "authorization",
            "graphql-features",
            "if-none-match",
            "time-zone",
            "user-agent",
            "x-github-api-version",
        ];
        assert_eq!(names, expected);
        assert_eq!(up[ACCEPT], "");
        assert_eq!(up[AUTHORIZATION], "Bearer ours");
    }

    #[test]
    fn a_coding_is_asked_for_only_where_the_client_takes_it() {
        for (accepted, expected) in [
            ("gzip", "gzip"),
            ("deflate, GZIP;q=0.5, br", "gzip"),
            ("gzip;q=0", "identity"),
            ("gzip; q=0.000", "identity"),
            ("br, zstd", "identity"),
            ("identity", "identity"),
            ("", "identity"),
        ] {
            let up = upward_api(&headers(&[("accept-encoding", accepted)]), HeaderValue::from_static("x"));
            assert_eq!(up[ACCEPT_ENCODING], expected, "{accepted:?}");
        }
    }

    #[test]
    fn a_location_is_read_from_the_place_that_was_asked() {
        let asked = Url::parse("https://api.test/repos/o/r?x").unwrap();
        let read = |value: &'static str| {
            let answer = Response::builder().header(LOCATION, value).body(()).unwrap();
            location(&answer, &asked).map(String::from)
        };
        assert_eq!(read("https://other.test/a?b").as_deref(), Some("https://other.test/a?b"));
        assert_eq!(read("/repositories/1").as_deref(), Some("https://api.test/repositories/1"));
        assert_eq!(read("//evil.test/x").as_deref(), Some("https://evil.test/x"));
        assert_eq!(read("https://[broken"), None);
        let twice = Response::builder().header(LOCATION, "/a").header(LOCATION, "/b").body(()).unwrap();
        assert_eq!(location(&twice, &asked), None);
    }
}
