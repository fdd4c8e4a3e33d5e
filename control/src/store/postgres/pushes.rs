//! The statements of each operation on pushes. Each is one statement, or a write that compares and a read after it
//! that says why it did nothing, or a transaction: atomic with any number of controls.

use std::collections::BTreeMap;
use std::time::SystemTime;

use deadpool_postgres::{Client, GenericClient};
use gitdoor_proto::RunId;
use tokio_postgres::Row;

use super::statements::{Params, Result, all, execute, one, run};
use crate::clock::to_micros;
use crate::fleet::ControlId;
use crate::push::{Closing, Command, Outcome, Push, PushId, PushedRef};
use crate::store::row::{PushRow, push_id};
use crate::store::{Closed, Limit, Opened};

pub(super) async fn open(
    db: &mut Client,
    push: &Push,
    generation: u64,
    limit: Limit<'_>,
    now: SystemTime,
) -> Result<Opened> {
    let transaction = db.transaction().await?;
    // The lock holds a revocation back until the row is there: one that comes first leaves no row after it. It holds
    // the run's other pushes back, too: each counts those that came before it.
    match run(&transaction, &push.run, "FOR NO KEY UPDATE").await? {
        Some(run) if run.is_current(generation, now) => {}
        other => return Ok(Opened::Stale(other.map(Box::new))),
    }
    // A statement of its own: it sees what the lock has waited for.
    let counted = "SELECT count(*) FROM pushes WHERE outcome = 'open' AND run_id = $1 \
                   AND push_id <> $4 AND NOT (push_id = ANY($2) AND control IS NOT DISTINCT FROM $3)";
    let lapsed: Vec<&[u8]> = limit.lapsed.iter().map(|push| push.as_bytes().as_slice()).collect();
    let control = push.control.as_ref().map(|control| control.as_bytes().as_slice());
    let id = push.id.as_bytes().as_slice();
    if one(&transaction, counted, &[&push.run.as_str(), &lapsed, &control, &id]).await? >= i64::from(limit.most) {
        return Ok(Opened::TooMany);
    }
    if insert(&transaction, push).await? {
        transaction.commit().await?;
        return Ok(Opened::Open);
    }
    let known = pushes_where(&transaction, "push_id = $1", &[&id, &1_i64]).await?;
    if !known.iter().any(|row| push.is_asked_again_of(row)) {
        return Ok(Opened::Known);
    }
    if let Some(control) = push.control {
        take(&transaction, push.id, &push.run, control).await?;
    }
    transaction.commit().await?;
    Ok(Opened::Again)
}

pub(super) async fn record_refused(db: &Client, push: &Push) -> Result<()> {
    insert(db, push).await.map(drop)
}

/// Writes a push and its refs as one statement. False: there is one of its id.
async fn insert(db: &impl GenericClient, push: &Push) -> Result<bool> {
    const TYPES: [&str; 10] =
        ["bytea", "text", "text", "text", "bytea", "text", "bigint", "bigint", "bigint", "bytea"];
    const REF_TYPES: [&str; 4] = ["bytea[]", "text[]", "text[]", "text[]"];
    let marks = |first: usize, types: &[&str]| {
        let mark = |(number, kind): (usize, &&str)| format!("${number}::{kind}");
        (first..).zip(types).map(mark).collect::<Vec<_>>().join(", ")
    };
    let sql = format!(
        "WITH opened AS (INSERT INTO pushes ({columns}) VALUES ({values}) ON CONFLICT (push_id) DO NOTHING RETURNING push_id), \
         refs AS (INSERT INTO pushed_refs (push_id, position, ref_name, old_oid, new_oid, refusal) \
         SELECT push_id, position - 1, ref_name, old_oid, new_oid, refusal FROM opened, unnest({refs}) \
         WITH ORDINALITY AS pushed (ref_name, old_oid, new_oid, refusal, position)) SELECT count(*) FROM opened",
        columns = PushRow::COLUMNS,
        values = marks(1, &TYPES),
        refs = marks(1 + TYPES.len(), &REF_TYPES),
    );
    let row = PushRow::new(push);
    let commands = || push.refs.iter().map(|pushed| &pushed.command);
    let names: Vec<&[u8]> = commands().map(|command| command.ref_name.as_slice()).collect();
    let old: Vec<&str> = commands().map(|command| command.old_oid.as_str()).collect();
    let new: Vec<&str> = commands().map(|command| command.new_oid.as_str()).collect();
    let refusals: Vec<Option<&str>> = push.refs.iter().map(|pushed| pushed.refusal.as_deref()).collect();
    let refs: Params<'_> = &[&names, &old, &new, &refusals];
    Ok(one(db, &sql, &[&row.to_postgres(), refs].concat()).await? > 0)
}

