//! What is on the wire: the headers and the framing that reach the upstream, those that reach the client, and the
//! corners of HTTP/1.1 that a client may use.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use gitdoor_proto::v1::Identity;
use gitdoor_tests::github::{Canned, Request as Upstream, Route};
use gitdoor_tests::raw::{Request, Response, chunk};
use gitdoor_tests::world::{Run, Secret, World};
use gitdoor_tests::{h2, pkt};
use http_body_util::BodyExt as _;
use serde_json::json;

use crate::PROGRAM;

const FETCH: &str = "/acme/api.git/info/refs?service=git-upload-pack";
const PUSH: &str = "/acme/api.git/info/refs?service=git-receive-pack";

/// Every header that may go up, in alphabetical order.
const UPWARD: &[&str] = &[
    "accept",
    "accept-encoding",
    "accept-language",
    "authorization",
    "content-encoding",
    "content-length",
    "content-type",
    "git-protocol",
    "host",
    "pragma",
    "transfer-encoding",
    "user-agent",
];

/// What a hostile or careless client, or a proxy in front of it, adds.
const UNWANTED: &[(&str, &str)] = &[
    ("Cookie", "a=b"),
    ("X-Forwarded-For", "10.0.0.1"),
    ("X-Forwarded-Host", "evil.test"),
    ("X-Forwarded-Proto", "http"),
    ("Forwarded", "for=10.0.0.1"),
    ("Proxy-Authorization", "Basic eDp5"),
    ("X-HTTP-Method-Override", "DELETE"),
    ("X-GitHub-Token", "x"),
    ("Via", "1.1 evil"),
    ("Range", "bytes=0-1"),
    ("If-None-Match", "\"x\""),
    ("Origin", "https://evil.test"),
    ("Referer", "https://evil.test"),
    ("X-Foo", "bar"),
    ("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
    ("tracestate", "a=b"),
    ("baggage", "a=b"),
];

/// What belongs to one connection, which HTTP/2 does not have.
const OF_THE_HOP: &[(&str, &str)] = &[
    ("Connection", "keep-alive, x-foo, authorization, content-type"),
    ("Proxy-Connection", "keep-alive"),
    ("Keep-Alive", "timeout=5"),
    ("TE", "trailers"),
    ("Upgrade", "h2c"),
];

/// Headers that no answer may bring a client.
const NEVER_DOWN: &[&str] = &[
    "set-cookie",
    "x-oauth-scopes",
    "www-authenticate",
    "location",
    "keep-alive",
    "proxy-authenticate",
    "trailer",
    "upgrade",
    "server",
    "x-github-request-id",
    "x-foo",
];

async fn bound(world: &World) -> Run {
    world.github.create("acme/api");
    world.registration(Identity::Write).repository("acme/api").send().await.unwrap()
}

/// A push of a new branch at the tip of `main`.
fn push_body(world: &World, branch: &str) -> Vec<u8> {
    let tip = world.github.ref_of("acme/api", "refs/heads/main").unwrap();
    let section = pkt::commands(&[(pkt::ZERO, &tip, &format!("refs/heads/{branch}"))], pkt::GIT_CAPABILITIES);
    [section.as_slice(), pkt::EMPTY_PACK].concat()
}

fn push_head(run: &Run) -> Request {
    Request::post("/acme/api.git/git-receive-pack")
        .basic(&run.bearer)
        .header("Content-Type", "application/x-git-receive-pack-request")
}

fn wants(world: &World) -> Vec<u8> {
    let tip = world.github.ref_of("acme/api", "refs/heads/main").unwrap();
    [pkt::line(format!("want {tip} no-progress\n")), pkt::FLUSH.to_vec(), pkt::line("done\n")].concat()
}

fn with(request: Request, headers: &[(&str, &str)]) -> Request {
    headers.iter().fold(request, |request, (name, value)| request.header(name, value))
}

/// One credential, the door's; nothing that is not listed; at most one framing.
fn assert_clean(world: &World, run: &Run, request: &Upstream) {
    let names: BTreeSet<&str> = request.headers.keys().map(http::HeaderName::as_str).collect();
    let foreign: Vec<_> = names.iter().filter(|name| !UPWARD.contains(name)).collect();
    assert!(foreign.is_empty(), "{foreign:?} went up: {request:?}");
    for name in UPWARD {
        assert!(request.headers.get_all(*name).iter().count() <= 1, "two of {name}: {request:?}");
    }
    let credential = request.header("authorization").unwrap();
    let token = &world.github.tokens()[request.token.unwrap()].text;
    assert_eq!(credential, format!("Basic {}", STANDARD.encode(format!("x-access-token:{token}"))));
    assert!(!(names.contains("content-length") && names.contains("transfer-encoding")), "{request:?}");
    let secret = Secret::new("bearer", run.bearer.rsplit('.').next().unwrap());
    assert!(!secret.is_in(&format!("{request:?}")));
}

fn assert_clean_answer(answer: &Response) {
    for name in NEVER_DOWN {
        assert_eq!(answer.header(name), None, "{answer:?}");
    }
    let ids = answer.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("x-request-id")).count();
    assert_eq!(ids, 1, "{answer:?}");
}

