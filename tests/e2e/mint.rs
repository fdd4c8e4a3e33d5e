//! Tokens: how one is asked for, what makes it be thrown away, and what a client is told when there is none.

use std::time::Duration;

use gitdoor_proto::v1::Identity;
use gitdoor_tests::github::{Canned, Fault, Route};
use gitdoor_tests::raw::{Request, Response};
use gitdoor_tests::wait::until;
use gitdoor_tests::world::{Run, World};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::PROGRAM;

fn fetch_discovery(repository: &str) -> Request {
    Request::get(&format!("/{repository}.git/info/refs?service=git-upload-pack"))
}

fn push_discovery(repository: &str) -> Request {
    Request::get(&format!("/{repository}.git/info/refs?service=git-receive-pack"))
}

async fn ask(world: &World, run: &Run, request: Request) -> Response {
    world.door(0).send(request.basic(&run.bearer)).await
}

/// A way for a mint answer to be wrong.
type Spoil = (&'static str, fn(&mut Value));

const READ: [Spoil; 8] = [
    ("wider: a write", |answer| answer["permissions"]["contents"] = json!("write")),
    ("wider: another", |answer| answer["permissions"]["administration"] = json!("read")),
    ("narrower", |answer| answer["permissions"]["issues"] = Value::Null),
    ("no permissions", |answer| answer["permissions"] = json!({})),
    ("unknown selection", |answer| answer["repository_selection"] = json!("some")),
    ("no expiry", |answer| answer["expires_at"] = Value::Null),
    ("over", |answer| answer["expires_at"] = json!("2020-01-01T00:00:00Z")),
    ("endless", |answer| answer["expires_at"] = json!("2099-01-01T00:00:00Z")),
];

const WRITE: [Spoil; 10] = [
    ("all", |answer| answer["repository_selection"] = json!("all")),
    ("no selection", |answer| answer["repository_selection"] = Value::Null),
    ("another name", |answer| answer["repositories"][0]["full_name"] = json!("acme/web")),
    ("no id", |answer| answer["repositories"][0]["id"] = Value::Null),
    ("none", |answer| answer["repositories"] = json!([])),
    ("none named", |answer| answer["repositories"] = Value::Null),
    ("two", |answer| {
        let mut second = answer["repositories"][0].clone();
        second["full_name"] = json!("acme/web");
        answer["repositories"].as_array_mut().unwrap().push(second);
    }),
    ("wider", |answer| answer["permissions"]["pull_requests"] = json!("read")),
    ("narrower", |answer| answer["permissions"]["contents"] = json!("read")),
    ("without workflows", |answer| answer["permissions"]["workflows"] = Value::Null),
];

/// Spoils the next token, asks, and asserts that the token was ended and nothing was forwarded with it.
async fn assert_thrown_away(world: &World, run: &Run, request: Request, what: &str, spoil: fn(&mut Value)) {
    let (tokens, requests) = (world.github.tokens().len(), world.github.requests().len());
    world.github.when(Route::Mint).then(Fault::edit(spoil));
    let answer = ask(world, run, request).await;
    assert_eq!((answer.status, answer.header("x-gitdoor-reason")), (502, Some("token-untrusted")), "{what}");
    assert!(answer.text().contains("differs from what was asked for"), "{what}: {}", answer.text());
    // It is ended behind the answer.
    until(&format!("the token is ended: {what}"), async || world.github.tokens()[tokens].revoked).await;
    let routes: Vec<Route> = world.github.requests()[requests..].iter().map(|request| request.route).collect();
    assert_eq!(routes, [Route::Mint, Route::RevokeToken], "{what}");
}

#[tokio::test]
async fn a_token_that_is_not_exactly_what_was_asked_for_is_ended_unused() {
    let world = World::start(PROGRAM).await;
    let reader = world.register(Identity::Read).await;
    for (what, spoil) in READ {
        assert_thrown_away(&world, &reader, fetch_discovery("acme/api"), what, spoil).await;
    }
    for (number, (what, spoil)) in WRITE.into_iter().enumerate() {
        let repository = format!("acme/r{number}");
        world.github.create(&repository);
        let run = world.register(Identity::Write).await;
        assert_thrown_away(&world, &run, push_discovery(&repository), what, spoil).await;
        assert!(world.show(&run).await.run.unwrap().binding.is_none(), "{what}");
        assert_eq!(ask(&world, &run, push_discovery(&repository)).await.status, 200, "{what}, then well");
    }
    world.finish().await;
}

#[tokio::test]
async fn a_bound_runs_token_must_be_of_its_repositorys_id() {
    let mut world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    let run = world.registration(Identity::Write).repository("acme/api").send().await.unwrap();
    world.control().restart().await;
    crate::bearers::until_served(&world, 0).await;
    let spoil = |answer: &mut Value| answer["repositories"][0]["id"] = json!(1);
    assert_thrown_away(&world, &run, push_discovery("acme/api"), "another id", spoil).await;
    assert_eq!(ask(&world, &run, push_discovery("acme/api")).await.status, 200);
    world.finish().await;
}

#[tokio::test]
async fn a_mint_asks_for_the_least_and_by_bare_name_or_id() {
    let mut world = World::start(PROGRAM).await;
    let id = world.github.create("acme/api");
    let lib = world.github.create("acme/lib");
    let run = world.register(Identity::Write).await;
    let plain = world.registration(Identity::Write).options(|options| options.no_workflows = true).send().await;
    let narrow = |options: &mut gitdoor_proto::v1::RunOptions| options.read_repositories.push("Acme/Lib".into());
    let narrow = world.registration(Identity::Read).options(narrow).send().await.unwrap();
    assert_eq!(ask(&world, &run, fetch_discovery("acme/api")).await.status, 200);
    assert_eq!(ask(&world, &run, push_discovery("acme/api")).await.status, 200);
    assert_eq!(ask(&world, &plain.unwrap(), push_discovery("acme/api")).await.status, 200);
    assert_eq!(ask(&world, &narrow, fetch_discovery("acme/lib")).await.status, 200);
    assert_eq!(ask(&world, &narrow, fetch_discovery("acme/api")).await.status, 404);
    world.control().restart().await;
    crate::bearers::until_served(&world, 0).await;
    assert_eq!(ask(&world, &run, push_discovery("acme/api")).await.status, 200);

    let read = json!({ "contents": "read", "pull_requests": "read", "issues": "read", "actions": "read",
                       "checks": "read", "metadata": "read" });
    let write = json!({ "contents": "write", "workflows": "write", "metadata": "read" });
    let without = json!({ "contents": "write", "metadata": "read" });
    let asked: Vec<Value> =
        world.github.mints().iter().map(|mint| serde_json::from_slice(&mint.body).unwrap()).collect();
    assert_eq!(asked[0], json!({ "permissions": read }));
    assert_eq!(asked[1], json!({ "permissions": write, "repositories": ["api"] }));
    let pinned_to = |permissions: &Value| json!({ "permissions": permissions, "repositories": ["api"] });
    assert_eq!(asked[2], pinned_to(&without));
    assert_eq!(asked[3]["permissions"], read);
    assert_eq!(asked[3]["repositories"].to_string().to_lowercase(), "[\"lib\"]");
    assert_eq!(asked[4], json!({ "permissions": write, "repository_ids": [id] }));
    assert_eq!(asked.len(), 5);
    let tokens = world.github.tokens();
    assert_eq!(tokens[3].repositories, Some(vec![lib]));
    for request in
        world.github.requests().iter().filter(|request| request.server == gitdoor_tests::github::Host::Api)
    {
        assert!(request.header("user-agent").is_some_and(|agent| agent.starts_with("gitdoor")), "{request:?}");
        assert!(request.header("accept").is_some_and(|accept| accept.contains("json")), "{request:?}");
    }
    world.finish().await;
}

#[tokio::test]
async fn workflows_are_a_token_of_their_own() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    let with = world.register(Identity::Write).await;
    let without = world.registration(Identity::Write).options(|options| options.no_workflows = true).send().await;
    for (run, branch, code) in [(&with, "with", 0), (&without.unwrap(), "without", 1)] {
        let git = world.git(run).cloned("acme/api").await;
        git.commit("a", branch).await;
        git.run(&["push", "origin", &format!("HEAD:{branch}-plain")]).await.ok();
        git.commit(".github/workflows/ci.yml", "on: push\n").await;
        let push = git.run(&["push", "origin", &format!("HEAD:{branch}")]).await.code_is(code);
        if code == 1 {
            push.says("workflow");
        }
    }
    let refs: Vec<_> = world.github.refs("acme/api").into_keys().collect();
    assert_eq!(refs, ["refs/heads/main", "refs/heads/with", "refs/heads/with-plain", "refs/heads/without-plain"]);
    let tokens = world.github.tokens();
    for push in world.github.pushes() {
        let may = tokens[push.token.unwrap()].may("workflows", "write");
        assert_eq!(may, !String::from_utf8_lossy(&push.body).contains("refs/heads/without"));
    }
    world.finish().await;
}

