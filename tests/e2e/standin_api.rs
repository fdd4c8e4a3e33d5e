//! The stand-in's API gives what GitHub's gives and refuses what GitHub refuses. Requests by hand go straight to it.

mod downloads;
mod graphql;

use std::fs;
use std::io::Read as _;

use flate2::read::GzDecoder;
use gitdoor_tests::github::{Canned, Fault, Github, Route, Token};
use gitdoor_tests::raw::{Door, Request, Response};
use serde_json::{Value, json};

/// Everything that a door's read token may.
const READ: &[(&str, &str)] = &[
    ("contents", "read"),
    ("pull_requests", "read"),
    ("issues", "read"),
    ("actions", "read"),
    ("checks", "read"),
    ("statuses", "read"),
    ("metadata", "read"),
];

/// A stand-in with a furnished `acme/api`, and a token that reads all of it.
struct Ground {
    github: Github,
    token: Token,
}

impl Ground {
    fn new() -> Self {
        let github = Github::start();
        github.seed("acme/api").furnished().create();
        let token = github.token(READ, None);
        Self { github, token }
    }

    fn door(&self, address: std::net::SocketAddr) -> Door {
        Door::tls(address, &fs::read_to_string(self.github.ca_file()).unwrap())
    }

    /// Sends a request as any client would, but without a token.
    async fn send(&self, request: Request) -> Response {
        self.door(self.github.api_address()).send(request.header("User-Agent", "tests")).await
    }

    async fn send_as(&self, token: &Token, request: Request) -> Response {
        self.send(request.header("Authorization", &format!("token {}", token.text))).await
    }

    async fn get(&self, path: &str) -> Response {
        self.send_as(&self.token, Request::get(path)).await
    }

    async fn graphql_as(&self, token: &Token, query: &str, variables: Value) -> Value {
        let body = json!({ "query": query, "variables": variables }).to_string();
        let answer = self.send_as(token, Request::post("/graphql").body(body)).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer.json()
    }

    async fn graphql(&self, query: &str, variables: Value) -> Value {
        self.graphql_as(&self.token, query, variables).await
    }

    /// Where an answer's `Location` leads, on the storage host.
    fn download(&self, answer: &Response) -> String {
        assert_eq!(answer.status, 302, "{}", answer.text());
        let location = answer.header("location").unwrap();
        location.strip_prefix(&self.github.storage_url()).unwrap().to_owned()
    }

    async fn stored(&self, request: Request) -> Response {
        self.door(self.github.storage_address()).send(request).await
    }
}

trait Json {
    fn json(&self) -> Value;
    fn message(&self) -> String;
}

impl Json for Response {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    fn message(&self) -> String {
        self.json()["message"].as_str().unwrap_or_default().to_owned()
    }
}

/// The target of a `Link`, without the API's URL.
fn linked(answer: &Response, relation: &str, api: &str) -> Option<String> {
    let relation = format!("rel=\"{relation}\"");
    let link = answer.header("link")?.split(", ").find(|link| link.ends_with(&relation))?;
    let url = link.strip_prefix('<')?.split('>').next()?;
    url.strip_prefix(api).map(str::to_owned)
}

#[tokio::test]
async fn a_request_needs_a_user_agent_a_live_token_and_a_version_that_there_is() {
    let ground = Ground::new();
    let path = "/repos/acme/api";
    let bearer = format!("Bearer {}", ground.token.text);
    let nameless = ground.door(ground.github.api_address());
    let nameless = nameless.send(Request::get(path).header("Authorization", &bearer)).await;
    assert_eq!(nameless.status, 403);
    assert!(nameless.message().contains("User-Agent"), "{}", nameless.text());
    let anonymous = ground.send(Request::get(path)).await;
    assert_eq!((anonymous.status, anonymous.message().as_str()), (401, "Requires authentication"));
    let wrong = ground.send(Request::get(path).header("Authorization", "token ghs_no")).await;
    assert_eq!((wrong.status, wrong.message().as_str()), (401, "Bad credentials"));
    let known = |version: &str| Request::get(path).header("X-GitHub-Api-Version", version);
    assert_eq!(ground.send_as(&ground.token, known("2022-11-28")).await.status, 200);
    assert_eq!(ground.send_as(&ground.token, known("2001-01-01")).await.status, 400);
}

