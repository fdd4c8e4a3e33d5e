//! Streams: bytes go both ways at once and no faster than the slower side takes them, and who leaves or stops ends the
//! request and nothing else.

use std::time::Duration;

use gitdoor_proto::v1::{Identity, PushOutcome};
use gitdoor_tests::github::{BodyEnd, Fault, Route};
use gitdoor_tests::raw::{Connection, Request, chunk};
use gitdoor_tests::wait::until;
use gitdoor_tests::world::{Run, World};
use gitdoor_tests::{h2, pkt};
use http_body_util::BodyExt as _;
use serde_json::json;

use crate::PROGRAM;

/// More than all buffers on the way hold.
const LARGE: usize = 32 << 20;
/// What may wait in them: the kernel's of two connections, the stand-in's and the door's.
const BUFFERED: u64 = 12 << 20;

/// A world that logs for machines.
fn world() -> gitdoor_tests::world::Builder {
    World::builder(PROGRAM).dataplane_flag("--log-format=json").dataplane_flag("--threads=1")
}

async fn write_run(world: &World) -> Run {
    world.github.create("acme/api");
    world.registration(Identity::Write).repository("acme/api").send().await.unwrap()
}

/// A repository whose clone is large, and its tip.
fn large(world: &World) -> String {
    world.github.seed("acme/large").big_file("big", LARGE).create();
    world.github.ref_of("acme/large", "refs/heads/main").unwrap()
}

/// The body of a clone at protocol v0.
fn wants(tip: &str) -> Vec<u8> {
    let want = pkt::line(format!("want {tip} side-band-64k no-progress\n"));
    [want, pkt::FLUSH.to_vec(), pkt::line("done\n")].concat()
}

fn clone_request(run: &Run, tip: &str) -> Request {
    let request = Request::post("/acme/large.git/git-upload-pack").basic(&run.bearer);
    request.header("Content-Type", "application/x-git-upload-pack-request").body(wants(tip))
}

/// The section of a push that makes a branch at a commit that the repository has.
fn section(world: &World, branch: &str) -> Vec<u8> {
    let tip = world.github.ref_of("acme/api", "refs/heads/main").unwrap();
    pkt::commands(&[(pkt::ZERO, &tip, &format!("refs/heads/{branch}"))], pkt::GIT_CAPABILITIES)
}

/// A push whose section and a part of whose pack went out.
async fn begun_push(world: &World, run: &Run, framing: (&str, &str), branch: &str) -> Connection {
    let door = world.door(0);
    let mut connection = door.connect().await.unwrap();
    let head = Request::post("/acme/api.git/git-receive-pack").basic(&run.bearer).header(framing.0, framing.1);
    let head = head.header("Content-Type", "application/x-git-receive-pack-request").to_bytes(&door.host);
    let begin = [section(world, branch).as_slice(), &pkt::EMPTY_PACK[..12]].concat();
    let begin = if framing.0 == "Transfer-Encoding" { chunk(&begin) } else { begin };
    connection.write(&[head, begin].concat()).await.unwrap();
    connection
}

#[tokio::test]
async fn progress_of_the_upstream_reaches_the_client_while_it_still_sends() {
    let world = world().start().await;
    let run = write_run(&world).await;
    world.github.when(Route::ReceivePack).then(Fault::Progress("counting\n".to_owned()));
    let mut connection = begun_push(&world, &run, ("Transfer-Encoding", "chunked"), "fix-x").await;
    connection.until(b"\x02counting\n").await.unwrap();
    assert_eq!(world.github.pushes()[0].body_end, BodyEnd::Open);
    assert_eq!(world.github.ref_of("acme/api", "refs/heads/fix-x"), None);
    connection.write(&chunk(&pkt::EMPTY_PACK[12..])).await.unwrap();
    connection.write(b"0\r\n\r\n").await.unwrap();
    let answer = connection.response().await.unwrap();
    assert_eq!(pkt::band(&answer.body, 2), b"counting\n");
    assert_eq!(pkt::report(&answer.body), ["unpack ok", "ok refs/heads/fix-x"]);
    assert_eq!(world.show(&run).await.pushes[0].outcome(), PushOutcome::Done);
    world.finish().await;
}

