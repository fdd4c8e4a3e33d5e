//! The statements of each operation. A run changes in a transaction that has locked it; a push is written by one
//! statement, with a read after it that says why it wrote nothing. Each is atomic with any number of controls.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use deadpool_postgres::{Client, GenericClient};
use gitdoor_proto::{BearerHash, RunId};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::clock::to_micros;
use crate::push::{Closing, Command, Outcome, Push, PushId, PushedRef};
use crate::run::{Binding, Run, Transition};
use crate::store::row::{PushRow, RunRow, push_id};
use crate::store::{Adopted, Closed, Opened, Registered, Rotated, StoreError};

type Result<T> = std::result::Result<T, StoreError>;
type Params<'a> = &'a [&'a (dyn ToSql + Sync)];

/// [`Run::is_current`] as a condition, for the one statement that opens a push: it is on the path of every push, and
/// as a transaction would take four round trips.
const CURRENT: &str = "run_id = $1 AND bearer_generation = $2 AND revoked_at IS NULL AND expires_at > $3";

pub(super) async fn runs_of(db: &Client, ids: &[&str]) -> Result<Vec<Run>> {
    let sql = format!("SELECT {} FROM runs WHERE run_id = ANY($1)", RunRow::COLUMNS);
    all(db, &sql, &[&ids]).await?.iter().map(read_run).collect()
}

async fn run(db: &impl GenericClient, id: &RunId, locked: &str) -> Result<Option<Run>> {
    let sql = format!("SELECT {} FROM runs WHERE run_id = $1 {locked}", RunRow::COLUMNS);
    all(db, &sql, &[&id.as_str()]).await?.first().map(read_run).transpose()
}

pub(super) async fn runs(db: &Client, after: Option<&RunId>, limit: u32) -> Result<Vec<Run>> {
    let sql = format!("SELECT {} FROM runs WHERE run_id > $1 ORDER BY run_id LIMIT $2", RunRow::COLUMNS);
    // Every run id is greater than the empty text.
    let after = after.map_or("", RunId::as_str);
    all(db, &sql, &[&after, &i64::from(limit)]).await?.iter().map(read_run).collect()
}

pub(super) async fn register(db: &mut Client, new: &Run) -> Result<Registered> {
    let row = RunRow::new(new)?;
    let values = row.to_postgres();
    let marks = (1..=values.len()).map(|number| format!("${number}")).collect::<Vec<_>>().join(", ");
    let sql = format!("INSERT INTO runs ({}) VALUES ({marks}) ON CONFLICT DO NOTHING", RunRow::COLUMNS);
    if execute(db, &sql, &values).await? > 0 {
        return Ok(Registered::Created(new.clone()));
    }
    // Gone only if it was pruned between the two.
    let again = change(db, &new.id, |old| old.register_again(new)).await?;
    again.map(Into::into).ok_or(StoreError::RolledBack)
}

pub(super) async fn adopt(db: &mut Client, id: &RunId, budget: Duration, now: SystemTime) -> Result<Adopted> {
    change(db, id, |run| run.adopt(budget, now)).await.map(Into::into)
}

pub(super) async fn rotate(db: &mut Client, id: &RunId, hash: BearerHash, now: SystemTime) -> Result<Rotated> {
    change(db, id, |run| run.rotate(hash, now)).await.map(Into::into)
}

pub(super) async fn revoke(db: &mut Client, id: &RunId, now: SystemTime) -> Result<Option<Run>> {
    Ok(change(db, id, |run| run.revoke(now)).await?.map(Transition::into_run))
}

pub(super) async fn mark_used(db: &mut Client, id: &RunId, generation: u64, now: SystemTime) -> Result<bool> {
    let marked = change(db, id, |run| run.mark_used(generation, now)).await?;
    Ok(matches!(marked, Some(Transition::Changed(_) | Transition::Unchanged(_))))
}

pub(super) async fn bind(
    db: &mut Client,
    id: &RunId,
    generation: u64,
    binding: &Binding,
    now: SystemTime,
) -> Result<Option<Run>> {
    Ok(change(db, id, |run| run.bind(generation, binding, now)).await?.map(Transition::into_run))
}

pub(super) async fn see_default_branch(db: &mut Client, id: &RunId, branch: &str) -> Result<Option<Run>> {
    Ok(change(db, id, |run| run.see_default_branch(branch)).await?.map(Transition::into_run))
}

/// Writes what becomes of a run, if there is one, under the lock that an update takes: whoever would change it, or
/// open a push of it, waits until this is committed, and sees it.
async fn change(
    db: &mut Client,
    id: &RunId,
    transition: impl FnOnce(Run) -> Transition,
) -> Result<Option<Transition>> {
    let transaction = db.transaction().await?;
    let Some(stored) = run(&transaction, id, "FOR NO KEY UPDATE").await? else { return Ok(None) };
    let transition = transition(stored);
    if let Transition::Changed(run) = &transition {
        let sql = format!("UPDATE runs SET {} WHERE run_id = $1", RunRow::assignments('$'));
        execute(&transaction, &sql, &RunRow::new(run)?.to_postgres()).await?;
        transaction.commit().await?;
    }
    Ok(Some(transition))
}

pub(super) async fn open_push(db: &Client, push: &Push, generation: u64, now: SystemTime) -> Result<Opened> {
    // The lock holds a revocation back until the row is there: one that comes first leaves no row after it.
    let sql = format!("WITH live AS (SELECT run_id FROM runs WHERE {CURRENT} FOR SHARE), ");
    let params: Params<'_> = &[&push.run.as_str(), &generation.cast_signed(), &to_micros(now)];
    if insert_push(db, &sql, params, "FROM live", push).await? > 0 {
        return Ok(Opened::Open);
    }
    Ok(Opened::Stale(run(db, &push.run, "").await?.map(Box::new)))
}

pub(super) async fn record_refused(db: &Client, push: &Push) -> Result<()> {
    insert_push(db, "WITH ", &[], "", push).await.map(drop)
}

/// Writes a push and its refs as one statement, for each row of `from`.
async fn insert_push(db: &Client, with: &str, params: Params<'_>, from: &str, push: &Push) -> Result<i64> {
    const TYPES: [&str; 9] = ["bytea", "text", "text", "text", "bytea", "text", "bigint", "bigint", "bigint"];
    const REF_TYPES: [&str; 4] = ["bytea[]", "text[]", "text[]", "text[]"];
    let first = params.len() + 1;
    let marks = |first: usize, types: &[&str]| {
        let mark = |(number, kind): (usize, &&str)| format!("${number}::{kind}");
        (first..).zip(types).map(mark).collect::<Vec<_>>().join(", ")
    };
    let sql = format!(
        "{with} opened AS (INSERT INTO pushes ({columns}) SELECT {values} {from} RETURNING push_id), \
         refs AS (INSERT INTO pushed_refs (push_id, position, ref_name, old_oid, new_oid, refusal) \
         SELECT push_id, position - 1, ref_name, old_oid, new_oid, refusal FROM opened, unnest({refs}) \
         WITH ORDINALITY AS pushed (ref_name, old_oid, new_oid, refusal, position)) SELECT count(*) FROM opened",
        columns = PushRow::COLUMNS,
        values = marks(first, &TYPES),
        refs = marks(first + TYPES.len(), &REF_TYPES),
    );
    let row = PushRow::new(push);
    let commands = || push.refs.iter().map(|pushed| &pushed.command);
    let names: Vec<&[u8]> = commands().map(|command| command.ref_name.as_slice()).collect();
    let old: Vec<&str> = commands().map(|command| command.old_oid.as_str()).collect();
    let new: Vec<&str> = commands().map(|command| command.new_oid.as_str()).collect();
    let refusals: Vec<Option<&str>> = push.refs.iter().map(|pushed| pushed.refusal.as_deref()).collect();
    let refs: Params<'_> = &[&names, &old, &new, &refusals];
    one(db, &sql, &[params, &row.to_postgres(), refs].concat()).await
}

pub(super) async fn close_push(db: &Client, id: PushId, closing: &Closing) -> Result<Closed> {
    let sql = format!(
        "WITH closed AS (UPDATE pushes SET outcome = $2, request_bytes = $3, closed_at = $4 WHERE push_id = $1 \
         AND (outcome = '{open}' OR (outcome = '{unknown}' AND $2 <> '{unknown}')) RETURNING push_id), \
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
    let (bytes, at) = (closing.request_bytes.cast_signed(), to_micros(closing.at));
    if one(db, &sql, &[&id, &closing.outcome.as_str(), &bytes, &at, &names, &words]).await? > 0 {
        return Ok(Closed::Now);
    }
    let known = one(db, "SELECT count(*) FROM pushes WHERE push_id = $1", &[&id]).await?;
    Ok(if known > 0 { Closed::Before } else { Closed::Unknown })
}

pub(super) async fn push(db: &Client, id: PushId) -> Result<Option<Push>> {
    let found = pushes_where(db, "push_id = $1", &[&id.as_bytes().as_slice(), &1_i64]).await?;
    Ok(found.into_iter().next())
}

pub(super) async fn pushes(db: &Client, run: &RunId, limit: u32) -> Result<Vec<Push>> {
    pushes_where(db, "run_id = $1", &[&run.as_str(), &i64::from(limit)]).await
}

/// Pushes and their refs, as one statement saw them.
async fn pushes_where(db: &Client, condition: &str, params: Params<'_>) -> Result<Vec<Push>> {
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

pub(super) async fn open_pushes(db: &Client, run: Option<&RunId>) -> Result<Vec<PushId>> {
    // The condition is spelled as the partial index has it, so that the index is used.
    let sql = "SELECT push_id FROM pushes WHERE outcome = 'open'";
    let rows = match run {
        Some(run) => all(db, &format!("{sql} AND run_id = $1"), &[&run.as_str()]).await?,
        None => all(db, sql, &[]).await?,
    };
    rows.iter().map(|row| push_id(row.try_get("push_id")?)).collect()
}

pub(super) async fn prune(db: &mut Client, before: SystemTime, limit: u32) -> Result<u32> {
    let before = to_micros(before);
    let transaction = db.transaction().await?;
    // Rows that another control removes just now are left to it.
    let pushes = "DELETE FROM pushes WHERE push_id IN (SELECT push_id FROM pushes JOIN runs USING (run_id) \
                  WHERE expires_at < $1 LIMIT $2 FOR UPDATE OF pushes SKIP LOCKED)";
    let gone = execute(&transaction, pushes, &[&before, &i64::from(limit)]).await?;
    let runs = "DELETE FROM runs WHERE run_id IN (SELECT run_id FROM runs WHERE expires_at < $1 \
                AND NOT EXISTS (SELECT 1 FROM pushes WHERE pushes.run_id = runs.run_id) LIMIT $2 \
                FOR UPDATE SKIP LOCKED)";
    let left = i64::from(limit).saturating_sub_unsigned(gone);
    let gone = gone + execute(&transaction, runs, &[&before, &left]).await?;
    transaction.commit().await?;
    Ok(u32::try_from(gone).unwrap_or(u32::MAX))
}

fn read_run(row: &Row) -> Result<Run> {
    RunRow::of_postgres(row)?.read()
}

/// The ref of a row, if its push has any.
fn read_ref(row: &Row) -> Result<Option<PushedRef>> {
    let Some(ref_name) = row.try_get("ref_name")? else { return Ok(None) };
    let command = Command { old_oid: row.try_get("old_oid")?, new_oid: row.try_get("new_oid")?, ref_name };
    Ok(Some(PushedRef { command, refusal: row.try_get("refusal")? }))
}

async fn all(db: &impl GenericClient, sql: &str, params: Params<'_>) -> Result<Vec<Row>> {
    let statement = db.prepare_cached(sql).await?;
    Ok(db.query(&statement, params).await?)
}

async fn one(db: &Client, sql: &str, params: Params<'_>) -> Result<i64> {
    let statement = db.prepare_cached(sql).await?;
    Ok(db.query_one(&statement, params).await?.try_get(0)?)
}

async fn execute(db: &impl GenericClient, sql: &str, params: Params<'_>) -> Result<u64> {
    let statement = db.prepare_cached(sql).await?;
    Ok(db.execute(&statement, params).await?)
}
