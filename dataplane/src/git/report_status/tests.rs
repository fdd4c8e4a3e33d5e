//! The refusal's exact bytes, and the reader: every framing, any doubt, any chunking.

mod displayed;

use super::*;
use crate::git::real_git::git;
use proptest::prelude::*;
use tempfile::TempDir;

const MAIN: &[u8] = b"refs/heads/main";
const X: &[u8] = b"refs/heads/x";

fn asked(report: Report, side_band_64k: bool) -> Capabilities {
    Capabilities { report, side_band_64k, ..Capabilities::default() }
}

fn read_chunks<'a>(side_band: bool, chunks: impl IntoIterator<Item = &'a [u8]>, expected: &[&[u8]]) -> Outcome {
    let mut reader = Reader::new(side_band);
    for chunk in chunks {
        reader.push(chunk);
    }
    reader.finish(expected.iter().copied())
}

/// Packets of these payloads, then a flush.
fn packets(payloads: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    for payload in payloads {
        pktline::encode(&mut out, payload);
    }
    [&out, FLUSH].concat()
}

fn banded(report: &[u8]) -> Vec<u8> {
    packets(&[&[b"\x01", report].concat()])
}

fn read_lines(lines: &[&[u8]], expected: &[&[u8]]) -> Outcome {
    let bare = packets(lines);
    let outcome = read_chunks(false, [&bare[..]], expected);
    assert_eq!(read_chunks(true, [&banded(&bare)[..]], expected), outcome);
    outcome
}

fn refused(refs: &[(&[u8], &str)]) -> Outcome {
    Outcome::Refused(
        refs.iter().map(|(name, reason)| (Bytes::copy_from_slice(name), (*reason).to_owned())).collect(),
    )
}

#[test]
fn a_refusal_without_side_band_is_bare_lines_and_a_flush() {
    let lines: &[(&[u8], &str)] = &[(MAIN, "default branch"), (b"refs/heads/\xc0", "not UTF-8")];
    let expected = b"000eunpack ok\n002fng refs/heads/main refused: default branch\n0027ng refs/heads/\xc0 refused: not UTF-8\n0000";
    for report in [Report::V1, Report::V2] {
        assert_eq!(refusal(&asked(report, false), lines, &["not shown"]).unwrap(), &expected[..]);
    }
}

#[test]
fn a_refusal_with_side_band_is_hints_on_band_2_and_the_report_on_band_1_and_both_flushes() {
    let answer =
        refusal(&asked(Report::V2, true), &[(MAIN, "default branch")], &["push to another branch", "of o/r"]);
    let expected = b"001c\x02push to another branch\n000c\x02of o/r\n0046\x01000eunpack ok\n002fng refs/heads/main refused: default branch\n00000000";
    assert_eq!(answer.unwrap().escape_ascii().to_string(), expected.escape_ascii().to_string());
}

#[test]
fn a_client_that_did_not_ask_for_a_report_gets_none() {
    for side_band in [false, true] {
        assert_eq!(refusal(&asked(Report::None, side_band), &[(MAIN, "default branch")], &["hint"]), None);
    }
}

#[test]
fn a_reason_and_a_hint_hold_no_control_byte() {
    let text = "a\nb\r\u{1b}[31m\0\u{9b}c\u{e9}";
    let answer = refusal(&asked(Report::V1, true), &[(X, text)], &[text]).unwrap();
    let shown = "a b  [31m  c\u{e9}";
    let answer = str::from_utf8(&answer).unwrap();
    assert!(answer.contains(&format!("\u{2}{shown}\n")), "{answer:?}");
    assert!(answer.contains(&format!("ng refs/heads/x refused: {shown}\n")), "{answer:?}");
}

#[test]
fn a_reason_is_never_empty_and_never_long() {
    for (given, shown) in
        [("", "no reason was given"), ("\n", "no reason was given"), (&"\u{e9}".repeat(400), &"\u{e9}".repeat(250))]
    {
        let answer = refusal(&asked(Report::V1, false), &[(X, given)], &[]).unwrap();
        let outcome = read_chunks(false, [&answer[..]], &[X]);
        assert_eq!(outcome, refused(&[(X, &format!("refused: {shown}"))]));
    }
}

