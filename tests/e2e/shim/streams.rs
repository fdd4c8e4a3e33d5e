//! Bytes go through a shim as they come, both ways at once, and whole.

use std::io::Read as _;

use flate2::Compression;
use flate2::read::{GzDecoder, GzEncoder, ZlibEncoder};
use gitdoor_proto::v1::PushOutcome;
use gitdoor_tests::git::Git;
use gitdoor_tests::github::{BodyEnd, Fault, Route};
use gitdoor_tests::raw::{Connection, Request, chunk};
use gitdoor_tests::shim::{Kind, Shim};
use gitdoor_tests::wait::until;
use gitdoor_tests::world::{Run, World};
use gitdoor_tests::{behind_every_shim, pkt};

use super::behind;
use crate::push::random;

behind_every_shim!(
    a_push_is_at_the_upstream_and_answered_while_its_client_still_sends,
    a_clone_reaches_its_client_while_the_upstream_still_sends,
    a_push_and_a_clone_of_30_mb_pass,
    a_client_that_leaves_in_the_middle_of_a_push_moves_no_ref,
    what_is_coded_passes_byte_for_byte,
);

/// A part of a pack: more than a data plane holds back of a push until its end, and than the buffers of a shim hold.
const PART: usize = 4 << 20;

/// A pack of one blob of this size, as far as its last bytes.
fn pack(bytes: usize) -> Vec<u8> {
    let mut pack = [b"PACK".as_slice(), &2_u32.to_be_bytes(), &1_u32.to_be_bytes()].concat();
    // Its kind and four bits of its size, then seven each.
    let mut rest = bytes >> 4;
    let mut byte = 0x30 | u8::try_from(bytes & 0xf).unwrap();
    while rest > 0 {
        pack.push(byte | 0x80);
        byte = u8::try_from(rest & 0x7f).unwrap();
        rest >>= 7;
    }
    pack.push(byte);
    ZlibEncoder::new(random(bytes).as_slice(), Compression::none()).read_to_end(&mut pack).unwrap();
    pack
}

/// The head of a push through a shim, and its first bytes: the section and the beginning of a pack.
async fn begun_push(world: &World, shim: &Shim, run: &Run, pack: &[u8]) -> Connection {
    let tip = world.github.ref_of("acme/api", "refs/heads/main").unwrap();
    let section = pkt::commands(&[(pkt::ZERO, &tip, "refs/heads/fix-x")], pkt::GIT_CAPABILITIES);
    let head = Request::post("/acme/api.git/git-receive-pack").basic(&run.bearer);
    let head = head.header("Content-Type", "application/x-git-receive-pack-request");
    let head = head.header("Transfer-Encoding", "chunked").to_bytes(&shim.door().host);
    let mut connection = shim.door().connect().await.unwrap();
    let begin = [section.as_slice(), pack].concat();
    connection.write(&[head, chunk(&begin)].concat()).await.unwrap();
    connection
}

async fn a_push_is_at_the_upstream_and_answered_while_its_client_still_sends(kind: Kind) {
    let (world, shim, run) = behind(kind).await;
    world.github.when(Route::ReceivePack).then(Fault::Progress("counting\n".to_owned()));
    let mut connection = begun_push(&world, &shim, &run, &pkt::EMPTY_PACK[..12]).await;
    connection.until(b"counting").await.unwrap();
    assert_eq!(world.github.pushes()[0].body_end, BodyEnd::Open);
    connection.write(&chunk(&pkt::EMPTY_PACK[12..])).await.unwrap();
    connection.write(b"0\r\n\r\n").await.unwrap();
    let answer = connection.response().await.unwrap();
    assert_eq!(pkt::band(&answer.body, 2), b"counting\n");
    assert_eq!(pkt::report(&answer.body), ["unpack ok", "ok refs/heads/fix-x"]);
    world.finish().await;
}

