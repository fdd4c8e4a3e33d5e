//! Facts as GraphQL shows them: nodes with their `__typename`, lists where the schema has connections.

use serde_json::{Value, json};

use crate::github::Urls;
use crate::github::api::views::account_facts;
use crate::github::furnished::Ground;
use crate::github::objects::{commit_id, log};
use crate::github::shape::{fill, merged, shape};
use crate::github::tokens::Token;

/// A user or an organization.
pub(crate) fn account(urls: &Urls, login: &str) -> Value {
    fill(shape!("nodes/account"), &[&account_facts(urls, login)])
}

fn account_in(ground: &Ground, facts: &Value, field: &str) -> Value {
    facts[field].as_str().map_or(Value::Null, |login| account(&ground.urls, login))
}

/// A repository with all that it has.
pub(crate) fn repository(ground: &Ground, token: &Token) -> Value {
    let furnishing = ground.furnishing();
    let private = ground.repository.private;
    // The oldest first, which is GraphQL's own order.
    let (pulls, issues): (Vec<_>, Vec<_>) =
        furnishing.list("issues").iter().rev().partition(|issue| issue["is_pull"] == true);
    let releases: Vec<Value> = furnishing.list("releases").iter().map(|facts| release(ground, facts)).collect();
    let labels = furnishing.list("labels").iter().map(|facts| ground.fill(shape!("nodes/label"), facts));
    let known = json!({
        "owner_account": account(&ground.urls, ground.owner()),
        "description": furnishing.fact("description"),
        "private": private,
        "visibility": if private { "PRIVATE" } else { "PUBLIC" },
        "viewer_permission": if token.may("contents", "write") { "WRITE" } else { "READ" },
        "issue_nodes": issues.into_iter().map(|facts| issue_or_pull(ground, facts)).collect::<Vec<_>>(),
        "pull_nodes": pulls.into_iter().map(|facts| issue_or_pull(ground, facts)).collect::<Vec<_>>(),
        "latest_release": releases.iter().find(|release| release["isLatest"] == true),
        "release_nodes": releases,
        "label_nodes": labels.collect::<Vec<_>>(),
    });
    ground.fill(shape!("nodes/repository"), &known)
}

/// An issue, or with more to it a pull request.
pub(crate) fn issue_or_pull(ground: &Ground, facts: &Value) -> Value {
    let is_pull = facts["is_pull"] == true;
    let upper = |name: &str| facts[name].as_str().map(str::to_uppercase);
    let state = if facts["merged"] == true { Some("MERGED".to_owned()) } else { upper("state") };
    let labels = facts["labels"].as_array().into_iter().flatten();
    let labels = labels.filter_map(|name| ground.furnishing().find("labels", "label", name));
    let comments = facts["comments"].as_array().into_iter().flatten();
    let known = json!({
        "type": if is_pull { "PullRequest" } else { "Issue" },
        "full_id": facts["issue_id"].to_string(),
        "node_state": state,
        "node_reason": upper("state_reason"),
        "closed": facts["state"] == "closed",
        "author_node": account_in(ground, facts, "author"),
        "label_nodes": labels.map(|facts| ground.fill(shape!("nodes/label"), facts)).collect::<Vec<_>>(),
        "comment_nodes": comments.map(|comment| with_author(ground, shape!("nodes/comment"), facts, comment))
            .collect::<Vec<_>>(),
    });
    let node = ground.fill(shape!("nodes/issue"), &merged(facts, &known));
    if is_pull { merged(&node, &pull(ground, facts)) } else { node }
}

/// What a pull request has that an issue has not.
fn pull(ground: &Ground, facts: &Value) -> Value {
    let fork = facts["head_fork"].as_str();
    let head_account = account(&ground.urls, fork.unwrap_or(ground.owner()));
    let head_repository = match fork {
        Some(_) => ground.fill(shape!("nodes/fork"), &merged(facts, &json!({ "head_account": head_account }))),
        None => json!({ "__repository": ground.repository.name }),
    };
    let reviews = facts["reviews"].as_array().into_iter().flatten();
    let reviews = reviews.map(|review| with_author(ground, shape!("nodes/review"), facts, review));
    let reviews = reviews.collect::<Vec<_>>();
    let commits = facts["commit_list"].as_array().into_iter().flatten();
    let commits =
        commits.map(|facts| json!({ "__typename": "PullRequestCommit", "commit": commit(ground, facts) }));
    let files = facts["file_list"].as_array().into_iter().flatten();
    let files = files.map(|file| {
        json!({
            "path": file["filename"],
            "additions": file["additions"],
            "deletions": file["deletions"],
            "changeType": file["status"].as_str().map(str::to_uppercase),
        })
    });
    let merge = facts["merge_sha"].as_str().map(|sha| json!({ "__typename": "Commit", "oid": sha }));
    let known = json!({
        "cross": fork.is_some(),
        "merger_node": account_in(ground, facts, "merged_by"),
        "merge_commit": merge,
        "head_account": head_account,
        "head_repository_node": head_repository,
        "decision": reviews.iter().find(|review| review["state"] == "APPROVED").map(|review| &review["state"]),
        "review_nodes": reviews,
        "commit_nodes": commits.collect::<Vec<_>>(),
        "file_nodes": files.collect::<Vec<_>>(),
    });
    ground.fill(shape!("nodes/pull"), &merged(facts, &known))
}

/// A comment or a review of an issue or a pull request.
fn with_author(ground: &Ground, shape: &Value, of: &Value, facts: &Value) -> Value {
    let known = json!({
        "author_node": account_in(ground, facts, "author"),
        "number": of["number"],
        "head_sha": of["head_sha"],
    });
    ground.fill(shape, &merged(facts, &known))
}

/// A commit with the checks that ran on it.
fn commit(ground: &Ground, facts: &Value) -> Value {
    let sha = &facts["sha"];
    let of_it = |kind: &str| {
        ground.furnishing().list(kind).iter().filter(|facts| facts["head_sha"] == *sha).collect::<Vec<_>>()
    };
    let upper = |facts: &Value, name: &str| facts[name].as_str().map(str::to_uppercase);
    let checks = of_it("checks").into_iter().map(|facts| {
        let known = json!({ "node_conclusion": upper(facts, "conclusion") });
        ground.fill(shape!("nodes/check_run"), &merged(facts, &known))
    });
    let statuses = of_it("statuses").into_iter().map(|facts| {
        ground.fill(shape!("nodes/status"), &merged(facts, &json!({ "node_state": upper(facts, "status") })))
    });
    let contexts = checks.chain(statuses).collect::<Vec<_>>();
    let rollup = json!({ "__typename": "StatusCheckRollup", "state": "SUCCESS", "contexts": contexts });
    let known = json!({
        "committer_node": account(&ground.urls, "octocat"),
        "short": sha.as_str().and_then(|sha| sha.get(..7)),
        "rollup": if contexts.is_empty() { Value::Null } else { rollup },
    });
    ground.fill(shape!("nodes/commit"), &merged(facts, &known))
}

/// The commit at the tip of a branch.
pub(crate) fn tip(ground: &Ground, branch: &str) -> Value {
    let folder = &ground.repository.folder;
    let id = commit_id(folder, &format!("refs/heads/{branch}"));
    let facts = id.and_then(|id| log(folder, &["-1", &id]).pop());
    facts.map_or(Value::Null, |facts| commit(ground, &facts))
}

fn release(ground: &Ground, facts: &Value) -> Value {
    let known = json!({ "author_node": account_in(ground, facts, "author") });
    ground.fill(shape!("nodes/release"), &merged(facts, &known))
}
