//! What a command may leave to whoever is here after it: a terminal that is nobody's, and a file by which git would obey
//! the command's settings.

use std::path::PathBuf;
use std::process::Command;

use rustix::process::test_kill_process_group;
use rustix::termios::tcgetpgrp;

use super::isolation::Isolation;
use super::signals::{has_terminal, terminal};
use crate::{fence, output};

/// How it was before the command was started.
pub(super) struct Left {
    had_terminal: bool,
    /// The file that has no place in a repository itself: git has it for worktrees.
    leads: Option<PathBuf>,
}

impl Left {
    /// Looks how it is.
    pub(super) fn before(isolation: &Isolation) -> Self {
        let leads = isolation.repository().map(|folder| folder.join("commondir"));
        Self { had_terminal: has_terminal(), leads }
    }

    /// Looks again, now that the command has ended.
    pub(super) fn mend(self) {
        if self.had_terminal && is_nobodys() {
            take();
        }
        if let Some(file) = self.leads.filter(|file| file.symlink_metadata().is_ok()) {
            output::note(&format!(
                "the command, or one before it, has left {}, by which your git obeys settings elsewhere: remove it before you run git here",
                file.display()
            ));
        }
    }
}

/// A shell takes the terminal for what it runs. Inside of a fence it does not know whom to give it back to.
fn is_nobodys() -> bool {
    let group = terminal().and_then(|terminal| Ok(tcgetpgrp(terminal)?));
    group.is_ok_and(|group| test_kill_process_group(group).is_err())
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
