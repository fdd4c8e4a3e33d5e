//! What a command may leave to whoever is here after it: a terminal as it should not be, and a file by which git would
//! obey the command's settings.

use std::path::PathBuf;

use super::isolation::Isolation;
use super::terminal::Before;
use crate::output;

/// How it was before the command was started.
pub(super) struct Left {
    terminal: Before,
    /// The file that has no place in a repository itself: git has it for worktrees.
    leads: Option<PathBuf>,
}

impl Left {
    /// Looks how it is.
    pub(super) fn before(isolation: &Isolation) -> Self {
        let leads = isolation.repository().map(|folder| folder.join("commondir"));
        Self { terminal: Before::look(), leads }
    }

    /// Looks again, now that the command has ended.
    pub(super) fn mend(self) {
        self.terminal.restore();
        if let Some(file) = self.leads.filter(|file| file.symlink_metadata().is_ok()) {
            output::note(&format!(
                "the command, or one before it, has left {}, by which your git obeys settings elsewhere: remove it before you run git here",
                file.display()
            ));
        }
    }
}
