//! What a handler gives back, and how it becomes an answer of the API: media type, `ETag`, `Link`, gzip.

use std::io::Write as _;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::Response;
use hyper::http::request;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use url::form_urlencoded;

use super::page::page;
use crate::github::answer::{Body, Canned};

/// JSON, as GitHub names it.
const JSON: &str = "application/json; charset=utf-8";

/// What was asked for, found.
pub(crate) enum Good {
    /// One object.
    Json(Value),
    /// A list, to be cut into pages.
    List(Vec<Value>),
    /// A list with its length beside it, as `actions` and `search` answer.
    Counted(&'static str, Vec<Value>),
    /// Bytes of another media type.
    Bytes(String, Bytes),
    /// It lies elsewhere.
    Elsewhere(String),
}

/// What was not.
#[derive(Debug, Clone)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) message: String,
}

impl Refusal {
    pub(crate) fn new(status: u16, message: &str) -> Self {
        Self { status, message: message.to_owned() }
    }

    /// It is not there, or must not be known to be.
    pub(crate) fn not_found() -> Self {
        Self::new(404, "Not Found")
    }

    /// The token lacks the permission.
    pub(crate) fn forbidden() -> Self {
        Self::new(403, "Resource not accessible by integration")
    }
}

/// The pairs of a query, decoded.
#[derive(Debug, Clone)]
pub(crate) struct Query(pub(crate) Vec<(String, String)>);

impl Query {
    pub(crate) fn of(head: &request::Parts) -> Self {
        let query = head.uri.query().unwrap_or_default().as_bytes();
        Self(form_urlencoded::parse(query).into_owned().collect())
    }

    /// A parameter's value.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// An answer before it is coded.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) body: Bytes,
    headers: Vec<(&'static str, String)>,
}

impl Reply {
    /// With a header.
    pub(crate) fn header(mut self, name: &'static str, value: String) -> Self {
        self.headers.push((name, value));
        self
    }

    /// 200 with JSON.
    pub(crate) fn json(value: &Value) -> Self {
        Self::new(200, JSON, value.to_string())
    }

    /// Moved for good, as a renamed repository is.
    pub(crate) fn moved(url: &str) -> Self {
        let body = json!({
            "message": "Moved Permanently",
            "url": url,
            "documentation_url": "https://docs.github.com/rest/guides/best-practices-for-using-the-rest-api#follow-redirects",
        });
        Self::new(301, JSON, body.to_string()).header("location", url.to_owned())
    }

    fn linked(self, link: Option<String>) -> Self {
        match link {
            Some(link) => self.header("link", link),
            None => self,
        }
    }

    fn new(status: u16, media: &str, body: impl Into<Bytes>) -> Self {
        let plain = Self { status, body: body.into(), headers: Vec::new() };
        plain
            .header("content-type", media.to_owned())
            .header("x-github-media-type", "github.v3; format=json".to_owned())
            .header("x-github-api-version-selected", super::VERSION.to_owned())
            .header("access-control-allow-origin", "*".to_owned())
            .header("strict-transport-security", "max-age=31536000; includeSubdomains; preload".to_owned())
            .header("x-content-type-options", "nosniff".to_owned())
    }

    /// With an `ETag`; and without a body if the client has the same already.
    pub(crate) fn conditional(self, head: &request::Parts) -> Self {
        if self.status != 200 || !["GET", "HEAD"].contains(&head.method.as_str()) {
            return self;
        }
        let tag = format!("\"{}\"", hex(&Sha256::digest(&self.body)));
        let known = head.headers.get("if-none-match").and_then(|value| value.to_str().ok()).unwrap_or_default();
        let same = known.split(',').any(|one| one.trim().trim_start_matches("W/") == tag);
        let tagged = self
            .header("etag", format!("W/{tag}"))
            .header("cache-control", "private, max-age=60, s-maxage=60".to_owned())
            .header("vary", "Accept, Authorization, Cookie, X-GitHub-OTP, Accept-Encoding".to_owned());
        if same { Self { status: 304, body: Bytes::new(), ..tagged } } else { tagged }
    }

    /// As it goes out, gzipped if it may be.
    pub(crate) fn to_response(&self, gzip: bool) -> Response<Body> {
        let coded = gzip && !self.body.is_empty();
        let body = if coded { zipped(&self.body) } else { self.body.clone() };
        let mut canned = Canned::bytes(self.status, body);
        if coded {
            canned = canned.header("content-encoding", "gzip");
        }
        let headers = self.headers.iter().filter(|(name, _)| self.status != 304 || *name != "content-type");
        headers.fold(canned, |canned, (name, value)| canned.header(name, value)).to_response()
    }
}

impl Good {
    /// The answer; a list is cut into pages, which `Link` names by this URL.
    pub(crate) fn into_reply(self, query: &Query, url: &str) -> Reply {
        match self {
            Self::Json(value) => Reply::json(&value),
            Self::List(items) => {
                let (items, link) = page(items, query, url);
                Reply::json(&Value::from(items)).linked(link)
            }
            Self::Counted(name, items) => {
                let total = items.len();
                let (items, link) = page(items, query, url);
                let mut counted = json!({ "total_count": total, name: items });
                if name == "items" {
                    counted["incomplete_results"] = false.into();
                }
                Reply::json(&counted).linked(link)
            }
            Self::Bytes(media, bytes) => Reply::new(200, &media, bytes),
            Self::Elsewhere(url) => Reply::new(302, "text/html;charset=utf-8", "").header("location", url),
        }
    }
}

impl From<Refusal> for Reply {
    fn from(refusal: Refusal) -> Self {
        let Refusal { status, message } = refusal;
        let body = json!({
            "message": message,
            "documentation_url": "https://docs.github.com/rest",
            "status": status.to_string(),
        });
        Self::new(status, JSON, body.to_string())
    }
}

/// True if a client takes gzip.
pub(crate) fn takes_gzip(head: &request::Parts) -> bool {
    let accepted = head.headers.get_all("accept-encoding").iter().filter_map(|value| value.to_str().ok());
    let codings = accepted.flat_map(|value| value.split(','));
    codings.map(|coding| coding.replace(' ', "")).any(|coding| match coding.split_once(";q=") {
        None => coding.eq_ignore_ascii_case("gzip"),
        Some((name, weight)) => name.eq_ignore_ascii_case("gzip") && weight.parse::<f32>().unwrap_or(0.0) > 0.0,
    })
}

fn zipped(bytes: &[u8]) -> Bytes {
    let mut coder = GzEncoder::new(Vec::new(), Compression::fast());
    coder.write_all(bytes).expect("memory");
    coder.finish().expect("memory").into()
}

/// Bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}
