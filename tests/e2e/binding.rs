//! The binding: what binds a run to a repository, what does not, and that it holds under any name and after any end.

use std::time::Duration;

use gitdoor_proto::v1::{Binding, Identity};
use gitdoor_tests::git;
use gitdoor_tests::github::{Canned, Fault, Route};
use gitdoor_tests::pkt;
use gitdoor_tests::raw::{Request, Response};
use gitdoor_tests::world::{Run, World};
use serde_json::json;

use crate::PROGRAM;

const ADVERTISEMENT: &str = "application/x-git-receive-pack-advertisement";

fn push_discovery(repository: &str) -> Request {
    Request::get(&format!("/{repository}.git/info/refs?service=git-receive-pack"))
}

async fn discover(world: &World, run: &Run, repository: &str) -> Response {
    world.door(0).send(push_discovery(repository).basic(&run.bearer)).await
}

async fn binding(world: &World, run: &Run) -> Option<Binding> {
    world.show(run).await.run.unwrap().binding
}

/// The data of a first packet, a flush, and one ref.
fn advertisement(first: &str) -> Vec<u8> {
    let id = "1".repeat(40);
    let refs = pkt::line(format!("{id} refs/heads/main\0report-status\n"));
    [pkt::line(first), pkt::FLUSH.to_vec(), refs, pkt::FLUSH.to_vec()].concat()
}

#[tokio::test]
async fn nothing_but_a_real_advertisement_binds() {
    let world = World::start(PROGRAM).await;
    let good = advertisement("# service=git-receive-pack\n");
    let said = |media: &str, body: &[u8]| Fault::Answer(Canned::status(200).body(media, body.to_vec()));
    let table = [
        ("another type", said("text/html", &good), 502),
        ("the other service's type", said("application/x-git-upload-pack-advertisement", &good), 502),
        ("another first packet", said(ADVERTISEMENT, &advertisement("# service=git-upload-pack\n")), 502),
        ("no first packet", said(ADVERTISEMENT, b""), 502),
        ("not packets", said(ADVERTISEMENT, b"<html>hello</html>"), 502),
        ("a first packet cut short", said(ADVERTISEMENT, &good[..10]), 502),
        ("cut on the wire", Fault::Cut(10), 502),
        ("gzip", Fault::Gzip, 502),
        ("204", Fault::Answer(Canned::status(204)), 502),
        ("500", Fault::Answer(Canned::status(500)), 502),
        ("404", Fault::Answer(Canned::status(404)), 404),
        ("403, twice", Fault::Answer(Canned::status(403)), 403),
        ("a reset", Fault::Reset, 502),
    ];
    let clean = discover_cleanly(&world).await;
    for (number, (what, fault, status)) in table.into_iter().enumerate() {
        let repository = format!("acme/r{number}");
        world.github.create(&repository);
        let run = world.register(Identity::Write).await;
        let times = if status == 403 { 2 } else { 1 };
        world.github.when(Route::PushDiscovery).times(times).then(fault);
        let answer = discover(&world, &run, &repository).await;
        assert_eq!(answer.status, status, "{what}: {answer:?}");
        assert!(answer.header("content-type").unwrap().starts_with("text/plain"), "{what}");
        assert!(binding(&world, &run).await.is_none(), "{what}: it is bound");
        world.github.heal();
        let answer = discover(&world, &run, &repository).await;
        assert_eq!(answer.status, 200, "{what}, then well: {}", answer.text());
        assert_eq!(binding(&world, &run).await.unwrap().repository, repository, "{what}");
    }
    drop(clean);
    world.finish().await;
}

/// A first discovery, so that all that follows finds a warm door.
async fn discover_cleanly(world: &World) -> Run {
    world.github.create("acme/warm");
    let run = world.register(Identity::Write).await;
    assert_eq!(discover(world, &run, "acme/warm").await.status, 200);
    run
}

#[tokio::test]
async fn a_repository_that_is_not_there_binds_nothing_and_another_may() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    let run = world.register(Identity::Write).await;
    let git = world.git(&run).cloned("acme/api").await;
    git.commit("a", "a").await;
    git.run(&["push", &git.url("acme/ap"), "HEAD:fix-x"]).await.code_is(128).says("acme/ap is not a repository");
    let mints = world.github.mints().len();
    git.run(&["push", &git.url("acme/ap"), "HEAD:fix-x"]).await.code_is(128).says("acme/ap is not a repository");
    assert_eq!(world.github.mints().len(), mints, "it is remembered");
    assert!(binding(&world, &run).await.is_none());
    git.run(&["push", "origin", "HEAD:fix-x"]).await.ok();
    assert_eq!(binding(&world, &run).await.unwrap().repository, "acme/api");
    assert!(world.github.ref_of("acme/api", "refs/heads/fix-x").is_some());
    world.finish().await;
}