#[tokio::test]
async fn a_client_that_leaves_a_clone_ends_the_upstreams_work() {
    let world = world().start().await;
    let tip = large(&world);
    let run = world.register(Identity::Read).await;
    let door = world.door(0);
    let mut connection = door.connect().await.unwrap();
    connection.write(&clone_request(&run, &tip).to_bytes(&door.host)).await.unwrap();
    while connection.more().await.unwrap() < 1 << 20 {}
    drop(connection);
    let event = world.event("route", "fetch").await;
    assert_eq!((&event["interruption"], &event["status"]), (&json!("client-left"), &json!(200)), "{event}");
    until("the upstream's answer is cut", async || {
        world.github.requests_for(Route::UploadPack)[0].answer_end == BodyEnd::Cut
            && world.github.running_backends() == 0
    })
    .await;
    assert!(world.github.requests_for(Route::UploadPack)[0].sent < BUFFERED);
    world.finish().await;
}

#[tokio::test]
async fn a_client_that_leaves_before_there_is_an_answer_ends_the_request() {
    let world = world().start().await;
    world.github.create("acme/large");
    let run = world.register(Identity::Read).await;
    world.github.when(Route::UploadPack).then(Fault::Silent);
    let door = world.door(0);
    let mut connection = door.connect().await.unwrap();
    connection.write(&clone_request(&run, &"1".repeat(40)).to_bytes(&door.host)).await.unwrap();
    until("the upstream has it", async || world.github.requests_for(Route::UploadPack).len() == 1).await;
    drop(connection);
    let event = world.event("route", "fetch").await;
    assert_eq!((&event["interruption"], &event["status"]), (&json!("client-left"), &json!(null)), "{event}");
    world.quiet(0).await;
    world.finish().await;
}

#[tokio::test]
async fn a_client_that_leaves_in_the_middle_of_a_push_moves_no_ref() {
    let world = world().start().await;
    let run = write_run(&world).await;
    for framing in [("Transfer-Encoding", "chunked"), ("Content-Length", "100000")] {
        let before = world.github.pushes().len();
        let connection = begun_push(&world, &run, framing, "fix-x").await;
        // Its last bytes stay at the door until the body has ended.
        until("the upstream has it", async || world.github.pushes().len() > before).await;
        drop(connection);
        until("the push is closed in the ledger", async || {
            world.show(&run).await.pushes[0].outcome() == PushOutcome::Interrupted
        })
        .await;
        until("the upstream's request is cut", async || {
            world.github.pushes()[before].body_end == BodyEnd::Cut && world.github.running_backends() == 0
        })
        .await;
        let id = world.show(&run).await.pushes[0].request_id.clone();
        let event = world.event("request_id", &id).await;
        assert_eq!(event["interruption"], "client-left", "{event}");
        assert_eq!(world.github.ref_of("acme/api", "refs/heads/fix-x"), None);
    }
    assert_eq!(world.show(&run).await.pushes.len(), 2);
    world.quiet(0).await;
    world.finish().await;
}

#[tokio::test]
async fn a_client_that_leaves_after_its_last_byte_has_pushed_and_that_is_recorded() {
    let world = world().start().await;
    let run = write_run(&world).await;
    world.github.hold_pushes("acme/api");
    for (number, framing) in [("Transfer-Encoding", "chunked"), ("Content-Length", "")].into_iter().enumerate() {
        let branch = format!("fix-{number}");
        let rest = &pkt::EMPTY_PACK[12..];
        let length = (section(&world, &branch).len() + pkt::EMPTY_PACK.len()).to_string();
        let framing = (framing.0, if framing.1.is_empty() { length.as_str() } else { framing.1 });
        let mut connection = begun_push(&world, &run, framing, &branch).await;
        let end = if number == 0 { [chunk(rest).as_slice(), b"0\r\n\r\n"].concat() } else { rest.to_vec() };
        connection.write(&end).await.unwrap();
        until("the upstream has it all", async || {
            world.github.pushes().get(number).is_some_and(|push| push.body_end == BodyEnd::Clean)
        })
        .await;
        drop(connection);
        world.github.let_pushes_go("acme/api");
        until("the push is done", async || world.show(&run).await.pushes[0].outcome() == PushOutcome::Done).await;
        let reference = format!("refs/heads/{branch}");
        assert!(world.github.ref_of("acme/api", &reference).is_some(), "{reference}");
        std::fs::remove_file(world.github.folder("acme/api").join("let-go")).unwrap();
    }
    world.quiet(0).await;
    world.finish().await;
}

