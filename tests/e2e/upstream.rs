//! The upstream goes wrong, and the door does not: wrong tokens are thrown away, git sees no 401, a refusal of the
//! upstream's own reaches git and the ledger.

use futures_util::{StreamExt as _, stream};
use gitdoor_proto::v1::{Identity, PushOutcome};
use gitdoor_tests::git;
use gitdoor_tests::github::{BodyEnd, Canned, Fault, Route};
use gitdoor_tests::port::Port;
use gitdoor_tests::raw::Request;
use gitdoor_tests::wait::until;
use gitdoor_tests::world::World;
use serde_json::{Value, json};

use crate::PROGRAM;

/// A way for a mint answer to be wrong.
type Spoil = (&'static str, fn(&mut Value));

/// What is wrong with any token.
const WRONG: [Spoil; 4] = [
    ("wider", |answer| answer["permissions"]["administration"] = json!("write")),
    ("narrower", |answer| answer["permissions"]["contents"] = Value::Null),
    ("no permissions", |answer| answer["permissions"] = Value::Null),
    ("expired", |answer| answer["expires_at"] = json!("2020-01-01T00:00:00Z")),
];

/// What is wrong with a token that was to be pinned.
const WRONGLY_PINNED: [Spoil; 5] = [
    ("all", |answer| answer["repository_selection"] = json!("all")),
    ("another repository", |answer| answer["repositories"][0]["full_name"] = json!("acme/web")),
    ("none named", |answer| answer["repositories"] = Value::Null),
    ("none", |answer| answer["repositories"] = json!([])),
    ("two", |answer| {
        let second = answer["repositories"][0].clone();
        answer["repositories"].as_array_mut().unwrap().push(second);
    }),
];

#[tokio::test]
async fn a_write_token_other_than_asked_is_revoked_and_never_used() {
    for (what, spoil) in WRONG.into_iter().chain(WRONGLY_PINNED) {
        let world = World::start(PROGRAM).await;
        world.github.create("acme/api");
        let run = world.register(Identity::Write).await;
        let git = world.git(&run).cloned("acme/api").await;
        git.commit("fix.txt", "fix\n").await;
        let before = world.github.tokens().len();
        world.github.when(Route::Mint).then(Fault::edit(spoil));
        git.run(&["push", "origin", "HEAD:fix-x"]).await.code_is(128);
        // It is ended behind the answer.
        until(&format!("{what}: it is ended"), async || world.github.tokens()[before].revoked).await;
        let used = world.github.requests().into_iter().filter(|request| request.token == Some(before));
        let routes: Vec<Route> = used.map(|request| request.route).collect();
        assert_eq!(routes, [Route::RevokeToken], "{what}");
        assert!(world.show(&run).await.run.unwrap().binding.is_none(), "{what}: it is bound");
        world.finish().await;
    }
}

#[tokio::test]
async fn a_read_token_other_than_asked_is_revoked_and_never_used() {
    for (what, spoil) in WRONG {
        let world = World::start(PROGRAM).await;
        world.github.create("acme/api");
        let run = world.register(Identity::Read).await;
        let git = world.git(&run);
        world.github.when(Route::Mint).then(Fault::edit(spoil));
        git.run(&["ls-remote", &git.url("acme/api")]).await.code_is(128);
        until(&format!("{what}: it is ended"), async || world.github.tokens()[0].revoked).await;
        assert!(world.github.requests_for(Route::FetchDiscovery).is_empty(), "{what}: it was used");
        world.finish().await;
    }
}

#[tokio::test]
async fn a_401_at_discovery_is_tried_once_more_and_never_seen_by_git() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    let run = world.register(Identity::Read).await;
    let git = world.git(&run);
    let list = ["ls-remote", &git.url("acme/api")];
    world.github.when(Route::FetchDiscovery).answer(Canned::status(401).body("text/plain", "no"));
    git.run(&list).await.ok().says("refs/heads/main");
    world.github.when(Route::FetchDiscovery).always().answer(Canned::status(401).body("text/plain", "no"));
    git.run(&list).await.code_is(128).says("returned error: 502").does_not_say("Authentication failed");
    assert_eq!(git.erasures(), 0);
    world.finish().await;
}