#[tokio::test]
async fn nothing_of_a_client_reaches_the_upstream_but_what_is_listed() {
    let world = World::builder(PROGRAM).http2().start().await;
    let run = bound(&world).await;
    let door = world.door(0);
    let unwanted = [UNWANTED, OF_THE_HOP].concat();
    for (number, request) in [
        Request::get(FETCH).basic(&run.bearer),
        Request::get(PUSH).header("Authorization", &format!("Bearer {}", run.bearer)),
        Request::post("/acme/api.git/git-upload-pack")
            .header("authorization", &format!("token {}", run.bearer))
            .header("content-type", "application/x-git-upload-pack-request")
            .body(wants(&world)),
        push_head(&run).body(push_body(&world, "fix-0")),
        push_head(&run).chunked([push_body(&world, "fix-1").as_slice()]),
        push_head(&run).body("0000"),
    ]
    .into_iter()
    .enumerate()
    {
        let answer = door.send(with(request, &unwanted)).await;
        assert_eq!(answer.status, 200, "{number}: {}", answer.text());
        assert_clean_answer(&answer);
    }
    let mut sender = h2::connect(&door).await;
    for (method, target, body) in [
        ("GET", FETCH, h2::full("")),
        ("POST", "/acme/api.git/git-upload-pack", h2::full(wants(&world))),
        ("POST", "/acme/api.git/git-receive-pack", h2::full(push_body(&world, "fix-2"))),
        (
            "POST",
            "/acme/api.git/git-receive-pack",
            h2::unsized_body(push_body(&world, "fix-3").chunks(40).map(Bytes::copy_from_slice).collect()),
        ),
    ] {
        let media = format!("application/x-{}-request", target.rsplit('/').next().unwrap());
        let request = h2::request(&door, method, target, &run.bearer).header("content-type", media);
        let request = UNWANTED.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let answer = sender.send_request(request.body(body).unwrap()).await.unwrap();
        assert_eq!(answer.status(), 200);
        for name in NEVER_DOWN {
            assert!(answer.headers().get(*name).is_none(), "{answer:?}");
        }
        let mut body = answer.into_body();
        while let Some(frame) = body.frame().await {
            frame.unwrap();
        }
    }
    let git: Vec<Upstream> =
        world.github.requests().into_iter().filter(|request| request.path.starts_with("/acme/")).collect();
    assert_eq!(git.len(), 10);
    for request in &git {
        assert_clean(&world, &run, request);
    }
    assert!(git.iter().all(|request| request.host == world.github.url().trim_start_matches("https://")));
    let framings: Vec<_> = git
        .iter()
        .filter(|request| request.route == Route::ReceivePack)
        .map(|request| (request.header("content-length").is_some(), request.header("transfer-encoding").is_some()))
        .collect();
    // By its length, chunked, the probe; then over HTTP/2 with a length and without one.
    assert_eq!(framings, [(true, false), (false, true), (true, false), (true, false), (false, true)]);
    for branch in 0..4 {
        assert!(world.github.ref_of("acme/api", &format!("refs/heads/fix-{branch}")).is_some(), "{branch}");
    }
    drop(sender);
    world.finish().await;
}

#[tokio::test]
async fn git_protocol_goes_up_as_it_came_within_bounds() {
    let world = World::start(PROGRAM).await;
    let run = bound(&world).await;
    let long = "x".repeat(200);
    for (value, passes) in [("version=2", true), ("version=1", true), (&long, false), ("version=2\tx", false)] {
        let request = Request::get(FETCH).basic(&run.bearer).header("Git-Protocol", value);
        assert_eq!(world.door(0).send(request).await.status, 200, "{value}");
        let asked = world.github.requests_for(Route::FetchDiscovery).pop().unwrap();
        assert_eq!(asked.header("git-protocol"), passes.then_some(value));
    }
    world.finish().await;
}

