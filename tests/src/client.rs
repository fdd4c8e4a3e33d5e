//! A stock program in an environment of its own: nothing of who runs the tests is in it.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::process::{Child, Command};

use crate::github::search_path;

/// How long a command may take.
const LIMIT: Duration = Duration::from_secs(30);

/// What was printed by all clients of a test, for the search for secrets.
pub type Transcript = Arc<Mutex<Vec<(String, Vec<u8>)>>>;

/// Where programs run and what they know.
#[derive(Clone)]
pub(crate) struct Client {
    folder: PathBuf,
    environment: Vec<(String, String)>,
    limit: Duration,
    transcript: Transcript,
}

impl Client {
    /// In this folder, which is made, with only `PATH` in its environment.
    pub(crate) fn new(folder: PathBuf, transcript: Transcript) -> Self {
        std::fs::create_dir_all(&folder).expect("a folder");
        Self { folder, environment: Vec::new(), limit: LIMIT, transcript }
    }

    /// With an environment variable, in place of one of that name.
    pub(crate) fn env(mut self, name: &str, value: impl Into<String>) -> Self {
        self.environment.retain(|(known, _)| known != name);
        self.environment.push((name.to_owned(), value.into()));
        self
    }

    /// With this much time for a command.
    pub(crate) fn limit(self, limit: Duration) -> Self {
        Self { limit, ..self }
    }

    /// In another folder, below this one.
    pub(crate) fn at(&self, folder: &str) -> Self {
        Self { folder: self.folder.join(folder), ..self.clone() }
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn environment(&self) -> &[(String, String)] {
        &self.environment
    }

    /// Runs a program to its end, and keeps what it printed.
    pub(crate) async fn run<A: AsRef<OsStr>>(&self, program: &Path, arguments: &[A], input: &[u8]) -> Output {
        let output = self.ask(program, arguments, input).await;
        self.keep(&output);
        output
    }

    /// Runs a program whose output may hold what no other may.
    pub(crate) async fn ask<A: AsRef<OsStr>>(&self, program: &Path, arguments: &[A], input: &[u8]) -> Output {
        let shown: Vec<_> = arguments.iter().map(|argument| argument.as_ref().to_string_lossy()).collect();
        let shown = format!("{} {}", program.display(), shown.join(" "));
        let child = self.spawn(program, arguments, stdin(input), Stdio::piped());
        let group = child.id();
        let Ok(output) = tokio::time::timeout(self.limit, child.wait_with_output()).await else {
            group.into_iter().for_each(kill_group);
            panic!("`{shown}` did not end within {:?}", self.limit);
        };
        let output = output.expect("its output");
        Output {
            command: shown,
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Starts a program whose standard output is read as it comes, and whose standard error is the test's.
    pub(crate) fn start<A: AsRef<OsStr>>(&self, program: &Path, arguments: &[A]) -> Child {
        self.spawn(program, arguments, Stdio::null(), Stdio::inherit())
    }

    fn spawn<A: AsRef<OsStr>>(&self, program: &Path, arguments: &[A], stdin: Stdio, stderr: Stdio) -> Child {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(&self.folder).env_clear().env("PATH", search_path());
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.stdin(stdin).stdout(Stdio::piped()).stderr(stderr);
        // In a group of its own, so that what it starts ends with it.
        command.process_group(0).kill_on_drop(true).spawn().expect("a program")
    }

    /// Keeps what was printed for the search for secrets.
    pub(crate) fn keep(&self, output: &Output) {
        self.transcript.lock().unwrap().push((output.command.clone(), output.text().into_bytes()));
    }
}

/// From a file, so that a program may leave any of it unread.
fn stdin(input: &[u8]) -> Stdio {
    if input.is_empty() {
        return Stdio::null();
    }
    let mut file: File = tempfile::tempfile().expect("a file");
    file.write_all(input).and_then(|()| file.rewind()).expect("to be written");
    file.into()
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
