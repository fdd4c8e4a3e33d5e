//! The harness for gh: what a client would have sent past the door is seen, and gh holds its bearer as it is told to.

use std::fs;

use gitdoor_proto::v1::Identity;
use gitdoor_tests::by_both_gh;
use gitdoor_tests::gh::{self, Credential, DOOR, Gh, HOSTS_FILE, Version};
use gitdoor_tests::github::{Canned, Route};
use gitdoor_tests::world::World;

use crate::PROGRAM;

by_both_gh![
    it_is_the_version_that_its_folder_says,
    from_a_hosts_file_the_bearer_goes_to_the_door_alone,
    from_the_environment_the_bearer_goes_to_whoever_is_asked,
    the_hosts_file_is_taken_as_it_is_without_a_question_to_anybody,
    git_clones_from_the_door_with_the_bearer_that_gh_has_and_asks_nobody_else,
    a_request_past_the_door_is_kept_whole_and_answered_as_a_test_says,
    what_gh_kept_is_its_own_and_can_be_forgotten,
    a_unix_socket_carries_the_requests_of_gh_to_the_door,
];

/// Whoever is not the door.
const OTHER: &str = "other.example";

async fn it_is_the_version_that_its_folder_says(version: Version) {
    let world = World::start(PROGRAM).await;
    let run = world.register(Identity::Read).await;
    let said = world.gh(&run, &version).run(&["--version"]).await.ok();
    assert!(said.stdout.starts_with(&format!("gh version {} ", version.number)), "{said}");
    world.finish().await;
}

async fn from_a_hosts_file_the_bearer_goes_to_the_door_alone(version: Version) {
    let world = World::start(PROGRAM).await;
    let run = world.register(Identity::Read).await;
    let gh = world.gh(&run, &version);
    assert_eq!(gh.password_for(DOOR).await.as_ref(), Some(&run.bearer));
    assert_eq!(gh.password_for(OTHER).await, None);
    assert_eq!(sent_past_the_door(&world, &gh).await, None);
    world.finish().await;
}

async fn from_the_environment_the_bearer_goes_to_whoever_is_asked(version: Version) {
    let world = World::start(PROGRAM).await;
    let run = world.register(Identity::Read).await;
    let gh = world.gh_with(&run, &version, Credential::Environment);
    assert_eq!(gh.password_for(DOOR).await.as_ref(), Some(&run.bearer));
    assert_eq!(gh.password_for(OTHER).await.as_ref(), Some(&run.bearer));
    assert_eq!(sent_past_the_door(&world, &gh).await, Some(format!("token {}", run.bearer)));
    world.finish().await;
}

/// The credential that gh sends to whoever is not the door.
async fn sent_past_the_door(world: &World, gh: &Gh) -> Option<String> {
    gh.run(&["api", &format!("https://{OTHER}/x")]).await.code_is(1).says("recorder: not the door");
    assert_eq!(world.recorder().hosts(), [OTHER]);
    let request = world.recorder().requests().remove(0);
    assert_eq!((request.method.as_str(), request.target.as_str()), ("GET", "/x"));
    request.header("authorization").map(str::to_owned)
}

async fn the_hosts_file_is_taken_as_it_is_without_a_question_to_anybody(version: Version) {
    let world = World::builder(PROGRAM).dataplane_flag("--log-format=json").start().await;
    let run = world.register(Identity::Read).await;
    let gh = world.gh(&run, &version);
    let before = [HOSTS_FILE, "config.yml"].map(|name| fs::read(gh.settings().join(name)).unwrap());
    gh.run(&["config", "get", "git_protocol"]).await.ok();
    gh.password_for(DOOR).await.unwrap();
    gh.run(&["api", "no/such/thing"]).await.code_is(1).says("404");
    world.event("message", "request").await;
    assert_eq!(world.events().len(), 1, "gh asked the door before it had to");
    assert_eq!(world.recorder().hosts(), Vec::<String>::new());
    let after = [HOSTS_FILE, "config.yml"].map(|name| fs::read(gh.settings().join(name)).unwrap());
    assert_eq!(after, before);
    assert_eq!(fs::read_dir(gh.settings()).unwrap().count(), 2);
    world.finish().await;
}