#[tokio::test]
async fn nothing_binds_when_the_id_or_the_default_branch_cannot_be_read() {
    let world = World::start(PROGRAM).await;
    let edit = |name: &'static str, value: serde_json::Value| {
        Fault::edit(move |answer| {
            answer[name] = value.clone();
        })
    };
    let table = [
        ("404", Fault::Answer(Canned::status(404).message("Not Found"))),
        ("500", Fault::Answer(Canned::status(500))),
        ("403", Fault::Answer(Canned::status(403).message("Resource not accessible by integration"))),
        ("429", Fault::Answer(Canned::status(429).header("retry-after", "40").message("rate limit"))),
        ("not JSON", Fault::Answer(Canned::status(200).body("application/json", "<html>"))),
        ("a reset", Fault::Reset),
        ("no id", edit("id", serde_json::Value::Null)),
        ("another id", edit("id", json!(1))),
        ("id as text", edit("id", json!("8100017"))),
        ("no default branch", edit("default_branch", serde_json::Value::Null)),
        ("an empty default branch", edit("default_branch", json!(""))),
        ("no name", edit("full_name", serde_json::Value::Null)),
    ];
    for (number, (what, fault)) in table.into_iter().enumerate() {
        let repository = format!("acme/r{number}");
        world.github.create(&repository);
        let run = world.register(Identity::Write).await;
        world.github.when(Route::Repository).always().then(fault);
        let answer = discover(&world, &run, &repository).await;
        assert_eq!(answer.status, 503, "{what}: {answer:?}");
        assert!(answer.header("retry-after").is_some(), "{what}");
        assert!(answer.text().contains("cannot be read"), "{what}: {}", answer.text());
        assert!(!answer.text().contains("refs/heads"), "{what}: refs were shown");
        assert!(binding(&world, &run).await.is_none(), "{what}: it is bound");
        world.github.heal();
        let named = world.registration(Identity::Write).id(&format!("named-{number}")).repository(&repository);
        assert!(named.send().await.is_ok(), "{what}: it is remembered");
    }
    world.finish().await;
}

#[tokio::test]
async fn of_two_first_pushes_one_binds_and_the_other_is_told() {
    let world = World::builder(PROGRAM).dataplanes(2).start().await;
    for number in 0..8 {
        let names = [format!("acme/a{number}"), format!("acme/b{number}")];
        for name in &names {
            world.github.create(name);
        }
        let run = world.register(Identity::Write).await;
        let (first, second) = (world.git_at(0, &run.bearer), world.git_at(1, &run.bearer));
        let (first, second) = tokio::join!(first.cloned(&names[0]), second.cloned(&names[1]));
        tokio::join!(first.commit("f", "1"), second.commit("f", "2"));
        let push = ["push", "origin", "HEAD:fix-x"];
        let pushes = tokio::join!(first.run(&push), second.run(&push));
        let bound = binding(&world, &run).await.unwrap().repository;
        let (won, lost) = if bound == names[0] { (pushes.0, pushes.1) } else { (pushes.1, pushes.0) };
        won.ok();
        lost.code_is(128).says("remote: gitdoor: this run is bound to").says(&bound);
        let landed = names.iter().filter(|name| world.github.ref_of(name, "refs/heads/fix-x").is_some());
        assert_eq!(landed.collect::<Vec<_>>(), [&bound]);
    }
    world.finish().await;
}

#[tokio::test]
async fn many_first_pushes_to_one_repository_bind_it_once_and_all_go_on() {
    let world = World::builder(PROGRAM).dataplanes(2).start().await;
    world.github.create("acme/api");
    let run = world.register(Identity::Write).await;
    let doors = (0..8).map(|number| {
        let (door, request) = (world.door(number % 2), push_discovery("acme/API").basic(&run.bearer));
        async move { door.send(request).await.status }
    });
    let statuses = futures_util::future::join_all(doors).await;
    assert_eq!(statuses, [200; 8]);
    assert_eq!(binding(&world, &run).await.unwrap().repository, "acme/api");
    world.finish().await;
}

