//! What was found in a workspace, as text and as JSON.

use serde_json::json;

use super::json::line;
use super::text::{escaped, table};
use crate::doctor::{Examination, Finding, Run, Standing};

/// For people: a line each.
pub(super) fn text(examination: &Examination) -> String {
    let Examination { findings, scrubbed, door } = examination;
    // What is found where things were removed, was not.
    let found = if scrubbed.is_some() { "left" } else { "found" };
    let mut rows: Vec<Vec<String>> = Vec::new();
    let mut add = |what: &str, words: &str| rows.push(vec![what.to_owned(), escaped(words)]);
    for words in scrubbed.iter().flatten() {
        add("removed", words);
    }
    for Finding { kind, place } in findings.iter() {
        add(found, &format!("{}, in {place}", kind.words()));
    }
    for words in findings.astray() {
        add("astray", words);
    }
    for words in findings.notes() {
        add("note", words);
    }
    for words in standing(door) {
        add("door", &words);
    }
    match (findings.is_empty(), findings.is_complete()) {
        (true, true) => add("clean", "no GitHub credential was found"),
        (true, false) => add("clean", "as far as was looked, no GitHub credential was found: see the notes"),
        (false, _) => {}
    }
    table(&rows)
}

fn standing(door: &Standing) -> Vec<String> {
    match door {
        Standing::Unknown => vec!["not known here, and not asked; --host and --bearer-file name it".to_owned()],
        Standing::Unreachable { host, cause } => vec![format!("{host} cannot be reached: {cause}")],
        Standing::Refused { host, words } => vec![format!("{host} does not take the bearer: {words}")],
        Standing::CutOff { host, run, words } => {
            vec![taken(host, run), format!("{host} gets nothing from GitHub for it: {words}")]
        }
        Standing::Open { host, run } => vec![taken(host, run), run.summary.clone()],
    }
}

fn taken(host: &str, run: &Run) -> String {
    let Run { id, identity, state, repository, expires_at, summary: _, push: _ } = run;
    let bound = repository.as_ref().map_or("not bound".to_owned(), |name| format!("bound to {name}"));
    let until = expires_at.as_ref().map(|time| format!(", until {time}")).unwrap_or_default();
    format!("{host} takes the bearer of run {id}: identity {identity}, {state}, {bound}{until}")
}

/// For programs: one object.
pub(super) fn json(examination: &Examination) -> String {
    let Examination { findings, scrubbed, door } = examination;
    let found: Vec<_> = findings
        .iter()
        .map(|Finding { kind, place }| json!({ "kind": kind.as_str(), "place": place, "words": kind.words() }))
        .collect();
    let (host, standing, words, run) = match door {
        Standing::Unknown => (None, "unknown", None, None),
        Standing::Unreachable { host, cause } => (Some(host), "unreachable", Some(cause), None),
        Standing::Refused { host, words } => (Some(host), "refused", Some(words), None),
        Standing::CutOff { host, run, words } => (Some(host), "cut-off", Some(words), Some(run)),
        Standing::Open { host, run } => (Some(host), "open", Some(&run.summary), Some(run)),
    };
    line(&json!({
        "clean": findings.is_empty(),
        "complete": findings.is_complete(),
        "findings": found,
        "scrubbed": scrubbed.as_deref().unwrap_or_default(),
        "astray": findings.astray(),
        "notes": findings.notes(),
        "door": { "host": host, "standing": standing, "words": words, "run": run },
    }))
}
