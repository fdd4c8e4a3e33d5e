//! The statements of each operation. Those that write run inside a savepoint of the writer's transaction.

use std::time::SystemTime;

use gitdoor_proto::{BearerHash, RunId};
use rusqlite::{Connection, ToSql, named_params, params};

use super::row;
use crate::clock::to_micros;
use crate::push::{Closing, Outcome, Push, PushId, PushedRef};
use crate::run::{Binding, Run, State};
use crate::store::{Closed, Opened, Registered, Rotated, StoreError};

type Result<T> = std::result::Result<T, StoreError>;

pub(super) fn run(db: &Connection, id: &RunId) -> Result<Option<Run>> {
    let mut select = db.prepare_cached(&format!("SELECT {} FROM runs WHERE run_id = ?1", row::RUN))?;
    let mut rows = select.query([id.as_str()])?;
    rows.next()?.map(row::run).transpose()
}

pub(super) fn runs(db: &Connection, after: Option<&RunId>, limit: u32) -> Result<Vec<Run>> {
    let sql = format!("SELECT {} FROM runs WHERE run_id > ?1 ORDER BY run_id LIMIT ?2", row::RUN);
    // Every run id is greater than the empty text.
    let after = after.map_or("", RunId::as_str);
    all(db, &sql, params![after, limit], row::run)
}

pub(super) fn register(db: &Connection, new: &Run) -> Result<Registered> {
    let Some(old) = run(db, &new.id)? else {
        insert_run(db, new)?;
        return Ok(Registered::Created(new.clone()));
    };
    let unused = old.first_used_at.is_none() && old.state(new.registered_at) == State::Live;
    if !unused || old.terms != new.terms {
        return Ok(Registered::Exists(old));
    }
    replace_bearer(db, &old.id, new.bearer.hash)?;
    Ok(Registered::Replaced(standing(db, &old.id)?))
}

fn insert_run(db: &Connection, run: &Run) -> Result<()> {
    let options = row::options_to_text(&run.terms.options)?;
    let budget = i64::try_from(run.terms.budget.as_micros()).unwrap_or(i64::MAX);
    let sql = "INSERT INTO runs (run_id, identity, asked_repository, budget, options, bearer_hash, \
               bearer_generation, registered_at, expires_at) \
               VALUES (:id, :identity, :asked, :budget, :options, :hash, :generation, :registered, :expires)";
    db.prepare_cached(sql)?.execute(named_params! {
        ":id": run.id.as_str(),
        ":identity": run.terms.identity.as_str(),
        ":asked": run.terms.repository.as_ref().map(ToString::to_string),
        ":budget": budget,
        ":options": options,
        ":hash": run.bearer.hash.as_bytes(),
        ":generation": run.bearer.generation.cast_signed(),
        ":registered": to_micros(run.registered_at),
        ":expires": to_micros(run.expires_at),
    })?;
    run.binding.as_ref().map_or(Ok(()), |binding| update_binding(db, &run.id, binding))
}

fn replace_bearer(db: &Connection, id: &RunId, hash: BearerHash) -> Result<()> {
    let sql = "UPDATE runs SET bearer_hash = ?2, bearer_generation = bearer_generation + 1 WHERE run_id = ?1";
    db.prepare_cached(sql)?.execute(params![id.as_str(), hash.as_bytes()])?;
    Ok(())
}

pub(super) fn rotate(db: &Connection, id: &RunId, hash: BearerHash, now: SystemTime) -> Result<Rotated> {
    match run(db, id)? {
        None => Ok(Rotated::Unknown),
        Some(run) if run.state(now) != State::Live => Ok(Rotated::NotLive(run)),
        Some(_) => {
            replace_bearer(db, id, hash)?;
            Ok(Rotated::Rotated(standing(db, id)?))
        }
    }
}

pub(super) fn revoke(db: &Connection, id: &RunId, now: SystemTime) -> Result<Option<Run>> {
    let sql = "UPDATE runs SET revoked_at = ?2 WHERE run_id = ?1 AND revoked_at IS NULL";
    db.prepare_cached(sql)?.execute(params![id.as_str(), to_micros(now)])?;
    run(db, id)
}

