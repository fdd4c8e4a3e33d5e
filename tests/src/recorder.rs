//! An HTTP proxy that a client has to go through: it leads to the door under the door's name, ends every other
//! connection itself, with a certificate made for it, and keeps what was asked there.
//!
//! So a test sees each request that a stock client would have sent to somebody else, with its credential. Clients need
//! `HTTPS_PROXY` and `http_proxy` for it, and to trust [`Recorder::authority`].

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::uri::Authority as HostAndPort;
use http_body_util::BodyExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::{Body as _, Incoming};
use hyper::header::{HOST, HeaderMap};
use hyper::service::service_fn;
use hyper::{Method, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use crate::authority::Authority;
use crate::github::Canned;

/// Most bytes of a request body that are kept.
const KEPT: usize = 1 << 20;

/// The proxy. It takes no more connections when it is dropped.
pub struct Recorder {
    address: SocketAddr,
    state: Arc<State>,
    accepting: JoinHandle<()>,
}

/// A request that did not go to the door.
#[derive(Debug, Clone)]
pub struct Request {
    /// The host that it was for, with a port that is not the scheme's.
    pub host: String,
    /// Its method.
    pub method: String,
    /// Its path and query, as they came.
    pub target: String,
    /// Its headers.
    pub headers: HeaderMap,
    /// The first MiB of its body.
    pub body: Vec<u8>,
}

impl Request {
    /// A header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
}

/// What all connections share.
struct State {
    /// The door's name.
    door: String,
    /// Where the door listens, if anywhere.
    leads_to: Mutex<Option<SocketAddr>>,
    authority: Authority,
    hosts: Mutex<Vec<String>>,
    requests: Mutex<Vec<Request>>,
    /// Host, beginning of the target, answer.
    answers: Mutex<Vec<(String, String, Canned)>>,
}

impl Recorder {
    /// Starts one that knows the door by this name, and not yet where it is.
    pub async fn start(door: &str) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port");
        let address = listener.local_addr().expect("its address");
        let state = Arc::new(State {
            door: door.to_owned(),
            leads_to: Mutex::default(),
            authority: Authority::new("recorder"),
            hosts: Mutex::default(),
            requests: Mutex::default(),
            answers: Mutex::default(),
        });
        let accepting = tokio::spawn(listen(Arc::clone(&state), listener));
        Self { address, state, accepting }
    }

    /// From now on the door's name leads here.
    pub fn lead_to(&self, address: SocketAddr) {
        *self.state.leads_to.lock().unwrap() = Some(address);
    }

    /// From now on requests to this host are answered so; others with 404.
    pub fn answer(&self, host: &str, answer: Canned) {
        self.answer_under(host, "/", answer);
    }

    /// Likewise, where the path begins so.
    pub fn answer_under(&self, host: &str, path: &str, answer: Canned) {
        self.state.answers.lock().unwrap().push((host.to_owned(), path.to_owned(), answer));
    }

    /// Its URL, as `HTTPS_PROXY` takes it.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What signs the certificates of all hosts but the door: PEM.
    pub fn authority(&self) -> &str {
        self.state.authority.pem()
    }

    /// Every host but the door that a connection or a request was for, each once, in order; also one whose
    /// certificate the client then did not trust.
    pub fn hosts(&self) -> Vec<String> {
        self.state.hosts.lock().unwrap().clone()
    }

    /// Every request that was not for the door, in order.
    pub fn requests(&self) -> Vec<Request> {
        self.state.requests.lock().unwrap().clone()
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

type Answer = Response<UnsyncBoxBody<Bytes, io::Error>>;

async fn listen(state: Arc<State>, listener: TcpListener) {
    while let Ok((stream, _peer)) = listener.accept().await {
        let state = Arc::clone(&state);
        tokio::spawn(async move {
            let service = service_fn(|request| proxy(Arc::clone(&state), request));
            let http = hyper::server::conn::http1::Builder::new();
            let _broken = http.serve_connection(TokioIo::new(stream), service).with_upgrades().await;
        });
    }
}

/// A request to the proxy itself: `CONNECT host:port`, or with a URL of plain HTTP as its target.
async fn proxy(state: Arc<State>, request: hyper::Request<Incoming>) -> Result<Answer, Infallible> {
    let host = host_of(&request);
    if request.method() != Method::CONNECT {
        state.note(&host);
        return Ok(state.keep(&host, request).await);
    }
    if host.eq_ignore_ascii_case(&state.door) {
        let Ok(door) = state.dial().await else { return Ok(Canned::status(502).to_response()) };
        tokio::spawn(async move { tunnel(request, door).await });
    } else {
        state.note(&host);
        tokio::spawn(async move { end_here(state, host, request).await });
    }
    Ok(Canned::status(200).to_response())
}

/// The door's connection, byte for byte.
async fn tunnel(request: hyper::Request<Incoming>, mut door: TcpStream) -> io::Result<()> {
    let client = hyper::upgrade::on(request).await.map_err(io::Error::other)?;
    copy_bidirectional(&mut TokioIo::new(client), &mut door).await.map(|_bytes| ())
}

/// What any other server would have had.
async fn end_here(state: Arc<State>, host: String, request: hyper::Request<Incoming>) -> io::Result<()> {
    let client = TokioIo::new(hyper::upgrade::on(request).await.map_err(io::Error::other)?);
    let name = host.rsplit_once(':').map_or(host.as_str(), |(name, _port)| name);
    let acceptor = TlsAcceptor::from(state.authority.leaf(&[name]).server());
    serve(&state, &host, acceptor.accept(client).await?).await
}

async fn serve<S: AsyncRead + AsyncWrite + Unpin>(state: &State, host: &str, stream: S) -> io::Result<()> {
    let service = service_fn(async |request| Ok::<_, Infallible>(state.keep(host, request).await));
    let http = hyper::server::conn::http1::Builder::new();
    http.serve_connection(TokioIo::new(stream), service).await.map_err(io::Error::other)
}

/// The host that a request to the proxy is for.
fn host_of(request: &hyper::Request<Incoming>) -> String {
    let header = || request.headers().get(HOST).and_then(|value| value.to_str().ok());
    let host = request.uri().authority().map(HostAndPort::as_str).or_else(header);
    let host = host.unwrap_or_default();
    let port = if request.method() == Method::CONNECT { ":443" } else { ":80" };
    host.strip_suffix(port).unwrap_or(host).to_owned()
}

impl State {
    fn note(&self, host: &str) {
        let mut hosts = self.hosts.lock().unwrap();
        if !hosts.iter().any(|known| known == host) {
            hosts.push(host.to_owned());
        }
    }

    async fn dial(&self) -> io::Result<TcpStream> {
        let address = *self.leads_to.lock().unwrap();
        TcpStream::connect(address.ok_or(io::ErrorKind::NotConnected)?).await
    }

    /// Keeps a request, and answers it.
    async fn keep(&self, host: &str, request: hyper::Request<Incoming>) -> Answer {
        let (head, body) = request.into_parts();
        let request = Request {
            host: host.to_owned(),
            method: head.method.to_string(),
            target: head.uri.path_and_query().map(ToString::to_string).unwrap_or_default(),
            headers: head.headers,
            body: read(body).await,
        };
        let answers = self.answers.lock().unwrap();
        let told = answers.iter().rfind(|(known, path, _)| known == host && request.target.starts_with(path));
        self.requests.lock().unwrap().push(request);
        told.map_or_else(
            || Canned::status(404).message("recorder: not the door").to_response(),
            |(_, _, answer)| answer.to_response(),
        )
    }
}

/// A body to its end, and the beginning of it.
async fn read(mut body: Incoming) -> Vec<u8> {
    let mut kept = Vec::new();
    while !body.is_end_stream()
        && let Some(Ok(frame)) = body.frame().await
    {
        let data = frame.into_data().unwrap_or_default();
        kept.extend(data.iter().take(KEPT - kept.len()));
    }
    kept
}
