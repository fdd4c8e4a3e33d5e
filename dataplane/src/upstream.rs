//! The forge's side: a pool for what may share a connection, and for each push a connection of its own.
//!
//! HTTP/1.1 both ways: HTTP/2 costs bodies more CPU and lets a slow reader stall others. The forge's scheme and
//! authority are configuration; nothing of a request can change them.

mod api;
mod counted;
mod error;
mod push;
mod socket;
pub mod storage;

use std::sync::Arc;
use std::time::Duration;

use gitdoor_proto::{RepositoryName, Token};
use http::header::{HOST, LOCATION};
use http::uri::{Authority, Scheme};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri};
use hyper::body::Incoming;
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{self, Client};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::ClientConfig;
use tokio::time::timeout;
use tower::timeout::Timeout;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, ServiceExt as _};

use crate::body::Outbound;
use crate::credential::basic;
use crate::metrics::Pool;
use crate::route::Service;

use counted::Counted;

pub use api::{ApiRequest, ApiSite, Asks};
pub use error::UpstreamError;
pub use push::PushConnection;
pub use socket::Lease;

/// hyper's buffer for one direction of one connection. At 64 KiB throughput is that of the 400 KiB default, at a
/// third of the memory for a stalled stream; 16 KiB costs a third more CPU.
pub(crate) const BUFFER: usize = 64 * 1024;
/// The kernel's buffers of one connection, which no figure of this process shows and stalled streams fill.
pub(crate) const SOCKET_BUFFER: usize = 512 * 1024;
/// Idle connections are closed before the forge closes them, so that a request rarely meets a closed one.
const POOL_IDLE: Duration = Duration::from_secs(30);
/// Idle connections kept for the forge, a runtime.
const POOL_SIZE: usize = 32;

/// Where the forge is, and how long to wait for it.
#[derive(Clone)]
pub struct Config {
    /// `https` or, for tests on loopback, `http`.
    pub scheme: Scheme,
    /// Host and port.
    pub authority: Authority,
    /// Its API.
    pub api: ApiSite,
    /// The storage that its API redirects to.
    pub storage: Arc<storage::Config>,
    /// Trusted roots.
    pub tls: Arc<ClientConfig>,
    /// Time to connect.
    pub connect_timeout: Duration,
    /// Time from the end of a request to the head of its answer.
    pub head_timeout: Duration,
    /// Longest silence within a body.
    pub idle_timeout: Duration,
}

/// Makes the pool's connections.
type Connector = BoxCloneSyncService<Uri, Counted, BoxError>;

/// The forge, as one runtime reaches it.
pub struct Upstream {
    config: Config,
    pool: Client<Connector, Outbound>,
    storage: storage::Storage,
}

impl Upstream {
    /// A forge with an empty pool.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let mut http = HttpConnector::new();
        http.enforce_http(false);
        http.set_nodelay(true);
        http.set_send_buffer_size(Some(SOCKET_BUFFER));
        http.set_recv_buffer_size(Some(SOCKET_BUFFER));
        let tls = ClientConfig::clone(&config.tls);
        let https =
            HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_http1().wrap_connector(http);
        let pool = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(POOL_IDLE)
            .pool_max_idle_per_host(POOL_SIZE)
            .http1_max_buf_size(BUFFER)
            // TCP and TLS together.
            .build(Connector::new(
                Timeout::new(https, config.connect_timeout).map_response(Counted::in_pool(Pool::Shared)),
            ));
        let storage = storage::Storage::new(&config);
        Self { config, pool, storage }
    }

    /// The time limits.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Sends a request whose body may share a connection, and waits for the head of the answer.
    pub async fn send(&self, request: GitRequest<'_>, body: Outbound) -> Result<Response<Incoming>, UpstreamError> {
        let request = self.build(request, body)?;
        head(&self.pool, request, self.config.head_timeout).await
    }

    /// Opens the connection of one push.
    pub async fn connect(&self, lease: Arc<Lease>) -> Result<PushConnection, UpstreamError> {
        let config = &self.config;
        match timeout(config.connect_timeout, PushConnection::open(config, lease)).await {
            Err(_) => Err(UpstreamError::Connect),
            Ok(connection) => connection,
        }
    }

    /// Makes a request for the pool: an absolute target, from which the client takes the connection.
    fn build(&self, request: GitRequest<'_>, body: Outbound) -> Result<Request<Outbound>, UpstreamError> {
        let uri = Uri::builder()
            .scheme(self.config.scheme.clone())
            .authority(self.config.authority.clone())
            .path_and_query(request.target())
            .build()
            .map_err(|_impossible| UpstreamError::Unsendable)?;
        request.build(uri, body)
    }

    /// Makes a request for a connection of its own: a target of path and query, and a `Host`.
    pub fn build_own(&self, request: GitRequest<'_>, body: Outbound) -> Result<Request<Outbound>, UpstreamError> {
        let uri = Uri::try_from(request.target()).map_err(|_impossible| UpstreamError::Unsendable)?;
        let mut request = request.build(uri, body)?;
        let host = HeaderValue::from_str(self.config.authority.as_str());
        request.headers_mut().insert(HOST, host.map_err(|_impossible| UpstreamError::Unsendable)?);
        Ok(request)
    }

    /// Where a redirect of a git route leads: the same forge, the same route, another repository. Else nowhere.
    #[must_use]
    pub fn redirect(&self, answer: &Response<Incoming>, asked: &GitRequest<'_>) -> Option<RepositoryName> {
        let location: Uri = answer.headers().get(LOCATION)?.to_str().ok()?.parse().ok()?;
        let here = location.scheme().is_none_or(|scheme| *scheme == self.config.scheme)
            && location.authority().is_none_or(|authority| *authority == self.config.authority);
        let (owner, rest) = location.path().strip_prefix('/')?.split_once('/')?;
        let (name, rest) = rest.split_once('/')?;
        let same_route = here && rest == asked.action() && location.query() == asked.query().as_deref();
        let name = name.strip_suffix(".git").unwrap_or(name);
        RepositoryName::from_segments(owner, name).ok().filter(|_| same_route)
    }
}

