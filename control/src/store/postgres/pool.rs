//! The connections: so many and no more, each operation on one of them and within a time.
//!
//! A server that is gone or silent is an error within a [`Patience`], and a new connection is tried by the next
//! operation. Who comes when enough are waiting is told so at once. What ends runs and keeps the records of pushes has
//! places of its own, and a connection that no other operation takes.

use std::time::Duration;

use deadpool_postgres::{
    Client, Hook, HookError, Manager, ManagerConfig, Object, RecyclingMethod, Runtime, Timeouts,
};
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout, timeout_at};

use super::failure::Failure;
use super::open::{OpenError, prepare};
use super::target::Target;
use crate::store::StoreError;

/// Longest time for the first connection, and for the name of a server to be looked up.
const START: Duration = Duration::from_secs(10);
/// Operations that may wait for each connection. They take a millisecond or so, and are told when it is hopeless.
const WAITING_PER_CONNECTION: usize = 32;
/// A connection is replaced when it is this old: memory of the server, and new addresses behind its name.
const LIFETIME: Duration = Duration::from_mins(30);
/// A connection that was not used for this long may have been dropped on its way by something that told nobody.
const IDLE: Duration = Duration::from_mins(5);

/// How long a server is waited for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    /// Longest time of an operation. A data plane waits two seconds for an answer to its question.
    pub(super) operation: Duration,
    /// Longest wait for a connection that others have.
    pub(super) connection: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { operation: Duration::from_millis(1_500), connection: Duration::from_secs(1) }
    }
}

/// The connections to a server.
#[derive(Debug)]
pub(super) struct Pool {
    pub(super) patience: Patience,
    connections: deadpool_postgres::Pool,
    /// For operations that others must not keep out.
    kept: Semaphore,
    /// For all others.
    places: Semaphore,
    /// For those of them that have, or now ask for, a connection: one fewer than there are.
    at_work: Semaphore,
}

impl Pool {
    /// A pool of so many connections; none is made yet.
    pub(super) fn new(target: Target, size: usize, patience: Patience) -> Result<Self, OpenError> {
        let Patience { operation, connection } = patience;
        let fast = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = Manager::from_config(target.server, target.tls, fast);
        let builder = deadpool_postgres::Pool::builder(manager)
            .max_size(size)
            .timeouts(Timeouts { wait: Some(connection), create: Some(operation), recycle: Some(operation) })
            .runtime(Runtime::Tokio1)
            .post_create(Hook::async_fn(move |client, _| {
                Box::pin(async move {
                    let unfit = prepare(client, operation).await.map_err(HookError::Backend)?;
                    unfit.map_or(Ok(()), |why| Err(HookError::message(why)))
                })
            }))
            .pre_recycle(Hook::sync_fn(|_, metrics| {
                if metrics.age() > LIFETIME || metrics.last_used() > IDLE {
                    return Err(HookError::message("its time is over"));
                }
                Ok(())
            }));
        let connections = builder.build().map_err(|_no_runtime| OpenError::Pool)?;
        let places = || Semaphore::new(size + size * WAITING_PER_CONNECTION);
        // With a single connection there is none to keep.
        let at_work = Semaphore::new(size.saturating_sub(1).max(1));
        Ok(Self { patience, connections, kept: places(), places: places(), at_work })
    }

    /// The first connection, for which there is more time.
    pub(super) async fn first(&self) -> Result<Client, OpenError> {
        let patient = Timeouts { wait: Some(START), create: Some(START), recycle: Some(START) };
        Ok(self.connections.timeout_get(&patient).await.map_err(StoreError::from)?)
    }

    /// Does an operation once.
    pub(super) async fn once<T, W>(&self, work: W) -> Result<T, StoreError>
    where
        W: AsyncFnOnce(&mut Client) -> Result<T, StoreError>,
    {
        let until = Instant::now() + self.patience.operation;
        let _place = self.places.try_acquire().map_err(|_full| StoreError::Busy)?;
        let at_work = timeout(self.patience.connection, self.at_work.acquire()).await;
        let _at_work = at_work.map_err(|_elapsed| StoreError::Busy)?.map_err(|_closed| StoreError::Closed)?;
        self.by(until, work).await
    }

    /// Does an operation once that no others may keep out.
    pub(super) async fn kept<T, W>(&self, work: W) -> Result<T, StoreError>
    where
        W: AsyncFnOnce(&mut Client) -> Result<T, StoreError>,
    {
        let until = Instant::now() + self.patience.operation;
        let _place = self.kept.try_acquire().map_err(|_full| StoreError::Busy)?;
        self.by(until, work).await
    }

    async fn by<T, W>(&self, until: Instant, work: W) -> Result<T, StoreError>
    where
        W: AsyncFnOnce(&mut Client) -> Result<T, StoreError>,
    {
        let late = |_elapsed| StoreError::Postgres(Failure::Late);
        let mut client = timeout_at(until, self.connections.get()).await.map_err(late)??;
        let done = timeout_at(until, work(&mut client)).await.map_err(late).flatten();
        if let Err(StoreError::Postgres(failure)) = &done
            && failure.ends_connection()
        {
            // Taken out of the pool and dropped, which cuts it: whoever came next would wait behind what is stuck.
            drop(Object::take(client));
            self.connections.retain(|_, _| false);
        }
        done
    }

    /// Does an operation that changes nothing: again, when the connection turns out to have been lost.
    pub(super) async fn read<T, W>(&self, work: W) -> Result<T, StoreError>
    where
        W: AsyncFnOnce(&mut Client) -> Result<T, StoreError> + Clone,
    {
        match self.once(work.clone()).await {
            Err(StoreError::Postgres(failure)) if failure.is_lost() => self.once(work).await,
            done => done,
        }
    }

    /// As [`Self::read`], and no others may keep it out.
    pub(super) async fn kept_read<T, W>(&self, work: W) -> Result<T, StoreError>
    where
        W: AsyncFnOnce(&mut Client) -> Result<T, StoreError> + Clone,
    {
        match self.kept(work.clone()).await {
            Err(StoreError::Postgres(failure)) if failure.is_lost() => self.kept(work).await,
            done => done,
        }
    }
}