#[tokio::test]
async fn a_hundred_first_requests_mint_once() {
    let world = World::builder(PROGRAM).dataplanes(2).start().await;
    world.github.create("acme/api");
    world.github.when(Route::Mint).times(2).after(Duration::from_millis(500)).then(Fault::None);
    let mut runs = Vec::new();
    for _ in 0..20 {
        runs.push(world.register(Identity::Write).await);
    }
    for (mints, request) in [(1, fetch_discovery("acme/api")), (2, push_discovery("acme/api"))] {
        let asked = (0..100).map(|number| {
            let (door, request) = (world.door(number % 2), request.clone().basic(&runs[number % 20].bearer));
            async move { door.send(request).await.status }
        });
        let statuses = futures_util::future::join_all(asked).await;
        assert!(statuses.iter().all(|status| *status == 200), "{statuses:?}");
        assert_eq!(world.github.mints().len(), mints);
    }
    world.finish().await;
}

/// Something that is wrong with the App, and what a client is told.
struct Trouble {
    what: &'static str,
    answer: Canned,
    status: u16,
    reason: &'static str,
    words: &'static str,
    retry_after: Option<u64>,
}

fn troubles() -> Vec<Trouble> {
    let trouble =
        |what, answer, status, reason, words| Trouble { what, answer, status, reason, words, retry_after: None };
    let limited = |what, answer, least| Trouble {
        retry_after: Some(least),
        ..trouble(what, answer, 429, "forge-rate-limited", "limits the rate of minting")
    };
    let down = |what, answer| Trouble {
        retry_after: Some(1),
        ..trouble(what, answer, 503, "forge-unavailable", "the forge cannot be reached or fails")
    };
    let said = |status: u16, words: &str| Canned::status(status).message(words);
    let not_granted = "The permissions requested are not granted to this installation.";
    vec![
        trouble("not installed", said(404, "Not Found"), 404, "repository-unknown", "the App is not installed"),
        trouble(
            "suspended",
            said(403, "This installation has been suspended"),
            403,
            "installation-suspended",
            "the installation is suspended",
        ),
        trouble("not granted", said(422, not_granted), 403, "permission-missing", "the permission workflows"),
        limited("secondary limit", said(403, "You have exceeded a secondary rate limit"), 60),
        limited("impatient", said(403, "slow down").header("retry-after", "3"), 30),
        limited("429", said(429, "too many").header("retry-after", "120"), 120),
        down("500", Canned::status(500)),
        down("not JSON", Canned::status(201).body("text/html", "<html>")),
        Trouble {
            retry_after: Some(10),
            ..trouble(
                "key",
                said(401, "A JSON web token could not be decoded"),
                503,
                "forge-unavailable",
                "the App's key",
            )
        },
        Trouble {
            retry_after: Some(10),
            ..trouble(
                "clock",
                said(401, "'Issued at' claim ('iat') must be an Integer"),
                503,
                "forge-unavailable",
                "clock",
            )
        },
    ]
}

