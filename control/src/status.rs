//! The one place where an error becomes a gRPC status.
//!
//! `UNAVAILABLE` only where the same call again may help; `FAILED_PRECONDITION` for what must be put right first.

use gitdoor_proto::bearer::NoRandomness;
use gitdoor_proto::{Denial, RepositoryName, RunId};
use tonic::Status;

use crate::forge::MintError;
use crate::gate::{cause, forge_denial};
use crate::run::{Invalid, State};
use crate::store::StoreError;

/// Most characters of a name that are logged; a repository's longest is of 140.
const LONGEST_NAME: usize = 140;

/// Why a call of Runs or Tokens fails.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// A field is missing or broken.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// No such run.
    #[error("no run has the id {0}")]
    Unknown(RunId),
    /// The id is taken by a run that is used, adopted or ended, or was asked for otherwise.
    #[error(
        "a run with the id {0} exists, and its bearer was used, it was adopted, it has ended, or it was registered \
         with other parameters; RotateBearer gives a live run a new bearer"
    )]
    Exists(RunId),
    /// Only a live run can do that.
    #[error("the run {0} is {state}", state = .1.as_str())]
    NotLive(RunId, State),
    /// The forge does not confirm the repository that the run is to be bound to.
    #[error("the repository cannot be confirmed: {}", forge_denial(.0, None).message)]
    Unconfirmed(MintError),
    /// The forge gives no token for a repository.
    #[error("no token for {repository}: {}", forge_denial(.error, None).message)]
    NoToken {
        /// The repository, as it was asked for.
        repository: RepositoryName,
        /// Why.
        error: MintError,
    },
    /// Too many lists and shows are in work.
    #[error("control has as many lists and shows in work as it takes; ask again in a moment")]
    Reads,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// No randomness for a bearer.
    #[error(transparent)]
    Bearer(#[from] NoRandomness),
    /// No randomness for an id.
    #[error(transparent)]
    Id(#[from] crate::id::NoRandomness),
    /// The call's task ended without an answer.
    #[error("the call did not end")]
    Lost(#[from] tokio::task::JoinError),
}

impl From<Failure> for Status {
    fn from(failure: Failure) -> Self {
        let words = failure.to_string();
        match &failure {
            Failure::Invalid(_) => Self::invalid_argument(words),
            Failure::Unknown(_) => Self::not_found(words),
            Failure::Exists(_) => Self::already_exists(words),
            Failure::NotLive(..) => Self::failed_precondition(words),
            Failure::Unconfirmed(error) | Failure::NoToken { error, repository: _ } => match error {
                MintError::RateLimited(_) | MintError::Unavailable(_) => Self::unavailable(words),
                MintError::RepositoryUnknown
                | MintError::NotInstalled
                | MintError::Suspended
                | MintError::PermissionMissing(_)
                | MintError::Untrusted(_)
                | MintError::Clock
                | MintError::Key
                | MintError::OwnToken(_) => Self::failed_precondition(words),
            },
            Failure::Reads => Self::resource_exhausted(words),
            Failure::Store(error @ StoreError::Busy) => {
                tracing::warn!(error = cause(error), "a call was not taken on");
                Self::resource_exhausted(words)
            }
            Failure::Store(error) => {
                tracing::error!(error = cause(error), "the store failed");
                match error {
                    StoreError::Busy
                    | StoreError::Closed
                    | StoreError::RolledBack
                    | StoreError::Sqlite(_)
                    | StoreError::Postgres(_) => Self::unavailable(words),
                    StoreError::Unreadable(_) => Self::internal(words),
                }
            }
            Failure::Bearer(_) | Failure::Id(_) | Failure::Lost(_) => {
                tracing::error!(error = cause(&failure), "a call failed");
                Self::internal(words)
            }
        }
    }
}

/// A question that cannot be read.
#[must_use]
pub fn invalid(invalid: &Invalid) -> Status {
    Status::invalid_argument(invalid.to_string())
}

/// Whatever was sent as a name, escaped and short, for a log.
#[must_use]
pub fn shown(name: &str) -> String {
    name.chars().take(LONGEST_NAME).flat_map(char::escape_default).collect()
}

/// The words of a denial, for a log: its code.
#[must_use]
pub fn verdict<T>(answer: &Result<T, Denial>) -> &'static str {
    answer.as_ref().map_or_else(|denial| denial.reason.as_str(), |_| "permitted")
}

/// The name of a status, for a metric's label.
#[must_use]
pub fn name(answer: Result<(), &Status>) -> &'static str {
    use tonic::Code;
    match answer.map_or_else(Status::code, |()| Code::Ok) {
        Code::Ok => "ok",
        Code::Cancelled => "cancelled",
        Code::Unknown => "unknown",
        Code::InvalidArgument => "invalid_argument",
        Code::DeadlineExceeded => "deadline_exceeded",
        Code::NotFound => "not_found",
        Code::AlreadyExists => "already_exists",
        Code::PermissionDenied => "permission_denied",
        Code::ResourceExhausted => "resource_exhausted",
        Code::FailedPrecondition => "failed_precondition",
        Code::Aborted => "aborted",
        Code::OutOfRange => "out_of_range",
        Code::Unimplemented => "unimplemented",
        Code::Internal => "internal",
        Code::Unavailable => "unavailable",
        Code::DataLoss => "data_loss",
        Code::Unauthenticated => "unauthenticated",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tonic::Code;

    #[test]
    fn a_busy_store_exhausts_a_resource_and_one_that_is_gone_is_unavailable() {
        let status = Status::from(Failure::Store(StoreError::Busy));
        assert_eq!(status.code(), Code::ResourceExhausted);
        assert!(status.message().contains("try again"), "{}", status.message());
        assert_eq!(Status::from(Failure::Store(StoreError::Closed)).code(), Code::Unavailable);
    }
}
