//! HTTP/2 by hand: several requests at once on one connection, read as fast or as slowly as a test wants.

use std::convert::Infallible;

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream;
use http::Request;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::Frame;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};

use crate::raw::Door;

/// A request's body.
pub type Body = UnsyncBoxBody<Bytes, Infallible>;

/// Bytes that one answer may be ahead of its reader.
const STREAM_WINDOW: u32 = 256 * 1024;
/// Bytes that all answers together may be ahead.
const CONNECTION_WINDOW: u32 = 4 * 1024 * 1024;

/// Opens a connection to a door that offers HTTP/2.
pub async fn connect(door: &Door) -> SendRequest<Body> {
    let stream = door.open(b"h2").await.expect("a connection");
    let mut http = http2::Builder::new(TokioExecutor::new());
    http.initial_stream_window_size(STREAM_WINDOW).initial_connection_window_size(CONNECTION_WINDOW);
    let (sender, connection) = http.handshake(TokioIo::new(stream)).await.expect("HTTP/2");
    // It ends with the sender.
    tokio::spawn(connection);
    sender
}

/// A request to be, with a run's bearer.
pub fn request(door: &Door, method: &str, target: &str, bearer: &str) -> http::request::Builder {
    let uri = format!("https://{}{target}", door.host);
    Request::builder().method(method).uri(uri).header("authorization", format!("Bearer {bearer}"))
}

/// No body, or one whose length is told.
pub fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).boxed_unsync()
}

/// A body whose length nobody knows before its end.
pub fn unsized_body(parts: Vec<Bytes>) -> Body {
    StreamBody::new(stream::iter(parts).map(|part| Ok(Frame::data(part)))).boxed_unsync()
}
