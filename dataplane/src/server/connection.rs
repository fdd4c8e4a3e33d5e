//! One runtime's work: accept, TLS, HTTP, and the drain.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use gitdoor_proto::tls::Reloaded;
use h2::Reason;
use http::header::USER_AGENT;
use http::{Request, Version};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::framing::Scanned;
use super::socket::{Listener, Patient, Stream};
use crate::api::links::Bases;
use crate::config::Config;
use crate::gate::Gate;
use crate::host::PublicHosts;
use crate::origin::{Peer, Shim};
use crate::proxy::Proxy;
use crate::tls::Identity;
use crate::upstream::{BUFFER, Upstream};

/// Wait after a failed accept: the process is out of descriptors, and a connection that ends frees one.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Once it drains, time for a client that has connected to make its first request: it took this process for one that
/// serves.
const FIRST_REQUEST: Duration = Duration::from_secs(2);
/// Connections that one runtime serves at once; more wait to be accepted.
const CONNECTIONS: usize = 4096;
/// Requests that one HTTP/2 connection may have under way.
const HTTP2_STREAMS: u32 = 64;
/// Bytes that one HTTP/2 stream may send ahead. With the streams above, a connection's worst case is bounded.
const HTTP2_WINDOW: u32 = 1024 * 1024;

/// What this runtime serves requests with.
pub(super) fn proxy(config: &Config, port: Option<u16>) -> Arc<Proxy> {
    Arc::new(Proxy {
        hosts: PublicHosts::new(config.hosts.clone(), port),
        gate: Gate::start(config.controls.clone(), config.connector.clone(), config.gate_timeout),
        upstream: Arc::new(Upstream::new(config.upstream.clone())),
        bases: Bases::new(&config.upstream.api.scheme, &config.upstream.api.authority, &config.upstream.api.path),
        limits: config.limits,
        tasks: TaskTracker::new(),
    })
}

