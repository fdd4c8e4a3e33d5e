//! The store in PostgreSQL: for several controls that share the work.
//!
//! Each operation is one statement or one transaction of the primary, durable before it is answered. Look-ups of
//! runs that wait at the same time share a query.

mod controls;
mod failure;
mod lookups;
mod open;
mod pool;
mod pushes;
#[cfg(test)]
pub(crate) mod server;
mod statements;
mod target;
#[cfg(test)]
mod tests;

use std::num::NonZeroU16;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use gitdoor_proto::{BearerHash, RunId};

use self::lookups::Lookups;
use self::pool::{Patience, Pool};
use self::target::Target;
use super::{Adopted, Claimed, Closed, Limit, LiveRuns, Opened, Registered, Rotated, Store, StoreError};
use crate::fleet::ControlId;
use crate::mirror::MirrorToken;
use crate::push::{Closing, Push, PushId};
use crate::run::{Binding, Run};

pub use self::failure::{Cause, Failure};
pub use self::open::OpenError;

/// Where the server is, and how it is used.
#[derive(Clone)]
pub struct Config {
    /// Its URL, without a password.
    pub url: String,
    /// The file that holds its password.
    pub password_file: Option<PathBuf>,
    /// Authorities for its certificate, in PEM, instead of the system's.
    pub ca: Option<PathBuf>,
    /// Most connections to it.
    pub connections: NonZeroU16,
}

/// A store in a server's database.
#[derive(Debug)]
pub struct Postgres {
    pool: Arc<Pool>,
    lookups: Lookups,
}

impl Postgres {
    /// Opens a store, or makes a new one in a database that has none. A schema of a later version is refused.
    pub async fn open(config: &Config) -> Result<Self, OpenError> {
        Self::open_with(config, Patience::default()).await
    }

    async fn open_with(config: &Config, patience: Patience) -> Result<Self, OpenError> {
        let pool = Arc::new(Pool::new(Target::new(config)?, config.connections.get().into(), patience)?);
        open::migrate(&mut pool.first().await?).await?;
        let lookups = Lookups::start(pool.clone());
        Ok(Self { pool, lookups })
    }
}

impl Store for Postgres {
    async fn register(&self, run: &Run) -> Result<Registered, StoreError> {
        self.pool.once(async |db| statements::register(db, run).await).await
    }

    async fn adopt(&self, id: &RunId, budget: Duration, now: SystemTime) -> Result<Adopted, StoreError> {
        self.pool.once(async |db| statements::adopt(db, id, budget, now).await).await
    }

    async fn rotate(&self, id: &RunId, hash: BearerHash, now: SystemTime) -> Result<Rotated, StoreError> {
        self.pool.once(async |db| statements::rotate(db, id, hash, now).await).await
    }

    async fn revoke(&self, id: &RunId, now: SystemTime) -> Result<Option<Run>, StoreError> {
        self.pool.kept(async |db| statements::revoke(db, id, now).await).await
    }

    async fn run(&self, id: &RunId) -> Result<Option<Run>, StoreError> {
        self.lookups.run(id).await
    }

    async fn runs(&self, after: Option<&RunId>, limit: u32) -> Result<Vec<Run>, StoreError> {
        self.pool.read(async |db| statements::runs(db, after, limit).await).await
    }

    async fn mark_used(&self, id: &RunId, generation: u64, now: SystemTime) -> Result<bool, StoreError> {
        self.pool.once(async |db| statements::mark_used(db, id, generation, now).await).await
    }

    async fn bind(
        &self,
        id: &RunId,
        generation: u64,
        binding: &Binding,
        now: SystemTime,
    ) -> Result<Option<Run>, StoreError> {
        self.pool.once(async |db| statements::bind(db, id, generation, binding, now).await).await
    }

    async fn see_default_branch(&self, id: &RunId, branch: &str) -> Result<Option<Run>, StoreError> {
        self.pool.once(async |db| statements::see_default_branch(db, id, branch).await).await
    }

