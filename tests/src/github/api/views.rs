//! Facts as the REST API shows them.

use serde_json::{Value, json};

use crate::github::Urls;
use crate::github::furnished::Ground;
use crate::github::shape::{Facts, fill, merged, shape};

/// What is known of an account; of most only the name.
pub(crate) fn account_facts(urls: &Urls, login: &str) -> Facts {
    let unknown = json!({ "user_id": 1, "user_node": "U_kgDO1", "user_type": "Organization", "user_name": login });
    let known = &shape!("furnished")["users"][login];
    let place = json!({ "login": login, "api": urls.api, "git": urls.git });
    merged(if known.is_null() { &unknown } else { known }, &place).as_object().cloned().unwrap_or_default()
}

/// A user or an organization, shortly.
pub(crate) fn user(urls: &Urls, login: &str) -> Value {
    fill(shape!("user"), &[&account_facts(urls, login)])
}

/// All of one.
pub(crate) fn profile(urls: &Urls, login: &str) -> Value {
    merged(&user(urls, login), &fill(shape!("profile"), &[&account_facts(urls, login)]))
}

/// True for one that the stand-in has.
pub(crate) fn is_known(login: &str) -> bool {
    !shape!("furnished")["users"][login].is_null()
}

/// The author of a thing.
fn author(ground: &Ground, facts: &Value) -> Value {
    facts["author"].as_str().map_or(Value::Null, |login| user(&ground.urls, login))
}

/// A repository; with a clone token if there is one to give.
pub(crate) fn repository(ground: &Ground, clone_token: Option<&str>) -> Value {
    let furnishing = ground.furnishing();
    let private = ground.repository.private;
    let open = furnishing.list("issues").iter().filter(|issue| issue["state"] == "open").count();
    let facts = json!({
        "repo_node": format!("R_kgDO{}", ground.repository.id),
        "private": private,
        "visibility": if private { "private" } else { "public" },
        "description": furnishing.fact("description"),
        "owner_user": user(&ground.urls, ground.owner()),
        "open_issues": open,
        "temp_clone_token": clone_token.unwrap_or_default(),
    });
    ground.fill(shape!("repository"), &facts)
}

/// A label by its name.
pub(crate) fn label(ground: &Ground, name: &Value) -> Value {
    let facts = ground.furnishing().find("labels", "label", name).cloned().unwrap_or_default();
    ground.fill(shape!("label"), &facts)
}

/// The labels of an issue or a pull request.
pub(crate) fn labels(ground: &Ground, facts: &Value) -> Value {
    facts["labels"].as_array().into_iter().flatten().map(|name| label(ground, name)).collect()
}

/// What an issue and a pull request both show.
fn common(ground: &Ground, facts: &Value) -> Value {
    let known = json!({
        "user": author(ground, facts),
        "labels_json": labels(ground, facts),
        "comment_count": facts["comments"].as_array().map_or(0, Vec::len),
    });
    merged(facts, &known)
}

/// An issue, or a pull request as one.
pub(crate) fn issue(ground: &Ground, facts: &Value) -> Value {
    let facts = common(ground, facts);
    let issue = ground.fill(shape!("issue"), &facts);
    if facts["is_pull"] == true { merged(&issue, &ground.fill(shape!("issue_of_pull"), &facts)) } else { issue }
}

/// A comment of an issue.
pub(crate) fn comment(ground: &Ground, issue: &Value, facts: &Value) -> Value {
    let known = json!({ "number": issue["number"], "user": author(ground, facts) });
    ground.fill(shape!("comment"), &merged(facts, &known))
}

/// A pull request as it is listed.
pub(crate) fn pull(ground: &Ground, facts: &Value) -> Value {
    let base = repository(ground, None);
    let fork = facts["head_fork"].as_str();
    let owner = fork.unwrap_or_else(|| ground.owner());
    let known = json!({
        "head_owner": owner,
        "head_user": user(&ground.urls, owner),
        "head_repository": fork.map_or_else(|| base.clone(), |owner| forked(ground, owner)),
        "base_repository": base,
        "owner_user": user(&ground.urls, ground.owner()),
    });
    ground.fill(shape!("pull"), &merged(&common(ground, facts), &known))
}

