//! Revocation during pushes, on another control than the one that permitted them: once it has returned, no ref moves.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use gitdoor_proto::v1::{PushOutcome, RevokeRunRequest};
use gitdoor_tests::github::BodyEnd;
use gitdoor_tests::raw::Door;
use gitdoor_tests::wait::until;
use gitdoor_tests::world::{Run, World};
use tokio::time::{Instant, sleep, timeout};
use tonic::Code;

use super::{Dice, asked, bound};
use crate::PROGRAM;
use crate::revocation::{Cargo, Trickle};

/// What a client sends.
#[derive(Debug, Clone, Copy)]
enum Client {
    /// The pack, in pieces of any size, and the end.
    Honest,
    /// The pack, and then bytes that belong to none.
    Junk,
    /// The pack, its last bytes one at a time.
    Trickled,
}

const CLIENTS: [Client; 3] = [Client::Honest, Client::Junk, Client::Trickled];
/// A push that nobody ends has ended after this.
const LONG: Duration = Duration::from_secs(30);
/// A lease, the time of a question, and a slow machine.
const REVOKED_WITHIN: Duration = Duration::from_secs(8);
/// Pushes at a time.
const AT_ONCE: usize = 15;

/// Pushes until it is done or nobody listens any more.
async fn push(client: Client, cargo: Arc<Cargo>, door: Door, run: Run, reference: String, mut dice: Dice) {
    let pushed = async {
        let mut trickle = cargo.start(&door, &run, &reference).await?;
        match client {
            Client::Honest => honest(&mut trickle, cargo.pack.len(), &mut dice).await,
            Client::Junk => junk(&mut trickle, cargo.pack.len(), &mut dice).await,
            Client::Trickled => trickled(&mut trickle, cargo.pack.len(), &mut dice).await,
        }
        trickle.end().await
    };
    // A door that has cut a push may hang up on its client: that is no failure here.
    let _refused: Result<io::Result<_>, _> = timeout(LONG, pushed).await;
}

async fn honest(trickle: &mut Trickle, length: usize, dice: &mut Dice) {
    let mut sent = 0;
    while sent < length {
        let piece = 1 + dice.below(48 * 1024);
        trickle.send(piece).await;
        sent += piece;
        sleep(dice.within(Duration::from_millis(150))).await;
    }
}

async fn junk(trickle: &mut Trickle, length: usize, dice: &mut Dice) {
    trickle.send(length).await;
    for _ in 0..dice.below(60) {
        trickle.append(&b"junk".repeat(1 + dice.below(500))).await;
        sleep(dice.within(Duration::from_millis(80))).await;
    }
}

async fn trickled(trickle: &mut Trickle, length: usize, dice: &mut Dice) {
    let last = 1 + dice.below(30);
    trickle.send(length - last).await;
    for _ in 0..last {
        sleep(dice.within(Duration::from_millis(150))).await;
        trickle.send(1).await;
    }
}

/// A run, and what had become of its push when its revocation had returned.
struct Ended {
    run: Run,
    reference: String,
    at_return: Option<String>,
    /// The upstream had all of it: what is not in git's hands by then never is.
    had_gone_up: bool,
}

impl Ended {
    async fn now(world: &World, run: Run) -> Self {
        let reference = format!("refs/heads/{}", run.id);
        let at_return = world.github.ref_of("acme/api", &reference);
        // What is on the wire arrives.
        sleep(Duration::from_millis(300)).await;
        let had_gone_up = world.github.push_of(&reference).is_some_and(|push| push.body_end == BodyEnd::Clean);
        Self { run, reference, at_return, had_gone_up }
    }
}

