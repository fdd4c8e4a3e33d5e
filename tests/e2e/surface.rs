//! The surface over the wire: what is served, and what everything else is answered. Nothing that is refused goes up.

mod framing;

use gitdoor_proto::v1::Identity;
use gitdoor_tests::github::Route;
use gitdoor_tests::pkt::{self, EMPTY_PACK, GIT_CAPABILITIES, ZERO};
use gitdoor_tests::raw::{Request, Response};
use gitdoor_tests::world::World;
use serde_json::Value;

use crate::PROGRAM;

const TEXT: &str = "text/plain; charset=utf-8";
const LFS: &str = "application/vnd.git-lfs+json";

/// What every answer has, whatever it says.
#[track_caller]
fn assert_plain(answer: &Response, what: &str) {
    assert!(answer.header("x-request-id").is_some_and(|id| !id.is_empty()), "{what}: {:?}", answer.headers);
    let media = answer.header("content-type").unwrap_or_default();
    assert!(
        !media.contains("html") && !answer.text().trim_start().starts_with('<'),
        "{what}: {media} {}",
        answer.text()
    );
    let challenges = answer.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("www-authenticate"));
    let challenges: Vec<&str> = challenges.map(|(_, value)| value.as_str()).collect();
    let expected: &[&str] = if answer.status == 401 { &["Basic realm=\"gitdoor\""] } else { &[] };
    assert_eq!(challenges, expected, "{what}");
}

/// Requests that the path, the query or the method alone refuses: method, target, status, reason.
const UNSERVED: &[(&str, &str, u16, &str)] = &[
    ("GET", "/", 404, "no-route"),
    ("GET", "/favicon.ico", 404, "no-route"),
    ("GET", "/acme/api", 404, "no-route"),
    ("GET", "/acme/api.git", 404, "no-route"),
    ("GET", "/acme/api.git/HEAD", 404, "no-route"),
    ("GET", "/acme/api.git/config", 404, "no-route"),
    ("GET", "/acme/api.git/objects/info/packs", 404, "no-route"),
    ("GET", "/acme/api.git/objects/info/alternates", 404, "no-route"),
    ("GET", "/acme/api.git/objects/info/http-alternates", 404, "no-route"),
    ("GET", "/acme/api.git/objects/pack/pack-1111111111111111111111111111111111111111.pack", 404, "no-route"),
    ("GET", "/acme/api.git/objects/11/11111111111111111111111111111111111111", 404, "no-route"),
    ("GET", "/acme/api/archive/main.zip", 404, "no-route"),
    ("POST", "/acme/api.git/git-upload-archive", 404, "no-route"),
    ("POST", "/acme/api.git/Git-Receive-Pack", 404, "no-route"),
    ("GET", "/acme/api.git/info/refs/x", 404, "no-route"),
    ("GET", "/a/b/c/info/refs?service=git-upload-pack", 404, "no-route"),
    ("POST", "/evil/acme/api.git/git-receive-pack", 404, "no-route"),
    ("POST", "/acme/api.git/git-receive-pack/x", 404, "no-route"),
    ("PROPFIND", "/acme/api.git", 404, "no-route"),
    ("MKCOL", "/acme/api.git/refs", 404, "no-route"),
    ("LOCK", "/acme/api.git/info/refs", 405, "method"),
    ("HEAD", "/acme/api.git/info/refs?service=git-upload-pack", 405, "method"),
    ("POST", "/acme/api.git/info/refs?service=git-receive-pack", 405, "method"),
    ("DELETE", "/acme/api.git/info/refs?service=git-receive-pack", 405, "method"),
    ("GET", "/acme/api.git/git-upload-pack", 405, "method"),
    ("GET", "/acme/api.git/git-receive-pack", 405, "method"),
    ("PUT", "/acme/api.git/git-receive-pack", 405, "method"),
    ("OPTIONS", "/acme/api.git/git-receive-pack", 405, "method"),
    ("GET", "/acme/api.git/info/refs", 403, "service"),
    ("GET", "/acme/api.git/info/refs?", 403, "service"),
    ("GET", "/acme/api.git/info/refs?service=", 403, "service"),
    ("GET", "/acme/api.git/info/refs?service=git-upload-archive", 403, "service"),
    ("GET", "/acme/api.git/info/refs?service=Git-Upload-Pack", 403, "service"),
    ("GET", "/acme/api.git/info/refs?Service=git-upload-pack", 403, "service"),
    ("GET", "/acme/api.git/info/refs?service=git-upload-pack&service=git-receive-pack", 403, "service"),
    ("GET", "/acme/api.git/info/refs?service=git-upload-pack&service=git-upload-pack", 403, "service"),
    ("GET", "/acme/api.git/info/refs?service=git-upload-pack&servic%65=git-receive-pack", 403, "service"),
    ("GET", "/acme/api.git/info/refs?service=git-receive%2dpack", 403, "service"),
    ("GET", "//acme/api/info/refs?service=git-upload-pack", 400, "bad-path"),
    ("GET", "/acme//info/refs?service=git-upload-pack", 400, "bad-path"),
    ("GET", "/acme/api.git/info/refs/?service=git-upload-pack", 400, "bad-path"),
    ("POST", "/acme/api.git/git-receive-pack/", 400, "bad-path"),
    ("GET", "/acme/../info/refs?service=git-upload-pack", 400, "bad-path"),
    ("GET", "/acme/./info/refs?service=git-upload-pack", 400, "bad-path"),
    ("GET", "/acme/api.git/../web.git/info/refs?service=git-upload-pack", 400, "bad-path"),
    ("GET", "/acme/%2e%2e/info/refs?service=git-upload-pack", 400, "bad-path"),
    ("GET", "/acme/%252e%252e/info/refs?service=git-upload-pack", 400, "bad-path"),
    ("GET", "/acme/api.git/..%2f..%2fother/r.git/info/refs?service=git-upload-pack", 400, "bad-path"),
    ("GET", "/acme/api.git/..%252f..%252fother/r.git/info/refs", 400, "bad-path"),
    ("GET", "/acme%2fapi/x/info/refs?service=git-upload-pack", 400, "bad-path"),
    ("GET", "/acme/api%5cx/info/refs?service=git-upload-pack", 400, "bad-path"),
    ("GET", "/acme/api%00/info/refs?service=git-upload-pack", 400, "bad-path"),
    ("GET", "/acme/api%0d%0a/info/refs?service=git-upload-pack", 400, "bad-path"),
    ("GET", "/acme/%ff/info/refs?service=git-upload-pack", 400, "bad-path"),
    ("GET", "/acme/%61pi/info/refs?service=git-upload-pack", 400, "bad-repository"),
    ("GET", "/acme/api.git.git/info/refs?service=git-upload-pack", 400, "bad-repository"),
    ("GET", "/acme/.git/info/refs?service=git-upload-pack", 400, "bad-repository"),
    ("GET", "/ac~me/api/info/refs?service=git-upload-pack", 400, "bad-repository"),
    ("GET", "/acme:80/api/info/refs?service=git-upload-pack", 400, "bad-repository"),
    ("GET", "/acme/a~b/info/refs?service=git-upload-pack", 400, "bad-repository"),
];

