//! Behind the fence: what is the developer's is not there, and nothing outlives the command.

use std::fs;

use gitdoor_tests::gh;
use gitdoor_tests::laptop::{DECOY, Laptop, names};
use gitdoor_tests::wait::until;

use crate::PROGRAM;

/// A token in a file.
const STORED: &str = "ghp_1a2B3c4D5e6F7g8H9i0JkLmNoPqRsTuVwXyZ";

fn laptop() -> Laptop {
    Laptop::new(PROGRAM, &gh::newest())
}

/// Whether a process runs whose command line has this in it.
fn is_running(mark: &str) -> bool {
    let processes = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path().join("cmdline"));
    processes.filter_map(|path| fs::read(path).ok()).any(|line| String::from_utf8_lossy(&line).contains(mark))
}

#[tokio::test]
async fn the_command_sees_nothing_of_the_developers() {
    let laptop = laptop();
    let (flag, host) = (laptop.token_flag(), laptop.github.url());
    let token = laptop.github.tokens().pop().unwrap().text;
    laptop.log_in(&host, DECOY);
    fs::create_dir(laptop.home().join(".ssh")).unwrap();
    fs::write(laptop.home().join(".ssh/id_ed25519"), "a key of the developer's").unwrap();
    fs::create_dir(laptop.home().join("notes")).unwrap();
    fs::write(laptop.home().join("notes/plan"), "a plan").unwrap();
    fs::write(laptop.home().join("notes/diary"), "a diary").unwrap();
    laptop.exec(&[&flag, "--quiet"], &["true"]).await.ok();
    let [before] = laptop.places().try_into().unwrap();
    let (home, state) = (laptop.home(), laptop.state());
    let (home, state, before) = (home.display(), state.display(), before.display());
    let key = flag.trim_start_matches("--token-file=");
    let script = format!(
        "for file in {home}/.config/gh/hosts.yml {home}/.ssh/id_ed25519 {home}/notes/diary {key} \
             {before}/log {before}/run.json \"$(ls -d {state}/exec-*)\"/store.sqlite; do
             test ! -s $file || {{ echo seen: $file; exit 90; }}
         done
         cat {home}/notes/plan {home}/.gitconfig
         echo later >>{home}/mine && echo later >>work
         ls /proc | grep -c '^[0-9]'
         cat /proc/[0-9]*/cmdline | tr '\\0' ' '
         env"
    );
    let show = format!("--show={home}/notes/plan");
    let said = laptop.shell(&[&flag, "--quiet", &show], &script).await.ok();
    said.says("a plan")
        .does_not_say(DECOY)
        .does_not_say(&token)
        .does_not_say("token-file")
        .does_not_say("SSH_AUTH");
    assert_eq!(names(laptop.work()), ["work"]);
    assert!(!laptop.home().join("mine").exists());
    laptop.assert_nowhere("the developer's token", token.trim_start_matches("ghs_"));
}

/// Starts something with this mark that does not end by itself, and goes on when it runs.
fn left_running(mark: &str) -> String {
    format!(
        "setsid sh -c 'echo >up; while :; do sleep 0.02; done' {mark} >/dev/null 2>&1 &
         until test -e up; do sleep 0.02; done"
    )
}

#[tokio::test]
async fn what_the_command_leaves_running_ends_with_it() {
    let laptop = laptop();
    let token = laptop.token_flag();
    let mark = format!("left-{}-", std::process::id());
    let script = format!("{}\necho started", left_running(&mark));
    laptop.shell(&[&token], &script).await.ok().says("started");
    until("it has ended", async || !is_running(&mark)).await;
}

#[tokio::test]
async fn with_gitdoor_the_command_and_all_that_it_started_are_killed() {
    let laptop = laptop();
    let token = laptop.token_flag();
    let mark = format!("killed-{}-", std::process::id());
    let script = format!("{}\necho started; while :; do sleep 0.02; done", left_running(&mark));
    let mut running = laptop.start(&[&token], &script);
    assert_eq!(running.line().await, "started");
    assert!(is_running(&mark));
    running.signal("KILL");
    assert_eq!(running.wait().await, None);
    until("all of it has ended", async || !is_running(&mark)).await;
    laptop.exec(&[&token], &["true"]).await.ok();
    let states = laptop.places().iter().map(|place| Laptop::record(place)["state"].clone()).collect::<Vec<_>>();
    assert_eq!(states, ["revoked", "revoked"]);
}

#[tokio::test]
async fn signals_reach_the_command_through_the_fence() {
    let laptop = laptop();
    let token = laptop.token_flag();
    for name in ["TERM", "INT", "HUP", "QUIT"] {
        let line = format!("trap 'exit 9' {name}; echo started; while :; do sleep 0.02; done");
        let mut running = laptop.start(&[&token], &line);
        assert_eq!(running.line().await, "started");
        running.signal(name);
        assert_eq!(running.wait().await, Some(9), "{name}");
    }
}

