//! The report that refuses a push: its framing is the one that the client asked for, its names are the client's.

use gitdoor_proto::v1::{Identity, PushOutcome};
use gitdoor_tests::github::Route;
use gitdoor_tests::pkt::{self, EMPTY_PACK, GIT_CAPABILITIES, ZERO};
use gitdoor_tests::raw::Request;
use gitdoor_tests::world::World;

use super::{ID, assert_refusal, body, bound};
use crate::PROGRAM;

const RESULT: Option<&str> = Some("application/x-git-receive-pack-result");

/// What a refused push of `main` and `x` is answered, without side-band.
const BARE: &[u8] = b"000eunpack ok\n\
    002fng refs/heads/main refused: default branch\n\
    0042ng refs/heads/x refused: another ref of this push was refused\n\
    0000";

#[tokio::test]
async fn a_refusal_is_framed_as_the_client_asked_and_never_reads_as_success() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    let run = bound(&world).await;
    let before = world.github.requests().len();
    let refs = [(ID, ID, "refs/heads/main"), (ZERO, ID, "refs/heads/x")];
    for status in ["", "report-status", "report-status-v2", "report-status report-status-v2"] {
        for band in ["", "side-band", "side-band-64k", "side-band side-band-64k"] {
            let capabilities = format!("{status} {band} quiet object-format=sha1 agent=x unheard-of=1");
            let push = Request::push("acme/api", body(&refs, &capabilities)).basic(&run.bearer);
            let answer = world.door(0).send(push).await;
            if status.is_empty() {
                // It cannot be told in a report, and an empty answer would tell it that all went well.
                assert_refusal(&answer, 403, "default-branch", &capabilities);
                assert!(answer.text().contains("acme/api other than main"), "{}", answer.text());
                continue;
            }
            assert_refusal(&answer, 200, "default-branch", &capabilities);
            assert_eq!(answer.header("content-type"), RESULT);
            if band.ends_with("64k") {
                assert_eq!(pkt::band(&answer.body, 1), BARE, "{capabilities}");
                let id = answer.header("x-request-id").unwrap();
                let hint = "gitdoor: this run may push branches of acme/api other than main";
                let hints = format!("{hint}\ngitdoor: request {id}\n");
                assert_eq!(String::from_utf8(pkt::band(&answer.body, 2)).unwrap(), hints);
                // The report's own flush, and the one that ends the bands.
                assert!(answer.body.ends_with(b"00000000"), "{:?}", answer.text());
                assert_eq!(pkt::split(&answer.body).last(), Some(&None));
            } else {
                assert_eq!(answer.body, BARE, "{capabilities}");
            }
        }
    }
    assert_eq!(world.github.requests().len(), before);
    world.finish().await;
}

#[tokio::test]
async fn a_ref_name_that_git_would_not_take_is_refused_with_its_bytes_as_they_came() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    let long = format!("refs/heads/{}", "x".repeat(1020)).into_bytes();
    for name in [
        &b"refs/heads/\xc0"[..],
        b"refs/heads/\xff\xfe/x",
        b"refs/heads/\xed\xa0\x80",
        b"refs/heads/a..b",
        b"refs/heads/../../config",
        b"refs/heads/a@{0}",
        b"refs/heads/\x07bell",
        b"refs/heads/\x1b[31m",
        b"refs/heads/a\x7f",
        b"refs/heads/x.lock",
        b"refs/heads/x.lock/y",
        b"refs/heads/x.",
        b"refs/heads/.x",
        b"refs/heads/x/",
        b"refs/heads//x",
        b"refs/heads/",
        b"/refs/heads/x",
        b"refs/heads/a b",
        b"refs/heads/a ",
        b"refs/heads/a~1",
        b"refs/heads/a^",
        b"refs/heads/a:b",
        b"refs/heads/a?",
        b"refs/heads/a*",
        b"refs/heads/a[",
        b"refs/heads/a\\b",
        b"refs/heads/main\r",
        b"HEAD",
        b"main",
        b" refs/heads/x",
        &long,
    ] {
        let what = String::from_utf8_lossy(name);
        let run = bound(&world).await;
        let before = world.github.requests().len();
        for capabilities in [" report-status", " report-status-v2 side-band-64k"] {
            let command = [format!("{ZERO} {ID} ").as_bytes(), name, b"\0", capabilities.as_bytes()].concat();
            let section = [&pkt::line(command), &b"0000"[..], EMPTY_PACK].concat();
            let answer = world.door(0).send(Request::push("acme/api", section).basic(&run.bearer)).await;
            assert_refusal(&answer, 200, "ref-invalid", &what);
            let banded = pkt::band(&answer.body, 1);
            let report = if banded.is_empty() { answer.body.clone() } else { banded };
            let line = [b"ng ", name, b" refused: invalid ref name\n"].concat();
            let expected = [pkt::line("unpack ok\n"), pkt::line(line), b"0000".to_vec()].concat();
            assert_eq!(report, expected, "{what}");
        }
        let pushes = world.show(&run).await.pushes;
        assert!(pushes.iter().all(|push| push.refs[0].ref_name == name), "{what}: {pushes:?}");
        assert_eq!((pushes.len(), world.github.requests().len()), (2, before), "{what}");
    }
    world.finish().await;
}

