//! Job control: this program stops when the command is stopped, and not before: then the shell has its prompt back.
//!
//! The command may have to clear the screen first, when ^Z is pressed; may not stop at all; or stops itself alone, which
//! nobody else sees: the shell waits for this program, and the program waits for the command.

use std::fs;
use std::time::Duration;

use rustix::process::{Pid, Signal, getpgrp, getpid, kill_process};
use tokio::signal::unix::{self, SignalKind, signal};
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::process::{Process, Standing};
use super::terminal;

/// How often the command is looked at. It is no child of this program's, so nothing is told of it.
const LOOK: Duration = Duration::from_millis(100);

/// What stops this program. It hears SIGTSTP itself, and what cannot be heard stops it also where no shell is
/// there to make it go on.
const STOP: Signal = Signal::TTOU;

/// A command at a terminal.
pub(super) struct Job {
    /// Nothing where there is no terminal, or whoever started this program lets it not stop: nobody would make it go on.
    hears: Option<Hears>,
    was_stopped: bool,
    /// Whether a shell inside had the terminal when all of it was stopped.
    had_terminal: bool,
}

struct Hears {
    looks: Interval,
    resumed: unix::Signal,
    stop: unix::Signal,
}

/// What it is time for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Turn {
    /// To look whether the command is stopped.
    Look,
    /// To go on.
    GoOn,
    /// To stop.
    Stop,
}

impl Job {
    /// Hears from now on what is for a command that is to be started.
    pub(super) fn listen() -> Self {
        let hears = terminal::foreground().filter(|_group| !is_ignored(Signal::TSTP)).and_then(|_group| {
            let hear = |name: Signal| signal(SignalKind::from_raw(name.as_raw())).ok();
            let (resumed, stop) = (hear(Signal::CONT)?, hear(Signal::TSTP)?);
            let mut looks = interval(LOOK);
            looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            Some(Hears { looks, resumed, stop })
        });
        Self { hears, was_stopped: false, had_terminal: false }
    }

    /// What it is time for next.
    pub(super) async fn turn(&mut self) -> Turn {
        let Some(Hears { looks, resumed, stop }) = &mut self.hears else { return std::future::pending().await };
        tokio::select! {
            biased;
            _ = resumed.recv() => Turn::GoOn,
            _ = stop.recv() => Turn::Stop,
            _ = looks.tick() => Turn::Look,
        }
    }

    /// Does it.
    pub(super) fn follow(&mut self, turn: Turn, process: &mut Process) {
        match turn {
            Turn::Stop if !terminal::is_ours() => process.tell(Signal::TSTP),
            // What comes before the command does not answer it.
            Turn::Stop if !process.is_begun() => self.stop(terminal::foreground(), None),
            // The terminal has sent it to the command, too.
            Turn::Stop => {}
            Turn::GoOn => self.go_on(process),
            Turn::Look => self.look(process),
        }
    }

    fn go_on(&mut self, process: &mut Process) {
        self.was_stopped = false;
        let Some(Standing { group, is_stopped: true }) = process.standing() else { return };
        if let Some(group) = group.filter(|_| self.had_terminal) {
            self.had_terminal = !terminal::hand(group);
        }
        process.tell(Signal::CONT);
    }

    /// At the first look at a command that is stopped it may go on in a moment, with this program.
    fn look(&mut self, process: &mut Process) {
        match process.standing() {
            Some(Standing { group, is_stopped: true }) if self.was_stopped => {
                self.was_stopped = false;
                self.stop(terminal::foreground(), group);
            }
            standing => self.was_stopped = standing.is_some_and(|standing| standing.is_stopped),
        }
    }

    /// Stops this program, if the terminal is its own or the command's: else the shell has its prompt.
    fn stop(&mut self, foreground: Option<Pid>, group: Option<Pid>) {
        let is_ours = foreground == Some(getpgrp());
        let has_terminal = !is_ours && foreground == group;
        if !is_ours && !has_terminal {
            return;
        }
        self.had_terminal = has_terminal;
        if let Err(error) = kill_process(getpid(), STOP) {
            tracing::debug!(%error, "this program was not stopped with its command");
        }
    }
}

/// Whether whoever started this program has it ignore a signal.
fn is_ignored(signal: Signal) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal.as_raw() - 1) & 1 == 1)
}