/// Records an end; if `control` is given, only of a push that is its own.
pub(super) async fn close(
    db: &Client,
    id: PushId,
    closing: &Closing,
    control: Option<ControlId>,
) -> Result<Closed> {
    let sql = format!(
        "WITH closed AS (UPDATE pushes SET outcome = $2, request_bytes = $3, closed_at = $4 WHERE push_id = $1 \
         AND (outcome = '{open}' OR (outcome = '{unknown}' AND $2 <> '{unknown}')) \
         AND ($7::bytea IS NULL OR control = $7) RETURNING push_id), \
         refused AS (UPDATE pushed_refs SET refusal = words FROM closed, unnest($5::bytea[], $6::text[]) \
         AS upstream (name, words) WHERE pushed_refs.push_id = closed.push_id AND ref_name = name) \
         SELECT count(*) FROM closed",
        open = Outcome::Open.as_str(),
        unknown = Outcome::Unknown.as_str(),
    );
    // Of a ref that is named twice, the last words stand.
    let refusals = closing.upstream_refusals.iter().map(|(name, words)| (name.as_slice(), words.as_str()));
    let (names, words): (Vec<&[u8]>, Vec<&str>) = refusals.collect::<BTreeMap<_, _>>().into_iter().unzip();
    let id = id.as_bytes().as_slice();
    let control = control.as_ref().map(|control| control.as_bytes().as_slice());
    let (bytes, at) = (closing.request_bytes.cast_signed(), to_micros(closing.at));
    if one(db, &sql, &[&id, &closing.outcome.as_str(), &bytes, &at, &names, &words, &control]).await? > 0 {
        return Ok(Closed::Now);
    }
    let known = one(db, "SELECT count(*) FROM pushes WHERE push_id = $1", &[&id]).await?;
    Ok(if known > 0 { Closed::Before } else { Closed::Unknown })
}

pub(super) async fn push(db: &Client, id: PushId) -> Result<Option<Push>> {
    let found = pushes_where(db, "push_id = $1", &[&id.as_bytes().as_slice(), &1_i64]).await?;
    Ok(found.into_iter().next())
}

pub(super) async fn pushes(db: &Client, run: &RunId, after: Option<PushId>, limit: u32) -> Result<Vec<Push>> {
    let after = after.as_ref().map(|push| push.as_bytes().as_slice());
    let limit = i64::from(limit);
    let time = "(SELECT opened_at FROM pushes WHERE push_id = $3)";
    let condition = format!(
        "run_id = $1 AND ($3::bytea IS NULL OR opened_at < {time} OR (opened_at = {time} AND push_id > $3))"
    );
    pushes_where(db, &condition, &[&run.as_str(), &limit, &after]).await
}

/// Pushes and their refs, as one statement saw them.
async fn pushes_where(db: &impl GenericClient, condition: &str, params: Params<'_>) -> Result<Vec<Push>> {
    let columns = PushRow::COLUMNS;
    let sql = format!(
        "SELECT {columns}, ref_name, old_oid, new_oid, refusal FROM (SELECT {columns} FROM pushes \
         WHERE {condition} ORDER BY opened_at DESC, push_id LIMIT $2) AS found LEFT JOIN pushed_refs USING (push_id) \
         ORDER BY opened_at DESC, push_id, position"
    );
    let rows = all(db, &sql, params).await?;
    let same = |one: &Row, other: &Row| matches!((one.try_get::<_, &[u8]>("push_id"), other.try_get::<_, &[u8]>("push_id")), (Ok(a), Ok(b)) if a == b);
    let read = |rows: &[Row]| {
        let refs = rows.iter().filter_map(|row| read_ref(row).transpose()).collect::<Result<_>>()?;
        rows.first().map(|row| PushRow::of_postgres(row)?.read(refs)).transpose()
    };
    rows.chunk_by(same).filter_map(|rows| read(rows).transpose()).collect()
}

pub(super) async fn unreported(db: &Client, run: &RunId) -> Result<Vec<PushId>> {
    let sql = "SELECT push_id FROM pushes WHERE run_id = $1 AND outcome IN ('open', 'unknown')";
    all(db, sql, &[&run.as_str()]).await?.iter().map(|row| push_id(row.try_get("push_id")?)).collect()
}

pub(super) async fn take(db: &impl GenericClient, id: PushId, run: &RunId, control: ControlId) -> Result<bool> {
    let sql = "UPDATE pushes SET control = $3, outcome = 'open', closed_at = NULL \
               WHERE push_id = $1 AND run_id = $2 AND outcome IN ('open', 'unknown')";
    let params: Params<'_> = &[&id.as_bytes().as_slice(), &run.as_str(), &control.as_bytes().as_slice()];
    Ok(execute(db, sql, params).await? > 0)
}

/// The ref of a row, if its push has any.
fn read_ref(row: &Row) -> Result<Option<PushedRef>> {
    let Some(ref_name) = row.try_get("ref_name")? else { return Ok(None) };
    let command = Command { old_oid: row.try_get("old_oid")?, new_oid: row.try_get("new_oid")?, ref_name };
    Ok(Some(PushedRef { command, refusal: row.try_get("refusal")? }))
}
