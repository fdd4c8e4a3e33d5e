//! The statements of each operation on pushes. Those that write run inside a savepoint of the writer's transaction.

use std::time::SystemTime;

use gitdoor_proto::RunId;
use rusqlite::{Connection, Row, params};

use super::statements::{Result, all, insert as insert_row, run};
use crate::clock::{from_micros, to_micros};
use crate::fleet::ControlId;
use crate::push::{Closing, Command, Outcome, Push, PushId, PushedRef};
use crate::store::row::{PushRow, push_id, run_id};
use crate::store::{Claimed, Closed, Limit, Opened};

pub(super) fn open(
    db: &Connection,
    push: &Push,
    generation: u64,
    limit: Limit<'_>,
    now: SystemTime,
) -> Result<Opened> {
    // In the transaction that writes the row: a run that was revoked before this has no push after it.
    match run(db, &push.run)? {
        Some(run) if run.is_current(generation, now) => {}
        other => return Ok(Opened::Stale(other.map(Box::new))),
    }
    let of_run = "SELECT push_id FROM pushes WHERE outcome = 'open' AND run_id = ?1";
    let open = all(db, of_run, params![push.run.as_str()], read_push_id)?;
    // One process: every open push is its own.
    let counted = open.iter().filter(|id| **id != push.id && !limit.lapsed.contains(id)).count();
    if counted >= limit.most as usize {
        return Ok(Opened::TooMany);
    }
    match self::push(db, push.id)? {
        None => insert(db, push).map(|()| Opened::Open),
        Some(row) if push.is_asked_again_of(&row) => {
            if let Some(control) = push.control {
                take(db, push.id, &push.run, control)?;
            }
            Ok(Opened::Again)
        }
        Some(_) => Ok(Opened::Known),
    }
}

pub(super) fn record_refused(db: &Connection, refused: &Push) -> Result<()> {
    if push(db, refused.id)?.is_none() {
        insert(db, refused)?;
    }
    Ok(())
}

fn insert(db: &Connection, push: &Push) -> Result<()> {
    insert_row(db, "pushes", PushRow::COLUMNS, &PushRow::new(push).to_sqlite())?;
    let sql = "INSERT INTO pushed_refs (push_id, position, ref_name, old_oid, new_oid, refusal) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let mut insert = db.prepare_cached(sql)?;
    for (position, PushedRef { command, refusal }) in (0_i64..).zip(&push.refs) {
        let id = push.id.as_bytes();
        insert.execute(params![id, position, command.ref_name, command.old_oid, command.new_oid, refusal])?;
    }
    Ok(())
}

/// Records an end; if `control` is given, only of a push that is its own.
pub(super) fn close(db: &Connection, id: PushId, closing: &Closing, control: Option<ControlId>) -> Result<Closed> {
    let sql = "UPDATE pushes SET outcome = ?2, request_bytes = ?3, closed_at = ?4 \
               WHERE push_id = ?1 AND (outcome = ?5 OR (outcome = ?6 AND ?2 <> ?6)) \
               AND (?7 IS NULL OR control = ?7)";
    let rows = db.prepare_cached(sql)?.execute(params![
        id.as_bytes(),
        closing.outcome.as_str(),
        closing.request_bytes.cast_signed(),
        to_micros(closing.at),
        Outcome::Open.as_str(),
        Outcome::Unknown.as_str(),
        control.as_ref().map(ControlId::as_bytes),
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

pub(super) fn pushes(db: &Connection, run: &RunId, after: Option<PushId>, limit: u32) -> Result<Vec<Push>> {
    let sql = "WITH last AS (SELECT opened_at AS time, push_id AS id FROM pushes WHERE push_id = ?3) \
               SELECT push_id FROM pushes WHERE run_id = ?1 AND (?3 IS NULL OR opened_at < (SELECT time FROM last) \
               OR (opened_at = (SELECT time FROM last) AND push_id > ?3)) ORDER BY opened_at DESC, push_id LIMIT ?2";
    let after = after.as_ref().map(PushId::as_bytes);
    let ids = all(db, sql, params![run.as_str(), limit, after], read_push_id)?;
    ids.into_iter().filter_map(|id| push(db, id).transpose()).collect()
}

fn refs(db: &Connection, id: PushId) -> Result<Vec<PushedRef>> {
    let sql = "SELECT ref_name, old_oid, new_oid, refusal FROM pushed_refs WHERE push_id = ?1 ORDER BY position";
    all(db, sql, params![id.as_bytes()], read_ref)
}

pub(super) fn unreported(db: &Connection, run: &RunId) -> Result<Vec<PushId>> {
    let sql = "SELECT push_id FROM pushes WHERE run_id = ?1 AND outcome IN ('open', 'unknown')";
    all(db, sql, params![run.as_str()], read_push_id)
}

pub(super) fn take(db: &Connection, id: PushId, run: &RunId, control: ControlId) -> Result<bool> {
    let sql = "UPDATE pushes SET control = ?3, outcome = 'open', closed_at = NULL \
               WHERE push_id = ?1 AND run_id = ?2 AND outcome IN ('open', 'unknown')";
    Ok(db.prepare_cached(sql)?.execute(params![id.as_bytes(), run.as_str(), control.as_bytes()])? > 0)
}

pub(super) fn claim(db: &Connection, control: ControlId) -> Result<Vec<Claimed>> {
    // Whoever they belonged to has ended: it held the file's lock.
    let sql = "UPDATE pushes SET control = ?1 WHERE outcome = 'open' AND control IS NOT ?1";
    db.prepare_cached(sql)?.execute([control.as_bytes()])?;
    let sql = "SELECT push_id, run_id, expires_at FROM pushes JOIN runs USING (run_id) WHERE outcome = 'open'";
    all(db, sql, params![], read_claimed)
}

fn read_claimed(row: &Row<'_>) -> Result<Claimed> {
    let expires_at = from_micros(row.get("expires_at")?);
    Ok(Claimed { push: read_push_id(row)?, run: run_id(&row.get::<_, String>("run_id")?)?, expires_at })
}

fn read_push_id(row: &Row<'_>) -> Result<PushId> {
    push_id(&row.get::<_, Vec<u8>>("push_id")?)
}

fn read_ref(row: &Row<'_>) -> Result<PushedRef> {
    let command =
        Command { old_oid: row.get("old_oid")?, new_oid: row.get("new_oid")?, ref_name: row.get("ref_name")? };
    Ok(PushedRef { command, refusal: row.get("refusal")? })
}
