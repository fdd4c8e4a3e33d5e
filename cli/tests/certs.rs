//! `gitdoor certs`, the program itself: what it prints, and how it exits.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

use std::path::Path;
use std::process::{Command, Output};

fn certs(folder: &Path, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gitdoor"));
    command.env_clear().args(["certs", "--out"]).arg(folder).args(more).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn which_flag_takes_which_file_is_printed_and_no_key_is() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("certs");
    let output = certs(&folder, &["--control-host", "control.example.com", "--control-host", "10.0.0.7"]);
    assert_eq!((output.status.code(), said(&output)), (Some(0), String::new()));
    let printed = String::from_utf8(output.stdout).unwrap();
    for (flag, file) in [
        ("--runs-tls-cert", "control.pem"),
        ("--runs-tls-client-ca", "ca.pem"),
        ("--gate-tls-key", "control.key"),
        ("--control-tls-cert", "dataplane.pem"),
        ("--control-tls-key", "bot.key"),
        ("--control-tls-key", "ops.key"),
    ] {
        let pair = format!("{flag} {}", folder.join(file).display());
        assert!(printed.contains(&pair), "{pair}: {printed}");
    }
    assert!(!printed.contains("BEGIN"));
}

#[test]
fn what_is_there_is_not_overwritten_and_renewal_is_named() {
    let place = tempfile::tempdir().unwrap();
    assert_eq!(certs(place.path(), &[]).status.code(), Some(0));
    let key = std::fs::read(place.path().join("ca.key")).unwrap();
    let again = certs(place.path(), &[]);
    assert_eq!((again.status.code(), again.stdout.as_slice()), (Some(64), b"".as_slice()));
    assert!(
        said(&again).contains("ca.pem is there already") && said(&again).contains("--renew"),
        "{}",
        said(&again)
    );
    assert_eq!(std::fs::read(place.path().join("ca.key")).unwrap(), key);
    let renewed = certs(place.path(), &["--renew", "ops"]);
    assert_eq!((renewed.status.code(), said(&renewed)), (Some(0), String::new()));
}

#[test]
fn what_cannot_be_done_exits_by_its_kind() {
    let place = tempfile::tempdir().unwrap();
    for (more, code, words) in [
        (["--days", "0"], 2, "--days"),
        (["--renew", "ca"], 2, "--renew"),
        (["--control-host", "a b"], 2, "a DNS name or an IP address"),
        (["--renew", "bot"], 64, "--out"),
    ] {
        let output = certs(&place.path().join("none"), &more);
        assert_eq!(output.status.code(), Some(code), "{more:?}: {}", said(&output));
        assert!(said(&output).contains(words), "{more:?}: {}", said(&output));
    }
    let empty = certs(place.path(), &["--renew", "bot"]);
    assert!(said(&empty).contains("ca.key"), "{}", said(&empty));
}
