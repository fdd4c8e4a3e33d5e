//! Several controls on one PostgreSQL, several data planes: any of them will do, and none is missed for long.

mod ends;
mod lost;
mod rolling;

use std::time::Duration;

use gitdoor_proto::v1::{Identity, RunState};
use gitdoor_tests::raw::{Door, Request};
use gitdoor_tests::wait::until;
use gitdoor_tests::world::{Run, World};

use crate::PROGRAM;
use crate::bearers::until_served;

/// Numbers that follow from a seed, which a failed test has printed.
struct Dice(u64);

impl Dice {
    #[expect(clippy::print_stderr, clippy::disallowed_methods, reason = "what a failure is repeated with")]
    fn throw() -> Self {
        let given = std::env::var("GITDOOR_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = given.unwrap_or_else(|| getrandom::u64().unwrap()) | 1;
        eprintln!("GITDOOR_TEST_SEED={seed}");
        Self(seed)
    }

    fn number(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Below `end`.
    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.number() >> 16).unwrap_or(0) % end
    }

    /// Shorter than `longest`.
    fn within(&mut self, longest: Duration) -> Duration {
        longest.mul_f64(f64::from(u16::try_from(self.below(1 << 16)).unwrap()) / f64::from(1 << 16))
    }

    /// Dice of another seed that follows from this one's.
    fn another(&mut self) -> Self {
        Self(self.number())
    }
}

fn discovery() -> Request {
    Request::get("/acme/api.git/info/refs?service=git-upload-pack")
}

async fn bound(world: &World) -> Run {
    world.registration(Identity::Write).repository("acme/api").send().await.unwrap()
}

/// The status of a run's request at a data plane, and why it was refused.
async fn asked(world: &World, door: usize, run: &Run) -> (u16, Option<String>) {
    let answer = world.door(door).send(discovery().basic(&run.bearer)).await;
    (answer.status, answer.header("x-gitdoor-reason").map(str::to_owned))
}

/// Whether a control says that it has its store.
async fn serves(world: &World, control: usize) -> bool {
    let (_, address) = world.admin_addresses().remove(control);
    let request = Request::get("/metrics").header("Connection", "close");
    Door::plain(address.parse().unwrap()).send(request).await.text().contains("\ngitdoor_control_serving 1\n")
}

#[tokio::test]
async fn any_control_answers_for_any_run() {
    let mut world = World::builder(PROGRAM).controls(2).dataplanes(2).start().await;
    world.github.create("acme/api");
    let run = bound(&world).await;
    let git = world.git_at(1, &run.bearer).cloned("acme/api").await;
    git.commit("a", "a").await;
    git.run(&["push", "origin", "HEAD:a"]).await.ok();
    for gone in [0, 1] {
        world.control_at(gone).stop(Duration::from_secs(15)).await;
        for door in [0, 1] {
            until_served(&world, door).await;
            assert_eq!(asked(&world, door, &run).await.0, 200);
        }
        git.run(&["push", "origin", &format!("HEAD:without-{gone}")]).await.ok();
        assert_eq!(world.show(&run).await.pushes.len(), gone + 2);
        world.control_at(gone).start_again().await;
    }
    world.revoke_at(1, &run).await;
    for door in [0, 1] {
        assert_eq!(asked(&world, door, &run).await, (403, Some("run-revoked".to_owned())));
    }
    world.finish().await;
}

#[tokio::test]
async fn a_control_that_is_cut_off_without_a_word_costs_no_request() {
    let world = World::builder(PROGRAM).controls(2).start().await;
    world.github.create("acme/api");
    let run = bound(&world).await;
    let git = world.git(&run).cloned("acme/api").await;
    git.commit("a", "a").await;
    for cut in [0, 1] {
        world.links(cut).gate.cut();
        for number in 0..10 {
            assert_eq!(asked(&world, 0, &run).await.0, 200);
            git.run(&["push", "origin", &format!("HEAD:{cut}-{number}")]).await.ok();
        }
        world.links(cut).gate.mend();
        until_served(&world, 0).await;
    }
    for cut in [0, 1] {
        world.links(cut).gate.break_connections();
        assert_eq!(asked(&world, 0, &run).await.0, 200);
    }
    world.finish().await;
}

#[tokio::test]
async fn a_control_that_has_lost_its_store_costs_no_request() {
    let world = World::builder(PROGRAM).controls(2).start().await;
    world.github.create("acme/api");
    let run = bound(&world).await;
    let git = world.git(&run).cloned("acme/api").await;
    git.commit("a", "a").await;
    for lost in [0, 1] {
        world.links(lost).store.cut();
        for number in 0..10 {
            assert_eq!(asked(&world, 0, &run).await.0, 200, "{lost} {number}");
        }
        git.run(&["push", "origin", &format!("HEAD:{lost}")]).await.ok();
        until("it says that it has lost its store", async || !serves(&world, lost).await).await;
        world.links(lost).store.mend();
        until("it serves again", async || serves(&world, lost).await).await;
    }
    world.finish().await;
}

#[tokio::test]
async fn without_postgresql_nothing_is_let_through_and_all_comes_back_by_itself() {
    let mut world = World::builder(PROGRAM).controls(2).dataplanes(2).start().await;
    world.github.create("acme/api");
    let run = bound(&world).await;
    let git = world.git(&run).cloned("acme/api").await;
    git.commit("a", "a").await;
    git.run(&["push", "origin", "HEAD:before"]).await.ok();
    world.postgres().kill();
    let before = world.github.requests().len();
    for door in [0, 1] {
        let answer = world.door(door).send(discovery().basic(&run.bearer)).await;
        assert_eq!(answer.status, 503, "{}", answer.text());
        assert!(answer.header("retry-after").is_some() && answer.header("www-authenticate").is_none());
        assert!(answer.text().starts_with("gitdoor: "), "{}", answer.text());
    }
    let push = git.run(&["push", "origin", "HEAD:without"]).await.code_is(128);
    push.says("remote: gitdoor: ").says("503").does_not_say("Authentication failed");
    assert_eq!(world.github.requests().len(), before, "something went up");
    world.postgres().restart();
    for door in [0, 1] {
        until("the door is open again", async || asked(&world, door, &run).await.0 == 200).await;
    }
    git.run(&["push", "origin", "HEAD:after"]).await.ok();
    let shown = world.show(&run).await;
    assert_eq!((shown.run.unwrap().state(), shown.pushes.len()), (RunState::Live, 2));
    assert!(world.github.ref_of("acme/api", "refs/heads/without").is_none());
    world.finish().await;
}
