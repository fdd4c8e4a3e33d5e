//! What operators see and do: probes, metrics, the event of a request, and a stop that lets work end.

use std::time::Duration;

use gitdoor_proto::v1::{Identity, PushOutcome};
use gitdoor_tests::github::{Canned, Fault, Rest, Route};
use gitdoor_tests::pkt;
use gitdoor_tests::raw::{Connection, Request, chunk};
use gitdoor_tests::wait::until;
use gitdoor_tests::world::{Run, World};
use serde_json::json;

use crate::PROGRAM;

/// More than all buffers on the way hold.
const LARGE: usize = 32 << 20;
/// Longer than any drain of these tests, shorter than the defaults of what would hold it up.
const SOON: Duration = Duration::from_secs(12);

/// A clone whose client has stopped reading.
async fn stopped_clone(world: &World, run: &Run) -> Connection {
    world.github.seed("acme/large").big_file("big", LARGE).create();
    let tip = world.github.ref_of("acme/large", "refs/heads/main").unwrap();
    let want = pkt::line(format!("want {tip} side-band-64k no-progress\n"));
    let request = Request::post("/acme/large.git/git-upload-pack").basic(&run.bearer);
    let request = request.header("Content-Type", "application/x-git-upload-pack-request");
    let request = request.body([want, pkt::FLUSH.to_vec(), pkt::line("done\n")].concat());
    let door = world.door(0);
    let mut connection = door.connect().await.unwrap();
    connection.write(&request.to_bytes(&door.host)).await.unwrap();
    connection.until(b"PACK").await.unwrap();
    connection
}

#[tokio::test]
async fn a_data_plane_is_ready_from_its_first_contact_with_control() {
    let mut world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    let run = world.register(Identity::Read).await;
    let git = world.git(&run);
    let list = ["ls-remote", &git.url("acme/api")];
    world.dataplane(0).stop(SOON).await;
    world.control().kill().await;
    world.dataplane(0).start_again().await;
    assert_eq!(world.dataplane_admin(0, "/livez").await.status, 200);
    assert_eq!(world.dataplane_admin(0, "/readyz").await.status, 503);
    git.run(&list).await.code_is(128).says("503").does_not_say("Authentication failed");
    world.control().start_again().await;
    until("it is ready", async || world.dataplane_admin(0, "/readyz").await.status == 200).await;
    assert_eq!(world.control_admin("/readyz").await.status, 200);
    git.run(&list).await.ok();
    // A later outage of control does not take the node out.
    world.control().kill().await;
    let refused = Request::get("/acme/api.git/info/refs?service=git-upload-pack").basic(&run.bearer);
    let refused = world.door(0).send(refused).await;
    assert_eq!((refused.status, refused.header("x-gitdoor-reason")), (503, Some("control-unreachable")));
    assert!(refused.header("retry-after").is_some());
    assert_eq!(world.dataplane_admin(0, "/readyz").await.status, 200);
    assert_eq!(git.erasures(), 0);
    world.control().start_again().await;
    git.run(&list).await.ok();
    assert_eq!(world.dataplane_admin(0, "/anything").await.status, 404);
    world.finish().await;
}

/// Metrics that each part must have after the traffic below.
const METRICS: &[&str] = &[
    "gitdoor_dataplane_requests_total",
    "gitdoor_dataplane_refusals_total",
    "gitdoor_dataplane_interruptions_total",
    "gitdoor_dataplane_pushes_total",
    "gitdoor_dataplane_drained_bytes_total",
    "gitdoor_dataplane_streams",
    "gitdoor_dataplane_request_body_bytes",
    "gitdoor_dataplane_response_body_bytes",
    "gitdoor_dataplane_request_seconds",
    "gitdoor_dataplane_gate_seconds",
    "gitdoor_dataplane_upstream_first_byte_seconds",
    "gitdoor_control_questions_total",
    "gitdoor_control_question_seconds",
    "gitdoor_control_sessions",
    "gitdoor_control_push_leases",
    "gitdoor_control_pushes_total",
    "gitdoor_control_revocations_total",
    "gitdoor_control_run_calls_total",
    "gitdoor_control_store_operation_seconds",
    "gitdoor_control_mints_total",
];

