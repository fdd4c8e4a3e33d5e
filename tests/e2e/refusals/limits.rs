//! Refused pushes that are large: their reason arrives when the body does, and a body without end is cut.

use gitdoor_proto::v1::{Identity, PushOutcome};
use gitdoor_tests::git::{self, Git};
use gitdoor_tests::github::{BodyEnd, Request};
use gitdoor_tests::world::{Run, World};

use super::came;
use crate::PROGRAM;

const MIB: usize = 1 << 20;

/// A clone of `acme/api` whose next push is this large.
async fn clone(world: &World, run: &Run, program: &git::Installed, bytes: usize) -> Git {
    let git = world.git(run).program(program).cloned("acme/api").await;
    git.run(&["config", "core.compression", "0"]).await.ok();
    let mut random = vec![0; bytes];
    getrandom::fill(&mut random).unwrap();
    git.commit("big", random).await;
    git
}

#[tokio::test]
async fn a_large_refused_push_prints_its_reasons_as_a_small_one_does() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    for installed in git::all() {
        for bytes in [2 * MIB, 30 * MIB] {
            let run = world.registration(Identity::Write).repository("acme/api").send().await.unwrap();
            let git = clone(&world, &run, &installed, bytes).await;
            let refused = git.run(&["push", "origin", "HEAD:a", "HEAD:main"]).await.code_is(1);
            let refused = refused.says("HEAD -> a (refused: another ref of this push was refused)");
            refused
                .says("HEAD -> main (refused: default branch)")
                .does_not_say("RPC failed")
                .says("remote: gitdoor:");
            assert_eq!(git.erasures(), 0);
        }
    }
    // Larger than git's buffer, so git asked first whether it may push at all.
    assert!(!world.github.pushes().is_empty());
    assert!(world.github.pushes_with_commands().is_empty());
    world.finish().await;
}

#[tokio::test]
async fn a_push_over_the_limit_is_cut_at_the_upstream_and_git_is_told_in_a_report() {
    let world = World::builder(PROGRAM).dataplane_flag("--max-push-bytes=1048576").start().await;
    world.github.create("acme/api");
    for installed in git::all() {
        let run = world.register(Identity::Write).await;
        let git = clone(&world, &run, &installed, 8 * MIB).await;
        let refused = git.run(&["push", "origin", "HEAD:fix-x", "HEAD:fix-y"]).await.code_is(1);
        for branch in ["fix-x", "fix-y"] {
            let line =
                format!("! [remote rejected] HEAD -> {branch} (refused: the push is larger than 1048576 bytes");
            assert!(refused.text().contains(&line), "{refused}");
        }
        refused.does_not_say("RPC failed");
        let went_up = || world.github.pushes_with_commands();
        assert!(came(|| went_up().iter().all(|push| push.body_end != BodyEnd::Open)).await);
        // One whose connection was reset before its head was read is not even seen there.
        let cut = |push: &Request| push.body_end == BodyEnd::Cut && push.body_len <= MIB as u64;
        assert!(went_up().iter().all(cut));
        let pushes = world.show(&run).await.pushes;
        assert_eq!(pushes[0].outcome(), PushOutcome::Interrupted);
        assert_eq!(git.erasures(), 0);
    }
    assert!(world.github.refs("acme/api").keys().all(|name| !name.contains("fix")));
    world.finish().await;
}

#[tokio::test]
async fn a_refused_push_longer_than_the_drain_ends_in_a_bare_413() {
    let flags = ["--max-drain-bytes=1048576", "--max-push-bytes=1048576"];
    for (flags, branch) in [(&flags[..1], "main"), (&flags[..], "fix-x")] {
        let builder = flags.iter().fold(World::builder(PROGRAM), |builder, flag| builder.dataplane_flag(flag));
        let world = builder.start().await;
        world.github.create("acme/api");
        for installed in git::all() {
            let run = world.register(Identity::Write).await;
            let git = clone(&world, &run, &installed, 8 * MIB).await;
            let refused = git.run(&["push", "origin", &format!("HEAD:{branch}")]).await.code_is(1);
            refused.says("RPC failed; HTTP 413");
            assert_eq!(git.erasures(), 0);
        }
        let whole = world.github.pushes_with_commands().into_iter().filter(|push| push.body_end == BodyEnd::Clean);
        assert_eq!(whole.count(), 0);
        assert!(world.github.ref_of("acme/api", "refs/heads/fix-x").is_none());
        world.finish().await;
    }
}
