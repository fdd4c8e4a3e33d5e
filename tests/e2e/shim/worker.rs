//! What the Worker alone promises: a ceiling for bodies, and words where git shows some.

use gitdoor_proto::v1::PushOutcome;
use gitdoor_tests::port::Port;
use gitdoor_tests::raw::Request;
use gitdoor_tests::shim::{Kind, Shim};
use gitdoor_tests::wait::until;
use gitdoor_tests::world::World;

use super::streams::push_and_clone;
use super::{behind, write_run};
use crate::PROGRAM;
use crate::push::random;

/// A ceiling that a test can be over quickly.
const CEILING: usize = 3_000_000;

async fn under_a_low_ceiling() -> (World, Shim) {
    let port = Port::take();
    let mut world = port.world(PROGRAM, Kind::Worker).start().await;
    let shim = Shim::with_ceiling(Kind::Worker, port, &mut world, CEILING as u64).await;
    (world, shim)
}

#[tokio::test]
async fn a_push_and_a_clone_of_100_mb_pass() {
    let (world, shim, run) = behind(Kind::Worker).await;
    let git = world.git_by(&shim.url(), &run.bearer).limit(std::time::Duration::from_secs(100));
    push_and_clone(&world, &git, 100_000_000).await;
    world.finish().await;
}

#[tokio::test]
async fn a_body_that_says_it_is_over_the_ceiling_is_413_before_it_is_asked_for() {
    let (world, shim) = under_a_low_ceiling().await;
    for (target, kind) in [("/acme/api.git/git-receive-pack", "text/plain"), ("/api/graphql", "application/json")] {
        let head = Request::post(target).header("Content-Length", &(CEILING + 1).to_string());
        let mut connection = shim.door().connect().await.unwrap();
        connection.write(&head.to_bytes(&shim.door().host)).await.unwrap();
        let answer = connection.response().await.unwrap();
        assert_eq!((answer.status, answer.header("x-gitdoor-reason")), (413, Some("shim-body-limit")));
        assert!(answer.header("content-type").unwrap().starts_with(kind), "{answer:?}");
        assert!(answer.text().contains("gitdoor: a request through this address has at most 3000000 bytes"));
    }
    assert_eq!(world.events().len(), 0, "a data plane was asked");
    world.finish().await;
}

#[tokio::test]
async fn a_push_of_real_git_over_the_ceiling_is_413_and_moves_no_ref() {
    let (world, shim) = under_a_low_ceiling().await;
    let run = write_run(&world).await;
    let git = world.git_by(&shim.url(), &run.bearer).cloned("acme/api").await;
    git.commit("big", random(2 * CEILING)).await;
    for setting in ["http.postBuffer=1m", "http.postBuffer=100m"] {
        let push = git.run(&["-c", setting, "push", "origin", "HEAD:fix-x"]).await.code_is(1);
        // The runtime hangs up on who still sends: curl may see that before it has read the answer.
        let told = ["HTTP 413 curl 22 The requested URL returned error: 413", "curl 55 Send failure"];
        let told = told.map(|words| format!("error: RPC failed; {words}"));
        assert!(told.iter().any(|words| push.text().contains(words)), "{push}");
    }
    until("no push is open", async || {
        let shown = world.show(&run).await;
        shown.pushes.iter().all(|push| push.outcome() == PushOutcome::Interrupted)
    })
    .await;
    assert_eq!(world.github.ref_of("acme/api", "refs/heads/fix-x"), None);
    // Less than that passes as before.
    git.run(&["reset", "--quiet", "--hard", "HEAD~1"]).await.ok();
    git.commit("small", random(CEILING / 2)).await;
    git.run(&["push", "origin", "HEAD:fix-x"]).await.ok();
    world.finish().await;
}