/// Accepts until the drain, and then waits for what is under way.
pub(super) async fn serve(listener: Listener, proxy: Arc<Proxy>, config: &Config, draining: CancellationToken) {
    let open = TaskTracker::new();
    let server = Server {
        http: http(config),
        connections: Arc::new(Semaphore::new(CONNECTIONS)),
        tls: config.tls.clone(),
        shims: config.shims.clone(),
        head_timeout: config.head_timeout,
        idle_timeout: config.upstream.idle_timeout,
        proxy: Arc::clone(&proxy),
        draining: draining.clone(),
    };
    let server = Arc::new(server);
    loop {
        let accepted = tokio::select! {
            accepted = server.accept(&listener) => accepted,
            () = draining.cancelled() => break,
        };
        match accepted {
            Ok(accepted) => drop(open.spawn(Arc::clone(&server).connection(accepted))),
            Err(error) => {
                tracing::warn!(%error, "cannot accept");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    // Who has connected already is served: to a client, a connection that is closed unanswered is a failure.
    while let Some(Ok(accepted)) = server.accept(&listener).now_or_never() {
        drop(open.spawn(Arc::clone(&server).connection(accepted)));
    }
    drop(listener);
    open.close();
    proxy.tasks.close();
    let ended = async { tokio::join!(open.wait(), proxy.tasks.wait()) };
    if timeout(config.drain_timeout, ended).await.is_err() {
        tracing::warn!(pushes = proxy.tasks.len(), "requests under way are cut");
    }
}

fn http(config: &Config) -> auto::Builder<TokioExecutor> {
    let mut http = auto::Builder::new(TokioExecutor::new());
    http.http1().timer(TokioTimer::new()).header_read_timeout(config.head_timeout).max_buf_size(BUFFER);
    http.http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(config.head_timeout)
        .max_concurrent_streams(HTTP2_STREAMS)
        .initial_stream_window_size(HTTP2_WINDOW)
        .initial_connection_window_size(HTTP2_WINDOW)
        .max_send_buf_size(BUFFER);
    if config.http2 { http } else { http.http1_only() }
}

struct Server {
    http: auto::Builder<TokioExecutor>,
    connections: Arc<Semaphore>,
    tls: Option<Arc<Reloaded<Identity>>>,
    shims: Vec<Shim>,
    head_timeout: Duration,
    idle_timeout: Duration,
    proxy: Arc<Proxy>,
    draining: CancellationToken,
}

impl Server {
    /// Accepts a connection when there is a place for one.
    async fn accept(&self, listener: &Listener) -> io::Result<(Stream, OwnedSemaphorePermit)> {
        let place = Arc::clone(&self.connections).acquire_owned().await.map_err(io::Error::other)?;
        Ok((listener.accept().await?, place))
    }

    /// Serves a connection, which keeps its place for as long.
    async fn connection(self: Arc<Self>, (stream, _place): (Stream, OwnedSemaphorePermit)) {
        let peer = Peer::at(stream.peer(), &self.shims);
        let stream = Patient::new(stream, self.idle_timeout);
        let ended = match &self.tls {
            None => self.serve(stream, peer).await,
            Some(tls) => match timeout(self.head_timeout, acceptor(tls).accept(stream)).await {
                Ok(Ok(stream)) => self.serve(stream, peer).await,
                Ok(Err(error)) => Err(error.into()),
                Err(_) => Err(io::Error::from(io::ErrorKind::TimedOut).into()),
            },
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "a connection broke");
        }
    }

    async fn serve(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        peer: Peer,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let (stream, heads) = Scanned::new(stream);
        let proxy = Arc::clone(&self.proxy);
        let greeted = CancellationToken::new();
        let (silent, leave) = (self.silent(greeted.clone()), self.leave(greeted.clone()));
        let service = service_fn(move |request: Request<Incoming>| {
            greeted.cancel();
            let (proxy, framing) = (Arc::clone(&proxy), heads.judge(&request));
            async move {
                if hangs_on_http2(&request) {
                    return Err(h2::Error::from(Reason::HTTP_1_1_REQUIRED));
                }
                Ok(proxy.serve(request, framing, peer).await)
            }
        });
        let mut connection = pin!(self.http.serve_connection(TokioIo::new(stream), service).into_owned());
        tokio::select! {
            served = connection.as_mut() => return served,
            () = silent => return Err(io::Error::from(io::ErrorKind::TimedOut).into()),
            () = leave => connection.as_mut().graceful_shutdown(),
        }
        connection.await
    }

    /// Returns when a client has made no request by the head's time limit. Only HTTP/1.1 has a limit of its own, and
    /// only once the version is known.
    async fn silent(&self, greeted: CancellationToken) {
        if timeout(self.head_timeout, greeted.cancelled()).await.is_ok() {
            std::future::pending::<()>().await;
        }
    }

    /// Returns when this process drains, and the client has made its first request or had the time to.
    async fn leave(&self, greeted: CancellationToken) {
        self.draining.cancelled().await;
        drop(timeout(FIRST_REQUEST, greeted.cancelled()).await);
    }
}

/// With the certificate of now.
fn acceptor(tls: &Reloaded<Identity>) -> TlsAcceptor {
    TlsAcceptor::from(Arc::clone(&tls.current().config))
}

/// Whether this is a push of stock git over HTTP/2. Where such a push fills a flow-control window, libcurl may ask git
/// for more of a body that has ended, and git then waits for ever for bytes that nobody will write
/// (<https://github.com/git/git/pull/1608>). Told so, libcurl takes HTTP/1.1 by itself, and git prints nothing of it.
fn hangs_on_http2<B>(request: &Request<B>) -> bool {
    let agent = request.headers().get(USER_AGENT).map(http::HeaderValue::as_bytes);
    let uri = request.uri();
    request.version() == Version::HTTP_2
        && agent.is_some_and(|agent| agent.starts_with(b"git/"))
        && (uri.path().ends_with("/git-receive-pack")
            || uri.query().is_some_and(|it| it.contains("git-receive-pack")))
}