#[tokio::test]
async fn a_gzipped_negotiation_goes_up_as_it_came() {
    use std::io::Write as _;

    let world = World::start(PROGRAM).await;
    let run = bound(&world).await;
    let mut coder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    coder.write_all(&wants(&world)).unwrap();
    let gzipped = coder.finish().unwrap();
    for chunked in [false, true] {
        let request = Request::post("/acme/api.git/git-upload-pack").basic(&run.bearer);
        let request = request.header("Content-Type", "application/x-git-upload-pack-request");
        let request = request.header("Content-Encoding", "gzip");
        let request = if chunked { request.chunked(gzipped.chunks(10)) } else { request.body(gzipped.clone()) };
        let answer = world.door(0).send(request).await;
        assert!(answer.status == 200 && answer.text().contains("PACK"), "{}", answer.text());
        let asked = world.github.requests_for(Route::UploadPack).pop().unwrap();
        assert_eq!(asked.header("content-encoding"), Some("gzip"));
        assert_eq!(asked.body, gzipped);
        assert_clean(&world, &run, &asked);
    }
    world.finish().await;
}

#[tokio::test]
async fn what_is_for_the_door_alone_does_not_reach_the_client() {
    let world = World::builder(PROGRAM).dataplane_flag("--log-format=json").start().await;
    let run = bound(&world).await;
    let advertisement =
        [pkt::line("# service=git-upload-pack\n"), pkt::FLUSH.to_vec(), pkt::FLUSH.to_vec()].concat();
    let canned = Canned::status(200)
        .header("Connection", "x-foo")
        .header("X-Foo", "1")
        .header("Keep-Alive", "timeout=5")
        .header("X-OAuth-Scopes", "repo")
        .header("WWW-Authenticate", "Basic realm=\"GitHub\"")
        .header("Location", "https://github.com/acme/api")
        .header("X-Request-Id", "theirs")
        .header("Trailer", "X-Foo")
        .header("Cache-Control", "no-cache, max-age=0")
        .body("application/x-git-upload-pack-advertisement", advertisement);
    world.github.when(Route::FetchDiscovery).answer(canned);
    let request = Request::get(FETCH).basic(&run.bearer).header("X-Request-Id", "mine 1");
    let answer = world.door(0).send(request).await;
    assert_eq!((answer.status, answer.header("cache-control")), (200, Some("no-cache, max-age=0")));
    assert_clean_answer(&answer);
    let id = answer.header("x-request-id").unwrap();
    assert!(id != "theirs" && id != "mine 1");
    let event = world.event("request_id", id).await;
    assert_eq!(event["client_request_id"], "mine_1", "{event}");
    assert!(answer.header("content-length").is_some());
    assert_eq!(event["interruption"], json!(null), "an answer of known length ended in peace: {event}");
    for status in [302, 403, 404, 429, 500] {
        let canned = Canned::status(status).header("Location", "https://evil.test/").header("X-Foo", "1");
        world.github.when(Route::FetchDiscovery).times(3).answer(canned);
        let answer = world.door(0).send(Request::get(FETCH).basic(&run.bearer)).await;
        assert!(answer.status >= 400, "{answer:?}");
        assert_clean_answer(&answer);
        world.github.heal();
    }
    world.finish().await;
}

#[tokio::test]
async fn a_client_that_waits_for_100_is_asked_for_its_body_once_its_bearer_is_good() {
    let world = World::start(PROGRAM).await;
    let run = bound(&world).await;
    let door = world.door(0);
    for (target, body) in [
        ("/acme/api.git/git-upload-pack", wants(&world)),
        ("/acme/api.git/git-receive-pack", push_body(&world, "fix-x")),
    ] {
        let mut connection = door.connect().await.unwrap();
        let head = Request::post(target).basic(&run.bearer).header("Expect", "100-continue");
        let media = format!("application/x-{}-request", target.rsplit('/').next().unwrap());
        let head = head.header("Content-Type", &media).header("Content-Length", &body.len().to_string());
        connection.write(&head.to_bytes(&door.host)).await.unwrap();
        connection.until(b"HTTP/1.1 100 Continue\r\n\r\n").await.unwrap();
        connection.write(&body).await.unwrap();
        assert_eq!(connection.response().await.unwrap().status, 200, "{target}");
    }
    assert!(world.github.ref_of("acme/api", "refs/heads/fix-x").is_some());
    let upstream = world.github.requests().len();
    let wrong = format!("sbr_{}.{}", run.id, "A".repeat(43));
    for (target, bearer, status) in [
        ("/acme/api.git/git-upload-pack", "none", 401),
        ("/acme/api.git/git-upload-pack", &wrong, 401),
        ("/acme/api.git/git-receive-pack", "none", 401),
        ("/acme/api.git/git-receive-pack", &wrong, 401),
        ("/acme/api.git/nothing", &run.bearer, 404),
    ] {
        let mut connection = door.connect().await.unwrap();
        let head = Request::post(target).basic(bearer).header("Expect", "100-continue");
        let head = head.header("Content-Length", "100000");
        connection.write(&head.to_bytes(&door.host)).await.unwrap();
        connection.until(b"\r\n\r\n").await.unwrap();
        assert!(connection.read_so_far().starts_with(format!("HTTP/1.1 {status} ").as_bytes()), "{target}");
        // The connection ends, since nobody knows whether a body comes.
        let rest = String::from_utf8(connection.rest().await).unwrap();
        assert!(
            !rest.contains("100 Continue") && rest.to_ascii_lowercase().contains("connection: close"),
            "{rest}"
        );
    }
    assert_eq!(world.github.requests().len(), upstream);
    world.quiet(0).await;
    world.finish().await;
}