    async fn open_push(
        &self,
        push: &Push,
        generation: u64,
        limit: Limit<'_>,
        now: SystemTime,
    ) -> Result<Opened, StoreError> {
        self.pool.once(async |db| pushes::open(db, push, generation, limit, now).await).await
    }

    async fn record_refused(&self, push: &Push) -> Result<(), StoreError> {
        self.pool.once(async |db| pushes::record_refused(db, push).await).await
    }

    async fn close_push(&self, id: PushId, closing: &Closing) -> Result<Closed, StoreError> {
        self.pool.kept(async |db| pushes::close(db, id, closing, None).await).await
    }

    async fn push(&self, id: PushId) -> Result<Option<Push>, StoreError> {
        self.pool.read(async |db| pushes::push(db, id).await).await
    }

    async fn pushes(&self, run: &RunId, after: Option<PushId>, limit: u32) -> Result<Vec<Push>, StoreError> {
        self.pool.read(async |db| pushes::pushes(db, run, after, limit).await).await
    }

    async fn unreported(&self, run: &RunId) -> Result<Vec<PushId>, StoreError> {
        self.pool.kept_read(async |db| pushes::unreported(db, run).await).await
    }

    async fn take_push(&self, id: PushId, run: &RunId, control: ControlId) -> Result<bool, StoreError> {
        self.pool.kept(async |db| pushes::take(db, id, run, control).await).await
    }

    async fn lose_push(&self, id: PushId, control: ControlId, now: SystemTime) -> Result<bool, StoreError> {
        let unknown = Closing::unknown(now);
        let closed = self.pool.kept(async |db| pushes::close(db, id, &unknown, Some(control)).await).await?;
        Ok(closed == Closed::Now)
    }

    async fn beat(&self, control: ControlId) -> Result<(), StoreError> {
        self.pool.kept(async |db| controls::beat(db, control).await).await
    }

    async fn leave(&self, control: ControlId) -> Result<(), StoreError> {
        self.pool.once(async |db| controls::leave(db, control).await).await
    }

    async fn claim_pushes(&self, control: ControlId) -> Result<Vec<Claimed>, StoreError> {
        self.pool.kept(async |db| controls::claim(db, control).await).await
    }

    async fn ended_since(&self, time: SystemTime) -> Result<Vec<RunId>, StoreError> {
        self.pool.kept_read(async |db| statements::ended_since(db, time).await).await
    }

    async fn record_mirror_token(&self, row: &MirrorToken) -> Result<(), StoreError> {
        self.pool.once(async |db| statements::record_mirror_token(db, row).await).await
    }

    async fn mirror_tokens(&self, limit: u32) -> Result<Vec<MirrorToken>, StoreError> {
        self.pool.read(async |db| statements::mirror_tokens(db, limit).await).await
    }

    async fn live_runs(&self, now: SystemTime) -> Result<Vec<LiveRuns>, StoreError> {
        self.pool.read(async |db| statements::live_runs(db, now).await).await
    }

    async fn prune(&self, before: SystemTime, limit: u32) -> Result<u32, StoreError> {
        self.pool.once(async |db| statements::prune(db, before, limit).await).await
    }
}

impl std::fmt::Debug for Config {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The URL may hold a password by mistake.
        f.debug_struct("Config").finish_non_exhaustive()
    }
}

#[cfg(test)]
impl Postgres {
    /// As [`Self::open`], for a test that is not about a server's times: on a machine that has other things to do, it
    /// waits.
    pub(crate) async fn open_patiently(config: &Config) -> Result<Self, OpenError> {
        const LONG: Duration = Duration::from_mins(1);
        Self::open_with(config, Patience { operation: LONG, connection: LONG }).await
    }
}

#[cfg(test)]
impl Config {
    /// Four connections to a server.
    pub(crate) fn new(url: &str) -> Self {
        const FOUR: NonZeroU16 = NonZeroU16::new(4).unwrap();
        Self { url: url.to_owned(), password_file: None, ca: None, connections: FOUR }
    }
}
