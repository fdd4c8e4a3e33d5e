//! Signals, and the wait for the command: whatever comes, this process outlives the command, and ends its run.

use std::fs::File;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::{Pid, Signal, getpgrp, getppid, set_parent_process_death_signal};
use rustix::termios::tcgetpgrp;
use tokio::signal::unix::{self, SignalKind, signal};

use super::ExecError;
use super::process::Process;
use crate::output;

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
            return Ended::Signal(tokio::select! {
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

    /// The next that the command has not had already.
    async fn for_command(&mut self) -> Ended {
        loop {
            let ended = self.any().await;
            let of_terminal = matches!(ended, Ended::Signal(Signal::INT | Signal::QUIT));
            if !(of_terminal && has_terminal()) {
                return ended;
            }
        }
    }

    /// Waits until the command has ended; what comes for it meanwhile is passed on. Says its exit status.
    pub(super) async fn until_ended(&mut self, mut process: Process, shut: impl Future<Output = String>) -> u8 {
        let mut shut = std::pin::pin!(shut);
        let (mut open, mut last) = (true, None);
        loop {
            tokio::select! {
                status = process.child.wait() => return status.map_or(1, of_command),
                ended = self.for_command() => {
                    process.tell(ended.signal());
                    if matches!(ended, Ended::Orphaned) {
                        last = Some(tokio::time::Instant::now() + PATIENCE);
                    }
                }
                why = &mut shut, if open => {
                    open = false;
                    output::note(&format!("the door is shut: {why}; the command goes on without it"));
                }
                () = until(last), if last.is_some() => {
                    last = None;
                    process.kill();
                }
            }
        }
    }
}

async fn until(last: Option<tokio::time::Instant>) {
    if let Some(last) = last {
        tokio::time::sleep_until(last).await;
    }
}

/// The terminal that controls this process, wherever its input and output are.
pub(super) fn terminal() -> io::Result<File> {
    File::open("/dev/tty")
}

/// Whether the terminal sends its signals to this process's whole group: the command has had them.
pub(super) fn has_terminal() -> bool {
    terminal().is_ok_and(|terminal| tcgetpgrp(terminal).is_ok_and(|group| group == getpgrp()))
}

fn of_command(status: ExitStatus) -> u8 {
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    code.or_else(|| status.signal().map(of_signal)).unwrap_or(1)
}

/// As a shell says it.
fn of_signal(signal: i32) -> u8 {
    u8::try_from(signal).map_or(1, |signal| signal.saturating_add(128))
}
