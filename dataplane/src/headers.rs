//! Header hygiene: which framings are unambiguous, what goes up, what comes back.
//!
//! RFC 9110 section 7.6.1 (hop-by-hop), RFC 9112 section 6 (framing).

mod api;

use http::header::{
    ACCEPT, ACCEPT_ENCODING, ACCEPT_LANGUAGE, AUTHORIZATION, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH,
    CONTENT_TYPE, HOST, HeaderName, PRAGMA, TRANSFER_ENCODING, USER_AGENT,
};
use http::{HeaderMap, HeaderValue, Method, Request, Uri, Version};

pub use api::{forget_bytes, location, upward_api};

use crate::route::Service;

/// `Git-Protocol`: which protocol version the client speaks.
const GIT_PROTOCOL: HeaderName = HeaderName::from_static("git-protocol");
/// Most bytes of a `Git-Protocol` value; git sends `version=2`.
const GIT_PROTOCOL_BYTES: usize = 128;
/// Most bytes of a client's `User-Agent` that are passed on.
const USER_AGENT_BYTES: usize = 256;
/// What the forge sees of a client that names no agent: it refuses a request without one.
const OWN_AGENT: HeaderValue = HeaderValue::from_static(concat!("gitdoor/", env!("CARGO_PKG_VERSION")));
const IDENTITY: HeaderValue = HeaderValue::from_static("identity");

/// Why a message could be read in two ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadFraming {
    /// More than one `Content-Length`, or one that is no plain number.
    #[error("a request has at most one Content-Length, a plain number")]
    Length,
    /// A transfer coding beside a length, or one that is not exactly `chunked`.
    #[error("a request has a Content-Length or Transfer-Encoding: chunked, not both and no other coding")]
    Coding,
    /// A line of the head with a fold, stray whitespace, a control character, or an end other than CRLF.
    #[error("a request's head is plain lines, each ended by CRLF")]
    Line,
    /// The request was not seen where it should have been, or not as this.
    #[error("a request begins where the one before it ends, for every reader")]
    Step,
    /// The target is not a path.
    #[error("a request's target is a path")]
    Target,
    /// No `Host`, or more than one.
    #[error("a request names one Host")]
    Host,
}

/// Refuses a head whose framing two readers could take differently.
pub fn check_framing<B>(request: &Request<B>) -> Result<(), BadFraming> {
    let headers = request.headers();
    let one_number = |value: &HeaderValue| !value.is_empty() && value.as_bytes().iter().all(u8::is_ascii_digit);
    let mut lengths = headers.get_all(CONTENT_LENGTH).iter();
    let length = lengths.next();
    if lengths.next().is_some() || !length.is_none_or(one_number) {
        return Err(BadFraming::Length);
    }
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    if let Some(coding) = codings.next() {
        let chunked = coding.as_bytes().eq_ignore_ascii_case(b"chunked");
        if length.is_some() || codings.next().is_some() || !chunked {
            return Err(BadFraming::Coding);
        }
    }
    let over_http2 = request.version() == Version::HTTP_2;
    let uri = request.uri();
    if request.method() == Method::CONNECT || !uri.path().starts_with('/') || (uri.scheme().is_some() != over_http2)
    {
        return Err(BadFraming::Target);
    }
    match headers.get_all(HOST).iter().count() {
        1 => Ok(()),
        0 if over_http2 && uri.authority().is_some() => Ok(()),
        _ => Err(BadFraming::Host),
    }
}

/// The host that a request is for: what HTTP/2 calls `:authority`, or `Host`. Both, when they differ, are nobody's.
#[must_use]
pub fn host<'a>(uri: &'a Uri, headers: &'a HeaderMap) -> Option<&'a str> {
    let header = headers.get(HOST).map(HeaderValue::to_str);
    match (uri.authority(), header) {
        (None, Some(Ok(host))) => Some(host),
        (Some(authority), None) => Some(authority.as_str()),
        (Some(authority), Some(Ok(host))) if authority.as_str().eq_ignore_ascii_case(host) => Some(host),
        (Some(_) | None, Some(_)) | (None, None) => None,
    }
}