#[tokio::test]
async fn a_client_is_told_why_there_is_no_token_and_none_is_asked_for_again_at_once() {
    let world = World::start(PROGRAM).await;
    for (number, Trouble { what, answer, status, reason, words, retry_after }) in troubles().into_iter().enumerate()
    {
        let repository = format!("acme/r{number}");
        world.github.create(&repository);
        let run = world.register(Identity::Write).await;
        let mints = world.github.mints().len();
        world.github.when(Route::Mint).answer(answer);
        let began = Instant::now();
        for _ in 0..3 {
            let told = ask(&world, &run, push_discovery(&repository)).await;
            assert_eq!((told.status, told.header("x-gitdoor-reason")), (status, Some(reason)), "{what}");
            assert!(told.text().contains(words), "{what}: {}", told.text());
            let wait = told.header("retry-after").map(|wait| wait.parse::<u64>().unwrap());
            assert_eq!(wait.is_some(), retry_after.is_some(), "{what}");
            // The time that is left, rounded.
            let passed = began.elapsed().as_secs() + 2;
            assert!(wait.unwrap_or_default() + passed >= retry_after.unwrap_or_default(), "{what}: {wait:?}");
            assert!(status != 429 || wait >= Some(30), "{what}: {wait:?}");
        }
        assert_eq!(world.github.mints().len(), mints + 1, "{what}: asked for again");
        assert!(world.show(&run).await.run.unwrap().binding.is_none());
    }
    assert!(world.github.requests_for(Route::PushDiscovery).is_empty());
    world.finish().await;
}