#[tokio::test]
async fn a_ref_that_the_upstream_refuses_is_told_to_git_and_recorded() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    world.github.forbid_ref("acme/api", "refs/heads/locked");
    let run = world.register(Identity::Write).await;
    let git = world.git(&run).cloned("acme/api").await;
    git.commit("fix.txt", "fix\n").await;
    let push = git.run(&["push", "origin", "HEAD:locked", "HEAD:open"]).await.code_is(1);
    push.says("[remote rejected] HEAD -> locked (hook declined)").says("GH013").says("HEAD -> open");
    let pushes = world.show(&run).await.pushes;
    assert_eq!(pushes[0].outcome(), PushOutcome::RefusedUpstream);
    assert!(world.github.ref_of("acme/api", "refs/heads/open").is_some());
    let refusals: Vec<&str> = pushes[0].refs.iter().map(|pushed| pushed.refusal.as_str()).collect();
    assert!(refusals.contains(&"hook declined") && refusals.contains(&""), "{refusals:?}");
    world.finish().await;
}

/// A way for the upstream to fail before its answer can be passed on, and what the door makes of it.
struct Failure {
    fault: Fault,
    status: u64,
    reason: &'static str,
    words: &'static str,
}

fn failure(fault: Fault, status: u64, reason: &'static str, words: &'static str) -> Failure {
    Failure { fault, status, reason, words }
}

fn answered(canned: Canned, status: u64, reason: &'static str, words: &'static str) -> Failure {
    failure(Fault::Answer(canned), status, reason, words)
}

/// What can happen to any request; `media` is the type that a good answer would have.
fn failures(media: &str) -> Vec<Failure> {
    let html = |status| Canned::status(status).body("text/html", "<html>Unicorn!</html>");
    let elsewhere = "https://evil.test/acme/api.git/info/refs?service=git-upload-pack";
    let nowhere = "/login?return_to=%2Facme";
    vec![
        answered(html(500), 502, "upstream-status", "answered with status 500"),
        answered(html(503).header("Retry-After", "9"), 502, "upstream-status", "answered with status 503"),
        answered(html(405), 502, "upstream-status", "answered with status 405"),
        answered(Canned::status(204), 502, "upstream-status", "answered with status 204"),
        answered(html(404), 404, "upstream-not-found", "no such repository"),
        answered(Canned::status(403).message("Resource not accessible"), 403, "upstream-forbidden", "(403)"),
        answered(html(429).header("Retry-After", "17"), 429, "upstream-rate-limited", "limits the rate"),
        answered(html(200), 502, "upstream-not-git", "answer is not git's"),
        answered(Canned::status(200), 502, "upstream-not-git", "answer is not git's"),
        answered(Canned::status(200).body("text/plain", "0000"), 502, "upstream-not-git", "answer is not git's"),
        answered(html(302).header("Location", elsewhere), 502, "upstream-redirect", "does not follow"),
        answered(html(301).header("Location", elsewhere), 502, "upstream-redirect", "does not follow"),
        answered(html(307).header("Location", nowhere), 502, "upstream-redirect", "does not follow"),
        answered(html(301), 502, "upstream-redirect", "does not follow"),
        answered(html(206).header("Content-Type", media), 502, "upstream-status", "status 206"),
        failure(Fault::Reset, 502, "upstream-cut", "cut the connection"),
        failure(Fault::Silent, 504, "upstream-silent", "did not answer in time"),
    ]
}

/// A world that waits three seconds for an upstream and logs for machines.
async fn impatient() -> World {
    let builder = World::builder(PROGRAM).dataplane_flag("--log-format=json");
    builder.dataplane_flag("--upstream-head-timeout=3s").dataplane_flag("--idle-timeout=3s").start().await
}

/// A few of them at a time: what waits too long for its turn is taken for silent.
async fn few_at_once(all: impl Iterator<Item = impl Future<Output = ()>>) {
    stream::iter(all).buffer_unordered(4).collect::<Vec<()>>().await;
}

/// Nothing was asked for that smart HTTP does not have, and no request went elsewhere.
fn assert_smart_only(world: &World) {
    let other = world.github.requests_for(Route::Other);
    assert!(other.is_empty(), "git fell back: {other:?}");
}

