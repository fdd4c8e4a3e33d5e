//! The story: a run without a repository clones, binds by its first push, is refused, reads, is revoked.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use gitdoor_proto::v1::{Identity, Push, PushOutcome};

use super::reading;
use super::terminal::{expect, say, search, shown, typed};
use crate::git::{Git, Output};
use crate::world::{Run, World};

/// Tells it; fails at the first step that does not do what it should.
pub(super) async fn tell() -> Result<()> {
    say("gitdoor's control and data plane start, and a stand-in for GitHub with acme/api and acme/web.");
    let program = std::env::current_exe()?;
    let world = World::builder(&program).detached().control_flag("--read-statuses").start().await;
    world.github.seed("acme/api").furnished().create();
    world.github.create("acme/web");
    say(&format!("git's remote is {}, the door. Behind it is {}.", world.url(0), world.github.url()));
    say("A run is registered: identity write, no repository. Its bearer is all that its sandbox gets.");
    let run = world.registration(Identity::Write).id("demo").send().await?;

    let sandbox = Sandbox { git: world.git(&run), world: &world, program };
    sandbox.clone_works().await?;
    sandbox.default_branch_is_refused().await?;
    sandbox.branch_lands().await?;
    sandbox.other_repository_is_refused().await?;
    sandbox.traffic_shows_no_token().await?;
    reading::tell(&world, &run).await?;
    sandbox.revocation_ends_it(&run).await?;
    sandbox.ledger_tells(&run).await?;
    sandbox.nothing_leaked()?;
    world.finish().await;
    say("All parts have ended. Every step did what it should.");
    Ok(())
}

struct Sandbox<'a> {
    git: Git,
    world: &'a World,
    program: PathBuf,
}

impl Sandbox<'_> {
    async fn clone_works(&self) -> Result<()> {
        say("The agent clones, with stock git.");
        let output = self.git(&self.git, &["clone", &self.git.url("acme/api")]).await;
        expect(&output, 0, "Cloning into 'api'")?;
        fs::write(self.api().folder().join("fix.txt"), "The fix.\n")?;
        let commit = ["commit", "--quiet", "--message=Fix it"];
        expect(&self.git(&self.api(), &["add", "fix.txt"]).await, 0, "")?;
        expect(&self.git(&self.api(), &commit).await, 0, "")
    }

    async fn default_branch_is_refused(&self) -> Result<()> {
        say("It pushes to the default branch, and is told why not.");
        let before = self.world.github.ref_of("acme/api", "refs/heads/main");
        let output = self.git(&self.api(), &["push", "origin", "HEAD:main"]).await;
        expect(&output, 1, "refused: default branch")?;
        ensure!(self.world.github.ref_of("acme/api", "refs/heads/main") == before, "main has moved");
        ensure!(self.world.github.pushes().is_empty(), "the push was forwarded");
        Ok(())
    }

    async fn branch_lands(&self) -> Result<()> {
        say("It pushes a branch of its own.");
        let output = self.git(&self.api(), &["push", "origin", "HEAD:fix-x"]).await;
        expect(&output, 0, "HEAD -> fix-x")?;
        let here = self.api().id_of("HEAD").await;
        let there = self.world.github.ref_of("acme/api", "refs/heads/fix-x");
        ensure!(there.as_deref() == Some(here.as_str()), "fix-x is not in the upstream");
        say(&format!("The upstream has it: refs/heads/fix-x is {here}."));
        Ok(())
    }

    async fn other_repository_is_refused(&self) -> Result<()> {
        say("It tries another repository. The run is bound to the first one that it pushed to.");
        let push = ["push", &self.git.url("acme/web"), "HEAD:fix-x"];
        let output = self.git(&self.api(), &push).await;
        expect(&output, 128, "acme/api")?;
        ensure!(self.world.github.ref_of("acme/web", "refs/heads/fix-x").is_none(), "acme/web has the branch");
        Ok(())
    }

    async fn traffic_shows_no_token(&self) -> Result<()> {
        say("It fetches and pushes with every byte of its traffic written down, and looks for a token in it.");
        let trace = self.git.home().join(TRACE);
        let git = self.api().env("GIT_TRACE_CURL", trace.display().to_string());
        let git = git.env("GIT_TRACE_REDACT", "0").env("GIT_TRACE_PACKET", trace.display().to_string());
        expect(&self.git(&git, &["fetch", "origin"]).await, 0, "")?;
        expect(&self.git(&git, &["push", "origin", "HEAD:fix-y"]).await, 0, "fix-y")?;
        let trace = fs::read(&trace).context("the trace")?;
        let text = String::from_utf8_lossy(&trace);
        ensure!(text.to_lowercase().contains("authorization: basic"), "the trace is redacted");
        let tokens = self.world.token_secrets();
        ensure!(tokens.len() >= 2, "fewer tokens were minted than were used");
        // A trace breaks its lines; a token that was there would stand in the headers, which it does not break.
        ensure!(!tokens.iter().any(|token| token.is_in(&text)), "a token was in the client's traffic");
        say(&format!("{} bytes of trace, {} tokens minted, none of them in it.", trace.len(), tokens.len()));
        fs::remove_file(self.git.home().join(TRACE))?;
        Ok(())
    }

    async fn revocation_ends_it(&self, run: &Run) -> Result<()> {
        say("The operator revokes the run.");
        expect(&self.gitdoor(&["run", "revoke", &run.id]).await, 0, "")?;
        say("The agent pushes once more.");
        let output = self.git(&self.api(), &["push", "origin", "HEAD:fix-z"]).await;
        expect(&output, 128, "revoked")?;
        ensure!(self.world.github.ref_of("acme/api", "refs/heads/fix-z").is_none(), "fix-z landed");
        ensure!(self.git.erasures() == 0, "git erased its credential");
        Ok(())
    }

    async fn ledger_tells(&self, run: &Run) -> Result<()> {
        say("What the ledger holds.");
        expect(&self.gitdoor(&["run", "show", &run.id]).await, 0, "fix-x")?;
        let shown = self.world.show(run).await;
        let outcomes: Vec<PushOutcome> = shown.pushes.iter().map(Push::outcome).collect();
        let expected = [PushOutcome::Done, PushOutcome::Done, PushOutcome::Refused];
        ensure!(outcomes == expected, "the ledger holds {outcomes:?}");
        Ok(())
    }

    fn nothing_leaked(&self) -> Result<()> {
        say("No installation token was anywhere in the sandbox.");
        let tokens = self.world.token_secrets();
        let files = search(&tokens, self.git.environment(), self.git.home())?;
        say(&format!("Searched: its environment, {files} files, its traffic."));
        Ok(())
    }

    fn api(&self) -> Git {
        self.git.at("api")
    }

    /// Runs git, and shows what was typed and what was printed.
    async fn git(&self, git: &Git, arguments: &[&str]) -> Output {
        typed("git", arguments);
        shown(git.run(arguments).await)
    }

    /// Runs the operator's command line, likewise.
    async fn gitdoor(&self, arguments: &[&str]) -> Output {
        typed("gitdoor", arguments);
        let control = format!("--control={}", self.world.runs_address());
        let arguments = [&["__gitdoor"], arguments, &[control.as_str()]].concat();
        shown(self.git.run_program(&self.program, &arguments).await)
    }
}

/// Where git writes down its traffic.
const TRACE: &str = "trace";
