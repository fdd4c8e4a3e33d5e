//! The statements of each operation on runs. A run changes in a transaction that has locked it: atomic with any number
//! of controls.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use deadpool_postgres::{Client, GenericClient};
use gitdoor_proto::{BearerHash, RunId};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::clock::to_micros;
use crate::mirror::MirrorToken;
use crate::run::{Binding, Run, Transition};
use crate::store::row::{self, LIVE_RUNS, MirrorTokenRow, RunRow, run_id};
use crate::store::{Adopted, LiveRuns, Registered, Rotated, StoreError};

pub(super) type Result<T> = std::result::Result<T, StoreError>;
pub(super) type Params<'a> = &'a [&'a (dyn ToSql + Sync)];

/// Each by its id. One that cannot be read is no reason not to read the others.
pub(super) async fn runs_of(db: &Client, ids: &[&str]) -> Result<HashMap<String, Result<Run>>> {
    let sql = format!("SELECT {} FROM runs WHERE run_id = ANY($1)", RunRow::COLUMNS);
    let rows = all(db, &sql, &[&ids]).await?;
    rows.iter().map(|row| Ok((row.try_get("run_id")?, read_run(row)))).collect()
}

pub(super) async fn run(db: &impl GenericClient, id: &RunId, locked: &str) -> Result<Option<Run>> {
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
    let marks = marks(values.len());
    let sql = format!("INSERT INTO runs ({}) VALUES ({marks}) ON CONFLICT DO NOTHING", RunRow::COLUMNS);
    if execute(db, &sql, &values).await? > 0 {
        return Ok(Registered::Created(new.clone()));
    }
    // Gone only if it was pruned between the two.
    let again = change(db, &new.id, |old| old.register_again(new)).await?;
    again.map(Into::into).ok_or(StoreError::RolledBack)
}

/// The parameters of an insert of so many columns.
fn marks(columns: usize) -> String {
    (1..=columns).map(|number| format!("${number}")).collect::<Vec<_>>().join(", ")
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

pub(super) async fn ended_since(db: &Client, time: SystemTime) -> Result<Vec<RunId>> {
    let rows = all(db, "SELECT run_id FROM runs WHERE revoked_at > $1", &[&to_micros(time)]).await?;
    rows.iter().map(|row| run_id(row.try_get("run_id")?)).collect()
}

pub(super) async fn record_mirror_token(db: &Client, row: &MirrorToken) -> Result<()> {
    let row = MirrorTokenRow::new(row);
    let values = row.to_postgres();
    let sql = format!("INSERT INTO mirror_tokens ({}) VALUES ({})", MirrorTokenRow::COLUMNS, marks(values.len()));
    execute(db, &sql, &values).await?;
    Ok(())
}

pub(super) async fn mirror_tokens(db: &Client, limit: u32) -> Result<Vec<MirrorToken>> {
    let columns = MirrorTokenRow::COLUMNS;
    let sql = format!("SELECT {columns} FROM mirror_tokens ORDER BY handed_out_at DESC, mirror_token_id LIMIT $1");
    let rows = all(db, &sql, &[&i64::from(limit)]).await?;
    rows.iter().map(|row| MirrorTokenRow::of_postgres(row)?.read()).collect()
}

pub(super) async fn live_runs(db: &Client, now: SystemTime) -> Result<Vec<LiveRuns>> {
    let rows = all(db, LIVE_RUNS, &[&to_micros(now)]).await?;
    rows.iter()
        .map(|row| row::live_runs(row.try_get("identity")?, row.try_get("bound")?, row.try_get("count")?))
        .collect()
}

pub(super) async fn prune(db: &mut Client, before: SystemTime, limit: u32) -> Result<u32> {
    let (before, most) = (to_micros(before), i64::from(limit));
    let transaction = db.transaction().await?;
    // By the runs that ended first, so that a batch looks at no more of the ledger than it removes. Those that another
    // control removes just now are left to it.
    let ended = "SELECT run_id FROM runs WHERE expires_at < $1 ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED";
    let ended = all(&transaction, ended, &[&before, &most]).await?;
    let ended: Vec<&str> = ended.iter().map(|row| row.try_get("run_id")).collect::<std::result::Result<_, _>>()?;
    let of_runs = [
        "DELETE FROM pushed_refs WHERE (push_id, position) IN (SELECT push_id, position FROM pushed_refs \
         JOIN pushes USING (push_id) WHERE run_id = ANY($1) LIMIT $2)",
        "DELETE FROM pushes WHERE push_id IN (SELECT push_id FROM pushes WHERE run_id = ANY($1) AND NOT EXISTS \
         (SELECT 1 FROM pushed_refs WHERE pushed_refs.push_id = pushes.push_id) LIMIT $2)",
        "DELETE FROM runs WHERE run_id IN (SELECT run_id FROM runs WHERE run_id = ANY($1) AND NOT EXISTS \
         (SELECT 1 FROM pushes WHERE pushes.run_id = runs.run_id) LIMIT $2)",
    ];
    let mut gone = 0;
    for sql in of_runs {
        gone += execute(&transaction, sql, &[&ended, &most.saturating_sub_unsigned(gone)]).await?;
    }
    let mirrors = "DELETE FROM mirror_tokens WHERE mirror_token_id IN (SELECT mirror_token_id FROM mirror_tokens \
                   WHERE expires_at < $1 LIMIT $2 FOR UPDATE SKIP LOCKED)";
    gone += execute(&transaction, mirrors, &[&before, &most.saturating_sub_unsigned(gone)]).await?;
    transaction.commit().await?;
    Ok(u32::try_from(gone).unwrap_or(u32::MAX))
}

fn read_run(row: &Row) -> Result<Run> {
    RunRow::of_postgres(row)?.read()
}

pub(super) async fn all(db: &impl GenericClient, sql: &str, params: Params<'_>) -> Result<Vec<Row>> {
    let statement = db.prepare_cached(sql).await?;
    Ok(db.query(&statement, params).await?)
}

pub(super) async fn one(db: &impl GenericClient, sql: &str, params: Params<'_>) -> Result<i64> {
    let statement = db.prepare_cached(sql).await?;
    Ok(db.query_one(&statement, params).await?.try_get(0)?)
}

pub(super) async fn execute(db: &impl GenericClient, sql: &str, params: Params<'_>) -> Result<u64> {
    let statement = db.prepare_cached(sql).await?;
    Ok(db.execute(&statement, params).await?)
}
