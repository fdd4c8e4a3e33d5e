//! The end of a run while its streams are under way: once `RevokeRun` has returned, no push of it can still complete.

use std::io::{self, Write as _};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use gitdoor_proto::v1::{Identity, PushOutcome, RevokeRunRequest};
use gitdoor_tests::git::Git;
use gitdoor_tests::github::{BodyEnd, Fault, Route};
use gitdoor_tests::pkt;
use gitdoor_tests::raw::{Connection, Door, Request, Response, chunk};
use gitdoor_tests::wait::until;
use gitdoor_tests::world::{Run, World};
use tokio::time::{Instant, sleep, timeout};

use crate::PROGRAM;
use crate::bearers::{end_at, from_now, soon};
use crate::restart::{outcome, until_pushed};

/// Longer than anything here may take, and much shorter than any time limit of the door's.
const SOON: Duration = Duration::from_secs(20);

/// A push by hand whose pack is sent piece by piece.
pub(crate) struct Trickle {
    connection: Connection,
    pack: Arc<Vec<u8>>,
    sent: usize,
}

/// A commit that any number of pushes may bring, each to a branch of its own.
pub(crate) struct Cargo {
    repository: String,
    id: String,
    pub(crate) pack: Arc<Vec<u8>>,
}

impl Cargo {
    /// A new commit upon a repository's, with this much noise.
    pub(crate) async fn load(world: &World, run: &Run, door: usize, repository: &str, bytes: usize) -> Self {
        let git = world.git_at(door, &run.bearer).cloned(repository).await;
        let mut noise = vec![0_u8; bytes];
        getrandom::fill(&mut noise).unwrap();
        let id = git.commit("noise", noise).await;
        Self { repository: repository.to_owned(), id, pack: Arc::new(pack_of(&git)) }
    }

    /// Sends the commands, which are to make it `reference`, and nothing of the pack.
    pub(crate) async fn start(&self, door: &Door, run: &Run, reference: &str) -> io::Result<Trickle> {
        let section = pkt::commands(&[(pkt::ZERO, &self.id, reference)], pkt::GIT_CAPABILITIES);
        let request = Request::push(&self.repository, Vec::new()).basic(&run.bearer);
        let head = String::from_utf8(request.to_bytes(&door.host)).unwrap();
        let head = head.replace("Content-Length: 0", "Transfer-Encoding: chunked");
        let mut connection = door.connect().await?;
        connection.write(head.as_bytes()).await?;
        connection.write(&chunk(&section)).await?;
        Ok(Trickle { connection, pack: Arc::clone(&self.pack), sent: 0 })
    }
}

impl Trickle {
    /// Sends the commands and a first piece of the pack of a new commit, which is to become `reference`.
    pub(crate) async fn start(world: &World, run: &Run, door: usize, reference: &str) -> Self {
        let cargo = Cargo::load(world, run, door, "acme/api", 512 * 1024).await;
        let mut trickle = cargo.start(&world.door(door), run, reference).await.unwrap();
        trickle.send(192 * 1024).await;
        trickle
    }

    /// Sends so many bytes more of the pack, as far as it goes. A door that reads no more is no failure.
    pub(crate) async fn send(&mut self, bytes: usize) {
        let end = self.sent.saturating_add(bytes).min(self.pack.len());
        let piece = chunk(&self.pack[self.sent..end]);
        if self.sent < end {
            let _ = timeout(SOON, self.connection.write(&piece)).await.unwrap();
        }
        self.sent = end;
    }

    /// Sends what is left of the pack.
    async fn send_rest(&mut self) {
        self.send(self.pack.len()).await;
    }

    /// Appends bytes that are no part of the pack.
    pub(crate) async fn append(&mut self, bytes: &[u8]) {
        let _ = timeout(SOON, self.connection.write(&chunk(bytes))).await.unwrap();
    }

    /// Ends the body.
    pub(crate) async fn end(&mut self) -> io::Result<Response> {
        self.connection.write(b"0\r\n\r\n").await?;
        self.connection.response().await
    }

    /// Ends the body and waits for the answer.
    pub(crate) async fn finish(&mut self) -> Response {
        let _ = timeout(SOON, self.connection.write(b"0\r\n\r\n")).await.unwrap();
        timeout(SOON, self.connection.response()).await.unwrap().unwrap()
    }

    /// Sends a byte now and then until the upstream has seen the push cut, then ends the body; the answer to that.
    pub(crate) async fn until_cut(&mut self, world: &World) -> Response {
        for _ in 0..200 {
            if world.github.pushes()[0].body_end == BodyEnd::Cut {
                break;
            }
            self.send(1).await;
            sleep(Duration::from_millis(100)).await;
        }
        self.finish().await
    }
}

/// The objects of the newest commit as a pack.
fn pack_of(git: &Git) -> Vec<u8> {
    let mut child = Command::new("git")
        .args(["pack-objects", "--revs", "--stdout", "-q"])
        .current_dir(git.folder())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"HEAD\n^origin/main\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    output.stdout
}

async fn bound(world: &World) -> Run {
    world.github.create("acme/api");
    world.registration(Identity::Write).repository("acme/api").send().await.unwrap()
}

