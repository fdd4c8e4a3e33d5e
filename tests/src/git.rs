//! Stock git in an environment that knows nothing but the server's certificate and one credential.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::process::Command;

use crate::github::search_path;

/// How long a git command may take.
const LIMIT: Duration = Duration::from_secs(30);

/// The file in a client's home that holds its credential, and may.
pub const CREDENTIAL_FILE: &str = "credential";

/// A git that is installed here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    /// The program.
    pub program: PathBuf,
    /// What it says of itself: `2.47.3`.
    pub version: String,
}

/// Every git of another version that is installed here; the first is the one on the path.
pub fn all() -> Vec<Installed> {
    let path = search_path();
    let fixed = ["/usr/local/bin", "/usr/bin"].map(PathBuf::from);
    let mut found: Vec<Installed> = Vec::new();
    for folder in std::env::split_paths(path.as_os_str()).chain(fixed) {
        let program = folder.join("git");
        let Some(version) = version(&program) else { continue };
        if !found.iter().any(|known| known.version == version) {
            found.push(Installed { program, version });
        }
    }
    assert!(!found.is_empty(), "git is not installed");
    found
}

fn version(program: &Path) -> Option<String> {
    let output = std::process::Command::new(program).arg("--version").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.strip_prefix("git version ").map(|version| version.trim().to_owned())
}

/// What was printed by all clients of a test, for the search for secrets.
pub type Transcript = Arc<Mutex<Vec<(String, Vec<u8>)>>>;

/// A git client: a program, a home, a folder to work in.
#[derive(Clone)]
pub struct Git {
    program: PathBuf,
    home: PathBuf,
    folder: PathBuf,
    base: String,
    environment: Vec<(String, String)>,
    limit: Duration,
    transcript: Transcript,
}

impl Git {
    /// A client with a home of its own in `home`, whose credential helper knows `secret`. `base` is the server's URL,
    /// `authority` the certificate it is trusted by.
    pub fn new(home: &Path, base: &str, authority: &Path, secret: &str, transcript: Transcript) -> Self {
        fs::create_dir_all(home.join("work")).expect("a home");
        fs::write(home.join(CREDENTIAL_FILE), secret).expect("a file");
        let helper = home.join("credential-helper");
        fs::write(&helper, CREDENTIAL_HELPER).expect("a helper");
        fs::set_permissions(&helper, fs::Permissions::from_mode(0o755)).expect("a helper that runs");
        let config = CONFIG.replace("HELPER", &helper.display().to_string());
        fs::write(home.join("gitconfig"), config).expect("a file");
        let file = |name: &str| home.join(name).display().to_string();
        let environment = [
            ("HOME", home.display().to_string()),
            ("GIT_CONFIG_GLOBAL", file("gitconfig")),
            ("GIT_CONFIG_SYSTEM", "/dev/null".to_owned()),
            ("GIT_SSL_CAINFO", authority.display().to_string()),
            ("GIT_TERMINAL_PROMPT", "0".to_owned()),
            ("LC_ALL", "C".to_owned()),
        ];
        Self {
            program: all().remove(0).program,
            home: home.to_owned(),
            folder: home.join("work"),
            base: base.to_owned(),
            environment: environment.map(|(name, value)| (name.to_owned(), value)).into(),
            limit: LIMIT,
            transcript,
        }
    }

    /// Another git program.
    pub fn program(mut self, installed: &Installed) -> Self {
        self.program.clone_from(&installed.program);
        self
    }

    /// With an environment variable.
    pub fn env(mut self, name: &str, value: impl Into<String>) -> Self {
        self.environment.retain(|(known, _)| known != name);
        self.environment.push((name.to_owned(), value.into()));
        self
    }

    /// Without its credential helper.
    pub fn without_helper(self) -> Self {
        let config = fs::read_to_string(self.home.join("gitconfig")).expect("its settings");
        let kept: Vec<&str> = config.lines().filter(|line| !line.contains("helper")).collect();
        fs::write(self.home.join("gitconfig"), kept.join("\n")).expect("a file");
        self
    }

    /// With more or less time for a command than 30 seconds.
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// In another folder, below the one it works in.
    pub fn at(&self, folder: &str) -> Self {
        Self { folder: self.folder.join(folder), ..self.clone() }
    }

    /// The folder it works in.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Its home.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// The environment of its commands.
    pub fn environment(&self) -> &[(String, String)] {
        &self.environment
    }

    /// A repository's URL: `https://localhost:PORT/owner/name.git`.
    pub fn url(&self, repository: &str) -> String {
        format!("{}/{repository}.git", self.base)
    }

