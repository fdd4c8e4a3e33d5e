//! A workspace that has what `gitdoor env` gives it, and nothing else: no settings, an empty home, no other variable but
//! `PATH` and the way to the network. Where the kernel lets it, its commands run in namespaces of their own, and what
//! they leave in their home is gone with them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use serde_json::Value;

use crate::client::{Client, Output, Transcript};
use crate::gh::{DOOR, Version, path_with};
use crate::git::CREDENTIAL_FILE;
use crate::world::{Exit, run_to_exit};

/// A user, its mounts and its processes.
const NAMESPACES: [&str; 6] = ["--user", "--map-root-user", "--mount", "--pid", "--fork", "--mount-proc"];

/// Whether there may be some.
static ARE_ALLOWED: LazyLock<bool> = LazyLock::new(|| {
    let mut unshare = Command::new("unshare");
    unshare.args(NAMESPACES).args(["mount", "-t", "tmpfs", "tmpfs", "/mnt"]);
    unshare.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    unshare.status().is_ok_and(|status| status.success())
});

/// A workspace.
pub struct Workspace {
    program: PathBuf,
    folder: PathBuf,
    authorities: PathBuf,
    client: Client,
    script: String,
}

impl Workspace {
    /// In this folder, with a file for the bearer.
    pub(crate) fn new(
        program: &Path,
        version: &Version,
        folder: PathBuf,
        network: (String, PathBuf),
        bearer: &str,
        transcript: Transcript,
    ) -> Self {
        let (proxy, authorities) = network;
        let client = Client::new(folder.join("work"), transcript);
        for name in ["home", "no-processes"] {
            fs::create_dir(folder.join(name)).expect("a folder");
        }
        fs::write(folder.join(CREDENTIAL_FILE), bearer).expect("a file");
        let client = client
            .env("PATH", path_with(&version.program))
            .env("HOME", folder.join("home").display().to_string())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("HTTPS_PROXY", proxy.clone())
            .env("http_proxy", proxy);
        Self { program: program.to_owned(), folder, authorities, client, script: String::new() }
    }

    /// With a variable that it has from before.
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.client = self.client.env(name, value);
        self
    }

    /// Takes what `gitdoor env` prints, with these flags beside those that it needs.
    pub async fn wired(mut self, flags: &[&str]) -> Self {
        let exit = self.env(flags).await;
        assert_eq!(exit.code, Some(0), "{}", exit.stderr);
        self.script = exit.stdout;
        self
    }

    /// Takes it as `json`, `docker` or `kubernetes`, as what reads that format does. What is to run in it was made with a
    /// credential in its environment.
    pub async fn wired_as(mut self, format: &str) -> Self {
        let exit = self.env(&[&format!("--format={format}")]).await;
        assert_eq!(exit.code, Some(0), "{}", exit.stderr);
        self.client = self.client.env("GITHUB_TOKEN", "hunter2-hunter2");
        for (name, value) in variables(format, &exit.stdout) {
            self.client = self.client.env(&name, value);
        }
        self
    }

    /// What `gitdoor env` does.
    pub async fn env(&self, flags: &[&str]) -> Exit {
        let file = |name: &str, path: &Path| format!("--{name}={}", path.display());
        let needed = [
            "env".to_owned(),
            format!("--host={DOOR}"),
            file("bearer-file", &self.bearer_file()),
            file("ca", &self.authorities),
        ];
        let flags = needed.into_iter().chain(flags.iter().map(|flag| (*flag).to_owned()));
        run_to_exit(&self.program, "__gitdoor", &flags.collect::<Vec<_>>()).await
    }

    /// Runs a line of a shell.
    pub async fn shell(&self, line: &str) -> Output {
        let home = "test \"$$\" != 1 || mount -t tmpfs tmpfs \"$HOME\"";
        let line = format!("set -eu\n{home}\n{}\n{line}", self.script);
        let shell = ["sh", "-c", &line];
        if *ARE_ALLOWED {
            let arguments = [NAMESPACES.as_slice(), &shell].concat();
            return self.client.run(Path::new("unshare"), &arguments, b"").await;
        }
        self.client.run(Path::new("sh"), &shell[1..], b"").await
    }

    /// Runs `gitdoor doctor` in it. Without namespaces it would see the processes of other tests.
    pub async fn doctor(&self, flags: &str) -> Output {
        let proc = if *ARE_ALLOWED { "/proc".into() } else { self.folder.join("no-processes") };
        let (program, proc) = (self.program.display(), proc.display());
        self.shell(&format!("'{program}' __gitdoor doctor --proc '{proc}' {flags}")).await
    }

    /// The file with the bearer.
    pub fn bearer_file(&self) -> PathBuf {
        self.folder.join(CREDENTIAL_FILE)
    }

    /// The folder it works in.
    pub fn folder(&self) -> &Path {
        self.client.folder()
    }
}

/// The variables of an output. What is to be unset is nothing, as where nothing can be unset.
fn variables(format: &str, printed: &str) -> Vec<(String, String)> {
    match format {
        "json" => {
            let value: Value = serde_json::from_str(printed).expect("an object");
            let text = |value: &Value| value.as_str().expect("text").to_owned();
            let set = value["set"].as_object().expect("an object");
            let set = set.iter().map(|(name, value)| (name.clone(), text(value)));
            let unset = value["unset"].as_array().expect("a list");
            set.chain(unset.iter().map(|name| (text(name), String::new()))).collect()
        }
        "docker" => {
            let pairs = printed.lines().filter_map(|line| line.split_once('='));
            pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
        }
        "kubernetes" => {
            let pairs = printed.split("\n        - name: ").skip(1).map(|entry| {
                let (name, rest) = entry.split_once("\n          value: ").expect("a value");
                let value = rest.lines().next().and_then(|value| serde_json::from_str(value).ok());
                (name.to_owned(), value.expect("a string of JSON's, and so of YAML's"))
            });
            let pairs: Vec<(String, String)> = pairs.collect();
            let folder = pairs.iter().find(|(name, _)| name == "GH_CONFIG_DIR").expect("the folder").1.clone();
            let mount = format!("name: gitdoor, mountPath: {}, readOnly: true", Value::from(folder));
            assert!(printed.contains(&mount), "{printed}");
            pairs
        }
        other => panic!("{other} is no format of these"),
    }
}
