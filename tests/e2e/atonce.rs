//! A run's requests at once, and how long each may go on: a place for as long as a request lasts, and time for as long
//! as its run lives.

use std::time::{Duration, SystemTime};

use gitdoor_proto::v1::{AdoptRunRequest, Identity};
use gitdoor_tests::github::{Fault, Route};
use gitdoor_tests::pkt;
use gitdoor_tests::raw::{Connection, Request};
use gitdoor_tests::wait::until;
use gitdoor_tests::world::{Run, World};
use tokio::time::{sleep, timeout};

use crate::PROGRAM;
use crate::bearers::{end_at, from_now, soon};
use crate::revocation::Cargo;

/// More than all buffers on the way hold.
const LARGE: usize = 32 << 20;
/// Longer than anything here may take.
const SOON: Duration = Duration::from_secs(30);
/// What every refusal of one too many says.
const WORDS: &str = "this run has 32 requests in progress; wait until one has ended";

/// The request of a clone at protocol v0, of a repository's tip.
fn fetch(world: &World, run: &Run, repository: &str) -> Request {
    let tip = world.github.ref_of(repository, "refs/heads/main").unwrap();
    let want = pkt::line(format!("want {tip} side-band-64k no-progress\n"));
    let body = [want, pkt::FLUSH.to_vec(), pkt::line("done\n")].concat();
    let request = Request::post(&format!("/{repository}.git/git-upload-pack")).basic(&run.bearer);
    request.header("Content-Type", "application/x-git-upload-pack-request").body(body)
}

/// Begins a clone, and takes no more of it than its beginning.
async fn begun(world: &World, run: &Run, repository: &str) -> Connection {
    let door = world.door(0);
    let mut connection = door.connect().await.unwrap();
    connection.write(&fetch(world, run, repository).to_bytes(&door.host)).await.unwrap();
    connection.more().await.unwrap();
    assert!(connection.read_so_far().starts_with(b"HTTP/1.1 200"), "{}", text(connection.read_so_far()));
    connection
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[tokio::test]
async fn a_run_with_too_many_requests_at_once_is_told_so_in_the_clients_language() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    let (run, other) = (world.register(Identity::Write).await, world.register(Identity::Read).await);
    let git = world.git(&run).cloned("acme/api").await;
    world.github.when(Route::UploadPack).times(32).then(Fault::Stall(20));
    let mut stalled = Vec::new();
    for _ in 0..32 {
        stalled.push(begun(&world, &run, "acme/api").await);
    }

    git.run(&["fetch"]).await.code_is(128).says(&format!("remote: gitdoor: {WORDS}")).says("error: 429");
    git.run(&["push", "origin", "HEAD:fix-x"]).await.code_is(128).says(WORDS);
    let answer = world.door(0).send(fetch(&world, &run, "acme/api")).await;
    assert_eq!((answer.status, answer.header("x-gitdoor-reason")), (200, Some("request-limit")));
    assert!(answer.text().contains(&format!("ERR gitdoor: {WORDS}")), "{}", answer.text());
    for path in ["/api/v3/repos/acme/api", "/api/v3/gitdoor/run"] {
        let answer = world.door(0).send(Request::get(path).basic(&run.bearer)).await;
        assert_eq!((answer.status, answer.header("retry-after")), (429, Some("1")), "{}", answer.text());
        assert!(answer.text().contains(&format!("\"message\":\"gitdoor: {WORDS}")), "{}", answer.text());
    }
    // Another run has places of its own.
    world.git(&other).cloned("acme/api").await;

    drop(stalled.pop());
    until("another may start", async || git.run(&["fetch"]).await.code == Some(0)).await;
    world.github.when(Route::UploadPack).then(Fault::Stall(20));
    let again = begun(&world, &run, "acme/api").await;
    git.run(&["fetch"]).await.code_is(128).says(WORDS);
    drop((stalled, again));
    until("all have ended", async || git.run(&["push", "origin", "HEAD:fix-x"]).await.code == Some(0)).await;
    world.finish().await;
}