#[tokio::test]
async fn a_discovery_that_the_upstream_fails_is_told_in_words_and_does_not_spoil_the_next() {
    for (route, service) in [(Route::FetchDiscovery, "git-upload-pack"), (Route::PushDiscovery, "git-receive-pack")]
    {
        let world = impatient().await;
        let gits = git::all();
        let rows = failures(&format!("application/x-{service}-advertisement")).into_iter().enumerate();
        few_at_once(rows.map(async |(number, row)| {
            let world = &world;
            let name = format!("acme/r{number}");
            world.github.create(&name);
            let run = world.registration(Identity::Write).id(&format!("{service}-{number}")).send().await.unwrap();
            let git = world.git(&run).program(&gits[number % gits.len()]).cloned(&name).await;
            git.commit("fix.txt", "fix\n").await;
            let command: &[&str] = if route == Route::FetchDiscovery {
                &["fetch", "origin"]
            } else {
                &["push", "origin", "HEAD:fix-x"]
            };
            world.github.when(route).repository(&name).always().then(row.fault.clone());
            let failed = git.run(command).await.code_is(128);
            failed.says("remote: gitdoor: ").says(row.words).does_not_say("Authentication failed");
            let raw = Request::get(&format!("/{name}.git/info/refs?service={service}")).basic(&run.bearer);
            let raw = world.door(0).send(raw).await;
            assert_eq!(u64::from(raw.status), row.status, "{}: {}", row.reason, raw.text());
            assert_eq!(raw.header("location"), None);
            assert_eq!(raw.header("www-authenticate"), None);
            assert_eq!(raw.header("content-type"), Some("text/plain; charset=utf-8"));
            if row.status == 429 {
                assert_eq!(raw.header("retry-after"), Some("17"));
            }
            let event = world.event("request_id", raw.header("x-request-id").unwrap()).await;
            assert_eq!((&event["status"], &event["reason"]), (&json!(row.status), &json!(row.reason)), "{event}");
            assert_eq!((&event["run"], &event["repository"]), (&json!(run.id), &json!(name)));
            assert_eq!(git.erasures(), 0);
            world.github.heal_repository(&name);
            git.run(command).await.ok();
        }))
        .await;
        assert_smart_only(&world);
        world.quiet(0).await;
        world.finish().await;
    }
}

#[tokio::test]
async fn an_advertisement_that_breaks_off_or_is_none_fails_git_and_binds_nothing_that_was_not_confirmed() {
    let world = impatient().await;
    let empty = |service: &str| {
        Fault::Answer(Canned::status(200).body(&format!("application/x-{service}-advertisement"), ""))
    };
    let rows = [
        (Route::FetchDiscovery, Fault::Cut(0), "upstream-cut"),
        (Route::FetchDiscovery, Fault::Cut(70), "upstream-cut"),
        (Route::FetchDiscovery, Fault::Stall(70), "upstream-idle"),
        (Route::FetchDiscovery, empty("git-upload-pack"), ""),
        (Route::PushDiscovery, Fault::Cut(0), "upstream-cut"),
        (Route::PushDiscovery, Fault::Cut(20), "upstream-cut"),
        (Route::PushDiscovery, Fault::Stall(20), "upstream-silent"),
        (Route::PushDiscovery, Fault::Gzip, "upstream-coded"),
        (Route::PushDiscovery, empty("git-receive-pack"), "upstream-not-git"),
        (Route::PushDiscovery, Fault::Cut(2000), "upstream-cut"),
        (Route::PushDiscovery, Fault::Stall(2000), "upstream-idle"),
    ];
    few_at_once(rows.into_iter().enumerate().map(async |(number, (route, fault, kind))| {
        let world = &world;
        let name = format!("acme/r{number}");
        let many = (0..40).fold(world.github.seed(&name), |seed, branch| seed.branch(&format!("branch-{branch}")));
        many.create();
        let run = world.registration(Identity::Write).id(&format!("r{number}")).send().await.unwrap();
        let git = world.git(&run).cloned(&name).await;
        git.commit("fix.txt", "fix\n").await;
        let (command, label): (&[&str], _) = if route == Route::FetchDiscovery {
            (&["fetch", "origin"], "fetch-discovery")
        } else {
            (&["push", "origin", "HEAD:fix-x"], "push-discovery")
        };
        world.github.when(route).repository(&name).always().then(fault.clone());
        git.run(command).await.code_is(128);
        // The clone's own discovery has an event too: the last one counts.
        let last = || world.events().into_iter().rfind(|event| event["run"] == *run.id && event["route"] == label);
        let told = |event: Value| kind.is_empty() || event["reason"] == kind || event["interruption"] == kind;
        until(&format!("{fault:?} is told as {kind}"), async || last().is_some_and(told)).await;
        let event = last().unwrap();
        if event["reason"].is_string() {
            assert!(world.show(&run).await.run.unwrap().binding.is_none(), "{fault:?}: it is bound");
        }
        world.github.heal_repository(&name);
        git.run(command).await.ok();
        assert_eq!(git.erasures(), 0);
    }))
    .await;
    assert_smart_only(&world);
    world.quiet(0).await;
    world.finish().await;
}

