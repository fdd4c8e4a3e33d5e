//! Pushes by hand, for what no stock git would send: each rule of the command section, codings, framings, probes.

mod coding;
mod probe;
mod recorded;
mod report;

use gitdoor_proto::v1::Identity;
use gitdoor_tests::pkt::{self, EMPTY_PACK, FLUSH, GIT_CAPABILITIES, ZERO};
use gitdoor_tests::raw::{Request, Response};
use gitdoor_tests::world::{Run, World};

use crate::PROGRAM;

/// An object id of SHA-1.
const ID: &str = "1111111111111111111111111111111111111111";
/// One of SHA-256.
const LONG_ID: &str = "1111111111111111111111111111111111111111111111111111111111111111";

/// A write run that is bound to `acme/api`.
async fn bound(world: &World) -> Run {
    world.registration(Identity::Write).repository("acme/api").send().await.unwrap()
}

/// A push of these commands, each `(old, new, ref)`, with an empty pack.
fn body(commands: &[(&str, &str, &str)], capabilities: &str) -> Vec<u8> {
    [pkt::commands(commands, capabilities).as_slice(), EMPTY_PACK].concat()
}

/// A section of these lines, a flush, and what follows it.
fn section(lines: &[&[u8]], after: &[u8]) -> Vec<u8> {
    let lines: Vec<u8> = lines.iter().flat_map(pkt::line).collect();
    [&lines, FLUSH, after].concat()
}

/// The first command, with what stands after its NUL.
fn first(name: &str, capabilities: &str) -> Vec<u8> {
    format!("{ZERO} {ID} refs/heads/{name}\0{capabilities}").into_bytes()
}

#[track_caller]
fn assert_refusal(answer: &Response, status: u16, code: &str, what: &str) {
    assert_eq!(answer.status, status, "{what}: {}", answer.text());
    assert_eq!(answer.header("x-gitdoor-reason"), Some(code), "{what}");
    assert!(answer.header("x-request-id").is_some_and(|id| !id.is_empty()), "{what}");
    let challenges = answer.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("www-authenticate"));
    assert_eq!(challenges.count(), usize::from(status == 401), "{what}");
    assert!(answer.complete, "{what}");
}

/// Bodies that break a rule of the section, and words of what is said of them.
fn malformed() -> Vec<(Vec<u8>, &'static str)> {
    let caps = " report-status side-band-64k";
    let good = first("x", caps);
    let second = |line: &str| section(&[&good, line.as_bytes()], EMPTY_PACK);
    let alone = |line: &str| section(&[line.as_bytes()], EMPTY_PACK);
    let with = |capabilities: &str| section(&[&first("x", capabilities)], EMPTY_PACK);
    let length = |digits: &str| [digits.as_bytes(), &section(&[&good], EMPTY_PACK)].concat();
    let many: Vec<u8> = (0..700).flat_map(|n| pkt::line(format!("{ZERO} {ID} refs/heads/many/{n:06}"))).collect();
    let many = [&pkt::line(&good), &many, FLUSH, EMPTY_PACK].concat();
    let delete = format!("{ID} {ZERO} refs/heads/x\0{caps}");
    vec![
        (length("+0a4"), "hex"),
        (length("-001"), "hex"),
        (length(" 0a4"), "hex"),
        (length("0x1f"), "hex"),
        (length("<htm"), "hex"),
        (length("0001"), "reserved length"),
        (length("0002"), "reserved length"),
        (length("0003"), "reserved length"),
        (length("fff1"), "longer than 65520"),
        (length("ffff"), "longer than 65520"),
        (many, "64 KiB"),
        (Vec::new(), "empty"),
        (pkt::line(&good), "ended inside"),
        (pkt::line(&good)[..40].to_vec(), "ended inside"),
        (b"00".to_vec(), "ended inside"),
        (alone("hello"), "<old> <new> <ref>"),
        (alone(""), "<old> <new> <ref>"),
        (alone(&format!("{ZERO} {ID}")), "<old> <new> <ref>"),
        (alone(&format!("{ZERO}  {ID} refs/heads/x")), "hex digits"),
        (alone(&format!("{ZERO}\t{ID} refs/heads/x")), "<old> <new> <ref>"),
        (alone(&format!("{ZERO} {} refs/heads/x", "1".repeat(39))), "40 or 64 hex digits"),
        (alone(&format!("{ZERO} {} refs/heads/x", "g".repeat(40))), "40 or 64 hex digits"),
        (alone("shallow 1234"), "40 or 64 hex digits"),
        (alone(&format!("{LONG_ID} {LONG_ID} refs/heads/x")), "object format"),
        (alone(&format!("{ZERO} {LONG_ID} refs/heads/x\0 object-format=sha1")), "object format"),
        (second(&format!("{LONG_ID} {LONG_ID} refs/heads/y")), "object format"),
        (alone(&format!("{ZERO} {ID} ")), "names no ref"),
        (alone(&format!("{ZERO} {ID} refs/heads/x\nrefs/heads/main")), "line feed"),
        (second(&format!("shallow {ID}")), "shallow line follows"),
        (second(&format!("{ZERO} {ID} refs/heads/y\0 report-status")), "only the first command"),
        (with(" report-status\tside-band-64k"), "printable ASCII"),
        (with(" report-status\u{e9}"), "printable ASCII"),
        (with(" report-status\0push-options"), "printable ASCII"),
        (with(" object-format=sha1 object-format=sha256"), "object format"),
        (with(" object-format=md5"), "object format"),
        (with(" object-format"), "object format"),
        (with(" report-status push-options"), "without --push-option"),
        (with(" report-status push-options=no"), "without --push-option"),
        (with(" report-status push-cert=nonce"), "without --signed"),
        (section(&[b"push-cert\0 report-status", b"certificate version 0.1"], EMPTY_PACK), "without --signed"),
        (section(&[b"push-cert"], EMPTY_PACK), "without --signed"),
        (section(&[&good, b"push-cert\0 x"], EMPTY_PACK), "without --signed"),
        ([FLUSH, b"x"].concat(), "no pack"),
        ([FLUSH, FLUSH].concat(), "no pack"),
        ([FLUSH, &section(&[&good], EMPTY_PACK)].concat(), "no pack"),
        (section(&[format!("shallow {ID}").as_bytes()], EMPTY_PACK), "no pack"),
        (section(&[delete.as_bytes()], EMPTY_PACK), "no pack"),
        (section(&[&good], b""), "no pack follows"),
        (section(&[&good], b"PAC"), "no pack follows"),
        (section(&[&good], b"pack"), "not a pack"),
        (section(&[&good], b"0000PACK"), "not a pack"),
        (section(&[&good], &[pkt::line("ci.skip").as_slice(), FLUSH, EMPTY_PACK].concat()), "not a pack"),
    ]
}

