//! The fence, around real commands, with a home made for it: what is hidden, what is there, and when it ends.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

mod credentials;
mod ends;
mod refusals;
mod repositories;
mod sockets;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use gitdoor::fence::{Caller, Fence, FenceError, Plan};
use tempfile::TempDir;

/// What nobody inside may read.
const SECRET: &str = "hunter2-hunter2";

/// A machine of its own, as far as a user sees it: a home, a folder of work, and what stands for `/tmp` and `/run`.
struct Place {
    folder: TempDir,
    variables: Vec<(String, OsString)>,
}

impl Place {
    fn new() -> Self {
        let place = Self { folder: tempfile::tempdir().unwrap(), variables: Vec::new() };
        for name in ["home", "work", "tmp", "run"] {
            fs::create_dir(place.path(name)).unwrap();
        }
        let git = "[user]\n\tname = A \\\"B\\\" C\n\temail = a@example.com\n[init]\n\tdefaultBranch = main\n";
        place.write("home/.gitconfig", git);
        let home = place.path("home");
        let path = std::env::var_os("PATH").unwrap();
        place.variable("HOME", home).variable("PATH", path).variable("GIT_CONFIG_NOSYSTEM", "1")
    }

    fn variable(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.variables.push((name.to_owned(), value.into()));
        self
    }

    fn first_on_path(mut self, name: &str) -> Self {
        let folder = self.path(name);
        for (_, value) in self.variables.iter_mut().filter(|(name, _)| name == "PATH") {
            *value = [folder.as_os_str(), ":".as_ref(), value].into_iter().collect();
        }
        self
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    fn fence(&self) -> Fence {
        let variables = self.variables.iter().map(|(name, value)| (name.into(), value.clone())).collect();
        Fence::of(env!("CARGO_BIN_EXE_gitdoor").as_ref(), Caller::with(variables, self.path(""))).unwrap()
    }

    /// A line of a shell, in the folder of work.
    fn plan(&self, line: &str) -> Plan {
        let command = ["sh", "-c", line].map(OsString::from).into();
        Plan { work: self.path("work"), command, ..Plan::default() }
    }

    fn command(&self, plan: &Plan) -> Command {
        self.fence().command(plan).unwrap()
    }

    fn refusal(&self, plan: &Plan) -> FenceError {
        self.fence().command(plan).unwrap_err()
    }

    /// Runs it behind the fence.
    #[track_caller]
    fn inside(&self, plan: &Plan) -> String {
        success(&self.command(plan).output().unwrap())
    }

    /// Runs a line without a fence, as the caller would.
    #[track_caller]
    fn outside(&self, line: &str) -> String {
        let mut shell = Command::new("sh");
        shell.args(["-c", line]).env_clear().envs(self.variables.iter().cloned()).current_dir(self.path("work"));
        success(&shell.output().unwrap())
    }
}

#[track_caller]
fn success(output: &Output) -> String {
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A path in a line of a shell.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display())
}
