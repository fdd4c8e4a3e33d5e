//! Rows as both databases hold them, to and from the domain. A row that does not read as what was written is an
//! error, never a default.

use std::time::Duration;

use gitdoor_proto::{BearerHash, Pattern, RepositoryName, RunId};
use serde::{Deserialize, Serialize};

use super::{LiveRuns, StoreError};
use crate::clock::{from_micros, to_micros};
use crate::fleet::ControlId;
use crate::mirror::{MirrorToken, MirrorTokenId};
use crate::push::{Outcome, Push, PushId, PushedRef, TicketHash};
use crate::run::{Binding, Identity, Options, Run, StoredBearer, Terms};

/// A column that does not hold what was written there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the column {0} cannot be read")]
pub struct Unreadable(&'static str);

/// A row whose fields are the columns of a table, by name and in order; read and written by either database.
macro_rules! row {
    ($(#[$doc:meta])* $row:ident { $first:ident: $first_type:ty, $($column:ident: $type:ty,)+ }) => {
        $(#[$doc])*
        pub(super) struct $row {
            $first: $first_type,
            $($column: $type,)+
        }

        impl $row {
            /// The columns, for a statement.
            pub(super) const COLUMNS: &str = concat!(stringify!($first), $(", ", stringify!($column)),+);

            pub(super) fn of_sqlite(row: &rusqlite::Row<'_>) -> Result<Self, StoreError> {
                let $first = row.get(stringify!($first))?;
                Ok(Self { $first, $($column: row.get(stringify!($column))?,)+ })
            }

            pub(super) fn of_postgres(row: &tokio_postgres::Row) -> Result<Self, StoreError> {
                let $first = row.try_get(stringify!($first))?;
                Ok(Self { $first, $($column: row.try_get(stringify!($column))?,)+ })
            }

            /// The values, in the order of the columns.
            pub(super) fn to_sqlite(&self) -> Vec<&dyn rusqlite::ToSql> {
                vec![&self.$first, $(&self.$column),+]
            }

            /// The values, in the order of the columns.
            pub(super) fn to_postgres(&self) -> Vec<&(dyn tokio_postgres::types::ToSql + Sync)> {
                vec![&self.$first, $(&self.$column),+]
            }
        }
    };
}

row! {
    /// A row of `runs`.
    RunRow {
        run_id: String,
        identity: String,
        asked_repository: Option<String>,
        budget: i64,
        options: String,
        bearer_hash: Vec<u8>,
        bearer_generation: i64,
        first_used_at: Option<i64>,
        registered_at: i64,
        adopted_at: Option<i64>,
        expires_at: i64,
        revoked_at: Option<i64>,
        repository: Option<String>,
        repository_id: Option<i64>,
        default_branch: Option<String>,
        default_branches: Option<String>,
        bound_at: Option<i64>,
    }
}

row! {
    /// A row of `pushes`.
    PushRow {
        push_id: Vec<u8>,
        run_id: String,
        request_id: String,
        repository: String,
        ticket_hash: Option<Vec<u8>>,
        outcome: String,
        request_bytes: i64,
        opened_at: i64,
        closed_at: Option<i64>,
        control: Option<Vec<u8>>,
    }
}

row! {
    /// A row of `mirror_tokens`.
    MirrorTokenRow {
        mirror_token_id: Vec<u8>,
        repository: String,
        repository_id: i64,
        token_id: String,
        asked_by: Option<String>,
        minted_at: i64,
        handed_out_at: i64,
        expires_at: i64,
    }
}

impl RunRow {
    /// The columns but the first, which is the key, each set to the parameter that has its place.
    pub(super) fn assignments(parameter: char) -> String {
        let columns = Self::COLUMNS.split(", ").zip(1..).skip(1);
        columns.map(|(column, place)| format!("{column} = {parameter}{place}")).collect::<Vec<_>>().join(", ")
    }

    /// A run, to be written.
    pub(super) fn new(run: &Run) -> Result<Self, StoreError> {
        let Run { id, terms, bearer, first_used_at, registered_at, adopted_at, expires_at, revoked_at, binding } =
            run;
        let binding = binding.as_ref();
        let branches = binding.map(|binding| branches_to_text(&binding.default_branches)).transpose()?;
        Ok(Self {
            run_id: id.as_str().to_owned(),
            identity: terms.identity.as_str().to_owned(),
            asked_repository: terms.repository.as_ref().map(ToString::to_string),
            budget: i64::try_from(terms.budget.as_micros()).unwrap_or(i64::MAX),
            options: options_to_text(&terms.options)?,
            bearer_hash: bearer.hash.as_bytes().to_vec(),
            bearer_generation: bearer.generation.cast_signed(),
            first_used_at: first_used_at.map(to_micros),
            registered_at: to_micros(*registered_at),
            adopted_at: adopted_at.map(to_micros),
            expires_at: to_micros(*expires_at),
            revoked_at: revoked_at.map(to_micros),
            repository: binding.map(|binding| binding.repository.to_string()),
            repository_id: binding.map(|binding| binding.repository_id.cast_signed()),
            default_branch: binding.map(|binding| binding.default_branch.clone()),
            default_branches: branches,
            bound_at: binding.map(|binding| to_micros(binding.bound_at)),
        })
    }

    /// The run that was written.
    pub(super) fn read(self) -> Result<Run, StoreError> {
        let asked = self.asked_repository.as_deref();
        let terms = Terms {
            identity: identity(&self.identity).ok_or(unreadable("identity"))?,
            repository: asked.map(|text| repository(text, "asked_repository")).transpose()?,
            budget: Duration::from_micros(unsigned(self.budget, "budget")?),
            options: options_from_text(&self.options).ok_or(unreadable("options"))?,
        };
        let hash = BearerHash::from_bytes(bytes(&self.bearer_hash, "bearer_hash")?);
        Ok(Run {
            id: run_id(&self.run_id)?,
            terms,
            bearer: StoredBearer { hash, generation: unsigned(self.bearer_generation, "bearer_generation")? },
            first_used_at: self.first_used_at.map(from_micros),
            registered_at: from_micros(self.registered_at),
            adopted_at: self.adopted_at.map(from_micros),
            expires_at: from_micros(self.expires_at),
            revoked_at: self.revoked_at.map(from_micros),
            binding: self.repository.as_deref().map(|name| self.binding(name)).transpose()?,
        })
    }

    fn binding(&self, name: &str) -> Result<Binding, StoreError> {
        let branches = self.default_branches.as_deref().ok_or(unreadable("default_branches"))?;
        Ok(Binding {
            repository: repository(name, "repository")?,
            repository_id: self.repository_id.ok_or(unreadable("repository_id"))?.cast_unsigned(),
            default_branch: self.default_branch.clone().ok_or(unreadable("default_branch"))?,
            default_branches: serde_json::from_str(branches).map_err(|_json| unreadable("default_branches"))?,
            bound_at: from_micros(self.bound_at.ok_or(unreadable("bound_at"))?),
        })
    }
}

impl PushRow {
    /// A push, to be written; its refs are rows of their own.
    pub(super) fn new(push: &Push) -> Self {
        Self {
            push_id: push.id.as_bytes().to_vec(),
            run_id: push.run.as_str().to_owned(),
            request_id: push.request_id.clone(),
            repository: push.repository.to_string(),
            ticket_hash: push.ticket.as_ref().map(|ticket| ticket.as_bytes().to_vec()),
            outcome: push.outcome.as_str().to_owned(),
            request_bytes: push.request_bytes.cast_signed(),
            opened_at: to_micros(push.opened_at),
            closed_at: push.closed_at.map(to_micros),
            control: push.control.as_ref().map(|control| control.as_bytes().to_vec()),
        }
    }

    /// The push that was written, with its refs.
    pub(super) fn read(self, refs: Vec<PushedRef>) -> Result<Push, StoreError> {
        let ticket = self.ticket_hash.as_deref().map(|hash| bytes(hash, "ticket_hash")).transpose()?;
        let control = self.control.as_deref().map(|id| bytes(id, "control")).transpose()?;
        let outcome = Outcome::ALL.into_iter().find(|outcome| outcome.as_str() == self.outcome);
        Ok(Push {
            id: push_id(&self.push_id)?,
            run: run_id(&self.run_id)?,
            request_id: self.request_id,
            repository: repository(&self.repository, "repository")?,
            refs,
            ticket: ticket.map(TicketHash::from_bytes),
            control: control.map(ControlId::from_bytes),
            outcome: outcome.ok_or(unreadable("outcome"))?,
            request_bytes: unsigned(self.request_bytes, "request_bytes")?,
            opened_at: from_micros(self.opened_at),
            closed_at: self.closed_at.map(from_micros),
        })
    }
}

impl MirrorTokenRow {
    /// A row, to be written.
    pub(super) fn new(row: &MirrorToken) -> Self {
        Self {
            mirror_token_id: row.id.as_bytes().to_vec(),
            repository: row.repository.to_string(),
            repository_id: row.repository_id.cast_signed(),
            token_id: row.token_id.clone(),
            asked_by: row.asked_by.clone(),
            minted_at: to_micros(row.minted_at),
            handed_out_at: to_micros(row.handed_out_at),
            expires_at: to_micros(row.expires_at),
        }
    }

    /// What was written.
    pub(super) fn read(self) -> Result<MirrorToken, StoreError> {
        Ok(MirrorToken {
            id: MirrorTokenId::from_bytes(bytes(&self.mirror_token_id, "mirror_token_id")?),
            repository: repository(&self.repository, "repository")?,
            repository_id: self.repository_id.cast_unsigned(),
            token_id: self.token_id,
            asked_by: self.asked_by,
            minted_at: from_micros(self.minted_at),
            handed_out_at: from_micros(self.handed_out_at),
            expires_at: from_micros(self.expires_at),
        })
    }
}

/// The id of a push.
pub(super) fn push_id(column: &[u8]) -> Result<PushId, StoreError> {
    bytes(column, "push_id").map(PushId::from_bytes)
}

/// Branches to a JSON array.
fn branches_to_text(branches: &[String]) -> Result<String, StoreError> {
    serde_json::to_string(branches).map_err(|_json| unreadable("default_branches"))
}

/// Options as they are stored.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredOptions {
    branches: Vec<String>,
    max_refs: u32,
    workflows: bool,
    read_repositories: Vec<String>,
    api_burst: u32,
    api_rate: f64,
}

fn options_to_text(options: &Options) -> Result<String, StoreError> {
    let stored = StoredOptions {
        branches: options.branches.iter().map(Pattern::to_string).collect(),
        max_refs: options.max_refs.map_or(0, std::num::NonZeroU32::get),
        workflows: options.workflows,
        read_repositories: options.read_repositories.iter().map(RepositoryName::to_string).collect(),
        api_burst: options.api_burst.get(),
        api_rate: options.api_rate,
    };
    serde_json::to_string(&stored).map_err(|_json| unreadable("options"))
}

fn options_from_text(text: &str) -> Option<Options> {
    let stored: StoredOptions = serde_json::from_str(text).ok()?;
    Some(Options {
        branches: stored.branches.iter().map(|text| Pattern::parse(text).ok()).collect::<Option<_>>()?,
        max_refs: std::num::NonZeroU32::new(stored.max_refs),
        workflows: stored.workflows,
        read_repositories: stored
            .read_repositories
            .iter()
            .map(|text| RepositoryName::parse(text).ok())
            .collect::<Option<_>>()?,
        api_burst: std::num::NonZeroU32::new(stored.api_burst)?,
        api_rate: stored.api_rate,
    })
}

fn identity(text: &str) -> Option<Identity> {
    [Identity::None, Identity::Read, Identity::Write].into_iter().find(|identity| identity.as_str() == text)
}

/// Counts the runs that live at a time.
pub(super) const LIVE_RUNS: &str = "SELECT identity, repository IS NOT NULL AS bound, count(*) AS count FROM runs \
                                    WHERE expires_at > $1 AND revoked_at IS NULL GROUP BY identity, bound";

/// A row of [`LIVE_RUNS`].
pub(super) fn live_runs(text: &str, bound: bool, count: i64) -> Result<LiveRuns, StoreError> {
    let identity = identity(text).ok_or(unreadable("identity"))?;
    Ok(LiveRuns { identity, bound, count: u32::try_from(count).unwrap_or(u32::MAX) })
}

/// The id of a run.
pub(super) fn run_id(text: &str) -> Result<RunId, StoreError> {
    RunId::parse(text).map_err(|_shape| unreadable("run_id"))
}

fn repository(text: &str, column: &'static str) -> Result<RepositoryName, StoreError> {
    RepositoryName::parse(text).map_err(|_shape| unreadable(column))
}

fn bytes<const N: usize>(value: &[u8], column: &'static str) -> Result<[u8; N], StoreError> {
    value.try_into().map_err(|_length| unreadable(column))
}

fn unsigned(value: i64, column: &'static str) -> Result<u64, StoreError> {
    u64::try_from(value).map_err(|_negative| unreadable(column))
}

fn unreadable(column: &'static str) -> StoreError {
    StoreError::Unreadable(Unreadable(column))
}