#[tokio::test]
async fn what_a_token_may_not_read_is_403_and_what_it_does_not_see_404() {
    let ground = Ground::new();
    let other = ground.github.create("acme/other");
    let blind = ground.github.token(READ, Some(&[other]));
    let bare = ground.github.token(&[("metadata", "read")], None);
    for (permission, path) in [
        ("metadata", ""),
        ("contents", "/readme"),
        ("contents", "/license"),
        ("contents", "/contents/src/lib.rs"),
        ("contents", "/branches/feature-42"),
        ("contents", "/commits/main"),
        ("contents", "/releases/latest"),
        ("issues", "/issues/3/comments"),
        ("issues", "/labels"),
        ("pull_requests", "/pulls/42/files"),
        ("pull_requests", "/pulls/42/reviews"),
        ("actions", "/actions/runs/77/jobs"),
        ("actions", "/actions/caches"),
        ("secrets", "/actions/secrets/public-key"),
        ("checks", "/commits/feature-42/check-runs"),
        ("checks", "/check-runs/88/annotations"),
        ("statuses", "/commits/feature-42/status"),
    ] {
        let path = format!("/repos/acme/api{path}");
        let enough = ground.github.token(&[("metadata", "read"), (permission, "read")], None);
        let answer = ground.send_as(&enough, Request::get(&path)).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        let answer = ground.send_as(&blind, Request::get(&path)).await;
        assert_eq!((answer.status, answer.message().as_str()), (404, "Not Found"), "{path}");
        if permission != "metadata" {
            let answer = ground.send_as(&bare, Request::get(&path)).await;
            assert_eq!(answer.status, 403, "{path}");
            assert_eq!(answer.message(), "Resource not accessible by integration");
        }
    }
    assert_eq!(ground.get("/repos/acme/api/issues/9999").await.status, 404);
    assert_eq!(ground.get("/user").await.status, 403);
}

#[tokio::test]
async fn nothing_is_changed_under_a_read_token() {
    let ground = Ground::new();
    for (method, path) in [
        ("POST", "/repos/acme/api/issues"),
        ("PATCH", "/repos/acme/api/pulls/42"),
        ("DELETE", "/repos/acme/api/releases/302"),
        ("PUT", "/repos/acme/api/contents/README.md"),
    ] {
        let request = Request::new(method, path).body("{}");
        let answer = ground.send_as(&ground.token, request).await;
        assert_eq!(answer.status, 403, "{method} {path}: {}", answer.text());
        assert_eq!(answer.message(), "Resource not accessible by integration");
    }
    let mutation = "mutation M($input: CreateIssueInput!) { createIssue(input: $input) { issue { id } } }";
    let answer = ground.graphql(mutation, json!({ "input": {} })).await;
    assert_eq!(answer["data"], json!({ "createIssue": null }));
    assert_eq!(answer["errors"][0]["type"], "FORBIDDEN");
    assert_eq!(answer["errors"][0]["message"], "Resource not accessible by integration");
}

#[tokio::test]
async fn a_list_is_cut_into_pages_whose_links_lead_on_by_id() {
    let ground = Ground::new();
    let api = ground.github.api_url();
    let first = ground.get("/repos/acme/api/issues?per_page=100&labels=").await;
    assert_eq!(linked(&first, "prev", &api), None);
    let mut sizes = vec![first.json().as_array().unwrap().len()];
    let mut next = linked(&first, "next", &api);
    let last = linked(&first, "last", &api);
    while let Some(path) = next {
        assert!(path.starts_with("/repositories/") && path.contains("per_page=100"), "{path}");
        let page = ground.get(&path).await;
        sizes.push(page.json().as_array().unwrap().len());
        next = linked(&page, "next", &api);
        assert!(next.is_some() || Some(path) == last);
        assert!(linked(&page, "first", &api).unwrap().ends_with("page=1"));
    }
    assert_eq!(sizes, [100, 100, 50]);
    assert_eq!(ground.get("/repos/acme/api/labels").await.header("link"), None);
}

#[tokio::test]
async fn what_has_not_changed_is_304_and_costs_nothing() {
    let ground = Ground::new();
    let path = "/repos/acme/api";
    let first = ground.get(path).await;
    let left = |answer: &Response| answer.header("x-ratelimit-remaining").unwrap().parse::<u64>().unwrap();
    let again = Request::get(path).header("If-None-Match", first.header("etag").unwrap());
    let same = ground.send_as(&ground.token, again).await;
    assert_eq!((same.status, same.body.len(), left(&same)), (304, 0, left(&first)));
    assert_eq!(left(&ground.get(path).await), left(&first) - 1);
    let other = Request::get(path).header("If-None-Match", "\"another\"");
    assert_eq!(ground.send_as(&ground.token, other).await.status, 200);
}