#[tokio::test]
async fn a_fetch_that_the_upstream_fails_is_told_in_words_and_does_not_spoil_the_next() {
    let world = impatient().await;
    let gits = git::all();
    let rows = failures("application/x-git-upload-pack-result").into_iter().enumerate();
    few_at_once(rows.map(async |(number, row)| {
        let world = &world;
        let name = format!("acme/r{number}");
        world.github.create(&name);
        let run = world.registration(Identity::Read).id(&format!("r{number}")).send().await.unwrap();
        let git = world.git(&run).program(&gits[number % gits.len()]);
        world.github.when(Route::UploadPack).repository(&name).always().then(row.fault.clone());
        let clone = ["clone", "--quiet", &git.url(&name), "it"];
        let failed = git.run(&clone).await.code_is(128);
        failed.says("remote error: gitdoor: ").says(row.words).does_not_say("Authentication failed");
        let event = world.event("reason", row.reason).await;
        assert_eq!((&event["route"], &event["status"]), (&json!("fetch"), &json!(200)), "{event}");
        assert_eq!(git.erasures(), 0);
        world.github.heal_repository(&name);
        git.run(&clone).await.ok();
    }))
    .await;
    assert_smart_only(&world);
    world.quiet(0).await;
    world.finish().await;
}

#[tokio::test]
async fn a_pack_that_breaks_off_or_stops_fails_the_clone_and_is_recorded() {
    let world = impatient().await;
    let rows = [(Fault::Cut(100_000), "upstream-cut"), (Fault::Stall(100_000), "upstream-idle")];
    few_at_once(rows.into_iter().enumerate().map(async |(number, (fault, kind))| {
        let world = &world;
        let name = format!("acme/r{number}");
        world.github.seed(&name).big_file("big", 2 << 20).create();
        let run = world.registration(Identity::Read).id(&format!("r{number}")).send().await.unwrap();
        let git = world.git(&run);
        // The first request lists the refs.
        world.github.when(Route::UploadPack).repository(&name).skip(1).then(fault);
        let clone = ["clone", "--quiet", &git.url(&name), "it"];
        git.run(&clone).await.code_is(128);
        let event = world.event("interruption", kind).await;
        assert_eq!((&event["run"], &event["status"]), (&json!(run.id), &json!(200)), "{event}");
        assert!(event["response_bytes"].as_u64().unwrap() <= 100_000, "{event}");
        git.run(&clone).await.ok();
    }))
    .await;
    world.quiet(0).await;
    world.finish().await;
}

