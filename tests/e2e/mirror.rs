//! A trusted host that keeps a clone: `gitdoor token mirror` beside stock git, straight to GitHub.

use std::path::Path;

use gitdoor_tests::git::{Git, Transcript};
use gitdoor_tests::world::{Exit, World, run_to_exit};
use serde_json::{Value, json};

use crate::PROGRAM;

/// The command line as the keeper of a mirror calls it.
async fn gitdoor(world: &World, arguments: &[&str]) -> Exit {
    let control = format!("--control={}", world.runs_address());
    let arguments = arguments.iter().map(|argument| (*argument).to_owned()).chain([control]);
    run_to_exit(PROGRAM.as_ref(), "__gitdoor", &arguments.collect::<Vec<_>>()).await
}

/// A git of the mirror's host: GitHub's URL, and no credential of its own.
fn git(world: &World) -> Git {
    let home = world.path().join("clients/mirror");
    let github = world.github.url();
    Git::new(&home, &github, &world.github.ca_file(), "none", Transcript::default()).without_helper()
}

/// What the `-c` of a git command takes.
fn helper(world: &World, control: &str, repository: &str) -> String {
    let host = world.github.url().trim_start_matches("https://").to_owned();
    format!(
        "credential.helper=!{PROGRAM} __gitdoor token mirror --repository {repository} --credential \
         --forge-host {host} --control {control}"
    )
}

async fn listed(world: &World) -> Vec<Value> {
    let exit = gitdoor(world, &["token", "list", "--json"]).await;
    assert_eq!(exit.code, Some(0), "{}", exit.stderr);
    let value: Value = serde_json::from_str(&exit.stdout).unwrap();
    value["mirror_tokens"].as_array().unwrap().clone()
}

#[tokio::test]
async fn a_mirror_clones_and_fetches_its_repository_and_can_push_nothing() {
    let world = World::start(PROGRAM).await;
    let id = world.github.create("Acme/Api");
    world.github.create("acme/lib");
    let git = git(&world);
    let helper = helper(&world, &world.runs_address(), "acme/api");
    let url = git.url("acme/api");
    git.run(&["-c", &helper, "clone", "--quiet", "--mirror", &url, "mirror"]).await.ok();
    let mirror = git.at("mirror");
    assert_eq!(Some(mirror.id_of("refs/heads/main").await), world.github.ref_of("Acme/Api", "refs/heads/main"));
    mirror.run(&["-c", &helper, "fetch", "--quiet"]).await.ok();

    let token = world.github.tokens().pop().unwrap();
    let read = json!({ "contents": "read", "metadata": "read", "pull_requests": "read" });
    assert_eq!((json!(token.permissions), token.repositories), (read, Some(vec![id])));
    assert_eq!(world.github.mints().len(), 1, "one token does for both");

    let push = ["-c", &helper, "push", "--quiet", &url, "main:refs/heads/x"];
    mirror.run(&push).await.code_is(128).says("returned error: 403");
    assert_eq!(world.github.ref_of("Acme/Api", "refs/heads/x"), None);
    let other = git.url("acme/lib");
    git.run(&["-c", &helper, "clone", "--quiet", &other, "lib"]).await.code_is(128).says("not found");

    let rows = listed(&world).await;
    // A row each time that git asked: to clone, to fetch, to push, and for the other repository.
    assert_eq!(rows.len(), 4);
    assert!(rows.iter().all(|row| row["repository"] == "Acme/Api" && row["repository_id"] == id));
    assert!(rows.iter().all(|row| row["token_id"] == rows[0]["token_id"] && row["asked_by"].is_null()));
    world.finish().await;
}

#[tokio::test]
async fn the_token_goes_to_its_host_over_https_and_nowhere_else() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    let git = git(&world);
    let helper = helper(&world, &world.runs_address(), "acme/api");
    let plain = world.github.url().replace("https://", "http://");
    for host in ["https://evil.example", &plain] {
        let script = format!("printf 'url={host}/acme/api\\n\\n' | git -c \"$HELPER\" credential fill");
        let git = git.clone().env("HELPER", helper.clone());
        let asked = git.run_program(Path::new("/bin/sh"), &["-c", &script]).await;
        asked.code_is(128).says("gitdoor: no token for what git asks for").does_not_say("password");
    }
    assert!(world.github.mints().is_empty());
    world.finish().await;
}

#[tokio::test]
async fn a_token_that_github_refuses_fails_one_fetch_and_the_next_has_another() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    let git = git(&world);
    let helper = helper(&world, &world.runs_address(), "acme/api");
    git.run(&["-c", &helper, "clone", "--quiet", "--mirror", &git.url("acme/api"), "mirror"]).await.ok();
    world.github.expire_tokens();
    let mirror = git.at("mirror");
    mirror.run(&["-c", &helper, "fetch", "--quiet"]).await.code_is(128).says("Authentication failed");
    mirror.run(&["-c", &helper, "fetch", "--quiet"]).await.ok();
    assert_eq!(world.github.mints().len(), 2);
    world.finish().await;
}

#[tokio::test]
async fn without_control_or_with_a_repository_that_is_none_git_gets_nothing() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    let git = git(&world);
    let absent = format!("unix:{}", world.path().join("absent.sock").display());
    for (control, repository, words) in [
        (absent.as_str(), "acme/api", "no control could be asked"),
        (&world.runs_address(), "acme/none", "no token for acme/none"),
    ] {
        let helper = helper(&world, control, repository);
        let clone = git.run(&["-c", &helper, "clone", "--quiet", &git.url("acme/api"), "mirror"]).await;
        clone.code_is(128).says(words).says("could not read Username");
    }
    assert!(listed(&world).await.is_empty());
    world.finish().await;
}

#[tokio::test]
async fn the_token_alone_is_printed_and_as_json_beside_its_end_and_repository() {
    let world = World::start(PROGRAM).await;
    world.github.create("Acme/Api");
    let plain = gitdoor(&world, &["token", "mirror", "--repository", "acme/api"]).await;
    let token = world.github.tokens().pop().unwrap().text;
    assert_eq!((plain.code, plain.stdout, plain.stderr.as_str()), (Some(0), format!("{token}\n"), ""));
    let json = gitdoor(&world, &["token", "mirror", "--repository", "acme/api", "--json"]).await;
    let value: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!((&value["token"], &value["repository"]), (&json!(token), &json!("Acme/Api")));
    assert_eq!(value.as_object().unwrap().len(), 3);
    let text = gitdoor(&world, &["token", "list"]).await.stdout;
    assert_eq!(text.lines().count(), 3);
    assert!(text.contains("Acme/Api") && !text.contains(&token), "{text}");
    world.finish().await;
}