#[tokio::test]
async fn a_malformed_push_is_told_in_words_to_a_good_bearer_and_never_goes_up() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    let run = bound(&world).await;
    let before = world.github.requests().len();
    for (body, words) in malformed() {
        let what = format!("{:?}", String::from_utf8_lossy(&body[..body.len().min(120)]));
        let whole = Request::push("acme/api", body.clone()).basic(&run.bearer);
        let answer = world.door(0).send(whole).await;
        assert_refusal(&answer, 400, "malformed-push", &what);
        assert_eq!(answer.header("content-type"), Some("text/plain; charset=utf-8"), "{what}");
        assert!(answer.text().contains(words), "{what}: {}", answer.text());
        // The same words at any chunking.
        let chunks: Vec<&[u8]> = body.chunks(1.max(body.len() / 100)).collect();
        let chunked = Request::post("/acme/api.git/git-receive-pack").basic(&run.bearer).chunked(chunks);
        let answer = world.door(0).send(chunked).await;
        assert_refusal(&answer, 400, "malformed-push", &what);
        assert!(answer.text().contains(words), "{what}: {}", answer.text());
    }
    assert_eq!(world.github.requests().len(), before);
    assert!(world.show(&run).await.pushes.is_empty());
    world.finish().await;
}

#[tokio::test]
async fn a_malformed_push_tells_a_bad_bearer_of_its_bearer_only() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    let (rotated, revoked) = (bound(&world).await, bound(&world).await);
    world.rotate(&rotated).await;
    world.revoke(&revoked).await;
    let none = world.register(Identity::None).await;
    let unknown = rotated.bearer.replace(&rotated.id, "no-such-run");
    let before = world.github.requests().len();
    let broken = section(&[b"hello"], b"");
    for (bearer, status, code) in [
        (rotated.bearer.as_str(), 401, "bearer-wrong"),
        (unknown.as_str(), 404, "run-unknown"),
        (revoked.bearer.as_str(), 403, "run-revoked"),
        (none.bearer.as_str(), 403, "identity-none"),
        ("no-bearer", 401, "not-a-bearer"),
    ] {
        let plain = Request::push("acme/api", broken.clone()).basic(bearer);
        let gzip = plain.clone().header("Content-Encoding", "gzip");
        let coding = plain.clone().header("Content-Encoding", "br");
        for request in [plain, gzip, coding] {
            let answer = world.door(0).send(request).await;
            assert_refusal(&answer, status, code, code);
            assert!(!answer.text().contains("<old> <new> <ref>"), "{}", answer.text());
        }
    }
    let nobody = world.door(0).send(Request::push("acme/api", broken)).await;
    assert_refusal(&nobody, 401, "no-credential", "no bearer");
    assert_eq!(world.github.requests().len(), before);
    world.finish().await;
}

#[tokio::test]
async fn after_a_malformed_push_was_drained_its_connection_goes_on() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    let run = bound(&world).await;
    let door = world.door(0);
    let mut connection = door.connect().await.unwrap();
    let broken = [section(&[b"hello"], b""), vec![b'x'; 2 << 20]].concat();
    for _ in 0..2 {
        let request = Request::push("acme/api", broken.clone()).basic(&run.bearer);
        connection.write(&request.to_bytes(&door.host)).await.unwrap();
        assert_refusal(&connection.response().await.unwrap(), 400, "malformed-push", "on one connection");
    }
    let request = Request::push("acme/api", body(&[(ZERO, ID, "refs/heads/main")], GIT_CAPABILITIES));
    connection.write(&request.basic(&run.bearer).to_bytes(&door.host)).await.unwrap();
    let answer = connection.response().await.unwrap();
    assert_eq!(pkt::report(&answer.body), ["unpack ok", "ng refs/heads/main refused: default branch"]);
    assert!(world.github.pushes().is_empty());
    world.finish().await;
}