#[tokio::test]
async fn extensions_of_chunks_and_trailers_are_of_no_meaning() {
    let world = World::start(PROGRAM).await;
    let run = bound(&world).await;
    let door = world.door(0);
    let body = push_body(&world, "fix-x");
    let head = push_head(&run).header("Transfer-Encoding", "chunked").header("Trailer", "Authorization, X-Foo");
    let mut bytes = head.to_bytes(&door.host);
    for part in body.chunks(7) {
        bytes.extend(format!("{:x};name=\"value\";x\r\n", part.len()).into_bytes());
        bytes.extend([part, b"\r\n"].concat());
    }
    bytes.extend(b"0;last\r\nAuthorization: Basic eDp5\r\nX-Foo: bar\r\n\r\n");
    let answer = door.exchange(&bytes).await;
    assert_eq!(pkt::report(&answer.body), ["unpack ok", "ok refs/heads/fix-x"]);
    let push = world.github.pushes().pop().unwrap();
    assert_eq!(push.body, body);
    assert_clean(&world, &run, &push);
    let probe = push_head(&run).chunked([&b"00"[..], b"00"]);
    assert_eq!(door.send(probe).await.status, 200);
    assert!(world.github.pushes().pop().unwrap().is_probe());
    world.finish().await;
}

#[tokio::test]
async fn requests_in_a_row_on_one_connection_are_answered_in_that_order() {
    let world = World::start(PROGRAM).await;
    let run = bound(&world).await;
    let other = world.register(Identity::Read).await;
    let door = world.door(0);
    let requests = [
        Request::get(FETCH).basic(&run.bearer),
        push_head(&run).body(push_body(&world, "fix-x")),
        push_head(&run).chunked([push_body(&world, "main").as_slice()]),
        Request::get(FETCH).basic("none"),
        Request::get(PUSH).basic(&other.bearer),
        Request::get("/acme/nothing.git/info/refs?service=git-upload-pack").basic(&run.bearer),
        Request::get(FETCH).basic(&other.bearer),
    ];
    let bytes: Vec<u8> = requests.iter().flat_map(|request| request.to_bytes(&door.host)).collect();
    let mut connection = door.connect().await.unwrap();
    connection.write(&bytes).await.unwrap();
    let mut statuses = Vec::new();
    for _ in &requests {
        statuses.push(connection.response().await.unwrap().status);
    }
    assert_eq!(statuses, [200, 200, 200, 401, 403, 404, 200]);
    assert!(world.github.ref_of("acme/api", "refs/heads/fix-x").is_some());
    world.finish().await;
}

#[tokio::test]
async fn http_1_0_is_served_and_closed() {
    let world = World::start(PROGRAM).await;
    let run = bound(&world).await;
    let door = world.door(0);
    let old = |request: Request| {
        let text = request.to_bytes(&door.host);
        let end = text.windows(8).position(|window| window == b"HTTP/1.1").unwrap();
        [&text[..end], b"HTTP/1.0", &text[end + 8..]].concat()
    };
    let mut connection = door.connect().await.unwrap();
    connection.write(&old(Request::get(FETCH).basic(&run.bearer))).await.unwrap();
    let answer = String::from_utf8(connection.rest().await).unwrap();
    assert!(answer.starts_with("HTTP/1.0 200 ") && answer.ends_with("0000"), "{answer}");
    assert!(!answer.to_ascii_lowercase().contains("transfer-encoding"), "{answer}");
    let mut connection = door.connect().await.unwrap();
    connection.write(&old(push_head(&run).body(push_body(&world, "fix-x")))).await.unwrap();
    let answer = String::from_utf8(connection.rest().await).unwrap();
    assert!(answer.contains("ok refs/heads/fix-x"), "{answer}");
    assert!(!answer.to_ascii_lowercase().contains("transfer-encoding"), "{answer}");
    // HTTP/1.0 knows no chunks, and a request that names no host is for nobody.
    let chunked = old(push_head(&run).header("Transfer-Encoding", "chunked"));
    let chunked = [chunked, chunk(&push_body(&world, "fix-y")), b"0\r\n\r\n".to_vec()].concat();
    assert_eq!(door.exchange(&chunked).await.status, 400);
    assert_eq!(door.exchange(b"GET / HTTP/1.0\r\n\r\n").await.status, 400);
    assert_eq!(world.github.ref_of("acme/api", "refs/heads/fix-y"), None);
    world.finish().await;
}
