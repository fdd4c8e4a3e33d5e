//! Heads that two readers could take differently: refused before anything else, and their connection ended.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gitdoor_proto::v1::Identity;
use gitdoor_tests::raw::Request;
use gitdoor_tests::world::{Run, World};

use crate::PROGRAM;

/// What follows the head that is tried: a reader of another framing would take it for a request of its own.
const SMUGGLED: &str = "0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n";

fn credential(run: &Run) -> String {
    format!("Authorization: Basic {}", STANDARD.encode(format!("x:{}", run.bearer)))
}

/// Every byte that the door sends until it closes.
async fn all_of(world: &World, bytes: &[u8]) -> String {
    let mut connection = world.door(0).connect().await.unwrap();
    connection.write(bytes).await.unwrap();
    let rest = tokio::time::timeout(std::time::Duration::from_secs(25), connection.rest()).await;
    String::from_utf8_lossy(&rest.unwrap()).into_owned()
}

#[tokio::test]
async fn an_ambiguous_framing_is_a_400_and_the_end_of_its_connection() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    let run = world.registration(Identity::Write).repository("acme/api").send().await.unwrap();
    let before = world.github.requests().len();
    for headers in [
        "Content-Length: 4\r\nContent-Length: 5",
        "Content-Length: 5\r\nContent-Length: 5",
        "Content-Length: 5, 6",
        "Content-Length: 5, 5",
        "Content-Length: +5",
        "Content-Length: 0x5",
        "Content-Length: -1",
        "Content-Length: 5 5",
        "Content-Length:",
        "Content-Length: 99999999999999999999999",
        "Content-Length: 5\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 5",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked, chunked",
        "Transfer-Encoding: gzip, chunked",
        "Transfer-Encoding: chunked, gzip",
        "Transfer-Encoding: identity",
        "Transfer-Encoding: xchunked",
        "Transfer-Encoding: \"chunked\"",
        "Transfer-Encoding : chunked",
        "Content-Length : 5",
        "X-Folded: a\r\n b",
        "X-Folded: a\r\n\tContent-Length: 5",
        " Content-Length: 5",
        "X-Null: a\0b",
        "X Space: a",
        "no colon",
    ] {
        let auth = credential(&run);
        let host = format!("Host: {}", world.door(0).host);
        let line = "POST /acme/api.git/git-receive-pack HTTP/1.1";
        let bytes = format!("{line}\r\n{host}\r\n{auth}\r\n{headers}\r\n\r\n{SMUGGLED}");
        let said = all_of(&world, bytes.as_bytes()).await;
        assert!(said.starts_with("HTTP/1.1 400 "), "{headers:?}: {said}");
        assert_eq!(said.matches("HTTP/1.1 ").count(), 1, "{headers:?}: {said}");
        assert!(!said.contains("html"), "{headers:?}: {said}");
    }
    assert_eq!(world.github.requests().len(), before);
    world.finish().await;
}

#[tokio::test]
async fn a_target_that_is_no_path_or_a_host_that_is_not_the_doors_goes_nowhere() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    let run = world.registration(Identity::Write).repository("acme/api").send().await.unwrap();
    let before = world.github.requests().len();
    let host = world.door(0).host;
    let target = "/acme/api.git/info/refs?service=git-upload-pack";
    let upstream = world.github.url();
    let port = world.address(0).port();
    let with = |host: &str| format!("Host: {host}");
    for (line, hosts, status) in [
        (format!("GET https://{host}{target} HTTP/1.1"), with(&host), "400"),
        (format!("GET http://{host}{target} HTTP/1.1"), with(&host), "400"),
        (format!("GET {upstream}{target} HTTP/1.1"), with(&host), "400"),
        (format!("CONNECT {host} HTTP/1.1"), with(&host), "400"),
        (format!("CONNECT {} HTTP/1.1", upstream.trim_start_matches("https://")), with(&host), "400"),
        ("OPTIONS * HTTP/1.1".to_owned(), with(&host), "400"),
        (format!("GET {} HTTP/1.1", target.trim_start_matches('/')), with(&host), "400"),
        (format!("GET {target} HTTP/1.1"), "X: y".to_owned(), "400"),
        (format!("GET {target} HTTP/1.1"), format!("Host: {host}\r\nHost: {host}"), "400"),
        (format!("GET {target} HTTP/1.1"), format!("Host: {host}\r\nHost: evil.test"), "400"),
        (format!("GET {target} HTTP/1.1"), with("evil.test"), "421"),
        (format!("GET {target} HTTP/1.1"), with("evil.test@localhost"), "421"),
        (format!("GET {target} HTTP/1.1"), with(&format!("localhost.evil.test:{port}")), "421"),
        (format!("GET {target} HTTP/1.1"), with("localhost:8"), "421"),
        (format!("GET {target} HTTP/1.1"), with(""), "421"),
        (format!("GET {target} HTTP/1.1"), format!("Host: evil.test\r\nX-Forwarded-Host: {host}"), "421"),
        // The host is judged before the path is.
        ("GET /nothing HTTP/1.1".to_owned(), with("evil.test"), "421"),
    ] {
        let bytes = format!("{line}\r\n{hosts}\r\n{}\r\nConnection: close\r\n\r\n", credential(&run));
        let said = all_of(&world, bytes.as_bytes()).await;
        assert!(said.starts_with(&format!("HTTP/1.1 {status} ")), "{line} {hosts}: {said}");
        assert!(!said.contains("html"), "{said}");
    }
    assert_eq!(world.github.requests().len(), before);
    for host in ["localhost", "LOCALHOST", "localhost:443", "localhost:80", &format!("LocalHost:{port}")] {
        let request = Request::get(target).header("Host", host).basic(&run.bearer);
        assert_eq!(world.door(0).send(request).await.status, 200, "{host}");
    }
    world.finish().await;
}

#[tokio::test]
async fn a_refused_framing_or_host_is_told_with_its_reason_and_a_request_id() {
    let world = World::start(PROGRAM).await;
    for (request, status, reason) in [
        (Request::get("/").header("Host", "evil.test"), 421, "host"),
        (Request::get("/").header("Content-Length", "0").header("Content-Length", "0"), 400, "framing"),
        (Request::post("/").header("Content-Length", "5").chunked([&b"x"[..]]), 400, "framing"),
        (Request::get("/").header("Host", "a").header("Host", "b"), 400, "framing"),
        (Request::get("https://localhost/"), 400, "framing"),
    ] {
        let answer = world.door(0).send(request).await;
        assert_eq!((answer.status, answer.header("x-gitdoor-reason")), (status, Some(reason)), "{}", answer.text());
        assert!(answer.header("x-request-id").is_some());
        assert!(answer.text().starts_with("gitdoor: "));
    }
    world.finish().await;
}
