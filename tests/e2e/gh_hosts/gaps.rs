//! What the door cannot mend, pinned: these ways lead past it, or nowhere.

use std::fs;

use gitdoor_proto::v1::Identity;
use gitdoor_tests::by_both_gh;
use gitdoor_tests::gh::{Credential, DOOR, HOSTS_FILE, Version, newest};
use gitdoor_tests::world::World;

use super::{GITHUB, carriers};
use crate::PROGRAM;

by_both_gh![
    a_url_of_github_com_goes_past_the_door,
    the_doors_own_name_gets_the_bearer_in_clear_and_from_a_new_gh_at_any_port,
    with_a_port_the_api_works_and_no_remote_matches,
    a_clone_of_another_host_is_told_apart_from_the_door,
    codespaces_and_attestations_are_not_for_an_enterprise_host,
];

async fn a_url_of_github_com_goes_past_the_door(version: Version) {
    let world = World::start(PROGRAM).await;
    world.github.seed("acme/api").furnished().create();
    let run = world.register(Identity::Read).await;
    let gh = world.gh(&run, &version);
    let past: &[&[&str]] = &[
        &["pr", "view", "https://github.com/acme/api/pull/42"],
        &["issue", "view", "https://github.com/acme/api/issues/3"],
        &["repo", "clone", "https://github.com/acme/api"],
        &["api", "https://api.github.com/repos/acme/api"],
    ];
    for arguments in past {
        let said = gh.run(arguments).await.code_is(1);
        said.says("recorder: not the door");
    }
    assert_eq!(world.recorder().hosts(), [GITHUB]);
    assert!(world.recorder().requests().len() >= past.len());
    assert!(carriers(&run, &world.recorder().requests()).is_empty());
    assert_eq!(world.github.requests().len(), 0);
    world.finish().await;
}

async fn the_doors_own_name_gets_the_bearer_in_clear_and_from_a_new_gh_at_any_port(version: Version) {
    let world = World::start(PROGRAM).await;
    let run = world.register(Identity::Read).await;
    let gh = world.gh(&run, &version);
    gh.run(&["api", "http://git.door.test/api/v3/user"]).await.code_is(1);
    gh.run(&["api", "https://git.door.test:8443/api/v3/user"]).await.code_is(1);
    assert_eq!(world.recorder().hosts(), [DOOR, "git.door.test:8443"]);
    let ports: &[&str] = if version == newest() { &[DOOR, "git.door.test:8443"] } else { &[DOOR] };
    assert_eq!(carriers(&run, &world.recorder().requests()), ports);
    world.finish().await;
}

async fn with_a_port_the_api_works_and_no_remote_matches(version: Version) {
    let world = World::start(PROGRAM).await;
    world.github.seed("acme/api").furnished().create();
    let run = world.register(Identity::Read).await;
    let host = format!("localhost:{}", world.address(0).port());
    let gh = world
        .gh_with(&run, &version, Credential::Environment)
        .env("GH_HOST", &host)
        .env("GIT_CONFIG_KEY_0", format!("credential.https://{host}.helper"))
        .env("NO_PROXY", "localhost");
    gh.run(&["api", "repos/acme/api", "--jq=.url"])
        .await
        .ok()
        .says(&format!("https://{host}/api/v3/repos/acme/api"));
    gh.run(&["api", "graphql", "--raw-field=query={viewer{login}}"]).await.ok().says("acme-door[bot]");
    let pages = ["api", "--paginate", "repos/acme/api/issues?per_page=100", "--jq=length"];
    assert_eq!(gh.run(&pages).await.ok().stdout, "100\n100\n50\n");
    gh.run(&["pr", "list", "--repo=acme/api"]).await.ok().says("Greet by name");
    gh.run(&["repo", "clone", "acme/api"]).await.ok();
    let words =
        "none of the git remotes configured for this repository correspond to the GH_HOST environment variable";
    gh.at("api").run(&["pr", "list"]).await.code_is(1).says(words);

    // A new gh looks for the name alone in its hosts file.
    let filed = world.gh(&run, &version).env("GH_HOST", &host);
    let hosts = filed.settings().join(HOSTS_FILE);
    fs::write(&hosts, fs::read_to_string(&hosts).unwrap().replace(DOOR, &host)).unwrap();
    let said = filed.run(&["api", "repos/acme/api", "--jq=.full_name"]).await;
    if version == newest() {
        said.code_is(1).says("gh: gitdoor: send the run bearer as the password, with any user name (HTTP 401)");
    } else {
        said.ok().says("acme/api");
    }
    assert_eq!(world.recorder().hosts(), Vec::<String>::new());
    world.finish().await;
}

async fn a_clone_of_another_host_is_told_apart_from_the_door(version: Version) {
    let world = World::start(PROGRAM).await;
    world.github.seed("acme/api").furnished().create();
    let run = world.register(Identity::Read).await;
    let gh = world.gh(&run, &version);
    gh.git(&["init", "--quiet", "."]).await.ok();
    gh.git(&["remote", "add", "origin", "https://github.com/acme/api"]).await.ok();
    let words =
        "none of the git remotes configured for this repository correspond to the GH_HOST environment variable";
    gh.run(&["pr", "list"]).await.code_is(1).says(words);
    // A remote that git leads to the door is one of the door's.
    gh.git(&["config", "url.https://git.door.test/.insteadOf", "https://github.com/"]).await.ok();
    gh.run(&["pr", "list"]).await.ok().says("Greet by name");
    assert_eq!(world.recorder().hosts(), Vec::<String>::new());
    world.finish().await;
}

async fn codespaces_and_attestations_are_not_for_an_enterprise_host(version: Version) {
    let world = World::start(PROGRAM).await;
    let run = world.register(Identity::Read).await;
    let gh = world.gh(&run, &version);
    let codespaces = gh.run(&["codespace", "list"]).await.code_is(1);
    let attestation = gh.run(&["attestation", "verify", "x", "--owner=acme"]).await.code_is(1);
    if version == newest() {
        codespaces
            .says("HTTP 403: Resource not accessible by integration (https://git.door.test/api/v3/user/codespaces");
        attestation.says("does not currently support GHES");
        assert_eq!(world.recorder().hosts(), Vec::<String>::new());
    } else {
        codespaces.says("recorder: not the door (https://api.github.com/user/codespaces");
        attestation.says("unknown command \"attestation\"");
        assert_eq!(world.recorder().hosts(), [GITHUB]);
        assert!(carriers(&run, &world.recorder().requests()).is_empty());
    }
    world.finish().await;
}