pub(super) fn mark_used(db: &Connection, id: &RunId, generation: u64, now: SystemTime) -> Result<bool> {
    let sql = "UPDATE runs SET first_used_at = coalesce(first_used_at, ?3) \
               WHERE run_id = ?1 AND bearer_generation = ?2";
    let rows = db.prepare_cached(sql)?.execute(params![id.as_str(), generation.cast_signed(), to_micros(now)])?;
    Ok(rows > 0)
}

pub(super) fn bind(
    db: &Connection,
    id: &RunId,
    generation: u64,
    binding: &Binding,
    now: SystemTime,
) -> Result<Option<Run>> {
    let Some(stored) = run(db, id)? else { return Ok(None) };
    if is_current(&stored, generation, now) && stored.binding.is_none() {
        update_binding(db, id, binding)?;
        return run(db, id);
    }
    Ok(Some(stored))
}

fn is_current(run: &Run, generation: u64, now: SystemTime) -> bool {
    run.state(now) == State::Live && run.bearer.generation == generation
}

fn update_binding(db: &Connection, id: &RunId, binding: &Binding) -> Result<()> {
    let sql = "UPDATE runs SET repository = ?2, repository_id = ?3, default_branch = ?4, default_branches = ?5, \
               bound_at = ?6 WHERE run_id = ?1 AND repository IS NULL";
    db.prepare_cached(sql)?.execute(params![
        id.as_str(),
        binding.repository.to_string(),
        binding.repository_id.cast_signed(),
        binding.default_branch,
        row::branches_to_text(&binding.default_branches)?,
        to_micros(binding.bound_at),
    ])?;
    Ok(())
}

pub(super) fn see_default_branch(db: &Connection, id: &RunId, branch: &str) -> Result<Option<Run>> {
    let Some(mut stored) = run(db, id)? else { return Ok(None) };
    if let Some(binding) = &mut stored.binding {
        branch.clone_into(&mut binding.default_branch);
        if !binding.default_branches.iter().any(|earlier| earlier == branch) {
            binding.default_branches.push(branch.to_owned());
        }
        let sql = "UPDATE runs SET default_branch = ?2, default_branches = ?3 WHERE run_id = ?1";
        let branches = row::branches_to_text(&binding.default_branches)?;
        db.prepare_cached(sql)?.execute(params![id.as_str(), branch, branches])?;
    }
    Ok(Some(stored))
}

pub(super) fn open_push(db: &Connection, push: &Push, generation: u64, now: SystemTime) -> Result<Opened> {
    // In the transaction that writes the row: a run that was revoked before this has no push after it.
    match run(db, &push.run)? {
        Some(run) if is_current(&run, generation, now) => {
            insert_push(db, push)?;
            Ok(Opened::Open)
        }
        other => Ok(Opened::Stale(other.map(Box::new))),
    }
}

pub(super) fn insert_push(db: &Connection, push: &Push) -> Result<()> {
    let sql = "INSERT INTO pushes (push_id, run_id, request_id, repository, ticket_hash, outcome, request_bytes, \
               opened_at, closed_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
    db.prepare_cached(sql)?.execute(params![
        push.id.as_bytes(),
        push.run.as_str(),
        push.request_id,
        push.repository.to_string(),
        push.ticket.as_ref().map(crate::push::TicketHash::as_bytes),
        push.outcome.as_str(),
        push.request_bytes.cast_signed(),
        to_micros(push.opened_at),
        push.closed_at.map(to_micros),
    ])?;
    let sql = "INSERT INTO pushed_refs (push_id, position, ref_name, old_oid, new_oid, refusal) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let mut insert = db.prepare_cached(sql)?;
    for (position, PushedRef { command, refusal }) in (0_i64..).zip(&push.refs) {
        let id = push.id.as_bytes();
        insert.execute(params![id, position, command.ref_name, command.old_oid, command.new_oid, refusal])?;
    }
    Ok(())
}