#[tokio::test]
async fn a_rate_limit_counts_down_and_then_refuses() {
    let ground = Ground::new();
    ground.github.set_rate_limit("search", 2);
    for left in ["1", "0"] {
        let answer = ground.get("/search/issues?q=greet").await;
        assert_eq!((answer.status, answer.header("x-ratelimit-remaining")), (200, Some(left)));
        assert_eq!(answer.header("x-ratelimit-resource"), Some("search"));
    }
    let limited = ground.get("/search/issues?q=greet").await;
    assert_eq!(limited.status, 403);
    assert!(limited.message().starts_with("API rate limit exceeded"), "{}", limited.text());
    let limits = ground.get("/rate_limit").await.json();
    assert_eq!(limits["resources"]["search"]["remaining"], 0);
    assert_eq!(ground.get("/repos/acme/api").await.status, 200);
}

#[tokio::test]
async fn an_answer_is_gzipped_only_for_those_who_take_it() {
    let ground = Ground::new();
    let with = |coding: &str| Request::get("/repos/acme/api").header("Accept-Encoding", coding);
    let plain = ground.send_as(&ground.token, with("identity")).await;
    assert_eq!(plain.header("content-encoding"), None);
    assert_eq!(ground.send_as(&ground.token, with("br, gzip;q=0")).await.header("content-encoding"), None);
    let coded = ground.send_as(&ground.token, with("br, gzip")).await;
    assert_eq!(coded.header("content-encoding"), Some("gzip"));
    assert_eq!(coded.header("content-type"), Some("application/json; charset=utf-8"));
    let mut text = String::new();
    GzDecoder::new(coded.body.as_slice()).read_to_string(&mut text).unwrap();
    assert_eq!(text, plain.text());
}

#[tokio::test]
async fn a_head_has_the_headers_of_a_get_and_no_body() {
    let ground = Ground::new();
    let get = ground.get("/repos/acme/api").await;
    let request = Request::new("HEAD", "/repos/acme/api").header("User-Agent", "tests");
    let request = request.header("Authorization", &format!("token {}", ground.token.text));
    let request = request.header("Connection", "close");
    let door = ground.door(ground.github.api_address());
    let mut connection = door.connect().await.unwrap();
    connection.write(&request.to_bytes(&door.host)).await.unwrap();
    let head = String::from_utf8(connection.rest().await).unwrap();
    assert!(head.starts_with("HTTP/1.1 200") && head.ends_with("\r\n\r\n"), "{head}");
    assert!(head.contains(&format!("etag: {}", get.header("etag").unwrap())), "{head}");
}

#[tokio::test]
async fn a_renamed_repository_redirects_by_its_id_at_any_depth() {
    let ground = Ground::new();
    let id = ground.get("/repos/acme/api").await.json()["id"].as_u64().unwrap();
    ground.github.rename("acme/api", "acme/core");
    for rest in ["", "/pulls/42", "/issues?per_page=1"] {
        let answer = ground.get(&format!("/repos/acme/api{rest}")).await;
        let there = format!("{}/repositories/{id}{rest}", ground.github.api_url());
        assert_eq!((answer.status, answer.header("location")), (301, Some(there.as_str())));
        let answer = ground.get(&format!("/repositories/{id}{rest}")).await;
        assert_eq!(answer.status, 200);
        assert!(!answer.text().contains("acme/api"), "{}", answer.text());
    }
}