#[tokio::test]
async fn a_client_that_stops_reading_stops_the_upstream_and_nobody_else() {
    let mut world = world().start().await;
    let tip = large(&world);
    world.github.create("acme/api");
    let run = world.register(Identity::Read).await;
    let other = world.register(Identity::Read).await;
    let git = world.git(&other).cloned("acme/api").await;
    let idle = world.dataplane(0).memory_now();
    let door = world.door(0);
    let mut stopped = Vec::new();
    for _ in 0..3 {
        let mut connection = door.connect().await.unwrap();
        connection.write(&clone_request(&run, &tip).to_bytes(&door.host)).await.unwrap();
        connection.more().await.unwrap();
        stopped.push(connection);
    }
    assert!(settled(&world).await < 3 * BUFFERED);
    git.run(&["fetch"]).await.ok();
    world.git(&other).cloned("acme/api").await;
    assert_eq!(world.github.running_backends(), 3);
    let used = world.dataplane(0).memory_now().saturating_sub(idle);
    assert!(used < 16 << 20, "three stopped clones use {used} bytes");
    let mut first = stopped.remove(0);
    let answer = tokio::time::timeout(Duration::from_mins(1), whole(&mut first)).await.unwrap();
    assert!(answer > LARGE);
    drop(stopped);
    world.quiet(0).await;
    world.finish().await;
}

/// Reads to the end of a chunked answer, and returns how much that was.
async fn whole(connection: &mut Connection) -> usize {
    loop {
        let read = connection.more().await.unwrap();
        if connection.read_so_far().ends_with(b"0\r\n\r\n") {
            return read;
        }
    }
}

/// Waits until the upstream sends no more; returns what it has sent.
async fn settled(world: &World) -> u64 {
    let sent = || world.github.requests_for(Route::UploadPack).iter().map(|request| request.sent).sum::<u64>();
    let mut last = 0;
    for _ in 0..40 {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let now = sent();
        if now > 0 && now == last {
            break;
        }
        last = now;
    }
    assert_eq!(sent(), last, "the upstream still sends");
    last
}

#[tokio::test]
async fn a_stopped_stream_of_an_http2_connection_stops_no_other() {
    let world = world().http2().start().await;
    let tip = large(&world);
    world.github.create("acme/api");
    let run = world.register(Identity::Read).await;
    let door = world.door(0);
    let mut sender = h2::connect(&door).await;
    let mut stopped = Vec::new();
    for _ in 0..3 {
        let request = h2::request(&door, "POST", "/acme/large.git/git-upload-pack", &run.bearer);
        let request = request.header("content-type", "application/x-git-upload-pack-request");
        let answer = sender.send_request(request.body(h2::full(wants(&tip))).unwrap()).await.unwrap();
        assert_eq!(answer.status(), 200);
        stopped.push(answer.into_body());
    }
    assert!(settled(&world).await < 3 * BUFFERED);
    for _ in 0..20 {
        let target = "/acme/api.git/info/refs?service=git-upload-pack";
        let request = h2::request(&door, "GET", target, &run.bearer).body(h2::full("")).unwrap();
        let answer = sender.send_request(request).await.unwrap();
        assert_eq!(answer.status(), 200);
        assert!(
            answer.into_body().frame().await.unwrap().unwrap().into_data().unwrap().starts_with(b"001e# service")
        );
    }
    let mut first = stopped.remove(0);
    let mut read = 0;
    while let Some(frame) = first.frame().await {
        read += frame.unwrap().into_data().unwrap().len();
    }
    assert!(read > LARGE);
    // A stream that is given up ends its request, not the connection.
    drop(stopped);
    until("the upstream is idle", async || world.github.running_backends() == 0).await;
    drop(sender);
    world.quiet(0).await;
    world.finish().await;
}

