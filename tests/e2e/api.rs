//! The API's surface, request by request: what is read with which token, what is refused and how, what a run may do.

use std::time::Instant;

use gitdoor_proto::v1::Identity;
use gitdoor_tests::github::{Host, Request as Upstream, Route};
use gitdoor_tests::raw::{Request, Response};
use gitdoor_tests::world::{Run, World};
use serde_json::{Value, json};

use crate::PROGRAM;

mod answers;
mod credentials;
mod graphql;
mod storage;

/// What a read token may do.
const READ: [&str; 6] = ["actions", "checks", "contents", "issues", "metadata", "pull_requests"];

async fn furnished() -> World {
    furnished_with(|builder| builder).await
}

async fn furnished_with(
    change: impl FnOnce(gitdoor_tests::world::Builder) -> gitdoor_tests::world::Builder,
) -> World {
    let world = change(World::builder(PROGRAM)).start().await;
    world.github.seed("acme/api").furnished().create();
    world
}

async fn get(world: &World, run: &Run, path: &str) -> Response {
    send(world, run, Request::get(&format!("/api/v3{path}"))).await
}

async fn send(world: &World, run: &Run, request: Request) -> Response {
    world.door(0).send(request.header("Authorization", &format!("token {}", run.bearer))).await
}

fn body(response: &Response) -> Value {
    let read = serde_json::from_slice(&response.body);
    assert!(read.is_ok(), "no JSON: {}", response.text());
    read.unwrap_or_default()
}

/// The requests that reached the API for a run.
fn api(world: &World) -> Vec<Upstream> {
    let of_control = [Route::Mint, Route::RevokeToken, Route::Repository];
    let requests = world.github.requests().into_iter();
    requests.filter(|request| request.server == Host::Api && !of_control.contains(&request.route)).collect()
}

/// Asserts that a request went up with a token that only reads.
#[track_caller]
fn assert_read_token(world: &World, request: &Upstream) {
    let token = world.github.token_of(request).unwrap();
    let permissions: Vec<_> =
        token.permissions.iter().map(|(name, level)| (name.as_str(), level.as_str())).collect();
    assert_eq!(permissions, READ.map(|name| (name, "read")));
}

#[tokio::test]
async fn a_run_reads_the_api_with_a_token_that_only_reads_bound_or_not_writing_or_not() {
    let world = furnished().await;
    let read = world.register(Identity::Read).await;
    let unbound = world.register(Identity::Write).await;
    let bound = world.registration(Identity::Write).repository("acme/api").send().await.unwrap();
    for run in [&read, &unbound, &bound] {
        let answer = get(&world, run, "/repos/acme/api/issues/3?x=%2F&y").await;
        assert_eq!((answer.status, body(&answer)["title"].as_str()), (200, Some("Greet in more languages")));
        let query = Request::post("/api/graphql").header("Content-Type", "application/json");
        let answer = send(&world, run, query.body(json!({ "query": "{viewer{login}}" }).to_string())).await;
        assert_eq!(body(&answer)["data"]["viewer"]["login"], "acme-door[bot]");
    }
    let requests = api(&world);
    assert_eq!(requests.len(), 6);
    for request in &requests {
        assert_read_token(&world, request);
        assert_eq!(world.github.token_of(request).unwrap().repositories, None);
        assert!(!format!("{:?}", request.headers).contains("sbr_"));
    }
    assert_eq!(requests[0].path, "/repos/acme/api/issues/3");
    assert_eq!(requests[0].query.as_deref(), Some("x=%2F&y"));
    assert_eq!((requests[1].path.as_str(), requests[1].method.as_str()), ("/graphql", "POST"));
    world.finish().await;
}

