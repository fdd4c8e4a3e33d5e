//! Pushes whose body is coded: gzip once is undone on the way up, anything else is refused, a bomb costs no memory.

use std::io::Write as _;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use gitdoor_proto::v1::PushOutcome;
use gitdoor_tests::pkt::{self, EMPTY_PACK, GIT_CAPABILITIES, ZERO};
use gitdoor_tests::raw::{Request, Response};
use gitdoor_tests::world::{Run, World};

use super::{ID, assert_refusal, body, bound};
use crate::PROGRAM;

const MIB: u64 = 1 << 20;

fn gzip(plain: &[u8]) -> Vec<u8> {
    let mut coder = GzEncoder::new(Vec::new(), Compression::fast());
    coder.write_all(plain).unwrap();
    coder.finish().unwrap()
}

/// A push of the commit that `main` is at, to another branch.
fn push(world: &World, branch: &str) -> Vec<u8> {
    let id = world.github.ref_of("acme/api", "refs/heads/main").unwrap();
    body(&[(ZERO, &id, &format!("refs/heads/{branch}"))], GIT_CAPABILITIES)
}

/// A push of 2 MiB to the branch `x`.
async fn large_push(world: &World, run: &Run) -> Vec<u8> {
    let git = world.git(run).cloned("acme/api").await;
    git.run(&["config", "core.compression", "0"]).await.ok();
    let mut random = vec![0; 2 << 20];
    getrandom::fill(&mut random).unwrap();
    let id = git.commit("big", random).await;
    git.run(&["bundle", "create", "bundle", "HEAD", "^origin/main"]).await.ok();
    let bundle = std::fs::read(git.folder().join("bundle")).unwrap();
    let pack = bundle.windows(2).position(|two| two == b"\n\n").unwrap() + 2;
    let commands = pkt::commands(&[(ZERO, &id, "refs/heads/x")], GIT_CAPABILITIES);
    [&commands, &bundle[pack..]].concat()
}

async fn send(world: &World, run: &Run, coding: &str, body: Vec<u8>) -> Response {
    let request = Request::push("acme/api", body).header("Content-Encoding", coding).basic(&run.bearer);
    world.door(0).send(request).await
}

#[tokio::test]
async fn a_gzipped_push_goes_up_decoded() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    let run = bound(&world).await;
    for (branch, coding) in [("a", "gzip"), ("b", "x-gzip"), ("c", "GZip"), ("d", "identity")] {
        let plain = push(&world, branch);
        let coded = if coding == "identity" { plain.clone() } else { gzip(&plain) };
        let answer = send(&world, &run, coding, coded).await;
        assert_eq!(pkt::report(&answer.body), ["unpack ok".to_owned(), format!("ok refs/heads/{branch}")]);
        let went_up = world.github.pushes().pop().unwrap();
        assert_eq!(went_up.body, plain, "{coding}");
        assert_eq!(went_up.header("content-encoding"), None);
        assert!(world.github.ref_of("acme/api", &format!("refs/heads/{branch}")).is_some());
    }
    let refused = send(&world, &run, "gzip", gzip(&push(&world, "main"))).await;
    assert_eq!(pkt::report(&refused.body), ["unpack ok", "ng refs/heads/main refused: default branch"]);
    let probe = send(&world, &run, "gzip", gzip(b"0000")).await;
    assert_eq!(probe.status, 200);
    assert_eq!(world.github.pushes().pop().unwrap().body, b"0000");
    assert_eq!(world.github.pushes_with_commands().len(), 4);
    world.finish().await;
}

#[tokio::test]
async fn a_push_whose_gzip_is_broken_never_lands() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    let run = bound(&world).await;
    let plain = push(&world, "x");
    let good = gzip(&plain);
    let spoiled = |at: usize| {
        let mut spoiled = good.clone();
        spoiled[at] ^= 1;
        spoiled
    };
    // Of this much a part has been decoded, and went up, before the end shows what is wrong.
    let large = gzip(&large_push(&world, &run).await);
    let mut large_spoiled = large.clone();
    large_spoiled[large.len() - 8] ^= 1;
    for (what, body) in [
        ("two members", [good.clone(), good.clone()].concat()),
        ("two members, the second of a section", [gzip(&plain[..60]), gzip(&plain[60..])].concat()),
        ("trailing bytes", [&good[..], b"x"].concat()),
        ("trailing zeros", [&good[..], &[0; 600]].concat()),
        ("a wrong checksum", spoiled(good.len() - 8)),
        ("a wrong length", spoiled(good.len() - 4)),
        ("a wrong header", spoiled(0)),
        ("cut", good[..good.len() - 1].to_vec()),
        ("cut in the section", good[..30].to_vec()),
        ("no gzip", plain.clone()),
        ("nothing", Vec::new()),
        ("gzip twice", gzip(&good)),
        ("large, with trailing bytes", [&large[..], b"x"].concat()),
        ("large, with a wrong checksum", large_spoiled),
        ("large, cut", large[..large.len() - 1].to_vec()),
    ] {
        let answer = send(&world, &run, "gzip", body).await;
        if answer.status == 200 {
            assert!(pkt::report(&answer.body)[1].starts_with("ng refs/heads/x "), "{what}: {}", answer.text());
        } else {
            let reason = answer.header("x-gitdoor-reason");
            assert!([Some("gzip"), Some("malformed-push")].contains(&reason), "{what}: {reason:?}");
            assert_eq!(answer.status, 400, "{what}: {}", answer.text());
        }
        assert!(world.github.ref_of("acme/api", "refs/heads/x").is_none(), "{what}");
    }
    assert!(world.show(&run).await.pushes.iter().all(|push| push.outcome() != PushOutcome::Done));
    assert_eq!(pkt::report(&send(&world, &run, "gzip", large).await.body), ["unpack ok", "ok refs/heads/x"]);
    world.finish().await;
}

