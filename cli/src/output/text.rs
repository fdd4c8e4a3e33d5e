//! Answers as aligned text. Whatever came from a sandbox or a forge is escaped before it reaches a terminal.

use std::fmt::Write as _;

use crate::answer::mirror::MirrorToken;
use crate::answer::{Push, PushedRef, Run, Shown};
use crate::failure::Failure;

/// What is said beside a new bearer.
pub(super) fn issued(run: &Run, what: &str) -> String {
    let id = &run.run_id;
    format!(
        "run {id} {what}: {}\n\
         The bearer above is shown this once and stored nowhere; if it is lost: gitdoor run rotate {id}\n",
        standing(run),
    )
}

/// What is said of a run that was adopted.
pub(super) fn adopted(run: &Run) -> String {
    format!("run {} adopted, its bearer stays: {}\n", escaped(&run.run_id), standing(run))
}

fn standing(run: &Run) -> String {
    let bound =
        run.repository.as_ref().map_or("not bound".to_owned(), |name| format!("bound to {}", escaped(name)));
    format!("identity {}, {bound}, until {}", run.identity, run.expires_at.0)
}

/// What is said of a run that was revoked.
pub(super) fn revoked(run: &Run) -> String {
    format!("run {} {}; no push of it can still complete\n", escaped(&run.run_id), run.state)
}

/// Why a command failed, and what to do.
pub(super) fn failure(failure: &Failure) -> String {
    let mut text = format!("gitdoor: {}\n", escaped(&failure.to_string()));
    if let Some(advice) = failure.advice() {
        let _ = writeln!(text, "gitdoor: {advice}");
    }
    text
}

/// What is said beside an answer.
pub(super) fn note(text: &str) -> String {
    format!("gitdoor: {}\n", escaped(text))
}

/// All runs, a line each.
pub(super) fn listed(runs: &[Run]) -> String {
    let mut rows = vec![["RUN", "IDENTITY", "STATE", "EXPIRES", "REPOSITORY"].map(str::to_owned).to_vec()];
    rows.extend(runs.iter().map(|run| {
        let repository = run.repository.as_deref().map_or("-".to_owned(), escaped);
        vec![escaped(&run.run_id), run.identity.into(), run.state.into(), run.expires_at.0.clone(), repository]
    }));
    table(&rows)
}

/// The tokens for mirrors that were handed out, a line each.
pub(super) fn mirror_tokens(rows: &[MirrorToken]) -> String {
    let mut table = vec![["HANDED OUT", "EXPIRES", "TOKEN", "REPOSITORY", "ASKED BY"].map(str::to_owned).to_vec()];
    table.extend(rows.iter().map(|row| {
        vec![
            row.handed_out_at.0.clone(),
            row.expires_at.0.clone(),
            escaped(&row.token_id),
            escaped(&row.repository),
            row.asked_by.as_deref().map_or("-".to_owned(), escaped),
        ]
    }));
    self::table(&table)
}

/// A run and its ledger.
pub(super) fn shown(shown: &Shown) -> String {
    let Shown { run, pushes } = shown;
    let mut text = table(&facts(run));
    if pushes.is_empty() {
        text.push_str("\nno pushes\n");
    } else {
        text.push('\n');
        text.push_str(&ledger(pushes));
    }
    text
}