#[test]
fn the_longest_name_that_a_section_holds_still_has_its_line() {
    let name = vec![b'x'; crate::git::receive_pack::SECTION_BYTES - 4 - 82 - 4];
    let answer = refusal(&asked(Report::V1, true), &[(&name, &"y".repeat(400))], &[]).unwrap();
    let Outcome::Refused(lines) = read_chunks(true, [&answer[..]], &[&name]) else { panic!("not refused") };
    assert!(lines[0].1.starts_with("refused: yyyyyyyy"));
    assert_eq!(refusal(&asked(Report::V1, true), &[(&vec![b'x'; PAYLOAD_BYTES], "y")], &[]), None);
}

#[test]
fn a_long_report_is_split_over_packets_that_git_takes() {
    let names: Vec<Vec<u8>> = (0..700).map(|n| format!("refs/heads/{n}").into_bytes()).collect();
    let reason = "z".repeat(TEXT_BYTES);
    let lines: Vec<(&[u8], &str)> = names.iter().map(|name| (&name[..], &*reason)).collect();
    let answer = refusal(&asked(Report::V2, true), &lines, &[]).unwrap();
    let (first, taken) = pktline::read(&answer).unwrap().unwrap();
    assert_eq!(taken, pktline::PACKET_BYTES);
    assert!(matches!(first, pktline::Packet::Data([1, ..])));
    let expected: Vec<&[u8]> = names.iter().map(|name| &name[..]).collect();
    let Outcome::Refused(read) = read_chunks(true, answer.chunks(1000), &expected) else { panic!("not refused") };
    assert_eq!(read.len(), 700);
}

#[test]
fn a_push_is_done_when_it_was_unpacked_and_every_ref_is_ok() {
    assert_eq!(
        read_lines(&[b"unpack ok\n", b"ok refs/heads/x\n", b"ok refs/heads/main"], &[MAIN, X]),
        Outcome::Done
    );
    let options: &[&[u8]] = &[
        b"unpack ok\n",
        b"ok refs/heads/x\n",
        b"option refname refs/heads/y\n",
        b"option forced-update\n",
        b"ok refs/heads/x\n",
        b"option refname refs/heads/z\n",
    ];
    assert_eq!(read_lines(options, &[X]), Outcome::Done);
}

#[test]
fn the_refs_that_upstream_refused_are_named_with_its_reasons() {
    let lines: &[&[u8]] =
        &[b"unpack ok\n", b"ok refs/heads/x\n", b"ng refs/heads/main protected branch \x1b\xff\n"];
    assert_eq!(read_lines(lines, &[MAIN, X]), refused(&[(MAIN, "protected branch  \u{fffd}")]));
    let failed: &[&[u8]] = &[b"unpack index-pack abnormal exit\n", b"ng refs/heads/x unpacker error\n"];
    assert_eq!(read_lines(failed, &[X]), refused(&[(X, "unpacker error")]));
    assert_eq!(read_lines(&[b"unpack ok", b"ng refs/heads/x"], &[X]), refused(&[(X, "failed")]));
}

#[test]
fn any_doubt_in_the_lines_is_unreadable() {
    let cases: &[(&str, &[&[u8]])] = &[
        ("nothing at all", &[]),
        ("no unpack line", &[b"ok refs/heads/x\n"]),
        ("unpack is not first", &[b"ok refs/heads/x\n", b"unpack ok\n"]),
        ("two unpack lines", &[b"unpack ok\n", b"unpack ok\n", b"ok refs/heads/x\n"]),
        ("an ok for a pack that was not unpacked", &[b"unpack no\n", b"ok refs/heads/x\n"]),
        ("unpack says more than ok", &[b"unpack okay\n", b"ok refs/heads/x\n"]),
        ("a missing ref", &[b"unpack ok\n"]),
        ("an unknown ref", &[b"unpack ok\n", b"ok refs/heads/x\n", b"ok refs/heads/y\n"]),
        ("another ref", &[b"unpack ok\n", b"ok refs/heads/y\n"]),
        ("both ok and ng", &[b"unpack ok\n", b"ok refs/heads/x\n", b"ng refs/heads/x no\n"]),
        ("both ng and ok", &[b"unpack ok\n", b"ng refs/heads/x no\n", b"ok refs/heads/x\n"]),
        ("ng twice", &[b"unpack ok\n", b"ng refs/heads/x no\n", b"ng refs/heads/x no\n"]),
        ("an option without an ok", &[b"unpack ok\n", b"ng refs/heads/x no\n", b"option refname y\n"]),
        ("an empty line", &[b"unpack ok\n", b"ok refs/heads/x\n", b""]),
        ("an unknown word", &[b"unpack ok\n", b"ok refs/heads/x\n", b"yes refs/heads/x\n"]),
        ("a word alone", &[b"unpack ok\n", b"ok refs/heads/x\n", b"ok"]),
        ("an error packet", &[b"ERR no\n"]),
    ];
    for (case, lines) in cases {
        assert_eq!(read_lines(lines, &[X]), Outcome::Unreadable, "{case}");
    }
    assert_eq!(read_lines(&[b"unpack ok\n"], &[]), Outcome::Unreadable, "no command");
}