pub(super) fn close_push(db: &Connection, id: PushId, closing: &Closing) -> Result<Closed> {
    let sql = "UPDATE pushes SET outcome = ?2, request_bytes = ?3, closed_at = ?4 \
               WHERE push_id = ?1 AND (outcome = ?5 OR (outcome = ?6 AND ?2 <> ?6))";
    let rows = db.prepare_cached(sql)?.execute(params![
        id.as_bytes(),
        closing.outcome.as_str(),
        closing.request_bytes.cast_signed(),
        to_micros(closing.at),
        Outcome::Open.as_str(),
        Outcome::Unknown.as_str(),
    ])?;
    if rows == 0 {
        let known = "SELECT 1 FROM pushes WHERE push_id = ?1";
        let known = db.prepare_cached(known)?.exists([id.as_bytes()])?;
        return Ok(if known { Closed::Before } else { Closed::Unknown });
    }
    let sql = "UPDATE pushed_refs SET refusal = ?3 WHERE push_id = ?1 AND ref_name = ?2";
    let mut refuse = db.prepare_cached(sql)?;
    for (name, words) in &closing.upstream_refusals {
        refuse.execute(params![id.as_bytes(), name, words])?;
    }
    Ok(Closed::Now)
}

pub(super) fn push(db: &Connection, id: PushId) -> Result<Option<Push>> {
    let sql = format!("SELECT {} FROM pushes WHERE push_id = ?1", row::PUSH);
    let mut select = db.prepare_cached(&sql)?;
    let mut rows = select.query([id.as_bytes()])?;
    let refs = refs(db, id)?;
    rows.next()?.map(|found| row::push(found, refs)).transpose()
}

pub(super) fn pushes(db: &Connection, run: &RunId, limit: u32) -> Result<Vec<Push>> {
    let sql = "SELECT push_id FROM pushes WHERE run_id = ?1 ORDER BY opened_at DESC, push_id LIMIT ?2";
    let ids = all(db, sql, params![run.as_str(), limit], row::push_id)?;
    ids.into_iter().filter_map(|id| push(db, id).transpose()).collect()
}

fn refs(db: &Connection, id: PushId) -> Result<Vec<PushedRef>> {
    let sql = "SELECT ref_name, old_oid, new_oid, refusal FROM pushed_refs WHERE push_id = ?1 ORDER BY position";
    all(db, sql, params![id.as_bytes()], row::pushed_ref)
}

pub(super) fn open_pushes(db: &Connection, run: Option<&RunId>) -> Result<Vec<PushId>> {
    // The condition is spelled as the partial index has it, so that the index is used.
    match run {
        Some(run) => {
            let sql = "SELECT push_id FROM pushes WHERE outcome = 'open' AND run_id = ?1";
            all(db, sql, params![run.as_str()], row::push_id)
        }
        None => all(db, "SELECT push_id FROM pushes WHERE outcome = 'open'", params![], row::push_id),
    }
}

pub(super) fn prune(db: &Connection, before: SystemTime, limit: u32) -> Result<u32> {
    let before = to_micros(before);
    let pushes = "DELETE FROM pushes WHERE push_id IN (SELECT push_id FROM pushes JOIN runs USING (run_id) \
                  WHERE expires_at < ?1 LIMIT ?2)";
    let gone = count(db.prepare_cached(pushes)?.execute(params![before, limit])?);
    let runs = "DELETE FROM runs WHERE run_id IN (SELECT run_id FROM runs WHERE expires_at < ?1 \
                AND NOT EXISTS (SELECT 1 FROM pushes WHERE pushes.run_id = runs.run_id) LIMIT ?2)";
    let left = limit.saturating_sub(gone);
    Ok(gone + count(db.prepare_cached(runs)?.execute(params![before, left])?))
}

fn count(rows: usize) -> u32 {
    u32::try_from(rows).unwrap_or(u32::MAX)
}

/// The run that a statement of this transaction has just written.
fn standing(db: &Connection, id: &RunId) -> Result<Run> {
    run(db, id)?.ok_or_else(|| rusqlite::Error::QueryReturnedNoRows.into())
}

fn all<T>(
    db: &Connection,
    sql: &str,
    params: &[&dyn ToSql],
    read: fn(&rusqlite::Row<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    let mut select = db.prepare_cached(sql)?;
    let mut rows = select.query(params)?;
    let mut found = Vec::new();
    while let Some(next) = rows.next()? {
        found.push(read(next)?);
    }
    Ok(found)
}
