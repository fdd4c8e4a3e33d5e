//! A workspace with what `gitdoor env` gives, and nothing else: git and gh work as they would against GitHub, nobody but
//! the door is asked, and `gitdoor doctor` finds it clean.

use std::fs;

use gitdoor_proto::v1::Identity;
use gitdoor_tests::by_both_gh;
use gitdoor_tests::gh::{self, DOOR, Version};
use gitdoor_tests::workspace::Workspace;
use gitdoor_tests::world::{Run, World};
use serde_json::Value;

use crate::PROGRAM;
use crate::fetch::add_submodule;

by_both_gh![
    from_the_environment_alone_git_clones_and_pushes_and_gh_reads,
    a_run_that_only_reads_clones_likewise_and_pushes_nothing,
    without_files_git_and_gh_work_as_well,
];

/// Each a clone as somebody would ask GitHub for it.
const CLONES: [&str; 4] = [
    "https://github.com/acme/api",
    "git@github.com:acme/api.git by-scp",
    "ssh://git@github.com/acme/api.git by-ssh",
    "--recurse-submodules https://github.com/acme/app",
];

/// A repository that has pull requests, and one that has a submodule.
async fn furnished() -> World {
    let world = World::start(PROGRAM).await;
    world.github.seed("acme/api").furnished().create();
    world.github.create("acme/lib");
    let settings = "[submodule \"lib\"]\n\tpath = lib\n\turl = https://github.com/acme/lib.git\n";
    world.github.seed("acme/app").file(".gitmodules", settings).create();
    add_submodule(&world.github, "acme/app", "acme/lib");
    world
}

/// Clones in every way, and lets gh read.
async fn clone_and_read(world: &World, workspace: &Workspace) {
    for clone in CLONES {
        workspace.shell(&format!("git clone --quiet {clone}")).await.ok();
    }
    let lib = workspace.shell("git -C app/lib rev-parse HEAD").await.ok().stdout;
    assert_eq!(Some(lib.trim()), world.github.ref_of("acme/lib", "refs/heads/main").as_deref());
    workspace.shell("cd api && gh pr view 42 --json=number,state").await.ok().says("\"number\":42");
    workspace.shell("gh pr view 42 -R acme/api --json=number").await.ok().says("\"number\":42");
}

/// Commits, and pushes that as a branch.
async fn push(world: &World, workspace: &Workspace, branch: &str) {
    let commit = "git -c user.name=Agent -c user.email=agent@sandbox.test commit --quiet --allow-empty -m 'Fix it'";
    workspace.shell(&format!("cd by-ssh && git switch --quiet -c {branch} && {commit}")).await.ok();
    workspace.shell(&format!("cd by-ssh && git push --quiet origin {branch}")).await.ok();
    let head = workspace.shell("git -C by-ssh rev-parse HEAD").await.ok().stdout;
    assert_eq!(Some(head.trim()), world.github.ref_of("acme/api", &format!("refs/heads/{branch}")).as_deref());
}

/// Asserts that a page of `docs/backends` shows what `gitdoor doctor` said, but for names and the time.
fn is_shown(page: &str, said: &str, run: &Run) {
    let named = said.replace(DOOR, "git.example.com").replace(&run.id, "fix-1");
    for line in named.lines() {
        let until = line.split_once(", until ").map(|(before, _)| format!("{before}, until 2026-12-01T14:35:00Z"));
        let line = until.unwrap_or_else(|| line.to_owned());
        assert!(page.lines().any(|shown| shown == line), "no page shows: {line}");
    }
}

async fn from_the_environment_alone_git_clones_and_pushes_and_gh_reads(version: Version) {
    let world = furnished().await;
    let run = world.register(Identity::Write).await;
    let workspace = world.workspace(PROGRAM, &run, &version).wired(&[]).await;
    is_shown(include_str!("../../docs/backends/container.md"), &workspace.doctor("").await.ok().stdout, &run);
    clone_and_read(&world, &workspace).await;
    push(&world, &workspace, "fix").await;
    let said = workspace.doctor("").await.ok();
    is_shown(include_str!("../../docs/backends/micro-vm.md"), &said.stdout, &run);
    said.says("bound to acme/api").says("clean  no GitHub credential was found");
    assert_eq!(world.recorder().hosts(), Vec::<String>::new());
    world.finish().await;
}

