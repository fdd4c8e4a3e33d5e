//! What a furnished repository has besides its objects: issues, pull requests, runs, releases. Hand-made and fixed.

use std::path::Path;
use std::sync::{Arc, LazyLock};

use serde_json::{Value, json};

use super::objects::{changed_files, commit_id, log};
use super::repositories::Repository;
use super::seed::git;
use super::shape::{Facts, fill, merged, shape};
use super::{State, Urls};
use crate::clock;

/// The bytes of the asset `tool.tar.gz` of release v1.0.0.
pub const ASSET: &[u8] = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xffnot a tool, but always the same bytes\n";

/// When the first issue was opened; each later one came an hour after.
const FIRST_ISSUE: i64 = 1_759_276_800;

/// The facts of one repository.
#[derive(Debug)]
pub(crate) struct Furnishing(Value);

impl Furnishing {
    /// Of a repository that has none of it.
    pub(crate) fn bare() -> Arc<Self> {
        static BARE: LazyLock<Arc<Furnishing>> = LazyLock::new(|| Arc::new(Furnishing(Value::Null)));
        Arc::clone(&BARE)
    }

    /// Of a repository whose objects are there.
    pub(crate) fn of(folder: &Path) -> Arc<Self> {
        let mut facts = shape!("furnished").clone();
        facts["pulls"] = each(&facts["pulls"], |pull| pull_facts(folder, &merged(&facts["pull"], pull)));
        facts["issues"] = issues(&facts);
        let head = |facts: &Value, reference: &Value| {
            let commit = commit_id(folder, reference.as_str().unwrap_or_default());
            let commit = log(folder, &["-1", &commit.unwrap_or_default()]).pop().unwrap_or_default();
            merged(facts, &json!({ "head_sha": commit["sha"], "head_tree": commit["tree"] }))
        };
        facts["runs"] = each(&facts["runs"], |run| head(run, &run["head"]));
        let feature = json!("refs/pull/42/head");
        facts["checks"] = each(&facts["checks"], |check| head(check, &feature));
        let french = json!("refs/pull/43/head");
        facts["statuses"] = each(&facts["statuses"], |status| head(status, &french));
        Arc::new(Self(facts))
    }

    /// One fact.
    pub(crate) fn fact(&self, name: &str) -> &Value {
        &self.0[name]
    }

    /// All things of a kind.
    pub(crate) fn list(&self, kind: &str) -> &[Value] {
        self.0[kind].as_array().map_or(&[], Vec::as_slice)
    }

    /// The first of a kind that has this value.
    pub(crate) fn find(&self, kind: &str, field: &str, value: &Value) -> Option<&Value> {
        self.list(kind).iter().find(|thing| thing[field] == *value)
    }

    /// Adds one.
    pub(crate) fn with(&self, kind: &str, thing: Value) -> Arc<Self> {
        let mut facts = self.0.clone();
        facts[kind].as_array_mut().expect("a furnished repository").push(thing);
        Arc::new(Self(facts))
    }
}

/// With one more pull request.
impl Furnishing {
    /// Opens one for a branch; also returns its number.
    pub(crate) fn with_pull(&self, folder: &Path, branch: &str, title: &str) -> (u64, Arc<Self>) {
        let mut facts = self.0.clone();
        let number = facts["last_number"].as_u64().expect("a furnished repository") + 1;
        let head = format!("refs/pull/{number}/head");
        let kept = git(folder).args(["update-ref", &head, &format!("refs/heads/{branch}")]).status();
        assert!(kept.expect("git update-ref").success(), "there is no branch {branch}");
        let at = clock::to_rfc3339(FIRST_ISSUE + 3600 * i64::try_from(number).unwrap_or_default());
        let known = json!({
            "number": number,
            "title": title,
            "body": "",
            "created_at": at,
            "updated_at": at,
            "head_ref": branch,
        });
        let pull = pull_facts(folder, &merged(&facts["pull"], &known));
        facts["last_number"] = number.into();
        facts["pulls"].as_array_mut().expect("a list").push(pull.clone());
        facts["issues"].as_array_mut().expect("a list").insert(0, pull);
        (number, Arc::new(Self(facts)))
    }
}

