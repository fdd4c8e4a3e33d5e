//! One of the programs, run as a file of `deploy/` says.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use gitdoor_tests::raw::{Door, Request};
use gitdoor_tests::wait::until;

use super::Start;
use crate::PROGRAM;

/// How long it may take to say that it is ready.
const READY: Duration = Duration::from_secs(30);

/// A program as it is installed.
pub(super) fn program(name: &str) -> PathBuf {
    let program = Path::new(PROGRAM).with_file_name(name);
    assert!(program.exists(), "cargo build --workspace makes {}", program.display());
    program
}

/// A program that serves.
pub(super) struct Process {
    start: Start,
    child: Child,
    ready: String,
    log: PathBuf,
}

impl Process {
    /// Starts it, with what it logs in this file, and waits until it is ready.
    pub(super) async fn start(start: Start, log: PathBuf) -> Self {
        let mut command = Command::new(program(&start.program));
        command.args(&start.arguments).env_clear().envs(&start.variables).current_dir("/");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(File::create(&log).unwrap()).kill_on_drop(true);
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let line = tokio::time::timeout(READY, lines.next_line()).await.unwrap().unwrap();
        let ready = line.unwrap_or_else(|| panic!("{start:?}: {}", fs::read_to_string(&log).unwrap()));
        Self { start, child, ready, log }
    }

    /// An address of its `ready` line.
    pub(super) fn address(&self, name: &str) -> SocketAddr {
        let named = self.ready.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        named.unwrap_or_else(|| panic!("{}", self.ready)).parse().unwrap()
    }

    /// Waits until the probes pass.
    pub(super) async fn probe(&self) {
        let admin = Door::plain(self.address("admin"));
        for path in ["/livez", "/readyz"] {
            until(path, async || admin.send(Request::get(path).header("Connection", "close")).await.status == 200)
                .await;
        }
    }

    /// The files that it has open, but for its log.
    pub(super) fn files(&self) -> Vec<PathBuf> {
        let open = fs::read_dir(format!("/proc/{}/fd", self.child.id().unwrap())).unwrap();
        let open = open.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
        open.filter(|path| path.is_file() && *path != self.log && *path != Path::new("/dev/null")).collect()
    }

    /// Ends it as its file says, in the time that it has there.
    pub(super) async fn stop(mut self) {
        let kill = format!("kill -TERM {}", self.child.id().unwrap());
        assert!(std::process::Command::new("sh").args(["-c", &kill]).status().unwrap().success());
        let ended = tokio::time::timeout(self.start.grace, self.child.wait()).await;
        let log = fs::read_to_string(&self.log).unwrap();
        assert_eq!(ended.unwrap().unwrap().code(), Some(0), "{:?}: {log}", self.start);
    }
}
