//! Every code that a client can see is explained in the documents, with its status.

use super::*;
use crate::api::graphql::judge;

const DOCUMENT: &str = include_str!("../../../docs/refusals.md");

/// The files that give a refusal its code, each in a match without a wildcard.
const SOURCES: [&str; 5] = [
    include_str!("../refusal.rs"),
    include_str!("../credential.rs"),
    include_str!("../upstream/error.rs"),
    include_str!("../api/refusal.rs"),
    include_str!("../api/graphql.rs"),
];

/// The codes that a file's `fn code` can give.
fn codes(source: &'static str) -> Vec<&'static str> {
    let (_, code) = source.split_once("pub fn code(").unwrap();
    let (code, _) = code.split_once("\n    }\n").unwrap();
    code.lines().filter_map(|line| line.split_once("=> \"")?.1.strip_suffix("\",")).collect()
}

/// The second cell of a code's only row.
fn second_cell(code: &str) -> &'static str {
    let row = format!("\n| `{code}` | ");
    assert_eq!(DOCUMENT.matches(&row).count(), 1, "docs/refusals.md: {code}");
    DOCUMENT.split_once(&row).unwrap().1.split(" | ").next().unwrap()
}

#[track_caller]
fn assert_status(code: &str, status: StatusCode) {
    let cell = second_cell(code);
    let documented = cell.split([' ', ',']).next().unwrap();
    assert_eq!(documented, status.as_str(), "docs/refusals.md: {code}");
}

#[test]
fn every_code_has_a_row_of_its_own() {
    let own: Vec<&str> = SOURCES.into_iter().flat_map(codes).collect();
    assert!(own.len() > 30, "{own:?}");
    let reasons = Reason::ALL.iter().map(|reason| reason.as_str());
    let interruptions = Interruption::ALL.iter().map(|why| why.as_str());
    for code in own.into_iter().chain(reasons).chain(interruptions) {
        second_cell(code);
    }
}

#[test]
fn a_row_has_the_status_that_is_answered() {
    let second = Duration::from_secs(1);
    let upstream = [
        UpstreamError::Connect,
        UpstreamError::Silent,
        UpstreamError::Cut,
        UpstreamError::NotFound,
        UpstreamError::Unauthorized,
        UpstreamError::Forbidden,
        UpstreamError::RateLimited(second),
        UpstreamError::Status(StatusCode::BAD_REQUEST),
        UpstreamError::Redirect,
        UpstreamError::Renamed,
        UpstreamError::NotGit,
        UpstreamError::Coded,
        UpstreamError::TokenInAnswer,
        UpstreamError::Unsendable,
    ];
    let own = [
        Refusal::Framing(BadFraming::Host),
        Refusal::Host,
        Refusal::NoRoute,
        Refusal::BadPath,
        Refusal::Method("GET"),
        Refusal::Service,
        Refusal::NoBearer(NoBearer::Missing),
        Refusal::NoBearer(NoBearer::NotABearer),
        Refusal::NoBearer(NoBearer::Repeated),
        Refusal::Lfs,
        Refusal::LfsLocks,
        Refusal::Gate(GateError::Timeout),
        Refusal::Malformed(Malformed::Empty),
        Refusal::Cut(Interruption::Revoked),
        Refusal::Cut(Interruption::Expired),
        Refusal::Cut(Interruption::Control),
        Refusal::Coding,
        Refusal::Gzip,
        Refusal::TooLarge(1),
        Refusal::NegotiationTooLarge(1),
        Refusal::DrainTooLong,
        Refusal::DrainTooSlow,
        Refusal::ClientLeft,
        Refusal::Draining,
        ApiRefusal::ReadOnly.into(),
        ApiRefusal::Uploads.into(),
        ApiRefusal::BearerAstray.into(),
        ApiRefusal::Callback.into(),
        ApiRefusal::MediaType.into(),
        ApiRefusal::QueryTooLarge(1).into(),
        ApiRefusal::Redirect(String::new()).into(),
        ApiRefusal::Hops(3).into(),
        ApiRefusal::Storage(String::new()).into(),
    ];
    let asked = [
        "x",
        r#"{"query":"{"}"#,
        r#"{"query":"mutation{a}"}"#,
        r#"{"query":"subscription{a}"}"#,
        r#"{"query":"type A{a:B}"}"#,
        r#"{"query":"{tempCloneToken}"}"#,
        r#"{"id":"a"}"#,
    ];
    let asked = asked.map(|body| ApiRefusal::from(judge(body.as_bytes()).unwrap_err()).into());
    for refusal in own.into_iter().chain(upstream.map(Refusal::from)).chain(asked) {
        assert_status(refusal.code(), refusal.status());
    }
    for reason in Reason::ALL {
        // Of a ref the document says the words; its push is answered in a report.
        if second_cell(reason.as_str()).starts_with(|c: char| c.is_ascii_digit()) {
            assert_status(reason.as_str(), status_of(*reason));
        }
    }
}
