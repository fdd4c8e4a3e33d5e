//! `gitdoor doctor`, the program itself, in homes made for it: what is seeded is found, by kind and place, and its value
//! is nowhere in what is printed.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on fails where it stands"
)]

mod bounds;
mod door;
mod files;
mod git;
mod helpers;
mod processes;
mod scrub;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

/// A token's shape, and what of it may be nowhere.
const TOKEN: &str = "ghp_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789";
/// A password without a shape.
const PASSWORD: &str = "hunter2-hunter2";
const BEARER: &str = "sbr_r1.AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8";
const KEY: &str =
    "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmU\n-----END OPENSSH PRIVATE KEY-----\n";

/// What no output may hold: the values of all that is seeded.
const SECRETS: [&str; 4] = [
    "AbCdEfGhIjKlMnOpQrStUvWxYz",
    PASSWORD,
    "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8",
    "b3BlbnNzaC1rZXktdjEAAAAABG5vbmU",
];

/// A home, a workspace and a folder of processes.
struct Workspace {
    folder: TempDir,
    environment: Vec<(String, String)>,
}

impl Workspace {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["home", "work", "proc"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        Self { folder, environment: Vec::new() }
    }

    /// A path below all of them: `home/.netrc`.
    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    fn env(mut self, name: &str, value: impl Into<String>) -> Self {
        self.environment.push((name.to_owned(), value.into()));
        self
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", self.path("home"));
        command.env("GIT_CONFIG_NOSYSTEM", "1").envs(self.environment.iter().cloned());
        command.current_dir(self.path("work"));
        command
    }

    fn git(&self, folder: &str, arguments: &[&str]) {
        let output = self.command("git").current_dir(self.path(folder)).args(arguments).output().unwrap();
        assert!(output.status.success(), "git {arguments:?}: {}", text(&output.stderr));
    }

    fn doctor(&self, arguments: &[&str]) -> Output {
        let mut doctor = self.command(env!("CARGO_BIN_EXE_gitdoor"));
        doctor.arg("doctor").arg("--proc").arg(self.path("proc")).args(arguments);
        let output = doctor.output().unwrap();
        let said = text(&output.stdout) + &text(&output.stderr);
        for secret in SECRETS {
            assert!(!said.contains(secret), "a value is printed: {said}");
        }
        output
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let output = self.doctor(&[&["--json"], arguments].concat());
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output.stderr)))
    }

    /// Asserts that just this is found, as text and as JSON.
    #[track_caller]
    fn finds(&self, kind: &str, place: &str) {
        let output = self.doctor(&[]);
        assert_eq!(output.status.code(), Some(1), "{}", text(&output.stdout));
        assert!(text(&output.stdout).contains(place), "{place}: {}", text(&output.stdout));
        let value = self.json(&[]);
        let found = value["findings"].as_array().unwrap();
        assert!(!found.is_empty() && value["clean"] == false, "{value}");
        for finding in found {
            assert_eq!((finding["kind"].as_str(), finding["place"].as_str()), (Some(kind), Some(place)), "{value}");
        }
    }

    /// Asserts that nothing is.
    #[track_caller]
    fn is_clean(&self) {
        let output = self.doctor(&[]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));
        assert!(text(&output.stdout).contains("clean  no GitHub credential was found"), "{}", text(&output.stdout));
        let value = self.json(&[]);
        assert_eq!((&value["clean"], &value["complete"]), (&true.into(), &true.into()), "{value}");
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

#[test]
fn a_workspace_with_nothing_in_it_is_clean() {
    Workspace::new().is_clean();
}

#[test]
fn a_token_in_the_environment_is_found() {
    for (name, value, kind) in [
        ("GH_TOKEN", PASSWORD, "variable"),
        ("GITHUB_TOKEN", TOKEN, "personal_token"),
        ("ANY", TOKEN, "personal_token"),
    ] {
        Workspace::new().env(name, value).finds(kind, &format!("environment: {name}"));
    }
    Workspace::new().env("GH_TOKEN", "").env("ANY", PASSWORD).is_clean();
}