#[tokio::test]
async fn a_ref_that_is_named_twice_is_refused_wherever_it_stands() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    let run = bound(&world).await;
    let before = world.github.requests().len();
    let twice = "ng refs/heads/a refused: ref named twice";
    let other = "ng refs/heads/b refused: another ref of this push was refused";
    for (names, lines) in [
        (&["a", "a"][..], &[twice, twice][..]),
        (&["a", "b", "a"], &[twice, other, twice]),
        (&["b", "a", "a", "b2"], &[other, twice, twice]),
    ] {
        let names: Vec<String> = names.iter().map(|name| format!("refs/heads/{name}")).collect();
        let commands: Vec<_> = names.iter().map(|name| (ZERO, ID, name.as_str())).collect();
        let push = Request::push("acme/api", body(&commands, GIT_CAPABILITIES)).basic(&run.bearer);
        let answer = world.door(0).send(push).await;
        assert_refusal(&answer, 200, "ref-repeated", "twice");
        let report = pkt::report(&answer.body);
        assert_eq!(report[1..=lines.len()], *lines);
        assert_eq!(report.len(), names.len() + 1);
    }
    assert_eq!(world.github.requests().len(), before);
    world.finish().await;
}

#[tokio::test]
async fn as_many_refs_as_a_section_holds_each_get_their_line() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    let run = bound(&world).await;
    let names: Vec<String> =
        (0..600).map(|n| format!("refs/heads/n{n}")).chain(["refs/heads/main".into()]).collect();
    let commands: Vec<_> = names.iter().map(|name| (ZERO, ID, name.as_str())).collect();
    let push = Request::push("acme/api", body(&commands, GIT_CAPABILITIES)).basic(&run.bearer);
    let report = pkt::report(&world.door(0).send(push).await.body);
    assert_eq!(report.len(), 602);
    for (line, name) in report.iter().skip(1).zip(&names) {
        assert!(line.starts_with(&format!("ng {name} refused: ")), "{line}");
    }
    assert!(world.github.pushes().is_empty());
    world.finish().await;
}

#[tokio::test]
async fn a_push_by_a_run_that_is_not_bound_there_is_refused_before_any_mint() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    world.github.create("acme/web");
    let unbound = world.register(Identity::Write).await;
    let reader = world.register(Identity::Read).await;
    let none = world.register(Identity::None).await;
    let before = world.github.requests().len();
    let push = |repository: &str| Request::push(repository, body(&[(ZERO, ID, "refs/heads/x")], GIT_CAPABILITIES));
    for (run, code, words) in [
        (&unbound, "run-unbound", "this run is bound to no repository yet"),
        (&reader, "identity-read", "this run may fetch and read, but not push"),
    ] {
        let answer = world.door(0).send(push("acme/api").basic(&run.bearer)).await;
        assert_refusal(&answer, 200, code, code);
        let report = pkt::report(&answer.body);
        assert!(report[1].starts_with(&format!("ng refs/heads/x refused: {words}")), "{report:?}");
    }
    let answer = world.door(0).send(push("acme/api").basic(&none.bearer)).await;
    assert_refusal(&answer, 403, "identity-none", "identity none");
    assert_eq!(world.github.requests().len(), before);

    let run = bound(&world).await;
    let answer = world.door(0).send(push("acme/web").basic(&run.bearer)).await;
    assert_refusal(&answer, 200, "bound-elsewhere", "elsewhere");
    let report = pkt::report(&answer.body);
    assert!(report[1].starts_with("ng refs/heads/x refused: this run is bound to acme/api"), "{report:?}");
    assert!(world.github.pushes().is_empty());
    assert!(world.github.requests_for(Route::PushDiscovery).is_empty());
    assert_eq!(world.show(&run).await.pushes[0].outcome(), PushOutcome::Refused);
    assert!(world.show(&unbound).await.run.unwrap().binding.is_none());
    world.finish().await;
}
