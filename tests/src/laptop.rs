//! A developer's machine: a home with credentials of its own, a stand-in GitHub, and `gitdoor exec`.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout};

use crate::client::{Client, Output, Transcript, kill_group};
use crate::gh::{Version, path_with};
use crate::github::{APP_ID, Github, INSTALLATION_ID};
use crate::terminal::Terminal;
use crate::world::Secret;

/// A credential of the developer's own, which nothing of gitdoor's may touch.
pub const DECOY: &str = "gho_decoydecoydecoydecoydecoydecoydecoy1";

/// The developer's settings of git, as many have them: past any door, by ssh.
const SETTINGS: &str = "\
[user]
	name = \"Octo \\\"the\\\" Cat\"
	email = octo@example.com
[url \"git@github.com:\"]
	insteadOf = https://github.com/
	pushInsteadOf = https://github.com/
[http]
	extraHeader = Authorization: Bearer gho_decoydecoydecoydecoydecoydecoydecoy1
";

/// How long a program that was started may take to say something, or to end.
const LIMIT: Duration = Duration::from_secs(30);

/// A machine.
pub struct Laptop {
    /// The stand-in GitHub, with `acme/api` and `acme/web`.
    pub github: Github,
    program: PathBuf,
    client: Client,
    transcript: Transcript,
    /// Where its gh is.
    tools: PathBuf,
    folder: TempDir,
}

impl Laptop {
    /// A machine with this gh, and the `gitdoor` that was built beside this program.
    pub fn new(program: impl Into<PathBuf>, version: &Version) -> Self {
        let github = Github::start();
        github.seed("acme/api").furnished().create();
        github.create("acme/web");
        let folder = tempfile::Builder::new().prefix("gitdoor-").tempdir().expect("a folder");
        let home = folder.path().join("home");
        fs::create_dir_all(home.join(".config/gh")).expect("a folder");
        fs::write(home.join(".gitconfig"), SETTINGS).expect("a file");
        let transcript = Transcript::default();
        let tools = version.program.parent().expect("a folder").to_owned();
        // What leads to the internet leads nowhere: whatever would take it fails.
        let nowhere = "http://127.0.0.1:9";
        let client = Client::new(folder.path().join("work"), transcript.clone())
            .env("PATH", path_with(&version.program))
            .env("HOME", home.display().to_string())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GH_TOKEN", DECOY)
            .env("SSH_AUTH_SOCK", "/nonexistent/agent")
            .env("http_proxy", nowhere)
            .env("HTTPS_PROXY", nowhere)
            // Flags of another program of ours.
            .env("GITDOOR_TLS_CERT", "/nonexistent/cert")
            .env("GITDOOR_HTTP2", "soon");
        Self { github, program: program.into().with_file_name("gitdoor"), client, transcript, tools, folder }
    }

    /// Runs `gitdoor exec` with these flags, beside those that lead to the stand-in, to its end.
    pub async fn exec(&self, flags: &[&str], command: &[&str]) -> Output {
        self.client.run(&self.program, &self.arguments(flags, command), b"").await
    }

    /// Runs it with a line of a shell.
    pub async fn shell(&self, flags: &[&str], line: &str) -> Output {
        self.exec(flags, &["sh", "-euc", line]).await
    }

    /// Runs a line of a shell as the developer would, without it.
    pub async fn bare(&self, line: &str) -> Output {
        self.client.run(Path::new("sh"), &["-euc", line], b"").await
    }

    /// How the developer types it, with a line for a shell; neither has quotes in it.
    pub fn line(&self, flags: &[&str], line: &str) -> String {
        let arguments = self.arguments(flags, &[]).join(" ");
        format!("{} {arguments} sh -c \"{line}\"", self.program.display())
    }

    /// How the developer types it at a terminal, with a script that they have in the folder that commands work in.
    pub fn typed(&self, flags: &[&str], script: &str) -> String {
        fs::write(self.work().join("script"), script).expect("a file");
        let words = self.arguments(flags, &["sh", "-u", "script"]);
        let quoted: Vec<_> = words.iter().map(|word| format!("'{word}'")).collect();
        format!("{} {}", self.program.display(), quoted.join(" "))
    }

    /// A terminal of the developer's, with a shell in that folder.
    pub async fn terminal(&self) -> Terminal {
        Terminal::open(&self.client).await
    }

    /// Starts it, and does not wait for its end.
    pub fn start(&self, flags: &[&str], line: &str) -> Running {
        let arguments = self.arguments(flags, &["sh", "-euc", line]);
        Running::new(self.client.start(&self.program, &arguments))
    }

    /// Starts it as the child of a shell that waits for it.
    pub fn start_below_a_shell(&self, flags: &[&str], line: &str) -> Running {
        let mut arguments = vec!["-c".to_owned(), "\"$0\" \"$@\"; exit".to_owned()];
        arguments.push(self.program.display().to_string());
        arguments.extend(self.arguments(flags, &["sh", "-euc", line]));
        Running::new(self.client.start(Path::new("sh"), &arguments))
    }

    fn arguments(&self, flags: &[&str], command: &[&str]) -> Vec<String> {
        let github = &self.github;
        let mut arguments = vec![
            "exec".to_owned(),
            format!("--state-dir={}", self.state().display()),
            format!("--github-ca={}", github.ca_file().display()),
        ];
        // A checkout may be in a place that the fence hides.
        if !flags.contains(&"--no-isolation") {
            arguments.push(format!("--show={}", self.tools.display()));
        }
        let given = |name: &str| flags.iter().any(|flag| flag.starts_with(name));
        if !given("--github-url") {
            arguments.push(format!("--github-url={}", github.url()));
        }
        if !given("--github-api-url") {
            arguments.push(format!("--github-api-url={}", github.api_url()));
        }
        arguments.extend(flags.iter().map(|flag| (*flag).to_owned()));
        arguments.push("--".to_owned());
        arguments.extend(command.iter().map(|word| (*word).to_owned()));
        arguments
    }

    /// The flags of the stand-in's App.
    pub fn app(&self) -> [String; 3] {
        [
            format!("--github-app-id={APP_ID}"),
            format!("--github-app-key={}", self.github.app_key_file().display()),
            format!("--github-installation-id={INSTALLATION_ID}"),
        ]
    }

    /// A token of the developer's, which reaches all repositories.
    pub fn token(&self) -> String {
        let permissions = [
            ("contents", "write"),
            ("workflows", "write"),
            ("pull_requests", "read"),
            ("issues", "read"),
            ("actions", "read"),
            ("checks", "read"),
            ("statuses", "read"),
            ("metadata", "read"),
        ];
        self.github.token(&permissions, None).text
    }

    /// The same, in a file: the flag that names it.
    pub fn token_flag(&self) -> String {
        let path = self.folder.path().join("token");
        fs::write(&path, format!("{}\n", self.token())).expect("a file");
        format!("--token-file={}", path.display())
    }

    /// Gives the developer's gh a token for the stand-in.
    pub fn log_in(&self, host: &str, token: &str) {
        let hosts = format!("{host}:\n    user: octo\n    oauth_token: {token}\n");
        fs::write(self.folder.path().join("home/.config/gh/hosts.yml"), hosts).expect("a file");
        fs::write(self.folder.path().join("home/.config/gh/config.yml"), "version: \"1\"\n").expect("a file");
    }

    /// The state folder.
    pub fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    /// The folder that commands work in.
    pub fn work(&self) -> &Path {
        self.client.folder()
    }

    /// The program.
    pub fn gitdoor(&self) -> &Path {
        &self.program
    }

    /// The developer's home.
    pub fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// The same machine with another `PATH`.
    #[must_use]
    pub fn with_path(self, path: &str) -> Self {
        self.with_variable("PATH", path)
    }

    /// The same machine with another variable.
    #[must_use]
    pub fn with_variable(mut self, name: &str, value: &str) -> Self {
        self.client = self.client.env(name, value);
        self
    }

    /// The folders of runs, in the order of their names.
    pub fn places(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.state()).into_iter().flatten().flatten();
        let mut found: Vec<_> = entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
        found.sort();
        found
    }

    /// What the run in this folder did. The folder holds that and the log, and nothing else.
    #[track_caller]
    pub fn record(place: &Path) -> Value {
        assert_eq!(names(place), ["log", "run.json"], "{}", place.display());
        serde_json::from_slice(&fs::read(place.join("run.json")).expect("a record")).expect("JSON")
    }

    /// Asserts that no file of the state or of the work, and nothing that was printed, holds this.
    #[track_caller]
    pub fn assert_nowhere(&self, kind: &'static str, text: &str) {
        let secret = Secret::new(kind, text);
        for (command, printed) in self.transcript.lock().unwrap().iter() {
            assert!(!secret.is_in(&String::from_utf8_lossy(printed)), "{kind}: printed by {command}");
        }
        for path in files(&self.state()).into_iter().chain(files(self.work())) {
            let content = fs::read(&path).unwrap_or_default();
            assert!(!secret.is_in(&String::from_utf8_lossy(&content)), "{kind}: in {}", path.display());
        }
    }
}