#[tokio::test]
async fn a_client_that_takes_nothing_for_too_long_is_given_up() {
    let world = world().dataplane_flag("--idle-timeout=2s").start().await;
    let tip = large(&world);
    let run = world.register(Identity::Read).await;
    let door = world.door(0);
    let mut connection = door.connect().await.unwrap();
    connection.write(&clone_request(&run, &tip).to_bytes(&door.host)).await.unwrap();
    connection.more().await.unwrap();
    let event = world.event("route", "fetch").await;
    assert!(["client-idle", "client-left"].iter().any(|kind| event["interruption"] == *kind), "{event}");
    until("git has ended", async || world.github.running_backends() == 0).await;
    assert_eq!(world.github.requests_for(Route::UploadPack)[0].answer_end, BodyEnd::Cut);
    world.finish().await;
}

#[tokio::test]
async fn a_client_that_sends_nothing_for_too_long_is_given_up() {
    let world = world().dataplane_flag("--idle-timeout=2s").start().await;
    let run = write_run(&world).await;
    let mut connection = begun_push(&world, &run, ("Transfer-Encoding", "chunked"), "fix-x").await;
    let answer = connection.response().await.unwrap();
    assert_eq!(answer.status, 408, "{}", answer.text());
    until("the push is closed in the ledger", async || {
        world.show(&run).await.pushes[0].outcome() == PushOutcome::Interrupted
    })
    .await;
    let event = world.event("route", "push").await;
    assert_eq!(event["interruption"], "client-idle", "{event}");
    until("the upstream's request is cut", async || {
        world.github.pushes()[0].body_end == BodyEnd::Cut && world.github.running_backends() == 0
    })
    .await;
    assert_eq!(world.github.ref_of("acme/api", "refs/heads/fix-x"), None);
    world.finish().await;
}

#[tokio::test]
async fn an_upstream_that_stops_reading_a_push_is_given_up_in_words() {
    let world = world().dataplane_flag("--idle-timeout=3s").start().await;
    let run = write_run(&world).await;
    let git = world.git(&run).cloned("acme/api").await;
    git.run(&["config", "core.compression", "0"]).await.ok();
    git.commit("big", vec![b'x'; 30 << 20]).await;
    // After the probe, for longer than anyone waits.
    world.github.when(Route::ReceivePack).skip(1).after(Duration::from_hours(1)).then(Fault::None);
    let push = git.run(&["push", "origin", "HEAD:fix-x"]).await.code_is(1);
    push.says("[remote rejected] HEAD -> fix-x (refused: the forge did not").does_not_say("Everything up-to-date");
    let shown = world.show(&run).await.pushes.remove(0);
    assert_eq!(shown.outcome(), PushOutcome::Interrupted);
    let event = world.event("request_id", &shown.request_id).await;
    assert_eq!(event["reason"], "upstream-silent", "{event}");
    world.quiet(0).await;
    world.finish().await;
}

#[tokio::test]
async fn a_client_that_never_makes_a_request_is_let_go() {
    for http2 in [false, true] {
        let builder = World::builder(PROGRAM).dataplane_flag("--head-timeout=1s");
        let world = if http2 { builder.http2() } else { builder }.start().await;
        for beginning in ["", "P", "GET /acme"] {
            let mut connection = world.door(0).connect().await.unwrap();
            connection.write(beginning.as_bytes()).await.unwrap();
            let rest = tokio::time::timeout(Duration::from_secs(20), connection.rest()).await;
            assert!(rest.is_ok(), "HTTP/2 {http2}: {beginning:?} is waited on");
        }
        world.finish().await;
    }
}