#[test]
fn any_doubt_in_the_framing_is_unreadable() {
    let report = packets(&[b"unpack ok\n", b"ok refs/heads/x\n"]);
    let open = &report[..report.len() - FLUSH.len()];
    let good = banded(&report);
    assert_eq!(read_chunks(true, [&good[..]], &[X]), Outcome::Done);
    let cases: &[(&str, Vec<u8>)] = &[
        ("no body", vec![]),
        ("only a flush", FLUSH.to_vec()),
        ("no inner flush", banded(open)),
        ("no outer flush", good[..good.len() - FLUSH.len()].to_vec()),
        ("a bare report", report.clone()),
        ("a report after its end", packets(&[&[b"\x01", &report[..]].concat(), b"\x01000eunpack ok\n"])),
        ("a packet cut short inside", packets(&[&[b"\x01", &report[..], b"00"].concat()])),
        ("band 3 after the report", packets(&[&[b"\x01", &report[..]].concat(), b"\x03disk full"])),
        ("an unknown band", packets(&[b"\x04", &[b"\x01", &report[..]].concat()])),
        ("a packet without a band", packets(&[b"", &[b"\x01", &report[..]].concat()])),
        ("bytes after the end", [&good[..], b"X"].concat()),
        ("a packet after the end", [&good[..], b"0006\x02x"].concat()),
        ("a delimiter", [b"0001", &good[..]].concat()),
        ("HTML", b"<html>".to_vec()),
    ];
    for (case, body) in cases {
        assert_eq!(read_chunks(true, [&body[..]], &[X]), Outcome::Unreadable, "{case}");
        assert_eq!(read_chunks(true, body.chunks(1), &[X]), Outcome::Unreadable, "{case}");
    }
    assert_eq!(read_chunks(false, [open], &[X]), Outcome::Unreadable, "a bare report without its flush");
    assert_eq!(read_chunks(false, [&[&report[..], b"0"].concat()[..]], &[X]), Outcome::Unreadable);
    assert_eq!(read_chunks(false, [&good[..]], &[X]), Outcome::Unreadable, "bands that were not asked for");
}

#[test]
fn words_for_the_user_and_empty_packets_do_not_matter() {
    let report = packets(&[b"unpack ok\n", b"ok refs/heads/x\n"]);
    let (start, end) = report.split_at(20);
    let (start, end) = ([b"\x01", start].concat(), [b"\x01", end].concat());
    let body = packets(&[
        b"\x02counting\r",
        b"\x01",
        &start,
        b"\x02\0\xff",
        &end,
        b"\x01",
        b"\x02create a pull request\n",
    ]);
    assert_eq!(read_chunks(true, [&body[..]], &[X]), Outcome::Done);
    let twice = [&body[..], FLUSH].concat();
    assert_eq!(read_chunks(true, twice.chunks(3), &[X]), Outcome::Done);
}

#[test]
fn what_is_kept_of_a_report_is_bounded() {
    let long = "r".repeat(60_000);
    for (count, reason, is_kept) in [(17, &*long, true), (18, &*long, false), (6_000, "", true), (8_000, "", false)]
    {
        let names: Vec<String> = (0..count).map(|n| format!("refs/heads/{n}")).collect();
        let lines: Vec<String> = names.iter().map(|name| format!("ng {name} {reason}\n")).collect();
        let lines: Vec<&[u8]> =
            [&b"unpack ok\n"[..]].into_iter().chain(lines.iter().map(String::as_bytes)).collect();
        let mut reader = Reader::new(false);
        reader.push(&packets(&lines));
        let outcome = reader.finish(names.iter().map(String::as_bytes));
        assert_eq!(matches!(outcome, Outcome::Refused(_)), is_kept, "{count}");
    }
}

