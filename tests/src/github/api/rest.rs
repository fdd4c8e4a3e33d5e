//! REST: which path is what, the permission that it takes, and who answers.

use hyper::http::request;
use percent_encoding::percent_decode_str;

use super::{Good, Query, Refusal, Reply, accounts, actions, contents, issues, pulls, releases};
use crate::github::State;
use crate::github::furnished::Ground;
use crate::github::record::Record;
use crate::github::repositories::{Found, Repository};
use crate::github::tokens::Token;

/// A request, read.
pub(crate) struct Asked<'a> {
    pub(crate) state: &'a State,
    pub(crate) token: &'a Token,
    pub(crate) head: &'a request::Parts,
    pub(crate) query: Query,
}

/// A request about one repository that the token sees.
pub(crate) struct Call<'a> {
    pub(crate) asked: &'a Asked<'a>,
    pub(crate) repository: &'a Repository,
    pub(crate) ground: Ground,
    /// The path after the repository, decoded.
    pub(crate) path: Vec<&'a str>,
}

impl Asked<'_> {
    /// The media types that the client takes.
    pub(crate) fn accept(&self) -> &str {
        self.head.headers.get("accept").and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

type Answer = Result<Good, Refusal>;

/// Answers a request.
pub(crate) fn answer(state: &State, token: &Token, head: &request::Parts, record: &Record) -> Reply {
    let asked = Asked { state, token, head, query: Query::of(head) };
    let segments = head.uri.path().split('/').skip(1);
    let path = segments.map(|segment| percent_decode_str(segment).decode_utf8_lossy().into_owned());
    let path = path.collect::<Vec<_>>();
    let path = path.iter().map(String::as_str).collect::<Vec<_>>();
    let (found, rest) = {
        let repositories = state.repositories.lock().unwrap();
        match path.as_slice() {
            ["repos", owner, name, rest @ ..] => (repositories.find(&format!("{owner}/{name}")), rest),
            ["repositories", id, rest @ ..] => {
                let found = id.parse().ok().and_then(|id| repositories.by_id(id));
                (found.cloned().map(Found::Here), rest)
            }
            path => {
                drop(repositories);
                let url = format!("{}{}", state.urls().api, head.uri.path());
                return finish(accounts::answer(&asked, path), &asked, &url);
            }
        }
    };
    match found {
        Some(Found::Here(repository)) => about(&asked, &repository, rest, record),
        Some(Found::Moved(repository)) if repository.is_shown_to(token) => moved(&asked, &repository),
        Some(Found::Moved(_)) | None => Refusal::not_found().into(),
    }
}

fn about(asked: &Asked<'_>, repository: &Repository, path: &[&str], record: &Record) -> Reply {
    if !repository.is_shown_to(asked.token) {
        return Refusal::not_found().into();
    }
    record.note(|request| request.repository = Some(repository.name.clone()));
    let ground = Ground::new(asked.state, repository);
    let call = Call { asked, repository, ground, path: path.to_vec() };
    let id = repository.id.to_string();
    let url = [&[asked.state.urls().api.as_str(), "repositories", &id], path].concat().join("/");
    finish(call.answer(), asked, &url)
}

fn finish(answer: Answer, asked: &Asked<'_>, url: &str) -> Reply {
    match answer {
        Ok(good) => good.into_reply(&asked.query, url),
        Err(refusal) => refusal.into(),
    }
}

/// The rest of the path stays; the name becomes the id.
fn moved(asked: &Asked<'_>, repository: &Repository) -> Reply {
    let rest = asked.head.uri.path().splitn(5, '/').nth(4).map(|rest| format!("/{rest}")).unwrap_or_default();
    let query = asked.head.uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    Reply::moved(&format!("{}/repositories/{}{rest}{query}", asked.state.urls().api, repository.id))
}

/// One of these permissions is enough.
type Permissions = &'static [&'static str];

