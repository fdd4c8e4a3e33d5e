//! An answer of the API on its way down: its links lead to the door, and no credential is in it.

use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, LINK, LOCATION};
use http::{HeaderValue, Response, StatusCode};
use hyper::body::Incoming;

use super::api_token;
use crate::api::json::Changes;
use crate::api::links::Links;
use crate::body::{Answer, ApiBody, Body, Watch};
use crate::headers;
use crate::proxy::{Allowed, Exchange, Proxy};
use crate::refusal::Refusal;
use crate::route::Target;
use crate::upstream::UpstreamError;

/// The version of GitHub Enterprise Server that the door's API claims. gh asks for it, and refuses some commands
/// without one; github.com, which serves the API in truth, has every feature of any version.
const INSTALLED_VERSION: &str = "99.0.0";

/// What an answer is of.
pub(super) struct Of<'a> {
    /// The REST resource.
    pub(super) target: Option<&'a Target>,
    /// Where it leads.
    pub(super) location: Option<String>,
}

/// What a body is, by its media type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// `application/json`.
    Json,
    /// Other JSON of the API, or what has no media type: it may hold a credential, and is otherwise none of ours.
    Structured,
    /// A file's content, which may look like anything, or no JSON.
    Opaque,
}

impl Kind {
    fn of(headers: &HeaderMap, target: Option<&Target>) -> Result<Self, UpstreamError> {
        let raw = |name: &str| name.split('.').any(|part| part == "raw");
        let content = target.is_some_and(Target::is_content);
        Ok(match media(headers).as_deref().and_then(|media| media.split_once('/')) {
            Some(("application", "json")) => Self::Json,
            // A script around JSON, in which nothing could be changed.
            Some((_, "javascript" | "x-javascript" | "ecmascript")) if !content => {
                return Err(UpstreamError::Coded);
            }
            Some((_, subtype)) => match subtype.strip_suffix("+json") {
                Some(name) if !(content && raw(name)) => Self::Structured,
                Some(_) | None => Self::Opaque,
            },
            None if content => Self::Opaque,
            // Nobody says what it is.
            None => Self::Structured,
        })
    }
}

/// The one media type of an answer; none where there is none, more than one, or one that is no text.
fn media(headers: &HeaderMap) -> Option<String> {
    let mut types = headers.get_all(CONTENT_TYPE).iter();
    let media = types.next()?.to_str().ok()?;
    let media = media.split(';').next()?.trim().to_ascii_lowercase();
    types.next().is_none().then_some(media)
}

impl Proxy {
    /// Passes an answer of the API on.
    pub(super) fn answer_api(
        &self,
        exchange: &Exchange,
        allowed: Allowed,
        answer: Response<Incoming>,
        of: Of<'_>,
    ) -> Result<Response<Body>, Refusal> {
        let (head, incoming) = answer.into_parts();
        let token = api_token(&allowed.granted.permit)?;
        let links = self.links(exchange)?;
        let mut down = headers::downward(&head.headers);
        lead_to_the_door(&mut down, &links)?;
        if let Some(location) = of.location {
            down.insert(LOCATION, value(&location)?);
        }
        let meta = head.status == StatusCode::OK && of.target.is_some_and(Target::is_meta);
        let version = meta.then_some(INSTALLED_VERSION);
        let kind = Kind::of(&head.headers, of.target)?;
        let change = change(kind, is_gzip(&head.headers)?, Changes { links: Some(links), version });
        if change.is_some() {
            headers::forget_bytes(&mut down);
        }
        // A file's content may look like anything.
        let watch = Watch::new(token, kind != Kind::Opaque);
        watch.head(&down).map_err(UpstreamError::from)?;
        Ok(self.pass(exchange, allowed, (head.status, down), Answer { change, ..Answer::watched(incoming, watch) }))
    }
}

/// The changes that a body needs; none: it goes as it is. Whatever is coded is decoded: in a coding no token is seen.
fn change(kind: Kind, gzip: bool, changes: Changes) -> Option<ApiBody> {
    match kind {
        Kind::Json => Some(ApiBody::json(changes, gzip)),
        Kind::Structured => Some(ApiBody::json(Changes::default(), gzip)),
        Kind::Opaque => gzip.then(ApiBody::coded),
    }
}

