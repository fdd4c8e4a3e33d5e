//! Searches: code by `git grep`, issues and pull requests by words and qualifiers, repositories by name.

use serde_json::{Value, json};

use super::accounts::visible;
use super::rest::Asked;
use super::{Good, Refusal, views};
use crate::github::furnished::Ground;
use crate::github::objects::{commit_id, entries, grep};
use crate::github::repositories::Repository;

/// A query: plain words, and `name:value` pairs.
pub(crate) struct Search {
    words: Vec<String>,
    qualifiers: Vec<(String, String)>,
}

impl Search {
    /// Reads a query. Parentheses and boolean words say nothing here.
    pub(crate) fn parse(query: &str) -> Self {
        let parts = query.split_whitespace().map(|part| part.trim_matches(['(', ')', '"']));
        let parts = parts.filter(|part| !part.is_empty() && !["AND", "OR", "NOT"].contains(part));
        let mut search = Self { words: Vec::new(), qualifiers: Vec::new() };
        for part in parts {
            match part.split_once(':') {
                Some((name, value)) => search.qualifiers.push((name.to_lowercase(), value.to_lowercase())),
                None => search.words.push(part.to_lowercase()),
            }
        }
        search
    }

    fn values<'a>(&'a self, names: &'a [&str]) -> impl Iterator<Item = &'a str> {
        self.qualifiers.iter().filter(|(name, _)| names.contains(&name.as_str())).map(|(_, value)| value.as_str())
    }

    /// Whether a repository is among those that it asks for.
    pub(crate) fn covers(&self, repository: &Repository) -> bool {
        let name = repository.name.to_lowercase();
        let owner = name.split('/').next().unwrap_or_default();
        let mut named = self.values(&["repo"]).peekable();
        let among = named.peek().is_none() || named.any(|wanted| wanted == name);
        among && self.values(&["org", "user", "owner"]).all(|wanted| wanted == owner)
    }

    /// Whether an issue or a pull request fits.
    pub(crate) fn fits(&self, issue: &Value) -> bool {
        let text = |name: &str| issue[name].as_str().unwrap_or_default().to_lowercase();
        let worded = format!("{} {}", text("title"), text("body"));
        self.words.iter().all(|word| worded.contains(word))
            && self.qualifiers.iter().all(|(name, value)| match (name.as_str(), value.as_str()) {
                ("is" | "type", "pr" | "pull-request") => issue["is_pull"] == true,
                ("is" | "type", "issue") => issue["is_pull"] == false,
                ("is", "merged") => issue["merged"] == true,
                ("is" | "state", "open" | "closed") => text("state") == *value,
                ("author", author) => text("author") == author.trim_start_matches('@'),
                ("head", head) => text("head_ref") == head,
                ("base", base) => text("base_ref") == base,
                ("label", label) => issue["labels"].as_array().is_some_and(|of| of.iter().any(|one| one == label)),
                // Nobody is assigned, mentioned or asked for a review.
                ("assignee" | "mentions" | "involves" | "review-requested" | "user-review-requested", _) => false,
                _ => true,
            })
    }
}

/// `GET /search/{kind}`.
pub(crate) fn rest(asked: &Asked<'_>, kind: &str) -> Result<Good, Refusal> {
    let query = asked.query.get("q").unwrap_or_default();
    if query.is_empty() {
        return Err(Refusal::new(422, "Validation Failed"));
    }
    let search = Search::parse(query);
    let repositories = visible(asked, |repository| search.covers(repository));
    let grounds = repositories.iter().map(|repository| Ground::new(asked.state, repository));
    let items = match kind {
        "code" if !asked.token.may("contents", "read") => return Err(Refusal::forbidden()),
        "code" => grounds.flat_map(|ground| code(&ground, &search, asked)).collect(),
        "issues" => grounds.flat_map(|ground| issues(&ground, &search, asked)).collect(),
        "repositories" => {
            let named = |ground: &Ground| {
                search.words.iter().all(|word| ground.repository.name.to_lowercase().contains(word))
            };
            grounds.filter(named).map(|ground| scored(views::repository(&ground, None))).collect()
        }
        _ => return Err(Refusal::not_found()),
    };
    Ok(Good::Counted("items", items))
}

fn issues(ground: &Ground, search: &Search, asked: &Asked<'_>) -> Vec<Value> {
    let may = |issue: &Value| {
        let permission = if issue["is_pull"] == true { "pull_requests" } else { "issues" };
        asked.token.may(permission, "read")
    };
    let fitting = ground.furnishing().list("issues").iter().filter(|issue| search.fits(issue) && may(issue));
    fitting.map(|issue| scored(views::issue(ground, issue))).collect()
}

fn scored(mut item: Value) -> Value {
    item["score"] = 1.0.into();
    item
}

fn code(ground: &Ground, search: &Search, asked: &Asked<'_>) -> Vec<Value> {
    let repository = &ground.repository;
    let term = search.words.join(" ");
    let Some(commit) = commit_id(&repository.folder, &repository.default_branch) else { return Vec::new() };
    let mut lines = grep(&repository.folder, &commit, &term);
    lines.dedup_by(|one, before| one.0 == before.0);
    let texts = asked.accept().contains("text-match");
    lines.iter().map(|(path, line)| found(ground, &commit, path, texts.then_some((line, &term)))).collect()
}

/// A file that was found, and with it the line if the client asks for that.
fn found(ground: &Ground, commit: &str, path: &str, line: Option<(&String, &String)>) -> Value {
    let (git, api, name) = (&ground.urls.git, &ground.urls.api, &ground.repository.name);
    let id = entries(&ground.repository.folder, commit, path).map(|(entry, _)| entry.id);
    let url = format!("{api}/repositories/{}/contents/{path}?ref={commit}", ground.repository.id);
    let mut item = json!({
        "name": path.rsplit('/').next(),
        "path": path,
        "sha": id,
        "url": url,
        "git_url": format!("{api}/repositories/{}/git/blobs/{}", ground.repository.id, id.as_deref().unwrap_or("")),
        "html_url": format!("{git}/{name}/blob/{commit}/{path}"),
        "repository": views::repository(ground, None),
        "score": 1.0,
    });
    if let Some((line, term)) = line {
        let at = line.to_lowercase().find(&term.to_lowercase()).unwrap_or_default();
        item["text_matches"] = json!([{
            "object_url": url,
            "object_type": "FileContent",
            "property": "content",
            "fragment": line,
            "matches": [{ "text": term, "indices": [at, at + term.len()] }],
        }]);
    }
    item
}
