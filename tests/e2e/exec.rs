//! `gitdoor exec`: one command starts a door, a run and the command behind it.

mod ends;
mod fenced;
mod jobs;
mod refused;
mod secrets;
mod terminal;

use gitdoor_tests::by_both_gh;
use gitdoor_tests::gh::{self, Version};
use gitdoor_tests::laptop::{Laptop, names};

use crate::PROGRAM;

/// Commits on a new branch of the clone in `api`.
pub(crate) const COMMIT: &str = "git commit --quiet --allow-empty -m 'Fix it'";

by_both_gh![
    git_and_gh_work_with_an_app_and_what_was_pushed_is_kept,
    git_and_gh_work_with_a_token_which_the_doors_rules_keep_to_one_repository,
    the_token_that_the_developers_gh_has_is_asked_for,
];

async fn git_and_gh_work_with_an_app_and_what_was_pushed_is_kept(version: Version) {
    let laptop = Laptop::new(PROGRAM, &version);
    let app = laptop.app();
    let flags = [&app[0], &app[1], &app[2], "--read-statuses", "--repository=acme/api", "--branch=agent/*"];
    let script = format!(
        "git clone --quiet https://github.com/acme/api
         git clone --quiet git@github.com:acme/api.git by-ssh
         cd api
         git switch --quiet -c agent/fix && {COMMIT}
         git push --quiet origin agent/fix
         git push origin HEAD:main 2>&1 && exit 90
         git push origin HEAD:other 2>&1 && exit 91
         gh pr view 42 --json=title
         gh pr checkout 42 2>&1
         gh api repos/acme/api --jq .full_name
         cd ..
         gh repo clone acme/api by-gh -- --quiet
         git -C by-gh remote get-url origin"
    );
    let said = laptop.shell(&flags, &script).await.ok();
    said.says("refused: default branch")
        .says("this run may push the branches agent/* of acme/api other than main")
        .says("refused: branch not permitted")
        .says("Greet by name")
        .says("acme/api\n")
        .says("may push agent/* of acme/api, never main; log: ")
        .does_not_say("no isolation")
        .does_not_say("stand in for the pin");
    assert!(laptop.github.ref_of("acme/api", "refs/heads/agent/fix").is_some());

    let [place] = laptop.places().try_into().unwrap();
    let record = Laptop::record(&place);
    assert_eq!((&record["state"], &record["repository"]), (&"revoked".into(), &"acme/api".into()));
    let pushes = record["pushes"].as_array().unwrap();
    let outcomes: Vec<_> = pushes.iter().map(|push| push["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes, ["refused", "refused", "done"]);
    assert_eq!(record["run_id"].as_str(), place.file_name().and_then(|name| name.to_str()));
}

async fn git_and_gh_work_with_a_token_which_the_doors_rules_keep_to_one_repository(version: Version) {
    let laptop = Laptop::new(PROGRAM, &version);
    let token = laptop.token_flag();
    let script = format!(
        "git clone --quiet https://github.com/acme/api && git clone --quiet https://github.com/acme/web
         cd api && git switch --quiet -c fix && {COMMIT}
         gh pr view 42 --json=title
         git push --quiet origin fix
         git log -1 --format='by %an <%ae>'
         git push https://github.com/acme/web fix 2>&1 && exit 90
         git push origin HEAD:main 2>&1 && exit 91
         git push https://github.com/acme/none fix 2>&1 && exit 92
         gh pr merge 42 --merge 2>&1 && exit 93
         gh api -X DELETE repos/acme/api 2>&1 && exit 94
         exit 0"
    );
    let said = laptop.shell(&[&token, "--no-isolation"], &script).await.ok();
    said.says("stand in for the pin")
        .says("the first repository that it pushes to")
        .says("this run is bound to acme/api and may push nowhere else")
        .says("refused: default branch")
        .says("by Octo \"the\" Cat <octo@example.com>")
        .says("PullRequestMerge is not let through")
        .says("HTTP 405");
    assert!(laptop.github.ref_of("acme/api", "refs/heads/fix").is_some());
    assert_eq!(laptop.github.ref_of("acme/web", "refs/heads/fix"), None);
    assert_eq!(laptop.github.mints().len(), 0);
    let [place] = laptop.places().try_into().unwrap();
    assert_eq!(Laptop::record(&place)["repository"], "acme/api");
}

async fn the_token_that_the_developers_gh_has_is_asked_for(version: Version) {
    let laptop = Laptop::new(PROGRAM, &version);
    let url = laptop.github.url();
    let host = url.trim_start_matches("https://").split(':').next().unwrap();
    let none = laptop.exec(&["--from-gh"], &["touch", "ran"]).await.code_is(64);
    none.says("--from-gh: gh has no token for").says("gh auth login");
    laptop.log_in(host, &laptop.token());
    let said = laptop.shell(&["--from-gh", "--identity=read"], "git clone --quiet https://github.com/acme/api");
    said.await.ok().says("may read, and push nothing");
    assert_eq!(names(laptop.work()), ["api"]);
}

#[tokio::test]
async fn the_exit_status_is_that_of_the_command() {
    let laptop = Laptop::new(PROGRAM, &gh::newest());
    let token = laptop.token_flag();
    for flags in [&[token.as_str(), "--quiet"][..], &[&token, "--quiet", "--no-isolation"]] {
        laptop.exec(flags, &["true"]).await.ok();
        laptop.shell(flags, "exit 7").await.code_is(7);
        laptop.shell(flags, "kill -TERM $$").await.code_is(143);
        laptop.exec(flags, &["/nonexistent/agent"]).await.code_is(127).says("/nonexistent/agent");
        let quiet = laptop.exec(flags, &["echo", "hello"]).await.ok();
        assert_eq!(quiet.text(), "hello\n");
        let arguments = laptop.exec(flags, &["printf", "%s|", "--branch", "a b", "--"]).await.ok();
        assert_eq!(arguments.stdout, "--branch|a b|--|");
    }
}
