//! Every process is stopped and started again, one after another, while real clients clone and push.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use gitdoor_tests::chaos::Balancer;
use gitdoor_tests::git::Git;
use gitdoor_tests::wait::until;
use gitdoor_tests::world::World;
use tokio_util::sync::CancellationToken;

use super::bound;
use crate::PROGRAM;

/// Longer than a process takes to drain here.
const STOP: Duration = Duration::from_secs(40);

/// Clones and pushes until it is told to stop, and counts its rounds. Every command must succeed.
async fn work(git: Git, number: usize, rounds: Arc<AtomicUsize>, stop: CancellationToken) {
    for round in 0.. {
        let clone = git.cloned("acme/api").await;
        clone.commit("file", format!("{number} {round}")).await;
        clone.run(&["push", "origin", &format!("HEAD:w{number}-{round}")]).await.ok();
        clone.run(&["fetch", "origin"]).await.ok();
        tokio::fs::remove_dir_all(clone.folder()).await.unwrap();
        rounds.fetch_add(1, Ordering::SeqCst);
        if stop.is_cancelled() {
            return;
        }
    }
}

/// Waits until each of the workers has ended a round more.
async fn load(rounds: &[Arc<AtomicUsize>]) {
    let count = || rounds.iter().map(|rounds| rounds.load(Ordering::SeqCst)).collect::<Vec<_>>();
    let before = count();
    until("there is load", async || count().iter().zip(&before).all(|(now, before)| now > before)).await;
}

#[tokio::test]
async fn a_rolling_restart_fails_no_request() {
    let balancer = Balancer::start().await;
    let hosts = format!("--public-host=localhost,localhost:{},git.door.test", balancer.port());
    let mut world = World::builder(PROGRAM).controls(2).dataplanes(2).dataplane_flag(&hosts).start().await;
    world.github.create("acme/api");
    balancer.lead_to(vec![world.address(0), world.address(1)]);
    let url = format!("https://localhost:{}", balancer.port());
    let stop = CancellationToken::new();
    let (mut workers, mut rounds) = (Vec::new(), Vec::new());
    for number in 0..2 {
        let run = bound(&world).await;
        rounds.push(Arc::<AtomicUsize>::default());
        let git = world.git_by(&url, &run.bearer);
        workers.push(tokio::spawn(work(git, number, Arc::clone(&rounds[number]), stop.clone())));
    }
    for number in [0, 1] {
        load(&rounds).await;
        world.control_at(number).stop(STOP).await;
        world.control_at(number).start_again().await;
        load(&rounds).await;
        world.dataplane(number).stop(STOP).await;
        world.dataplane(number).start_again().await;
        // As a balancer does: the next one goes only once this one is ready.
        until("it is ready", async || world.dataplane_admin(number, "/readyz").await.status == 200).await;
    }
    stop.cancel();
    for worker in workers {
        worker.await.unwrap();
    }
    let rounds: usize = rounds.iter().map(|rounds| rounds.load(Ordering::SeqCst)).sum();
    // A branch for each round, and the default one.
    assert_eq!(world.github.refs("acme/api").len(), rounds + 1);
    world.finish().await;
}
