//! The third server: where logs, artifacts, assets and archives lie, as on Azure's blob storage.
//!
//! A signature in the URL is all that opens it. A request that carries a credential of any other kind is refused, as
//! Azure does, so a client that sends its token along gets nothing.

use std::collections::HashMap;
use std::io;
use std::sync::Mutex;

use bytes::Bytes;
use futures_util::stream;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::Response;
use hyper::body::Frame;
use hyper::http::request;
use url::form_urlencoded;

use super::State;
use super::answer::{Body, Canned, full};

/// Most bytes of one piece of a body.
const PIECE: u64 = 64 * 1024;

/// Something to download.
#[derive(Debug, Clone)]
pub(crate) struct Blob {
    pub(crate) file_name: String,
    pub(crate) media: &'static str,
    pub(crate) content: Content,
}

/// What is in it.
#[derive(Debug, Clone)]
pub(crate) enum Content {
    /// These bytes.
    Held(Bytes),
    /// So many bytes, each made when it is sent.
    Made(u64),
}

impl Content {
    fn len(&self) -> u64 {
        match self {
            Self::Held(bytes) => bytes.len() as u64,
            Self::Made(length) => *length,
        }
    }

    fn piece(&self, from: u64, to: u64) -> Bytes {
        match self {
            Self::Held(bytes) => bytes.slice(position(from)..position(to)),
            Self::Made(_) => made(from, to),
        }
    }
}

fn position(offset: u64) -> usize {
    usize::try_from(offset).expect("an offset in memory")
}

/// A stretch of what is made: no two eights of its bytes are alike, and it hardly compresses.
fn made(from: u64, to: u64) -> Bytes {
    let words = from / 8..to.div_ceil(8);
    let bytes = words.flat_map(|word| {
        let mixed = (word + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9).to_le_bytes()
    });
    let ahead = position(from % 8);
    bytes.collect::<Bytes>().slice(ahead..ahead + position(to - from))
}

/// What there is, and the signatures that open it.
#[derive(Debug, Default)]
pub(crate) struct Storage {
    blobs: Mutex<HashMap<String, Blob>>,
    signatures: Mutex<HashMap<String, String>>,
}

impl State {
    /// A link to a blob, with a signature of its own.
    pub(crate) fn signed_link(&self, id: &str, blob: Blob) -> String {
        self.storage.blobs.lock().unwrap().insert(id.to_owned(), blob);
        let signature = self.secrets.make();
        let link = format!("{}/blob/{id}?sig={signature}", self.urls().storage);
        self.storage.signatures.lock().unwrap().insert(signature, id.to_owned());
        link
    }
}

/// Answers a request for a blob.
pub(crate) fn serve(state: &State, head: &request::Parts) -> Response<Body> {
    if ["authorization", "cookie", "token"].iter().any(|name| head.headers.contains_key(*name)) {
        return refuse(403, "AuthenticationFailed", "Server failed to authenticate the request.");
    }
    if !["GET", "HEAD"].contains(&head.method.as_str()) {
        return refuse(405, "UnsupportedHttpVerb", "The resource doesn't support specified Http Verb.");
    }
    let Some(blob) = opened(state, head) else {
        return refuse(403, "AuthenticationFailed", "Signature did not match.");
    };
    let range = head.headers.get("range").and_then(|value| value.to_str().ok());
    let whole = blob.content.len();
    match range.map(|range| bytes_of(range, whole)) {
        None => send(&blob, 200, 0, whole),
        Some(Some((from, to))) => send(&blob, 206, from, to),
        Some(None) => refuse(416, "InvalidRange", "The range specified is invalid."),
    }
}

/// The blob that the path names, if the signature is for it.
fn opened(state: &State, head: &request::Parts) -> Option<Blob> {
    let id = head.uri.path().strip_prefix("/blob/")?;
    let query = head.uri.query().unwrap_or_default().as_bytes();
    let (_, signature) = form_urlencoded::parse(query).find(|(name, _)| name == "sig")?;
    let signed = state.storage.signatures.lock().unwrap().get(&*signature)? == id;
    state.storage.blobs.lock().unwrap().get(id).filter(|_| signed).cloned()
}

/// The bytes that a `Range` of a single part asks for.
fn bytes_of(range: &str, length: u64) -> Option<(u64, u64)> {
    let (from, to) = range.strip_prefix("bytes=")?.split_once('-')?;
    let (from, to) = match (from.parse::<u64>(), to.parse::<u64>()) {
        (Ok(from), Ok(to)) => (from, to.saturating_add(1).min(length)),
        (Ok(from), Err(_)) if to.is_empty() => (from, length),
        (Err(_), Ok(last)) if from.is_empty() => (length.saturating_sub(last), length),
        (Ok(_) | Err(_), Err(_)) | (Err(_), Ok(_)) => return None,
    };
    (from < to).then_some((from, to))
}

fn send(blob: &Blob, status: u16, from: u64, to: u64) -> Response<Body> {
    let mut canned = noise(Canned::status(status))
        .header("content-type", blob.media)
        .header("content-length", &(to - from).to_string())
        .header("content-disposition", &format!("attachment; filename=\"{}\"", blob.file_name))
        .header("accept-ranges", "bytes")
        .header("etag", &format!("\"0x{:016X}\"", blob.content.len()))
        .header("last-modified", "Sun, 02 Nov 2025 12:01:40 GMT");
    if status == 206 {
        let range = format!("bytes {from}-{}/{}", to - 1, blob.content.len());
        canned = canned.header("content-range", &range);
    }
    canned.to_response().map(|_empty| pieces(blob.content.clone(), from, to))
}

/// The body, a piece at a time.
fn pieces(content: Content, from: u64, to: u64) -> Body {
    let pieces = stream::unfold(from, move |at| {
        let content = content.clone();
        async move {
            let end = to.min(at + PIECE);
            (at < to).then(|| (Ok::<_, io::Error>(Frame::data(content.piece(at, end))), end))
        }
    });
    StreamBody::new(pieces).boxed_unsync()
}

fn refuse(status: u16, code: &str, message: &str) -> Response<Body> {
    let xml = format!(
        "\u{feff}<?xml version=\"1.0\" encoding=\"utf-8\"?>\
         <Error><Code>{code}</Code><Message>{message}\nRequestId:5eed0000-001e-0000-0000-000000000000</Message></Error>"
    );
    let response = noise(Canned::status(status)).header("content-type", "application/xml").to_response();
    response.map(|_empty| full(xml))
}

fn noise(canned: Canned) -> Canned {
    canned
        .header("x-ms-request-id", "5eed0000-001e-0000-0000-000000000000")
        .header("x-ms-version", "2025-11-05")
        .header("x-ms-creation-time", "Sun, 02 Nov 2025 12:01:40 GMT")
        .header("x-ms-blob-type", "BlockBlob")
        .header("x-ms-lease-status", "unlocked")
}