#[tokio::test]
async fn a_name_is_the_same_in_any_case_and_with_or_without_git() {
    let world = World::start(PROGRAM).await;
    let id = world.github.create("Acme/Api");
    let run = world.register(Identity::Write).await;
    let git = world.git(&run).cloned("aCME/aPI").await;
    git.commit("a", "a").await;
    git.run(&["push", "origin", "HEAD:one"]).await.ok();
    let bound = binding(&world, &run).await.unwrap();
    assert_eq!((bound.repository.as_str(), bound.repository_id), ("Acme/Api", id));
    for (number, name) in ["acme/api", "ACME/API", "Acme/Api"].into_iter().enumerate() {
        git.run(&["push", &git.url(name), &format!("HEAD:two-{number}")]).await.ok();
        let bare = git.url(name).replace(".git", "");
        git.run(&["push", &bare, &format!("HEAD:three-{number}")]).await.ok();
    }
    assert_eq!(world.github.refs("Acme/Api").len(), 8);
    assert!(world.github.mints().iter().all(|mint| !mint.body.contains_str("/")), "only bare names are asked for");
    world.finish().await;
}

/// Text in bytes.
trait ContainsText {
    fn contains_str(&self, text: &str) -> bool;
}

impl ContainsText for Vec<u8> {
    fn contains_str(&self, text: &str) -> bool {
        String::from_utf8_lossy(self).contains(text)
    }
}

#[tokio::test]
async fn reading_never_binds() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    world.github.create("acme/web");
    let run = world.register(Identity::Write).await;
    for repository in ["acme/api", "acme/web"] {
        let git = world.git(&run).cloned(repository).await;
        git.run(&["fetch", "origin"]).await.ok();
        git.run(&["ls-remote"]).await.ok();
        assert!(binding(&world, &run).await.is_none());
    }
    let section = pkt::commands(&[(pkt::ZERO, &"1".repeat(40), "refs/heads/x")], pkt::GIT_CAPABILITIES);
    let push = Request::push("acme/api", [section.as_slice(), pkt::EMPTY_PACK].concat()).basic(&run.bearer);
    let answer = world.door(0).send(push).await;
    assert!(pkt::report(&answer.body)[1].contains("bound to no repository yet"), "{}", answer.text());
    let probe = world.door(0).send(Request::push("acme/api", pkt::FLUSH).basic(&run.bearer)).await;
    assert_eq!((probe.status, probe.header("x-gitdoor-reason")), (403, Some("run-unbound")));
    assert!(binding(&world, &run).await.is_none(), "a POST never binds");
    assert!(world.github.pushes().is_empty());
    world.finish().await;
}

#[tokio::test]
async fn a_run_without_a_binding_has_ten_push_discoveries_a_minute() {
    let world = World::start(PROGRAM).await;
    let run = world.register(Identity::Write).await;
    for number in 0..10 {
        assert_eq!(discover(&world, &run, &format!("acme/no{number}")).await.status, 404);
    }
    world.github.create("acme/api");
    let answer = discover(&world, &run, "acme/api").await;
    assert_eq!((answer.status, answer.header("x-gitdoor-reason")), (429, Some("discovery-limit")));
    let wait: u64 = answer.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
    assert!(answer.text().contains("10 pushes a minute"), "{}", answer.text());
    let git = world.git(&run).cloned("acme/api").await;
    git.commit("a", "a").await;
    git.run(&["push", "origin", "HEAD:x"]).await.code_is(128).says("10 pushes a minute").says("429");
    let other = world.register(Identity::Write).await;
    assert_eq!(discover(&world, &other, "acme/api").await.status, 200, "the limit is a run's own");
    world.finish().await;
}

#[tokio::test]
async fn a_bound_repository_is_followed_to_its_new_name() {
    for installed in git::all() {
        let world = World::start(PROGRAM).await;
        let id = world.github.create("acme/old");
        let run = world.register(Identity::Write).await;
        let git = world.git(&run).program(&installed).cloned("acme/old").await;
        git.commit("a", "a").await;
        git.run(&["push", "origin", "HEAD:before"]).await.ok();
        world.github.rename("acme/old", "acme/new");
        git.commit("a", "b").await;
        for (name, branch) in [("acme/old", "by-old"), ("acme/new", "by-new"), ("acme/old", "by-old-again")] {
            let push = git.run(&["push", &git.url(name), &format!("HEAD:{branch}")]).await.ok();
            push.does_not_say("redirect");
            assert!(world.github.ref_of("acme/new", &format!("refs/heads/{branch}")).is_some());
            let answer = discover(&world, &run, name).await;
            assert_eq!((answer.status, answer.header("location")), (200, None), "{name}");
        }
        for name in ["acme/old", "acme/new"] {
            git.run(&["fetch", &git.url(name)]).await.ok().does_not_say("redirect");
        }
        assert_eq!(binding(&world, &run).await.unwrap().repository_id, id);
        git.run(&["push", &git.url("acme/old"), "HEAD:main"]).await.code_is(1).says("refused: default branch");
        world.finish().await;
    }
}

