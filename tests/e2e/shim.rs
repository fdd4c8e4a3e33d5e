//! Data planes behind each of the shims in `deploy/`: what streams without one streams behind one, every word arrives,
//! and a data plane that is gone costs no request that can be asked again.

mod balance;
mod streams;
mod words;
mod worker;

use std::fs;
use std::path::Path;
use std::process::Command;

use gitdoor_proto::v1::Identity;
use gitdoor_tests::authority::Authority;
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

#[test]
fn the_documented_steps_start_haproxy() {
    let (_, steps) = include_str!("../../docs/shim.md").split_once("\n## HAProxy\n").unwrap();
    let (_, steps) = steps.split_once("\n```sh\n").unwrap();
    let (steps, _) = steps.split_once("\n```\n").unwrap();
    assert!(steps.contains("\nhaproxy "), "{steps}");
    let folder = tempfile::tempdir().unwrap();
    let here = |name: &str| folder.path().join(name);
    let (authority, root) = (Authority::new("of the door"), Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
    let leaf = authority.leaf(&["git.example.com"]);
    std::os::unix::fs::symlink(root.canonicalize().unwrap().join("deploy"), here("deploy")).unwrap();
    fs::create_dir_all(here("etc/gitdoor")).unwrap();
    for (name, text) in
        [("door.crt", leaf.certificate.as_str()), ("door.key", &leaf.key), ("etc/gitdoor/ca.pem", authority.pem())]
    {
        fs::write(here(name), text).unwrap();
    }
    // Only looked at: its port is for root, and its data planes are nowhere.
    let steps = steps.replace("/etc/haproxy", here("etc").to_str().unwrap()).replace("\nhaproxy ", "\nhaproxy -c ");
    let done = Command::new("bash").args(["-euo", "pipefail", "-c", &steps]).current_dir(&folder).output().unwrap();
    assert!(done.status.success(), "{steps}: {}", String::from_utf8_lossy(&done.stderr));
}
