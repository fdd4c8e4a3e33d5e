//! The statements by which controls know of each other: who is alive, and who answers for what the dead left open.

use deadpool_postgres::Client;
use tokio_postgres::Row;

use super::statements::{Result, all, execute};
use crate::clock::from_micros;
use crate::fleet::{ControlId, DEAD_AFTER};
use crate::store::Claimed;
use crate::store::row::{push_id, run_id};

pub(super) async fn beat(db: &Client, control: ControlId) -> Result<()> {
    // Rows that another control removes just now are left to it. A day is far longer than it takes to claim what a
    // dead control left; one that comes back after it has a new row.
    let sql = "WITH gone AS (DELETE FROM controls WHERE control_id IN (SELECT control_id FROM controls \
               WHERE seen_at < clock_timestamp() - interval '1 day' AND control_id <> $1 FOR UPDATE SKIP LOCKED)) \
               INSERT INTO controls (control_id, seen_at) VALUES ($1, clock_timestamp()) \
               ON CONFLICT (control_id) DO UPDATE SET seen_at = excluded.seen_at";
    execute(db, sql, &[&control.as_bytes().as_slice()]).await.map(drop)
}

pub(super) async fn leave(db: &Client, control: ControlId) -> Result<()> {
    let sql = "DELETE FROM controls WHERE control_id = $1";
    execute(db, sql, &[&control.as_bytes().as_slice()]).await.map(drop)
}

pub(super) async fn claim(db: &Client, control: ControlId) -> Result<Vec<Claimed>> {
    // Those that another control claims just now are left to it. This control's own are returned, too: the answer to
    // an earlier claim may have been lost.
    let sql = format!(
        "WITH orphans AS (SELECT push_id FROM pushes WHERE outcome = 'open' AND control IS DISTINCT FROM $1 \
         AND NOT EXISTS (SELECT 1 FROM controls WHERE control_id = pushes.control \
         AND seen_at > clock_timestamp() - interval '{} s') FOR UPDATE SKIP LOCKED), \
         claimed AS (UPDATE pushes SET control = $1 FROM orphans WHERE pushes.push_id = orphans.push_id \
         RETURNING pushes.push_id, pushes.run_id), \
         own AS (SELECT push_id, run_id FROM pushes WHERE outcome = 'open' AND control = $1 \
         UNION ALL SELECT push_id, run_id FROM claimed) \
         SELECT push_id, run_id, expires_at FROM own JOIN runs USING (run_id)",
        DEAD_AFTER.as_secs(),
    );
    all(db, &sql, &[&control.as_bytes().as_slice()]).await?.iter().map(read_claimed).collect()
}

fn read_claimed(row: &Row) -> Result<Claimed> {
    Ok(Claimed {
        push: push_id(row.try_get("push_id")?)?,
        run: run_id(row.try_get("run_id")?)?,
        expires_at: from_micros(row.try_get("expires_at")?),
    })
}
