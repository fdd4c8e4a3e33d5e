//! Every rule of the head, any chunking, and what git itself advertises.

use super::*;
use crate::git::real_git::git;
use proptest::prelude::*;
use tempfile::TempDir;

const A: &str = "91eeac66400945bc371c3f4cb24fee9084fef656";
const SERVICE: &[u8] = b"001f# service=git-receive-pack\n0000";

fn packets(lines: &[&str]) -> Vec<u8> {
    let mut out = SERVICE.to_vec();
    for line in lines {
        pktline::encode(&mut out, line.as_bytes());
    }
    out
}

/// Everything that is sent for these chunks. Nothing may be before the advertisement is confirmed.
fn rewrite_chunks<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Result<Vec<u8>, Malformed> {
    let mut rewriter = Rewriter::new();
    let mut sent = Vec::new();
    for chunk in chunks {
        sent.extend_from_slice(&rewriter.push(chunk)?);
        assert!(rewriter.confirmed() || sent.is_empty());
    }
    sent.extend_from_slice(&rewriter.finish()?);
    Ok(sent)
}

fn rewrite(input: &[u8]) -> Result<Vec<u8>, Malformed> {
    rewrite_chunks([input])
}

#[test]
fn push_options_and_certificates_are_not_advertised_and_all_else_is_as_it_was() {
    for (given, passed) in [
        ("report-status push-options agent=x\n", "report-status agent=x\n"),
        (" push-cert=1-abc report-status push-cert", " report-status"),
        ("push-options", ""),
        ("push-options\n", "\n"),
        ("a  b push-options=1 ", "a  b "),
        ("xpush-options push-options-v2 push-certs", "xpush-options push-options-v2 push-certs"),
    ] {
        let first = |capabilities: &str| format!("{A} refs/heads/main\0{capabilities}");
        let rest = format!("{A} refs/heads/x\0push-options\n");
        let answer = rewrite(&packets(&[&first(given), &rest]));
        assert_eq!(answer, Ok(packets(&[&first(passed), &rest])), "{given:?}");
    }
}

#[test]
fn an_empty_repository_version_1_and_objects_of_others_pass() {
    let zero = "0".repeat(40);
    for first in
        [format!("{zero} capabilities^{{}}"), format!("{A} .have"), format!("{} refs/heads/x", "a".repeat(64))]
    {
        for version in [&[][..], &["version 1\n"], &["version 1"]] {
            let lines = |capabilities: &str| packets(&[version, &[&format!("{first}\0{capabilities}")]].concat());
            assert_eq!(rewrite(&lines("atomic push-options quiet")), Ok(lines("atomic quiet")));
        }
    }
}

#[test]
fn what_follows_the_first_ref_is_not_read() {
    let head = packets(&[&format!("{A} r\0atomic")]);
    let input = [&head[..], b"zzzz\0\xff not a packet"].concat();
    assert_eq!(rewrite(&input), Ok(input.clone()));
    assert_eq!(rewrite(&head), Ok(head));
}

#[test]
fn another_beginning_is_refused_by_name() {
    let first = format!("{A} r\0atomic");
    let cases: &[(&[u8], Malformed)] = &[
        (b"001e# service=git-upload-pack\n0000", Malformed::Service),
        (b"001e# service=git-receive-pack0000", Malformed::Service),
        (b"0020# service=git-receive-pack \n", Malformed::Service),
        (b"0000", Malformed::Service),
        (b"001f# service=git-receive-pack\n0006ab", Malformed::ServiceEnd),
        (b"001f# service=git-receive-pack\n0001", Malformed::PktLine(InvalidLength::Reserved)),
        (b"<html><body>", Malformed::PktLine(InvalidLength::Digits)),
        (&packets(&["version 1\n", "version 1\n"]), Malformed::FirstRef),
        (&packets(&["version 2\n", &first]), Malformed::FirstRef),
        (&packets(&["ERR no such repository\n"]), Malformed::FirstRef),
        (&[SERVICE, b"0000"].concat(), Malformed::FirstRef),
        (&packets(&[&format!("{A} refs/heads/x\n")]), Malformed::FirstRef),
        (&packets(&[&format!("{A} \0atomic")]), Malformed::FirstRef),
        (&packets(&[&format!("{A}\0atomic")]), Malformed::FirstRef),
        (&packets(&["91eeac r\0atomic"]), Malformed::FirstRef),
        (&packets(&[&format!("{A} a\nb\0atomic")]), Malformed::FirstRef),
        // A client would find the word that the tab, the carriage return or the second NUL hides.
        (&packets(&[&format!("{A} r\0atomic\tpush-options")]), Malformed::FirstRef),
        (&packets(&[&format!("{A} r\0atomic\rpush-options")]), Malformed::FirstRef),
        (&packets(&[&format!("{A} r\0atomic\npush-options")]), Malformed::FirstRef),
        (&packets(&[&format!("{A} r\0atomic\0push-options")]), Malformed::FirstRef),
    ];
    for (input, malformed) in cases {
        assert_eq!(rewrite(input), Err(*malformed), "{}", input.escape_ascii());
        assert_eq!(rewrite_chunks(input.chunks(1)), Err(*malformed), "{}", input.escape_ascii());
    }
}