/// Whether the client sends JSON, or takes it: any of its media types.
#[must_use]
pub fn speaks_json(headers: &HeaderMap) -> bool {
    let names_json = |value: &HeaderValue| {
        let media = value.to_str().unwrap_or_default().to_ascii_lowercase();
        media.split([',', ';']).any(|part| part.trim_end().ends_with("json"))
    };
    [ACCEPT, CONTENT_TYPE].iter().any(|name| headers.get_all(name).iter().any(names_json))
}

/// The headers of a git request to the forge: those named here, from the client, and one credential, ours.
#[must_use]
pub fn upward(client: &HeaderMap, service: Service, credential: HeaderValue) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for name in [ACCEPT, ACCEPT_LANGUAGE, CONTENT_TYPE, PRAGMA] {
        copy(client, &mut headers, &name);
    }
    match service {
        Service::UploadPack => {
            copy(client, &mut headers, &ACCEPT_ENCODING);
            copy(client, &mut headers, &CONTENT_ENCODING);
        }
        // The advertisement is rewritten and the report is read: neither may come in a coding.
        Service::ReceivePack => {
            headers.insert(ACCEPT_ENCODING, IDENTITY);
        }
    }
    if let Some(value) = client.get(GIT_PROTOCOL).filter(|value| is_git_protocol(value)) {
        headers.insert(GIT_PROTOCOL, value.clone());
    }
    headers.insert(USER_AGENT, agent(client));
    headers.insert(AUTHORIZATION, credential);
    headers
}

/// The client's agent, which the forge wants to see.
fn agent(client: &HeaderMap) -> HeaderValue {
    let agent = client.get(USER_AGENT).filter(|agent| !agent.is_empty() && agent.len() <= USER_AGENT_BYTES);
    agent.cloned().unwrap_or(OWN_AGENT)
}

/// Copies one header.
pub(crate) fn copy(from: &HeaderMap, to: &mut HeaderMap, name: &HeaderName) {
    if let Some(value) = from.get(name) {
        to.insert(name, value.clone());
    }
}

fn is_git_protocol(value: &HeaderValue) -> bool {
    let legal = |b: &u8| b.is_ascii_alphanumeric() || b"=:.-_".contains(b);
    value.len() <= GIT_PROTOCOL_BYTES && value.as_bytes().iter().all(legal)
}

/// What no answer of the forge brings to a client: what belongs to one hop, to a browser, to the token, or to the
/// forge's own host.
const DROPPED: &[&str] = &[
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "set-cookie",
    "www-authenticate",
    "authorization",
    "location",
    "alt-svc",
    "strict-transport-security",
    "public-key-pins",
    "content-security-policy",
    "report-to",
    "nel",
    "server",
    "via",
    "x-oauth-scopes",
    "x-accepted-oauth-scopes",
    "x-accepted-github-permissions",
    "x-oauth-client-id",
    "github-authentication-token-expiration",
    "x-github-request-id",
    "x-served-by",
    "x-request-id",
    "x-gitdoor-reason",
];

