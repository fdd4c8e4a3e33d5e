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
    /// Whether the command was seen.
    begun: bool,
}

/// How a process stands with the terminal's job control.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Standing {
    pub(super) is_stopped: bool,
    pub(super) group: Option<Pid>,
}

impl Process {
    /// Starts the command on this program's own input, output and terminal.
    pub(super) fn start(command: Command, fenced: bool) -> Result<Self, ExecError> {
        let program = command.get_program().to_owned();
        let started = tokio::process::Command::from(command).spawn();
        Ok(Self { child: started.map_err(|why| ExecError::Command { program, why })?, fenced, begun: false })
    }

    /// Sends the command a signal.
    pub(super) fn tell(&self, signal: Signal) {
        send(self.command(), signal);
    }

    /// Ends the command, and in a fence all that it has started.
    pub(super) fn kill(&self) {
        send(self.pid(), Signal::KILL);
    }

    /// Whether the command is there, or was, which may hear or ignore what it likes: what comes before it in a fence does
    /// not.
    pub(super) fn is_begun(&mut self) -> bool {
        self.begun = self.begun || self.command().is_some();
        self.begun
    }

    /// How the command stands, if it is there.
    pub(super) fn standing(&mut self) -> Option<Standing> {
        let pid = self.command()?.as_raw_nonzero();
        self.begun = true;
        standing(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// The command's own process. bwrap passes nothing on: it is in front of the first process of its namespace, and the
    /// command is behind that.
    fn command(&self) -> Option<Pid> {
        let pid = self.pid();
        if self.fenced { pid.and_then(behind).and_then(behind).filter(|pid| is_begun(*pid)) } else { pid }
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

/// Whether what is there is the command already.
fn is_begun(pid: Pid) -> bool {
    let name = fs::read_to_string(format!("/proc/{}/comm", pid.as_raw_nonzero())).unwrap_or_default();
    let own = fs::read_to_string("/proc/self/comm").unwrap_or_default();
    name != own && name.trim_end() != "bwrap"
}

/// As the kernel writes it: the number, the name in parentheses, which may hold any, the state, the parent, the group.
fn standing(stat: &str) -> Option<Standing> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    let is_stopped = fields.next()? == "T";
    Some(Standing { is_stopped, group: fields.nth(1)?.parse().ok().and_then(Pid::from_raw) })
}

fn send(pid: Option<Pid>, signal: Signal) {
    if let Some(pid) = pid
        && let Err(error) = kill_process(pid, signal)
    {
        tracing::debug!(%error, "the command has ended already");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_a_command_is_called_its_state_and_its_group_are_read() {
        let group = Pid::from_raw(70);
        let stands = |is_stopped| Some(Standing { is_stopped, group });
        assert_eq!(standing("71 (less) T 69 70 60 34816 70 1 0"), stands(true));
        assert_eq!(standing("71 (a) T 1 2 (b) S 69 70 60"), stands(false));
        assert_eq!(standing("71 (less) t 69 70"), stands(false), "a debugger's stop is the debugger's");
        for none in ["", "71 (less", "71 (less) ", "71 (less) T 69"] {
            assert_eq!(standing(none), None, "{none}");
        }
    }
}
