//! The JSON around a document.

use super::*;

#[test]
fn a_request_is_one_object_with_a_query_and_what_belongs_to_it() {
    for body in [
        r#"{"query":"{a}"}"#,
        " \t\r\n{ \"query\" : \"{a}\" } \r\n",
        r#"{"query":"{a}","variables":null,"operationName":null,"extensions":null}"#,
        r#"{"query":"{a}","variables":{},"operationName":"","extensions":{}}"#,
        r#"{"variables":{"a":[1,-2,3.5,true,null,"x",{"a":{"a":[]}}],"query":"mutation{b}"},"query":"{a}"}"#,
        r#"{"operationName":"A","query":"query A{a} query B{b}"}"#,
        r#"{"qu\u0065ry":"\u007ba\u007d"}"#,
        // The shapes that gh sends.
        "{\"query\":\"query Who{viewer{login}}\"}\n",
        r#"{"query":"query Who{viewer{login}}","variables":null}"#,
        r#"{"query":"query($n:Int!){repository(owner:\"o\",name:\"r\"){issue(number:$n){title}}}","variables":{"n":1}}"#,
    ] {
        assert_eq!(judge(body.as_bytes()), Ok(()), "{body}");
    }
}

#[test]
fn anything_but_one_object_is_refused() {
    for body in [
        "",
        " ",
        "null",
        "\"{a}\"",
        "query=%7Ba%7D",
        "{a}",
        "{",
        r#"{"query":"{a}""#,
        r#"{"query":"{a}"}}"#,
        r#"{"query":"{a}"}{"query":"{a}"}"#,
        r#"{"query":"{a}"},"#,
        r#"{"query":"{a}",}"#,
        r#"{"query":"{a}"} // end"#,
        r#"/* */{"query":"{a}"}"#,
        r"{'query':'{a}'}",
        r#"{"query":"{a}","variables":{"a":NaN}}"#,
        r#"{"query":"{a}","variables":{"a":01}}"#,
        r#"{"query":"{a}","variables":{"a":1e999}}"#,
        "{\"query\":\"{a\n}\"}",
        "{\"query\":\"{a}\"}\0",
    ] {
        let refused = judge(body.as_bytes()).unwrap_err();
        assert!(matches!(refused, Unaskable::Body(_)), "{body}: {refused:?}");
        assert!(refused.to_string().contains("one JSON object with query, a string"), "{refused}");
    }
}

#[test]
fn a_batch_is_refused_for_what_it_is() {
    for body in ["[]", " \n[{\"query\":\"{a}\"}]", "[{\"query\":\"{a}\"},{\"query\":\"mutation{b}\"}]"] {
        assert!(words(body.as_bytes()).starts_with("one request at a time"), "{body}");
    }
}

#[test]
fn text_in_another_encoding_or_with_a_mark_is_refused() {
    assert_eq!(judge(b"{\"query\":\"{a}\",\"operationName\":\"\xff\"}"), Err(Unaskable::NotUtf8));
    assert_eq!(judge(b"{\"query\":\"{a}\",\"variables\":{\"\xed\xa0\x80\":1}}"), Err(Unaskable::NotUtf8));
    assert_eq!(judge(b"\xff\xfe{\0}\0"), Err(Unaskable::NotUtf8));
    assert_eq!(judge("\u{feff}{\"query\":\"{a}\"}".as_bytes()), Err(Unaskable::ByteOrderMark));
    for lone in [r#"{"query":"{a}\ud800"}"#, r#"{"query":"{a}","operationName":"\udc00\ud800"}"#] {
        assert!(words(lone.as_bytes()).contains("cannot be read: "), "{lone}");
    }
}

#[test]
fn a_key_occurs_once_however_it_is_spelled_and_wherever_it_is() {
    for (body, key) in [
        (r#"{"query":"{a}","query":"{a}"}"#, "query"),
        (r#"{"query":"{a}","qu\u0065ry":"mutation{b}"}"#, "query"),
        (r#"{"operationName":"A","operationName":"B","query":"{a}"}"#, "operationName"),
        (r#"{"query":"{a}","variables":null,"variables":{}}"#, "variables"),
        (r#"{"extensions":null,"query":"{a}","extensions":null}"#, "extensions"),
        (r#"{"id":1,"id":1}"#, "id"),
        (r#"{"query":"{a}","variables":{"b":1,"\u0062":2}}"#, "b"),
        (r#"{"query":"{a}","variables":{"a":[{"b":{"c":1,"c":1}}]}}"#, "c"),
        (r#"{"query":"{a}","extensions":{"d":{"e":1,"e":1}}}"#, "e"),
    ] {
        let words = words(body.as_bytes());
        assert!(words.contains(&format!("repeated key '{key}' at line 1")), "{body}: {words}");
    }
}

#[test]
fn another_key_is_refused_by_name() {
    for key in ["Query", "query ", "q", "mutation", "operation_name", "_json", "", "extension", "query\u{0}"] {
        let body = serde_json::json!({ "query": "{a}", key: null }).to_string();
        assert!(words(body.as_bytes()).contains(&format!("unknown key '{}'", key.replace('\0', "?"))), "{body}");
    }
}

#[test]
fn a_member_of_another_type_is_refused_by_name() {
    for (members, said) in [
        (r#""query":null"#, "query is not a string"),
        (r#""query":["{a}"]"#, "query is not a string"),
        (r#""query":{"a":1}"#, "query is not a string"),
        (r#""query":1"#, "query is not a string"),
        (r#""variables":{}"#, "there is no query"),
        (r#""query":"{a}","variables":[]"#, "variables is not an object"),
        (r#""query":"{a}","variables":"{}""#, "variables is not an object"),
        (r#""query":"{a}","operationName":1"#, "operationName is not a string"),
        (r#""query":"{a}","operationName":{}"#, "operationName is not a string"),
        (r#""query":"{a}","extensions":[]"#, "extensions is not an object"),
        (r#""query":"{a}","extensions":"""#, "extensions is not an object"),
        // What cannot be read comes before what is not allowed.
        (r#""id":1,"variables":1"#, "variables is not an object"),
    ] {
        let words = words(format!("{{{members}}}").as_bytes());
        assert!(words.contains(said), "{members}: {words}");
    }
}

#[test]
fn a_stored_query_is_refused_with_or_without_a_text() {
    for members in [
        r#""extensions":{"persistedQuery":{"version":1,"sha256Hash":"00"}}"#,
        r#""query":"{a}","extensions":{"persistedQuery":{"version":1,"sha256Hash":"00"}}"#,
        r#""query":"{a}","extensions":{"trace":false}"#,
        r#""id":"1""#,
        r#""id":null,"query":"{a}""#,
        r#""documentId":"sha256:00","variables":{}"#,
        r#""doc_id":7"#,
        r#""queryId":"1","query":"{a}""#,
    ] {
        assert_eq!(judge(format!("{{{members}}}").as_bytes()), Err(Unaskable::Stored), "{members}");
    }
}
