//! What is huge or deep: refused, on a stack that is an eighth of a thread's.

use super::*;

const SMALL_STACK: usize = 256 * 1024;

/// The code that a body gets on a small stack, where an overflow would end the tests.
fn on_a_small_stack(body: Vec<u8>) -> &'static str {
    let judged = move || judge(&body).as_ref().map_or_else(Unaskable::code, |()| "ok");
    std::thread::Builder::new().stack_size(SMALL_STACK).spawn(judged).unwrap().join().unwrap()
}

/// Openings with the text before the first, and what closes each.
const NESTINGS: [(&str, &str, &str, &str); 10] = [
    ("", "{", "", ""),
    ("", "{a", "}", ""),
    ("{", "...{", "a}", "}"),
    ("{", "...on A@b{", "a}", "}"),
    ("{", "a:b(c:{d:[1]})@e{", "f}", "}"),
    ("{a(b:", "[", "]", ")}"),
    ("{a(b:", "{c:", "}", ")}"),
    ("{a(b:", "[{c:", "}]", ")}"),
    ("query($a:", "[", "!]", "){a}"),
    ("query($a:Int=", "[", "]", "){a}"),
];

#[test]
fn a_deep_document_is_refused_at_any_depth() {
    for (before, open, _, _) in NESTINGS {
        for count in [200, 9000 / open.len(), 120_000 / open.len(), MOST_BYTES / open.len()] {
            let document = format!("{before}{}", open.repeat(count));
            assert_eq!(on_a_small_stack(asking(&document)), "graphql-unparseable", "{count} of {open}");
        }
    }
}

#[test]
fn a_nesting_far_deeper_than_any_client_s_is_read_and_a_deeper_one_refused() {
    for (before, open, close, after) in NESTINGS.into_iter().skip(1) {
        let nested = |count: usize| {
            let inner = if before.is_empty() || open.ends_with('{') { "" } else { "1" };
            let inner = if before.contains('$') && !before.contains('=') { "Int" } else { inner };
            format!("{before}{}{inner}{}{after}", open.repeat(count), close.repeat(count))
        };
        assert_eq!(on_a_small_stack(asking(&nested(45))), "ok", "{}", nested(45));
        assert_eq!(on_a_small_stack(asking(&nested(101))), "graphql-unparseable", "{}", nested(101));
        assert_eq!(on_a_small_stack(asking(&nested(3000))), "graphql-unparseable", "{open}");
    }
}

#[test]
fn deep_json_is_refused_at_any_depth() {
    for (before, open, close) in [
        ("", "{\"variables\":", "}"),
        ("{\"variables\":{\"a\":", "[", "]"),
        ("{\"variables\":", "{\"a\":", "}"),
        ("{\"query\":", "[{\"a\":", "}]"),
    ] {
        for count in [200, 5000, MOST_BYTES / open.len()] {
            for close in ["", close] {
                let body = format!("{before}{}{}", open.repeat(count), close.repeat(count));
                assert_eq!(on_a_small_stack(body.into()), "graphql-malformed", "{count} of {open}");
            }
        }
    }
}

#[test]
fn a_document_of_too_many_bytes_or_tokens_is_refused_and_long_variables_are_not() {
    let long = "v".repeat(MOST_BYTES / 2);
    for document in
        [format!("{{a{}}}", " ".repeat(128 * 1024)), format!("{{a(b:\"{long}\")}}"), format!("#{long}\n{{a}}")]
    {
        assert_eq!(judge(&asking(&document)), Err(Unaskable::TooLong));
    }
    for many in ["a ", ",", "@a", "\"\"\n", "#\n", "...a", "}", "~", "."] {
        let document = format!("{{a {}}}", many.repeat(40_000 / many.len()));
        assert_eq!(verdict(&document), "graphql-unparseable", "{many}");
    }
    assert_eq!(verdict(&format!("{{{}}}", "a,".repeat(2_900))), "ok");
    let body = serde_json::json!({ "query": "{a}", "variables": { "b": long }, "operationName": long });
    assert_eq!(judge(body.to_string().as_bytes()), Ok(()));
}

#[test]
fn a_request_of_more_values_than_any_client_s_is_refused() {
    for (before, many, after) in
        [("{\"a\":[", "1,", "1]}"), ("{\"a\":[", "{\"b\":[]},", "[]]}"), ("{\"a\":[", "{},[],", "null]}")]
    {
        let body =
            |count: usize| format!(r#"{{"variables":{before}{}{after},"query":"{{a}}"}}"#, many.repeat(count));
        assert_eq!(judge(body(4_900).as_bytes()), Ok(()), "{many}");
        for count in [10_001, (MOST_BYTES - 100) / many.len()] {
            assert!(words(body(count).as_bytes()).contains("more than 10000 values"), "{many}");
        }
    }
    let keys: Vec<String> = (0..10_001).map(|n| format!("\"{n}\":1")).collect();
    let body = format!(r#"{{"variables":{{{}}}}}"#, keys.join(","));
    assert!(words(body.as_bytes()).contains("more than 10000 values"));
}
