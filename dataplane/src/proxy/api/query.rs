//! The body of a GraphQL request: read whole, and judged.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use tokio::time::{Instant, timeout_at};

use crate::api::{ApiRefusal, graphql};
use crate::body::Inbound;
use crate::refusal::Refusal;

/// Time for a client to send its query.
const BODY_TIME: Duration = Duration::from_mins(1);

/// Reads a GraphQL request whole, and judges it.
pub(super) async fn read(headers: &HeaderMap, inbound: &mut Inbound) -> Result<Bytes, Refusal> {
    if !is_json(headers) {
        return Err(ApiRefusal::MediaType.into());
    }
    inbound.decode(headers)?;
    let until = Instant::now() + BODY_TIME;
    let mut body = BytesMut::new();
    while let Some(bytes) = timeout_at(until, inbound.next()).await.map_err(|_elapsed| Refusal::ClientIdle)?? {
        if body.len() + bytes.len() > graphql::MOST_BYTES {
            return Err(ApiRefusal::QueryTooLarge(graphql::MOST_BYTES).into());
        }
        body.extend_from_slice(&bytes);
    }
    graphql::judge(&body).map_err(ApiRefusal::from)?;
    Ok(body.freeze())
}

/// One `Content-Type`, JSON, in UTF-8 where it names a charset (RFC 8259, section 11).
fn is_json(headers: &HeaderMap) -> bool {
    let mut types = headers.get_all(CONTENT_TYPE).iter();
    let media = types.next().and_then(|media| media.to_str().ok()).filter(|_| types.next().is_none());
    media.is_some_and(|media| {
        let mut parts = media.split(';').map(str::trim);
        let utf8 = |part: &str| match part.split_once('=') {
            Some((name, value)) if name.eq_ignore_ascii_case("charset") => {
                value.trim_matches('"').eq_ignore_ascii_case("utf-8")
            }
            Some(_) | None => true,
        };
        parts.next().is_some_and(|kind| kind.eq_ignore_ascii_case("application/json")) && parts.all(utf8)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    #[test]
    fn a_query_is_json_in_utf_8() {
        let is = |values: &[&'static str]| {
            let headers = values.iter().map(|value| (CONTENT_TYPE, HeaderValue::from_static(value))).collect();
            is_json(&headers)
        };
        for good in
            ["application/json", "Application/JSON; charset=UTF-8", "application/json;charset=\"utf-8\";x=y"]
        {
            assert!(is(&[good]), "{good}");
        }
        for bad in
            ["", "text/plain", "application/graphql", "application/json; charset=utf-16", "application/json-x"]
        {
            assert!(!is(&[bad]), "{bad}");
        }
        assert!(!is(&[]));
        assert!(!is(&["application/json", "application/json"]));
    }
}
