//! Signals, and the wait for the command: whatever comes, this process outlives the command, and ends its run.

use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};
use tokio::signal::unix::{self, SignalKind, signal};
use tokio::time::Instant;

use super::ExecError;
use super::job::Job;
use super::notes::Notes;
use super::process::Process;
use super::terminal;

/// What the kernel sends when the program ends that started this one.
const ORPHANED: Signal = Signal::USR1;
/// How long the command has to end once it was asked to, because nobody waits for it any more.
const PATIENCE: Duration = Duration::from_secs(10);

/// The signals that this process hears.
pub(super) struct Signals {
    interrupt: unix::Signal,
    quit: unix::Signal,
    terminate: unix::Signal,
    hangup: unix::Signal,
    orphaned: unix::Signal,
    parent: Option<Pid>,
}

/// What has come.
#[derive(Debug, Clone, Copy)]
pub(super) enum Ended {
    /// A signal to be passed on.
    Signal(Signal),
    /// The program that started this one has ended.
    Orphaned,
}

impl Ended {
    /// What the command is told.
    fn signal(self) -> Signal {
        match self {
            Self::Signal(signal) => signal,
            Self::Orphaned => Signal::TERM,
        }
    }

    /// Whether the terminal has sent it, and so to the command, too.
    fn is_of_terminal(self) -> bool {
        matches!(self, Self::Signal(Signal::INT | Signal::QUIT)) && terminal::is_ours()
    }

    /// The exit status where there is no command yet.
    pub(super) fn status(self) -> u8 {
        of_signal(self.signal().as_raw())
    }
}

impl Signals {
    /// Hears them from now on.
    pub(super) fn listen() -> Result<Self, ExecError> {
        let hear = |kind| signal(kind).map_err(ExecError::Start);
        let parent = getppid();
        let signals = Self {
            interrupt: hear(SignalKind::interrupt())?,
            quit: hear(SignalKind::quit())?,
            terminate: hear(SignalKind::terminate())?,
            hangup: hear(SignalKind::hangup())?,
            orphaned: hear(SignalKind::user_defined1())?,
            parent,
        };
        set_parent_process_death_signal(Some(ORPHANED)).map_err(|error| ExecError::Start(error.into()))?;
        Ok(signals)
    }

    /// The next of them.
    pub(super) async fn any(&mut self) -> Ended {
        loop {
            // Of the end of a terminal, before that of the shell in it.
            return Ended::Signal(tokio::select! {
                biased;
                _ = self.interrupt.recv() => Signal::INT,
                _ = self.quit.recv() => Signal::QUIT,
                _ = self.terminate.recv() => Signal::TERM,
                _ = self.hangup.recv() => Signal::HUP,
                _ = self.orphaned.recv() => {
                    // It comes for the end of a thread as well, or from anybody.
                    if getppid() == self.parent {
                        continue;
                    }
                    return Ended::Orphaned;
                }
            });
        }
    }

    /// Waits until the command has ended; what comes for it meanwhile is passed on. Says its exit status.
    pub(super) async fn until_ended(
        &mut self,
        mut process: Process,
        mut job: Job,
        shut: impl Future<Output = String>,
        notes: &mut Notes,
    ) -> u8 {
        let mut shut = std::pin::pin!(shut);
        let (mut open, mut last, mut early) = (true, Last::default(), None);
        loop {
            tokio::select! {
                status = process.child.wait() => return early.unwrap_or_else(|| status.map_or(1, of_command)),
                ended = self.any() => {
                    if !process.is_begun() {
                        early = Some(ended.status());
                        process.kill();
                    } else if !ended.is_of_terminal() && last.allows(ended) {
                        process.tell(ended.signal());
                    }
                }
                turn = job.turn() => job.follow(turn, &mut process),
                why = &mut shut, if open => {
                    open = false;
                    notes.say(format!("the door is shut: {why}; the command goes on without it"));
                }
                signal = last.signal() => match signal {
                    Signal::KILL => process.kill(),
                    signal => process.tell(signal),
                },
            }
        }
    }
}

/// What is left to be told to a command that nobody waits for any more.
#[derive(Debug, Default)]
struct Last {
    /// Whether it was told that its terminal was closed: it was asked to end by that.
    hung_up: bool,
    next: Option<(Instant, Signal)>,
}

impl Last {
    /// Whether the command is told this now.
    fn allows(&mut self, ended: Ended) -> bool {
        let is_orphaned = matches!(ended, Ended::Orphaned);
        self.hung_up |= matches!(ended, Ended::Signal(Signal::HUP));
        if is_orphaned {
            let signal = if self.hung_up { Signal::TERM } else { Signal::KILL };
            self.next = Some((Instant::now() + PATIENCE, signal));
        }
        !(is_orphaned && self.hung_up)
    }

    /// What it is told next, when it is time.
    async fn signal(&mut self) -> Signal {
        let Some((due, signal)) = self.next else { return std::future::pending().await };
        tokio::time::sleep_until(due).await;
        self.next = (signal == Signal::TERM).then(|| (Instant::now() + PATIENCE, Signal::KILL));
        signal
    }
}

fn of_command(status: ExitStatus) -> u8 {
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    code.or_else(|| status.signal().map(of_signal)).unwrap_or(1)
}

/// As a shell says it.
fn of_signal(signal: i32) -> u8 {
    u8::try_from(signal).map_or(1, |signal| signal.saturating_add(128))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_command_that_nobody_waits_for_is_asked_to_end_and_then_made_to() {
        let mut last = Last::default();
        assert!(last.allows(Ended::Orphaned));
        assert_eq!(last.signal().await, Signal::KILL);
        // The one that was told of a closed terminal has its time for that first.
        let mut last = Last::default();
        assert!(last.allows(Ended::Signal(Signal::HUP)));
        assert!(!last.allows(Ended::Orphaned));
        assert_eq!((last.signal().await, last.signal().await), (Signal::TERM, Signal::KILL));
    }
}
