//! A message that two readers could take differently is refused before anything is done with it, and every plain one
//! is served, however its bytes come.

use std::time::Duration;

use gitdoor_proto::v1::Identity;
use gitdoor_tests::pkt;
use gitdoor_tests::raw::{Connection, Request, Response, chunk};
use gitdoor_tests::wait::until;
use gitdoor_tests::world::{Builder, Run, World};

use crate::PROGRAM;
use crate::push::stored;

/// How long an end of a connection may take.
const LIMIT: Duration = Duration::from_secs(10);

/// `0000` in chunks.
const CHUNKS: &str = "4\r\n0000\r\n0\r\n\r\n";

/// Lines, and a body that is whole to the reader that takes the most of it.
const AMBIGUOUS: [(&str, &str); 16] = [
    ("Content-Length: 4\r\nContent-Length: 4\r\n", "0000"),
    ("Content-Length: 4\r\nContent-Length: 5\r\n", "00000"),
    ("Content-Length: 4, 4\r\n", "0000"),
    ("Content-Length: +4\r\n", "0000"),
    ("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", CHUNKS),
    ("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", CHUNKS),
    ("Transfer-Encoding: chunked\r\nContent-Length: +4, 9\r\n", CHUNKS),
    ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", CHUNKS),
    ("Transfer-Encoding: gzip, chunked\r\n", CHUNKS),
    ("Transfer-Encoding: identity\r\nContent-Length: 4\r\n", "0000"),
    ("Content-Length: 4\n", "0000"),
    ("X: y\nContent-Length: 4\r\n", "0000"),
    ("Content-Length: 4\r\n\n", "0000"),
    ("Content-Length : 4\r\n", "0000"),
    ("X: y\r\n Content-Length: 5\r\nContent-Length: 4\r\n", "0000"),
    ("X: \0\r\nContent-Length: 4\r\n", "0000"),
];

/// A probe of a push, with these lines about its body.
fn probe(world: &World, run: &Run, lines: &str, body: &str) -> Vec<u8> {
    let request = Request::post("/acme/api.git/git-receive-pack")
        .header("Content-Type", "application/x-git-receive-pack-request")
        .basic(&run.bearer);
    let head = String::from_utf8(request.to_bytes(&world.door(0).host)).unwrap();
    format!("{}{lines}\r\n{body}", head.strip_suffix("\r\n").unwrap()).into_bytes()
}

fn discovery(world: &World, run: &Run) -> Vec<u8> {
    let request = Request::get("/acme/api.git/info/refs?service=git-upload-pack").basic(&run.bearer);
    request.to_bytes(&world.door(0).host)
}

async fn answer(connection: &mut Connection) -> Response {
    tokio::time::timeout(LIMIT, connection.response()).await.unwrap().unwrap()
}

async fn rest(connection: Connection) -> String {
    let rest = tokio::time::timeout(LIMIT, connection.rest()).await.unwrap();
    String::from_utf8_lossy(&rest).into_owned()
}

/// With TLS, without it, and where the version is found out from the first bytes.
fn ways() -> [Builder; 3] {
    [World::builder(PROGRAM), World::builder(PROGRAM).plain(), World::builder(PROGRAM).http2()]
}

async fn world(builder: Builder) -> (World, Run) {
    let world = builder.start().await;
    world.github.create("acme/api");
    let run = world.registration(Identity::Write).repository("acme/api").send().await.unwrap();
    (world, run)
}

#[tokio::test]
async fn an_ambiguous_framing_is_400_and_the_end_of_its_connection() {
    for builder in ways() {
        let (world, run) = world(builder).await;
        let before = world.github.requests().len();
        for (lines, body) in AMBIGUOUS {
            let mut connection = world.door(0).connect().await.unwrap();
            let bytes = [probe(&world, &run, lines, body), discovery(&world, &run)].concat();
            connection.write(&bytes).await.unwrap();
            let refused = answer(&mut connection).await;
            assert_eq!(refused.status, 400, "{lines:?}");
            assert_eq!(refused.header("connection"), Some("close"), "{lines:?}");
            assert_eq!(rest(connection).await, "", "{lines:?}");
        }
        assert_eq!(world.github.requests().len(), before);
        world.finish().await;
    }
}

#[tokio::test]
async fn an_ambiguous_framing_behind_a_plain_one_is_refused() {
    let (world, run) = world(World::builder(PROGRAM)).await;
    for (lines, body) in AMBIGUOUS {
        let mut connection = world.door(0).connect().await.unwrap();
        let bytes = [discovery(&world, &run), probe(&world, &run, lines, body)].concat();
        connection.write(&bytes).await.unwrap();
        assert_eq!(answer(&mut connection).await.status, 200, "{lines:?}");
        assert_eq!(answer(&mut connection).await.status, 400, "{lines:?}");
        assert_eq!(rest(connection).await, "", "{lines:?}");
    }
    assert!(world.github.pushes().is_empty());
    world.finish().await;
}