#[tokio::test]
async fn what_is_not_served_says_so_in_plain_text_whoever_asks() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    let run = world.registration(Identity::Write).repository("acme/api").send().await.unwrap();
    let before = world.github.requests().len();
    for (method, target, status, reason) in UNSERVED {
        for request in [Request::new(method, target), Request::new(method, target).basic(&run.bearer)] {
            let answer = world.door(0).send(request.header("Connection", "close")).await;
            let what = format!("{method} {target}: {} {}", answer.status, answer.text());
            assert_eq!((answer.status, answer.header("x-gitdoor-reason")), (*status, Some(*reason)), "{what}");
            assert_plain(&answer, &what);
            assert_eq!(answer.header("content-type"), Some(TEXT), "{what}");
            let allowed = if target.contains("info/refs") { "GET" } else { "POST" };
            assert_eq!(answer.header("allow"), (*status == 405).then_some(allowed), "{what}");
            assert!(answer.complete || *method == "HEAD", "{what}");
        }
    }
    assert_eq!(world.github.requests().len(), before);
    world.finish().await;
}

#[tokio::test]
async fn both_spellings_of_a_repository_are_served_and_only_the_service_goes_up() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    let run = world.register(Identity::Write).await;
    for (service, route) in [("git-upload-pack", Route::FetchDiscovery), ("git-receive-pack", Route::PushDiscovery)]
    {
        for path in ["/acme/api.git", "/acme/api", "/ACME/Api.git", "/Acme/API"] {
            let target = format!("{path}/info/refs?service={service}&x=1&service_=2");
            let request = Request::get(&target).basic(&run.bearer).header("X-Request-Id", "mine");
            let request = request.header("X-Forwarded-Host", "evil.test").header("X-Forwarded-Proto", "http");
            let answer = world.door(0).send(request).await;
            assert_eq!(answer.status, 200, "{target}: {}", answer.text());
            assert!(answer.header("x-request-id").is_some_and(|id| id.len() > 8 && id != "mine"));
            let media = format!("application/x-{service}-advertisement");
            assert_eq!(answer.header("content-type"), Some(media.as_str()));
            let went_up = world.github.requests_for(route).pop().unwrap();
            assert_eq!(went_up.query, Some(format!("service={service}")));
            assert!(went_up.path.eq_ignore_ascii_case("/acme/api.git/info/refs"), "{}", went_up.path);
            assert_eq!(went_up.host, world.github.url().trim_start_matches("https://"));
            for name in ["x-forwarded-host", "x-forwarded-proto", "x-request-id"] {
                assert_eq!(went_up.header(name), None, "{name}");
            }
        }
    }
    let binding = world.show(&run).await.run.unwrap().binding.unwrap();
    assert_eq!(binding.repository, "acme/api");
    world.finish().await;
}

