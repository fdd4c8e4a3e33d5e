//! git and gh side by side in one sandbox, as an agent uses them: one bearer, which git has from gh.

use std::fs;

use gitdoor_proto::v1::Identity;
use gitdoor_tests::by_both_gh;
use gitdoor_tests::gh::{Gh, Version};
use gitdoor_tests::github::Route;
use gitdoor_tests::world::World;
use serde_json::{Value, json};

use crate::PROGRAM;

by_both_gh![
    a_branch_is_pushed_with_git_and_its_pull_request_is_read_with_gh,
    a_pull_request_is_checked_out_with_gh_and_takes_a_push_of_git,
    a_file_of_lfs_stays_the_pointer_that_it_is,
];

async fn furnished(version: &Version) -> (World, Gh) {
    let world = World::start(PROGRAM).await;
    world.github.seed("acme/api").furnished().create();
    let run = world.register(Identity::Write).await;
    let gh = world.gh(&run, version);
    (world, gh)
}

/// Commits a file; returns the commit's id.
async fn commit(gh: &Gh, path: &str) -> String {
    fs::write(gh.folder().join(path), path).unwrap();
    gh.git(&["add", path]).await.ok();
    gh.git(&["commit", "--quiet", "--message", &format!("Add {path}")]).await.ok();
    gh.git(&["rev-parse", "HEAD"]).await.ok().stdout.trim().to_owned()
}

async fn a_branch_is_pushed_with_git_and_its_pull_request_is_read_with_gh(version: Version) {
    let (world, gh) = furnished(&version).await;
    gh.git(&["clone", "--quiet", &gh.url("acme/api")]).await.ok();
    let gh = gh.at("api");
    gh.git(&["switch", "--quiet", "--create", "topic"]).await.ok();
    let head = commit(&gh, "greeting.txt").await;
    gh.git(&["push", "--quiet", "--set-upstream", "origin", "topic"]).await.ok();
    assert_eq!(world.github.ref_of("acme/api", "refs/heads/topic").as_ref(), Some(&head));
    gh.run(&["pr", "view"]).await.code_is(1).says("no pull requests found for branch \"topic\"");

    let number = world.github.open_pull("acme/api", "topic", "Greet twice");
    let shown = gh.run(&["pr", "view", "--json=number,title,state,headRefOid,files"]).await.ok().stdout;
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!((&shown["number"], &shown["headRefOid"]), (&json!(number), &json!(head)));
    assert_eq!((&shown["title"], &shown["state"]), (&json!("Greet twice"), &json!("OPEN")));
    assert_eq!(shown["files"][0]["path"], "greeting.txt");

    let refused = gh.git(&["push", "origin", "HEAD:main"]).await.code_is(1);
    refused
        .says("! [remote rejected] HEAD -> main (refused: default branch)")
        .says("remote: gitdoor: this run may push branches of acme/api other than main");
    assert_eq!(world.github.pushes_with_commands().len(), 1);
    for request in world.github.requests_for(Route::Graphql) {
        let token = world.github.token_of(&request).unwrap();
        assert!(!token.may("contents", "write"), "{token:?}");
    }
    assert_eq!(world.recorder().hosts(), Vec::<String>::new());
    world.finish().await;
}

async fn a_pull_request_is_checked_out_with_gh_and_takes_a_push_of_git(version: Version) {
    let (world, gh) = furnished(&version).await;
    gh.run(&["repo", "clone", "acme/api"]).await.ok();
    let gh = gh.at("api");
    gh.run(&["pr", "checkout", "42"]).await.ok();
    let head = commit(&gh, "greeting.txt").await;
    gh.git(&["push", "--quiet"]).await.ok();
    assert_eq!(world.github.ref_of("acme/api", "refs/heads/feature-42"), Some(head));

    // Its branch is in another repository, which this run may not push to.
    gh.run(&["pr", "checkout", "43"]).await.ok();
    let head = commit(&gh, "bonjour.txt").await;
    gh.git(&["push"]).await.code_is(128).says("this run is bound to acme/api and may push nowhere else");
    gh.git(&["push", "--quiet", "origin", "HEAD:refs/heads/french"]).await.ok();
    assert_eq!(world.github.ref_of("acme/api", "refs/heads/french"), Some(head));
    assert_eq!(world.github.pushes_with_commands().len(), 2);
    assert_eq!(world.recorder().hosts(), Vec::<String>::new());
    world.finish().await;
}

/// What git-lfs commits in place of a file.
const POINTER: &str = "version https://git-lfs.github.com/spec/v1\n\
    oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n";

async fn a_file_of_lfs_stays_the_pointer_that_it_is(version: Version) {
    let world = World::start(PROGRAM).await;
    let attributes = "*.bin filter=lfs diff=lfs merge=lfs -text\n";
    world.github.seed("acme/media").file(".gitattributes", attributes).file("big.bin", POINTER).create();
    let run = world.register(Identity::Write).await;
    // With this, git-lfs itself, where it is installed, leaves pointers as they are.
    let gh = world.gh(&run, &version).env("GIT_LFS_SKIP_SMUDGE", "1");
    gh.run(&["repo", "clone", "acme/media"]).await.ok();
    let gh = gh.at("media");
    assert_eq!(fs::read_to_string(gh.folder().join("big.bin")).unwrap(), POINTER);
    assert_eq!(gh.git(&["status", "--porcelain"]).await.ok().stdout, "");
    world.finish().await;
}
