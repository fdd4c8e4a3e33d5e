//! Why PostgreSQL did not do it, for the log: without the values of a row, which a server's details may quote.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::sync::Arc;

use deadpool_postgres::{HookError, PoolError, TimeoutType};
use tokio_postgres::error::SqlState;

use crate::store::StoreError;

/// Why PostgreSQL did not do it.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Failure {
    /// It cannot be reached, or does not let this program in.
    #[error("no connection to PostgreSQL")]
    Connect(#[source] Cause),
    /// It is not one that a store is kept in.
    #[error("this PostgreSQL cannot be used: {0}")]
    Unfit(Cow<'static, str>),
    /// It was silent for too long. Whether it did what it was asked is not known.
    #[error("PostgreSQL did not answer in time")]
    Late,
    /// A statement failed, or its connection.
    #[error("PostgreSQL failed")]
    Statement(#[source] Cause),
}

/// An error of the driver. It shows a server's code and message, and leaves its details out.
#[derive(Clone)]
pub struct Cause(Arc<tokio_postgres::Error>);

impl Failure {
    /// Whether the connection that it happened on is no good any more.
    pub(super) fn ends_connection(&self) -> bool {
        match self {
            Self::Connect(_) | Self::Unfit(_) | Self::Late => true,
            // A server that has become a standby, or was made read-only: the primary is another by now.
            Self::Statement(cause) => {
                cause.is_lost() || cause.0.code() == Some(&SqlState::READ_ONLY_SQL_TRANSACTION)
            }
        }
    }

    /// Whether the connection was lost before an answer.
    pub(super) fn is_lost(&self) -> bool {
        match self {
            Self::Statement(cause) => cause.is_lost(),
            Self::Connect(_) | Self::Unfit(_) | Self::Late => false,
        }
    }
}

impl Cause {
    fn is_lost(&self) -> bool {
        // A server that shuts down says so, and then closes.
        let ended = [SqlState::ADMIN_SHUTDOWN, SqlState::CRASH_SHUTDOWN, SqlState::IDLE_SESSION_TIMEOUT];
        self.0.is_closed() || self.0.code().is_some_and(|code| ended.contains(code)) || self.is_io()
    }

    fn is_io(&self) -> bool {
        self.0.source().is_some_and(<dyn Error>::is::<std::io::Error>)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_db_error() {
            Some(error) => write!(f, "{} {}", error.code().code(), error.message()),
            None => fmt::Display::fmt(&self.0, f),
        }
    }
}

impl fmt::Debug for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error for Cause {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self.0.as_db_error() {
            Some(_shown) => None,
            None => self.0.source(),
        }
    }
}

impl From<tokio_postgres::Error> for Cause {
    fn from(error: tokio_postgres::Error) -> Self {
        Self(Arc::new(error))
    }
}

impl From<tokio_postgres::Error> for StoreError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Postgres(Failure::Statement(error.into()))
    }
}

impl From<PoolError> for StoreError {
    fn from(error: PoolError) -> Self {
        match error {
            PoolError::Timeout(TimeoutType::Wait) => Self::Busy,
            PoolError::Timeout(TimeoutType::Create | TimeoutType::Recycle) => Self::Postgres(Failure::Late),
            PoolError::Backend(error) | PoolError::PostCreateHook(HookError::Backend(error)) => {
                Self::Postgres(Failure::Connect(error.into()))
            }
            PoolError::PostCreateHook(HookError::Message(words)) => Self::Postgres(Failure::Unfit(words)),
            PoolError::Closed | PoolError::NoRuntimeSpecified => Self::Closed,
        }
    }
}
