//! What agents read through gh, by stock gh, old and new, through the door: for each command its exit status, what it
//! prints, and every request that reaches the upstream on its behalf.
//!
//! The commands are written down as sessions in a shell, `gh_reads/*.sh-session`, in a clone of the furnished
//! `acme/api`.

mod session;
mod upstream;

use std::fs;

use gitdoor_proto::v1::Identity;
use gitdoor_tests::by_both_gh;
use gitdoor_tests::gh::{DOOR, Gh, Version};
use gitdoor_tests::github::ASSET;
use gitdoor_tests::world::{Run, World};

use crate::PROGRAM;

by_both_gh![
    repositories_are_listed_viewed_cloned_and_searched,
    the_api_is_asked_page_by_page,
    pull_requests_are_listed_viewed_compared_and_checked,
    commit_statuses_are_shown_where_the_operator_lets_runs_read_them,
    a_pull_request_is_checked_out_and_what_is_pushed_from_there_lands_and_binds_the_run,
    workflow_runs_are_listed_viewed_and_downloaded,
    issues_are_listed_viewed_and_searched,
    releases_are_listed_viewed_and_downloaded,
    gh_knows_who_it_is,
    a_plain_view_works_in_a_new_gh_and_fails_in_an_old_one_which_asks_for_classic_projects,
];

async fn repositories_are_listed_viewed_cloned_and_searched(version: Version) {
    Stage::set(version).await.play(include_str!("gh_reads/repositories.sh-session")).await.clear().await;
}

async fn the_api_is_asked_page_by_page(version: Version) {
    Stage::set(version).await.play(include_str!("gh_reads/api.sh-session")).await.clear().await;
}

async fn pull_requests_are_listed_viewed_compared_and_checked(version: Version) {
    Stage::set(version).await.play(include_str!("gh_reads/pulls.sh-session")).await.clear().await;
}

async fn commit_statuses_are_shown_where_the_operator_lets_runs_read_them(version: Version) {
    let world = World::builder(PROGRAM).control_flag("--read-statuses").start().await;
    let mut stage = Stage::set_in(world, version).await;
    stage.readable.push("statuses");
    stage.play(include_str!("gh_reads/statuses.sh-session")).await.clear().await;
}

async fn a_pull_request_is_checked_out_and_what_is_pushed_from_there_lands_and_binds_the_run(version: Version) {
    let stage = Stage::set(version).await.play(include_str!("gh_reads/checkout.sh-session")).await;
    let pushed = stage.gh.git(&["rev-parse", "feature-42"]).await.ok().stdout;
    let landed = stage.world.github.ref_of("acme/api", "refs/heads/feature-42");
    assert_eq!(landed.as_deref(), Some(pushed.trim()));
    let binding = stage.world.show(&stage.run).await.run.unwrap().binding.unwrap();
    assert_eq!((binding.repository.as_str(), binding.repository_id), ("acme/api", stage.id));
    stage.clear().await;
}

async fn workflow_runs_are_listed_viewed_and_downloaded(version: Version) {
    Stage::set(version).await.play(include_str!("gh_reads/runs.sh-session")).await.clear().await;
}

async fn issues_are_listed_viewed_and_searched(version: Version) {
    Stage::set(version).await.play(include_str!("gh_reads/issues.sh-session")).await.clear().await;
}

async fn releases_are_listed_viewed_and_downloaded(version: Version) {
    let stage = Stage::set(version).await.play(include_str!("gh_reads/releases.sh-session")).await;
    assert_eq!(fs::read(stage.gh.folder().join("tool.tar.gz")).unwrap(), ASSET);
    stage.clear().await;
}

async fn gh_knows_who_it_is(version: Version) {
    let stage = Stage::set(version).await.play(include_str!("gh_reads/account.sh-session")).await;
    let before = stage.world.github.requests().len();
    assert_eq!(stage.gh.password_for(DOOR).await.as_ref(), Some(&stage.run.bearer));
    assert_eq!(stage.world.github.requests().len(), before);
    stage.clear().await;
}

async fn a_plain_view_works_in_a_new_gh_and_fails_in_an_old_one_which_asks_for_classic_projects(version: Version) {
    Stage::set(version).await.play(include_str!("gh_reads/views.sh-session")).await.clear().await;
}

/// A world with a furnished repository, and a gh in a clone of it.
struct Stage {
    world: World,
    id: u64,
    /// What a read token may read.
    readable: Vec<&'static str>,
    run: Run,
    gh: Gh,
}

impl Stage {
    async fn set(version: Version) -> Self {
        Self::set_in(World::start(PROGRAM).await, version).await
    }

    async fn set_in(world: World, version: Version) -> Self {
        let id = world.github.seed("acme/api").furnished().create();
        world.github.create("acme/web");
        let run = world.register(Identity::Write).await;
        let gh = world.gh(&run, &version);
        gh.git(&["clone", "--quiet", &gh.url("acme/api")]).await.ok();
        let readable = vec!["actions", "checks", "contents", "issues", "metadata", "pull_requests"];
        Self { id, readable, run, gh: gh.at("api"), world }
    }

    /// Runs a session's commands, each by a gh that has kept nothing of those before, and holds all that it says
    /// against what came of them.
    async fn play(self, script: &str) -> Self {
        let mut differences = Vec::new();
        for step in session::steps(script, &self.gh.version().number) {
            self.gh.forget();
            let before = self.world.github.requests().len();
            let mut output = self.gh.shell(step.command).await;
            let went_up = upstream::lines(&self, before).await;
            // What it stands for, at whatever port.
            for printed in [&mut output.stdout, &mut output.stderr] {
                *printed = printed.replace(&self.world.github.url(), "https://github.com");
            }
            differences.extend(step.difference(&output, went_up));
        }
        assert!(differences.is_empty(), "{}", differences.join("\n"));
        self
    }

    /// Whatever was done, it was done through the door. What is not seen here, since gh takes no proxy to `localhost`,
    /// is the upstream itself: gh does not trust its certificate.
    async fn clear(self) {
        assert_eq!(self.world.recorder().hosts(), Vec::<String>::new());
        self.world.finish().await;
    }
}
