//! What `deploy/` holds, without a cluster and without Docker: that its files fit together and to the programs, and that
//! the programs serve when they are started as those files start them.
#![expect(clippy::panic, reason = "what a file lacks is said by name")]

mod compose;
mod files;
mod flags;
mod ground;
mod kubernetes;
mod process;
mod starts;
mod steps;
mod units;

use std::collections::BTreeMap;
use std::time::Duration;

/// How a file starts one of the programs.
#[derive(Debug, Clone)]
struct Start {
    /// `gitdoor-control` or `gitdoor-dataplane`.
    program: String,
    arguments: Vec<String>,
    variables: BTreeMap<String, String>,
    /// How long it has from SIGTERM on until it is killed.
    grace: Duration,
}

impl Start {
    /// A variable, which must be there.
    fn variable(&self, name: &str) -> &str {
        self.variables.get(name).unwrap_or_else(|| panic!("no {name}: {:?}", self.variables))
    }

    /// How long it drains at most.
    fn drain(&self) -> Duration {
        let given =
            self.variables.get("GITDOOR_DRAIN_TIMEOUT").map(|time| humantime::parse_duration(time).unwrap());
        // What control always has; a data plane's default is given in its help.
        given.unwrap_or(Duration::from_secs(if self.program == "gitdoor-control" { 10 } else { 30 }))
    }
}

#[test]
fn nobody_is_killed_while_it_drains() {
    let starts = starts::all();
    assert_eq!(starts.len(), 8, "{starts:#?}");
    for start in starts {
        assert!(start.grace > start.drain() + Duration::from_secs(5), "{start:?}");
    }
}

/// The version of the programs.
const VERSION: &str = env!("CARGO_PKG_VERSION");

#[test]
fn every_image_of_ours_has_the_programs_version() {
    let mut tags = 0;
    for (place, text) in files::all() {
        for rest in text.split("gitdoor:").skip(1).chain(text.split("newTag: ").skip(1)) {
            let tag = rest.split(|c: char| !(c.is_ascii_digit() || c == '.')).next().unwrap();
            // Others are roles and ports.
            if tag.contains('.') {
                assert_eq!(tag, VERSION, "deploy/{place}");
                tags += 1;
            }
        }
    }
    assert!(tags > 4, "{tags}");
}

#[test]
fn the_image_is_pinned_and_runs_no_shell_as_nobody() {
    let text = files::read("Containerfile");
    let lines: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let value = |name: &str| lines.iter().rev().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
    let (user, group) = value("USER ").split_once(':').unwrap();
    assert!(user.parse::<u32>().unwrap() > 0 && group.parse::<u32>().unwrap() > 0, "USER");
    for base in ["ARG BUILDER=", "ARG BASE="] {
        let tag = value(base).rsplit_once(':').unwrap().1;
        assert!(!tag.is_empty() && tag != "latest", "{base}");
    }
    // Its glibc is the builder's.
    assert!(value("ARG BUILDER=").ends_with("-bookworm") && value("ARG BASE=").contains("debian12"));
    let last = lines.iter().rposition(|line| line.starts_with("FROM ")).unwrap();
    assert!(lines[last..].iter().all(|line| !line.starts_with("RUN ")), "a shell in the image");
    assert!(value("CMD ").starts_with('['), "CMD");
    for program in ["gitdoor", "gitdoor-control", "gitdoor-dataplane"] {
        assert!(text.contains(&format!("target/release/{program}")), "{program}");
    }
    // The image's Rust is no older than what the workspace asks for.
    let (_, rust) = value("ARG BUILDER=").rsplit_once(':').unwrap();
    let minor = |version: &str| version.split('.').nth(1).unwrap().parse::<u32>().unwrap();
    assert!(minor(rust) >= minor(env!("CARGO_PKG_RUST_VERSION")), "{rust}");
}

#[test]
fn an_image_is_built_from_the_workspace_and_nothing_beside_it() {
    let ignore = include_str!("../../.dockerignore");
    let mut patterns = ignore.lines().filter(|line| !line.starts_with('#'));
    assert_eq!(patterns.next(), Some("*"));
    let mut let_in: Vec<_> = patterns.map(|line| line.strip_prefix('!').unwrap()).collect();
    let (_, members) = include_str!("../../Cargo.toml").split_once("\nmembers = [").unwrap();
    let (members, _) = members.split_once(']').unwrap();
    let members = members.split(", ").map(|member| member.trim_matches('"'));
    let mut needed: Vec<_> = members.chain(["Cargo.toml", "Cargo.lock"]).collect();
    let_in.sort_unstable();
    needed.sort_unstable();
    assert_eq!(let_in, needed);
}

#[test]
fn the_programs_need_no_library_that_the_image_lacks() {
    // Of gcr.io/distroless/cc.
    let there = [
        "linux-vdso.so.1",
        "libgcc_s.so.1",
        "libc.so.6",
        "libm.so.6",
        "ld-linux-x86-64.so.2",
        "ld-linux-aarch64.so.1",
    ];
    for program in ["gitdoor", "gitdoor-control", "gitdoor-dataplane"] {
        let output = std::process::Command::new("ldd").arg(process::program(program)).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains("libc.so.6"), "{program}: {text}");
        for line in text.lines() {
            let library = line.split_whitespace().next().unwrap().rsplit('/').next().unwrap();
            assert!(there.contains(&library), "{program}: {line}");
        }
    }
}
