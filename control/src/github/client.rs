//! The three requests that are made of the forge's API, over TLS that trusts what the operator named.
//!
//! No redirect is followed but one: a 301 of a repository's look-up, one hop, to the same authority. An answer is
//! read up to a limit and within a time.

use std::path::Path;
use std::time::Duration;

use gitdoor_proto::RepositoryName;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, InvalidHeaderValue, LOCATION};
use http::{Method, StatusCode};
use reqwest::{Certificate, Url};
use secrecy::{ExposeSecret, SecretString};

use super::answer::Answer;
use super::{CONNECT_TIMEOUT, ConfigError, OVERALL_TIMEOUT};
use crate::forge::Minted;

/// GitHub answers 403 to a request without one.
const USER_AGENT: &str = concat!("gitdoor/", env!("CARGO_PKG_VERSION"));
/// Most bytes of an answer; a repository's description, the largest expected, is some 10 KiB.
const ANSWER_BYTES: usize = 1 << 20;
/// GitHub closes an idle connection after about a minute; one that it is closing must not carry a request.
const IDLE: Duration = Duration::from_secs(30);
/// Longest that a refused token's caller waits for its revocation.
const REVOCATION: Duration = Duration::from_secs(5);

/// A connection pool to the forge's API.
pub(super) struct Client {
    http: reqwest::Client,
    base: String,
}

/// Where the API is, and how long it may take.
pub(super) struct Reach<'a> {
    pub(super) api_url: &'a str,
    pub(super) ca: Option<&'a Path>,
    pub(super) connect_timeout: Duration,
    pub(super) overall_timeout: Duration,
}

impl<'a> Reach<'a> {
    /// With the usual times.
    pub(super) fn usual(api_url: &'a str, ca: Option<&'a Path>) -> Self {
        Self { api_url, ca, connect_timeout: CONNECT_TIMEOUT, overall_timeout: OVERALL_TIMEOUT }
    }
}

/// There was no complete answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no complete answer of the forge's API")]
pub(super) struct Unreachable;

impl Client {
    pub(super) fn new(reach: &Reach<'_>) -> Result<Self, ConfigError> {
        let base = base_url(reach.api_url)?;
        let builder = reqwest::Client::builder()
            .user_agent(USER_AGENT)
            .default_headers(api_headers())
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            // A proxy of the environment would see the App's credentials on a plain loopback connection.
            .no_proxy()
            .https_only(base.scheme() == "https")
            .pool_idle_timeout(IDLE)
            .connect_timeout(reach.connect_timeout)
            .timeout(reach.overall_timeout);
        let builder = match reach.ca {
            Some(path) => {
                builder.tls_certs_only(certificates(&super::read_file(path, ConfigError::CaUnreadable)?)?)
            }
            // The system's certificates may be missing, and are not needed.
            None if base.scheme() == "http" => builder.tls_certs_only([]),
            None => builder,
        };
        let unusable = if reach.ca.is_some() { ConfigError::CaInvalid } else { ConfigError::CaMissing };
        let http = builder.build().map_err(|_details| unusable)?;
        Ok(Self { http, base: base.as_str().trim_end_matches('/').to_owned() })
    }

    /// Asks for an installation token.
    pub(super) async fn mint(
        &self,
        jwt: &SecretString,
        installation: u64,
        body: Vec<u8>,
    ) -> Result<Answer, Unreachable> {
        let url = format!("{}/app/installations/{installation}/access_tokens", self.base);
        let request = self
            .request(Method::POST, &url, jwt.expose_secret())?
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .body(body);
        send(request).await
    }

    /// Ends a token. Best effort: whether it worked is for the log.
    pub(super) async fn revoke(&self, token: &SecretString) -> Result<StatusCode, Unreachable> {
        let url = format!("{}/installation/token", self.base);
        let request = self.request(Method::DELETE, &url, token.expose_secret())?.timeout(REVOCATION);
        send(request).await.map(|answer| answer.status)
    }

    /// Looks a repository up by its id: what GitHub itself redirects a former name to.
    pub(super) async fn repository(&self, token: &Minted, id: u64) -> Result<Answer, Unreachable> {
        self.look(token, format!("{}/repositories/{id}", self.base)).await
    }

    /// Looks a repository up by a name, following its move once.
    pub(super) async fn repository_named(
        &self,
        token: &Minted,
        name: &RepositoryName,
    ) -> Result<Answer, Unreachable> {
        self.look(token, format!("{}/repos/{name}", self.base)).await
    }

    async fn look(&self, token: &Minted, url: String) -> Result<Answer, Unreachable> {
        let answer = send(self.request(Method::GET, &url, token.expose())?).await?;
        match next_hop(&url, &answer) {
            Some(url) => send(self.request(Method::GET, url.as_str(), token.expose())?).await,
            None => Ok(answer),
        }
    }

    fn request(&self, method: Method, url: &str, credential: &str) -> Result<reqwest::RequestBuilder, Unreachable> {
        // Not a header's text: nothing that GitHub gives looks so.
        let authorization = bearer(credential).map_err(|_hides_the_token| Unreachable)?;
        Ok(self.http.request(method, url).header(AUTHORIZATION, authorization))
    }
}