/// The headers of the forge's answer that reach the client.
#[must_use]
pub fn downward(forge: &HeaderMap) -> HeaderMap {
    let named: Vec<String> = forge
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|name| name.trim().to_ascii_lowercase())
        .collect();
    let passes = |name: &HeaderName| !DROPPED.contains(&name.as_str()) && !named.iter().any(|n| n == name.as_str());
    forge.iter().filter(|(name, _)| passes(name)).map(|(name, value)| (name.clone(), value.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framing(headers: &[(&str, &str)]) -> Result<(), BadFraming> {
        let mut request = Request::builder().uri("/a");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        check_framing(&request.body(()).unwrap())
    }

    #[test]
    fn a_framing_that_two_readers_could_take_differently_is_refused() {
        let host = ("host", "h");
        assert_eq!(framing(&[host]), Ok(()));
        assert_eq!(framing(&[host, ("content-length", "5")]), Ok(()));
        assert_eq!(framing(&[host, ("transfer-encoding", "Chunked")]), Ok(()));
        for length in ["5, 6", "5, 5", "+5", "", "0x5", "-1"] {
            assert_eq!(framing(&[host, ("content-length", length)]), Err(BadFraming::Length), "{length:?}");
        }
        let twice = [host, ("content-length", "5"), ("content-length", "5")];
        assert_eq!(framing(&twice), Err(BadFraming::Length));
        let both = [host, ("content-length", "5"), ("transfer-encoding", "chunked")];
        assert_eq!(framing(&both), Err(BadFraming::Coding));
        for coding in ["gzip, chunked", "identity", "chunked, chunked", "xchunked"] {
            assert_eq!(framing(&[host, ("transfer-encoding", coding)]), Err(BadFraming::Coding), "{coding:?}");
        }
        assert_eq!(framing(&[]), Err(BadFraming::Host));
        assert_eq!(framing(&[host, host]), Err(BadFraming::Host));
    }

    #[test]
    fn a_client_that_names_json_speaks_it() {
        for (name, value, expected) in [
            ("accept", "application/vnd.github.nebula-preview+json, application/json", true),
            ("accept", "application/vnd.git-lfs+json; charset=utf-8", true),
            ("content-type", "Application/JSON; charset=utf-8", true),
            ("accept", "*/*", false),
            ("accept", "", false),
            ("accept", "application/x-git-upload-pack-result", false),
            ("content-type", "application/x-git-receive-pack-request", false),
            ("content-type", "text/jsonish", false),
            ("user-agent", "application/json", false),
        ] {
            let headers = [(name.parse::<HeaderName>().unwrap(), HeaderValue::from_static(value))];
            assert_eq!(speaks_json(&headers.into_iter().collect()), expected, "{name}: {value}");
        }
    }

    #[test]
    fn an_absolute_target_and_connect_are_refused() {
        for (method, target) in [("GET", "http://h/a"), ("CONNECT", "h:443"), ("OPTIONS", "*")] {
            let request = Request::builder().method(method).uri(target).header("host", "h").body(()).unwrap();
            assert_eq!(check_framing(&request), Err(BadFraming::Target), "{method} {target}");
        }
    }

    #[test]
    fn only_named_headers_go_up_and_the_credential_is_ours() {
        let mut client = HeaderMap::new();
        for (name, value) in [
            ("authorization", "Basic client"),
            ("cookie", "a=b"),
            ("x-forwarded-host", "evil"),
            ("accept", "*/*"),
            ("proxy-authorization", "x"),
            ("x-http-method-override", "DELETE"),
            ("connection", "authorization"),
            ("git-protocol", "version=2"),
            ("accept-encoding", "gzip"),
            ("expect", "100-continue"),
            ("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
            ("tracestate", "a=b"),
        ] {
            client.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        let up = upward(&client, Service::ReceivePack, HeaderValue::from_static("Basic ours"));
        let mut names: Vec<_> = up.iter().map(|(n, v)| format!("{n}: {}", v.to_str().unwrap())).collect();
        names.sort();
        let agent = format!("user-agent: gitdoor/{}", env!("CARGO_PKG_VERSION"));
        let expected = [
            "accept-encoding: identity",
            "accept: */*",
            "authorization: Basic ours",
            "git-protocol: version=2",
            &agent,
        ];
        assert_eq!(names, expected);
        assert_eq!(upward(&client, Service::UploadPack, HeaderValue::from_static("x"))[ACCEPT_ENCODING], "gzip");
    }

    #[test]
    fn what_belongs_to_one_hop_or_to_the_token_does_not_come_back() {
        let mut forge = HeaderMap::new();
        for (name, value) in [
            ("connection", "x-foo, close"),
            ("x-foo", "1"),
            ("set-cookie", "a"),
            ("x-oauth-scopes", "repo"),
            ("location", "https://github.com/x"),
            ("content-type", "text/plain"),
            ("cache-control", "no-cache"),
        ] {
            forge.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        let down = downward(&forge);
        let mut names: Vec<_> = down.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["cache-control", "content-type"]);
    }
}
