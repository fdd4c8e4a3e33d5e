//! Parts that are killed, and come back: nothing is let through without control, nothing that was decided is lost.

use std::time::Duration;

use gitdoor_proto::v1::{Identity, PushOutcome};
use gitdoor_tests::github::{Fault, Route};
use gitdoor_tests::raw::Request;
use gitdoor_tests::world::{Run, World};
use tokio::time::{Instant, sleep};

use crate::PROGRAM;
use crate::bearers::until_served;

fn discovery() -> Request {
    Request::get("/acme/api.git/info/refs?service=git-upload-pack")
}

#[tokio::test]
async fn without_control_nothing_is_let_through_and_nothing_is_a_401() {
    let mut world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    let run = world.register(Identity::Write).await;
    let git = world.git(&run).cloned("acme/api").await;
    git.commit("a", "a").await;
    git.run(&["push", "origin", "HEAD:before"]).await.ok();
    world.control().kill().await;
    let before = world.github.requests().len();
    for _ in 0..3 {
        let answer = world.door(0).send(discovery().basic(&run.bearer)).await;
        assert_eq!((answer.status, answer.header("x-gitdoor-reason")), (503, Some("control-unreachable")));
        assert!(answer.header("retry-after").is_some() && answer.header("www-authenticate").is_none());
        assert!(answer.text().starts_with("gitdoor: ") && answer.text().contains("control"), "{}", answer.text());
    }
    let unknown =
        world.door(0).send(discovery().basic("sbr_nobody.AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8")).await;
    assert_eq!(unknown.status, 503, "nobody knows");
    for command in [&["fetch"][..], &["push", "origin", "HEAD:without"]] {
        let printed = git.run(command).await.code_is(128);
        printed.says("remote: gitdoor: ").says("503").does_not_say("Authentication failed");
    }
    assert_eq!(git.erasures(), 0);
    assert_eq!(world.github.requests().len(), before, "something went up");
    world.control().start_again().await;
    until_served(&world, 0).await;
    git.run(&["push", "origin", "HEAD:after"]).await.ok();
    assert!(world.github.ref_of("acme/api", "refs/heads/without").is_none());
    world.finish().await;
}

#[tokio::test]
async fn a_frozen_control_is_given_up_in_time_and_heard_again() {
    let mut world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    let run = world.register(Identity::Write).await;
    world.control().signal("STOP");
    let start = Instant::now();
    let answer = world.door(0).send(discovery().basic(&run.bearer)).await;
    assert_eq!((answer.status, answer.header("x-gitdoor-reason")), (503, Some("control-unreachable")));
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    world.control().signal("CONT");
    until_served(&world, 0).await;
    assert_eq!(world.door(0).send(discovery().basic(&run.bearer)).await.status, 200);
    world.finish().await;
}

#[tokio::test]
async fn a_bound_run_stays_bound_whatever_is_killed() {
    let mut world = World::builder(PROGRAM).dataplanes(2).start().await;
    world.github.create("acme/api");
    world.github.create("acme/web");
    let run = world.register(Identity::Write).await;
    let git = world.git(&run).cloned("acme/api").await;
    git.commit("a", "a").await;
    git.run(&["push", "origin", "HEAD:first"]).await.ok();
    let elsewhere = async |world: &World, git: &gitdoor_tests::git::Git| {
        let push = git.run(&["push", &git.url("acme/web"), "HEAD:x"]).await.code_is(128);
        push.says("this run is bound to acme/api");
        let binding = world.show(&run).await.run.unwrap().binding.unwrap();
        assert_eq!(binding.repository, "acme/api");
    };
    world.control().restart().await;
    until_served(&world, 0).await;
    elsewhere(&world, &git).await;
    world.control().kill().await;
    world.control().start_again().await;
    until_served(&world, 0).await;
    elsewhere(&world, &git).await;
    world.dataplane(0).kill().await;
    world.dataplane(0).start_again().await;
    until_served(&world, 0).await;
    elsewhere(&world, &git).await;
    git.run(&["push", "origin", "HEAD:second"]).await.ok();
    assert_eq!(world.show(&run).await.pushes.len(), 2, "the refusals were at discovery");
    world.finish().await;
}