#[tokio::test]
async fn a_run_may_make_any_number_of_requests_one_after_another_of_every_kind() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    let run = world.registration(Identity::Write).repository("acme/api").send().await.unwrap();
    let git = world.git(&run).cloned("acme/api").await;
    let head = |target: &str| Request::new("HEAD", target).basic(&run.bearer).header("Connection", "close");
    let get = |target: &str| Request::get(target).basic(&run.bearer);
    let requests = || {
        let graphql = Request::post("/api/graphql").basic(&run.bearer).header("Content-Type", "application/json");
        [
            (get("/acme/api.git/info/refs?service=git-upload-pack"), 200),
            (get("/acme/api.git/info/refs?service=git-receive-pack"), 200),
            (fetch(&world, &run, "acme/api"), 200),
            (Request::push("acme/api", "0000").basic(&run.bearer), 200),
            (get("/acme/none.git/info/refs?service=git-upload-pack"), 404),
            (get("/api/v3/repos/acme/api"), 200),
            (head("/api/v3/repos/acme/api"), 200),
            (get("/api/v3/gitdoor/run"), 200),
            (graphql.body("{\"query\":\"mutation { a }\"}"), 200),
        ]
    };
    for round in 0..12 {
        for (number, (request, status)) in requests().into_iter().enumerate() {
            let answer = world.door(0).send(request).await;
            assert_eq!(answer.status, status, "{round}, {number}: {}", answer.text());
        }
        git.commit("a", format!("{round}")).await;
        git.run(&["push", "origin", "HEAD:fix-x"]).await.ok();
    }
    until("no place is taken", async || places(&world).await == Some(0.0)).await;
    world.finish().await;
}

/// How many requests control takes to be under way.
async fn places(world: &World) -> Option<f64> {
    let text = world.control_admin("/metrics").await.text();
    text.lines().find_map(|line| line.strip_prefix("gitdoor_control_requests "))?.parse().ok()
}

/// Waits until a time has passed.
#[expect(clippy::disallowed_methods, reason = "a test is an edge: it reads the clock that the parts read")]
async fn until_past(time: SystemTime) {
    while let Ok(left) = time.duration_since(SystemTime::now()) {
        sleep(left + Duration::from_millis(1)).await;
    }
}

/// Reads to the end of a chunked answer.
async fn read_whole(connection: &mut Connection) {
    while !connection.read_so_far().ends_with(b"0\r\n\r\n") {
        connection.more().await.unwrap();
    }
}

#[tokio::test]
async fn what_a_run_has_under_way_goes_on_when_it_is_adopted_and_is_cut_at_its_time_when_not() {
    let mut world = World::builder(PROGRAM).dataplane_flag("--log-format=json").start().await;
    world.github.seed("acme/large").big_file("big", LARGE).create();
    world.github.create("acme/api");
    let adopted = world.registration(Identity::Write).repository("acme/api").send().await.unwrap();
    let left = world.register(Identity::Read).await;
    let cargo = Cargo::load(&world, &adopted, 0, "acme/api", 512 * 1024).await;
    let fetched = world.github.requests_for(Route::UploadPack).len();
    let seconds = soon(&mut world, &[&adopted, &left], 8).await;
    let end = from_now(seconds);
    end_at(&mut world, &[&adopted, &left], end).await;

    // The second answer is the pack's, and comes after that.
    let late = Duration::from_secs(seconds + 2);
    world.github.when(Route::UploadPack).repository("acme/api").skip(1).after(late).then(Fault::None);
    let git = world.git(&adopted);
    let url = git.url("acme/api");
    let clone = tokio::spawn(async move { git.run(&["clone", &url, "late"]).await });
    let asked = async || world.github.requests_for(Route::UploadPack).len() == fetched + 2;
    until("the clone waits for its pack", asked).await;
    let mut stalled = begun(&world, &adopted, "acme/large").await;
    let cut = begun(&world, &left, "acme/large").await;
    let mut push = cargo.start(&world.door(0), &adopted, "refs/heads/fix-x").await.unwrap();
    push.send(192 * 1024).await;

    let adopt = AdoptRunRequest { run_id: adopted.id.clone(), ..Default::default() };
    world.runs().await.adopt_run(adopt).await.unwrap();
    until_past(end).await;
    until("the other run's time is over", async || {
        world.control_admin("/metrics").await.text().contains("verdict=\"run-expired\"")
    })
    .await;
    assert!(!timeout(SOON, cut.rest()).await.unwrap().ends_with(b"0\r\n\r\n"), "it was not cut");
    let event = world.event("run", &left.id).await;
    assert_eq!((&event["interruption"], &event["status"]), (&"expired".into(), &200.into()), "{event}");
    timeout(SOON, read_whole(&mut stalled)).await.unwrap();
    assert!(stalled.read_so_far().len() > LARGE);
    timeout(SOON, clone).await.unwrap().unwrap().ok();
    push.send(usize::MAX).await;
    assert_eq!(pkt::report(&push.finish().await.body), ["unpack ok", "ok refs/heads/fix-x"]);
    world.finish().await;
}
