//! A data plane that is gone, or goes, costs no request; when all are gone, that is said.

use gitdoor_tests::behind_every_shim;
use gitdoor_tests::git::Git;
use gitdoor_tests::shim::Kind;
use gitdoor_tests::wait::until;
use gitdoor_tests::world::World;
use tokio_util::sync::CancellationToken;

use super::behind;

behind_every_shim!(an_idle_data_plane_that_is_killed_is_left, a_rolling_restart_fails_no_request);

/// Longer than a data plane takes to drain here.
const STOP: std::time::Duration = std::time::Duration::from_secs(40);

/// Asks for the refs with a `GET` and nothing else; it must work.
async fn list(git: &Git) {
    let listed = git.run(&["-c", "protocol.version=0", "ls-remote", &git.url("acme/api")]).await.ok();
    listed.says("refs/heads/main");
}

async fn an_idle_data_plane_that_is_killed_is_left(kind: Kind) {
    for number in [0, 1] {
        let (mut world, shim, run) = behind(kind).await;
        let git = world.git_by(&shim.url(), &run.bearer);
        list(&git).await;
        world.dataplane(number).kill().await;
        for _ in 0..8 {
            list(&git).await;
        }
        world.finish().await;
    }
}

async fn a_rolling_restart_fails_no_request(kind: Kind) {
    let (mut world, shim, run) = behind(kind).await;
    let stop = CancellationToken::new();
    let mut workers = Vec::new();
    for _ in 0..2 {
        let (git, stop) = (world.git_by(&shim.url(), &run.bearer), stop.clone());
        workers.push(tokio::spawn(async move {
            let mut rounds = 0;
            while !stop.is_cancelled() {
                list(&git).await;
                rounds += 1;
            }
            rounds
        }));
    }
    for number in [0, 1] {
        load(&world, "there is load").await;
        world.dataplane(number).stop(STOP).await;
        load(&world, "the other one has it").await;
        world.dataplane(number).start_again().await;
        until("it is ready", async || world.dataplane_admin(number, "/readyz").await.status == 200).await;
        // As who restarts them does: until the shim has seen that, too.
        let before = world.metric(number, REQUESTS).await;
        until("it has its share", async || world.metric(number, REQUESTS).await > before).await;
    }
    stop.cancel();
    for worker in workers {
        assert!(worker.await.unwrap() > 1);
    }
    world.finish().await;
}

/// Waits until the upstream has been asked some more.
async fn load(world: &World, what: &str) {
    let before = world.github.requests().len();
    until(what, async || world.github.requests().len() > before + 10).await;
}

/// What a data plane has answered.
const REQUESTS: &str = "gitdoor_dataplane_requests_total";