#[tokio::test]
async fn every_metric_is_there_after_traffic_and_none_names_a_run_a_repository_or_a_ref() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    let run = world.registration(Identity::Write).id("run-of-metrics").send().await.unwrap();
    let git = world.git(&run).cloned("acme/api").await;
    git.commit("fix.txt", "fix\n").await;
    git.run(&["push", "origin", "HEAD:fix-of-metrics"]).await.ok();
    git.run(&["push", "origin", "HEAD:main"]).await.code_is(1);
    world.github.when(Route::FetchDiscovery).then(Fault::Cut(70));
    git.run(&["fetch"]).await.code_is(128);
    world.door(0).send(Request::get("/run-of-metrics/fix-of-metrics?x=acme")).await;
    world.door(0).send(Request::new("BREW-OF-METRICS", "/acme/api.git/info/refs")).await;
    world.revoke(&run).await;
    world.quiet(0).await;
    let all: Vec<String> = world.metrics().await.into_iter().map(|(_, text)| text).collect();
    for name in METRICS {
        let text = all.iter().find(|text| text.contains(&format!("# TYPE {name} ")));
        let text = text.unwrap_or_else(|| panic!("there is no {name}"));
        assert!(text.contains(&format!("# HELP {name} ")), "{name} is not described");
    }
    for word in ["of-metrics", "OF-METRICS", "acme", "refs/", "HEAD"] {
        assert!(!all.iter().any(|text| text.contains(word)), "a metric names {word}");
    }
    assert!(world.metric(0, "gitdoor_dataplane_requests_total").await >= 8.0);
    world.finish().await;
}

#[tokio::test]
async fn what_is_rare_is_counted_from_0() {
    let world = World::start(PROGRAM).await;
    let text = world.dataplane_admin(0, "/metrics").await.text();
    for why in ["lost", "silent", "storeless"] {
        let sample = format!("gitdoor_dataplane_questions_asked_again_total{{why=\"{why}\"}} 0");
        assert!(text.lines().any(|line| line == sample), "{sample}");
    }
    for state in ["live", "silent", "storeless", "lost"] {
        let sample = format!("gitdoor_dataplane_control_sessions{{state=\"{state}\"}} ");
        assert!(text.lines().any(|line| line.starts_with(&sample)), "{sample}");
    }
    world.finish().await;
}

#[tokio::test]
async fn one_event_a_request_tells_who_did_what_and_how_much_under_the_answers_own_id() {
    let world = World::builder(PROGRAM).dataplane_flag("--log-format=json").start().await;
    world.github.create("acme/api");
    let run = world.registration(Identity::Write).id("run-of-events").send().await.unwrap();
    let git = world.git(&run).cloned("acme/api").await;
    git.commit("fix.txt", "fix\n").await;
    git.run(&["push", "origin", "HEAD:fix-x", "HEAD:fix-y"]).await.ok();
    git.run(&["push", "origin", "HEAD:main", "HEAD:fix-z"]).await.code_is(1);
    world.quiet(0).await;
    let sent = Request::get("/acme/api.git/info/refs?service=git-upload-pack").basic("none");
    let answer = world.door(0).send(sent).await;
    let id = answer.header("x-request-id").unwrap();
    let event = world.event("request_id", id).await;
    let facts = (&event["status"], &event["reason"], &event["route"], &event["run"]);
    assert_eq!(facts, (&json!(401), &json!("not-a-bearer"), &json!("fetch-discovery"), &json!(null)), "{event}");
    assert!(answer.text().contains(id));
    for push in world.show(&run).await.pushes {
        let event = world.event("request_id", &push.request_id).await;
        let names = push.refs.iter().map(|pushed| String::from_utf8_lossy(&pushed.ref_name).into_owned());
        assert_eq!(event["refs"], names.collect::<Vec<_>>().join(" "), "{event}");
        let facts = (&event["run"], &event["route"], &event["repository"], &event["method"], &event["status"]);
        let expected = (json!("run-of-events"), json!("push"), json!("acme/api"), json!("POST"), json!(200));
        assert_eq!(facts, (&expected.0, &expected.1, &expected.2, &expected.3, &expected.4));
        let done = push.outcome() == PushOutcome::Done;
        // Of a push that control refused it was not told how long it was.
        assert_eq!(push.request_bytes, if done { event["request_bytes"].as_u64().unwrap() } else { 0 }, "{event}");
        assert_eq!(event["outcome"], if done { json!("done") } else { json!(null) }, "{event}");
        assert_eq!(event["upstream_status"], if done { json!(200) } else { json!(null) }, "{event}");
        assert_eq!(event["reason"].is_null(), done, "{event}");
    }
    let events = world.events();
    let ids: std::collections::BTreeSet<_> = events.iter().map(|event| event["request_id"].to_string()).collect();
    assert_eq!(ids.len(), events.len(), "one event a request");
    let requests = world.metric(0, "gitdoor_dataplane_requests_total").await;
    assert!((requests - 1.0 * f64::from(u32::try_from(events.len()).unwrap())).abs() < 0.5, "{requests}");
    for event in events.iter().filter(|event| event["status"] == 200) {
        assert!(event["response_bytes"].as_u64().unwrap() > 0, "{event}");
        assert!(event["elapsed_us"].is_u64() && event["gate_us"].is_u64(), "{event}");
    }
    world.finish().await;
}

