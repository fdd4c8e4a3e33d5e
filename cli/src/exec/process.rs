//! The command as a process.

use std::fs;
use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};
use tokio::process::Child;

use super::ExecError;

/// The command, and what it is started in.
pub(super) struct Process {
    pub(super) child: Child,
    fenced: bool,
}

impl Process {
    /// Starts the command on this program's own input, output and terminal.
    pub(super) fn start(command: Command, fenced: bool) -> Result<Self, ExecError> {
        let program = command.get_program().to_owned();
        let started = tokio::process::Command::from(command).spawn();
        Ok(Self { child: started.map_err(|why| ExecError::Command { program, why })?, fenced })
    }

    /// Sends the command a signal.
    pub(super) fn tell(&self, signal: Signal) {
        // bwrap passes nothing on: it is in front of the first process of its namespace, and the command is behind that.
        let Some(pid) = self.pid().filter(|_| self.fenced) else { return send(self.pid(), signal) };
        match behind(pid).and_then(behind).filter(|pid| is_begun(*pid)) {
            Some(command) => send(Some(command), signal),
            None => self.kill(),
        }
    }

    /// Ends the command, and in a fence all that it has started.
    pub(super) fn kill(&self) {
        send(self.pid(), Signal::KILL);
    }

    fn pid(&self) -> Option<Pid> {
        self.child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw)
    }
}

/// The first child of a process.
fn behind(pid: Pid) -> Option<Pid> {
    let pid = pid.as_raw_nonzero();
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).ok()?;
    Pid::from_raw(children.split_whitespace().next()?.parse().ok()?)
}

/// Whether what is there is the command already, which may hear or ignore what it likes: what comes before it does not.
fn is_begun(pid: Pid) -> bool {
    let name = fs::read_to_string(format!("/proc/{}/comm", pid.as_raw_nonzero())).unwrap_or_default();
    let own = fs::read_to_string("/proc/self/comm").unwrap_or_default();
    name != own && name.trim_end() != "bwrap"
}

fn send(pid: Option<Pid>, signal: Signal) {
    if let Some(pid) = pid
        && let Err(error) = kill_process(pid, signal)
    {
        tracing::debug!(%error, "the command has ended already");
    }
}