#[tokio::test]
async fn git_prints_what_is_wrong_with_the_app() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    world.github.create("acme/web");
    let run = world.register(Identity::Write).await;
    let git = world.git(&run).cloned("acme/api").await;
    git.commit("a", "a").await;
    world.github.set_permission("workflows", None);
    git.run(&["push", "origin", "HEAD:x"]).await.code_is(128).says("not granted the permission workflows");
    world.github.set_permission("workflows", Some("write"));
    world.github.set_suspended(true);
    git.run(&["push", &git.url("acme/web"), "HEAD:x"]).await.code_is(128).says("the installation is suspended");
    assert_eq!(git.erasures(), 0);
    world.finish().await;
}

#[tokio::test]
async fn a_forge_that_is_not_there_is_503_and_comes_back() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    let run = world.register(Identity::Read).await;
    world.github.when(Route::Mint).then(Fault::Reset);
    let answer = ask(&world, &run, fetch_discovery("acme/api")).await;
    assert_eq!((answer.status, answer.header("x-gitdoor-reason")), (503, Some("forge-unavailable")));
    let wait: u64 = answer.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=10).contains(&wait), "{wait}");
    let start = Instant::now();
    while ask(&world, &run, fetch_discovery("acme/api")).await.status != 200 {
        assert!(start.elapsed() < Duration::from_secs(30));
        tokio::time::sleep(Duration::from_millis(250)).await;
    }
    assert_eq!(world.github.mints().len(), 2, "it waited");
    world.finish().await;
}

#[tokio::test]
async fn a_token_is_handed_out_only_with_time_left() {
    for (life, status) in [(24 * 60, 502), (26 * 60, 200)] {
        let world = World::start(PROGRAM).await;
        world.github.create("acme/api");
        world.github.set_token_life(life);
        let run = world.register(Identity::Read).await;
        assert_eq!(ask(&world, &run, fetch_discovery("acme/api")).await.status, status, "{life}");
        world.finish().await;
    }
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    let run = world.register(Identity::Read).await;
    // Little above what is handed out: two seconds, or what a slow machine needs to mint.
    let mut above = 2;
    world.github.set_token_life(25 * 60 + above);
    while ask(&world, &run, fetch_discovery("acme/api")).await.status != 200 {
        above *= 2;
        assert!(above < 30, "none is handed out");
        world.github.set_token_life(25 * 60 + above);
    }
    world.github.set_token_life(3600);
    let (start, mints) = (Instant::now(), world.github.mints().len());
    while world.github.mints().len() == mints {
        assert!(start.elapsed() < Duration::from_secs(30), "the old one is handed out still");
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert_eq!(ask(&world, &run, fetch_discovery("acme/api")).await.status, 200);
    }
    world.finish().await;
}

