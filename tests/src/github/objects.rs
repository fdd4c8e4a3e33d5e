//! What the API shows of a repository's own objects, read by real git.

use std::path::Path;

use serde_json::{Value, json};

use super::seed::git;

/// One entry of a tree.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// `blob`, `tree` or `commit`.
    pub(crate) kind: String,
    pub(crate) id: String,
    /// Bytes, of a blob.
    pub(crate) size: u64,
    /// From the top of the repository.
    pub(crate) path: String,
}

/// What a git command prints, if it succeeds.
pub(crate) fn read(folder: &Path, arguments: &[&str]) -> Option<Vec<u8>> {
    let output = git(folder).args(arguments).output().expect("git");
    output.status.success().then_some(output.stdout)
}

fn text(folder: &Path, arguments: &[&str]) -> Option<String> {
    String::from_utf8(read(folder, arguments)?).ok()
}

/// The commit that a revision of a client names: never an option, never a way out of the repository.
pub(crate) fn commit_id(folder: &Path, revision: &str) -> Option<String> {
    if revision.is_empty() || revision.starts_with('-') {
        return None;
    }
    let peeled = format!("{revision}^{{commit}}");
    text(folder, &["rev-parse", "--quiet", "--verify", &peeled]).map(|id| id.trim().to_owned())
}

/// An entry of a commit's tree, and if it is a tree those in it.
pub(crate) fn entries(folder: &Path, commit: &str, path: &str) -> Option<(Entry, Vec<Entry>)> {
    let path = path.trim_matches('/');
    let children = |of: &str| listed(folder, &["ls-tree", "--long", "-z", commit, "--", of]);
    if path.is_empty() {
        let id = text(folder, &["rev-parse", &format!("{commit}^{{tree}}")])?.trim().to_owned();
        let top = Entry { kind: "tree".to_owned(), id, size: 0, path: String::new() };
        return Some((top, listed(folder, &["ls-tree", "--long", "-z", commit])));
    }
    let entry = children(path).into_iter().find(|entry| entry.path == path)?;
    let inside = if entry.kind == "tree" { children(&format!("{path}/")) } else { Vec::new() };
    Some((entry, inside))
}

fn listed(folder: &Path, arguments: &[&str]) -> Vec<Entry> {
    let lines = text(folder, arguments).unwrap_or_default();
    lines.split('\0').filter_map(entry).collect()
}

/// `<mode> <kind> <id> <size>\t<path>`.
fn entry(line: &str) -> Option<Entry> {
    let (facts, path) = line.split_once('\t')?;
    let mut facts = facts.split_whitespace().skip(1);
    let (kind, id, size) = (facts.next()?.to_owned(), facts.next()?.to_owned(), facts.next()?);
    Some(Entry { kind, id, size: size.parse().unwrap_or(0), path: path.to_owned() })
}

/// A blob's bytes.
pub(crate) fn blob(folder: &Path, id: &str) -> Option<Vec<u8>> {
    read(folder, &["cat-file", "blob", id])
}

/// The commits that `git log` lists, as facts.
pub(crate) fn log(folder: &Path, arguments: &[&str]) -> Vec<Value> {
    let format = "--format=%H%x1f%T%x1f%P%x1f%an%x1f%ae%x1f%ad%x1f%B%x1e";
    let date = "--date=format:%Y-%m-%dT%H:%M:%SZ";
    let listed = text(folder, &[&["log", format, date], arguments].concat()).unwrap_or_default();
    listed.split('\u{1e}').filter_map(|commit| commit_facts(commit.trim_start())).collect()
}

fn commit_facts(commit: &str) -> Option<Value> {
    let mut facts = commit.split('\u{1f}');
    let mut next = || facts.next();
    Some(json!({
        "sha": next().filter(|id| !id.is_empty())?,
        "tree": next()?,
        "parent_ids": next()?.split_whitespace().collect::<Vec<_>>(),
        "git_name": next()?,
        "git_email": next()?,
        "date": next()?,
        "message": next()?.trim_end(),
    }))
}

/// The files that differ between two commits, as the API lists them.
pub(crate) fn changed_files(folder: &Path, from: &str, to: &str) -> Vec<Value> {
    let counts = text(folder, &["diff", "--numstat", "--no-renames", from, to]).unwrap_or_default();
    let files = counts.lines().filter_map(|line| {
        let mut parts = line.splitn(3, '\t');
        let number = |text: &str| text.parse::<u64>().unwrap_or(0);
        let (additions, deletions) = (number(parts.next()?), number(parts.next()?));
        let path = parts.next()?;
        let there = |commit: &str| text(folder, &["rev-parse", "--quiet", "--verify", &format!("{commit}:{path}")]);
        let (before, after) = (there(from), there(to));
        let status = match (&before, &after) {
            (None, _) => "added",
            (Some(_), None) => "removed",
            (Some(_), Some(_)) => "modified",
        };
        let difference = text(folder, &["diff", from, to, "--", path])?;
        let hunks = difference.find("@@").map_or("", |at| &difference[at..]);
        Some(json!({
            "sha": after.or(before)?.trim(),
            "filename": path,
            "status": status,
            "additions": additions,
            "deletions": deletions,
            "changes": additions + deletions,
            "patch": hunks.trim_end(),
        }))
    });
    files.collect()
}

/// Lines of files of a commit that have a text in them: path and line.
pub(crate) fn grep(folder: &Path, commit: &str, term: &str) -> Vec<(String, String)> {
    let found = text(folder, &["grep", "-I", "-i", "-F", "-z", "-e", term, commit, "--"]).unwrap_or_default();
    let lines = found.lines().filter_map(|line| line.split_once('\0'));
    let lines = lines.filter_map(|(path, line)| Some((path.split_once(':')?.1.to_owned(), line.to_owned())));
    lines.collect()
}
