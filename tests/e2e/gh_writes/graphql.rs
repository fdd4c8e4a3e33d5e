//! A change in a GraphQL request is found wherever it hides, and so is what two readers could read in two ways.

use gitdoor_tests::by_both_gh;
use gitdoor_tests::gh::{Gh, Version};
use gitdoor_tests::github::Route;
use serde_json::json;

use super::{INSTEAD, assert_nothing_was_written, furnished};

by_both_gh![
    a_mutation_is_refused_wherever_it_hides,
    a_body_that_is_not_one_plain_request_is_refused,
    a_request_goes_up_as_the_method_and_the_document_that_were_judged,
];

const STAR: &str = r#"addStar(input: {starrableId: "R_1"}) { clientMutationId }"#;
const MUTATION: &str = "graphql-mutation";

async fn a_mutation_is_refused_wherever_it_hides(version: Version) {
    let (world, gh) = furnished(&version).await;
    let two = format!("query A {{ viewer {{ login }} }} mutation B {{ {STAR} }}");
    let plain = format!("mutation {{ {STAR} }}");
    let documents = [
        plain.clone(),
        format!("fragment F on User {{ login }} mutation M {{ {STAR} }} query A {{ viewer {{ ...F }} }}"),
        format!("# query {{ viewer {{ login }} }}\nmutation M {{ {STAR} }}"),
        format!("query A {{ viewer {{ login }} }}\n# }}\n,,,mutation M {{ {STAR} }}"),
        two.clone(),
    ];
    for document in documents {
        let field = format!("query={document}");
        assert_refused(&gh, &["--raw-field", &field], "", "200", MUTATION).await.says(INSTEAD);
    }
    for name in ["A", "B"] {
        let fields = [format!("operationName={name}"), format!("query={two}")];
        assert_refused(&gh, &["-f", &fields[0], "-f", &fields[1]], "", "200", MUTATION).await.says(INSTEAD);
        let body = json!({ "query": two, "operationName": name }).to_string();
        assert_refused(&gh, &["--input=-"], &body, "200", MUTATION).await.says(INSTEAD);
    }
    let escaped = json!({ "query": plain }).to_string().replace("mutation", r"\u006dutation");
    assert_refused(&gh, &["--input=-"], &escaped, "200", MUTATION).await.says(INSTEAD);
    let subscription = ["-f", "query=subscription S { x { id } }"];
    assert_refused(&gh, &subscription, "", "200", "graphql-subscription").await.says(INSTEAD);
    assert_eq!(world.github.requests_for(Route::Graphql).len(), 0);
    assert_nothing_was_written(&world);
    world.finish().await;
}

