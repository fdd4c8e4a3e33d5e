//! Opening the store: one connection proves that the server will do, and brings the schema up to date.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use deadpool_postgres::Client;
use tokio::time::timeout;
use tokio_postgres::SimpleQueryMessage;

use super::failure::{Cause, Failure};
use crate::store::StoreError;
use crate::store::migration::{self, Migration};

/// The schema's version is the number of the last that was applied.
pub(super) const MIGRATIONS: &[Migration] = &[
    Migration { number: 1, sql: include_str!("../../../migrations/postgres/0001_runs_and_pushes.sql") },
    Migration { number: 2, sql: include_str!("../../../migrations/postgres/0002_adopted_at.sql") },
    Migration { number: 3, sql: include_str!("../../../migrations/postgres/0003_control.sql") },
    Migration { number: 4, sql: include_str!("../../../migrations/postgres/0004_mirror_tokens.sql") },
];
/// Longest time for the migrations, the wait for another control's among it.
const MIGRATION: Duration = Duration::from_mins(5);
/// Names the lock under which a schema is changed: the program's name, as a number.
const LOCK: i64 = 0x0067_6974_646f_6f72;

/// Why a store was not opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Every process of the machine sees a command line.
    #[error("a password in the URL is refused: it comes from --store-password-file")]
    Password,
    /// Not a URL.
    #[error("no URL of PostgreSQL: it is postgres://[USER@]HOST[:PORT]/DATABASE[?OPTION=VALUE&...]")]
    Url {
        /// What is wrong.
        source: tokio_postgres::Error,
    },
    /// No server.
    #[error("the URL names no server: it is postgres://HOST/DATABASE, or postgres:///DATABASE?host=/FOLDER")]
    NoHost,
    /// A way to speak that proves nothing.
    #[error("sslmode is verify-full, or disable on loopback addresses and Unix sockets")]
    SslMode,
    /// Plain text would leave the machine.
    #[error("sslmode=disable is for loopback addresses and Unix sockets only")]
    PlainText,
    /// No password.
    #[error("{}: cannot be read", path.display())]
    PasswordFile {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// An empty password.
    #[error("{}: holds no password", path.display())]
    NoPassword {
        /// The file.
        path: PathBuf,
    },
    /// No authorities.
    #[error("{}: cannot be read", path.display())]
    CaFile {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Not certificates.
    #[error("{}: holds no certificates in PEM", path.display())]
    CaInvalid {
        /// The file.
        path: PathBuf,
    },
    /// Nobody to trust.
    #[error("the system has no certificate authorities; --store-ca names a file of them")]
    CaMissing,
    /// TLS cannot be spoken.
    #[error("TLS cannot be set up")]
    Tls {
        /// Why.
        source: rustls::Error,
    },
    /// A pool that cannot be.
    #[error("connections cannot be pooled")]
    Pool,
    /// The server cannot be reached, or will not do.
    #[error("{0}")]
    Server(#[source] Failure),
    /// The store could not be asked.
    #[error("PostgreSQL was not asked")]
    Store(#[source] StoreError),
    /// The schema was not brought up to date; it is as it was.
    #[error("the schema was not migrated, and is as it was")]
    Migrate(#[source] Cause),
    /// Another control did not end its migration, or the server is slow.
    #[error("the schema was not migrated within five minutes, and is as it was")]
    MigrateLate,
    /// Written by a later version.
    #[error("its schema {found} is newer than this program's {known}")]
    Newer {
        /// The version in the database.
        found: i64,
        /// The version of this program.
        known: i64,
    },
}

impl OpenError {
    /// The flag that it is about.
    #[must_use]
    pub fn flag(&self) -> &'static str {
        match self {
            Self::PasswordFile { .. } | Self::NoPassword { .. } => "--store-password-file",
            Self::CaFile { .. } | Self::CaInvalid { .. } | Self::CaMissing => "--store-ca",
            Self::Password
            | Self::Url { .. }
            | Self::NoHost
            | Self::SslMode
            | Self::PlainText
            | Self::Tls { .. }
            | Self::Pool
            | Self::Server(_)
            | Self::Store(_)
            | Self::Migrate(_)
            | Self::MigrateLate
            | Self::Newer { .. } => "--store",
        }
    }
}

impl From<StoreError> for OpenError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Postgres(failure) => Self::Server(failure),
            StoreError::Busy
            | StoreError::Closed
            | StoreError::RolledBack
            | StoreError::Unreadable(_)
            | StoreError::Sqlite(_) => Self::Store(error),
        }
    }
}

