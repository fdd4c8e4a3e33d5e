//! Rows to and from the domain. A row that does not read as what was written is an error, never a default.

use gitdoor_proto::{BearerHash, Pattern, RepositoryName, RunId};
use rusqlite::Row;
use serde::{Deserialize, Serialize};

use crate::clock::from_micros;
use crate::push::{Command, Outcome, Push, PushId, PushedRef, TicketHash};
use crate::run::{Binding, Identity, Options, Run, StoredBearer, Terms};
use crate::store::StoreError;

/// A column that does not hold what was written there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the column {0} cannot be read")]
pub struct Unreadable(&'static str);

/// The columns of a run, in the order in which [`run`] reads them by name.
pub(super) const RUN: &str = "run_id, identity, asked_repository, budget, options, bearer_hash, bearer_generation, \
     first_used_at, registered_at, expires_at, revoked_at, repository, repository_id, default_branch, \
     default_branches, bound_at";

/// The columns of a push.
pub(super) const PUSH: &str =
    "push_id, run_id, request_id, repository, ticket_hash, outcome, request_bytes, opened_at, closed_at";

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

/// Options to JSON.
pub(super) fn options_to_text(options: &Options) -> Result<String, StoreError> {
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

/// Branches to a JSON array.
pub(super) fn branches_to_text(branches: &[String]) -> Result<String, StoreError> {
    serde_json::to_string(branches).map_err(|_json| unreadable("default_branches"))
}

/// A run.
pub(super) fn run(row: &Row<'_>) -> Result<Run, StoreError> {
    let identity: String = row.get("identity")?;
    let asked: Option<String> = row.get("asked_repository")?;
    let options: String = row.get("options")?;
    let terms = Terms {
        identity: identity_from(&identity).ok_or(unreadable("identity"))?,
        repository: asked.map(|text| repository(&text, "asked_repository")).transpose()?,
        budget: std::time::Duration::from_micros(unsigned(row, "budget")?),
        options: options_from_text(&options).ok_or(unreadable("options"))?,
    };
    let hash = BearerHash::from_bytes(row.get("bearer_hash")?);
    Ok(Run {
        id: run_id(row)?,
        terms,
        bearer: StoredBearer { hash, generation: unsigned(row, "bearer_generation")? },
        first_used_at: time(row, "first_used_at")?,
        registered_at: from_micros(row.get("registered_at")?),
        expires_at: from_micros(row.get("expires_at")?),
        revoked_at: time(row, "revoked_at")?,
        binding: binding(row)?,
    })
}

fn identity_from(text: &str) -> Option<Identity> {
    [Identity::None, Identity::Read, Identity::Write].into_iter().find(|identity| identity.as_str() == text)
}

fn binding(row: &Row<'_>) -> Result<Option<Binding>, StoreError> {
    let Some(name) = row.get::<_, Option<String>>("repository")? else {
        return Ok(None);
    };
    let branches: String = row.get("default_branches")?;
    Ok(Some(Binding {
        repository: repository(&name, "repository")?,
        repository_id: row.get::<_, i64>("repository_id")?.cast_unsigned(),
        default_branch: row.get("default_branch")?,
        default_branches: serde_json::from_str(&branches).map_err(|_json| unreadable("default_branches"))?,
        bound_at: from_micros(row.get("bound_at")?),
    }))
}

/// A push, with its refs.
pub(super) fn push(row: &Row<'_>, refs: Vec<PushedRef>) -> Result<Push, StoreError> {
    let name: String = row.get("repository")?;
    let outcome: String = row.get("outcome")?;
    let ticket: Option<[u8; 32]> = row.get("ticket_hash")?;
    Ok(Push {
        id: push_id(row)?,
        run: run_id(row)?,
        request_id: row.get("request_id")?,
        repository: repository(&name, "repository")?,
        refs,
        ticket: ticket.map(TicketHash::from_bytes),
        outcome: Outcome::ALL.into_iter().find(|o| o.as_str() == outcome).ok_or(unreadable("outcome"))?,
        request_bytes: unsigned(row, "request_bytes")?,
        opened_at: from_micros(row.get("opened_at")?),
        closed_at: time(row, "closed_at")?,
    })
}

/// The id of a push.
pub(super) fn push_id(row: &Row<'_>) -> Result<PushId, StoreError> {
    Ok(PushId::from_bytes(row.get("push_id")?))
}

/// A command of a push.
pub(super) fn pushed_ref(row: &Row<'_>) -> Result<PushedRef, StoreError> {
    let command =
        Command { old_oid: row.get("old_oid")?, new_oid: row.get("new_oid")?, ref_name: row.get("ref_name")? };
    Ok(PushedRef { command, refusal: row.get("refusal")? })
}

fn run_id(row: &Row<'_>) -> Result<RunId, StoreError> {
    let text: String = row.get("run_id")?;
    RunId::parse(&text).map_err(|_shape| unreadable("run_id"))
}

fn repository(text: &str, column: &'static str) -> Result<RepositoryName, StoreError> {
    RepositoryName::parse(text).map_err(|_shape| unreadable(column))
}

fn time(row: &Row<'_>, column: &'static str) -> Result<Option<std::time::SystemTime>, StoreError> {
    Ok(row.get::<_, Option<i64>>(column)?.map(from_micros))
}

fn unsigned(row: &Row<'_>, column: &'static str) -> Result<u64, StoreError> {
    u64::try_from(row.get::<_, i64>(column)?).map_err(|_negative| unreadable(column))
}

fn unreadable(column: &'static str) -> StoreError {
    StoreError::Unreadable(Unreadable(column))
}