async fn a_run_that_only_reads_clones_likewise_and_pushes_nothing(version: Version) {
    let world = furnished().await;
    let run = world.register(Identity::Read).await;
    let workspace = world.workspace(PROGRAM, &run, &version).wired(&[]).await;
    clone_and_read(&world, &workspace).await;
    workspace.shell("git -C api push origin HEAD:refs/heads/fix").await.code_is(128).says("remote: gitdoor: ");
    assert_eq!(world.github.ref_of("acme/api", "refs/heads/fix"), None);
    let said = workspace.doctor("").await.ok();
    is_shown(include_str!("../../docs/backends/cloudflare-sandbox.md"), &said.stdout, &run);
    assert_eq!(world.recorder().hosts(), Vec::<String>::new());
    world.finish().await;
}

#[tokio::test]
async fn each_format_makes_a_workspace_of_what_had_another_credential() {
    let world = furnished().await;
    for format in ["json", "docker", "kubernetes"] {
        let run = world.register(Identity::Write).await;
        let workspace = world.workspace(PROGRAM, &run, &gh::newest()).wired_as(format).await;
        clone_and_read(&world, &workspace).await;
        push(&world, &workspace, format).await;
        workspace.doctor("").await.ok().says("clean  no GitHub credential was found");
    }
    assert_eq!(world.recorder().hosts(), Vec::<String>::new());
    world.finish().await;
}

#[tokio::test]
async fn without_an_app_behind_the_door_git_and_gh_fail_in_words_and_ask_nobody_else() {
    let world = furnished().await;
    world.github.set_suspended(true);
    let run = world.register(Identity::Read).await;
    let workspace = world.workspace(PROGRAM, &run, &gh::newest()).wired_as("docker").await;
    let clone = workspace.shell("git clone https://github.com/acme/api").await.code_is(128);
    clone.says("the installation is suspended");
    let said = workspace.doctor("").await.code_is(1);
    said.says("takes the bearer of run")
        .says("gets nothing from GitHub for it: ")
        .says("the installation is suspended");
    let value: Value = serde_json::from_str(&workspace.doctor("--json").await.code_is(1).stdout).unwrap();
    let standing = (&value["door"]["standing"], &value["door"]["run"]["run_id"]);
    assert_eq!(standing, (&"cut-off".into(), &run.id.as_str().into()));
    workspace
        .shell("gh pr view 42 -R acme/api --json=number")
        .await
        .code_is(1)
        .says("the installation is suspended");
    assert_eq!(world.recorder().hosts(), Vec::<String>::new());
    world.finish().await;
}

#[tokio::test]
async fn a_workspace_that_had_authorities_of_its_own_trusts_the_door_in_every_format() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    for format in ["sh", "json", "docker", "kubernetes"] {
        let run = world.register(Identity::Read).await;
        let other = world.github.ca_file().display().to_string();
        let workspace = world.workspace(PROGRAM, &run, &gh::newest()).with("GIT_SSL_CAINFO", &other);
        let workspace = match format {
            "sh" => workspace.wired(&[]).await,
            other => workspace.wired_as(other).await,
        };
        workspace.shell(&format!("git clone --quiet https://github.com/acme/api by-{format}")).await.ok();
    }
    world.finish().await;
}

async fn without_files_git_and_gh_work_as_well(version: Version) {
    let world = World::start(PROGRAM).await;
    world.github.seed("acme/api").furnished().create();
    let run = world.register(Identity::Read).await;
    let workspace =
        world.workspace(PROGRAM, &run, &version).wired(&["--variables-only", "--repository=acme/api"]).await;
    workspace.shell("git clone --quiet https://github.com/acme/api").await.ok();
    workspace.shell("gh pr view 42 --json=number").await.ok().says("\"number\":42");
    workspace.doctor("").await.ok().says("identity read, live, not bound");
    assert_eq!(world.recorder().hosts(), Vec::<String>::new());
    world.finish().await;
}