/// Waits until the upstream has had so many bytes of the only push.
async fn until_came(world: &World, bytes: u64) {
    let came = async || world.github.pushes().first().is_some_and(|push| push.body_len >= bytes);
    until("the upstream has had its bytes", came).await;
}

/// Waits until the upstream has seen the end of its newest push, and asserts that it was none.
async fn until_cut(world: &World) {
    let end = || world.github.pushes().last().unwrap().body_end;
    until("the push was cut", async || world.github.running_backends() == 0 && end() != BodyEnd::Open).await;
    assert_eq!(end(), BodyEnd::Cut);
}

/// Revokes; it must not take longer than leases and news do.
async fn revoke(world: &World, run: &Run) {
    let start = Instant::now();
    world.revoke(run).await;
    assert!(start.elapsed() < SOON, "RevokeRun took {:?}", start.elapsed());
}

/// Asserts that the only push was cut and moved nothing, now and when everything has come to rest.
async fn assert_cut(world: &World, run: &Run) {
    until_cut(world).await;
    assert_eq!(world.github.pushes().len(), 1);
    assert_eq!(world.github.refs("acme/api").len(), 1, "a ref moved");
    assert_eq!(outcome(world, run).await, PushOutcome::Interrupted);
}

#[tokio::test]
async fn a_push_under_way_is_cut_by_the_end_of_its_run() {
    let world = World::start(PROGRAM).await;
    let run = bound(&world).await;
    let mut push = Trickle::start(&world, &run, 0, "refs/heads/fix-x").await;
    until_came(&world, 60_000).await;
    revoke(&world, &run).await;
    push.send_rest().await;
    let answer = push.finish().await;
    assert_eq!(answer.status, 200);
    assert_eq!(pkt::report(&answer.body)[1], "ng refs/heads/fix-x refused: run revoked");
    assert_cut(&world, &run).await;
    for request in
        [Request::get("/acme/api.git/info/refs?service=git-upload-pack"), Request::push("acme/api", "0000")]
    {
        let answer = world.door(0).send(request.basic(&run.bearer)).await;
        assert_eq!((answer.status, answer.header("x-gitdoor-reason")), (403, Some("run-revoked")));
    }
    let request = RevokeRunRequest { run_id: run.id.clone() };
    let again = world.runs().await.revoke_run(request).await.unwrap().into_inner().run.unwrap();
    assert_eq!(again.revoked_at, world.show(&run).await.run.unwrap().revoked_at, "it ends once");
    world.finish().await;
}

#[tokio::test]
async fn a_push_that_lacks_only_its_last_byte_does_not_complete() {
    let world = World::start(PROGRAM).await;
    let run = bound(&world).await;
    let mut push = Trickle::start(&world, &run, 0, "refs/heads/fix-x").await;
    push.send(push.pack.len() - push.sent - 1).await;
    until_came(&world, push.pack.len() as u64 - 70_000).await;
    revoke(&world, &run).await;
    push.send_rest().await;
    let answer = push.finish().await;
    assert_eq!(pkt::report(&answer.body)[1], "ng refs/heads/fix-x refused: run revoked");
    assert_cut(&world, &run).await;
    world.finish().await;
}

#[tokio::test]
async fn a_whole_pack_with_bytes_appended_does_not_complete_before_its_body_ends() {
    let world = World::start(PROGRAM).await;
    let run = bound(&world).await;
    let mut push = Trickle::start(&world, &run, 0, "refs/heads/fix-x").await;
    push.send_rest().await;
    push.append(&b"junk".repeat(5000)).await;
    until_pushed(&world, 1).await;
    push.append(b"and more").await;
    // Time for a forge that takes the pack for the whole push to act on it.
    sleep(Duration::from_secs(1)).await;
    assert_eq!(world.github.refs("acme/api").len(), 1, "a ref moved before the push had ended");
    revoke(&world, &run).await;
    push.append(b"and more").await;
    let answer = push.finish().await;
    assert!(answer.text().contains("refused: "), "{}", answer.text());
    assert_cut(&world, &run).await;
    world.finish().await;
}

#[tokio::test]
async fn a_slow_push_that_nobody_ends_lands() {
    let world = World::start(PROGRAM).await;
    let run = bound(&world).await;
    let mut push = Trickle::start(&world, &run, 0, "refs/heads/fix-x").await;
    let start = Instant::now();
    // Longer than two leases.
    while start.elapsed() < Duration::from_secs(5) {
        push.send(2000).await;
        sleep(Duration::from_millis(100)).await;
    }
    push.send_rest().await;
    let answer = push.finish().await;
    assert_eq!(pkt::report(&answer.body), ["unpack ok", "ok refs/heads/fix-x"]);
    assert_eq!(outcome(&world, &run).await, PushOutcome::Done);
    assert!(world.github.ref_of("acme/api", "refs/heads/fix-x").is_some());
    world.finish().await;
}

