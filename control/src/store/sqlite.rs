//! The store in one `SQLite` file: no set-up, one control.
//!
//! Writes go to one thread that commits them in groups, each group synced to disk before any of it is answered.
//! Look-ups are a few microseconds and run where they are asked, on a connection of their own. Lists take longer: they
//! have another, and run on a thread that may wait.

mod open;
mod pushes;
mod statements;
mod writer;

use std::fs::File;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use gitdoor_proto::{BearerHash, RunId};
use rusqlite::Connection;

use self::writer::Writer;
use super::{Adopted, Claimed, Closed, Limit, LiveRuns, Opened, Registered, Rotated, Store, StoreError};
use crate::fleet::ControlId;
use crate::mirror::MirrorToken;
use crate::push::{Closing, Push, PushId};
use crate::run::{Binding, Run};

pub use self::open::OpenError;

/// A store in a file.
#[derive(Debug)]
pub struct Sqlite {
    // Before the lock in `writer`: fields are dropped in order, and the lock outlives both connections.
    reader: Mutex<Connection>,
    lists: Arc<Mutex<Lists>>,
    writer: Writer,
}

/// What lists are read by. One that is under way may outlive the store: it has a hold of the lock of its own.
#[derive(Debug)]
struct Lists {
    connection: Connection,
    _lock: File,
}

impl Sqlite {
    /// Opens a store, or makes a new one where there is no file or an empty one. Whatever else is there is left
    /// as it is.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let open::Files { lock, writer, reader, lists } = open::open(path)?;
        let held = lock.try_clone().map_err(|source| OpenError::File { path: path.to_owned(), source })?;
        let lists = Arc::new(Mutex::new(Lists { connection: lists, _lock: held }));
        let writer = Writer::start(writer, lock).map_err(|source| OpenError::Thread { source })?;
        Ok(Self { reader: Mutex::new(reader), lists, writer })
    }

    /// Reads inline: a look-up takes 2 to 9 microseconds, a hop to another thread more.
    fn read<T>(&self, work: impl FnOnce(&Connection) -> Result<T, StoreError>) -> Result<T, StoreError> {
        work(&self.reader.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads many rows, which takes up to some milliseconds.
    async fn list<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let lists = self.lists.clone();
        let listed = move || work(&lists.lock().unwrap_or_else(PoisonError::into_inner).connection);
        // It is not waited for when the runtime ends.
        tokio::task::spawn_blocking(listed).await.unwrap_or(Err(StoreError::Closed))
    }
}

impl Store for Sqlite {
    async fn register(&self, run: &Run) -> Result<Registered, StoreError> {
        let run = run.clone();
        self.writer.write(move |db| statements::register(db, &run)).await
    }

    async fn adopt(&self, id: &RunId, budget: Duration, now: SystemTime) -> Result<Adopted, StoreError> {
        let id = id.clone();
        self.writer.write(move |db| statements::adopt(db, &id, budget, now)).await
    }

    async fn rotate(&self, id: &RunId, hash: BearerHash, now: SystemTime) -> Result<Rotated, StoreError> {
        let id = id.clone();
        self.writer.write(move |db| statements::rotate(db, &id, hash, now)).await
    }

    async fn revoke(&self, id: &RunId, now: SystemTime) -> Result<Option<Run>, StoreError> {
        let id = id.clone();
        self.writer.write(move |db| statements::revoke(db, &id, now)).await
    }

    async fn run(&self, id: &RunId) -> Result<Option<Run>, StoreError> {
        self.read(|db| statements::run(db, id))
    }

    async fn runs(&self, after: Option<&RunId>, limit: u32) -> Result<Vec<Run>, StoreError> {
        let after = after.cloned();
        self.list(move |db| statements::runs(db, after.as_ref(), limit)).await
    }

    async fn mark_used(&self, id: &RunId, generation: u64, now: SystemTime) -> Result<bool, StoreError> {
        let id = id.clone();
        self.writer.write(move |db| statements::mark_used(db, &id, generation, now)).await
    }

