//! The memory of a stream does not depend on its length, nor on how slow either side of it is.

use std::time::Duration;

use gitdoor_proto::v1::Identity;
use gitdoor_tests::git::Git;
use gitdoor_tests::github::{BodyEnd, Canned, Fault, Route};
use gitdoor_tests::pkt;
use gitdoor_tests::raw;
use gitdoor_tests::world::{Run, World};

use crate::PROGRAM;
use crate::push::{Landed, random, stored};

/// A stream that must not fit into what it is allowed.
const LARGE: usize = 64 << 20;
/// What a data plane may grow by over what it uses when nothing happens.
const GROWTH: u64 = 16 << 20;
/// How long an upstream is silent that is called slow.
const SLOW: Duration = Duration::from_secs(3);

#[tokio::test]
async fn a_push_of_64_mib_costs_no_memory_however_slow_the_upstream_is() {
    let mut world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    let run = world.register(Identity::Write).await;
    let idle = idle(&mut world);
    let git = client(&world, &run).await.cloned("acme/api").await;
    for (branch, delay) in [("fast", Duration::ZERO), ("slow", SLOW)] {
        let id = git.commit("big", random(LARGE)).await;
        world.github.when(Route::ReceivePack).skip(1).after(delay).then(Fault::None);
        git.run(&["push", "origin", &format!("HEAD:{branch}")]).await.ok();
        let landed = Landed { world: &world, run: &run, git: &git, repository: "acme/api" };
        let row = landed.assert(&[(branch, &id)]).await;
        assert!(row.request_bytes > LARGE as u64);
        assert_small(&mut world, idle, branch);
    }
    world.finish().await;
}

#[tokio::test]
async fn a_clone_of_64_mib_costs_no_memory() {
    for builder in [World::builder(PROGRAM), World::builder(PROGRAM).http2()] {
        let mut world = builder.start().await;
        world.github.seed("acme/api").big_file("big", LARGE).create();
        let run = world.register(Identity::Read).await;
        let idle = idle(&mut world);
        let git = client(&world, &run).await.cloned("acme/api").await;
        let here = git.id_of("HEAD:big").await;
        assert_eq!(here, world.github.git("acme/api", &["rev-parse", "refs/heads/main:big"]).trim());
        assert_eq!(git.erasures(), 0);
        assert_small(&mut world, idle, "a clone");
        world.finish().await;
    }
}

#[tokio::test]
async fn a_refused_push_of_64_mib_costs_no_memory() {
    let mut world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    let run = world.register(Identity::Write).await;
    let idle = idle(&mut world);
    let git = client(&world, &run).await.cloned("acme/api").await;
    git.commit("big", random(LARGE)).await;
    git.run(&["push", "origin", "HEAD:main"]).await.code_is(1).says("refused: default branch");
    assert_small(&mut world, idle, "a refused push");
    world.finish().await;
}

#[tokio::test]
async fn a_client_that_reads_slowly_costs_no_memory() {
    let mut world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    let run = world.register(Identity::Read).await;
    let idle = idle(&mut world);
    let sent = random(LARGE);
    let media = "application/x-git-upload-pack-result";
    world.github.when(Route::UploadPack).answer(Canned::status(200).body(media, sent));
    let door = world.door(0);
    let body = [pkt::line(format!("want {}\n", "1".repeat(40))), b"00000009done\n".to_vec()].concat();
    let request = raw::Request::post("/acme/api.git/git-upload-pack").basic(&run.bearer).body(body);
    let mut connection = door.connect().await.unwrap();
    connection.write(&request.to_bytes(&door.host)).await.unwrap();
    // 1 MiB a second or less, for long enough that a fast upstream would have sent all.
    let mut paced = tokio::time::interval(Duration::from_millis(15));
    let mut read = 0;
    while read < 3 << 20 {
        paced.tick().await;
        read += connection.read().await.unwrap().len();
    }
    assert_small(&mut world, idle, "a slow reader");
    drop(connection);
    world.finish().await;
}

#[tokio::test]
async fn many_streams_at_once_cost_no_more_memory_each_than_their_buffers() {
    let mut world = World::start(PROGRAM).await;
    world.github.seed("acme/api").big_file("big", 8 << 20).create();
    let run = world.register(Identity::Read).await;
    let idle = idle(&mut world);
    let clients = (0..8).map(|_| async {
        let git = client(&world, &run).await.cloned("acme/api").await;
        assert_eq!(git.erasures(), 0);
    });
    futures_util::future::join_all(clients).await;
    let uploads = world.github.requests_for(Route::UploadPack);
    assert!(uploads.iter().all(|request| request.body_end == BodyEnd::Clean));
    assert_small(&mut world, idle, "eight clones at once");
    world.finish().await;
}

async fn client(world: &World, run: &Run) -> Git {
    stored(world.git(run)).await.limit(Duration::from_secs(90))
}

/// What the data plane uses before the first request.
fn idle(world: &mut World) -> u64 {
    let dataplane = world.dataplane(0);
    dataplane.forget_peak();
    dataplane.memory_now()
}

fn assert_small(world: &mut World, idle: u64, what: &str) {
    let growth = world.dataplane(0).peak_memory().saturating_sub(idle);
    assert!(growth < GROWTH, "{what}: {growth} bytes over the {idle} of an idle data plane");
}