/// The names in a folder.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<_> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let nested = entries.map(|entry| if entry.path().is_dir() { files(&entry.path()) } else { vec![entry.path()] });
    nested.flatten().collect()
}

/// A `gitdoor exec` that runs.
pub struct Running {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    group: u32,
}

impl Running {
    fn new(mut child: Child) -> Self {
        let group = child.id().expect("a process");
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        Self { child, lines, group }
    }

    /// The next line that its command prints.
    pub async fn line(&mut self) -> String {
        let line = tokio::time::timeout(LIMIT, self.lines.next_line()).await.expect("a line in time");
        line.expect("to be read").expect("a line before the end")
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.group
    }

    /// Sends it, and it alone, a signal by name.
    pub fn signal(&self, name: &str) {
        signal(self.group, name);
    }

    /// Waits for its end: its exit status, or nothing if a signal ended it.
    pub async fn wait(&mut self) -> Option<i32> {
        let status = tokio::time::timeout(LIMIT, self.child.wait()).await.expect("an end in time");
        status.expect("its status").code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        kill_group(self.group);
    }
}

/// Sends a process a signal by name.
pub fn signal(id: u32, name: &str) {
    let kill = format!("kill -{name} {id}");
    assert!(std::process::Command::new("sh").args(["-c", &kill]).status().expect("sh").success(), "{kill}");
}
