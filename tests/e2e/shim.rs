//! Data planes behind each of the shims in `deploy/`: what streams without one streams behind one, every word arrives,
//! and a data plane that is gone costs no request that can be asked again.

mod balance;
mod streams;
mod words;
mod worker;

use gitdoor_proto::v1::Identity;
use gitdoor_tests::port::Port;
use gitdoor_tests::shim::{Kind, Shim};
use gitdoor_tests::world::{Run, World};

use crate::PROGRAM;

/// Two data planes, a shim in front, and a run bound to `acme/api`.
async fn behind(kind: Kind) -> (World, Shim, Run) {
    let port = Port::take();
    let mut world = port.world(PROGRAM, kind).start().await;
    let shim = Shim::start(kind, port, &mut world).await;
    let run = write_run(&world).await;
    (world, shim, run)
}

async fn write_run(world: &World) -> Run {
    world.github.create("acme/api");
    world.registration(Identity::Write).repository("acme/api").send().await.unwrap()
}