#[tokio::test]
async fn a_credential_that_the_command_would_have_keeps_it_from_being_started() {
    let laptop = laptop();
    let token = laptop.token_flag();
    fs::write(laptop.work().join("notes"), format!("the token is {STORED}\n")).unwrap();
    let refused = laptop.exec(&[&token], &["touch", "ran"]).await.code_is(1);
    refused.says("notes").says("--allow-findings").says("is not started").does_not_say(STORED);
    assert_eq!(names(laptop.work()), ["notes"]);
    let [place] = laptop.places().try_into().unwrap();
    assert_eq!(Laptop::record(&place)["state"], "revoked");
    laptop.exec(&[&token, "--allow-findings"], &["touch", "ran"]).await.ok().says("notes");
    assert_eq!(names(laptop.work()), ["notes", "ran"]);
}

#[tokio::test]
async fn a_helper_of_the_repositorys_that_has_a_credential_keeps_the_command_from_being_started() {
    let laptop = laptop();
    let token = laptop.token_flag();
    let helper = format!("!echo username=octo; echo password={STORED};:");
    laptop.bare(&format!("git init --quiet && git config credential.helper '{helper}'")).await.ok();
    let refused = laptop.exec(&[&token, "--quiet"], &["touch", "ran"]).await.code_is(1);
    refused.says("credential for github.com, in git credential fill").does_not_say(STORED);
    assert!(!laptop.work().join("ran").exists());
}

#[tokio::test]
async fn what_leads_git_past_the_door_is_told() {
    let laptop = laptop();
    let token = laptop.token_flag();
    laptop.bare("git init --quiet").await.ok();
    laptop.exec(&[&token], &["true"]).await.ok().does_not_say("past the door");
    laptop.bare("git config url.git@github.com:.insteadOf https://github.com/").await.ok();
    laptop.exec(&[&token, "--quiet"], &["true"]).await.ok().does_not_say("past the door");
    let said = laptop.exec(&[&token], &["true"]).await.ok();
    said.says("git is led past the door with https://github.com/..., by url.git@github.com:.insteadof");
}

#[tokio::test]
async fn without_bubblewrap_nothing_is_started() {
    let laptop = laptop().with_path("/nonexistent");
    let token = laptop.token_flag();
    let refused = laptop.exec(&[&token], &["/bin/touch", "ran"]).await.code_is(64);
    refused.says("install the distribution's package bubblewrap").says("--no-isolation");
    assert_eq!((names(laptop.work()), laptop.places().len()), (Vec::new(), 0));
}

#[tokio::test]
async fn doctor_says_from_inside_what_the_run_may_do_and_finds_no_credential() {
    let laptop = laptop();
    let token = laptop.token_flag();
    let gitdoor = laptop.gitdoor().display().to_string();
    let said = laptop.exec(&[&token, "--quiet", "--repository=acme/api"], &[&gitdoor, "doctor"]).await.ok();
    said.says("127.0.0.1 takes the bearer of run exec-")
        .says("it may push branches of acme/api other than main")
        .says("no GitHub credential was found");
}

#[tokio::test]
async fn a_terminal_that_the_commands_shell_took_is_given_back() {
    let laptop = laptop();
    let token = laptop.token_flag();
    // It takes it for itself, and cannot give it back: the group that had it has no number inside.
    let exec = laptop.line(&[&token, "--quiet"], "bash --norc -ic true");
    let typed = format!(
        "(until test -e ended; do sleep 0.02; done; echo typed) |
         script -qec '{exec}; touch ended; read word; echo \"got $word\"' /dev/null"
    );
    let said = laptop.bare(&typed).await.ok();
    said.says("got typed");
}

#[tokio::test]
async fn a_file_that_leads_git_elsewhere_is_told_of_when_the_command_has_left_one() {
    let laptop = laptop();
    let token = laptop.token_flag();
    laptop.bare("git init --quiet").await.ok();
    laptop.exec(&[&token, "--quiet"], &["true"]).await.ok().does_not_say("commondir");
    let said = laptop.shell(&[&token, "--quiet"], "echo . >.git/commondir").await.ok();
    said.says(".git/commondir, by which your git obeys settings elsewhere");
    // It is there still, and a command that is killed with `gitdoor` would not have been told of.
    laptop.exec(&[&token, "--quiet"], &["true"]).await.ok().says(".git/commondir, by which");
}

#[tokio::test]
async fn a_file_that_leads_git_elsewhere_is_told_of_where_the_repository_is_beside_its_worktree() {
    let laptop = laptop();
    let token = laptop.token_flag();
    let main = laptop.state().with_file_name("main");
    let main = main.display();
    laptop
        .bare(&format!(
            "git init --quiet '{main}'; git -C '{main}' commit --quiet --allow-empty -m x; \
             rmdir \"$PWD\"; git -C '{main}' worktree add --quiet \"$PWD\""
        ))
        .await
        .ok();
    laptop.exec(&[&token, "--quiet"], &["true"]).await.ok().does_not_say("commondir");
    let said = laptop.shell(&[&token, "--quiet"], &format!("echo . >'{main}/.git/commondir'")).await.ok();
    said.says("main/.git/commondir, by which your git obeys settings elsewhere");
}