/// Checks the API's URL, and takes a path, such as Enterprise Server's `/api/v3`.
fn base_url(text: &str) -> Result<Url, ConfigError> {
    let url = Url::parse(text).map_err(|_invalid| ConfigError::UrlInvalid)?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(ConfigError::UrlCredential);
    }
    if !url.has_host() || url.query().is_some() || url.fragment().is_some() {
        return Err(ConfigError::UrlInvalid);
    }
    match url.scheme() {
        "https" => Ok(url),
        "http" if is_loopback(&url) => Ok(url),
        "http" => Err(ConfigError::UrlInsecure),
        _ => Err(ConfigError::UrlInvalid),
    }
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

fn certificates(pem: &[u8]) -> Result<Vec<Certificate>, ConfigError> {
    match Certificate::from_pem_bundle(pem) {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        Ok(_) | Err(_) => Err(ConfigError::CaInvalid),
    }
}

fn api_headers() -> HeaderMap {
    HeaderMap::from_iter([
        (ACCEPT, HeaderValue::from_static("application/vnd.github+json")),
        (http::HeaderName::from_static("x-github-api-version"), HeaderValue::from_static("2022-11-28")),
    ])
}

fn bearer(credential: &str) -> Result<HeaderValue, InvalidHeaderValue> {
    let mut value = HeaderValue::try_from(format!("Bearer {credential}"))?;
    value.set_sensitive(true);
    Ok(value)
}

/// Where a 301 points, if that is the same authority: the token must not go elsewhere.
fn next_hop(from: &str, answer: &Answer) -> Option<Url> {
    if answer.status != StatusCode::MOVED_PERMANENTLY {
        return None;
    }
    let from = Url::parse(from).ok()?;
    let to = from.join(answer.headers.get(LOCATION)?.to_str().ok()?).ok()?;
    let bare = to.username().is_empty() && to.password().is_none();
    (bare && to.origin() == from.origin()).then_some(to)
}

async fn send(request: reqwest::RequestBuilder) -> Result<Answer, Unreachable> {
    exchange(request)
        .await
        .inspect_err(|cause| {
            tracing::warn!(cause = %Causes(cause), "the forge's API did not answer");
        })
        .map_err(|_logged| Unreachable)
}

/// Why an exchange failed; `Display` of the whole chain names addresses and TLS alerts, never a header.
#[derive(Debug, thiserror::Error)]
enum Failed {
    #[error("transport")]
    Transport(#[from] reqwest::Error),
    #[error("an answer longer than {ANSWER_BYTES} bytes")]
    TooLong,
}

async fn exchange(request: reqwest::RequestBuilder) -> Result<Answer, Failed> {
    let mut response = request.send().await?;
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if body.len() + chunk.len() > ANSWER_BYTES {
            return Err(Failed::TooLong);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Answer { status: response.status(), headers: std::mem::take(response.headers_mut()), body })
}

struct Causes<'a>(&'a Failed);

impl std::fmt::Display for Causes<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)?;
        let mut cause = std::error::Error::source(self.0);
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_is_for_loopback_alone() {
        for text in [
            "https://api.github.com",
            "https://ghe.example/api/v3/",
            "http://127.0.0.1:9",
            "http://[::1]:9",
            "http://localhost",
        ] {
            assert!(base_url(text).is_ok(), "{text}");
        }
        for text in ["http://api.github.com", "http://127.0.0.1.example", "http://10.0.0.1", "http://[::2]"] {
            assert!(matches!(base_url(text), Err(ConfigError::UrlInsecure)), "{text}");
        }
    }

    #[test]
    fn a_url_that_is_no_plain_authority_and_path_is_refused_and_not_shown() {
        for text in ["", "api.github.com", "ftp://h", "https://h/?q", "https://h/#f", "unix:/x", "https://"] {
            assert!(matches!(base_url(text), Err(ConfigError::UrlInvalid)), "{text}");
        }
        for text in ["https://user:hush@h", "https://:hush@h", "https://hush@h"] {
            let error = base_url(text).unwrap_err();
            assert!(matches!(error, ConfigError::UrlCredential), "{text}");
            assert!(!format!("{error} {error:?}").contains("hush"));
        }
    }

    #[test]
    fn only_a_301_to_the_same_authority_is_followed() {
        let hop = |status: u16, location: &str| {
            let headers = HeaderMap::from_iter([(LOCATION, HeaderValue::try_from(location).unwrap())]);
            let answer = Answer { status: StatusCode::from_u16(status).unwrap(), headers, body: Vec::new() };
            next_hop("https://h:8443/api/v3/repositories/1", &answer).map(String::from)
        };
        assert_eq!(hop(301, "/api/v3/repositories/2").as_deref(), Some("https://h:8443/api/v3/repositories/2"));
        assert_eq!(hop(301, "https://h:8443/x").as_deref(), Some("https://h:8443/x"));
        for location in
            ["https://evil/x", "https://h/x", "http://h:8443/x", "//evil:8443/x", "https://u@h:8443/x", "\\\\evil"]
        {
            assert_eq!(hop(301, location), None, "{location}");
        }
        for status in [200, 302, 303, 307, 308] {
            assert_eq!(hop(status, "/x"), None, "{status}");
        }
    }
}
