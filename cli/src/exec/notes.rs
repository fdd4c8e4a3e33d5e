//! What a person should know of the door while the command runs.

use std::io::{IsTerminal as _, stderr};

use crate::output;

/// Said at once, but at a terminal when the command has ended: a full-screen program has the screen until then.
pub(super) struct Notes {
    held: Option<Vec<String>>,
}

impl Notes {
    /// Begins.
    pub(super) fn begin() -> Self {
        Self { held: stderr().is_terminal().then(Vec::new) }
    }

    /// Says it, or keeps it; the log has it in any case.
    pub(super) fn say(&mut self, note: String) {
        tracing::warn!("{note}");
        match &mut self.held {
            Some(held) => held.push(note),
            None => output::note(&note),
        }
    }

    /// Says what was kept.
    pub(super) fn end(self) {
        self.held.into_iter().flatten().for_each(|note| output::note(&note));
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;
    use crate::exec::job::Job;
    use crate::exec::process::Process;
    use crate::exec::signals::Signals;

    #[tokio::test]
    async fn at_a_terminal_what_comes_while_the_command_runs_is_kept_until_it_has_ended() {
        let mut command = Command::new("cat");
        command.stdin(Stdio::piped());
        let mut process = Process::start(command, false).unwrap();
        // It ends when it has nothing to read any more, which is after the door was shut.
        let input = process.child.stdin.take();
        let shut = async {
            drop(input);
            "the store is full".to_owned()
        };
        let mut notes = Notes { held: Some(Vec::new()) };
        let mut signals = Signals::listen().unwrap();
        assert_eq!(signals.until_ended(process, Job::listen(), shut, &mut notes).await, 0);
        let held = notes.held.unwrap();
        assert_eq!(held, ["the door is shut: the store is full; the command goes on without it"]);
    }
}
