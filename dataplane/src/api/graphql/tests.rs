//! What may be asked and what may not, in words; then what is hidden, what is huge, and what other readers would see.

mod bodies;
mod documents;
mod hidden;
mod readers;
mod weight;

use super::*;

/// A body that asks `document` and nothing else.
fn asking(document: &str) -> Vec<u8> {
    serde_json::json!({ "query": document }).to_string().into_bytes()
}

/// What is said of a document: the code, or `ok`.
fn verdict(document: &str) -> &'static str {
    judge(&asking(document)).as_ref().map_or_else(Unaskable::code, |()| "ok")
}

fn words(body: &[u8]) -> String {
    judge(body).unwrap_err().to_string()
}

#[test]
fn a_code_is_policy_unless_the_request_cannot_be_read() {
    for (body, code, policy) in [
        ("{", "graphql-malformed", false),
        ("[]", "graphql-malformed", false),
        ("\u{feff}{}", "graphql-malformed", false),
        (r#"{"id":1}"#, "graphql-persisted", true),
        (r#"{"query":"{"}"#, "graphql-unparseable", true),
        (r#"{"query":"{a(b:\"\\\\\")}"}"#, "graphql-unparseable", true),
        (r#"{"query":"mutation{a}"}"#, "graphql-mutation", true),
        (r#"{"query":"subscription{a}"}"#, "graphql-subscription", true),
        (r#"{"query":"scalar A"}"#, "graphql-definition", true),
        (r#"{"query":"{tempCloneToken}"}"#, "graphql-credential", true),
    ] {
        let refused = judge(body.as_bytes()).unwrap_err();
        assert_eq!((refused.code(), refused.is_policy()), (code, policy), "{body}");
    }
}

#[test]
fn words_are_one_short_printable_line_whatever_came() {
    let long = "\u{1b}[2J\u{202e}\n\u{e9}x".repeat(1000);
    let name = "n".repeat(1000);
    let bodies = [
        serde_json::json!({ &long: 1 }).to_string(),
        serde_json::json!({ "query": "{a}", "variables": { &name: { &long: [] } }, &long: 1 }).to_string(),
        format!(r#"{{"query":"{{a}}","variables":{{"{name}":1,"{name}":2}}}}"#),
        format!("{{{long}"),
        long.clone(),
    ];
    let documents = [
        format!("{{a}} {long}"),
        format!("mutation {name} {{a}}"),
        format!("subscription {name} {{a}}"),
        format!("{{a {name}(}}"),
        format!("{{a}} {name}"),
        format!("{{a(b:\"{}\u{e9}", name.replace('n', "\u{e9}")),
        "{a}\u{1b}[2J".to_owned(),
        format!("{{a}} \u{e9}{name}"),
    ];
    for body in bodies.into_iter().map(Into::into).chain(documents.iter().map(|document| asking(document))) {
        let words = words(&body);
        assert!(words.bytes().all(|byte| matches!(byte, b' '..=b'~')), "{words:?}");
        assert!(words.len() < 320, "{words:?}");
        assert!(!words.contains(&"n".repeat(81)), "{words:?}");
    }
}