/// A run with a clone of `acme/api` and a commit.
async fn ready_to_push(world: &World) -> (Run, gitdoor_tests::git::Git) {
    world.github.create("acme/api");
    let run = world.registration(Identity::Write).repository("acme/api").send().await.unwrap();
    let git = world.git(&run).cloned("acme/api").await;
    git.commit("a", "a").await;
    (run, git)
}

/// Waits until a push has reached the upstream.
pub(crate) async fn until_pushed(world: &World, pushes: usize) {
    for _ in 0..600 {
        if world.github.pushes().len() >= pushes {
            return;
        }
        sleep(Duration::from_millis(50)).await;
    }
    panic!("no push came");
}

/// The outcome of a run's only push, once it has one.
pub(crate) async fn outcome(world: &World, run: &Run) -> PushOutcome {
    for _ in 0..600 {
        let pushes = world.show(run).await.pushes;
        assert_eq!(pushes.len(), 1, "{pushes:?}");
        if pushes[0].outcome() != PushOutcome::Open {
            return pushes[0].outcome();
        }
        sleep(Duration::from_millis(50)).await;
    }
    panic!("the push stays open");
}

#[tokio::test]
async fn a_push_outlives_a_control_that_is_killed_and_started_again() {
    let mut world = World::start(PROGRAM).await;
    let (run, git) = ready_to_push(&world).await;
    world.github.when(Route::ReceivePack).after(Duration::from_secs(4)).then(Fault::None);
    let push = tokio::spawn(async move { git.run(&["push", "origin", "HEAD:fix-x"]).await });
    until_pushed(&world, 1).await;
    world.control().kill().await;
    world.control().start_again().await;
    let push = push.await.unwrap();
    let landed = world.github.ref_of("acme/api", "refs/heads/fix-x").is_some();
    match push.code {
        Some(0) => assert!(landed, "git was told of a push that is not there: {push}"),
        _ => drop(push.says("gitdoor: ")),
    }
    let outcome = outcome(&world, &run).await;
    assert_eq!(outcome == PushOutcome::Done, landed, "{outcome:?}");
    world.finish().await;
}

#[tokio::test]
async fn a_push_without_control_is_cut_in_words() {
    let mut world = World::builder(PROGRAM).dataplane_flag("--connect-timeout=2s").start().await;
    let (run, _git) = ready_to_push(&world).await;
    let mut push = super::revocation::Trickle::start(&world, &run, 0, "refs/heads/fix-x").await;
    until_pushed(&world, 1).await;
    world.control().kill().await;
    let answer = push.until_cut(&world).await;
    assert!(answer.text().contains("refused: ") || answer.status == 503, "{answer:?}");
    assert!(world.github.ref_of("acme/api", "refs/heads/fix-x").is_none());
    world.control().start_again().await;
    until_served(&world, 0).await;
    assert_ne!(world.show(&run).await.pushes[0].outcome(), PushOutcome::Done);
    world.finish().await;
}

#[tokio::test]
async fn the_push_of_a_data_plane_that_was_killed_ends_unknown() {
    let mut world = World::start(PROGRAM).await;
    let (run, git) = ready_to_push(&world).await;
    world.github.when(Route::ReceivePack).then(Fault::Silent);
    let push = tokio::spawn(async move { git.run(&["push", "origin", "HEAD:fix-x"]).await });
    until_pushed(&world, 1).await;
    world.dataplane(0).kill().await;
    let push = push.await.unwrap();
    assert_ne!(push.code, Some(0), "{push}");
    assert_eq!(outcome(&world, &run).await, PushOutcome::Unknown);
    world.github.heal();
    world.dataplane(0).start_again().await;
    until_served(&world, 0).await;
    world.finish().await;
}
