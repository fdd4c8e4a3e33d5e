//! Writes answers to standard output and everything else to standard error: the one file that writes.

mod json;
mod text;

use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

use crate::answer::{Issued, Run, Shown};
use crate::failure::Failure;

/// How answers are shown.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Output {
    /// Aligned text, for people.
    Text,
    /// One JSON object a command, for programs.
    Json,
}

impl Output {
    /// A run that was registered, with its bearer.
    pub(crate) fn registered(self, issued: &Issued) -> Result<(), Failure> {
        self.issued(issued, "registered")
    }

    /// A run whose bearer was rotated, with the new one.
    pub(crate) fn rotated(self, issued: &Issued) -> Result<(), Failure> {
        self.issued(issued, "has a new bearer, the old one is dead")
    }

    fn issued(self, issued: &Issued, what: &str) -> Result<(), Failure> {
        match self {
            Self::Json => write(json::issued(issued).as_bytes()),
            Self::Text => {
                write(format!("{}\n", issued.bearer.expose()).as_bytes())?;
                say(&text::issued(&issued.run, what));
                Ok(())
            }
        }
    }

    /// A run that was adopted.
    pub(crate) fn adopted(self, run: &Run) -> Result<(), Failure> {
        match self {
            Self::Json => write(json::run(run).as_bytes()),
            Self::Text => write(text::adopted(run).as_bytes()),
        }
    }

    /// A run that was revoked.
    pub(crate) fn revoked(self, run: &Run) -> Result<(), Failure> {
        match self {
            Self::Json => write(json::run(run).as_bytes()),
            Self::Text => write(text::revoked(run).as_bytes()),
        }
    }

    /// A run with its pushes.
    pub(crate) fn shown(self, shown: &Shown) -> Result<(), Failure> {
        match self {
            Self::Json => write(json::shown(shown).as_bytes()),
            Self::Text => write(text::shown(shown).as_bytes()),
        }
    }

    /// All runs.
    pub(crate) fn listed(self, runs: &[Run]) -> Result<(), Failure> {
        match self {
            Self::Json => write(json::listed(runs).as_bytes()),
            Self::Text => write(text::listed(runs).as_bytes()),
        }
    }
}

/// Writes bytes to standard output as they are.
pub(crate) fn write(bytes: &[u8]) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes).and_then(|()| stdout.flush()).map_err(Failure::Output)
}

/// Says why a command failed and what to do, and gives its exit code.
pub(crate) fn failure(failure: &Failure) -> ExitCode {
    // Whoever closed the pipe has read what they wanted.
    let closed = matches!(failure, Failure::Output(error) if error.kind() == ErrorKind::BrokenPipe);
    if !closed {
        say(&text::failure(failure));
    }
    ExitCode::from(failure.exit_code())
}

/// Prints clap's own words: help and version to standard output, the rest to standard error.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    match error.print() {
        Ok(()) => ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2)),
        Err(_closed) => ExitCode::from(1),
    }
}

/// To standard error; when that is closed there is nobody to tell.
fn say(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}
