//! Fields that are more than a look into a node: the roots, look-ups by number or tag, and the clone token.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use super::document::Field;
use super::execute::Execution;
use super::nodes;
use crate::clock;
use crate::github::BOT;
use crate::github::api::search::Search;
use crate::github::api::views::is_known;
use crate::github::furnished::Ground;
use crate::github::repositories::{Found, Repository};

/// The kind of an error, and its words.
type Failure = (&'static str, String);

/// What GitHub says of the classic projects, which it has no more.
const CLASSIC: &str = "Projects (classic) is being deprecated in favor of the new Projects experience, see: \
                       https://github.blog/changelog/2024-05-23-sunset-notice-projects-classic/.";

impl Execution<'_> {
    /// The value of a field before its type is looked at.
    pub(super) fn resolve(&mut self, of: &str, node: &Value, field: &Field) -> Result<Value, Failure> {
        let text = |name: &str| field.arguments.get(name).and_then(Value::as_str).unwrap_or_default();
        let number = || field.arguments.get("number").cloned().unwrap_or_default();
        match (of, field.name.as_str()) {
            ("Query", "viewer") => Ok(viewer()),
            ("Query", "rateLimit") => Ok(self.rate_limit()),
            ("Query", "repository") => {
                let name = format!("{}/{}", text("owner"), text("name"));
                let unknown = || format!("Could not resolve to a Repository with the name '{name}'.");
                self.repository(&name).ok_or_else(|| ("NOT_FOUND", unknown()))
            }
            ("Query", "repositoryOwner") => Ok(self.account(text("login")).unwrap_or_default()),
            ("Query", "user" | "organization") => self.account_of_type(&field.name, text("login")),
            ("Query", "node") => self.by_id(text("id")),
            ("Query", "search") => Ok(self.search(text("query"), text("type"))),
            ("Repository", "issue") => {
                found(&node["issues"], "number", &number()).ok_or_else(|| unresolved("an Issue", &number()))
            }
            ("Repository", "pullRequest") => found(&node["pullRequests"], "number", &number())
                .ok_or_else(|| unresolved("a PullRequest", &number())),
            ("Repository", "issueOrPullRequest") => {
                let pull = || found(&node["pullRequests"], "number", &number());
                let issue = found(&node["issues"], "number", &number()).or_else(pull);
                issue.ok_or_else(|| unresolved("an issue or pull request", &number()))
            }
            ("Repository", "release") => {
                Ok(found(&node["releases"], "tagName", &text("tagName").into()).unwrap_or_default())
            }
            ("Repository", "label") => Ok(found(&node["labels"], "name", &text("name").into()).unwrap_or_default()),
            ("Repository", "tempCloneToken") => Ok(self.clone_token(node)),
            ("Ref", "target") => Ok(self.tip(node)),
            ("PullRequest" | "Issue", "projectCards") | ("Repository", "projects") => {
                if self.state.classic_projects.load(Ordering::SeqCst) {
                    Ok(json!([]))
                } else {
                    Err(("NOT_FOUND", CLASSIC.to_owned()))
                }
            }
            (_, name) => Ok(node[name].clone()),
        }
    }

    /// A repository by its name, if the token sees it.
    pub(super) fn repository(&mut self, name: &str) -> Option<Value> {
        if let Some(known) = self.repositories.get(name) {
            return Some(known.clone());
        }
        let found = self.state.repositories.lock().unwrap().find(name);
        let (Found::Here(repository) | Found::Moved(repository)) = found?;
        if !repository.is_shown_to(self.token) {
            return None;
        }
        let node = nodes::repository(&Ground::new(self.state, &repository), self.token);
        self.repositories.insert(name.to_owned(), node.clone());
        Some(node)
    }

    fn visible(&self, fits: impl Fn(&Repository) -> bool) -> Vec<Repository> {
        let repositories = self.state.repositories.lock().unwrap();
        let shown = repositories.all().iter().filter(|repository| repository.is_shown_to(self.token));
        shown.filter(|repository| fits(repository)).cloned().collect()
    }

    fn nodes_of(&mut self, repositories: &[Repository]) -> Vec<Value> {
        repositories.iter().filter_map(|repository| self.repository(&repository.name)).collect()
    }

    fn account(&mut self, login: &str) -> Option<Value> {
        let owned = self.visible(|repository| {
            repository.name.split_once('/').is_some_and(|(owner, _)| owner.eq_ignore_ascii_case(login))
        });
        if owned.is_empty() && !is_known(login) {
            return None;
        }
        let mut account = nodes::account(&self.state.urls(), login);
        account["repositories"] = self.nodes_of(&owned).into();
        Some(account)
    }

    fn account_of_type(&mut self, field: &str, login: &str) -> Result<Value, Failure> {
        let wanted = if field == "user" { "User" } else { "Organization" };
        let account = self.account(login).filter(|account| account["__typename"] == wanted);
        let article = if field == "user" { "a" } else { "an" };
        account.ok_or_else(|| {
            ("NOT_FOUND", format!("Could not resolve to {article} {wanted} with the login of '{login}'."))
        })
    }

    /// Any node by its global id.
    fn by_id(&mut self, id: &str) -> Result<Value, Failure> {
        let repositories = self.visible(|_any| true);
        let nodes = self.nodes_of(&repositories);
        let found = nodes.iter().find_map(|node| with_id(node, id)).cloned();
        found.ok_or_else(|| ("NOT_FOUND", format!("Could not resolve to a node with the global id of '{id}'")))
    }

    fn search(&mut self, query: &str, kind: &str) -> Value {
        let search = Search::parse(query);
        let repositories = self.visible(|repository| search.covers(repository));
        if kind == "REPOSITORY" {
            return self.nodes_of(&repositories).into();
        }
        let mut fitting = Vec::new();
        for repository in &repositories {
            let ground = Ground::new(self.state, repository);
            let issues = ground.furnishing().list("issues").iter().filter(|issue| search.fits(issue));
            fitting.extend(issues.map(|issue| nodes::issue_or_pull(&ground, issue)));
        }
        fitting.into()
    }

    fn rate_limit(&self) -> Value {
        let limit = self.limit.to_json();
        json!({
            "limit": limit["limit"],
            "cost": 1,
            "remaining": limit["remaining"],
            "used": limit["used"],
            "nodeCount": 0,
            "resetAt": clock::to_rfc3339(limit["reset"].as_i64().unwrap_or_default()),
        })
    }

    fn clone_token(&self, node: &Value) -> Value {
        let reads = node["isPrivate"] == true && self.token.may("contents", "read");
        let purpose = format!("temp_clone_token of {}", node["databaseId"]);
        if reads { self.state.secrets.of(&purpose).into() } else { Value::Null }
    }

    /// The commit that a branch is at.
    fn tip(&self, branch: &Value) -> Value {
        let name = branch["repository"]["__repository"].as_str().unwrap_or_default();
        let found = self.state.repositories.lock().unwrap().find(name);
        let Some(Found::Here(repository) | Found::Moved(repository)) = found else { return Value::Null };
        nodes::tip(&Ground::new(self.state, &repository), branch["name"].as_str().unwrap_or_default())
    }
}

fn viewer() -> Value {
    json!({ "__typename": "User", "id": "BOT_kgDO424242", "databaseId": 424_242, "login": BOT, "name": null })
}

fn found(items: &Value, field: &str, value: &Value) -> Option<Value> {
    items.as_array()?.iter().find(|item| item[field] == *value).cloned()
}

fn unresolved(what: &str, number: &Value) -> Failure {
    ("NOT_FOUND", format!("Could not resolve to {what} with the number of {number}."))
}

fn with_id<'a>(node: &'a Value, id: &str) -> Option<&'a Value> {
    match node {
        Value::Object(fields) if node["__typename"].is_string() && fields.get("id") == Some(&id.into()) => {
            Some(node)
        }
        Value::Object(fields) => fields.values().find_map(|value| with_id(value, id)),
        Value::Array(items) => items.iter().find_map(|item| with_id(item, id)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}
