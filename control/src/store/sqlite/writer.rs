//! The one writer: a thread that takes what waits, commits it as one transaction, and answers after the commit.
//!
//! A sync to disk costs the same for one write as for a hundred. Each write has a savepoint, so that one that
//! fails takes no other with it.

use std::fs::File;
use std::thread::JoinHandle;

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use crate::store::StoreError;

/// Writes that may wait. At tens of thousands a second a full queue means that the disk stands still.
const QUEUE: usize = 4096;
/// Most writes in one commit: bounds the time that the first of them waits.
const GROUP: usize = 128;

/// Does its work, unless its group has failed already, and returns what answers the caller once the outcome of
/// the commit is known.
type Job = Box<dyn FnOnce(Result<&Connection, StoreError>) -> (Transaction, Answer) + Send>;
type Answer = Box<dyn FnOnce(Result<(), StoreError>)>;

/// How a job leaves the transaction of its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Transaction {
    /// As it was, with or without what the job wrote.
    Sound,
    /// Gone, or with half of a job in it.
    Broken,
}

/// The handle of the writer's thread. Dropping it waits for what was queued.
#[derive(Debug)]
pub(super) struct Writer {
    jobs: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Writer {
    /// Starts the thread. It holds the store's lock until it ends.
    pub(super) fn start(connection: Connection, lock: File) -> std::io::Result<Self> {
        let (jobs, queue) = mpsc::channel(QUEUE);
        let thread = std::thread::Builder::new().name("store-writer".into()).spawn(move || {
            write_all(&connection, queue);
            drop(connection);
            drop(lock);
        })?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread) })
    }

    /// Queues a write and waits until it is durable. A caller that leaves does not undo it.
    pub(super) async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        let job: Job = Box::new(move |group| {
            let (transaction, done) = match group {
                Ok(connection) => in_savepoint(connection, work),
                Err(error) => (Transaction::Broken, Err(error)),
            };
            // A caller that left takes no answer.
            let answer = move |commit: Result<(), StoreError>| {
                drop(reply.send(done.and_then(|value| commit.map(|()| value))));
            };
            (transaction, Box::new(answer))
        });
        let jobs = self.jobs.as_ref().ok_or(StoreError::Closed)?;
        jobs.try_send(job).map_err(|full| match full {
            mpsc::error::TrySendError::Full(_) => StoreError::Busy,
            mpsc::error::TrySendError::Closed(_) => StoreError::Closed,
        })?;
        answer.await.map_err(|_ended| StoreError::Closed)?
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        drop(self.jobs.take());
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has nothing more to write.
            drop(thread.join());
        }
    }
}

fn write_all(connection: &Connection, mut queue: mpsc::Receiver<Job>) {
    let mut group = Vec::with_capacity(GROUP);
    while queue.blocking_recv_many(&mut group, GROUP) > 0 {
        commit(connection, group.drain(..));
    }
}

/// Runs a group as one transaction and answers every job of it.
fn commit(connection: &Connection, jobs: impl Iterator<Item = Job>) {
    let mut answers = Vec::with_capacity(GROUP);
    let mut group = run(connection, "BEGIN IMMEDIATE");
    for job in jobs {
        let (transaction, answer) = job(group.clone().map(|()| connection));
        answers.push(answer);
        if transaction == Transaction::Broken && group.is_ok() {
            group = Err(StoreError::RolledBack);
        }
    }
    let outcome = group.and_then(|()| run(connection, "COMMIT"));
    if outcome.is_err() && !connection.is_autocommit() {
        // A commit that failed leaves its transaction open; the next group must not go on in it.
        drop(run(connection, "ROLLBACK"));
    }
    for answer in answers {
        answer(outcome.clone());
    }
}

fn in_savepoint<T>(
    connection: &Connection,
    work: impl FnOnce(&Connection) -> Result<T, StoreError>,
) -> (Transaction, Result<T, StoreError>) {
    if let Err(error) = run(connection, "SAVEPOINT job") {
        return (Transaction::Broken, Err(error));
    }
    let done = work(connection);
    let end = if done.is_ok() { "RELEASE job" } else { "ROLLBACK TO job; RELEASE job" };
    // When the disk is full, or worse, SQLite has rolled the whole group back, and there is no savepoint to end.
    match run(connection, end) {
        Ok(()) => (Transaction::Sound, done),
        Err(error) => (Transaction::Broken, done.and(Err(error))),
    }
}

fn run(connection: &Connection, sql: &str) -> Result<(), StoreError> {
    Ok(connection.execute_batch(sql)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn writer() -> (tempfile::TempDir, std::path::PathBuf, Writer) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("db");
        let connection = Connection::open(&path).unwrap();
        connection.execute_batch("PRAGMA journal_mode=WAL; CREATE TABLE t (x INTEGER PRIMARY KEY) STRICT").unwrap();
        let lock = File::create(dir.path().join("lock")).unwrap();
        (dir, path, Writer::start(connection, lock).unwrap())
    }

    fn insert(x: i64) -> impl FnOnce(&Connection) -> Result<usize, StoreError> + Send + 'static {
        move |db| Ok(db.execute("INSERT INTO t VALUES (?1)", [x])?)
    }

    fn stored(path: &std::path::Path) -> Vec<i64> {
        let db = Connection::open(path).unwrap();
        let mut rows = db.prepare("SELECT x FROM t ORDER BY x").unwrap();
        rows.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    }

    #[tokio::test]
    async fn a_write_that_fails_takes_no_other_of_its_group_with_it() {
        let (_dir, path, writer) = writer();
        let half = writer.write(|db| {
            insert(5)(db)?;
            insert(1)(db)
        });
        let (one, again, two, half) =
            tokio::join!(writer.write(insert(1)), writer.write(insert(1)), writer.write(insert(2)), half);
        assert!(one.is_ok() && two.is_ok());
        assert!(matches!(again, Err(StoreError::Sqlite(_))) && matches!(half, Err(StoreError::Sqlite(_))));
        assert_eq!(stored(&path), [1, 2]);
    }

    #[tokio::test]
    async fn a_group_whose_transaction_is_lost_is_answered_as_failed_and_the_next_one_works() {
        let (_dir, path, writer) = writer();
        let lost = writer.write(|db| {
            insert(7)(db)?;
            Ok(db.execute_batch("ROLLBACK")?)
        });
        let (before, lost, after) = tokio::join!(writer.write(insert(1)), lost, writer.write(insert(2)));
        assert!(lost.is_err());
        // Whether they shared its group is the queue's affair; what was answered as done must be there.
        let mut done = Vec::new();
        before.is_ok().then(|| done.push(1));
        after.is_ok().then(|| done.push(2));
        assert_eq!(stored(&path), done);
        assert!(writer.write(insert(3)).await.is_ok());
    }

    #[tokio::test]
    async fn what_was_queued_is_written_before_the_store_closes() {
        let (_dir, path, writer) = writer();
        for x in 0..100 {
            // Polled once, it is queued; its caller then leaves.
            let write = std::pin::pin!(writer.write(insert(x)));
            assert!(futures_util::poll!(write).is_pending() || x >= 0);
        }
        drop(writer);
        assert_eq!(stored(&path).len(), 100);
    }
}
