//! Every request that came, kept for assertions.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body as _, Frame, Incoming, SizeHint};
use hyper::header::{HOST, HeaderMap};
use serde_json::Value;

use super::route::{Host, Route};
use super::{answer, graphql};

/// Most bytes of a request body that are kept.
const KEPT: usize = 1 << 20;

/// A request as it came, and what it was answered.
#[derive(Debug, Clone)]
pub struct Request {
    /// Which server it came to.
    pub server: Host,
    /// Which connection it came on, counted from the start.
    pub connection: usize,
    /// What it was for.
    pub route: Route,
    /// Its method.
    pub method: String,
    /// Its `Host` header.
    pub host: String,
    /// Its path, as it came.
    pub path: String,
    /// Its query, as it came.
    pub query: Option<String>,
    /// Its headers.
    pub headers: HeaderMap,
    /// The repository's present name, if it is one and the credential was good for it.
    pub repository: Option<String>,
    /// Which minted token it carried: an index into [`super::Github::tokens`].
    pub token: Option<usize>,
    /// The first MiB of the body.
    pub body: Vec<u8>,
    /// Bytes of the body that came.
    pub body_len: u64,
    /// How the body ended.
    pub body_end: BodyEnd,
    /// The status it was answered; missing while there is none.
    pub status: Option<u16>,
    /// Bytes of the answer's body that were handed to the connection.
    pub sent: u64,
    /// How the answer's body ended.
    pub answer_end: BodyEnd,
}

/// How a body ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyEnd {
    /// It has not.
    Open,
    /// As its framing said.
    Clean,
    /// The client went away, or the stand-in stopped reading.
    Cut,
}

impl Request {
    /// A header's value, if it is there and text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// The body, if it is JSON: a GraphQL document and its variables.
    pub fn json(&self) -> Option<Value> {
        serde_json::from_slice(&self.body).ok()
    }

    /// What a GraphQL request asks, by its kind and name: `query RepositoryInfo`.
    pub fn operation(&self) -> Option<String> {
        (self.route == Route::Graphql).then(|| graphql::title(&self.json()?)).flatten()
    }

    /// True for a body of one bare flush.
    pub fn is_probe(&self) -> bool {
        self.body == b"0000"
    }
}

/// All requests.
#[derive(Debug, Default)]
pub(crate) struct Requests(Mutex<Vec<Request>>);

impl Requests {
    /// Opens the record of a request.
    pub(crate) fn open(
        self: &Arc<Self>,
        (server, connection): (Host, usize),
        route: Route,
        request: &hyper::Request<Incoming>,
    ) -> Record {
        let host = request.headers().get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
        let body_end = if request.body().is_end_stream() { BodyEnd::Clean } else { BodyEnd::Open };
        let mut requests = self.0.lock().unwrap();
        requests.push(Request {
            server,
            connection,
            route,
            method: request.method().to_string(),
            host: host.to_owned(),
            path: request.uri().path().to_owned(),
            query: request.uri().query().map(str::to_owned),
            headers: request.headers().clone(),
            repository: None,
            token: None,
            body: Vec::new(),
            body_len: 0,
            body_end,
            status: None,
            sent: 0,
            answer_end: BodyEnd::Open,
        });
        Record { requests: Arc::clone(self), index: requests.len() - 1 }
    }

    /// A copy of the first that is meant.
    pub(crate) fn find(&self, is_meant: impl FnMut(&&Request) -> bool) -> Option<Request> {
        self.0.lock().unwrap().iter().find(is_meant).cloned()
    }

    /// A copy of all.
    pub(crate) fn all(&self) -> Vec<Request> {
        self.0.lock().unwrap().clone()
    }
}

/// The open record of one request.
#[derive(Debug, Clone)]
pub(crate) struct Record {
    requests: Arc<Requests>,
    index: usize,
}

impl Record {
    /// Adds a fact.
    pub(crate) fn note(&self, fact: impl FnOnce(&mut Request)) {
        fact(&mut self.requests.0.lock().unwrap()[self.index]);
    }
}

/// A request's body whose bytes and end go into its record.
pub(crate) struct Body {
    incoming: Incoming,
    record: Record,
}

impl Body {
    pub(crate) fn new(incoming: Incoming, record: Record) -> Self {
        Self { incoming, record }
    }

    /// The next bytes; nothing at the clean end, an error where it was cut.
    pub(crate) async fn chunk(&mut self) -> Option<Result<Bytes, hyper::Error>> {
        loop {
            // After an early answer hyper says nothing of the end of a body whose length was given.
            let frame = if self.incoming.is_end_stream() { None } else { self.incoming.frame().await };
            match frame {
                None => self.end(BodyEnd::Clean),
                Some(Err(_)) => self.end(BodyEnd::Cut),
                Some(Ok(_)) => {}
            }
            match frame?.map(hyper::body::Frame::into_data) {
                Err(error) => return Some(Err(error)),
                Ok(Err(_trailers)) => {}
                Ok(Ok(data)) => {
                    self.record.note(|request| keep(request, &data));
                    return Some(Ok(data));
                }
            }
        }
    }

    /// Reads to the end and throws away.
    pub(crate) async fn drain(&mut self) {
        while let Some(Ok(_)) = self.chunk().await {}
    }

    fn end(&self, end: BodyEnd) {
        self.record.note(|request| {
            if request.body_end == BodyEnd::Open {
                request.body_end = end;
            }
        });
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        self.end(if self.incoming.is_end_stream() { BodyEnd::Clean } else { BodyEnd::Cut });
    }
}

fn keep(request: &mut Request, data: &[u8]) {
    request.body_len += data.len() as u64;
    let room = KEPT.saturating_sub(request.body.len());
    request.body.extend_from_slice(&data[..room.min(data.len())]);
}

/// An answer's body whose bytes and end go into the request's record.
pub(crate) fn counted(body: answer::Body, record: Record) -> answer::Body {
    Counted { body, record }.boxed_unsync()
}

struct Counted {
    body: answer::Body,
    record: Record,
}

impl Counted {
    fn end(&self, end: BodyEnd) {
        self.record.note(|request| {
            if request.answer_end == BodyEnd::Open {
                request.answer_end = end;
            }
        });
    }
}

impl hyper::body::Body for Counted {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let next = ready!(Pin::new(&mut self.body).poll_frame(cx));
        match &next {
            None => self.end(BodyEnd::Clean),
            Some(Err(_)) => self.end(BodyEnd::Cut),
            Some(Ok(frame)) => {
                let bytes = frame.data_ref().map_or(0, Bytes::len) as u64;
                self.record.note(|request| request.sent += bytes);
            }
        }
        Poll::Ready(next)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.end(if self.body.is_end_stream() { BodyEnd::Clean } else { BodyEnd::Cut });
    }
}
