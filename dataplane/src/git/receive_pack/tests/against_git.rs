//! What `git receive-pack` would act on, the reader has read equally or refused.

use super::*;
use crate::git::real_git::git;
use std::cell::Cell;
use tempfile::TempDir;

/// The hook writes down what git would do, then refuses it.
const PRE_RECEIVE: &str = "#!/bin/sh\ncat > seen\nexit 1\n";

/// The root commit that `Repository::new` makes: its time and its author are fixed.
const COMMIT: &str = "3588cec6582668bc2ef632029894b52b6551fa3a";

struct Repository {
    directory: TempDir,
    pack: Vec<u8>,
}

impl Repository {
    fn new() -> Self {
        let directory = TempDir::new().unwrap();
        git(directory.path(), &["init", "-q", "--bare", "--initial-branch=main"], b"");
        let tree = git(directory.path(), &["hash-object", "-w", "-t", "tree", "--stdin"], b"");
        let tree = str::from_utf8(&tree).unwrap().trim();
        let commit = git(directory.path(), &["commit-tree", tree, "-m", "root"], b"");
        assert_eq!(str::from_utf8(&commit).unwrap().trim(), COMMIT);
        for branch in ["refs/heads/main", "refs/heads/old"] {
            git(directory.path(), &["update-ref", branch, COMMIT], b"");
        }
        let pack = git(directory.path(), &["pack-objects", "-q", "--stdout"], b"");
        Self { directory, pack }
    }

    fn with_hook() -> Self {
        use std::os::unix::fs::PermissionsExt as _;
        let repository = Self::new();
        let hook = repository.directory.path().join("hooks/pre-receive");
        std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
        std::fs::write(&hook, PRE_RECEIVE).unwrap();
        std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).unwrap();
        repository
    }

    /// Pushes the body to git; its answer.
    fn receive(&self, body: &[u8]) -> Vec<u8> {
        git(self.directory.path(), &["receive-pack", "--stateless-rpc", "."], body)
    }

    /// The lines that git gave the hook, if it came that far.
    fn seen(&self) -> Vec<u8> {
        let path = self.directory.path().join("seen");
        let seen = std::fs::read(&path).unwrap_or_default();
        let _ = std::fs::remove_file(path);
        seen
    }

    fn refs(&self) -> String {
        String::from_utf8(git(self.directory.path(), &["for-each-ref", "--format=%(refname)"], b"")).unwrap()
    }
}

/// What the reader would have git do, as git gives it to a hook: a line a command.
fn hook_lines(section: &Section) -> Vec<u8> {
    section.commands.iter().flat_map(hook_line).collect()
}

fn hook_line(command: &Command) -> Vec<u8> {
    let (old, new) = (command.old.as_str().as_bytes(), command.new.as_str().as_bytes());
    [old, b" ", new, b" ", &command.ref_name, b"\n"].concat()
}

/// Every line of `seen` is one of the section's, in its order. Git may leave out a command whose object it has not got.
fn is_part_of(seen: &[u8], section: &Section) -> bool {
    let mut commands = section.commands.iter().map(hook_line);
    seen.split_inclusive(|byte| *byte == b'\n').all(|line| commands.any(|command| command == line))
}

/// The refs that git's bare report names.
fn reported(answer: &[u8]) -> Vec<Vec<u8>> {
    let mut rest = answer;
    let mut refs = Vec::new();
    while let Ok(Some((Packet::Data(line), taken))) = pktline::read(rest) {
        rest = &rest[taken..];
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        refs.extend(line.strip_prefix(b"ng ").or(line.strip_prefix(b"ok ")).map(<[u8]>::to_vec));
    }
    refs
}

