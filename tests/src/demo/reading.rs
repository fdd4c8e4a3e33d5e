//! The part of the story in which the agent reads with stock gh: pages, logs and diffs come through the door, and what
//! would write is refused in words.

use std::cell::RefCell;

use anyhow::{Context as _, Result, ensure};

use super::terminal::{expect, holds, say, search, shown, typed};
use crate::client::Output;
use crate::gh::{self, Gh};
use crate::github::{Host, Request, Route};
use crate::world::{Run, World};

/// Tells it, with the newest gh that is here, or says how to come by one.
pub(super) async fn tell(world: &World, run: &Run) -> Result<()> {
    let Some(version) = gh::found().pop() else {
        say("There is no gh here, so the agent reads nothing with it: `tests/run machine` fetches one.");
        return Ok(());
    };
    let before = world.github.requests().len();
    let reader = Reader { gh: world.gh(run, &version), world, before, printed: RefCell::default() };
    say(&format!(
        "The agent reads with stock gh, {}, which takes the door for GitHub Enterprise. It has the same bearer.",
        version.number
    ));
    reader.what_the_run_may_is_told().await?;
    reader.a_pull_request_is_read().await?;
    reader.a_log_comes_from_the_storage().await?;
    reader.pages_follow_each_other().await?;
    reader.writes_are_refused().await?;
    reader.only_reads_went_up()?;
    reader.nobody_else_was_asked()?;
    reader.no_token_came_down()
}

struct Reader<'a> {
    gh: Gh,
    world: &'a World,
    /// How many requests the upstream had before.
    before: usize,
    printed: RefCell<String>,
}

impl Reader<'_> {
    async fn what_the_run_may_is_told(&self) -> Result<()> {
        let output = self.gh(&["api", "gitdoor/run", "--jq", ".summary"]).await;
        expect(&output, 0, "it may push branches of acme/api other than main")
    }

    async fn a_pull_request_is_read(&self) -> Result<()> {
        let output = self.gh(&["pr", "view", "42", "--repo", "acme/api"]).await;
        expect(&output, 0, "Greet by name")?;
        let output = self.gh(&["pr", "diff", "42", "--repo", "acme/api"]).await;
        expect(&output, 0, "diff --git a/docs/greeting.md b/docs/greeting.md")
    }

    async fn a_log_comes_from_the_storage(&self) -> Result<()> {
        say(
            "GitHub answers for a log with a redirect to its storage. The door follows it, and gh never goes there.",
        );
        let output = self.gh(&["run", "view", "77", "--log", "--repo", "acme/api"]).await;
        expect(&output, 0, "test greets_by_name ... ok")?;
        ensure!(self.world.github.downloads().len() == 1, "the log did not come from the storage");
        Ok(())
    }

    async fn pages_follow_each_other(&self) -> Result<()> {
        say("It goes from page to page. GitHub's links to the next one lead to the door.");
        let issues = "repos/acme/api/issues?per_page=100";
        let output = self.gh(&["api", "--paginate", issues, "--jq", "length"]).await;
        expect(&output, 0, "100\n100\n")?;
        let pages = self.asked().filter(|request| request.path.ends_with("/issues")).count();
        ensure!(pages == 3 && output.stdout.lines().count() == 3, "{pages} pages of issues were asked for");
        Ok(())
    }

    async fn writes_are_refused(&self) -> Result<()> {
        say("What would write is refused, and gh says so.");
        let refused = "the API is read-only for a run";
        let output = self.gh(&["pr", "comment", "42", "--body", "Looks good.", "--repo", "acme/api"]).await;
        expect(&output, 1, refused)?;
        let output =
            self.gh(&["api", "--silent", "-X", "POST", "repos/acme/api/issues", "-f", "title=Greet me"]).await;
        expect(&output, 1, refused)?;
        let close =
            "query=mutation { closePullRequest(input: {pullRequestId: \"PR_kwDO42\"}) { clientMutationId } }";
        let output = self.gh(&["api", "--silent", "graphql", "-f", close]).await;
        expect(&output, 1, refused)
    }

    fn only_reads_went_up(&self) -> Result<()> {
        for request in self.asked() {
            let Request { method, path, .. } = &request;
            let reads = if request.route == Route::Graphql {
                request.json().is_some_and(|asked| is_query(&asked["query"]))
            } else {
                method == "GET"
            };
            ensure!(reads, "{method} {path} reached the upstream");
            let token = self.world.github.token_of(&request).context("a request without a token")?;
            ensure!(token.permissions.values().all(|level| level == "read"), "{method} {path} with {token:?}");
        }
        let downloads = self.world.github.downloads();
        ensure!(
            downloads.iter().all(|request| request.header("authorization").is_none()),
            "the storage got a token"
        );
        let count = self.asked().count();
        say(&format!(
            "{count} requests reached the upstream's API: all reads, all with a token that can only read."
        ));
        Ok(())
    }

    fn nobody_else_was_asked(&self) -> Result<()> {
        let hosts = self.world.recorder().hosts();
        ensure!(hosts.is_empty(), "gh asked {hosts:?}");
        say("gh asked no host but the door.");
        Ok(())
    }

    fn no_token_came_down(&self) -> Result<()> {
        let tokens = self.world.token_secrets();
        let printed = self.printed.borrow();
        ensure!(!holds(&tokens, printed.as_bytes()), "gh printed a token");
        let files = search(&tokens, self.gh.environment(), self.gh.home())?;
        say(&format!("No token is in the {} bytes that it printed, nor in its {files} files.", printed.len()));
        Ok(())
    }

    /// The requests to the upstream's API since the reading began, but control's own.
    fn asked(&self) -> impl Iterator<Item = Request> {
        let requests = self.world.github.requests().into_iter().skip(self.before);
        requests.filter(|request| request.server == Host::Api && request.route != Route::Mint)
    }

    /// Runs gh, and shows what was typed and what was printed.
    async fn gh(&self, arguments: &[&str]) -> Output {
        typed("gh", arguments);
        let output = shown(self.gh.run(arguments).await);
        self.printed.borrow_mut().push_str(&output.text());
        output
    }
}

/// Whether a document only asks: in one that does not, the word is in the text.
fn is_query(document: &serde_json::Value) -> bool {
    document.as_str().is_some_and(|text| !text.contains("mutation"))
}