#[tokio::test]
async fn a_push_that_the_upstream_fails_is_refused_ref_by_ref_and_recorded_as_interrupted() {
    let world = impatient().await;
    let gits = git::all();
    let mut rows = failures("application/x-git-receive-pack-result");
    rows.push(answered(
        Canned::status(401).header("WWW-Authenticate", "Basic realm=\"GitHub\"").body("text/plain", "no"),
        502,
        "upstream-unauthorized",
        "refused the door's token",
    ));
    rows.push(failure(Fault::Gzip, 502, "upstream-coded", "in a coding"));
    for cut in [0, 3, 20] {
        rows.push(failure(Fault::Cut(cut), 502, "upstream-cut", "cut the connection"));
    }
    rows.push(failure(Fault::Stall(20), 504, "upstream-silent", "did not answer in time"));
    few_at_once(rows.into_iter().enumerate().map(async |(number, row)| {
        let world = &world;
        let name = format!("acme/r{number}");
        world.github.create(&name);
        let registration = world.registration(Identity::Write).id(&format!("r{number}")).repository(&name);
        let run = registration.send().await.unwrap();
        let git = world.git(&run).program(&gits[number % gits.len()]).cloned(&name).await;
        git.commit("fix.txt", "fix\n").await;
        world.github.when(Route::ReceivePack).repository(&name).then(row.fault.clone());
        let mut failed = git.run(&["push", "origin", "HEAD:fix-x", "HEAD:fix-y"]).await.code_is(1);
        for reference in ["fix-x", "fix-y"] {
            failed = failed.says(&format!("! [remote rejected] HEAD -> {reference} (refused: "));
        }
        failed.says(row.words).does_not_say("Everything up-to-date").does_not_say("RPC failed");
        let push = world.show(&run).await.pushes.remove(0);
        assert_eq!(push.outcome(), PushOutcome::Interrupted, "{}", row.words);
        let event = world.event("request_id", &push.request_id).await;
        let facts = (&event["status"], &event["reason"], &event["outcome"]);
        assert_eq!(facts, (&json!(200), &json!(row.reason), &json!("interrupted")), "{event}");
        let kind = match row.reason {
            "upstream-silent" => "upstream-idle",
            "upstream-not-git" | "upstream-coded" => "upstream-unreadable",
            _ => "upstream-cut",
        };
        assert_eq!(event["interruption"], kind, "{event}");
        assert_eq!(git.erasures(), 0);
        git.run(&["push", "--force", "origin", "HEAD:fix-z"]).await.ok();
        git.run(&["fetch"]).await.ok();
    }))
    .await;
    assert_smart_only(&world);
    world.quiet(0).await;
    world.finish().await;
}

#[tokio::test]
async fn a_probe_that_the_upstream_fails_ends_the_push_before_its_commands() {
    let world = impatient().await;
    world.github.create("acme/api");
    let run = world.register(Identity::Write).await;
    let git = world.git(&run).cloned("acme/api").await;
    git.commit("big", vec![b'x'; 100_000]).await;
    let push = ["-c", "http.postBuffer=65536", "-c", "core.compression=0", "push", "origin", "HEAD:fix-x"];
    for canned in [Canned::status(500), Canned::status(401), Canned::status(429)] {
        world.github.when(Route::ReceivePack).always().answer(canned);
        let pushed = git.run(&push).await;
        assert_ne!(pushed.code, Some(0), "{pushed}");
        world.github.heal();
    }
    let probes = world.github.pushes();
    assert!(probes.iter().all(gitdoor_tests::github::Request::is_probe), "{probes:?}");
    assert!(world.show(&run).await.pushes.is_empty());
    assert_eq!(git.erasures(), 0);
    git.run(&push).await.ok();
    world.finish().await;
}

#[tokio::test]
async fn an_upstream_that_cannot_be_reached_or_does_not_greet_is_told_in_time() {
    let deaf = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let closed = Port::take();
    for address in [closed.address(), deaf.local_addr().unwrap()] {
        let world = World::builder(PROGRAM)
            .dataplane_flag(&format!("--github-url=https://localhost:{}", address.port()))
            .dataplane_flag("--connect-timeout=1s")
            .start()
            .await;
        world.github.create("acme/api");
        let run = world.registration(Identity::Write).repository("acme/api").send().await.unwrap();
        let git = world.git(&run);
        git.run(&["ls-remote", &git.url("acme/api")]).await.code_is(128).says("the forge cannot be reached");
        let section = gitdoor_tests::pkt::commands(
            &[(gitdoor_tests::pkt::ZERO, &"1".repeat(40), "refs/heads/x")],
            gitdoor_tests::pkt::GIT_CAPABILITIES,
        );
        let push = [section.as_slice(), gitdoor_tests::pkt::EMPTY_PACK].concat();
        let push = world.door(0).send(Request::push("acme/api", push).basic(&run.bearer)).await;
        let report = gitdoor_tests::pkt::report(&push.body);
        assert_eq!(report[1], "ng refs/heads/x refused: the forge cannot be reached");
        assert_eq!(world.show(&run).await.pushes[0].outcome(), PushOutcome::Interrupted);
        world.finish().await;
    }
}