#[tokio::test]
async fn the_path_decides_what_a_request_is_and_not_its_query_or_type() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    let reader = world.register(Identity::Read).await;
    let section = pkt::commands(&[(ZERO, &"1".repeat(40), "refs/heads/x")], GIT_CAPABILITIES);
    let push = [section.as_slice(), EMPTY_PACK].concat();
    for media in ["application/x-git-upload-pack-request", "application/x-git-receive-pack-request", "text/html"] {
        let request = Request::post("/acme/api.git/git-receive-pack?service=git-upload-pack");
        let request = request.header("Content-Type", media).body(push.clone()).basic(&reader.bearer);
        let answer = world.door(0).send(request).await;
        assert_eq!((answer.status, answer.header("x-gitdoor-reason")), (200, Some("identity-read")), "{media}");
        assert!(pkt::report(&answer.body)[1].starts_with("ng refs/heads/x refused: "), "{}", answer.text());
    }
    assert_eq!(world.github.requests().len(), 0);
    world.finish().await;
}

#[tokio::test]
async fn a_request_without_a_good_bearer_is_challenged_on_every_route_and_never_goes_up() {
    let world = World::start(PROGRAM).await;
    world.github.seed("acme/open").public().create();
    let run = world.register(Identity::Write).await;
    let wrong = run.bearer.clone();
    let rotated = world.rotate(&run).await;
    let before = world.github.requests().len();
    for request in [
        Request::get("/acme/open.git/info/refs?service=git-upload-pack"),
        Request::get("/acme/open.git/info/refs?service=git-receive-pack"),
        Request::post("/acme/open.git/git-upload-pack").body("0000"),
        Request::push("acme/open", "0000"),
        Request::post("/acme/open.git/info/lfs/locks/verify").body("{}"),
        Request::post("/acme/open.git/info/lfs/objects/batch").body("{}"),
    ] {
        for (request, reason) in [
            (request.clone(), "no-credential"),
            (request.clone().header("Authorization", "Digest x"), "not-a-bearer"),
            (request.clone().basic("ghs_0123456789"), "not-a-bearer"),
            (request.clone().basic(&wrong), "bearer-wrong"),
        ] {
            let answer = world.door(0).send(request).await;
            assert_eq!((answer.status, answer.header("x-gitdoor-reason")), (401, Some(reason)));
            assert_plain(&answer, reason);
        }
        let twice = request.clone().basic(&rotated.bearer).basic(&rotated.bearer);
        let answer = world.door(0).send(twice).await;
        assert_eq!((answer.status, answer.header("x-gitdoor-reason")), (400, Some("two-credentials")));
    }
    assert_eq!(world.github.requests().len(), before);
    world.finish().await;
}

#[tokio::test]
async fn git_lfs_is_refused_in_its_own_language() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    let run = world.registration(Identity::Write).repository("acme/api").send().await.unwrap();
    let revoked = world.register(Identity::Write).await;
    world.revoke(&revoked).await;
    let before = world.github.requests().len();
    for (method, path, status, reason) in [
        ("POST", "locks/verify", 501, "lfs-locks"),
        ("POST", "locks", 501, "lfs-locks"),
        ("GET", "locks?limit=1", 501, "lfs-locks"),
        ("POST", "locks/1/unlock", 501, "lfs-locks"),
        ("POST", "objects/batch", 403, "lfs"),
        ("PUT", "objects/1111", 403, "lfs"),
        ("POST", "verify", 403, "lfs"),
    ] {
        for repository in ["/acme/api.git", "/acme/api"] {
            let request = Request::new(method, &format!("{repository}/info/lfs/{path}")).body("{\"operation\":1}");
            for (request, status, reason) in [
                (request.clone().basic(&run.bearer), status, reason),
                (request.clone().basic(&revoked.bearer), 403, "run-revoked"),
                (request.clone(), 401, "no-credential"),
            ] {
                let answer = world.door(0).send(request).await;
                let what = format!("{method} {path}: {}", answer.text());
                assert_eq!((answer.status, answer.header("x-gitdoor-reason")), (status, Some(reason)), "{what}");
                assert_eq!(answer.header("content-type"), Some(LFS), "{what}");
                assert!(answer.header("x-request-id").is_some(), "{what}");
                assert_eq!(answer.header("www-authenticate").is_some(), status == 401, "{what}");
                let message: Value = serde_json::from_slice(&answer.body).unwrap();
                assert!(message["message"].as_str().unwrap().starts_with("gitdoor: "), "{what}");
            }
        }
    }
    assert_eq!(world.github.requests().len(), before);
    world.finish().await;
}
