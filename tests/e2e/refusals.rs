//! Stock git is refused: what it prints, how it exits, and that nothing of a refused push went up.

mod limits;
mod runs;

use std::time::Duration;

use gitdoor_proto::v1::{Identity, PushOutcome};
use gitdoor_tests::git::{self, Git, Output};
use gitdoor_tests::world::{Run, World};

use crate::PROGRAM;

/// Waits for something that comes soon; whether it came.
async fn came(there: impl Fn() -> bool) -> bool {
    for _ in 0..600 {
        if there() {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    false
}

/// What `git push` is given, and what it then says.
type Row = (&'static [&'static str], &'static [&'static str]);

/// What the hint says of a run without options, bound to `acme/api`.
const HINT: &str = "remote: gitdoor: this run may push branches of acme/api other than main";

/// Every rule about refs, and every place among several where a refused ref may stand.
const ROWS: &[Row] = &[
    (&["HEAD:main"], &["! [remote rejected] HEAD -> main (refused: default branch)"]),
    (&["--force", "HEAD~2:main"], &["! [remote rejected] HEAD~2 -> main (refused: default branch)"]),
    (&["--delete", "main"], &["! [remote rejected] main (refused: default branch)"]),
    (&["--delete", "old"], &["! [remote rejected] old (refused: delete)"]),
    (&[":old"], &["! [remote rejected] old (refused: delete)"]),
    (&["v1"], &["! [remote rejected] v1 -> v1 (refused: tag)"]),
    (&["--tags"], &["! [remote rejected] v1 -> v1 (refused: tag)", "v2 -> v2 (refused: tag)"]),
    (
        &["--follow-tags", "HEAD:fix-x"],
        &["HEAD -> fix-x (refused: another ref of this push was refused)", "v2 -> v2 (refused: tag)"],
    ),
    (&["refs/notes/commits"], &["refs/notes/commits -> refs/notes/commits (refused: not a branch)"]),
    (&["HEAD:refs/pull/7/head"], &["HEAD -> refs/pull/7/head (refused: not a branch)"]),
    (&["HEAD:refs/for/main"], &["HEAD -> refs/for/main (refused: not a branch)"]),
    (&["HEAD:refs/replace/1"], &["HEAD -> refs/replace/1 (refused: not a branch)"]),
    (
        &["HEAD:main", "HEAD:a", "HEAD:b"],
        &[
            "HEAD -> main (refused: default branch)",
            "HEAD -> a (refused: another ref of this push was refused)",
            "HEAD -> b (refused: another ref of this push was refused)",
        ],
    ),
    (
        &["HEAD:a", "HEAD:main", "HEAD:b"],
        &[
            "HEAD -> a (refused: another ref of this push was refused)",
            "HEAD -> main (refused: default branch)",
            "HEAD -> b (refused: another ref of this push was refused)",
        ],
    ),
    (
        &["HEAD:a", "HEAD:b", ":old"],
        &[
            "HEAD -> a (refused: another ref of this push was refused)",
            "HEAD -> b (refused: another ref of this push was refused)",
            "old (refused: delete)",
        ],
    ),
    (
        &["--atomic", "HEAD:a", "HEAD:main"],
        &["HEAD -> a (refused: another ref of this push was refused)", "HEAD -> main (refused: default branch)"],
    ),
    (&["--quiet", "HEAD:main"], &["! [remote rejected] HEAD -> main (refused: default branch)"]),
    (
        &["--porcelain", "HEAD:main", "HEAD:a"],
        &[
            "!\tHEAD:refs/heads/main\t[remote rejected] (refused: default branch)\n",
            "!\tHEAD:refs/heads/a\t[remote rejected] (refused: another ref of this push was refused)\n",
        ],
    ),
    (
        &["--mirror"],
        &[
            "main -> main (refused: default branch)",
            "v1 -> v1 (refused: tag)",
            "refs/notes/commits -> refs/notes/commits (refused: not a branch)",
            "old (refused: delete)",
        ],
    ),
];

