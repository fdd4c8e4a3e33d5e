//! Writes answers to standard output and everything else to standard error: the one file that writes.

mod json;
mod text;
mod workspace;

use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

use gitdoor_proto::RepositoryName;

use crate::answer::mirror::{Minted, MirrorToken};
use crate::answer::{Issued, Run, Shown};
use crate::credential::Host;
use crate::doctor::Examination;
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

    /// A token for a mirror.
    pub(crate) fn minted(self, minted: &Minted) -> Result<(), Failure> {
        match self {
            Self::Json => write(json::minted(minted).as_bytes()),
            Self::Text => write(format!("{}\n", minted.expose()).as_bytes()),
        }
    }

    /// The tokens for mirrors that were handed out.
    pub(crate) fn mirror_tokens(self, rows: &[MirrorToken]) -> Result<(), Failure> {
        match self {
            Self::Json => write(json::mirror_tokens(rows).as_bytes()),
            Self::Text => write(text::mirror_tokens(rows).as_bytes()),
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

/// A token for git, which asked for it.
pub(crate) fn credential(minted: &Minted) -> Result<(), Failure> {
    // Git hands it to helpers that keep credentials: these learn how long it is any good.
    let (token, expires_at) = (minted.expose(), minted.expires_at);
    write(format!("username=x-access-token\npassword={token}\npassword_expiry_utc={expires_at}\n").as_bytes())
}

/// Says that git asked for something that the token of a repository is not for.
pub(crate) fn not_for_this(host: &Host, repository: &RepositoryName) {
    say(&format!("gitdoor: no token for what git asks for: this one is for https://{host}/{repository} alone\n"));
}

/// Writes bytes to standard output as they are.
pub(crate) fn write(bytes: &[u8]) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(bytes).and_then(|()| stdout.flush()).map_err(Failure::Output)
}

/// What was found in a workspace.
pub(crate) fn examined(examination: &Examination, json: bool) -> Result<(), Failure> {
    let text = if json { workspace::json(examination) } else { workspace::text(examination) };
    write(text.as_bytes())
}

/// A run and its pushes, to be kept.
pub(crate) fn record(shown: &Shown) -> String {
    json::shown(shown)
}

/// Says on standard error what whoever asked should know beside the answer.
pub(crate) fn note(text: &str) {
    say(&text::note(text));
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