#[tokio::test]
async fn a_repository_that_takes_the_old_name_is_another() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/old");
    let run = world.register(Identity::Write).await;
    let git = world.git(&run).cloned("acme/old").await;
    git.commit("a", "a").await;
    git.run(&["push", "origin", "HEAD:before"]).await.ok();
    world.github.rename("acme/old", "acme/new");
    git.run(&["push", &git.url("acme/old"), "HEAD:renamed"]).await.ok();
    world.github.create("acme/old");
    let before = world.github.refs("acme/old");
    let push = git.run(&["push", &git.url("acme/old"), "HEAD:stolen"]).await.code_is(128);
    push.says("remote: gitdoor: the forge knows no such repository");
    let section =
        pkt::commands(&[(pkt::ZERO, &git.id_of("HEAD").await, "refs/heads/stolen")], pkt::GIT_CAPABILITIES);
    let raw = Request::push("acme/old", [section.as_slice(), pkt::EMPTY_PACK].concat()).basic(&run.bearer);
    world.door(0).send(raw).await;
    assert_eq!(world.github.refs("acme/old"), before, "the thief's repository was written to");
    git.run(&["push", &git.url("acme/new"), "HEAD:still"]).await.ok();
    world.finish().await;
}

#[tokio::test]
async fn a_rename_that_leads_to_another_repository_is_not_followed() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    world.github.create("acme/web");
    let run = world.registration(Identity::Write).repository("acme/api").send().await.unwrap();
    let to =
        |repository: &str| format!("{}/{repository}.git/info/refs?service=git-receive-pack", world.github.url());
    let elsewhere = [
        (to("acme/web"), 403),
        ("https://evil.test/acme/api.git/info/refs?service=git-receive-pack".to_owned(), 502),
        (format!("{}/acme/api.git/info/refs?service=git-upload-pack", world.github.url()), 502),
        ("/login".to_owned(), 502),
    ];
    for (location, status) in elsewhere {
        let canned = Canned::status(301).header("location", &location);
        world.github.when(Route::PushDiscovery).answer(canned);
        let answer = discover(&world, &run, "acme/api").await;
        assert_eq!((answer.status, answer.header("location")), (status, None), "{location}: {}", answer.text());
    }
    let loops = Canned::status(301).header("location", &to("acme/api"));
    world.github.when(Route::PushDiscovery).times(5).answer(loops);
    assert_eq!(discover(&world, &run, "acme/api").await.status, 502, "one hop");
    let web = |request: &&gitdoor_tests::github::Request| request.path.contains("acme/web");
    assert_eq!(world.github.requests_for(Route::PushDiscovery).iter().filter(web).count(), 0);
    world.finish().await;
}

#[tokio::test]
async fn a_first_push_under_an_old_name_binds_the_repository_itself() {
    let world = World::start(PROGRAM).await;
    let id = world.github.create("acme/old");
    world.github.rename("acme/old", "acme/new");
    let run = world.register(Identity::Write).await;
    let git = world.git(&run).cloned("acme/old").await;
    git.commit("a", "a").await;
    let push = git.run(&["push", "origin", "HEAD:fix-x"]).await;
    match push.code {
        // GitHub mints for present names alone: then it says so, and the new name works.
        Some(128) => {
            push.says("acme/old is not a repository");
            git.run(&["push", &git.url("acme/new"), "HEAD:fix-x"]).await.ok();
        }
        _ => drop(push.ok()),
    }
    let bound = binding(&world, &run).await.unwrap();
    assert_eq!((bound.repository.as_str(), bound.repository_id), ("acme/new", id));
    assert!(world.github.ref_of("acme/new", "refs/heads/fix-x").is_some());
    world.finish().await;
}

#[tokio::test]
async fn a_bound_repository_that_is_gone_is_told_and_stays_bound() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    world.github.create("acme/web");
    let run = world.registration(Identity::Write).repository("acme/api").send().await.unwrap();
    let git = world.git(&run).cloned("acme/api").await;
    git.commit("a", "a").await;
    world.github.set_installed("acme/api", false);
    let gone = git.run(&["push", "origin", "HEAD:fix-x"]).await.code_is(128);
    gone.says("the forge knows no such repository").does_not_say("Authentication failed");
    git.run(&["push", &git.url("acme/web"), "HEAD:fix-x"]).await.code_is(128).says("acme/api");
    assert_eq!(binding(&world, &run).await.unwrap().repository, "acme/api");
    world.github.set_installed("acme/api", true);
    tokio::time::timeout(Duration::from_secs(30), async {
        while git.run(&["push", "origin", "HEAD:fix-x"]).await.code != Some(0) {}
    })
    .await
    .unwrap();
    world.finish().await;
}