#[test]
fn a_truncated_head_is_refused_and_nothing_of_it_was_sent() {
    let head = packets(&[&format!("{A} r\0atomic push-options")]);
    for end in 0..head.len() {
        assert_eq!(rewrite(&head[..end]), Err(Malformed::Truncated), "{end}");
    }
}

#[test]
fn a_head_above_64_kib_is_refused_before_it_is_held() {
    let length = format!("{:04x}", HEAD_BYTES - SERVICE.len());
    assert_eq!(rewrite(&[SERVICE, length.as_bytes()].concat()), Err(Malformed::Truncated));
    let length = format!("{:04x}", HEAD_BYTES - SERVICE.len() + 1);
    assert_eq!(rewrite(&[SERVICE, length.as_bytes()].concat()), Err(Malformed::TooLong));
}

#[test]
fn split_at_every_byte_the_answer_is_the_same() {
    let input = packets(&["version 1\n", &format!("{A} r\0atomic push-options x"), &format!("{A} s\n"), "x"]);
    let whole = rewrite(&input);
    assert_ne!(whole, Ok(input.clone()));
    for at in 0..=input.len() {
        assert_eq!(rewrite_chunks([&input[..at], &input[at..]]), whole, "{at}");
    }
    assert_eq!(rewrite_chunks(input.chunks(1)), whole);
}

/// What a repository of this object format, with or without a ref, advertises to `git-http-backend`.
fn advertised(format: &str, full: bool, protocol: &str) -> Vec<u8> {
    let directory = TempDir::new().unwrap();
    let run = |arguments: &[&str]| String::from_utf8(git(directory.path(), arguments, b"")).unwrap();
    run(&["init", "-q", "--bare", &format!("--object-format={format}")]);
    run(&["config", "receive.advertisePushOptions", "true"]);
    run(&["config", "receive.certNonceSeed", "seed"]);
    if full {
        let tree = run(&["hash-object", "-w", "-t", "tree", "--stdin"]);
        let commit = run(&["commit-tree", tree.trim(), "-m", "root"]);
        for name in ["refs/heads/main", "refs/heads/x", "refs/tags/v1"] {
            run(&["update-ref", name, commit.trim()]);
        }
    }
    let version = format!("alias.advertise=!GIT_PROTOCOL={protocol} git receive-pack --http-backend-info-refs .");
    [SERVICE, run(&["-c", &version, "advertise"]).as_bytes()].concat()
}

#[test]
fn what_git_advertises_passes_without_the_two_capabilities() {
    for format in ["sha1", "sha256"] {
        for (full, protocol) in
            [(false, "version=0"), (true, "version=0"), (true, "version=1"), (false, "version=1")]
        {
            let given = advertised(format, full, protocol);
            let text = String::from_utf8(given.clone()).unwrap();
            assert!(text.contains(" push-options") && text.contains(" push-cert="), "{text}");
            assert_eq!(text.contains("version 1"), protocol == "version=1");

            let sent = rewrite(&given).unwrap();
            assert_eq!(rewrite_chunks(given.chunks(1)), Ok(sent.clone()));
            let sent = payloads(&sent);
            let expected: Vec<String> = payloads(&given).iter().map(|line| without_two(line)).collect();
            assert_eq!(sent, expected);
        }
    }
}

/// The packets' payloads; a flush is an empty one.
fn payloads(mut input: &[u8]) -> Vec<String> {
    let mut out = Vec::new();
    while let Some((packet, taken)) = pktline::read(input).unwrap() {
        input = &input[taken..];
        out.push(match packet {
            Packet::Flush => String::new(),
            Packet::Data(line) => String::from_utf8(line.to_vec()).unwrap(),
        });
    }
    assert_eq!(input, b"");
    out
}

fn without_two(line: &str) -> String {
    let keep = |word: &&str| *word != "push-options" && !word.starts_with("push-cert=");
    line.split(' ').filter(keep).collect::<Vec<_>>().join(" ")
}

proptest! {
    #[test]
    fn any_chunking_gives_the_same_answer(
        capabilities in "[ -~]{0,20}( push-options)?( push-cert=[a-z]{0,3})?",
        version in any::<bool>(),
        tail in prop::collection::vec(any::<u8>(), 0..30),
        broken in prop::option::weighted(0.3, (any::<prop::sample::Index>(), any::<u8>())),
        size in 1..50_usize,
    ) {
        let first = format!("{A} refs/heads/x\0{capabilities}");
        let lines: &[&str] = if version { &["version 1\n", &first] } else { &[&first] };
        let mut input = [&packets(lines)[..], &tail].concat();
        if let Some((at, byte)) = broken {
            let at = at.index(input.len());
            input[at] = byte;
        }
        prop_assert_eq!(rewrite_chunks(input.chunks(size)), rewrite(&input));
    }
}