#[tokio::test]
async fn a_push_is_not_whole_at_the_upstream_before_its_checksum_was_seen() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    let run = bound(&world).await;
    for (branch, plain) in [("small", push(&world, "small")), ("x", large_push(&world, &run).await)] {
        let mut coded = gzip(&plain);
        let checksum = coded.len() - 8;
        coded[checksum] ^= 1;
        let door = world.door(0);
        let request = Request::push("acme/api", coded).header("Content-Encoding", "gzip").basic(&run.bearer);
        let bytes = request.to_bytes(&door.host);
        let mut connection = door.connect().await.unwrap();
        // The checksum comes in two pieces, with time between for what has come to go up, if the door lets it.
        let (most, trailer) = bytes.split_at(bytes.len() - 4);
        let (piece, trailer) = trailer.split_at(1);
        for piece in [most, piece] {
            connection.write(piece).await.unwrap();
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
        let went_up = world.github.pushes_with_commands();
        assert!(went_up.iter().all(|push| push.body_len < plain.len() as u64), "{branch}");
        connection.write(trailer).await.unwrap();
        let answer = connection.response().await.unwrap();
        assert!(!answer.text().contains("ok refs"), "{}", answer.text());
        assert!(world.github.ref_of("acme/api", &format!("refs/heads/{branch}")).is_none());
    }
    world.finish().await;
}

#[tokio::test]
async fn another_coding_is_refused_unread() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    let run = bound(&world).await;
    let before = world.github.requests().len();
    for coding in ["deflate", "br", "zstd", "compress", "gzip, gzip", "identity, gzip", "gzip;q=1", "", "gunzip"] {
        let answer = send(&world, &run, coding, gzip(&push(&world, "x"))).await;
        assert_refusal(&answer, 415, "content-coding", coding);
    }
    let twice = Request::push("acme/api", gzip(&push(&world, "x"))).header("Content-Encoding", "gzip");
    let twice = twice.header("content-encoding", "gzip").basic(&run.bearer);
    assert_refusal(&world.door(0).send(twice).await, 415, "content-coding", "two headers");
    assert_eq!(world.github.requests().len(), before);
    world.finish().await;
}

#[tokio::test]
async fn a_bomb_is_refused_in_flat_memory() {
    let world = World::builder(PROGRAM).dataplane_flag("--max-push-bytes=33554432").start().await;
    let mut world = world;
    world.github.create("acme/api");
    let run = bound(&world).await;
    let zeros = vec![0; 128 << 20];
    let caps = GIT_CAPABILITIES;
    let command = |name| pkt::commands(&[(ZERO, ID, name)], caps);
    let allowed = gzip(&[&command("refs/heads/x"), EMPTY_PACK, &zeros].concat());
    let refused = gzip(&[&command("refs/heads/main"), EMPTY_PACK, &zeros].concat());
    let section = gzip(&zeros);
    assert!(allowed.len() < 1 << 20);
    drop(zeros);
    // Once before the measurement, so that it is not of what any first push costs.
    send(&world, &run, "gzip", gzip(&push(&world, "first"))).await;
    world.dataplane(0).forget_peak();
    let idle = world.dataplane(0).memory_now();
    let answer = send(&world, &run, "gzip", allowed).await;
    assert!(pkt::report(&answer.body)[1].starts_with("ng refs/heads/x "), "{}", answer.text());
    let answer = send(&world, &run, "gzip", refused).await;
    assert_eq!(pkt::report(&answer.body)[1], "ng refs/heads/main refused: default branch");
    assert_refusal(&send(&world, &run, "gzip", section).await, 400, "malformed-push", "a section of zeros");
    let peak = world.dataplane(0).peak_memory();
    assert!(peak < idle + 16 * MIB, "{idle} grew to {peak}");
    let went_up = world.github.pushes_with_commands();
    assert_eq!(went_up.len(), 2);
    assert!(went_up[1].body_len <= 32 * MIB);
    world.finish().await;
}
