//! Stock git in an environment that knows nothing but the server's certificate and one credential.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::client::Client;
use crate::github::search_path;

pub(crate) use crate::client::kill_group;
pub use crate::client::{Output, Transcript};

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

/// A git client: a program, a home, a folder to work in.
#[derive(Clone)]
pub struct Git {
    program: PathBuf,
    home: PathBuf,
    base: String,
    client: Client,
}

impl Git {
    /// A client with a home of its own in `home`, whose credential helper knows `secret`. `base` is the server's URL,
    /// `authority` the certificate it is trusted by.
    pub fn new(home: &Path, base: &str, authority: &Path, secret: &str, transcript: Transcript) -> Self {
        let client = Client::new(home.join("work"), transcript);
        fs::write(home.join(CREDENTIAL_FILE), secret).expect("a file");
        let helper = home.join("credential-helper");
        fs::write(&helper, CREDENTIAL_HELPER).expect("a helper");
        fs::set_permissions(&helper, fs::Permissions::from_mode(0o755)).expect("a helper that runs");
        let helper = format!("[credential]\n\thelper = \"{}\"\n", helper.display());
        Self {
            program: all().remove(0).program,
            home: home.to_owned(),
            base: base.to_owned(),
            client: settle(client, home, &helper, authority),
        }
    }

    /// Another git program.
    pub fn program(mut self, installed: &Installed) -> Self {
        self.program.clone_from(&installed.program);
        self
    }

    /// With an environment variable.
    pub fn env(self, name: &str, value: impl Into<String>) -> Self {
        Self { client: self.client.env(name, value), ..self }
    }

    /// Without its credential helper.
    pub fn without_helper(self) -> Self {
        let config = fs::read_to_string(self.home.join("gitconfig")).expect("its settings");
        let kept: Vec<&str> = config.lines().filter(|line| !line.contains("helper")).collect();
        fs::write(self.home.join("gitconfig"), kept.join("\n")).expect("a file");
        self
    }

    /// With more or less time for a command than 30 seconds.
    pub fn limit(self, limit: Duration) -> Self {
        Self { client: self.client.limit(limit), ..self }
    }

    /// In another folder, below the one it works in.
    pub fn at(&self, folder: &str) -> Self {
        Self { client: self.client.at(folder), ..self.clone() }
    }

    /// The folder it works in.
    pub fn folder(&self) -> &Path {
        self.client.folder()
    }

    /// Its home.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// The environment of its commands.
    pub fn environment(&self) -> &[(String, String)] {
        self.client.environment()
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
        self.client.run(program, arguments, b"").await
    }

    /// Clones a repository, which must work, into a folder of its name.
    pub async fn cloned(&self, repository: &str) -> Self {
        self.run(&["clone", "--quiet", &self.url(repository)]).await.ok();
        self.at(repository.rsplit('/').next().unwrap_or(repository))
    }

    /// Writes a file and commits it; returns the commit's id.
    pub async fn commit(&self, path: &str, bytes: impl AsRef<[u8]>) -> String {
        let file = self.folder().join(path);
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

/// Gives git settings of its own, `more` among them, and the certificates that it trusts.
pub(crate) fn settle(client: Client, home: &Path, more: &str, authority: &Path) -> Client {
    let config = home.join("gitconfig");
    fs::write(&config, format!("{CONFIG}{more}")).expect("a file");
    client
        .env("HOME", home.display().to_string())
        .env("GIT_CONFIG_GLOBAL", config.display().to_string())
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .env("GIT_SSL_CAINFO", authority.display().to_string())
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("LC_ALL", "C")
}

/// As little as git needs to commit; nothing that runs in the background.
const CONFIG: &str = r"[user]
	name = Agent
	email = agent@sandbox.test
[init]
	defaultBranch = main
[gc]
	auto = 0
[maintenance]
	auto = false
";

/// Prints the credential, and writes down that it was asked to erase it.
const CREDENTIAL_HELPER: &str = r#"#!/bin/sh
cat >/dev/null
echo "$1" >>"$HOME/credential.log"
if [ "$1" = get ]; then
    echo username=x-access-token
    printf 'password=%s\n' "$(cat "$HOME/credential")"
fi
"#;
