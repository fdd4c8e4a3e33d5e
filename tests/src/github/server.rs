//! The listeners, and the walk of a request: record it, let it go wrong or answer it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::header::HeaderValue;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use rustls::ServerConfig;
use socket2::{SockRef, Socket};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::State;
use super::answer::{Body, Canned, text};
use super::fault::{self, Ending, Fault, Rest, edit, progress, spoil};
use super::record::{self, Record};
use super::route::{Host, Target, route};
use super::smart::{self, Asked};
use super::{api, mint, storage};

/// The connection ends here, without an answer.
#[derive(Debug, thiserror::Error)]
#[error("the connection was ended on purpose")]
pub(crate) struct HungUp;

/// Accepts for ever.
pub(crate) async fn listen(state: Arc<State>, host: Host, listener: TcpListener, tls: Arc<ServerConfig>) {
    let acceptor = TlsAcceptor::from(tls);
    while let Ok((stream, _peer)) = listener.accept().await {
        tokio::spawn(connection(Arc::clone(&state), host, stream, acceptor.clone()));
    }
}

/// What a request may do to the connection it came on.
struct Wire {
    number: usize,
    socket: Socket,
    closed: CancellationToken,
}

async fn connection(state: Arc<State>, host: Host, stream: TcpStream, acceptor: TlsAcceptor) {
    let Ok(socket) = SockRef::from(&stream).try_clone() else { return };
    let wire = Arc::new(Wire {
        number: state.connections.fetch_add(1, Ordering::SeqCst),
        socket,
        closed: CancellationToken::new(),
    });
    let _guard = wire.closed.clone().drop_guard();
    let Ok(stream) = acceptor.accept(stream).await else { return };
    let service = service_fn(|request| serve(Arc::clone(&state), host, Arc::clone(&wire), request));
    let http = hyper::server::conn::http1::Builder::new();
    let mut hung_up = state.hung_up.subscribe();
    tokio::select! {
        // A connection that breaks is the client's affair, or a fault that was asked for.
        _ended = http.serve_connection(TokioIo::new(stream), service) => {}
        _now = hung_up.changed() => {}
    }
}

async fn serve(
    state: Arc<State>,
    host: Host,
    wire: Arc<Wire>,
    request: Request<Incoming>,
) -> Result<Response<Body>, HungUp> {
    let (kind, target) = route(host, request.method(), request.uri().path(), request.uri().query());
    let record = state.requests.open((host, wire.number), kind, &request);
    let (head, incoming) = request.into_parts();
    let mut body = Some(record::Body::new(incoming, record.clone()));
    let (delay, fault) = state.faults.take(kind, target.repository(), head.uri.path());
    tokio::time::sleep(delay).await;

    let asks_gzip = api::takes_gzip(&head);
    // What a fault is to change must be plain.
    let gzip = asks_gzip && !matches!(fault, Fault::Edit(_) | Fault::Gzip);
    let walk = Walk { state: &state, kind, target: &target, head: &head, record: &record, gzip };
    let response = match fault {
        Fault::None => walk.answer(&mut body).await,
        Fault::Silent => {
            drain(&mut body).await;
            std::future::pending().await
        }
        Fault::Reset => {
            drain(&mut body).await;
            // With no time to linger, closing sends a reset.
            let _best_effort = wire.socket.set_linger(Some(Duration::ZERO));
            return Err(HungUp);
        }
        Fault::Answer(canned) => {
            drain(&mut body).await;
            canned.to_response()
        }
        Fault::Early(canned, rest) => early(&canned, rest, body.take(), &wire),
        Fault::Cut(bytes) => spoil(walk.answer(&mut body).await, bytes, Ending::Cut),
        Fault::Stall(bytes) => spoil(walk.answer(&mut body).await, bytes, Ending::Stall),
        Fault::Progress(text) => progress(walk.answer(&mut body).await, &text),
        Fault::Gzip => fault::gzip(walk.answer(&mut body).await).await,
        Fault::Edit(change) => {
            let edited = edit(walk.answer(&mut body).await, &change).await;
            if asks_gzip && host == Host::Api { fault::gzip(edited).await } else { edited }
        }
    };
    drain(&mut body).await;
    record.note(|request| request.status = Some(response.status().as_u16()));
    Ok(dress(host, response).map(|body| record::counted(body, record)))
}

/// One request on its way to its answer.
struct Walk<'a> {
    state: &'a State,
    kind: super::Route,
    target: &'a Target,
    head: &'a hyper::http::request::Parts,
    record: &'a Record,
    /// Whether the API may answer in gzip.
    gzip: bool,
}

impl Walk<'_> {
    async fn answer(&self, body: &mut Option<record::Body>) -> Response<Body> {
        let Self { state, kind, target, head, record, gzip } = *self;
        if matches!(target, Target::Mint(_) | Target::RevokeToken | Target::Rest(_) | Target::Graphql)
            && let Err(refusal) = api::precondition(head)
        {
            return api::Reply::from(refusal).to_response(gzip);
        }
        let authorization = head.headers.get("authorization").and_then(|value| value.to_str().ok());
        match (target, &mut *body) {
            (Target::Mint(installation), Some(body)) => mint::mint(state, installation, authorization, body).await,
            (Target::RevokeToken, _) => api::revoke(state, head, record),
            (Target::Rest(_) | Target::Graphql, _) => {
                api::serve(state, target, head, body, record).await.to_response(gzip)
            }
            (Target::Git(name, rest), _) => {
                smart::serve(state, Asked { route: kind, name, rest, head }, body, record).await
            }
            (Target::Blob, _) => storage::serve(state, head),
            (Target::Mint(_) | Target::Unknown, _) => text(404, "Not Found"),
        }
    }
}

impl Target {
    /// `owner/name`, where the path has it.
    fn repository(&self) -> Option<&str> {
        match self {
            Self::Rest(Some(name)) | Self::Git(name, _) => Some(name),
            Self::Mint(_) | Self::RevokeToken | Self::Rest(None) | Self::Graphql | Self::Blob | Self::Unknown => {
                None
            }
        }
    }
}

async fn drain(body: &mut Option<record::Body>) {
    if let Some(mut body) = body.take() {
        body.drain().await;
    }
}

fn early(canned: &Canned, rest: Rest, body: Option<record::Body>, wire: &Wire) -> Response<Body> {
    match (rest, body) {
        (Rest::Close, body) => drop(body),
        (_, None) => {}
        (Rest::Read, Some(mut body)) => {
            tokio::spawn(async move { body.drain().await });
        }
        (Rest::Stall, Some(body)) => {
            let closed = wire.closed.clone();
            tokio::spawn(async move {
                closed.cancelled().await;
                drop(body);
            });
        }
    }
    canned.to_response()
}

/// Adds what GitHub adds to every answer, some of it nothing that a sandbox should see.
fn dress(host: Host, mut response: Response<Body>) -> Response<Body> {
    let server = match host {
        Host::Git => "GitHub-Babel/3.0",
        Host::Api => "github.com",
        Host::Storage => "Windows-Azure-Blob/1.0 Microsoft-HTTPAPI/2.0",
    };
    let headers = response.headers_mut();
    headers.insert("server", HeaderValue::from_static(server));
    if host != Host::Storage {
        headers.insert("x-github-request-id", HeaderValue::from_static("D00D:0001:5EED:CAFE:00000000"));
        headers.append("set-cookie", HeaderValue::from_static("_gh_sess=standin; path=/; secure; HttpOnly"));
    }
    if host == Host::Api {
        headers.entry("x-oauth-scopes").or_insert(HeaderValue::from_static(""));
    }
    response
}