    /// The credential helper erased it this often, which means that git got a 401 for it.
    pub fn erasures(&self) -> usize {
        let log = fs::read_to_string(self.home.join("credential.log")).unwrap_or_default();
        log.lines().filter(|line| *line == "erase").count()
    }

    /// Runs a command to its end.
    pub async fn run<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Output {
        self.run_program(&self.program, arguments).await
    }

    /// Runs another program in the same environment.
    pub async fn run_program<A: AsRef<OsStr>>(&self, program: &Path, arguments: &[A]) -> Output {
        let shown: Vec<_> = arguments.iter().map(|argument| argument.as_ref().to_string_lossy()).collect();
        let shown = format!("{} {}", program.display(), shown.join(" "));
        let mut command = Command::new(program);
        command.args(arguments).current_dir(&self.folder).env_clear().env("PATH", search_path());
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // In a group of its own, so that its remote helpers end with it.
        let child = command.process_group(0).kill_on_drop(true).spawn().expect("a program");
        let group = child.id();
        let Ok(output) = tokio::time::timeout(self.limit, child.wait_with_output()).await else {
            group.into_iter().for_each(kill_group);
            panic!("`{shown}` did not end within {:?}", self.limit);
        };
        let output = output.expect("its output");
        let mut printed = output.stdout.clone();
        printed.extend_from_slice(&output.stderr);
        self.transcript.lock().unwrap().push((shown.clone(), printed));
        Output {
            command: shown,
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Clones a repository, which must work, into a folder of its name.
    pub async fn cloned(&self, repository: &str) -> Self {
        self.run(&["clone", "--quiet", &self.url(repository)]).await.ok();
        self.at(repository.rsplit('/').next().unwrap_or(repository))
    }

    /// Writes a file and commits it; returns the commit's id.
    pub async fn commit(&self, path: &str, bytes: impl AsRef<[u8]>) -> String {
        let file = self.folder.join(path);
        fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        fs::write(file, bytes).expect("a file");
        self.run(&["add", path]).await.ok();
        self.run(&["commit", "--quiet", "--message", &format!("Change {path}")]).await.ok();
        self.id_of("HEAD").await
    }

    /// The object id that a name stands for.
    pub async fn id_of(&self, name: &str) -> String {
        self.run(&["rev-parse", "--verify", name]).await.ok().stdout.trim().to_owned()
    }
}

/// Kills a process and all that it started. Debian's `sh` takes no `--` before the group.
pub(crate) fn kill_group(group: u32) {
    let kill = format!("kill -KILL -{group} 2>/dev/null");
    let _may_be_gone = std::process::Command::new("sh").args(["-c", &kill]).status();
}

/// What a command did.
#[derive(Debug, Clone)]
pub struct Output {
    /// The command.
    pub command: String,
    /// Its exit status; nothing if a signal ended it.
    pub code: Option<i32>,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

impl Output {
    /// Asserts that it succeeded.
    #[track_caller]
    pub fn ok(self) -> Self {
        self.code_is(0)
    }

    /// Asserts its exit status.
    #[track_caller]
    pub fn code_is(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self}");
        self
    }

    /// Asserts that it printed this somewhere.
    #[track_caller]
    pub fn says(self, words: &str) -> Self {
        assert!(self.text().contains(words), "not said: {words:?}\n{self}");
        self
    }

    /// Asserts that it did not print this.
    #[track_caller]
    pub fn does_not_say(self, words: &str) -> Self {
        assert!(!self.text().contains(words), "said: {words:?}\n{self}");
        self
    }

    /// Standard output, then standard error.
    pub fn text(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }
}

impl std::fmt::Display for Output {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { command, code, stdout, stderr } = self;
        write!(f, "`{command}` ended with {code:?}\n--- stdout\n{stdout}\n--- stderr\n{stderr}")
    }
}

/// As little as git needs to commit and to log in; nothing that runs in the background.
const CONFIG: &str = r#"[user]
	name = Agent
	email = agent@sandbox.test
[init]
	defaultBranch = main
[credential]
	helper = "HELPER"
[gc]
	auto = 0
[maintenance]
	auto = false
"#;

/// Prints the credential, and writes down that it was asked to erase it.
const CREDENTIAL_HELPER: &str = r#"#!/bin/sh
cat >/dev/null
echo "$1" >>"$HOME/credential.log"
if [ "$1" = get ]; then
    echo username=x-access-token
    printf 'password=%s\n' "$(cat "$HOME/credential")"
fi
"#;