#[tokio::test]
async fn what_the_run_may_not_is_refused_in_words_and_told_beforehand() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    let run = world.register(Identity::Read).await;
    let workspace = world.workspace(PROGRAM, &run, &gh::newest()).wired(&[]).await;
    workspace.shell("git clone --quiet https://github.com/acme/api").await.ok();
    let refused = workspace.shell("git -C api push origin HEAD:refs/heads/fix").await.code_is(128);
    refused.says("remote: gitdoor: ").says("403");
    let value: Value = serde_json::from_str(&workspace.doctor("--json").await.ok().stdout).unwrap();
    let door = &value["door"];
    assert_eq!((&door["host"], &door["standing"]), (&DOOR.into(), &"open".into()));
    assert_eq!((&door["run"]["run_id"], &door["run"]["push"]), (&run.id.into(), &Value::Null));
    assert!(door["words"].as_str().unwrap().contains("may not push"), "{value}");
    world.finish().await;
}

#[tokio::test]
async fn a_credential_that_is_left_over_is_found_in_it() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    let run = world.register(Identity::Read).await;
    let workspace = world.workspace(PROGRAM, &run, &gh::newest()).wired(&[]).await;
    workspace.shell("git clone --quiet https://github.com/acme/api").await.ok();
    let url = "https://octo:hunter2-hunter2@github.com/acme/api";
    workspace.shell(&format!("git -C api remote add old {url}")).await.ok();
    let config = workspace.folder().join("api/.git/config");
    let said = workspace.doctor("").await.code_is(1);
    said.says(&format!("{}: remote.old.url", config.display())).does_not_say("hunter2");
    workspace.doctor("--scrub").await.ok().says("removed").does_not_say("hunter2");
    assert!(fs::read_to_string(config).unwrap().contains("url = https://github.com/acme/api\n"));
    workspace.shell("git -C api fetch --quiet old").await.ok();
    world.finish().await;
}

#[tokio::test]
async fn a_workspace_without_its_bearer_gets_nothing_and_asks_nobody_else() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    let run = world.register(Identity::Read).await;
    let workspace = world.workspace(PROGRAM, &run, &gh::newest()).wired(&[]).await;
    fs::remove_file(workspace.bearer_file()).unwrap();
    let exit = workspace.env(&[]).await;
    assert_eq!((exit.code, exit.stdout.as_str()), (Some(64), ""), "{}", exit.stderr);
    workspace.shell("rm \"$GH_CONFIG_DIR/hosts.yml\"").await.ok();
    workspace.shell("git clone https://github.com/acme/api").await.code_is(128).says("could not read Username");
    assert_eq!(world.recorder().hosts(), Vec::<String>::new());
    world.finish().await;
}

#[tokio::test]
async fn a_door_that_takes_no_bearer_or_is_not_there_is_a_failure_in_words() {
    let mut world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    let run = world.register(Identity::Read).await;
    let workspace = world.workspace(PROGRAM, &run, &gh::newest()).wired(&[]).await;
    let flags = format!("--host {DOOR} --bearer-file '{}'", workspace.bearer_file().display());
    workspace.doctor(&flags).await.ok().says("takes the bearer of run");
    workspace
        .doctor(&format!("{flags} --ca '{}'", world.github.ca_file().display()))
        .await
        .code_is(1)
        .says("certificate");
    world.revoke(&run).await;
    let said = workspace.doctor(&flags).await.code_is(1);
    said.says("does not take the bearer").says("revoked").says("clean  no GitHub credential");
    world.dataplane(0).kill().await;
    workspace.doctor("").await.code_is(1).says(&format!("{DOOR} cannot be reached"));
    workspace.shell("git clone https://github.com/acme/api").await.code_is(128).says("502");
    assert_eq!(world.recorder().hosts(), Vec::<String>::new());
    world.finish().await;
}
