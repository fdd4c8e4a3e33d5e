//! Refusals in the language of the client: git's report-status, git's ERR packet, JSON for git-lfs and for the API's
//! clients, or HTTP in words.
//!
//! git prints the text/plain body of a failed GET as `remote:` lines and no body of a failed POST at all, so a refused
//! POST of a live run is a 200 in git's own terms. It is given after the request's body was read to its end: an
//! earlier 200 makes git hang, lose the reason, or send raw pack bytes as new requests.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, Version};
use serde_json::json;
use tokio::time::Instant;

use crate::body::{Body, Drained, Inbound};
use crate::git::receive_pack::Capabilities;
use crate::git::{pktline, report_status};
use crate::headers::speaks_json;
use crate::record::Record;
use crate::refusal::Refusal;
use crate::route::{Route, is_api};

/// Names the reason of a refusal.
pub const REASON: HeaderName = HeaderName::from_static("x-gitdoor-reason");
/// Names the request, in every answer.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const LFS_JSON: HeaderValue = HeaderValue::from_static("application/vnd.git-lfs+json");
const JSON: HeaderValue = HeaderValue::from_static("application/json; charset=utf-8");
const UPLOAD_PACK_RESULT: HeaderValue = HeaderValue::from_static("application/x-git-upload-pack-result");
/// The media type of a receive-pack answer.
pub const RECEIVE_PACK_RESULT: &str = "application/x-git-receive-pack-result";
const NO_CACHE: HeaderValue = HeaderValue::from_static("no-cache");
/// git sends a credential only to a server that asks like this, once.
pub const CHALLENGE: HeaderValue = HeaderValue::from_static("Basic realm=\"gitdoor\"");
/// Longest wait for the end of a refused body.
const DRAIN_TIME: Duration = Duration::from_mins(1);
/// How long a client is still heard behind an answer that came before its body's end.
const LINGER_TIME: Duration = Duration::from_secs(10);
/// For how many bytes, where nothing is known of the client: what the sockets of both sides may hold.
const LINGER_BYTES: u64 = 1024 * 1024;
/// For how many bytes, where a live run sends too much: until it looks up.
const LINGER_BYTES_LIVE: u64 = 64 * 1024 * 1024;

/// What a client understands, known better as its request is read.
pub enum Language {
    /// HTTP with a text body.
    Text,
    /// git-lfs: JSON with a message.
    Lfs,
    /// The API: JSON with a message, or with GraphQL's errors. gh prints no other text.
    Api,
    /// A fetch: an ERR packet.
    Fetch,
    /// A push whose commands were read: a report.
    Push {
        /// What the client asked for.
        capabilities: Capabilities,
        /// The refs that it named, in order.
        refs: Vec<Bytes>,
    },
}

impl Language {
    /// What is understood by who sends this, as far as it can be told before it has a route. A client of the API may
    /// have lost its way, or take the door for another host.
    #[must_use]
    pub fn guess(path: &str, headers: &HeaderMap) -> Self {
        if is_api(path) || speaks_json(headers) { Self::Api } else { Self::Text }
    }

    /// What is understood by who asks for this route.
    #[must_use]
    pub fn of(route: &Route) -> Self {
        match route {
            Route::Discovery(..) | Route::Rpc(..) => Self::Text,
            Route::Lfs | Route::LfsLocks => Self::Lfs,
            Route::Rest(_) | Route::Graphql | Route::Run | Route::Uploads => Self::Api,
        }
    }
}

/// What is left of a refused exchange: everything that an answer is made from.
pub struct Refused {
    /// Why.
    pub refusal: Refusal,
    /// In which language.
    pub language: Language,
    /// The rest of the request's body.
    pub inbound: Inbound,
    /// The request's record.
    pub record: Record,
    /// The request's HTTP version.
    pub version: Version,
    /// The client sends its body only when asked to (`Expect: 100-continue`).
    pub expects: bool,
}

/// When a refusal is told, relative to the rest of the request's body.
enum Delivery {
    /// After the body's end: what git reads as an answer of its own must not come sooner.
    AfterBody,
    /// At once, while a little of the body is still read: a close on unread bytes could lose the answer.
    AtOnce,
    /// At once; the client waits to be asked for its body, and is not.
    Unasked,
}

impl Delivery {
    fn of(refused: &Refused) -> Self {
        let Refused { refusal, language, .. } = refused;
        let spoken = match language {
            Language::Push { .. } | Language::Fetch => !refusal.is_before_policy(),
            Language::Text => matches!(refusal, Refusal::Malformed(_) | Refusal::Gzip),
            Language::Lfs | Language::Api => false,
        };
        if spoken {
            Self::AfterBody
        } else if refused.expects && !refused.inbound.has_begun() {
            Self::Unasked
        } else {
            Self::AtOnce
        }
    }
}

/// Answers a refused request. `most` bounds the bytes of its body that are waited for.
pub async fn refuse(refused: Refused, most: u64) -> Response<Body> {
    let delivery = Delivery::of(&refused);
    let Refused { refusal, language, mut inbound, record, version, .. } = refused;
    record.refused(refusal.code());
    let said = match delivery {
        Delivery::AfterBody => match inbound.drain(most, Instant::now() + DRAIN_TIME).await {
            Drained::Whole => say(&refusal, &language, &record),
            Drained::TooLong => cut_short(&refusal, &Refusal::DrainTooLong, inbound),
            Drained::TooSlow | Drained::Left => cut_short(&refusal, &Refusal::DrainTooSlow, inbound),
        },
        Delivery::AtOnce => {
            linger(inbound, LINGER_BYTES);
            say(&refusal, &language, &record)
        }
        Delivery::Unasked => Said { closes: true, ..say(&refusal, &language, &record) },
    };
    said.response(&refusal, record, version)
}