#[test]
fn whatever_git_would_act_on_the_reader_has_read_equally_or_refused() {
    let repository = Repository::with_hook();
    let (acted, equal) = (Cell::new(0), Cell::new(0));
    let config = ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() };
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let run = runner.run(&body(&[COMMIT, ZERO]), |mut body| {
        body.extend_from_slice(&repository.pack);
        let answer = repository.receive(&body);
        let (seen, reported) = (repository.seen(), reported(&answer));
        acted.set(acted.get() + usize::from(!seen.is_empty()));
        let Ok(section) = read(&body) else {
            return Ok(());
        };
        if !seen.is_empty() {
            equal.set(equal.get() + 1);
            prop_assert!(is_part_of(&seen, &section), "git would do: {}", seen.escape_ascii());
        }
        if !reported.is_empty() {
            prop_assert_eq!(reported.len(), section.commands.len());
            for (line, name) in reported.iter().zip(refs(&section)) {
                prop_assert!(line.starts_with(&[name, b" "].concat()), "{line:?} is not about {name:?}");
            }
        }
        Ok(())
    });
    run.unwrap();
    let (acted, equal) = (acted.get(), equal.get());
    // The comparison means nothing if the bodies never get through to the hook.
    assert!(acted > 100 && equal > 60, "git acted on {acted} bodies, and {equal} of them were read");
}

#[test]
fn git_ends_a_section_at_packets_that_the_reader_refuses() {
    let repository = Repository::with_hook();
    for end in ["0000", "0001", "0002"] {
        let lines = section(&[format!("{ZERO} {COMMIT} refs/heads/x\0report-status")]);
        let body = [&lines[..lines.len() - 4], end.as_bytes(), &repository.pack].concat();
        repository.receive(&body);
        assert!(!repository.seen().is_empty(), "{end}");
        assert_eq!(read(&body).is_ok(), end == "0000");
    }
}

#[test]
fn git_lets_a_later_set_of_capabilities_win_and_the_reader_refuses_it() {
    let repository = Repository::with_hook();
    let lines = [format!("{ZERO} {COMMIT} refs/heads/x"), format!("{ZERO} {COMMIT} refs/heads/y\0report-status")];
    let body = [&section(&lines)[..], &repository.pack].concat();
    assert_eq!(reported(&repository.receive(&body)).len(), 2);
    assert_eq!(read(&body), Err(Malformed::LateCapabilities));
}

#[test]
fn git_deletes_from_zero_to_zero_even_where_it_denies_deletes() {
    let repository = Repository::new();
    git(repository.directory.path(), &["config", "receive.denyDeletes", "true"], b"");
    let push = |old: &str| section(&[format!("{old} {ZERO} refs/heads/old\0report-status")]);
    repository.receive(&push(COMMIT));
    assert!(repository.refs().contains("refs/heads/old"));
    repository.receive(&push(ZERO));
    assert!(!repository.refs().contains("refs/heads/old"));
    assert!(read(&push(ZERO)).unwrap().deletes_only());
}

#[test]
fn git_fails_commands_without_their_pack_and_ignores_bytes_after_deletes() {
    let repository = Repository::new();
    let create = section(&[format!("{ZERO} {COMMIT} refs/heads/x\0report-status")]);
    for rest in [&b""[..], b"PAC", b"JUNKJUNKJUNKJUNK"] {
        let answer = repository.receive(&[&create, rest].concat());
        assert!(answer.windows(24).any(|w| w == b"refs/heads/x unpacker er"), "{}", answer.escape_ascii());
    }
    let delete = section(&[format!("{COMMIT} {ZERO} refs/heads/old\0report-status")]);
    repository.receive(&[&delete, &b"JUNK"[..]].concat());
    assert!(!repository.refs().contains("refs/heads/old"));
}

#[test]
fn git_takes_ids_of_either_case_and_an_option_with_a_value() {
    let repository = Repository::with_hook();
    git(repository.directory.path(), &["config", "receive.advertisePushOptions", "true"], b"");
    let upper = section(&[format!("{ZERO} {} refs/heads/x\0report-status", COMMIT.to_uppercase())]);
    repository.receive(&[&upper[..], &repository.pack].concat());
    assert_eq!(repository.seen(), hook_lines(&read(&upper).unwrap()));

    let options = section(&[format!("{ZERO} {COMMIT} refs/heads/x\0report-status push-options=no")]);
    repository.receive(&[&options[..], b"0006xy0000", &repository.pack].concat());
    assert!(!repository.seen().is_empty(), "git read the push options");
    assert_eq!(read(&options), Err(Malformed::PushOptions));
}