/// What answers a path.
type Handler = fn(&Call<'_>) -> Answer;

impl Call<'_> {
    fn answer(&self) -> Answer {
        let reads = ["GET", "HEAD"].contains(&self.asked.head.method.as_str());
        let (permissions, handler) = self.route().ok_or_else(Refusal::not_found)?;
        let level = if reads { "read" } else { "write" };
        if !permissions.iter().any(|permission| self.asked.token.may(permission, level)) {
            return Err(Refusal::forbidden());
        }
        if !reads {
            return Err(Refusal::new(501, "The stand-in changes nothing over its API"));
        }
        handler(self)
    }

    fn route(&self) -> Option<(Permissions, Handler)> {
        const ISSUES: Permissions = &["issues", "pull_requests"];
        Some(match self.path.as_slice() {
            [] => (&["metadata"], contents::repository),
            ["readme"] => (&["contents"], contents::readme),
            ["license"] => (&["contents"], contents::license),
            ["contents", ..] => (&["contents"], contents::contents),
            ["branches"] => (&["contents"], contents::branches),
            ["branches", ..] => (&["contents"], contents::branch),
            ["commits"] => (&["contents"], contents::commits),
            ["commits", _] => (&["contents"], contents::commit),
            ["commits", _, "check-runs"] => (&["checks"], pulls::check_runs),
            ["commits", _, "status"] => (&["statuses"], pulls::combined_status),
            ["commits", _, "statuses"] => (&["statuses"], pulls::statuses),
            ["tarball" | "zipball", ..] => (&["contents"], contents::archive),
            ["labels"] => (ISSUES, issues::labels),
            ["issues"] => (ISSUES, issues::list),
            ["issues", _] => (ISSUES, issues::one),
            ["issues", _, "comments"] => (ISSUES, issues::comments),
            ["issues", _, "labels"] => (ISSUES, issues::labels_of),
            ["pulls"] => (&["pull_requests"], pulls::list),
            ["pulls", _] => (&["pull_requests"], pulls::one),
            ["pulls", _, "commits"] => (&["pull_requests"], pulls::commits),
            ["pulls", _, "files"] => (&["pull_requests"], pulls::files),
            ["pulls", _, "reviews"] => (&["pull_requests"], pulls::reviews),
            ["pulls", _, "comments"] => (&["pull_requests"], pulls::no_comments),
            ["check-runs", _] => (&["checks"], pulls::check_run),
            ["check-runs", _, "annotations"] => (&["checks"], actions::annotations),
            ["actions", "secrets", "public-key"] => (&["secrets"], actions::key_of_secrets),
            ["actions", path @ ..] => (&["actions"], of_actions(path)?),
            ["releases"] => (&["contents"], releases::list),
            ["releases", "latest"] => (&["contents"], releases::latest),
            ["releases", "tags", _] => (&["contents"], releases::by_tag),
            ["releases", "assets", _] => (&["contents"], releases::asset),
            ["releases", _] => (&["contents"], releases::by_id),
            ["releases", _, "assets"] => (&["contents"], releases::assets),
            _ => return None,
        })
    }

    /// A segment that must be a number.
    pub(crate) fn number(&self, index: usize) -> Result<u64, Refusal> {
        self.path.get(index).and_then(|segment| segment.parse().ok()).ok_or_else(Refusal::not_found)
    }

    /// Keeps what a query's parameter leaves of a list.
    pub(crate) fn wanted(&self, parameter: &str, value: &str) -> bool {
        self.asked.query.get(parameter).is_none_or(|wanted| wanted.eq_ignore_ascii_case(value))
    }
}

/// What answers a path below `actions`.
fn of_actions(path: &[&str]) -> Option<Handler> {
    Some(match path {
        ["workflows"] => actions::workflows,
        ["workflows", _] => actions::workflow,
        ["workflows", _, "runs"] | ["runs"] => actions::runs,
        ["runs", _] => actions::run,
        ["runs", _, "jobs"] | ["runs", _, "attempts", _, "jobs"] => actions::jobs,
        ["runs", _, "logs"] | ["runs", _, "attempts", _, "logs"] => actions::logs,
        ["runs", _, "artifacts"] | ["artifacts"] => actions::artifacts,
        ["artifacts", _] => actions::artifact,
        ["artifacts", _, "zip"] => actions::artifact_zip,
        ["jobs", _] => actions::job,
        ["jobs", _, "logs"] => actions::job_log,
        ["caches"] => actions::caches,
        _ => return None,
    })
}