#[tokio::test]
async fn a_run_without_identity_or_with_a_dead_bearer_reads_nothing() {
    let world = furnished().await;
    let none = world.register(Identity::None).await;
    let revoked = world.register(Identity::Read).await;
    world.revoke(&revoked).await;
    let query = || {
        let request = Request::post("/api/graphql").header("Content-Type", "application/json");
        request.body(r#"{"query":"mutation{x}"}"#)
    };
    for (run, code) in [(&none, "identity-none"), (&revoked, "run-revoked")] {
        for request in [Request::get("/api/v3/"), Request::get("/api/v3/gitdoor/run"), query()] {
            let answer = send(&world, run, request).await;
            assert_eq!((answer.status, answer.header("x-gitdoor-reason")), (403, Some(code)));
            assert!(body(&answer)["message"].as_str().unwrap().starts_with("gitdoor: "));
        }
    }
    for (request, code) in [(Request::get("/api/v3/meta"), "no-credential"), (query(), "no-credential")] {
        let answer = world.door(0).send(request).await;
        assert_eq!((answer.status, answer.header("x-gitdoor-reason")), (401, Some(code)));
        assert_eq!(answer.header("www-authenticate"), Some("Basic realm=\"gitdoor\""));
        assert!(body(&answer)["message"].is_string());
    }
    assert!(api(&world).is_empty());
    world.finish().await;
}

#[tokio::test]
async fn what_is_not_read_is_refused_in_json_and_goes_nowhere() {
    let world = furnished().await;
    let run = world.register(Identity::Write).await;
    for (method, target, status, code) in [
        ("POST", "/api/v3/repos/acme/api/issues", 405, "api-read-only"),
        ("PATCH", "/api/v3/repos/acme/api", 405, "api-read-only"),
        ("PUT", "/api/v3/repos/acme/api/pulls/42/merge", 405, "api-read-only"),
        ("DELETE", "/api/v3/repos/acme/api/releases/1", 405, "api-read-only"),
        ("OPTIONS", "/api/v3/", 405, "api-read-only"),
        ("GET", "/api/graphql", 405, "method"),
        ("POST", "/api/uploads/repos/acme/api/releases/302/assets?name=x", 403, "api-uploads"),
        ("GET", "/api/uploads/x", 403, "api-uploads"),
        ("GET", "/api", 404, "no-route"),
        ("GET", "/api/v4/x", 404, "no-route"),
        ("GET", "/api/v3/gitdoor/other", 404, "no-route"),
        ("GET", "/api/v3/repos/acme/api/../web", 400, "bad-path"),
        ("GET", "/api/v3/repos/acme/api/%2e%2e/web", 400, "bad-path"),
        ("GET", "/api/v3/repos/acme/api/contents/a%252f..%252fb", 400, "bad-path"),
        ("GET", "/api/v3//user", 400, "bad-path"),
        ("GET", "/api/v3/repos/acme/api?callback=x", 400, "api-callback"),
        ("GET", "/api/v3/graphql?query=%7Bviewer%7Blogin%7D%7D", 405, "method"),
        ("POST", "/api/v3/graphql", 405, "method"),
    ] {
        let answer = send(&world, &run, Request::new(method, target).body("{}")).await;
        assert_eq!((answer.status, answer.header("x-gitdoor-reason")), (status, Some(code)), "{method} {target}");
        assert!(answer.header("content-type").unwrap().starts_with("application/json"), "{method} {target}");
        let body = body(&answer);
        assert!(body["message"].as_str().unwrap().starts_with("gitdoor: "), "{method} {target}");
        assert_eq!(body["request_id"].as_str(), answer.header("x-request-id"));
    }
    let answer = send(&world, &run, Request::new("DELETE", "/api/v3/x")).await;
    assert_eq!(answer.header("allow"), Some("GET, HEAD"));
    assert!(body(&answer)["message"].as_str().unwrap().contains("push"), "what may be done instead");
    let other = send(&world, &run, Request::get("/api/v3/").header("Host", "api.github.com")).await;
    assert_eq!((other.status, body(&other)["code"].as_str()), (421, Some("host")));
    assert!(api(&world).is_empty());
    world.finish().await;
}

#[tokio::test]
async fn without_control_nothing_is_read() {
    let mut world = furnished().await;
    let run = world.register(Identity::Read).await;
    assert_eq!(get(&world, &run, "/repos/acme/api").await.status, 200);
    world.control().kill().await;
    let query = Request::post("/api/graphql").header("Content-Type", "application/json");
    let query = query.body(r#"{"query":"{viewer{login}}"}"#);
    let before = world.github.requests().len();
    for request in [Request::get("/api/v3/repos/acme/api"), Request::get("/api/v3/gitdoor/run"), query] {
        let answer = send(&world, &run, request).await;
        assert_eq!((answer.status, answer.header("x-gitdoor-reason")), (503, Some("control-unreachable")));
        assert!(answer.header("retry-after").is_some() && body(&answer)["message"].is_string());
    }
    assert_eq!(world.github.requests().len(), before);
    world.finish().await;
}

#[tokio::test]
async fn gh_may_speak_http_2() {
    let world = furnished_with(|builder| builder.http2().dataplane_flag("--log-format=json")).await;
    let run = world.register(Identity::Read).await;
    let gh = world.gh(&run, &gitdoor_tests::gh::newest());
    let paged = gh.run(&["api", "--paginate", "repos/acme/api/issues?per_page=100", "-q", "length"]).await;
    assert_eq!((paged.code, paged.stdout.as_str()), (Some(0), "100\n100\n50\n"), "{paged}");
    let log = gh.run(&["run", "view", "77", "-R", "acme/api", "--log"]).await;
    assert!(log.code == Some(0) && log.stdout.contains("test greets ... ok"), "{log}");
    let event = world.event_of(&[("route", "rest"), ("path", "/repos/acme/api/issues")]).await;
    assert_eq!((&event["status"], &event["run"]), (&json!(200), &json!(run.id)));
    world.finish().await;
}

#[tokio::test]
async fn a_bearer_outside_its_header_goes_nowhere() {
    let world = furnished().await;
    let run = world.register(Identity::Read).await;
    let (_, secret) = run.bearer.split_once('.').unwrap();
    let coded = secret.bytes().fold(String::new(), |coded, byte| format!("{coded}%{byte:02x}"));
    let deep = format!("/x?a=%{}41", "25".repeat(2_000));
    for target in [format!("/x?access_token={}", run.bearer), format!("/x/{secret}"), format!("/x?a={coded}"), deep]
    {
        let answer = get(&world, &run, &target).await;
        assert_eq!((answer.status, answer.header("x-gitdoor-reason")), (400, Some("bearer-astray")));
    }
    let agent = Request::get("/api/v3/meta").header("User-Agent", &format!("x {}", run.bearer));
    assert_eq!(send(&world, &run, agent).await.header("x-gitdoor-reason"), Some("bearer-astray"));
    assert!(api(&world).is_empty());
    world.finish().await;
}

#[tokio::test]
async fn only_named_headers_reach_the_api_and_its_own_come_back_without_the_tokens() {
    let world = furnished().await;
    let run = world.register(Identity::Read).await;
    let request = Request::get("/api/v3/repos/acme/api/pulls/42")
        .header("Accept", "application/vnd.github.v3.diff")
        .header("X-GitHub-Api-Version", "2022-11-28")
        .header("Cookie", "a=b")
        .header("X-Forwarded-For", "10.0.0.1")
        .header("X-HTTP-Method-Override", "DELETE")
        .header("Range", "bytes=0-1");
    let answer = send(&world, &run, request).await;
    assert_eq!(answer.status, 200);
    assert!(answer.text().starts_with("diff --git "), "{}", answer.text());
    assert!(answer.header("content-type").unwrap().starts_with("application/vnd.github.v3.diff"));
    for name in ["x-oauth-scopes", "set-cookie", "x-github-request-id", "server"] {
        assert_eq!(answer.header(name), None, "{name}");
    }
    assert_eq!(answer.header("x-ratelimit-resource"), Some("core"));
    let up = &api(&world)[0];
    let mut names: Vec<_> = up.headers.keys().map(|name| name.as_str().to_owned()).collect();
    names.sort();
    assert_eq!(names, ["accept", "accept-encoding", "authorization", "host", "user-agent", "x-github-api-version"]);
    world.finish().await;
}

#[tokio::test]
async fn a_spent_budget_is_told_in_words_and_is_a_runs_own() {
    let world = furnished().await;
    let spent = world.registration(Identity::Read).options(|options| {
        options.api_burst = 2;
        options.api_rate = 0.01;
    });
    let (spent, other) = (spent.send().await.unwrap(), world.register(Identity::Read).await);
    let began = Instant::now();
    for _ in 0..2 {
        assert_eq!(get(&world, &spent, "/repos/acme/api").await.status, 200);
    }
    let query = Request::post("/api/graphql").header("Content-Type", "application/json");
    let query = query.body(r#"{"query":"{viewer{login}}"}"#);
    for request in [Request::get("/api/v3/repos/acme/api"), query] {
        let answer = send(&world, &spent, request).await;
        assert_eq!((answer.status, answer.header("x-gitdoor-reason")), (429, Some("api-limit")));
        let wait: u64 = answer.header("retry-after").unwrap().parse().unwrap();
        let passed = began.elapsed().as_secs() + 1;
        assert!(wait <= 100 && wait + passed >= 100, "{wait} after {passed} seconds");
        assert!(body(&answer)["message"].as_str().unwrap().contains("2 at once"), "{}", answer.text());
    }
    // What needs no request to the forge needs no budget.
    assert_eq!(get(&world, &spent, "/gitdoor/run").await.status, 200);
    assert_eq!(get(&world, &other, "/repos/acme/api").await.status, 200);
    world.quiet(0).await;
    assert!((world.metric(0, "gitdoor_dataplane_refusals_total").await - 2.0).abs() < 0.5);
    world.finish().await;
}

#[tokio::test]
async fn the_installations_remaining_limit_is_a_gauge_by_resource() {
    let world = furnished().await;
    let run = world.register(Identity::Read).await;
    get(&world, &run, "/repos/acme/api/issues/3").await;
    get(&world, &run, "/search/issues?q=greet").await;
    let metrics = world.dataplane_admin(0, "/metrics").await.text();
    for resource in ["core", "search"] {
        for gauge in ["forge_rate_limit", "forge_rate_limit_remaining", "forge_rate_limit_reset_timestamp_seconds"]
        {
            let line = format!("gitdoor_dataplane_{gauge}{{resource=\"{resource}\"}} ");
            let value =
                metrics.lines().find_map(|known| known.strip_prefix(&line)).unwrap_or_else(|| panic!("{line}"));
            assert!(value.parse::<f64>().unwrap() > 0.0);
        }
    }
    world.finish().await;
}

#[tokio::test]
async fn a_run_is_told_what_it_may_do_without_asking_the_forge() {
    let world = furnished().await;
    let read = world.register(Identity::Read).await;
    let described = body(&get(&world, &read, "/gitdoor/run").await);
    assert_eq!((&described["identity"], &described["push"]), (&json!("read"), &Value::Null));
    let narrowed = world.registration(Identity::Write).id("narrow").options(|options| {
        options.branches = vec!["agent/*".to_owned()];
        options.max_refs = 2;
    });
    let run = narrowed.send().await.unwrap();
    let unbound = body(&get(&world, &run, "/gitdoor/run").await);
    assert_eq!((&unbound["repository"], &unbound["push"]["branches"]), (&Value::Null, &json!(["agent/*"])));
    assert!(api(&world).is_empty() && world.github.mints().is_empty(), "nothing was asked of the forge");
    let git = world.git(&run);
    let cloned = git.run(&["clone", &git.url("acme/api")]).await;
    assert_eq!(cloned.code, Some(0), "{cloned}");
    let pushed = git.at("api").run(&["push", "origin", "HEAD:agent/x"]).await;
    assert_eq!(pushed.code, Some(0), "{pushed}");
    let bound = body(&get(&world, &run, "/gitdoor/run").await);
    assert_eq!(
        (&bound["run_id"], &bound["state"], &bound["repository"]),
        (&json!("narrow"), &json!("live"), &json!("acme/api"))
    );
    assert_eq!((&bound["default_branch"], &bound["push"]["except"]), (&json!("main"), &json!(["main"])));
    assert_eq!(bound["push"]["max_refs"], 2);
    assert!(bound["summary"].as_str().unwrap().contains("agent/*"), "{bound}");
    let head = send(&world, &run, Request::new("HEAD", "/api/v3/gitdoor/run").header("Connection", "close")).await;
    assert_eq!((head.status, head.body.len()), (200, 0));
    world.finish().await;
}
