//! A part of gitdoor as a child process: started until it says `ready`, captured, stopped, killed, started again.

use std::collections::HashMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::github::search_path;
use crate::port::Port;

/// Where a part listens that may do so anywhere.
const ANY_PORT: &str = "127.0.0.1:0";
/// How long a part may take to say `ready`.
const START: Duration = Duration::from_secs(30);

type Lines = Arc<Mutex<Vec<String>>>;

/// What a process is.
pub(crate) struct Part {
    pub(crate) name: String,
    pub(crate) program: PathBuf,
    /// `__control`, `__dataplane`.
    pub(crate) role: &'static str,
    /// In a process group of its own.
    pub(crate) detached: bool,
}

/// One part.
pub struct Process {
    part: Part,
    flags: Vec<String>,
    child: Option<Child>,
    captures: Vec<JoinHandle<()>>,
    addresses: HashMap<String, String>,
    lines: Lines,
    /// What it comes back to is its own meanwhile.
    _ports: Vec<Port>,
}

impl Process {
    /// Starts it and waits until it serves. What is to listen on any port gets one that it has for good: it comes back
    /// where its clients know it.
    pub(crate) async fn start(part: Part, mut flags: Vec<String>) -> Self {
        let ports = flags.iter_mut().filter_map(|flag| {
            let name = flag.strip_suffix(ANY_PORT)?.to_owned();
            let held = Port::take();
            *flag = format!("{name}{}", held.address());
            Some(held)
        });
        let ports = ports.collect();
        let mut process = Self {
            part,
            flags,
            child: None,
            captures: Vec::new(),
            addresses: HashMap::new(),
            lines: Lines::default(),
            _ports: ports,
        };
        process.start_again().await;
        process
    }

    /// Starts it again after it ended, with the flags it had.
    pub async fn start_again(&mut self) {
        assert!(self.child.is_none(), "{} runs", self.part.name);
        let mut command = command(&self.part.program, self.part.role, &self.flags);
        if self.part.detached {
            command.process_group(0);
        }
        let mut child = command.spawn().expect("a program");
        let (ready, is_ready) = oneshot::channel();
        let (out, err) = (child.stdout.take().expect("a pipe"), child.stderr.take().expect("a pipe"));
        self.captures = vec![
            tokio::spawn(capture(out, self.part.name.clone(), Arc::clone(&self.lines), Some(ready))),
            tokio::spawn(capture(err, self.part.name.clone(), Arc::clone(&self.lines), None)),
        ];
        self.child = Some(child);
        match tokio::time::timeout(START, is_ready).await {
            Ok(Ok(line)) => self.addresses = addresses(&line),
            Ok(Err(_ended)) => panic!("{} ended before it was ready:\n{}", self.part.name, self.lines().join("\n")),
            Err(_elapsed) => {
                panic!("{} is not ready after {START:?}:\n{}", self.part.name, self.lines().join("\n"))
            }
        }
    }

    /// Asks it to end, and asserts that it does within this time and with status 0.
    pub async fn stop(&mut self, limit: Duration) {
        if self.child.is_none() {
            return;
        }
        self.signal("TERM");
        let status = self.wait(limit).await;
        assert!(status.success(), "{} ended with {status}:\n{}", self.part.name, self.lines().join("\n"));
    }

    /// Stops it and starts it again.
    pub async fn restart(&mut self) {
        self.stop(START).await;
        self.start_again().await;
    }

    /// Kills it: no chance to put anything in order.
    pub async fn kill(&mut self) {
        self.signal("KILL");
        self.wait(START).await;
    }

    /// Sends it a signal by name: `STOP` and `CONT` freeze it and let it go on.
    pub fn signal(&self, name: &str) {
        let id = self.id();
        let kill = format!("kill -{name} {id}");
        let status = std::process::Command::new("sh").args(["-c", &kill]).status().expect("sh");
        assert!(status.success(), "no signal {name} for {}", self.part.name);
    }

    /// Waits until it has ended.
    pub async fn wait(&mut self, limit: Duration) -> ExitStatus {
        let mut child = self.child.take().expect("a process that runs");
        let Ok(status) = tokio::time::timeout(limit, child.wait()).await else {
            self.child = Some(child);
            panic!("{} did not end within {limit:?}:\n{}", self.part.name, self.lines().join("\n"));
        };
        for capture in self.captures.drain(..) {
            // Both end with the pipes, which ended with the process.
            capture.await.expect("to read its last lines");
        }
        status.expect("its status")
    }

    /// Its name: `control`, `dataplane-0`.
    pub fn name(&self) -> &str {
        &self.part.name
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.as_ref().and_then(Child::id).expect("a process that runs")
    }

    /// Whether it was started and not ended by the test.
    pub fn is_running(&self) -> bool {
        self.child.is_some()
    }

    /// An address of its `ready` line.
    pub fn address(&self, name: &str) -> &str {
        self.addresses
            .get(name)
            .unwrap_or_else(|| panic!("{} named no {name}: {:?}", self.part.name, self.addresses))
    }

    /// Every line it printed, after its name.
    pub fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }

    /// Its most memory so far, in bytes; [`Process::forget_peak`] starts anew.
    pub fn peak_memory(&self) -> u64 {
        self.memory("VmHWM:")
    }

    /// Its memory now, in bytes.
    pub fn memory_now(&self) -> u64 {
        self.memory("VmRSS:")
    }

    /// Lets the peak be what it uses now. Where only root may reach into it, the peak stays that of its whole life.
    pub fn forget_peak(&self) {
        match fs::write(format!("/proc/{}/clear_refs", self.id()), "5") {
            Err(why) if why.kind() != ErrorKind::PermissionDenied => panic!("clear_refs: {why}"),
            Ok(()) | Err(_) => {}
        }
    }

    fn memory(&self, field: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.id())).expect("Linux");
        let line = status.lines().find_map(|line| line.strip_prefix(field)).expect("a field");
        line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1024
    }
}

/// How a part ended that was not meant to serve.
#[derive(Debug)]
pub struct Exit {
    /// Its exit status.
    pub code: Option<i32>,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

/// Runs a part to its end: `__control`, `__dataplane` or `__gitdoor` with these arguments.
pub async fn run_to_exit(program: &Path, role: &str, arguments: &[String]) -> Exit {
    let child = command(program, role, arguments).spawn().expect("a program");
    let Ok(output) = tokio::time::timeout(START, child.wait_with_output()).await else {
        panic!("{role} {arguments:?} did not end");
    };
    let output = output.expect("its output");
    Exit {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

fn command(program: &Path, role: &str, arguments: &[String]) -> Command {
    let mut command = Command::new(program);
    command.arg(role).args(arguments).env_clear().env("PATH", search_path()).env("RUST_BACKTRACE", "1");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    command
}

/// Keeps every line; the one that begins with `ready` is also handed over.
async fn capture(
    stream: impl AsyncRead + Unpin,
    name: String,
    lines: Lines,
    mut ready: Option<oneshot::Sender<String>>,
) {
    let mut reader = BufReader::new(stream).lines();
    while let Ok(Some(line)) = reader.next_line().await {
        lines.lock().unwrap().push(format!("{name}: {line}"));
        if line.starts_with("ready")
            && let Some(ready) = ready.take()
        {
            let _nobody_waits = ready.send(line);
        }
    }
}

fn addresses(line: &str) -> HashMap<String, String> {
    let pairs = line.split(' ').filter_map(|word| word.split_once('='));
    pairs.map(|(name, address)| (name.to_owned(), address.to_owned())).collect()
}