#[tokio::test]
async fn a_stop_lets_a_push_and_a_clone_end_and_takes_nothing_new() {
    let mut world = World::builder(PROGRAM).dataplane_flag("--log-format=json").start().await;
    world.github.create("acme/api");
    let run = world.registration(Identity::Write).repository("acme/api").send().await.unwrap();
    let mut clone = stopped_clone(&world, &run).await;
    let git = world.git(&run).cloned("acme/api").await;
    git.commit("fix.txt", "fix\n").await;
    world.github.hold_pushes("acme/api");
    let push = tokio::spawn(async move { git.run(&["push", "origin", "HEAD:fix-x"]).await });
    until("the push is under way", async || world.github.pushes().len() == 1).await;
    // Connections without a request do not hold it up: one that is new, one that was used.
    let door = world.door(0);
    let fresh = door.connect().await.unwrap();
    let mut used = door.connect().await.unwrap();
    let list = Request::get("/acme/api.git/info/refs?service=git-upload-pack").basic(&run.bearer);
    used.write(&list.to_bytes(&door.host)).await.unwrap();
    assert_eq!(used.response().await.unwrap().status, 200);
    world.dataplane(0).signal("TERM");
    until("it takes no connection", async || door.connect().await.is_err()).await;
    assert_eq!(world.dataplane_admin(0, "/readyz").await.status, 503);
    assert_eq!(world.dataplane_admin(0, "/livez").await.status, 200);
    assert!(used.rest().await.is_empty());
    assert!(fresh.rest().await.is_empty());
    world.github.let_pushes_go("acme/api");
    push.await.unwrap().ok().says("[new branch]");
    assert_eq!(world.show(&run).await.pushes[0].outcome(), PushOutcome::Done);
    let answer = tokio::time::timeout(Duration::from_mins(1), clone.response()).await.unwrap().unwrap();
    assert!(answer.complete && answer.body.len() > LARGE);
    drop(clone);
    let status = world.dataplane(0).wait(SOON).await;
    assert!(status.success(), "{status}");
    world.finish().await;
}