/// A clone of `acme/api` with a commit, two tags and a note that the upstream has not.
async fn clone(world: &World, run: &Run, program: &git::Installed) -> Git {
    let git = world.git(run).program(program).cloned("acme/api").await;
    git.commit("fix.txt", "fix\n").await;
    for arguments in [&["tag", "v1"][..], &["tag", "-a", "v2", "-m", "two"], &["notes", "add", "-m", "a note"]] {
        git.run(arguments).await.ok();
    }
    git
}

async fn push(git: &Git, arguments: &[&str]) -> Output {
    let options = arguments.iter().take_while(|argument| argument.starts_with("--")).copied();
    let refs = arguments.iter().skip_while(|argument| argument.starts_with("--")).copied();
    let all: Vec<&str> = ["push"].into_iter().chain(options).chain(["origin"]).chain(refs).collect();
    git.run(&all).await
}

#[tokio::test]
async fn every_refused_ref_is_told_to_git_by_name_and_nothing_of_its_push_goes_up() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    world.github.git("acme/api", &["branch", "old", "main"]);
    let before = world.github.refs("acme/api");
    for installed in git::all() {
        let run = world.register(Identity::Write).await;
        let git = clone(&world, &run, &installed).await;
        for (arguments, words) in ROWS {
            let said = push(&git, arguments).await.code_is(1).says(HINT).does_not_say("RPC failed");
            words.iter().fold(said, |said, words| said.says(words));
        }
        let pushes = world.show(&run).await.pushes;
        assert_eq!(pushes.len(), ROWS.len());
        assert!(pushes.iter().all(|push| push.outcome() == PushOutcome::Refused));
        assert!(pushes.iter().flat_map(|push| &push.refs).all(|reference| !reference.refusal.is_empty()));
        assert_eq!(git.erasures(), 0);
    }
    assert!(world.github.pushes().is_empty());
    assert_eq!(world.github.refs("acme/api"), before);
    world.finish().await;
}

#[tokio::test]
async fn the_default_branch_is_the_one_that_the_forge_names() {
    let world = World::start(PROGRAM).await;
    world.github.seed("acme/api").default_branch("trunk").create();
    let run = world.register(Identity::Write).await;
    let git = world.git(&run).cloned("acme/api").await;
    git.commit("fix.txt", "fix\n").await;
    let refused = git.run(&["push", "origin", "HEAD:trunk"]).await.code_is(1);
    refused.says("HEAD -> trunk (refused: default branch)").says("acme/api other than trunk");
    git.run(&["push", "origin", "HEAD:main"]).await.ok();
    assert_eq!(world.github.pushes_with_commands().len(), 1);
    world.finish().await;
}

#[tokio::test]
async fn what_was_the_default_branch_at_any_time_in_the_run_stays_refused() {
    let mut world = World::start(PROGRAM).await;
    world.github.seed("acme/api").branch("trunk").branch("next").create();
    let run = world.register(Identity::Write).await;
    let git = world.git(&run).cloned("acme/api").await;
    git.commit("fix.txt", "fix\n").await;
    git.run(&["push", "origin", "HEAD:fix-x"]).await.ok();
    // Control reads the default branch with each token that it mints: here because the forge ended the last one ...
    world.github.set_default_branch("acme/api", "trunk");
    world.github.expire_tokens();
    for branch in ["trunk", "main"] {
        let refused = git.run(&["push", "origin", &format!("HEAD:{branch}")]).await.code_is(1);
        refused.says("(refused: default branch)").says("acme/api other than main, trunk");
    }
    // ... and here because it forgot it.
    world.github.set_default_branch("acme/api", "next");
    world.control().restart().await;
    for branch in ["next", "trunk", "main"] {
        let refused = git.run(&["push", "origin", &format!("HEAD:{branch}")]).await.code_is(1);
        refused.says("(refused: default branch)").says("acme/api other than main, trunk, next");
    }
    git.run(&["push", "origin", "HEAD:fix-y"]).await.ok();
    let landed = world.github.pushes_with_commands();
    assert_eq!(landed.len(), 2);
    assert_eq!(git.erasures(), 0);
    world.finish().await;
}