#[tokio::test]
async fn a_clock_that_is_a_minute_off_mints_all_the_same() {
    for skew in [-60, 60] {
        let world = World::start(PROGRAM).await;
        world.github.create("acme/api");
        world.github.set_clock_skew(skew);
        let run = world.register(Identity::Write).await;
        let git = world.git(&run).cloned("acme/api").await;
        git.commit("a", "a").await;
        git.run(&["push", "origin", "HEAD:x"]).await.ok();
        world.finish().await;
    }
}

#[tokio::test]
async fn an_upstream_401_is_met_with_another_token_once() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    let run = world.register(Identity::Write).await;
    for (request, route) in
        [(fetch_discovery("acme/api"), Route::FetchDiscovery), (push_discovery("acme/api"), Route::PushDiscovery)]
    {
        let mints = world.github.mints().len();
        let refuse = |times| {
            world.github.when(route).times(times).answer(Canned::status(401).body("text/plain", "no"));
        };
        // Young: the same token a second later, for replicas that lag.
        refuse(1);
        let start = Instant::now();
        assert_eq!(ask(&world, &run, request.clone()).await.status, 200, "{route:?}");
        assert!(start.elapsed() >= Duration::from_secs(1));
        assert_eq!(world.github.mints().len(), mints + 1);
        // Twice: another token.
        refuse(2);
        assert_eq!(ask(&world, &run, request.clone()).await.status, 200, "{route:?}");
        assert_eq!(world.github.mints().len(), mints + 2, "{route:?}");
        // Whatever is sent: 502, and no more tokens than that.
        world.github.when(route).always().answer(Canned::status(401).body("text/plain", "no"));
        for _ in 0..2 {
            let answer = ask(&world, &run, request.clone()).await;
            assert_eq!(answer.status, 502, "{route:?}");
            assert!(answer.header("www-authenticate").is_none());
        }
        assert_eq!(world.github.mints().len(), mints + 2, "{route:?}: at most one a minute");
        world.github.heal();
        assert_eq!(ask(&world, &run, request.clone()).await.status, 200, "{route:?}");
    }
    world.finish().await;
}

#[tokio::test]
async fn a_403_to_a_young_token_is_tried_again_and_an_old_ones_is_told() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    let run = world.register(Identity::Read).await;
    let no = || Canned::status(403).body("text/plain", "no");
    world.github.when(Route::FetchDiscovery).answer(no());
    assert_eq!(ask(&world, &run, fetch_discovery("acme/api")).await.status, 200);
    world.github.when(Route::FetchDiscovery).times(2).answer(no());
    let answer = ask(&world, &run, fetch_discovery("acme/api")).await;
    assert_eq!((answer.status, answer.header("x-gitdoor-reason")), (403, Some("upstream-forbidden")));
    assert_eq!(world.github.mints().len(), 1);
    world.finish().await;
}

#[tokio::test]
async fn a_push_that_the_upstream_answers_with_401_is_refused_in_words_and_not_sent_twice() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    let run = world.register(Identity::Write).await;
    let git = world.git(&run).cloned("acme/api").await;
    git.commit("a", "a").await;
    world.github.when(Route::ReceivePack).answer(Canned::status(401).body("text/plain", "no"));
    let push = git.run(&["push", "origin", "HEAD:x"]).await.code_is(1);
    push.says("refused: the forge refused the door's token").does_not_say("Authentication failed");
    assert_eq!(git.erasures(), 0);
    assert_eq!(world.github.pushes().len(), 1);
    git.run(&["push", "origin", "HEAD:x"]).await.ok();
    world.finish().await;
}