#[tokio::test]
async fn a_stop_does_not_wait_longer_than_it_was_told() {
    let mut world = World::builder(PROGRAM).dataplane_flag("--drain-timeout=1s").start().await;
    world.github.create("acme/api");
    let run = world.registration(Identity::Write).repository("acme/api").send().await.unwrap();
    let clone = stopped_clone(&world, &run).await;
    let tip = world.github.ref_of("acme/api", "refs/heads/main").unwrap();
    let section = pkt::commands(&[(pkt::ZERO, &tip, "refs/heads/fix-x")], pkt::GIT_CAPABILITIES);
    let door = world.door(0);
    let mut push = door.connect().await.unwrap();
    let head = Request::post("/acme/api.git/git-receive-pack").basic(&run.bearer);
    let head = head.header("Content-Type", "application/x-git-receive-pack-request");
    let head = head.header("Transfer-Encoding", "chunked").to_bytes(&door.host);
    let begin = [section.as_slice(), &pkt::EMPTY_PACK[..12]].concat();
    push.write(&[head, chunk(&begin)].concat()).await.unwrap();
    until("the push is under way", async || !world.github.pushes().is_empty()).await;
    world.dataplane(0).stop(SOON).await;
    until("the upstream's work has ended", async || world.github.running_backends() == 0).await;
    until("the push is closed in the ledger", async || {
        world.show(&run).await.pushes[0].outcome() != PushOutcome::Open
    })
    .await;
    assert_eq!(world.github.ref_of("acme/api", "refs/heads/fix-x"), None);
    drop((clone, push));
    world.finish().await;
}

#[tokio::test]
async fn control_may_be_restarted_under_its_data_planes() {
    let mut world = World::builder(PROGRAM).dataplanes(2).start().await;
    world.github.create("acme/api");
    let run = world.registration(Identity::Write).repository("acme/api").send().await.unwrap();
    let git = world.git(&run).cloned("acme/api").await;
    git.commit("fix.txt", "fix\n").await;
    for round in 0..3 {
        world.control().restart().await;
        for number in 0..2 {
            let there = world.git_at(number, &run.bearer).url("acme/api");
            git.run(&["push", &there, &format!("HEAD:fix-{round}-{number}")]).await.ok();
        }
    }
    // A push under way survives a restart, too.
    world.github.hold_pushes("acme/api");
    let before = world.github.pushes().len();
    let pusher = git.clone();
    let push = tokio::spawn(async move { pusher.run(&["push", "origin", "HEAD:fix-x"]).await });
    until("the push is under way", async || {
        world.github.pushes().get(before).is_some_and(|push| push.body_end == gitdoor_tests::github::BodyEnd::Clean)
    })
    .await;
    world.control().restart().await;
    world.github.let_pushes_go("acme/api");
    push.await.unwrap().ok().says("[new branch]");
    until("the push is closed in the ledger", async || {
        world.show(&run).await.pushes[0].outcome() != PushOutcome::Open
    })
    .await;
    let outcome = world.show(&run).await.pushes[0].outcome();
    assert_eq!(outcome, PushOutcome::Done);
    assert_eq!(git.erasures(), 0);
    world.finish().await;
}

#[tokio::test]
async fn a_stop_waits_for_a_refused_push_to_be_heard_out() {
    let mut world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    let run = world.registration(Identity::Write).repository("acme/api").send().await.unwrap();
    world.github.when(Route::ReceivePack).then(Fault::Early(Canned::status(500), Rest::Stall));
    let tip = world.github.ref_of("acme/api", "refs/heads/main").unwrap();
    let section = pkt::commands(&[(pkt::ZERO, &tip, "refs/heads/fix-x")], pkt::GIT_CAPABILITIES);
    let door = world.door(0);
    let mut push = door.connect().await.unwrap();
    let head = Request::post("/acme/api.git/git-receive-pack").basic(&run.bearer);
    let head = head.header("Transfer-Encoding", "chunked").to_bytes(&door.host);
    push.write(&[head, chunk(&section), chunk(b"PACK")].concat()).await.unwrap();
    until("the upstream has answered", async || {
        world.github.pushes().first().is_some_and(|push| push.status.is_some())
    })
    .await;
    world.dataplane(0).signal("TERM");
    until("it takes no connection", async || door.connect().await.is_err()).await;
    push.write(&[chunk(&[b'x'; 1000]).as_slice(), b"0\r\n\r\n"].concat()).await.unwrap();
    let answer = push.response().await.unwrap();
    assert!(pkt::report(&answer.body)[1].starts_with("ng refs/heads/fix-x refused: "), "{}", answer.text());
    let status = world.dataplane(0).wait(SOON).await;
    assert!(status.success(), "{status}");
    world.finish().await;
}