async fn a_clone_reaches_its_client_while_the_upstream_still_sends(kind: Kind) {
    let (world, shim, run) = behind(kind).await;
    let tip = world.github.ref_of("acme/api", "refs/heads/main").unwrap();
    let want = pkt::line(format!("want {tip} side-band-64k no-progress\n"));
    let body = [want, pkt::FLUSH.to_vec(), pkt::line("done\n")].concat();
    let request = Request::post("/acme/api.git/git-upload-pack").basic(&run.bearer);
    let request = request.header("Content-Type", "application/x-git-upload-pack-request").body(body);
    world.github.when(Route::UploadPack).then(Fault::Stall(20));
    let mut connection = shim.door().connect().await.unwrap();
    connection.write(&request.to_bytes(&shim.door().host)).await.unwrap();
    // The first line of the answer.
    connection.until(b"NAK\n").await.unwrap();
    assert_eq!(world.github.requests_for(Route::UploadPack)[0].answer_end, BodyEnd::Open);
    // Not every shim sees a client leave while the upstream is silent.
    drop((connection, shim));
    until("the upstream is left", async || {
        world.github.requests_for(Route::UploadPack)[0].answer_end == BodyEnd::Cut
    })
    .await;
    world.finish().await;
}

async fn a_push_and_a_clone_of_30_mb_pass(kind: Kind) {
    let (world, shim, run) = behind(kind).await;
    let git = world.git_by(&shim.url(), &run.bearer);
    push_and_clone(&world, &git, 30_000_000).await;
    world.finish().await;
}

/// Pushes a file of this size, and clones it again.
pub(super) async fn push_and_clone(world: &World, git: &Git, bytes: usize) {
    let clone = git.cloned("acme/api").await;
    clone.run(&["config", "core.compression", "0"]).await.ok();
    let id = clone.commit("big", random(bytes)).await;
    clone.run(&["push", "origin", "HEAD:fix-x"]).await.ok();
    assert_eq!(world.github.ref_of("acme/api", "refs/heads/fix-x").as_ref(), Some(&id));
    let push = world.github.pushes().pop().unwrap();
    assert!(push.body_len > bytes as u64 && push.body_end == BodyEnd::Clean);
    git.run(&["clone", "--quiet", "--branch", "fix-x", &git.url("acme/api"), "again"]).await.ok();
    assert_eq!(git.at("again").id_of("HEAD").await, id);
    git.at("again").run(&["fsck", "--strict"]).await.ok();
    assert_eq!(git.erasures(), 0);
}

async fn a_client_that_leaves_in_the_middle_of_a_push_moves_no_ref(kind: Kind) {
    let (world, shim, run) = behind(kind).await;
    let connection = begun_push(&world, &shim, &run, &pack(2 * PART)[..PART]).await;
    until("the upstream has most of that", async || {
        world.github.pushes().first().is_some_and(|push| push.body_len > PART as u64 / 2)
    })
    .await;
    drop(connection);
    until("the push is closed in the ledger", async || {
        world.show(&run).await.pushes[0].outcome() == PushOutcome::Interrupted
    })
    .await;
    until("the upstream's request is cut", async || {
        world.github.pushes()[0].body_end == BodyEnd::Cut && world.github.running_backends() == 0
    })
    .await;
    assert_eq!(world.github.ref_of("acme/api", "refs/heads/fix-x"), None);
    for number in [0, 1] {
        world.quiet(number).await;
    }
    world.finish().await;
}

async fn what_is_coded_passes_byte_for_byte(kind: Kind) {
    let (world, shim, run) = behind(kind).await;
    let asked = [pkt::line("command=ls-refs\n"), b"0001".to_vec(), pkt::line("peel\n"), pkt::FLUSH.to_vec()];
    let mut coded = Vec::new();
    GzEncoder::new(asked.concat().as_slice(), Compression::default()).read_to_end(&mut coded).unwrap();
    let request = Request::post("/acme/api.git/git-upload-pack").basic(&run.bearer);
    let request = request.header("Content-Type", "application/x-git-upload-pack-request");
    let request = request.header("Git-Protocol", "version=2").header("Accept-Encoding", "gzip");
    let request = request.header("Content-Encoding", "gzip").body(coded.clone());
    world.github.when(Route::UploadPack).then(Fault::Gzip);
    let answer = shim.door().send(request).await;
    let seen = world.github.requests_for(Route::UploadPack).remove(0);
    assert_eq!((seen.header("content-encoding"), &seen.body), (Some("gzip"), &coded));
    assert_eq!((answer.status, answer.header("content-encoding")), (200, Some("gzip")), "{}", answer.text());
    let mut refs = String::new();
    GzDecoder::new(answer.body.as_slice()).read_to_string(&mut refs).unwrap();
    assert!(refs.contains("refs/heads/main"), "{refs}");
    world.finish().await;
}
