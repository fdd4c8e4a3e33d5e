//! GraphQL: queries go up as they came, and nothing else does.

use gitdoor_proto::v1::Identity;
use gitdoor_tests::github::{Canned, Route};
use gitdoor_tests::raw::{Request, Response};
use gitdoor_tests::world::{Run, World};
use serde_json::json;

use super::{api, body, furnished, send};

async fn ask(world: &World, run: &Run, body: impl Into<Vec<u8>>) -> Response {
    let request = Request::post("/api/graphql").header("Content-Type", "application/json; charset=utf-8");
    send(world, run, request.body(body)).await
}

#[tokio::test]
async fn a_query_goes_up_byte_for_byte() {
    let world = furnished().await;
    let run = world.register(Identity::Read).await;
    let query = " {\"query\" : \"query Q($n:Int!){repository(owner:\\\"acme\\\",name:\\\"api\\\"){issue(number:$n){title}}}\",\n\
                 \"variables\":{\"n\":3}, \"operationName\":\"Q\"}\n";
    let answer = ask(&world, &run, query).await;
    assert_eq!(body(&answer)["data"]["repository"]["issue"]["title"], "Greet in more languages");
    let up = &api(&world)[0];
    assert_eq!(up.body, query.as_bytes());
    assert_eq!(up.header("content-type"), Some("application/json; charset=utf-8"));
    let gone = body(
        &ask(&world, &run, json!({"query": "{repository(owner:\"acme\",name:\"no\"){id}}"}).to_string()).await,
    );
    assert_eq!(gone["errors"][0]["type"], "NOT_FOUND");
    world.finish().await;
}

#[tokio::test]
async fn what_is_no_query_goes_nowhere() {
    let world = furnished().await;
    let run = world.register(Identity::Write).await;
    let query = |text: &str| json!({ "query": text }).to_string();
    let deep = query(&"{".repeat(1 << 20));
    for (request, status, code) in [
        (query("mutation{x}"), 200, "graphql-mutation"),
        (query("query A{a} mutation B{b}"), 200, "graphql-mutation"),
        (query("fragment F on T{a} #\n mutation{b}"), 200, "graphql-mutation"),
        (r#"{"query":"\u006dutation{x}"}"#.to_owned(), 200, "graphql-mutation"),
        (query("subscription{x}"), 200, "graphql-subscription"),
        (query("{repository{t:tempCloneToken}}"), 200, "graphql-credential"),
        (query("{a"), 200, "graphql-unparseable"),
        (query("type A{a:Int}"), 200, "graphql-definition"),
        (r#"{"id":"abc"}"#.to_owned(), 200, "graphql-persisted"),
        (r#"{"query":"{a}","extensions":{"persistedQuery":{"version":1}}}"#.to_owned(), 200, "graphql-persisted"),
        (r#"{"query":"{a}","query":"mutation{x}"}"#.to_owned(), 400, "graphql-malformed"),
        (r#"[{"query":"{a}"}]"#.to_owned(), 400, "graphql-malformed"),
        (format!("\u{feff}{}", query("{a}")), 400, "graphql-malformed"),
        ("{".repeat(1 << 20), 400, "graphql-malformed"),
        (String::new(), 400, "graphql-malformed"),
        (deep, 413, "graphql-too-large"),
    ] {
        let shown: String = request.chars().take(60).collect();
        let answer = ask(&world, &run, request).await;
        assert_eq!((answer.status, answer.header("x-gitdoor-reason")), (status, Some(code)), "{shown}");
        let body = body(&answer);
        let message = if status == 200 { &body["errors"][0]["message"] } else { &body["message"] };
        assert!(message.as_str().unwrap().starts_with("gitdoor: "), "{shown}: {body}");
    }
    for media in ["application/graphql", "text/plain", "application/json; charset=utf-16"] {
        let request = Request::post("/api/graphql").header("Content-Type", media).body(query("{a}"));
        assert_eq!(send(&world, &run, request).await.status, 415, "{media}");
    }
    assert!(api(&world).is_empty());
    world.finish().await;
}

#[tokio::test]
async fn a_redirect_of_graphql_is_never_followed() {
    let world = furnished().await;
    let run = world.register(Identity::Read).await;
    world.github.when(Route::Graphql).answer(Canned::status(307).header("location", "https://evil.test/graphql"));
    let answer = ask(&world, &run, r#"{"query":"{viewer{login}}"}"#).await;
    assert_eq!((answer.status, answer.header("x-gitdoor-reason")), (502, Some("upstream-redirect")));
    world.finish().await;
}
