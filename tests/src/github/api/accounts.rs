//! What is about no repository: the root, users, organizations, limits, searches.

use serde_json::{Value, json};

use super::rest::Asked;
use super::{Good, Refusal, search, views};
use crate::github::furnished::Ground;
use crate::github::repositories::Repository;

/// Answers a path that begins with no repository.
pub(crate) fn answer(asked: &Asked<'_>, path: &[&str]) -> Result<Good, Refusal> {
    if !["GET", "HEAD"].contains(&asked.head.method.as_str()) {
        return Err(Refusal::forbidden());
    }
    match path {
        [""] => Ok(Good::Json(root(asked))),
        ["meta"] => Ok(Good::Json(meta())),
        ["rate_limit"] => Ok(Good::Json(asked.state.limits.to_json(asked.state.now()))),
        ["user", ..] | ["notifications"] => Err(Refusal::forbidden()),
        ["users" | "orgs", login] => account(asked, login).map(Good::Json),
        ["users" | "orgs", login, "repos"] => Ok(Good::List(shown(asked, &owned_by(asked, login)))),
        ["installation", "repositories"] => {
            Ok(Good::Counted("repositories", shown(asked, &visible(asked, |repository| repository.installed))))
        }
        ["search", kind] => search::rest(asked, kind),
        _ => Err(Refusal::not_found()),
    }
}

fn root(asked: &Asked<'_>) -> Value {
    let api = asked.state.urls().api;
    let urls = [
        ("current_user_url", "/user"),
        ("code_search_url", "/search/code?q={query}{&page,per_page,sort,order}"),
        ("issue_search_url", "/search/issues?q={query}{&page,per_page,sort,order}"),
        ("rate_limit_url", "/rate_limit"),
        ("repository_url", "/repos/{owner}/{repo}"),
        ("organization_url", "/orgs/{org}"),
        ("user_url", "/users/{user}"),
    ];
    urls.map(|(name, path)| (name.to_owned(), Value::from(format!("{api}{path}")))).into_iter().collect()
}

/// Without `installed_version`, which only an Enterprise server has.
fn meta() -> Value {
    json!({
        "verifiable_password_authentication": false,
        "ssh_key_fingerprints": { "SHA256_ED25519": "+DiY3wvvV6TuJJhbpZisF/zLDA0zPMSvHdkr4UvCOqU" },
        "hooks": ["192.30.252.0/22", "185.199.108.0/22"],
        "web": ["192.30.252.0/22", "185.199.108.0/22"],
        "api": ["192.30.252.0/22", "185.199.108.0/22"],
        "git": ["192.30.252.0/22", "185.199.108.0/22"],
        "domains": { "website": ["*.github.com", "*.github.dev", "*.github.io", "*.githubassets.com"] },
    })
}

fn account(asked: &Asked<'_>, login: &str) -> Result<Value, Refusal> {
    if views::is_known(login) || !owned_by(asked, login).is_empty() {
        Ok(views::profile(&asked.state.urls(), login))
    } else {
        Err(Refusal::not_found())
    }
}

/// The repositories that the token sees and that fit.
pub(crate) fn visible(asked: &Asked<'_>, fits: impl Fn(&Repository) -> bool) -> Vec<Repository> {
    let repositories = asked.state.repositories.lock().unwrap();
    let shown = repositories.all().iter().filter(|repository| repository.is_shown_to(asked.token));
    shown.filter(|repository| fits(repository)).cloned().collect()
}

fn owned_by(asked: &Asked<'_>, login: &str) -> Vec<Repository> {
    visible(asked, |repository| {
        repository.name.split_once('/').is_some_and(|(owner, _)| owner.eq_ignore_ascii_case(login))
    })
}

fn shown(asked: &Asked<'_>, repositories: &[Repository]) -> Vec<Value> {
    let grounds = repositories.iter().map(|repository| Ground::new(asked.state, repository));
    grounds.map(|ground| views::repository(&ground, None)).collect()
}
