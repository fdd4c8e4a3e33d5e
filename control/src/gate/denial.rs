//! Failures of the forge and of the store, as denials: one place for each translation.

use std::error::Error;
use std::fmt::Write as _;
use std::time::Duration;

use gitdoor_proto::reason::printable;
use gitdoor_proto::{Denial, Reason, RepositoryName};

use crate::forge::{MintError, OwnToken};
use crate::store::StoreError;

/// The forge's own advice on a secondary rate limit is never less.
const RATE_LIMIT_AT_LEAST: Duration = Duration::from_secs(30);
/// When to ask again after a failure that names no time.
const SOON: Duration = Duration::from_secs(10);

/// Why there is no token, for a client that asked for a repository.
#[must_use]
pub fn forge_denial(error: &MintError, repository: Option<&RepositoryName>) -> Denial {
    let denial = |reason| Denial::new(reason, printable(&error.to_string()));
    match error {
        MintError::RepositoryUnknown => {
            let name = repository.map_or_else(|| "this repository".to_owned(), ToString::to_string);
            let words =
                format!("{name} is not a repository of this installation of the GitHub App; check its name");
            Denial::new(Reason::RepositoryUnknown, words)
        }
        MintError::NotInstalled | MintError::OwnToken(OwnToken::Repository) => denial(Reason::RepositoryUnknown),
        MintError::Suspended => denial(Reason::InstallationSuspended),
        MintError::PermissionMissing(_) => denial(Reason::PermissionMissing),
        MintError::RateLimited(time) => {
            denial(Reason::ForgeRateLimited).retry_after((*time).max(RATE_LIMIT_AT_LEAST))
        }
        MintError::Unavailable(time) => {
            denial(Reason::ForgeUnavailable).retry_after((*time).max(Duration::from_secs(1)))
        }
        MintError::Untrusted(_) | MintError::OwnToken(OwnToken::Narrow) => denial(Reason::TokenUntrusted),
        MintError::Clock | MintError::Key | MintError::OwnToken(OwnToken::Refused) => {
            denial(Reason::ForgeUnavailable).retry_after(SOON)
        }
    }
}

/// Why there is no read token. It is for the repositories of the run, so an unknown one is among these.
#[must_use]
pub(super) fn read_denial(error: &MintError) -> Denial {
    let denial = forge_denial(error, None);
    if *error != MintError::RepositoryUnknown {
        return denial;
    }
    let words = "not every repository that this run was registered to read is one of this installation of the GitHub \
                 App; the run's owner registers it with others";
    Denial { message: words.to_owned(), ..denial }
}

/// The id or the default branch of a repository cannot be read, or is another's.
#[must_use]
pub fn unreadable(repository: &RepositoryName, error: Option<&MintError>) -> Denial {
    let why = error.map_or_else(|| "the forge describes another one".to_owned(), ToString::to_string);
    let words = format!("the id and the default branch of {repository} cannot be read: {why}");
    let time = match error {
        Some(MintError::RateLimited(time) | MintError::Unavailable(time)) => (*time).max(Duration::from_secs(1)),
        Some(
            MintError::RepositoryUnknown
            | MintError::NotInstalled
            | MintError::Suspended
            | MintError::PermissionMissing(_)
            | MintError::Untrusted(_)
            | MintError::Clock
            | MintError::Key
            | MintError::OwnToken(_),
        )
        | None => SOON,
    };
    Denial::new(Reason::RepositoryUnreadable, printable(&words)).retry_after(time)
}

/// The store did not do it. Logged here, once, with its cause.
#[must_use]
#[expect(clippy::needless_pass_by_value, reason = "the end of the error: it fits map_err")]
pub fn store_denial(error: StoreError) -> Denial {
    let words = match &error {
        StoreError::Busy => {
            tracing::warn!("a question was not taken on: the store is busy");
            "the door's records are busy; try again in a moment"
        }
        StoreError::Closed
        | StoreError::RolledBack
        | StoreError::Unreadable(_)
        | StoreError::Sqlite(_)
        | StoreError::Postgres(_) => {
            tracing::error!(error = cause(&error), "the store failed");
            "the door cannot reach its records; try again in a moment"
        }
    };
    Denial::new(Reason::StoreUnavailable, words).retry_after(Duration::from_secs(1))
}

/// An error with its causes, in one line, for the log.
#[must_use]
pub fn cause(error: &dyn Error) -> String {
    let mut line = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        // Writing to a String cannot fail.
        let _ = write!(line, ": {cause}");
        source = cause.source();
    }
    printable(&line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forge::{Mismatch, Permission};

    #[test]
    fn a_busy_store_is_said_to_be_busy_and_asked_again() {
        let (busy, closed) = (store_denial(StoreError::Busy), store_denial(StoreError::Closed));
        assert_ne!(busy.message, closed.message);
        for denial in [busy, closed] {
            assert_eq!(
                (denial.reason, denial.retry_after),
                (Reason::StoreUnavailable, Some(Duration::from_secs(1)))
            );
        }
    }

    #[test]
    fn every_failure_of_the_forge_has_a_reason_and_a_time_where_waiting_helps() {
        let second = Duration::from_secs(1);
        let table = [
            (MintError::RepositoryUnknown, Reason::RepositoryUnknown, None),
            (MintError::NotInstalled, Reason::RepositoryUnknown, None),
            (MintError::Suspended, Reason::InstallationSuspended, None),
            (MintError::PermissionMissing(Permission::Workflows), Reason::PermissionMissing, None),
            (MintError::RateLimited(second), Reason::ForgeRateLimited, Some(30)),
            (MintError::RateLimited(second * 90), Reason::ForgeRateLimited, Some(90)),
            (MintError::Unavailable(second * 7), Reason::ForgeUnavailable, Some(7)),
            (MintError::Untrusted(Mismatch::Selection), Reason::TokenUntrusted, None),
            (MintError::Clock, Reason::ForgeUnavailable, Some(10)),
            (MintError::Key, Reason::ForgeUnavailable, Some(10)),
            (MintError::OwnToken(OwnToken::Repository), Reason::RepositoryUnknown, None),
            (MintError::OwnToken(OwnToken::Refused), Reason::ForgeUnavailable, Some(10)),
            (MintError::OwnToken(OwnToken::Narrow), Reason::TokenUntrusted, None),
        ];
        for (error, reason, seconds) in table {
            let denial = forge_denial(&error, None);
            assert_eq!(
                (denial.reason, denial.retry_after.map(|time| time.as_secs())),
                (reason, seconds),
                "{error}"
            );
        }
        let missing = forge_denial(&MintError::PermissionMissing(Permission::Workflows), None);
        assert!(missing.message.contains("workflows"));
    }
}