/// A git request to the forge.
#[derive(Clone, Copy)]
pub struct GitRequest<'a> {
    /// Discovery, or the service itself.
    pub discovery: bool,
    /// Which service.
    pub service: Service,
    /// Which repository.
    pub repository: &'a RepositoryName,
    /// The client's headers, of which the named ones go up.
    pub client: &'a HeaderMap,
    /// The token.
    pub token: &'a Token,
    /// The body's length, where it is known and goes up unchanged.
    pub length: Option<&'a HeaderValue>,
}

impl GitRequest<'_> {
    fn action(&self) -> &'static str {
        if self.discovery { "info/refs" } else { self.service.as_str() }
    }

    fn query(&self) -> Option<String> {
        self.discovery.then(|| format!("service={}", self.service.as_str()))
    }

    fn target(&self) -> String {
        let query = self.query().map_or_else(String::new, |query| format!("?{query}"));
        format!("/{}.git/{}{query}", self.repository, self.action())
    }

    fn build(&self, uri: Uri, body: Outbound) -> Result<Request<Outbound>, UpstreamError> {
        let credential = HeaderValue::try_from(format!("Basic {}", basic(self.token)));
        let mut credential = credential.map_err(|_impossible| UpstreamError::Unsendable)?;
        credential.set_sensitive(true);
        let mut request = Request::new(body);
        *request.method_mut() = if self.discovery { Method::GET } else { Method::POST };
        *request.uri_mut() = uri;
        *request.headers_mut() = crate::headers::upward(self.client, self.service, credential);
        if let Some(length) = self.length {
            request.headers_mut().insert(http::header::CONTENT_LENGTH, length.clone());
        }
        Ok(request)
    }
}

/// Sends a request and waits for the head of its answer.
async fn head(
    pool: &Client<Connector, Outbound>,
    request: Request<Outbound>,
    most: Duration,
) -> Result<Response<Incoming>, UpstreamError> {
    match timeout(most, pool.request(request)).await {
        Err(_) => Err(UpstreamError::Silent),
        Ok(answer) => answer.map_err(|error| failed(&error)),
    }
}

/// Why there is no answer: no connection, which is logged, or one that was cut.
fn failed(error: &legacy::Error) -> UpstreamError {
    if error.is_connect() {
        tracing::warn!(cause = cause(error), "the forge cannot be reached");
        UpstreamError::Connect
    } else {
        UpstreamError::Cut
    }
}

/// The innermost reason of an error: what the system or the TLS library says.
pub(crate) fn cause(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

/// Whether an answer is a redirect that a git client would follow.
#[must_use]
pub fn is_redirect(status: StatusCode) -> bool {
    [301, 302, 307, 308].contains(&status.as_u16())
}