/// What is asked beside a query, and how it is refused: body, status, code, words.
const ODD: &[(&str, &str, &str, &str)] = &[
    (
        r#"[{"query":"{viewer{login}}"},{"query":"mutation{a}"}]"#,
        "400",
        "graphql-malformed",
        "one request at a time",
    ),
    (r#"{"query":"{viewer{login}}","query":"mutation{a}"}"#, "400", "graphql-malformed", "repeated key 'query'"),
    (r#"{"query":"mutation{a}","query":"{viewer{login}}"}"#, "400", "graphql-malformed", "repeated key 'query'"),
    (r#"{"query":"mutation{a}","qu\u0065ry":"{a}"}"#, "400", "graphql-malformed", "repeated key 'query'"),
    ("\u{feff}{\"query\":\"{viewer{login}}\"}", "400", "graphql-malformed", "byte order mark"),
    (r#"{"query":"{viewer{login}}"} {"query":"mutation{a}"}"#, "400", "graphql-malformed", "one JSON object"),
    (r#"{"query":"#, "400", "graphql-malformed", "one JSON object"),
    (r#"{"id":"5eed"}"#, "200", "graphql-persisted", "send the whole text as query"),
    (
        r#"{"extensions":{"persistedQuery":{"version":1,"sha256Hash":"5eed"}}}"#,
        "200",
        "graphql-persisted",
        "send the whole text as query",
    ),
    (
        r#"{"query":"{viewer{login}}","extensions":{"persistedQuery":{"version":1,"sha256Hash":"5eed"}}}"#,
        "200",
        "graphql-persisted",
        "send the whole text as query",
    ),
    (
        r#"{"query":"{repository(owner:\"acme\",name:\"api\"){tempCloneToken}}"}"#,
        "200",
        "graphql-credential",
        "clone from this host",
    ),
    (
        r#"{"query":"{repository(owner:\"acme\",name:\"api\"){...F}} fragment F on Repository{id:tempCloneToken}"}"#,
        "200",
        "graphql-credential",
        "clone from this host",
    ),
    (r#"{"query":"{viewer{login}"}"#, "200", "graphql-unparseable", "send one whole GraphQL document"),
    (r#"{"query":"fragment F on User{login}"}"#, "200", "graphql-definition", "send a query"),
];

async fn a_body_that_is_not_one_plain_request_is_refused(version: Version) {
    let (world, gh) = furnished(&version).await;
    for (body, status, reason, words) in ODD {
        assert_refused(&gh, &["--input=-"], body, status, reason).await.says(words);
    }
    let deep = json!({ "query": "{".repeat(100_000) }).to_string();
    assert_refused(&gh, &["--input=-"], &deep, "200", "graphql-unparseable").await;
    let long = json!({ "query": "{".repeat(1 << 20) }).to_string();
    assert_refused(&gh, &["--input=-"], &long, "413", "graphql-too-large").await.says("at most 1048576 bytes");
    let form = ["--header=Content-Type: application/x-www-form-urlencoded", "--input=-"];
    assert_refused(&gh, &form, "query=mutation{a}", "415", "media-type").await.says("application/json");
    let get = ["--method=GET", "--raw-field=query=mutation{a}"];
    assert_refused(&gh, &get, "", "405", "method").await.says("this takes POST only");
    assert_eq!(world.github.requests_for(Route::Graphql).len(), 0);
    assert_nothing_was_written(&world);
    world.finish().await;
}

/// Asserts that gh prints the door's words for this request, whose code is `reason`.
async fn assert_refused(
    gh: &Gh,
    more: &[&str],
    body: &str,
    status: &str,
    reason: &str,
) -> gitdoor_tests::gh::Output {
    let arguments = [&["api", "graphql", "--include"], more].concat();
    let said = gh.run_with_input(&arguments, body.as_bytes()).await.code_is(1);
    assert!(said.stdout.starts_with(&format!("HTTP/1.1 {status} ")), "{said}");
    assert!(said.stderr.starts_with("gh: gitdoor: "), "{said}");
    said.says(&format!("X-Gitdoor-Reason: {reason}\r\n"))
}

async fn a_request_goes_up_as_the_method_and_the_document_that_were_judged(version: Version) {
    let (world, gh) = furnished(&version).await;
    let override_method = "--header=X-HTTP-Method-Override: DELETE";
    gh.run(&["api", override_method, "repos/acme/api?_method=DELETE", "--jq=.full_name"])
        .await
        .ok()
        .says("acme/api");
    let beside = "https://git.door.test/api/graphql?query=mutation%20%7Ba%7D&operationName=B";
    let query = "--raw-field=query={viewer{login}}";
    gh.run(&["api", override_method, beside, query, "--jq=.data.viewer.login"]).await.ok();
    let asked = world.github.requests_for(Route::Repository).remove(0);
    assert_eq!((asked.method.as_str(), asked.query.as_deref()), ("GET", Some("_method=DELETE")));
    let document = world.github.requests_for(Route::Graphql).remove(0);
    assert_eq!((document.query.as_deref(), document.json()), (None, Some(json!({ "query": "{viewer{login}}" }))));
    for request in world.github.requests() {
        assert_eq!(request.header("x-http-method-override"), None, "{request:?}");
    }
    assert_nothing_was_written(&world);
    world.finish().await;
}