#[tokio::test]
async fn plain_requests_share_a_connection_one_by_one_and_pipelined() {
    for builder in ways() {
        let (world, run) = world(builder).await;
        let requests = [
            discovery(&world, &run),
            probe(&world, &run, "Content-Length: 4\r\n", "0000"),
            probe(&world, &run, "Transfer-Encoding: chunked\r\n", "4;a=\"b\"\r\n0000\r\n0\r\nX: y\r\n\r\n"),
            discovery(&world, &run),
        ];
        let mut connection = world.door(0).connect().await.unwrap();
        for request in &requests {
            connection.write(request).await.unwrap();
            assert_eq!(answer(&mut connection).await.status, 200);
        }
        connection.write(&requests.concat()).await.unwrap();
        for _ in &requests {
            assert_eq!(answer(&mut connection).await.status, 200);
        }
        // As small as bytes can come.
        for byte in requests.concat() {
            connection.write(&[byte]).await.unwrap();
        }
        for _ in &requests {
            assert_eq!(answer(&mut connection).await.status, 200);
        }
        world.finish().await;
    }
}

/// A push of one branch in three chunks, with this extension at the second one.
fn chunked(world: &World, run: &Run, branch: &str, extension: &str) -> Vec<u8> {
    let main = world.github.ref_of("acme/api", "refs/heads/main").unwrap();
    let section = pkt::commands(&[(pkt::ZERO, &main, branch)], pkt::GIT_CAPABILITIES);
    let (front, back) = pkt::EMPTY_PACK.split_at(10);
    let extended = format!("{:x}{extension}\r\n", front.len());
    let middle = [extended.as_bytes(), front, b"\r\n"].concat();
    let body = [&chunk(&section), &middle, &chunk(back), &b"0;last\r\nX-Trailer: y\r\n\r\n"[..]].concat();
    let mut bytes = probe(world, run, "Accept: */*\r\nTransfer-Encoding: chunked\r\n", "");
    bytes.extend(body);
    bytes
}

#[tokio::test]
async fn a_push_in_chunks_with_extensions_and_trailers_arrives() {
    let (world, run) = world(World::builder(PROGRAM)).await;
    let mut connection = world.door(0).connect().await.unwrap();
    connection.write(&chunked(&world, &run, "refs/heads/fix-x", " ;a=\"b c\";d")).await.unwrap();
    let pushed = answer(&mut connection).await;
    assert_eq!(pkt::report(&pushed.body), ["unpack ok", "ok refs/heads/fix-x"]);
    connection.write(&discovery(&world, &run)).await.unwrap();
    assert_eq!(answer(&mut connection).await.status, 200);
    assert!(world.github.ref_of("acme/api", "refs/heads/fix-x").is_some());
    world.finish().await;
}

#[tokio::test]
async fn a_push_whose_chunks_are_broken_is_cut() {
    let (world, run) = world(World::builder(PROGRAM)).await;
    for extension in [";a\0b", ";a\nb", " ", "g"] {
        let mut connection = world.door(0).connect().await.unwrap();
        connection.write(&chunked(&world, &run, "refs/heads/fix-x", extension)).await.unwrap();
        let said = rest(connection).await;
        assert!(!said.contains("ok refs/heads/fix-x"), "{extension:?}: {said}");
        until("git has ended", async || world.github.running_backends() == 0).await;
        assert!(world.github.ref_of("acme/api", "refs/heads/fix-x").is_none(), "{extension:?}");
    }
    world.finish().await;
}

#[tokio::test]
async fn a_large_push_passes_in_chunks_and_with_a_length() {
    let (world, run) = world(World::builder(PROGRAM)).await;
    let git = stored(world.git(&run)).await.limit(Duration::from_secs(90)).cloned("acme/api").await;
    for (branch, buffer) in [("in-chunks", "http.postBuffer=65536"), ("with-a-length", "http.postBuffer=67108864")]
    {
        let mut noise = vec![0; 30 << 20];
        getrandom::fill(&mut noise).unwrap();
        let id = git.commit(branch, noise).await;
        git.run(&["-c", buffer, "push", "origin", &format!("HEAD:{branch}")]).await.ok();
        assert_eq!(world.github.ref_of("acme/api", &format!("refs/heads/{branch}")), Some(id));
    }
    world.finish().await;
}