fn facts(run: &Run) -> Vec<Vec<String>> {
    let mut facts = Vec::new();
    let mut fact = |name: &str, value: String| facts.push(vec![name.to_owned(), value]);
    fact("run", escaped(&run.run_id));
    fact("identity", run.identity.into());
    fact("state", run.state.into());
    match (&run.repository, run.repository_id) {
        (Some(name), Some(id)) => fact("repository", format!("{} (id {id})", escaped(name))),
        (Some(_), None) | (None, Some(_) | None) => fact("repository", "not bound".into()),
    }
    if let Some(branch) = &run.default_branch {
        fact("default branch", escaped(branch));
    }
    if !run.former_default_branches.is_empty() {
        fact("was default", listing(&run.former_default_branches));
    }
    fact("registered", run.registered_at.0.clone());
    if let Some(time) = &run.adopted_at {
        fact("adopted", time.0.clone());
    }
    fact("expires", run.expires_at.0.clone());
    if let Some(time) = &run.revoked_at {
        fact("revoked", time.0.clone());
    }
    let options = &run.options;
    if !options.branches.is_empty() {
        fact("branches", listing(&options.branches));
    }
    if options.max_refs > 0 {
        fact("refs in a push", format!("{} at most", options.max_refs));
    }
    if options.no_workflows {
        fact("workflows", "no".into());
    }
    if !options.read_repositories.is_empty() {
        fact("reads", listing(&options.read_repositories));
    }
    if options.api_burst > 0 {
        fact("API burst", options.api_burst.to_string());
    }
    if options.api_rate > 0.0 {
        fact("API rate", format!("{} a second", options.api_rate));
    }
    facts
}

fn listing(names: &[String]) -> String {
    names.iter().map(|name| escaped(name)).collect::<Vec<_>>().join(", ")
}

/// A line for each ref; the facts of a push stand on the line of its first.
fn ledger(pushes: &[Push]) -> String {
    let head = ["TIME", "REQUEST", "OUTCOME", "BYTES", "REPOSITORY", "REF", "VERDICT"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for push in pushes {
        let mut facts = vec![
            push.opened_at.0.clone(),
            escaped(&push.request_id),
            push.outcome.into(),
            push.request_bytes.to_string(),
            escaped(&push.repository),
        ];
        if push.refs.is_empty() {
            rows.push(facts.clone());
        }
        for pushed in &push.refs {
            facts.extend([escaped_bytes(&pushed.ref_name), verdict(pushed, push.outcome)]);
            rows.push(std::mem::replace(&mut facts, vec![String::new(); 5]));
        }
    }
    table(&rows)
}

fn verdict(pushed: &PushedRef, outcome: &'static str) -> String {
    match &pushed.refusal {
        Some(words) => format!("refused: {}", escaped(words.strip_prefix("refused: ").unwrap_or(words))),
        None => if outcome == "done" { "done" } else { "allowed" }.to_owned(),
    }
}

/// Columns as wide as their widest cell, two spaces between, nothing at the ends of lines.
pub(super) fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let widths: Vec<usize> = (0..columns)
        .map(|column| {
            rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
        })
        .collect();
    rows.iter().fold(String::new(), |mut text, row| {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            let _ = write!(line, "{cell:width$}  ");
        }
        text.push_str(line.trim_end());
        text.push('\n');
        text
    })
}

/// The text with what could move a terminal's cursor or turn its text around spelled out.
pub(super) fn escaped(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut out, c| {
        if is_unsafe(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
        out
    })
}

/// The same for bytes; those that are not UTF-8 as `\xNN`.
fn escaped_bytes(bytes: &[u8]) -> String {
    bytes.utf8_chunks().fold(String::new(), |mut out, chunk| {
        out.push_str(&escaped(chunk.valid()));
        for byte in chunk.invalid() {
            let _ = write!(out, "\\x{byte:02x}");
        }
        out
    })
}