/// Revokes a run at another control, until it says that it is done: one whose store did not answer in time is asked again.
async fn revoke(world: &World, run: &Run) {
    loop {
        let began = Instant::now();
        let request = RevokeRunRequest { run_id: run.id.clone() };
        let answer = world.runs_at(1).await.revoke_run(request).await;
        assert!(began.elapsed() < REVOKED_WITHIN, "RevokeRun took {:?}", began.elapsed());
        match answer {
            Err(status) if status.code() == Code::Unavailable => sleep(Duration::from_millis(100)).await,
            answer => return drop(answer.unwrap()),
        }
    }
}

/// Starts a push, revokes its run at another control at a random moment, and notes what then is.
async fn round(
    world: &World,
    cargo: Arc<Cargo>,
    client: Client,
    run: Run,
    longest: Duration,
    mut dice: Dice,
) -> Ended {
    let reference = format!("refs/heads/{}", run.id);
    let pushing = push(client, cargo, world.door(0), run.clone(), reference.clone(), dice.another());
    let revoking = async {
        sleep(dice.within(longest)).await;
        revoke(world, &run).await;
        Ended::now(world, run.clone()).await
    };
    tokio::join!(pushing, revoking).1
}

/// Asserts that nothing has moved since each revocation, and that the ledger says what became of each push.
async fn assert_ended(world: &World, ended: &[Ended]) {
    until("git has ended", async || world.github.running_backends() == 0).await;
    for Ended { run, reference, at_return, had_gone_up } in ended {
        let now = world.github.ref_of("acme/api", reference);
        assert!(now == *at_return || *had_gone_up, "{reference} moved after its revocation had returned");
        until("its pushes have an outcome", async || {
            world.show(run).await.pushes.iter().all(|push| push.outcome() != PushOutcome::Open)
        })
        .await;
        let pushes = world.show(run).await.pushes;
        let done = pushes.iter().any(|push| push.outcome() == PushOutcome::Done);
        // One that was cut when git had its whole pack, before the bytes that belong to none, may have moved its ref.
        let decided = pushes.iter().any(|push| push.outcome() != PushOutcome::Refused);
        assert!(decided || now.is_none(), "{reference} moved, and the ledger has {pushes:?}");
        assert!(now.is_some() || !done, "{reference} did not move, and the ledger has {pushes:?}");
    }
}

/// How many had moved their ref when they were revoked.
fn moved(ended: &[Ended]) -> usize {
    ended.iter().filter(|ended| ended.at_return.is_some()).count()
}

#[tokio::test]
async fn once_a_revocation_at_another_control_has_returned_no_ref_moves() {
    let world = World::builder(PROGRAM).controls(2).known_controls(1).start().await;
    world.github.create("acme/api");
    let mut dice = Dice::throw();
    let first = bound(&world).await;
    let cargo = Arc::new(Cargo::load(&world, &first, 0, "acme/api", 300 * 1024).await);
    let mut all = Vec::new();
    let mut longest = Duration::from_millis(1800);
    for _ in 0..12 {
        let mut rounds = Vec::new();
        for number in 0..AT_ONCE {
            let run = bound(&world).await;
            rounds.push(round(&world, Arc::clone(&cargo), CLIENTS[number % 3], run, longest, dice.another()));
        }
        let ended = futures_util::future::join_all(rounds).await;
        // Where pushes take longer, so do their revocations.
        longest *= if moved(&ended) == 0 { 2 } else { 1 };
        all.extend(ended);
    }
    assert_ended(&world, &all).await;
    let moved = moved(&all);
    assert!(moved > 0 && moved < all.len(), "{moved} of {} were over before their revocation", all.len());
    assert_eq!(asked(&world, 0, &all[0].run).await, (403, Some("run-revoked".to_owned())));
    world.finish().await;
}