#[tokio::test]
async fn what_the_upstream_reports_reaches_git_word_for_word() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    let run =
        world.registration(Identity::Write).options(|options| options.no_workflows = true).send().await.unwrap();
    let git = world.git(&run).cloned("acme/api").await;
    let workflow = git.commit(".github/workflows/ci.yml", "on: push\n").await;
    let push = git.run(&["push", "origin", "HEAD:ci"]).await.code_is(1);
    push.says("! [remote rejected] HEAD -> ci (hook declined)").says("without 'workflows' permission");
    assert_eq!(world.show(&run).await.pushes[0].outcome(), PushOutcome::RefusedUpstream);
    let report = |lines: &[&str]| {
        use gitdoor_tests::pkt::{FLUSH, line};
        let report: Vec<u8> = lines.iter().flat_map(line).chain(FLUSH.to_vec()).collect();
        let body = [line([b"\x01", report.as_slice()].concat()), FLUSH.to_vec()].concat();
        Canned::status(200).body("application/x-git-receive-pack-result", body)
    };
    for (lines, said, outcome) in [
        (
            &["unpack ok\n", "ng refs/heads/ci protected branch hook declined: \u{e9}(1)\n"][..],
            "(protected branch hook declined: \u{e9}(1))",
            PushOutcome::RefusedUpstream,
        ),
        (
            &["unpack index-pack abnormal exit\n", "ng refs/heads/ci unpacker error\n"],
            "remote unpack failed: index-pack abnormal exit",
            PushOutcome::RefusedUpstream,
        ),
        (&["unpack ok\n"], "remote failed to report status", PushOutcome::Interrupted),
    ] {
        world.github.when(Route::ReceivePack).answer(report(lines));
        git.run(&["push", "origin", "HEAD:ci"]).await.code_is(1).says(said);
        assert_eq!(world.show(&run).await.pushes[0].outcome(), outcome, "{said}");
    }
    assert!(!world.github.refs("acme/api").values().any(|id| *id == workflow));
    world.finish().await;
}

#[tokio::test]
async fn a_renamed_repository_is_followed_inside_the_door() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    let run = world.register(Identity::Write).await;
    let git = world.git(&run).cloned("acme/api").await;
    git.commit("fix.txt", "fix\n").await;
    git.run(&["push", "origin", "HEAD:fix-x"]).await.ok();
    world.github.rename("acme/api", "acme/core");
    let commit = git.commit("more.txt", "more\n").await;
    git.run(&["fetch", "origin"]).await.ok().does_not_say("redirect");
    git.run(&["push", "origin", "HEAD:fix-y"]).await.ok().does_not_say("redirect");
    assert_eq!(world.github.ref_of("acme/core", "refs/heads/fix-y"), Some(commit));
    let raw = Request::get("/acme/api.git/info/refs?service=git-upload-pack").basic(&run.bearer);
    let raw = world.door(0).send(raw).await;
    assert_eq!((raw.status, raw.header("location")), (200, None));
    world.finish().await;
}

#[tokio::test]
async fn a_connection_that_the_upstream_closed_while_it_was_idle_costs_nothing() {
    let world = World::builder(PROGRAM).dataplane_flag("--threads=1").start().await;
    world.github.create("acme/api");
    let run = world.register(Identity::Read).await;
    let git = world.git(&run);
    let list = ["ls-remote", &git.url("acme/api")];
    for _ in 0..5 {
        git.run(&list).await.ok().says("refs/heads/main");
        world.github.hang_up();
    }
    let connections: std::collections::BTreeSet<usize> =
        world.github.requests().iter().map(|request| request.connection).collect();
    assert!(connections.len() >= 5, "{connections:?}");
    world.finish().await;
}

#[tokio::test]
async fn a_request_that_went_up_is_never_sent_twice() {
    let world = World::builder(PROGRAM).dataplane_flag("--threads=1").start().await;
    world.github.create("acme/api");
    let run = world.register(Identity::Write).await;
    let git = world.git(&run).cloned("acme/api").await;
    git.commit("fix.txt", "fix\n").await;
    git.run(&["push", "origin", "HEAD:fix-x"]).await.ok();
    for (route, command) in
        [(Route::UploadPack, &["fetch", "origin"][..]), (Route::ReceivePack, &["push", "origin", "HEAD:fix-y"])]
    {
        let before = world.github.requests_for(route).len();
        world.github.when(route).then(Fault::Reset);
        git.run(command).await.says("cut the connection");
        assert_eq!(world.github.requests_for(route).len(), before + 1);
        git.run(command).await.ok();
    }
    let aborted = world.github.pushes().into_iter().filter(|push| push.body_end != BodyEnd::Clean).count();
    assert_eq!(aborted, 0);
    world.finish().await;
}