#[tokio::test]
async fn git_is_told_that_its_run_was_revoked_in_the_middle_of_a_push() {
    let world = World::start(PROGRAM).await;
    let run = bound(&world).await;
    let git = world.git(&run).cloned("acme/api").await;
    let mut noise = vec![0_u8; 8 << 20];
    getrandom::fill(&mut noise).unwrap();
    git.commit("noise", noise).await;
    // The second is the push itself, after its probe; nobody reads it.
    world.github.when(Route::ReceivePack).skip(1).after(Duration::from_secs(5)).then(Fault::None);
    let push = tokio::spawn(async move { git.run(&["push", "origin", "HEAD:fix-x"]).await });
    until_pushed(&world, 2).await;
    revoke(&world, &run).await;
    let push = push.await.unwrap().code_is(1);
    push.says("! [remote rejected] HEAD -> fix-x (refused: run revoked)");
    assert_eq!(outcome(&world, &run).await, PushOutcome::Interrupted);
    assert_eq!(world.github.refs("acme/api").len(), 1);
    world.github.heal();
    until_cut(&world).await;
    assert_eq!(world.github.refs("acme/api").len(), 1);
    world.finish().await;
}

#[tokio::test]
async fn every_data_plane_cuts_the_pushes_of_a_revoked_run_and_no_other() {
    let world = World::builder(PROGRAM).dataplanes(2).start().await;
    let run = bound(&world).await;
    let other = world.registration(Identity::Write).repository("acme/api").send().await.unwrap();
    let mut first = Trickle::start(&world, &run, 0, "refs/heads/a").await;
    let mut second = Trickle::start(&world, &run, 1, "refs/heads/b").await;
    let mut spared = Trickle::start(&world, &other, 0, "refs/heads/c").await;
    until_pushed(&world, 3).await;
    revoke(&world, &run).await;
    for push in [&mut first, &mut second, &mut spared] {
        push.send_rest().await;
    }
    for (push, line) in [
        (&mut first, "ng refs/heads/a refused: run revoked"),
        (&mut second, "ng refs/heads/b refused: run revoked"),
        (&mut spared, "ok refs/heads/c"),
    ] {
        assert_eq!(pkt::report(&push.finish().await.body)[1], line);
    }
    let refs: Vec<_> = world.github.refs("acme/api").into_keys().collect();
    assert_eq!(refs, ["refs/heads/c", "refs/heads/main"]);
    world.finish().await;
}

#[tokio::test]
async fn the_end_of_a_runs_time_cuts_its_push() {
    let mut world = World::start(PROGRAM).await;
    let run = bound(&world).await;
    let cargo = Cargo::load(&world, &run, 0, "acme/api", 512 * 1024).await;
    let end = from_now(soon(&mut world, &[&run], 4).await);
    end_at(&mut world, &[&run], end).await;
    let mut push = cargo.start(&world.door(0), &run, "refs/heads/fix-x").await.unwrap();
    push.send(192 * 1024).await;
    until_came(&world, 60_000).await;
    until_cut(&world).await;
    push.send_rest().await;
    let answer = push.finish().await;
    assert_eq!(pkt::report(&answer.body)[1], "ng refs/heads/fix-x refused: run expired");
    assert_cut(&world, &run).await;
    world.finish().await;
}

#[tokio::test]
async fn a_fetch_under_way_is_cut_when_its_run_is_revoked() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    let run = world.register(Identity::Read).await;
    let git = world.git(&run);
    world.github.when(Route::UploadPack).skip(1).always().then(Fault::Stall(100));
    let clone = tokio::spawn(async move { git.run(&["clone", &git.url("acme/api")]).await });
    until("the fetch is under way", async || world.github.requests_for(Route::UploadPack).len() == 2).await;
    revoke(&world, &run).await;
    let clone = timeout(SOON, clone).await.unwrap().unwrap();
    assert_eq!(clone.code, Some(128), "{clone}");
    let answer = Request::get("/acme/api.git/info/refs?service=git-upload-pack").basic(&run.bearer);
    assert_eq!(world.door(0).send(answer).await.status, 403);
    world.finish().await;
}

#[tokio::test]
async fn a_push_under_way_when_its_bearer_is_replaced_lands_or_says_why_not() {
    let world = World::start(PROGRAM).await;
    let run = bound(&world).await;
    let mut push = Trickle::start(&world, &run, 0, "refs/heads/fix-x").await;
    until_came(&world, 60_000).await;
    let rotated = world.rotate(&run).await;
    // Longer than a lease.
    sleep(Duration::from_secs(3)).await;
    push.send_rest().await;
    let answer = push.finish().await;
    let landed = world.github.ref_of("acme/api", "refs/heads/fix-x").is_some();
    let report = pkt::report(&answer.body);
    if landed {
        assert_eq!(report[1], "ok refs/heads/fix-x");
    } else {
        assert!(report[1].starts_with("ng refs/heads/fix-x refused: the run's bearer was replaced"), "{report:?}");
    }
    assert_eq!(outcome(&world, &run).await == PushOutcome::Done, landed);
    let git = world.git(&rotated).cloned("acme/api").await;
    git.commit("a", "a").await;
    git.run(&["push", "origin", "HEAD:after"]).await.ok();
    world.finish().await;
}