#[tokio::test]
async fn a_file_comes_as_json_and_raw_and_a_pull_request_as_gits_own_diff_and_patch() {
    let ground = Ground::new();
    let accepting = |path: &str, media: &str| Request::get(path).header("Accept", media);
    let readme = "/repos/acme/api/contents/README.md";
    let raw = ground.send_as(&ground.token, accepting(readme, "application/vnd.github.raw+json")).await;
    assert_eq!(raw.text(), ground.github.git("acme/api", &["show", "main:README.md"]));
    assert_eq!(ground.get(readme).await.json()["encoding"], "base64");
    let folder = ground.get("/repos/acme/api/contents/src?ref=feature-42").await.json();
    assert_eq!((&folder[0]["path"], &folder[0]["type"]), (&json!("src/lib.rs"), &json!("file")));
    let pull = "/repos/acme/api/pulls/42";
    let diff = ground.send_as(&ground.token, accepting(pull, "application/vnd.github.v3.diff")).await;
    assert_eq!(diff.text(), ground.github.git("acme/api", &["diff", "main...feature-42"]));
    let patch = ground.send_as(&ground.token, accepting(pull, "application/vnd.github.patch")).await;
    assert!(patch.text().contains("Subject: [PATCH] Greet by name"), "{}", patch.text());
}

#[tokio::test]
async fn every_secret_that_an_answer_carries_is_remembered() {
    let ground = Ground::new();
    let bare = ground.github.token(&[("metadata", "read")], None);
    let unseen = ground.send_as(&bare, Request::get("/repos/acme/api")).await;
    assert_eq!(unseen.json()["temp_clone_token"], "");
    assert!(ground.github.returned_secrets().is_empty());
    let clone = ground.get("/repos/acme/api").await.json()["temp_clone_token"].as_str().unwrap().to_owned();
    let query = "{ repository(owner: \"acme\", name: \"api\") { tempCloneToken } }";
    let answer = ground.graphql(query, Value::Null).await;
    assert_eq!(answer["data"]["repository"]["tempCloneToken"], json!(clone));
    let file = ground.get("/repos/acme/api/contents/README.md").await.json();
    let (_, download) = file["download_url"].as_str().unwrap().split_once("?token=").unwrap();
    let path = ground.download(&ground.get("/repos/acme/api/tarball").await);
    let (_, signature) = path.split_once("?sig=").unwrap();
    assert_eq!(ground.github.returned_secrets(), [clone.as_str(), download, signature]);
}

#[tokio::test]
async fn any_path_can_be_told_to_answer_anything() {
    let ground = Ground::new();
    let path = "/repos/acme/api/x";
    let told = Canned::status(418).header("X-OAuth-Scopes", "repo").body("text/plain", "as told");
    ground.github.when(Route::Rest).path(path).answer(told);
    assert_eq!(ground.get("/repos/acme/api/issues/3").await.status, 200);
    let answer = ground.get(path).await;
    assert_eq!((answer.status, answer.text().as_str()), (418, "as told"));
    assert_eq!(answer.header("x-oauth-scopes"), Some("repo"));
    assert_eq!(ground.get(path).await.status, 404);
    let edit = || Fault::edit(|answer| answer["title"] = json!("changed"));
    ground.github.when(Route::Rest).path("/repos/acme/api/issues/3").then(edit());
    assert_eq!(ground.get("/repos/acme/api/issues/3").await.json()["title"], "changed");
    ground.github.when(Route::Graphql).answer(Canned::status(502).message("later"));
    let query = || Request::post("/graphql").body(json!({ "query": "{ viewer { login } }" }).to_string());
    assert_eq!(ground.send_as(&ground.token, query()).await.status, 502);
    assert_eq!(ground.send_as(&ground.token, query()).await.status, 200);
    let there = ground.download(&ground.get("/repos/acme/api/tarball").await);
    ground.github.when(Route::Storage).then(Fault::Cut(10));
    assert!(!ground.stored(Request::get(&there)).await.complete);
}

#[tokio::test]
async fn a_request_is_kept_with_its_token_its_query_and_its_document() {
    let ground = Ground::new();
    ground.get("/repos/acme/api/issues?state=all").await;
    ground.graphql("query Q { viewer { login } }", json!({ "n": 1 })).await;
    let [rest, graphql] = ground.github.requests().try_into().unwrap();
    assert_eq!((rest.route, rest.query.as_deref()), (Route::Rest, Some("state=all")));
    assert_eq!((rest.repository.as_deref(), rest.status), (Some("acme/api"), Some(200)));
    let token = ground.github.token_of(&rest).unwrap();
    assert!(token.may("issues", "read") && !token.may("issues", "write"));
    assert_eq!(graphql.route, Route::Graphql);
    let asked = json!({ "query": "query Q { viewer { login } }", "variables": { "n": 1 } });
    assert_eq!((graphql.json(), graphql.token), (Some(asked), Some(0)));
}
