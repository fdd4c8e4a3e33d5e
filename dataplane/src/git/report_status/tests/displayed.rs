//! Answers that git was given, and what it printed: the reader reads them as git did, or not at all.

use super::*;
use base64::Engine as _;
use serde::Deserialize;

const RECORDED: &str = include_str!("../../../../../tests/wire/report_status_display.json");

#[derive(Deserialize)]
struct Answer {
    name: String,
    response_b64: String,
    stdout: String,
    stderr: String,
}

/// The framing that the client of this answer had asked for.
fn is_bare(answer: &Answer) -> bool {
    ["no_sideband_adv", "side_band_not_64k"].iter().any(|part| answer.name.contains(part))
}

fn answers() -> Vec<(Answer, Vec<u8>)> {
    let answers: Vec<Answer> = serde_json::from_str(RECORDED).unwrap();
    assert_eq!(answers.len(), 67);
    let decode = |text: &str| base64::engine::general_purpose::STANDARD.decode(text).unwrap();
    answers
        .into_iter()
        .map(|answer| (decode(&answer.response_b64), answer))
        .map(|(body, answer)| (answer, body))
        .collect()
}

/// The refs that a body names, wherever they stand in it.
fn named(body: &[u8]) -> Vec<Vec<u8>> {
    let text = String::from_utf8_lossy(body);
    let ends = |c: char| c == ' ' || c == '\n';
    let mut names: Vec<Vec<u8>> = text
        .split("ng ")
        .skip(1)
        .chain(text.split("ok ").skip(1))
        .filter_map(|rest| rest.split(ends).next())
        .filter(|name| name.starts_with("refs/heads/"))
        .map(|name| name.as_bytes().to_vec())
        .collect();
    names.sort();
    names.dedup();
    names
}

#[test]
fn what_the_reader_says_was_refused_git_showed_as_rejected() {
    let mut refused = 0;
    for (answer, body) in answers() {
        let names = named(&body);
        let expected: Vec<&[u8]> = names.iter().map(|name| &name[..]).collect();
        let outcome = read_chunks(!is_bare(&answer), [&body[..]], &expected);
        assert_eq!(read_chunks(!is_bare(&answer), body.chunks(1), &expected), outcome, "{}", answer.name);
        let Outcome::Refused(lines) = outcome else {
            assert_ne!(outcome, Outcome::Done, "{}", answer.name);
            continue;
        };
        refused += 1;
        // Git has words of its own for these reasons, or hides the ref: a refusal's prefix is there for them.
        let shown = lines.iter().filter(|(name, reason)| name != "refs/heads/zzz" && !is_gits_own(reason));
        for (name, reason) in shown {
            let printed = format!("{}{}", answer.stdout, answer.stderr);
            let branch = str::from_utf8(name).unwrap().trim_start_matches("refs/heads/");
            let is_shown =
                |line: &str| line.contains("rejected]") && line.contains(branch) && line.contains(&**reason);
            let printed = printed.replace('\u{1b}', " ");
            assert!(printed.lines().any(is_shown), "{}: {branch} ({reason}) in {printed}", answer.name);
        }
    }
    assert!(refused > 40, "only {refused} answers were read");
}

fn is_gits_own(reason: &str) -> bool {
    let words = [
        "already exists",
        "expecting report",
        "fetch first",
        "forced update",
        "needs force",
        "no match",
        "remote ref updated since checkout",
        "stale info",
        "up to date",
    ];
    words.contains(&reason)
}

#[test]
fn an_answer_that_git_could_not_finish_reading_is_unreadable() {
    let broken = [
        "band1_flush_only",
        "empty_200",
        "no_flush_at_all",
        "only_outer_flush",
        "no_report_status_adv",
        "band3_only",
        "band3_after_ng",
        "bare_report_no_sideband_though_sb_requested",
        "no_inner_flush",
        "no_outer_flush",
        "trailing_garbage",
        "unpack_ok_only_flush",
        "v2_options_ng",
    ];
    let mut seen = 0;
    for (answer, body) in answers() {
        if broken.iter().any(|part| answer.name.contains(part)) {
            seen += 1;
            let names = named(&body);
            let outcome = read_chunks(true, [&body[..]], &names.iter().map(|name| &name[..]).collect::<Vec<_>>());
            assert_eq!(outcome, Outcome::Unreadable, "{}", answer.name);
        }
    }
    assert!(seen >= broken.len());
}

#[test]
fn an_answer_that_leaves_a_ref_out_is_unreadable() {
    let left_out = ["sb64_unpack_ok_only", "sb64_unpack_ok_only_some_refs", "sb64_unpack_error_only"];
    for (answer, body) in answers() {
        if left_out.iter().any(|name| answer.name.ends_with(name)) {
            let expected = [&b"refs/heads/a1"[..], b"refs/heads/a2", b"refs/heads/a3"];
            assert_eq!(read_chunks(true, [&body[..]], &expected), Outcome::Unreadable, "{}", answer.name);
        }
    }
}