fn each(list: &Value, change: impl Fn(&Value) -> Value) -> Value {
    list.as_array().into_iter().flatten().map(change).collect()
}

/// What git knows of a pull request: its ends, its commits, its files.
fn pull_facts(folder: &Path, pull: &Value) -> Value {
    let number = pull["number"].as_u64().unwrap_or_default();
    let head = commit_id(folder, &format!("refs/pull/{number}/head")).unwrap_or_default();
    // That of the first parent, before the merge, if it was merged.
    let merge = log(folder, &["--merges", "--ancestry-path", &format!("{head}..HEAD")]).pop();
    let merge = merge.filter(|_| pull["merged"] == true);
    let base = match &merge {
        Some(merge) => merge["parent_ids"][0].as_str().map(str::to_owned),
        None => commit_id(folder, "HEAD"),
    };
    let base = base.unwrap_or_default();
    let commits = log(folder, &["--reverse", &format!("{base}..{head}")]);
    let files = changed_files(folder, &base, &head);
    let sum = |name: &str| files.iter().filter_map(|file| file[name].as_u64()).sum::<u64>();
    let known = json!({
        "is_pull": true,
        "issue_id": 2_000_000 + number,
        "node": format!("PR_kwDO{number}"),
        "kind": "pull",
        "head_sha": head,
        "base_sha": base,
        "merge_sha": merge.map(|merge| merge["sha"].clone()),
        "additions": sum("additions"),
        "deletions": sum("deletions"),
        "changed_files": files.len(),
        "commit_count": commits.len(),
        "commit_list": commits,
        "file_list": files,
    });
    merged(pull, &known)
}

/// Every number that is no pull request's is an issue's.
fn issues(facts: &Value) -> Value {
    let last = facts["last_number"].as_u64().unwrap_or_default();
    let pulls = facts["pulls"].as_array().map_or(&[][..], Vec::as_slice);
    let issue = |number: u64| {
        if let Some(pull) = pulls.iter().find(|pull| pull["number"] == number) {
            return pull.clone();
        }
        let at = clock::to_rfc3339(FIRST_ISSUE + 3600 * i64::try_from(number).unwrap_or_default());
        let known = json!({
            "number": number,
            "title": format!("Issue {number}"),
            "is_pull": false,
            "issue_id": 2_000_000 + number,
            "node": format!("I_kwDO{number}"),
            "kind": "issues",
            "created_at": at,
            "updated_at": at,
        });
        merged(&merged(&facts["issue"], &known), &facts["issues"][number.to_string()])
    };
    // The newest first, as GitHub lists them.
    (1..=last).rev().map(issue).collect()
}

/// A repository and where it is, which most shapes name.
#[derive(Debug, Clone)]
pub(crate) struct Ground {
    pub(crate) urls: Urls,
    pub(crate) repository: Repository,
    facts: Facts,
}

impl Ground {
    pub(crate) fn new(state: &State, repository: &Repository) -> Self {
        Self::at(&state.urls(), repository)
    }

    /// Where the URLs are these.
    pub(crate) fn at(urls: &Urls, repository: &Repository) -> Self {
        let (owner, name) = repository.name.split_once('/').expect("owner/name");
        let facts = json!({
            "api": urls.api,
            "git": urls.git,
            "repo": repository.name,
            "repo_id": repository.id,
            "owner": owner,
            "name": name,
            "default_branch": repository.default_branch,
        });
        let facts = facts.as_object().cloned().unwrap_or_default();
        Self { urls: urls.clone(), repository: repository.clone(), facts }
    }

    /// What it is furnished with.
    pub(crate) fn furnishing(&self) -> &Furnishing {
        &self.repository.furnishing
    }

    /// Fills a shape with a thing's facts and the repository's own.
    pub(crate) fn fill(&self, shape: &Value, facts: &Value) -> Value {
        let none = Facts::new();
        fill(shape, &[facts.as_object().unwrap_or(&none), &self.facts])
    }

    /// The owner's name.
    pub(crate) fn owner(&self) -> &str {
        self.facts["owner"].as_str().unwrap_or_default()
    }
}