#[test]
fn what_git_reports_of_a_push_is_read() {
    let directory = TempDir::new().unwrap();
    let run = |arguments: &[&str], input: &[u8]| git(directory.path(), arguments, input);
    run(&["init", "-q", "--bare"], b"");
    let tree = String::from_utf8(run(&["hash-object", "-w", "-t", "tree", "--stdin"], b"")).unwrap();
    let commit = String::from_utf8(run(&["commit-tree", tree.trim(), "-m", "root"], b"")).unwrap();
    let pack = run(&["pack-objects", "-q", "--stdout"], b"");
    let push = |names: &[&str], capabilities: &str| {
        let line = |name: &&str| format!("{} {} {name}\0{capabilities}", "0".repeat(40), commit.trim());
        let lines: Vec<String> = names.iter().map(line).collect();
        let lines: Vec<&[u8]> = lines.iter().map(String::as_bytes).collect();
        let answer = run(&["receive-pack", "--stateless-rpc", "."], &[&packets(&lines)[..], &pack].concat());
        let expected: Vec<&[u8]> = names.iter().map(|name| name.as_bytes()).collect();
        read_chunks(capabilities.contains("side-band"), answer.chunks(7), &expected)
    };
    for (n, capabilities) in
        ["report-status", "report-status-v2", "report-status side-band-64k", "report-status-v2 side-band-64k"]
            .into_iter()
            .enumerate()
    {
        let (one, two) = (format!("refs/heads/one-{n}"), format!("refs/heads/two-{n}"));
        assert_eq!(push(&[&one], capabilities), Outcome::Done, "{capabilities}");
        let outcome = push(&[&two, "refs/heads/.."], capabilities);
        assert_eq!(outcome, refused(&[(b"refs/heads/..", "funny refname")]), "{capabilities}");
    }
}

fn name() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        "refs/heads/[a-z]{1,9}".prop_map(String::into_bytes),
        prop::collection::vec(any::<u8>().prop_filter("what no name holds", |b| !b"\0\n ".contains(b)), 1..30),
    ]
}

proptest! {
    #[test]
    fn a_refusal_is_read_back_as_it_was_meant_at_any_chunking(
        lines in prop::collection::btree_map(name(), "[!-~][ -~]{0,80}", 1..12),
        hints in prop::collection::vec(".{0,60}", 0..3),
        side_band in any::<bool>(),
        size in 1..200_usize,
    ) {
        let given: Vec<(&[u8], &str)> = lines.iter().map(|(name, reason)| (&name[..], &**reason)).collect();
        let hints: Vec<&str> = hints.iter().map(String::as_str).collect();
        let answer = refusal(&asked(Report::V2, side_band), &given, &hints).unwrap();
        let expected: Vec<&[u8]> = lines.keys().map(|name| &name[..]).collect();
        let meant = given.iter().map(|(name, reason)| (Bytes::copy_from_slice(name), format!("{REFUSED}{reason}")));
        prop_assert_eq!(
            read_chunks(side_band, answer.chunks(size), &expected),
            Outcome::Refused(meant.collect())
        );
    }

    #[test]
    fn a_broken_report_is_read_alike_at_any_chunking_and_never_done(
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        size in 1..50_usize,
    ) {
        let mut body = banded(&packets(&[b"unpack ok\n", b"ok refs/heads/x\n", b"ng refs/heads/main no\n"]));
        let at = at.index(body.len());
        body[at] = byte;
        let outcome = read_chunks(true, [&body[..]], &[X, MAIN]);
        prop_assert_eq!(&read_chunks(true, body.chunks(size), &[X, MAIN]), &outcome);
        prop_assert_ne!(outcome, Outcome::Done);
    }

    #[test]
    fn no_bytes_make_it_panic(body in prop::collection::vec(any::<u8>(), 0..200), side_band in any::<bool>()) {
        prop_assert_ne!(read_chunks(side_band, [&body[..]], &[X]), Outcome::Done);
    }
}