async fn git_clones_from_the_door_with_the_bearer_that_gh_has_and_asks_nobody_else(version: Version) {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    let run = world.register(Identity::Read).await;
    let gh = world.gh(&run, &version);
    gh.git(&["clone", &gh.url("acme/api")]).await.ok();
    let here = gh.at("api").git(&["rev-parse", "HEAD"]).await.ok().stdout;
    assert_eq!(Some(here.trim()), world.github.ref_of("acme/api", "refs/heads/main").as_deref());
    assert_eq!(world.github.requests_for(Route::UploadPack).len(), 2);
    assert_eq!(world.recorder().hosts(), Vec::<String>::new());
    gh.git(&["ls-remote", &format!("https://{OTHER}/acme/api")]).await.code_is(128).says("not found");
    gh.git(&["ls-remote", &format!("http://{OTHER}:8080/acme/api")]).await.code_is(128).says("not found");
    assert_eq!(world.recorder().hosts(), [OTHER, "other.example:8080"]);
    let requests = world.recorder().requests();
    assert!(requests.iter().all(|request| request.target == "/acme/api/info/refs?service=git-upload-pack"));
    assert!(requests.iter().all(|request| request.header("authorization").is_none()));
    world.finish().await;
}

async fn a_request_past_the_door_is_kept_whole_and_answered_as_a_test_says(version: Version) {
    let world = World::start(PROGRAM).await;
    let run = world.register(Identity::Read).await;
    let gh = world.gh(&run, &version);
    let answer = Canned::status(201).header("X-Told", "yes").body("application/json", r#"{"told": true}"#);
    world.recorder().answer(OTHER, answer);
    let url = format!("https://{OTHER}/a%2Fb?c=d&e");
    gh.run_with_input(&["api", "--include", "--method=PUT", &url, "--input=-"], b"the body")
        .await
        .ok()
        .says("201 Created")
        .says("X-Told: yes")
        .says(r#"{"told": true}"#);
    let request = world.recorder().requests().remove(0);
    assert_eq!((request.host.as_str(), request.method.as_str()), (OTHER, "PUT"));
    assert_eq!(request.target, "/a%2Fb?c=d&e");
    assert_eq!(request.header("host"), Some(OTHER));
    assert_eq!(request.body, b"the body");
    world.finish().await;
}

#[tokio::test]
async fn a_host_that_the_client_does_not_trust_is_named_all_the_same() {
    let world = World::start(PROGRAM).await;
    let run = world.register(Identity::Read).await;
    let gh = world.gh(&run, &gh::newest()).env("SSL_CERT_FILE", "/dev/null");
    gh.run(&["api", &format!("https://{OTHER}/x")]).await.code_is(1).says("certificate");
    assert_eq!(world.recorder().hosts(), [OTHER]);
    assert!(world.recorder().requests().is_empty());
    world.finish().await;
}

#[tokio::test]
#[should_panic(expected = "a secret, installation token, is in: request to other.example")]
async fn a_world_in_which_a_client_sent_a_token_elsewhere_does_not_end_well() {
    let world = World::start(PROGRAM).await;
    let run = world.register(Identity::Read).await;
    let token = world.github.token(&[("contents", "read")], None);
    let gh = world.gh(&run, &gh::newest()).env("GH_ENTERPRISE_TOKEN", token.text);
    gh.run(&["api", &format!("https://{OTHER}/x")]).await.code_is(1);
    world.finish().await;
}

async fn what_gh_kept_is_its_own_and_can_be_forgotten(version: Version) {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    let run = world.register(Identity::Read).await;
    let (gh, other) = (world.gh(&run, &version), world.gh(&run, &version));
    // What it asks about the host before it asks for the list, it keeps for a day.
    for (gh, asked) in [(&gh, 2), (&gh, 3), (&other, 5)] {
        gh.run(&["repo", "list", "acme"]).await.ok().says("acme/api");
        assert_eq!(world.github.requests_for(Route::Graphql).len(), asked);
    }
    gh.forget();
    gh.shell("gh repo list acme >list && grep -o acme/api list").await.ok().says("acme/api");
    assert_eq!(world.github.requests_for(Route::Graphql).len(), 7);
    world.finish().await;
}

async fn a_unix_socket_carries_the_requests_of_gh_to_the_door(version: Version) {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("door.sock");
    let listen = format!("--listen=unix:{}", socket.display());
    let world = World::builder(PROGRAM).plain().dataplane_flag(&listen).start().await;
    let run = world.register(Identity::Read).await;
    let gh = world.gh(&run, &version).unix_socket(&socket);
    gh.run(&["api", "--include", "no/such/thing"]).await.code_is(1).says("X-Request-Id").says("404");
    gh.run(&["api", "--include", &format!("https://{OTHER}/x")]).await.code_is(1).says("X-Request-Id").says("421");
    assert_eq!(world.recorder().hosts(), Vec::<String>::new());
    world.finish().await;
}
