//! The statements of each operation. Those that write run inside a savepoint of the writer's transaction.

use std::time::{Duration, SystemTime};

use gitdoor_proto::{BearerHash, RunId};
use rusqlite::{Connection, Row, ToSql, params};

use crate::clock::to_micros;
use crate::push::{Closing, Command, Outcome, Push, PushId, PushedRef};
use crate::run::{Binding, Run, Transition};
use crate::store::row::{PushRow, RunRow, push_id};
use crate::store::{Adopted, Closed, Opened, Registered, Rotated, StoreError};

type Result<T> = std::result::Result<T, StoreError>;

pub(super) fn run(db: &Connection, id: &RunId) -> Result<Option<Run>> {
    let mut select = db.prepare_cached(&format!("SELECT {} FROM runs WHERE run_id = ?1", RunRow::COLUMNS))?;
    let mut rows = select.query([id.as_str()])?;
    rows.next()?.map(read_run).transpose()
}

pub(super) fn runs(db: &Connection, after: Option<&RunId>, limit: u32) -> Result<Vec<Run>> {
    let sql = format!("SELECT {} FROM runs WHERE run_id > ?1 ORDER BY run_id LIMIT ?2", RunRow::COLUMNS);
    // Every run id is greater than the empty text.
    let after = after.map_or("", RunId::as_str);
    all(db, &sql, params![after, limit], read_run)
}

pub(super) fn register(db: &Connection, new: &Run) -> Result<Registered> {
    if let Some(again) = change(db, &new.id, |old| old.register_again(new))? {
        return Ok(again.into());
    }
    insert(db, "runs", RunRow::COLUMNS, &RunRow::new(new)?.to_sqlite())?;
    Ok(Registered::Created(new.clone()))
}

pub(super) fn adopt(db: &Connection, id: &RunId, budget: Duration, now: SystemTime) -> Result<Adopted> {
    change(db, id, |run| run.adopt(budget, now)).map(Into::into)
}

pub(super) fn rotate(db: &Connection, id: &RunId, hash: BearerHash, now: SystemTime) -> Result<Rotated> {
    change(db, id, |run| run.rotate(hash, now)).map(Into::into)
}

pub(super) fn revoke(db: &Connection, id: &RunId, now: SystemTime) -> Result<Option<Run>> {
    Ok(change(db, id, |run| run.revoke(now))?.map(Transition::into_run))
}

pub(super) fn mark_used(db: &Connection, id: &RunId, generation: u64, now: SystemTime) -> Result<bool> {
    let marked = change(db, id, |run| run.mark_used(generation, now))?;
    Ok(matches!(marked, Some(Transition::Changed(_) | Transition::Unchanged(_))))
}

pub(super) fn bind(
    db: &Connection,
    id: &RunId,
    generation: u64,
    binding: &Binding,
    now: SystemTime,
) -> Result<Option<Run>> {
    Ok(change(db, id, |run| run.bind(generation, binding, now))?.map(Transition::into_run))
}

pub(super) fn see_default_branch(db: &Connection, id: &RunId, branch: &str) -> Result<Option<Run>> {
    Ok(change(db, id, |run| run.see_default_branch(branch))?.map(Transition::into_run))
}

/// Writes what becomes of a run, if there is one. There is one writer, so that nothing comes between.
fn change(db: &Connection, id: &RunId, transition: impl FnOnce(Run) -> Transition) -> Result<Option<Transition>> {
    let Some(stored) = run(db, id)? else { return Ok(None) };
    let transition = transition(stored);
    if let Transition::Changed(run) = &transition {
        let sql = format!("UPDATE runs SET {} WHERE run_id = ?1", RunRow::assignments('?'));
        db.prepare_cached(&sql)?.execute(RunRow::new(run)?.to_sqlite().as_slice())?;
    }
    Ok(Some(transition))
}

pub(super) fn open_push(db: &Connection, push: &Push, generation: u64, now: SystemTime) -> Result<Opened> {
    // In the transaction that writes the row: a run that was revoked before this has no push after it.
    match run(db, &push.run)? {
        Some(run) if run.is_current(generation, now) => {
            insert_push(db, push)?;
            Ok(Opened::Open)
        }
        other => Ok(Opened::Stale(other.map(Box::new))),
    }
}

pub(super) fn insert_push(db: &Connection, push: &Push) -> Result<()> {
    insert(db, "pushes", PushRow::COLUMNS, &PushRow::new(push).to_sqlite())?;
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
    let sql = format!("SELECT {} FROM pushes WHERE push_id = ?1", PushRow::COLUMNS);
    let mut select = db.prepare_cached(&sql)?;
    let mut rows = select.query([id.as_bytes()])?;
    let refs = refs(db, id)?;
    rows.next()?.map(|found| PushRow::of_sqlite(found)?.read(refs)).transpose()
}

pub(super) fn pushes(db: &Connection, run: &RunId, limit: u32) -> Result<Vec<Push>> {
    let sql = "SELECT push_id FROM pushes WHERE run_id = ?1 ORDER BY opened_at DESC, push_id LIMIT ?2";
    let ids = all(db, sql, params![run.as_str(), limit], read_push_id)?;
    ids.into_iter().filter_map(|id| push(db, id).transpose()).collect()
}

fn refs(db: &Connection, id: PushId) -> Result<Vec<PushedRef>> {
    let sql = "SELECT ref_name, old_oid, new_oid, refusal FROM pushed_refs WHERE push_id = ?1 ORDER BY position";
    all(db, sql, params![id.as_bytes()], read_ref)
}

pub(super) fn open_pushes(db: &Connection, run: Option<&RunId>) -> Result<Vec<PushId>> {
    // The condition is spelled as the partial index has it, so that the index is used.
    match run {
        Some(run) => {
            let sql = "SELECT push_id FROM pushes WHERE outcome = 'open' AND run_id = ?1";
            all(db, sql, params![run.as_str()], read_push_id)
        }
        None => all(db, "SELECT push_id FROM pushes WHERE outcome = 'open'", params![], read_push_id),
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

fn insert(db: &Connection, table: &str, columns: &str, values: &[&dyn ToSql]) -> Result<()> {
    let marks = vec!["?"; values.len()].join(", ");
    db.prepare_cached(&format!("INSERT INTO {table} ({columns}) VALUES ({marks})"))?.execute(values)?;
    Ok(())
}

fn read_run(row: &Row<'_>) -> Result<Run> {
    RunRow::of_sqlite(row)?.read()
}

fn read_push_id(row: &Row<'_>) -> Result<PushId> {
    push_id(&row.get::<_, Vec<u8>>("push_id")?)
}

fn read_ref(row: &Row<'_>) -> Result<PushedRef> {
    let command =
        Command { old_oid: row.get("old_oid")?, new_oid: row.get("new_oid")?, ref_name: row.get("ref_name")? };
    Ok(PushedRef { command, refusal: row.get("refusal")? })
}

fn all<T>(db: &Connection, sql: &str, params: &[&dyn ToSql], read: fn(&Row<'_>) -> Result<T>) -> Result<Vec<T>> {
    let mut select = db.prepare_cached(sql)?;
    let mut rows = select.query(params)?;
    let mut found = Vec::new();
    while let Some(next) = rows.next()? {
        found.push(read(next)?);
    }
    Ok(found)
}
