//! The storage that the forge's API redirects to: logs, artifacts, assets and archives lie there under signed URLs.
//!
//! Which hosts these are is configuration. A request there carries nothing of the client's but what part of a file it
//! wants, and no credential: the URL is one.

mod address;
mod host;

use std::time::Duration;

use http::header::{ACCEPT, RANGE};
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri};
use hyper::body::Incoming;
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::ClientConfig;
use tower::ServiceExt as _;
use tower::timeout::Timeout;
use url::Url;

use self::address::Resolver;
pub use self::host::{InvalidStorageHost, StorageHost};
use super::counted::Counted;
use super::{BUFFER, Connector, POOL_IDLE, SOCKET_BUFFER, UpstreamError, head};
use crate::api::ApiRefusal;
use crate::body::Outbound;
use crate::headers;
use crate::metrics::Pool;
use crate::refusal::Refusal;

/// Most requests for one file: the storage redirects too, from one region to another.
const HOPS: usize = 3;

/// The hosts of GitHub's own storage.
pub const GITHUB: &str = "*.blob.core.windows.net,*.githubusercontent.com,codeload.github.com";

/// What becomes of a redirect to the storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Redirects {
    /// It is followed here, and the file streamed.
    Follow,
    /// It is passed on to the client.
    Pass,
}

/// What the door knows of the storage.
#[derive(Debug, Clone)]
pub struct Config {
    /// What becomes of a redirect.
    pub redirects: Redirects,
    /// The hosts.
    pub hosts: Vec<StorageHost>,
}

impl Config {
    /// Whether a URL leads to the storage.
    #[must_use]
    pub fn knows(&self, url: &Url) -> bool {
        self.host(url).is_some()
    }

    fn host(&self, url: &Url) -> Option<&StorageHost> {
        self.hosts.iter().find(|host| host.is(url))
    }
}

/// The storage, as one runtime reaches it.
pub(super) struct Storage {
    public: Client<Connector, Outbound>,
    /// For hosts that may have a private address. It is another pool, so that what was let through here cannot be found
    /// there.
    private: Client<Connector, Outbound>,
    head_timeout: Duration,
}

impl Storage {
    pub(super) fn new(config: &super::Config) -> Self {
        let [public, private] = [false, true].map(|private| pool(config, private));
        Self { public, private, head_timeout: config.head_timeout }
    }

    async fn send(
        &self,
        host: &StorageHost,
        request: Request<Outbound>,
    ) -> Result<Response<Incoming>, UpstreamError> {
        let pool = if host.is_private() { &self.private } else { &self.public };
        head(pool, request, self.head_timeout).await
    }
}

/// The whole request: nothing of the client's but these.
fn request(method: &Method, url: &Url, client: &HeaderMap) -> Result<Request<Outbound>, UpstreamError> {
    let mut request = Request::new(Outbound::Full(None));
    *request.method_mut() = method.clone();
    *request.uri_mut() = Uri::try_from(url.as_str()).map_err(|_impossible| UpstreamError::Unsendable)?;
    for name in [ACCEPT, RANGE] {
        headers::copy(client, request.headers_mut(), &name);
    }
    Ok(request)
}

fn pool(config: &super::Config, private: bool) -> Client<Connector, Outbound> {
    let mut http = HttpConnector::new_with_resolver(Resolver::new(private));
    http.enforce_http(false);
    http.set_nodelay(true);
    http.set_recv_buffer_size(Some(SOCKET_BUFFER));
    let tls = ClientConfig::clone(&config.tls);
    let https = HttpsConnectorBuilder::new().with_tls_config(tls).https_only().enable_http1().wrap_connector(http);
    Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(POOL_IDLE)
        .pool_max_idle_per_host(1)
        .http1_max_buf_size(BUFFER)
        .build(Connector::new(
            Timeout::new(https, config.connect_timeout).map_response(Counted::in_pool(Pool::Storage)),
        ))
}

impl super::Upstream {
    /// Fetches a file from the storage, by GET or HEAD, and follows where the storage leads within itself.
    pub async fn fetch_stored(
        &self,
        method: &Method,
        mut url: Url,
        client: &HeaderMap,
    ) -> Result<Response<Incoming>, Refusal> {
        for _ in 0..HOPS {
            let known = self.config.storage.host(&url).ok_or_else(|| ApiRefusal::Redirect(place(&url)))?;
            let answer = match self.storage.send(known, request(method, &url, client)?).await {
                Err(UpstreamError::Connect) => return Err(ApiRefusal::Storage(place(&url)).into()),
                answer => answer?,
            };
            if !answer.status().is_redirection() || answer.status() == StatusCode::NOT_MODIFIED {
                return Ok(answer);
            }
            url = headers::location(&answer, &url).ok_or(UpstreamError::Redirect)?;
        }
        Err(ApiRefusal::Hops(HOPS).into())
    }
}

/// Where a URL leads, for people: without what is secret in it.
#[must_use]
pub fn place(url: &Url) -> String {
    let host = url.host_str().unwrap_or("no host");
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}
