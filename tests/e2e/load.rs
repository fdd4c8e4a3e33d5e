//! The load that an operator puts a door under, as its command does it and its table tells it.

use std::path::Path;

use gitdoor_proto::v1::Identity;
use gitdoor_tests::world::{Run, World};
use tempfile::TempDir;
use tokio::process::Command;

use crate::PROGRAM;

const LOAD: &str = env!("CARGO_BIN_EXE_load");

/// Its exit status, its standard output and its standard error.
async fn load(arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(LOAD);
    command.args(arguments).env_clear().env("PATH", std::env::var_os("PATH").unwrap()).kill_on_drop(true);
    let output = command.output().await.unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// Puts a world's door under load with a run's bearer.
async fn at(world: &World, run: &Run, more: &[&str]) -> (Option<i32>, String) {
    let (folder, host) = (bearer_file(run), format!("--host=localhost:{}", world.address(0).port()));
    let file = format!("--bearer-file={}", folder.path().join("bearer").display());
    let ca = format!("--ca={}", world.ca_file().display());
    let arguments = [&[&*host, &*file, &*ca, "--repository=acme/api"], more].concat();
    let (status, table, said) = load(&arguments).await;
    assert_eq!(said, "", "{table}");
    assert!(!table.contains(&run.bearer), "{table}");
    (status, table)
}

fn bearer_file(run: &Run) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("bearer"), &run.bearer).unwrap();
    folder
}

/// The cells of the rows that begin so.
fn rows(table: &str, first: &str) -> Vec<Vec<String>> {
    let rows = table.lines().filter(|line| line.starts_with(&format!("| {first} |")));
    rows.map(|row| row.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()).collect()
}

#[tokio::test]
async fn real_clients_do_as_much_as_they_were_told_and_the_table_tells_of_each_kind() {
    let world = World::start(PROGRAM).await;
    world.github.seed("acme/api").furnished().create();
    let run = world.register(Identity::Write).await;
    let kinds = "--kinds=discovery,run,rest,clone,push";
    let (status, table) = at(&world, &run, &[kinds, "--at-once=3", "--most-requests=15", "--seconds=600"]).await;
    assert_eq!(status, Some(0), "{table}");
    for kind in ["discovery", "run", "rest", "clone", "push"] {
        let row = rows(&table, kind).remove(0);
        assert_eq!(row[1..3], ["3", "0"], "{table}");
        assert!(row[3..].iter().all(|cell| cell.parse::<f64>().unwrap() > 0.0), "{table}");
    }
    let pushed: Vec<_> = world.show(&run).await.pushes.into_iter().flat_map(|push| push.refs).collect();
    assert_eq!(pushed.len(), 3);
    for pushed in pushed {
        let name = String::from_utf8(pushed.ref_name).unwrap();
        assert!(name.starts_with("refs/heads/gitdoor-load/"), "{name}");
        assert!(world.github.ref_of("acme/api", &name).is_some(), "{name}");
    }
    world.finish().await;
}

#[tokio::test]
async fn it_ends_with_its_time_and_with_its_bytes() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    let run = world.register(Identity::Read).await;
    let (status, table) = at(&world, &run, &["--kinds=run", "--at-once=2", "--seconds=1"]).await;
    assert_eq!(status, Some(0), "{table}");
    let most = ["--kinds=discovery", "--at-once=1", "--most-bytes=1", "--seconds=600"];
    let (status, table) = at(&world, &run, &most).await;
    assert_eq!((status, &*rows(&table, "discovery")[0][1]), (Some(0), "1"), "{table}");
    world.finish().await;
}

#[tokio::test]
async fn what_fails_is_counted_by_its_reason() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    let run = world.register(Identity::Read).await;
    let kinds = "--kinds=discovery,clone,push";
    let (status, table) = at(&world, &run, &[kinds, "--at-once=1", "--most-requests=3"]).await;
    assert_eq!(status, Some(1), "{table}");
    assert_eq!(rows(&table, "push")[0][1..3], ["0", "1"], "{table}");
    assert!(rows(&table, "push")[1][2].contains("may fetch and read, but not push"), "{table}");
    world.revoke(&run).await;
    let (status, table) = at(&world, &run, &["--at-once=1", "--most-requests=3"]).await;
    assert_eq!(status, Some(1), "{table}");
    for (kind, words) in [("discovery", "run-revoked"), ("rest", "run-revoked"), ("clone", "run revoked")] {
        assert_eq!(rows(&table, kind)[0][1..3], ["0", "1"], "{table}");
        assert!(rows(&table, kind)[1][2].contains(words), "{table}");
    }
    world.finish().await;
}

#[tokio::test]
async fn another_machine_is_put_under_load_by_nobody_who_does_not_say_so() {
    let folder = tempfile::tempdir().unwrap();
    let none = format!("--bearer-file={}", Path::new(folder.path()).join("none").display());
    for host in ["git.example.com", "localhost.example.com", "192.0.2.1:8443", "[2001:db8::1]"] {
        let host = format!("--host={host}");
        let asked = [&*host, &*none, "--repository=acme/api"];
        let (status, _, said) = load(&asked).await;
        assert_eq!(status, Some(64), "{said}");
        assert!(said.contains("--yes-this-deployment"), "{said}");
        let (status, _, said) = load(&[&asked[..], &["--yes-this-deployment"]].concat()).await;
        assert!(status == Some(64) && said.contains("--bearer-file"), "{said}");
    }
}

#[tokio::test]
async fn no_bound_is_wider_than_the_most_that_is_given_to_anybody() {
    let asked = ["--host=localhost", "--bearer-file=x", "--repository=acme/api"];
    for wide in [
        "--seconds=601",
        "--seconds=0",
        "--at-once=65",
        "--most-requests=100001",
        "--most-bytes=107374182401",
        "--push-bytes=67108865",
        "--kinds=delete",
        "--host=u:p@localhost",
        "--host=https://localhost",
    ] {
        let last = if wide.starts_with("--host") {
            vec![wide, asked[1], asked[2]]
        } else {
            [&asked[..], &[wide]].concat()
        };
        let (status, _, said) = load(&last).await;
        assert_eq!(status, Some(2), "{wide}: {said}");
    }
}