    async fn bind(
        &self,
        id: &RunId,
        generation: u64,
        binding: &Binding,
        now: SystemTime,
    ) -> Result<Option<Run>, StoreError> {
        let (id, binding) = (id.clone(), binding.clone());
        self.writer.write(move |db| statements::bind(db, &id, generation, &binding, now)).await
    }

    async fn see_default_branch(&self, id: &RunId, branch: &str) -> Result<Option<Run>, StoreError> {
        let (id, branch) = (id.clone(), branch.to_owned());
        self.writer.write(move |db| statements::see_default_branch(db, &id, &branch)).await
    }

    async fn open_push(
        &self,
        push: &Push,
        generation: u64,
        Limit { most, lapsed }: Limit<'_>,
        now: SystemTime,
    ) -> Result<Opened, StoreError> {
        let (push, lapsed) = (push.clone(), lapsed.to_vec());
        let open = move |db: &Connection| pushes::open(db, &push, generation, Limit { most, lapsed: &lapsed }, now);
        self.writer.write(open).await
    }

    async fn record_refused(&self, push: &Push) -> Result<(), StoreError> {
        let push = push.clone();
        self.writer.write(move |db| pushes::record_refused(db, &push)).await
    }

    async fn close_push(&self, id: PushId, closing: &Closing) -> Result<Closed, StoreError> {
        let closing = closing.clone();
        self.writer.write(move |db| pushes::close(db, id, &closing, None)).await
    }

    async fn push(&self, id: PushId) -> Result<Option<Push>, StoreError> {
        self.read(|db| pushes::push(db, id))
    }

    async fn pushes(&self, run: &RunId, after: Option<PushId>, limit: u32) -> Result<Vec<Push>, StoreError> {
        let run = run.clone();
        self.list(move |db| pushes::pushes(db, &run, after, limit)).await
    }

    async fn unreported(&self, run: &RunId) -> Result<Vec<PushId>, StoreError> {
        self.read(|db| pushes::unreported(db, run))
    }

    async fn take_push(&self, id: PushId, run: &RunId, control: ControlId) -> Result<bool, StoreError> {
        let run = run.clone();
        self.writer.write(move |db| pushes::take(db, id, &run, control)).await
    }

    async fn lose_push(&self, id: PushId, control: ControlId, now: SystemTime) -> Result<bool, StoreError> {
        let unknown = Closing::unknown(now);
        let closed = self.writer.write(move |db| pushes::close(db, id, &unknown, Some(control))).await?;
        Ok(closed == Closed::Now)
    }

    async fn beat(&self, _: ControlId) -> Result<(), StoreError> {
        // The file's lock says that this process is alive, and the only one.
        Ok(())
    }

    async fn leave(&self, _: ControlId) -> Result<(), StoreError> {
        // The file's lock goes with this process.
        Ok(())
    }

    async fn claim_pushes(&self, control: ControlId) -> Result<Vec<Claimed>, StoreError> {
        self.writer.write(move |db| pushes::claim(db, control)).await
    }

    async fn ended_since(&self, time: SystemTime) -> Result<Vec<RunId>, StoreError> {
        self.read(|db| statements::ended_since(db, time))
    }

    async fn record_mirror_token(&self, row: &MirrorToken) -> Result<(), StoreError> {
        let row = row.clone();
        self.writer.write(move |db| statements::record_mirror_token(db, &row)).await
    }

    async fn mirror_tokens(&self, limit: u32) -> Result<Vec<MirrorToken>, StoreError> {
        self.list(move |db| statements::mirror_tokens(db, limit)).await
    }

    async fn live_runs(&self, now: SystemTime) -> Result<Vec<LiveRuns>, StoreError> {
        self.read(|db| statements::live_runs(db, now))
    }

    async fn prune(&self, before: SystemTime, limit: u32) -> Result<u32, StoreError> {
        self.writer.write(move |db| statements::prune(db, before, limit)).await
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(std::sync::Arc::new(error))
    }
}
