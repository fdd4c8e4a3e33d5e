//! The door stands: stock git through both planes, and the words of a refusal on its screen.

use gitdoor_proto::v1::{Identity, PushOutcome};
use gitdoor_tests::git;
use gitdoor_tests::pkt;
use gitdoor_tests::raw::Request;
use gitdoor_tests::world::World;

use crate::PROGRAM;

#[tokio::test]
async fn every_git_clones_and_pushes_a_branch_of_its_own() {
    for installed in git::all() {
        let world = World::start(PROGRAM).await;
        world.github.create("acme/api");
        let run = world.register(Identity::Write).await;
        let git = world.git(&run).program(&installed).cloned("acme/api").await;
        let id = git.commit("fix.txt", "fix\n").await;
        git.run(&["push", "origin", "HEAD:fix-x"]).await.ok().says("[new branch]");
        assert_eq!(world.github.ref_of("acme/api", "refs/heads/fix-x"), Some(id));
        let shown = world.show(&run).await;
        assert_eq!(shown.pushes[0].outcome(), PushOutcome::Done);
        assert_eq!(shown.run.unwrap().binding.unwrap().repository, "acme/api");
        assert_eq!(git.erasures(), 0);
        world.finish().await;
    }
}

#[tokio::test]
async fn a_push_to_the_default_branch_is_refused_by_name_before_a_byte_is_forwarded() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    let run = world.register(Identity::Write).await;
    let git = world.git(&run).cloned("acme/api").await;
    git.commit("fix.txt", "fix\n").await;
    let push = git.run(&["push", "origin", "HEAD:main"]).await.code_is(1);
    push.says("! [remote rejected] HEAD -> main (refused: default branch");
    assert!(world.github.pushes().is_empty());
    world.finish().await;
}

#[tokio::test]
async fn a_bound_run_is_told_of_its_repository_when_it_pushes_elsewhere() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    world.github.create("acme/web");
    let run = world.registration(Identity::Write).repository("acme/api").send().await.unwrap();
    let git = world.git(&run).cloned("acme/web").await;
    git.commit("fix.txt", "fix\n").await;
    git.run(&["push", "origin", "HEAD:fix-x"]).await.code_is(128).says("acme/api");
    let section = pkt::commands(&[(pkt::ZERO, &"1".repeat(40), "refs/heads/x")], pkt::GIT_CAPABILITIES);
    let push = Request::push("acme/web", [section.as_slice(), pkt::EMPTY_PACK].concat()).basic(&run.bearer);
    let answer = world.door(0).send(push).await;
    assert_eq!(answer.status, 200);
    assert!(pkt::report(&answer.body)[1].starts_with("ng refs/heads/x refused: "), "{:?}", answer.text());
    assert!(world.github.pushes().is_empty());
    world.finish().await;
}

#[tokio::test]
async fn a_revoked_run_can_neither_fetch_nor_push() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    let run = world.register(Identity::Write).await;
    let git = world.git(&run).cloned("acme/api").await;
    git.commit("fix.txt", "fix\n").await;
    world.revoke(&run).await;
    git.run(&["push", "origin", "HEAD:fix-x"]).await.code_is(128).says("revoked");
    git.run(&["fetch"]).await.code_is(128).says("revoked");
    assert_eq!(git.erasures(), 0);
    world.finish().await;
}

#[tokio::test]
async fn a_binding_survives_a_kill_of_every_part() {
    let mut world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    let run = world.register(Identity::Write).await;
    let git = world.git(&run).cloned("acme/api").await;
    git.commit("fix.txt", "fix\n").await;
    git.run(&["push", "origin", "HEAD:fix-x"]).await.ok();
    world.dataplane(0).kill().await;
    world.control().kill().await;
    world.control().start_again().await;
    world.dataplane(0).start_again().await;
    assert_eq!(world.show(&run).await.run.unwrap().binding.unwrap().repository, "acme/api");
    git.run(&["push", "origin", "HEAD:fix-y"]).await.ok();
    world.finish().await;
}

#[tokio::test]
async fn every_data_plane_knows_every_run() {
    let world = World::builder(PROGRAM).dataplanes(2).start().await;
    world.github.create("acme/api");
    let run = world.register(Identity::Write).await;
    let git = world.git(&run).cloned("acme/api").await;
    git.commit("fix.txt", "fix\n").await;
    git.run(&["push", "origin", "HEAD:fix-x"]).await.ok();
    let other = world.git_at(1, &run.bearer);
    git.run(&["push", &other.url("acme/api"), "HEAD:fix-y"]).await.ok();
    assert_eq!(world.show(&run).await.pushes.len(), 2);
    world.finish().await;
}

#[tokio::test]
async fn git_works_over_http2_and_without_tls() {
    for builder in [World::builder(PROGRAM).http2(), World::builder(PROGRAM).plain()] {
        let world = builder.start().await;
        world.github.create("acme/api");
        let run = world.register(Identity::Write).await;
        let git = world.git(&run).cloned("acme/api").await;
        git.commit("big", vec![b'x'; 64 * 1024]).await;
        git.run(&["push", "origin", "HEAD:fix-x"]).await.ok();
        world.finish().await;
    }
}