/// Sets a new connection up, on which no operation takes longer, and says why its server will not do.
pub(super) async fn prepare(
    client: &tokio_postgres::Client,
    deadline: Duration,
) -> Result<Option<&'static str>, tokio_postgres::Error> {
    let milliseconds = deadline.as_millis();
    // What the operator has made stronger than "on" stays so.
    let sql = format!(
        "SET default_transaction_isolation = 'read committed'; SET statement_timeout = {milliseconds}; \
         SET lock_timeout = {milliseconds}; SET idle_in_transaction_session_timeout = {milliseconds}; \
         SELECT set_config('synchronous_commit', CASE current_setting('synchronous_commit') \
         WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, false); \
         SELECT pg_is_in_recovery()::text, current_setting('transaction_read_only'), \
         current_setting('server_encoding')"
    );
    let messages = client.simple_query(&sql).await?;
    let row = |message: &SimpleQueryMessage| match message {
        SimpleQueryMessage::Row(row) => Some([0, 1, 2].map(|column| row.get(column).map(str::to_owned))),
        // An enum of the driver that has more variants some day.
        SimpleQueryMessage::CommandComplete(_) | SimpleQueryMessage::RowDescription(_) | _ => None,
    };
    let last = messages.iter().rev().find_map(row);
    let last = last.as_ref().map(|columns| columns.each_ref().map(Option::as_deref));
    Ok(match last {
        Some([Some("false"), Some("off"), Some("UTF8")]) => None,
        Some([Some("false"), Some("off"), _]) => Some("the database's encoding is not UTF8"),
        Some([Some("false"), _, _]) => Some("it is read-only"),
        Some(_) => Some("it is a standby, and not the primary"),
        None => Some("it does not say whether it is the primary"),
    })
}

/// Brings the schema up to date: all of it or nothing, one control at a time.
pub(super) async fn migrate(client: &mut Client) -> Result<(), OpenError> {
    timeout(MIGRATION, migrate_to(client, MIGRATIONS)).await.map_err(|_late| OpenError::MigrateLate)?
}

pub(super) async fn migrate_to(client: &mut Client, migrations: &[Migration]) -> Result<(), OpenError> {
    let failed = |error: tokio_postgres::Error| OpenError::Migrate(error.into());
    let transaction = client.transaction().await.map_err(failed)?;
    transaction
        .batch_execute(&format!(
            "SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0; SELECT pg_advisory_xact_lock({LOCK})"
        ))
        .await
        .map_err(failed)?;
    // Asked for first: who only uses a schema need not have the right to create one.
    let exists = "SELECT to_regclass('gitdoor_schema') IS NOT NULL";
    if !transaction.query_one(exists, &[]).await.and_then(|row| row.try_get(0)).map_err(failed)? {
        let create = "CREATE TABLE gitdoor_schema (version bigint NOT NULL PRIMARY KEY)";
        transaction.batch_execute(create).await.map_err(failed)?;
    }
    let version = "SELECT coalesce(max(version), 0) FROM gitdoor_schema";
    let found: i64 = transaction.query_one(version, &[]).await.and_then(|row| row.try_get(0)).map_err(failed)?;
    let newer = OpenError::Newer { found, known: migration::last(migrations) };
    for Migration { number, sql } in migration::missing(migrations, found).ok_or(newer)? {
        let note = format!("{sql}; INSERT INTO gitdoor_schema VALUES ({number})");
        transaction.batch_execute(&note).await.map_err(failed)?;
    }
    transaction.commit().await.map_err(failed)
}
