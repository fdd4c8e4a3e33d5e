//! The terminal that this program and its command share: whose it is, and how it was.

use std::fs::File;
use std::io::{self, IsTerminal as _, stdin, stdout};
use std::process::Command;

use rustix::process::{Pid, getpgrp, test_kill_process_group};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr, tcsetpgrp};

use crate::fence;

/// The terminal that controls this process, wherever its input and output are.
fn open() -> io::Result<File> {
    File::open("/dev/tty")
}

/// The group that is in its foreground: what is typed is for it, and so are the signals of what is typed.
pub(super) fn foreground() -> Option<Pid> {
    tcgetpgrp(open().ok()?).ok()
}

/// Whether that is this process's own: a command of the same group has had those signals, too.
pub(super) fn is_ours() -> bool {
    foreground() == Some(getpgrp())
}

/// Gives a group the terminal, if it is ours to give. Who is in its background would be stopped for trying. False: it is
/// not given.
pub(super) fn hand(group: Pid) -> bool {
    if !is_ours() {
        return false;
    }
    let handed = open().and_then(|terminal| Ok(tcsetpgrp(terminal, group)?));
    if let Err(error) = &handed {
        tracing::debug!(%error, "the terminal was not given to the command");
    }
    handed.is_ok()
}

/// How the terminal was.
pub(super) struct Before {
    was_ours: bool,
    settings: Option<Termios>,
}

impl Before {
    /// Looks how it is. Its settings are the shell's own while that reads a line, as it does with this in the background,
    /// and another's of the same pipeline, such as a pager's.
    pub(super) fn look() -> Self {
        let was_ours = is_ours();
        let is_alone = was_ours && stdin().is_terminal() && stdout().is_terminal();
        let settings = open().ok().filter(|_| is_alone).and_then(|terminal| tcgetattr(terminal).ok());
        Self { was_ours, settings }
    }

    /// Puts back what a command left that was killed: a terminal that is nobody's, or that does not show what is typed.
    pub(super) fn restore(self) {
        if self.was_ours && is_nobodys() {
            take();
        }
        let Some(settings) = self.settings.filter(|_| is_ours()) else { return };
        // Now, and not when all has been shown: a terminal may be halted.
        if let Err(error) = open().and_then(|tty| Ok(tcsetattr(tty, OptionalActions::Now, &settings)?)) {
            tracing::debug!(%error, "the terminal's settings were not restored");
        }
    }
}

/// A shell takes the terminal for what it runs. Inside of a fence it does not know whom to give it back to.
fn is_nobodys() -> bool {
    foreground().is_some_and(|group| test_kill_process_group(group).is_err())
}

/// Takes the terminal back. Who is in its background is stopped for trying, unless the signal is ignored: a shell can have
/// it so, and this program becomes that.
fn take() {
    let Ok(program) = std::env::current_exe() else { return };
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", "trap '' TTOU; exec \"$@\"", "sh"]).arg(program).arg(fence::FOREGROUND);
    if let Err(error) = shell.status() {
        tracing::debug!(%error, "the terminal was not taken back");
    }
}
