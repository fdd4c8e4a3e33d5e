//! The statements of each operation on runs. Those that write run inside a savepoint of the writer's transaction.

use std::time::{Duration, SystemTime};

use gitdoor_proto::{BearerHash, RunId};
use rusqlite::{Connection, Row, ToSql, params};

use crate::clock::to_micros;
use crate::mirror::MirrorToken;
use crate::run::{Binding, Run, Transition};
use crate::store::row::{self, LIVE_RUNS, MirrorTokenRow, RunRow, run_id};
use crate::store::{Adopted, LiveRuns, Registered, Rotated, StoreError};

pub(super) type Result<T> = std::result::Result<T, StoreError>;

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

pub(super) fn ended_since(db: &Connection, time: SystemTime) -> Result<Vec<RunId>> {
    let sql = "SELECT run_id FROM runs WHERE revoked_at > ?1";
    all(db, sql, params![to_micros(time)], |row| run_id(&row.get::<_, String>("run_id")?))
}

pub(super) fn record_mirror_token(db: &Connection, row: &MirrorToken) -> Result<()> {
    insert(db, "mirror_tokens", MirrorTokenRow::COLUMNS, &MirrorTokenRow::new(row).to_sqlite())
}

pub(super) fn mirror_tokens(db: &Connection, limit: u32) -> Result<Vec<MirrorToken>> {
    let columns = MirrorTokenRow::COLUMNS;
    let sql = format!("SELECT {columns} FROM mirror_tokens ORDER BY handed_out_at DESC, mirror_token_id LIMIT ?1");
    all(db, &sql, params![limit], |row| MirrorTokenRow::of_sqlite(row)?.read())
}

pub(super) fn live_runs(db: &Connection, now: SystemTime) -> Result<Vec<LiveRuns>> {
    all(db, LIVE_RUNS, params![to_micros(now)], |row| {
        row::live_runs(&row.get::<_, String>("identity")?, row.get("bound")?, row.get("count")?)
    })
}

pub(super) fn prune(db: &Connection, before: SystemTime, limit: u32) -> Result<u32> {
    // By the runs that ended first, so that a batch looks at no more of the ledger than it removes.
    const ENDED: &str = "SELECT run_id FROM runs WHERE expires_at < ?1 ORDER BY expires_at LIMIT ?3";
    let statements = [
        format!(
            "DELETE FROM pushed_refs WHERE (push_id, position) IN (SELECT push_id, position FROM pushes \
             JOIN pushed_refs USING (push_id) WHERE run_id IN ({ENDED}) LIMIT ?2)"
        ),
        format!(
            "DELETE FROM pushes WHERE push_id IN (SELECT push_id FROM pushes WHERE run_id IN ({ENDED}) \
             AND NOT EXISTS (SELECT 1 FROM pushed_refs WHERE pushed_refs.push_id = pushes.push_id) LIMIT ?2)"
        ),
        format!(
            "DELETE FROM runs WHERE run_id IN (SELECT run_id FROM ({ENDED}) AS ended WHERE NOT EXISTS \
             (SELECT 1 FROM pushes WHERE pushes.run_id = ended.run_id) LIMIT ?2)"
        ),
    ];
    let (before, mut gone) = (to_micros(before), 0);
    for sql in statements {
        let left = limit.saturating_sub(gone);
        gone += count(db.prepare_cached(&sql)?.execute(params![before, left, limit])?);
    }
    let mirrors = "DELETE FROM mirror_tokens WHERE mirror_token_id IN (SELECT mirror_token_id FROM mirror_tokens \
                   WHERE expires_at < ?1 LIMIT ?2)";
    let left = limit.saturating_sub(gone);
    Ok(gone + count(db.prepare_cached(mirrors)?.execute(params![before, left])?))
}

fn count(rows: usize) -> u32 {
    u32::try_from(rows).unwrap_or(u32::MAX)
}

pub(super) fn insert(db: &Connection, table: &str, columns: &str, values: &[&dyn ToSql]) -> Result<()> {
    let marks = vec!["?"; values.len()].join(", ");
    db.prepare_cached(&format!("INSERT INTO {table} ({columns}) VALUES ({marks})"))?.execute(values)?;
    Ok(())
}

fn read_run(row: &Row<'_>) -> Result<Run> {
    RunRow::of_sqlite(row)?.read()
}

pub(super) fn all<T>(
    db: &Connection,
    sql: &str,
    params: &[&dyn ToSql],
    read: fn(&Row<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    let mut select = db.prepare_cached(sql)?;
    let mut rows = select.query(params)?;
    let mut found = Vec::new();
    while let Some(next) = rows.next()? {
        found.push(read(next)?);
    }
    Ok(found)
}