#[tokio::test]
async fn a_data_plane_that_was_frozen_writes_nothing_for_a_run_that_was_revoked_meanwhile() {
    let mut world = World::builder(PROGRAM).controls(2).known_controls(1).start().await;
    world.github.create("acme/api");
    let mut dice = Dice::throw();
    let first = bound(&world).await;
    let cargo = Arc::new(Cargo::load(&world, &first, 0, "acme/api", 300 * 1024).await);
    let mut all = Vec::new();
    for _ in 0..4 {
        let mut runs = Vec::new();
        for _ in 0..5 {
            runs.push(bound(&world).await);
        }
        let pushes: Vec<_> = (runs.iter().zip(CLIENTS.iter().cycle()))
            .map(|(run, client)| {
                let reference = format!("refs/heads/{}", run.id);
                tokio::spawn(push(
                    *client,
                    Arc::clone(&cargo),
                    world.door(0),
                    run.clone(),
                    reference,
                    dice.another(),
                ))
            })
            .collect();
        // Between a renewal and a write, wherever that is.
        sleep(Duration::from_millis(200) + dice.within(Duration::from_millis(1500))).await;
        world.dataplane(0).signal("STOP");
        futures_util::future::join_all(runs.iter().map(|run| revoke(&world, run))).await;
        all.extend(futures_util::future::join_all(runs.into_iter().map(|run| Ended::now(&world, run))).await);
        world.dataplane(0).signal("CONT");
        futures_util::future::join_all(pushes).await;
    }
    assert_ended(&world, &all).await;
    world.finish().await;
}

#[tokio::test]
async fn a_push_whose_run_ends_after_its_discovery_is_refused_in_words() {
    let world = World::builder(PROGRAM).controls(2).known_controls(1).start().await;
    world.github.create("acme/api");
    let run = bound(&world).await;
    let cargo = Cargo::load(&world, &run, 0, "acme/api", 1024).await;
    let discovery = gitdoor_tests::raw::Request::get("/acme/api.git/info/refs?service=git-receive-pack");
    assert_eq!(world.door(0).send(discovery.basic(&run.bearer)).await.status, 200);
    world.revoke_at(1, &run).await;
    let mut trickle = cargo.start(&world.door(0), &run, "refs/heads/x").await.unwrap();
    trickle.send(usize::MAX).await;
    let answer = trickle.finish().await;
    assert_eq!((answer.status, answer.header("x-gitdoor-reason")), (403, Some("run-revoked")));
    assert!(world.github.pushes().is_empty() && world.github.ref_of("acme/api", "refs/heads/x").is_none());
    world.finish().await;
}

#[tokio::test]
async fn a_clone_is_cut_by_a_revocation_at_another_control() {
    let world = World::builder(PROGRAM).controls(2).known_controls(1).start().await;
    world.github.create("acme/api");
    let run = bound(&world).await;
    let git = world.git(&run);
    let stalled = gitdoor_tests::github::Fault::Stall(100);
    world.github.when(gitdoor_tests::github::Route::UploadPack).skip(1).always().then(stalled);
    let clone = tokio::spawn(async move { git.run(&["clone", &git.url("acme/api")]).await });
    let fetches = || world.github.requests_for(gitdoor_tests::github::Route::UploadPack).len();
    until("the fetch is under way", async || fetches() == 2).await;
    world.revoke_at(1, &run).await;
    let clone = timeout(Duration::from_secs(10), clone).await.expect("cut within ten seconds").unwrap();
    assert_eq!(clone.code, Some(128), "{clone}");
    world.finish().await;
}

#[tokio::test]
async fn a_revocation_does_not_hang_on_a_data_plane_that_was_killed() {
    let mut world = World::builder(PROGRAM).controls(2).known_controls(1).start().await;
    world.github.create("acme/api");
    let run = bound(&world).await;
    let _push = Trickle::start(&world, &run, 0, "refs/heads/x").await;
    crate::restart::until_pushed(&world, 1).await;
    world.dataplane(0).kill().await;
    revoke(&world, &run).await;
    assert_eq!(crate::restart::outcome(&world, &run).await, PushOutcome::Unknown);
    assert!(world.github.ref_of("acme/api", "refs/heads/x").is_none());
    world.dataplane(0).start_again().await;
    world.finish().await;
}