/// Whether a body comes in gzip, the one coding that is asked for.
fn is_gzip(headers: &HeaderMap) -> Result<bool, UpstreamError> {
    let mut codings = headers.get_all(CONTENT_ENCODING).iter().map(HeaderValue::as_bytes);
    match (codings.next(), codings.next()) {
        (None, _) => Ok(false),
        (Some(coding), None) if coding.eq_ignore_ascii_case(b"identity") => Ok(false),
        (Some(coding), None) if coding.eq_ignore_ascii_case(b"gzip") => Ok(true),
        (Some(_), _) => Err(UpstreamError::Coded),
    }
}

/// Rewrites each `Link`.
fn lead_to_the_door(headers: &mut HeaderMap, links: &Links) -> Result<(), UpstreamError> {
    let rewritten: Vec<HeaderValue> = headers
        .get_all(LINK)
        .iter()
        .map(|link| value(&links.link_header(link.to_str().map_err(|_unreadable| UpstreamError::Unsendable)?)))
        .collect::<Result<_, _>>()?;
    headers.remove(LINK);
    for link in rewritten {
        headers.append(LINK, link);
    }
    Ok(())
}

fn value(text: &str) -> Result<HeaderValue, UpstreamError> {
    HeaderValue::from_str(text).map_err(|_impossible| UpstreamError::Unsendable)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::route::Route;

    fn kind(media: &'static str, path: &str) -> Result<Kind, UpstreamError> {
        let route = Route::of(&http::Method::GET, &format!("/api/v3{path}").parse().unwrap()).unwrap();
        let Route::Rest(target) = route else { panic!("{path}") };
        Kind::of(&[(CONTENT_TYPE, HeaderValue::from_static(media))].into_iter().collect(), Some(&target))
    }

    #[test]
    fn a_file_that_looks_like_json_is_no_answer_of_the_apis_own() {
        for (media, expected) in [
            ("application/json; charset=utf-8", Kind::Json),
            ("Application/JSON", Kind::Json),
            ("application/vnd.github.object+json; charset=utf-8", Kind::Structured),
            ("application/problem+json", Kind::Structured),
            ("application/vnd.github.v3.raw+json; charset=utf-8", Kind::Opaque),
            ("application/vnd.github.raw+json", Kind::Opaque),
            ("application/vnd.github.v3.diff; charset=utf-8", Kind::Opaque),
            ("text/javascript", Kind::Opaque),
            ("text/plain", Kind::Opaque),
            ("", Kind::Opaque),
        ] {
            assert_eq!(kind(media, "/repos/o/r/contents/f"), Ok(expected), "{media}");
        }
        for path in ["/repos/o/r/readme", "/repositories/1/git/blobs/abc", "/repos/o/r/readme/docs"] {
            assert_eq!(kind("application/vnd.github.raw+json", path), Ok(Kind::Opaque), "{path}");
        }
    }

    #[test]
    fn what_is_no_files_content_is_looked_into() {
        for path in ["/repos/o/r", "/repos/o/r/issues/1", "/repos/contents/readme", "/contents/a"] {
            assert_eq!(kind("application/vnd.github.raw+json", path), Ok(Kind::Structured), "{path}");
            assert_eq!(kind("application/javascript", path), Err(UpstreamError::Coded), "{path}");
            assert_eq!(kind("", path), Ok(Kind::Structured), "{path}");
        }
    }

    #[test]
    fn of_two_media_types_neither_is_believed() {
        let value = HeaderValue::from_static;
        let types = [value("text/plain"), value("application/json")].map(|media| (CONTENT_TYPE, media));
        let mut headers = HeaderMap::new();
        for (name, value) in types {
            headers.append(name, value);
        }
        assert_eq!(Kind::of(&headers, None), Ok(Kind::Structured));
        assert_eq!(Kind::of(&HeaderMap::new(), None), Ok(Kind::Structured));
    }
}
