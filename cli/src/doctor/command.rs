//! Other programs, with a bound in time: what they start ends with them.

use std::io::{Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

/// How long a program may take.
pub(super) const LIMIT: Duration = Duration::from_secs(5);
/// Most bytes that are read of what it prints.
const BYTES: u64 = 16 << 20;

/// Why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unanswered {
    /// It is not here.
    Missing,
    /// It failed.
    Failed,
    /// It took too long, and was ended.
    Late,
}

/// Runs a program with this standard input; gives its standard output.
pub(super) fn run(mut command: Command, input: &'static [u8]) -> Result<Vec<u8>, Unanswered> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
    let mut child = command.spawn().map_err(|_why| Unanswered::Missing)?;
    let group = Pid::from_child(&child);
    let answer = bounded(move || {
        if let Some(mut stdin) = child.stdin.take() {
            let _closed = stdin.write_all(input);
        }
        let mut printed = Vec::new();
        if let Some(stdout) = child.stdout.take() {
            let _closed = stdout.take(BYTES).read_to_end(&mut printed);
        }
        child.wait().is_ok_and(|status| status.success()).then_some(printed)
    });
    answer.map_or_else(
        || {
            let _may_be_gone = kill_process_group(group, Signal::KILL);
            Err(Unanswered::Late)
        },
        |printed| printed.ok_or(Unanswered::Failed),
    )
}

/// What a step gives, if it gives anything in time. A step that hangs is left behind.
pub(super) fn bounded<T: Send + 'static>(step: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let _nobody_waits = sender.send(step());
    });
    receiver.recv_timeout(LIMIT).ok()
}