/// Control characters, line and paragraph separators, and the marks that change the direction of text.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{61c}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use gitdoor_proto::v1;
    use tonic::{Code, Status};

    use super::*;
    use crate::answer::tests::{at, run as message};
    use crate::failure::Attempt;

    fn pushed(name: &[u8], refusal: &str) -> v1::PushedRef {
        v1::PushedRef { ref_name: name.to_vec(), refusal: refusal.into(), ..Default::default() }
    }

    #[test]
    fn a_run_is_shown_with_its_ledger_in_columns() {
        let refused = v1::Push {
            repository: "acme/api".into(),
            refs: vec![
                pushed(b"refs/heads/main", "default branch"),
                pushed(b"refs/heads/b", "another ref of this push was refused"),
            ],
            request_id: "98bd58b302f7ae59".into(),
            outcome: v1::PushOutcome::Refused.into(),
            request_bytes: 280,
            opened_at: at(1_800_000_200),
            ..Default::default()
        };
        let done = v1::Push {
            repository: "acme/api".into(),
            refs: vec![pushed(b"refs/heads/fix-x", "")],
            request_id: "01\u{1b}23".into(),
            outcome: v1::PushOutcome::Done.into(),
            request_bytes: 123_456,
            opened_at: at(1_800_000_100),
            ..Default::default()
        };
        let options = v1::RunOptions { branches: vec!["agent/*".into()], max_refs: 3, ..Default::default() };
        let run = v1::Run { options: Some(options), adopted_at: at(1_800_000_060), ..message() };
        let text = shown(&Shown::read(v1::GetRunResponse { run: Some(run), pushes: vec![refused, done] }).unwrap());
        assert_eq!(
            text,
            "\
run             r1
identity        write
state           live
repository      acme/api (id 42)
default branch  main
was default     trunk
registered      2027-01-15T08:00:00Z
adopted         2027-01-15T08:01:00Z
expires         2027-01-15T08:50:00Z
branches        agent/*
refs in a push  3 at most

TIME                  REQUEST           OUTCOME  BYTES   REPOSITORY  REF               VERDICT
2027-01-15T08:03:20Z  98bd58b302f7ae59  refused  280     acme/api    refs/heads/main   refused: default branch
                                                                     refs/heads/b      refused: another ref of this \
         push was refused
2027-01-15T08:01:40Z  01\\u{1b}23        done     123456  acme/api    refs/heads/fix-x  done
"
        );
    }

    #[test]
    fn nothing_that_a_sandbox_named_moves_the_cursor() {
        assert_eq!(escaped_bytes(b"refs/heads/\x1b[2J\xff\r\n"), "refs/heads/\\u{1b}[2J\\xff\\r\\n");
        assert_eq!(escaped("a\u{202e}b\u{9b}c\u{2028}ä"), "a\\u{202e}b\\u{9b}c\\u{2028}ä");
        let status = Status::new(Code::Internal, "a\u{1b}]0;x\u{7}");
        assert_eq!(failure(&Failure::Refused(Box::new(status))), "gitdoor: a\\u{1b}]0;x\\u{7}\n");
    }

    #[test]
    fn a_list_has_a_line_for_each_run() {
        let unbound = v1::Run { run_id: "a-long-run-id".into(), binding: None, ..message() };
        let runs = [message(), unbound].map(|run| Run::read(Some(run)).unwrap());
        assert_eq!(
            listed(&runs),
            "\
RUN            IDENTITY  STATE  EXPIRES               REPOSITORY
r1             write     live   2027-01-15T08:50:00Z  acme/api
a-long-run-id  write     live   2027-01-15T08:50:00Z  -
"
        );
    }

    #[test]
    fn a_failure_says_what_was_tried_and_what_to_do() {
        let attempt = |control: &str, cause: &str| Attempt { control: control.into(), cause: cause.into() };
        let tried = vec![attempt("unix:/a", "gone"), attempt("http://127.0.0.1:1", "refused")];
        assert_eq!(
            failure(&Failure::Unreachable(tried)),
            "gitdoor: no control could be asked: unix:/a (gone), http://127.0.0.1:1 (refused)\n\
             gitdoor: is gitdoor-control running, and is --control the address of its --runs-listen?\n"
        );
        assert_eq!(
            failure(&Failure::Refused(Box::new(Status::not_found("no such run")))),
            "gitdoor: no such run\ngitdoor: `gitdoor run list` shows the runs that there are\n"
        );
    }
}