/// A fork, which is no repository of the stand-in.
fn forked(ground: &Ground, owner: &str) -> Value {
    let mut fork = ground.repository.clone();
    fork.id += 1_000_000;
    fork.private = false;
    fork.name = format!("{owner}/{}", fork.name.split_once('/').map_or("", |(_, name)| name));
    let mut fork = repository(&Ground::at(&ground.urls, &fork), None);
    fork["fork"] = true.into();
    fork
}

/// A pull request by itself.
pub(crate) fn pull_detail(ground: &Ground, facts: &Value) -> Value {
    let merged_by = facts["merged_by"].as_str().map(|login| user(&ground.urls, login));
    let known = merged(&common(ground, facts), &json!({ "merged_by_user": merged_by }));
    merged(&pull(ground, facts), &ground.fill(shape!("pull_detail"), &known))
}

/// A review of a pull request.
pub(crate) fn review(ground: &Ground, pull: &Value, facts: &Value) -> Value {
    let known = json!({ "number": pull["number"], "head_sha": pull["head_sha"], "user": author(ground, facts) });
    ground.fill(shape!("review"), &merged(facts, &known))
}

/// A commit.
pub(crate) fn commit(ground: &Ground, facts: &Value) -> Value {
    let parent = |id: &Value| {
        let facts = json!({ "sha": id });
        let shape = json!({
            "sha": "{sha}",
            "url": "{api}/repos/{repo}/commits/{sha}",
            "html_url": "{git}/{repo}/commit/{sha}",
        });
        ground.fill(&shape, &facts)
    };
    let parents: Value = facts["parent_ids"].as_array().into_iter().flatten().map(parent).collect();
    let known = json!({ "parents": parents, "user": user(&ground.urls, "octocat") });
    ground.fill(shape!("commit"), &merged(facts, &known))
}

/// A workflow.
pub(crate) fn workflow(ground: &Ground, facts: &Value) -> Value {
    ground.fill(shape!("workflow"), facts)
}

/// A run's facts with those of its workflow.
fn with_workflow(ground: &Ground, run: &Value) -> Value {
    let workflow = ground.furnishing().find("workflows", "workflow_id", &run["workflow_id"]);
    merged(workflow.unwrap_or(&Value::Null), run)
}

/// A run.
pub(crate) fn run(ground: &Ground, facts: &Value) -> Value {
    let known = json!({ "user": author(ground, facts), "base_repository": repository(ground, None) });
    ground.fill(shape!("run"), &merged(&with_workflow(ground, facts), &known))
}

/// A job of a run.
pub(crate) fn job(ground: &Ground, run: &Value, facts: &Value) -> Value {
    let steps = facts["steps"].as_array().into_iter().flatten().enumerate();
    let steps: Value = steps
        .map(|(index, step)| ground.fill(shape!("step"), &merged(step, &json!({ "step_number": index + 1 }))))
        .collect();
    let known = merged(&with_workflow(ground, run), facts);
    ground.fill(shape!("job"), &merged(&known, &json!({ "steps_json": steps })))
}

/// An artifact of a run.
pub(crate) fn artifact(ground: &Ground, facts: &Value, size: u64) -> Value {
    let run = ground.furnishing().find("runs", "run_id", &facts["run_id"]);
    let known = merged(run.unwrap_or(&Value::Null), facts);
    ground.fill(shape!("artifact"), &merged(&known, &json!({ "size": size })))
}

/// A check run; each job is one too.
pub(crate) fn check_run(ground: &Ground, facts: &Value) -> Value {
    let job = ground.furnishing().find("jobs", "job_id", &facts["check_id"]);
    let annotations = job.and_then(|job| job["annotations"].as_array()).map_or(0, Vec::len);
    ground.fill(shape!("check_run"), &merged(facts, &json!({ "annotation_count": annotations })))
}

/// A status of a commit.
pub(crate) fn status(ground: &Ground, facts: &Value) -> Value {
    ground.fill(shape!("status"), facts)
}
