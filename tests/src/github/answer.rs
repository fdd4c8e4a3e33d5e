//! Answers and their bodies.

use std::io;

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::Response;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use serde_json::{Value, json};

/// A body of any kind.
pub(crate) type Body = UnsyncBoxBody<Bytes, io::Error>;

/// An answer that a test wrote: sent as it is in place of the real one.
#[derive(Debug, Clone)]
pub struct Canned {
    status: u16,
    headers: Vec<(String, String)>,
    body: Bytes,
}

impl Canned {
    /// An empty answer with this status.
    pub fn status(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Bytes::new() }
    }

    pub(crate) fn bytes(status: u16, body: Bytes) -> Self {
        Self { body, ..Self::status(status) }
    }

    /// With a header.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// With a body of this media type.
    pub fn body(mut self, media_type: &str, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self.header("content-type", media_type)
    }

    /// With a JSON body like GitHub's errors.
    pub fn message(self, message: &str) -> Self {
        self.body("application/json; charset=utf-8", json!({ "message": message }).to_string())
    }

    pub(crate) fn to_response(&self) -> Response<Body> {
        let mut response = Response::new(full(self.body.clone()));
        *response.status_mut() = self.status.try_into().expect("a status");
        for (name, value) in &self.headers {
            let name = HeaderName::try_from(name.as_str()).expect("a header's name");
            response.headers_mut().append(name, HeaderValue::try_from(value.as_str()).expect("a header's value"));
        }
        response
    }
}

/// A body of these bytes.
pub(crate) fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}

/// A JSON answer.
pub(crate) fn json(status: u16, value: &Value) -> Response<Body> {
    Canned::status(status).body("application/json; charset=utf-8", value.to_string()).to_response()
}

/// An error of the API.
pub(crate) fn message(status: u16, message: &str) -> Response<Body> {
    Canned::status(status).message(message).to_response()
}

/// An error of the git server.
pub(crate) fn text(status: u16, text: &'static str) -> Response<Body> {
    let mut response = Response::new(full(text));
    *response.status_mut() = status.try_into().expect("a status");
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}
