//! Look-ups of runs, which every question begins with: those that wait at the same time share a query.
//!
//! That costs the server a quarter of a query for each.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use gitdoor_proto::RunId;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::timeout;

use super::failure::Failure;
use super::pool::Pool;
use super::statements;
use crate::run::Run;
use crate::store::StoreError;

/// Look-ups that may wait: at tens of thousands a second, a full queue means that the server stands still.
const QUEUE: usize = 4096;
/// Most look-ups in one query.
const BATCH: usize = 256;
/// Queries at once: a second one, so that those who come while one is under way need not wait for it.
const QUERIES: usize = 2;

struct Lookup {
    id: RunId,
    answer: oneshot::Sender<Result<Option<Run>, StoreError>>,
}

/// Where look-ups wait.
#[derive(Debug)]
pub(super) struct Lookups {
    questions: mpsc::Sender<Lookup>,
    deadline: Duration,
}

impl Lookups {
    /// Starts the task that answers. It ends with this.
    pub(super) fn start(pool: Arc<Pool>) -> Self {
        let (questions, queue) = mpsc::channel(QUEUE);
        let deadline = pool.patience.operation;
        tokio::spawn(answer_all(pool, queue));
        Self { questions, deadline }
    }

    pub(super) async fn run(&self, id: &RunId) -> Result<Option<Run>, StoreError> {
        let (answer, answered) = oneshot::channel();
        self.questions.try_send(Lookup { id: id.clone(), answer }).map_err(|full| match full {
            mpsc::error::TrySendError::Full(_) => StoreError::Busy,
            mpsc::error::TrySendError::Closed(_) => StoreError::Closed,
        })?;
        match timeout(self.deadline, answered).await {
            Ok(answer) => answer.map_err(|_ended| StoreError::Closed)?,
            Err(_late) => Err(StoreError::Postgres(Failure::Late)),
        }
    }
}

async fn answer_all(pool: Arc<Pool>, mut queue: mpsc::Receiver<Lookup>) {
    let slots = Arc::new(Semaphore::new(QUERIES));
    // The semaphore is never closed; and with the last sender the queue is.
    while let Ok(slot) = slots.clone().acquire_owned().await {
        let mut batch = Vec::with_capacity(BATCH);
        if queue.recv_many(&mut batch, BATCH).await == 0 {
            return;
        }
        let pool = pool.clone();
        tokio::spawn(async move {
            answer(&pool, batch).await;
            drop(slot);
        });
    }
}

async fn answer(pool: &Pool, mut batch: Vec<Lookup>) {
    // After a standstill most of those who asked have given up.
    batch.retain(|lookup| !lookup.answer.is_closed());
    let ids: Vec<&str> = batch.iter().map(|lookup| lookup.id.as_str()).collect();
    let found = pool.kept_read(async |client| statements::runs_of(client, &ids).await).await;
    for Lookup { id, answer } in batch {
        // Who has given up takes no answer.
        let run = |runs: &HashMap<String, Result<Run, StoreError>>| runs.get(id.as_str()).cloned().transpose();
        drop(answer.send(found.as_ref().map_err(Clone::clone).and_then(run)));
    }
}