/// The refusal in the client's language.
fn say(refusal: &Refusal, language: &Language, record: &Record) -> Said {
    match language {
        Language::Push { capabilities, refs } if !refusal.is_before_policy() => {
            report(refusal, capabilities, refs, record)
        }
        Language::Fetch if !refusal.is_before_policy() => error_packet(refusal, record),
        Language::Lfs => json(LFS_JSON, refusal, record),
        Language::Api if refusal.is_of_graphql() => errors(refusal, record),
        Language::Api => json(JSON, refusal, record),
        Language::Text | Language::Fetch | Language::Push { .. } => text(refusal, record),
    }
}

/// The bare status for a body whose end did not come within the bounds.
fn cut_short(refusal: &Refusal, cut: &Refusal, inbound: Inbound) -> Said {
    linger(inbound, LINGER_BYTES_LIVE);
    let body = format!("gitdoor: {refusal}; {cut}\n").into();
    Said { status: cut.status(), media: TEXT, body, closes: true }
}

/// Reads on for a little behind an answer: a client that still sends would see the reset of its connection instead.
fn linger(mut inbound: Inbound, most: u64) {
    tokio::spawn(async move { inbound.drain(most, Instant::now() + LINGER_TIME).await });
}

/// An answer's status, type and body, and whether the connection can go on after it.
struct Said {
    status: StatusCode,
    media: HeaderValue,
    body: Bytes,
    closes: bool,
}

impl Said {
    fn response(self, refusal: &Refusal, record: Record, version: Version) -> Response<Body> {
        record.status(self.status);
        let id = HeaderValue::from_str(record.id());
        let mut response = Response::new(Body::full(self.body, record));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, self.media);
        headers.insert(CACHE_CONTROL, NO_CACHE);
        headers.insert(REASON, HeaderValue::from_static(refusal.code()));
        if let Ok(id) = id {
            headers.insert(REQUEST_ID, id);
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, CHALLENGE);
        }
        if let Some(allowed) = refusal.allowed() {
            headers.insert(ALLOW, HeaderValue::from_static(allowed));
        }
        if let Some(time) = refusal.retry_after() {
            headers.insert(RETRY_AFTER, time.as_secs().max(1).into());
        }
        // After an ambiguous head nobody knows where the next one begins.
        let closes = self.closes || matches!(refusal, Refusal::Framing(_));
        if closes && version < Version::HTTP_2 {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

fn text(refusal: &Refusal, record: &Record) -> Said {
    let body = format!("gitdoor: {refusal}\ngitdoor: request {}\n", record.id());
    Said { status: refusal.status(), media: TEXT, body: body.into(), closes: false }
}

fn json(media: HeaderValue, refusal: &Refusal, record: &Record) -> Said {
    let status = refusal.status();
    let body = json!({
        "message": format!("gitdoor: {refusal}"),
        "status": status.as_str(),
        "code": refusal.code(),
        "request_id": record.id(),
    });
    Said { status, media, body: format!("{body}\n").into(), closes: false }
}

/// The answer to a GraphQL request that was understood and is refused: to gh any status but 200 is a broken server.
fn errors(refusal: &Refusal, record: &Record) -> Said {
    let error = json!({
        "type": "FORBIDDEN",
        "message": format!("gitdoor: {refusal}"),
        "extensions": { "code": refusal.code(), "request_id": record.id() },
    });
    let body = json!({ "errors": [error] });
    Said { status: StatusCode::OK, media: JSON, body: format!("{body}\n").into(), closes: false }
}

fn error_packet(refusal: &Refusal, record: &Record) -> Said {
    let mut body = BytesMut::new();
    let words = format!("ERR gitdoor: {refusal} (request {})", record.id());
    pktline::encode(&mut body, words.as_bytes());
    Said { status: StatusCode::OK, media: UPLOAD_PACK_RESULT, body: body.freeze(), closes: false }
}

fn report(refusal: &Refusal, capabilities: &Capabilities, refs: &[Bytes], record: &Record) -> Said {
    match report_body(refusal, capabilities, refs, record.id()) {
        Some(body) => {
            let media = HeaderValue::from_static(RECEIVE_PACK_RESULT);
            Said { status: StatusCode::OK, media, body, closes: false }
        }
        // Nothing can be reported to a client that asked for no report, and a bare flush would read as success.
        None => Said { status: StatusCode::FORBIDDEN, ..text(refusal, record) },
    }
}

/// The report that refuses a push, each ref with its reason, and the request's id beside it where the client has a band
/// for that; none where the client asked for no report.
#[must_use]
pub fn report_body(
    refusal: &Refusal,
    capabilities: &Capabilities,
    refs: &[Bytes],
    request_id: &str,
) -> Option<Bytes> {
    let message = refusal.to_string();
    let hint = format!("gitdoor: {message}");
    let judged = refusal.verdicts().filter(|verdicts| verdicts.len() == refs.len());
    let reasons: Vec<&str> = match judged {
        Some(verdicts) => verdicts.iter().map(|(_, words)| words.as_str()).collect(),
        None => refs.iter().map(|_| message.as_str()).collect(),
    };
    let lines: Vec<(&[u8], &str)> = refs.iter().map(Bytes::as_ref).zip(reasons).collect();
    let request = format!("gitdoor: request {request_id}");
    let hints: &[&str] = if judged.is_some() { &[&hint, &request] } else { &[&request] };
    report_status::refusal(capabilities, &lines, hints)
}
