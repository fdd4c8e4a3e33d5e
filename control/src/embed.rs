//! Control in another program: a store in a file, its services called, and its gate for a data plane of the same process.
//! There is no other listener, nothing is measured, and no signal is heard.

use std::io;
use std::path::Path;
use std::time::Duration;

use gitdoor_proto::v1::runs_server::Runs;
use gitdoor_proto::{RunId, v1};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tonic::transport;

use crate::clock;
use crate::engine::{Engine, Services, Upkeep};
use crate::forge::Forge;
use crate::listen;
use crate::push::Closing;
use crate::server::{self, Failure};
use crate::service::listener as services;
use crate::service::shown;
use crate::store::sqlite::{OpenError, Sqlite};
use crate::store::{Store, StoreError};
use crate::trust::Side;

/// How long rows are kept that no program of this kind would prune: its store goes with its run.
const KEEP: Duration = Duration::from_hours(24 * 30);

/// Why control did not start in another program.
#[derive(Debug, thiserror::Error)]
pub enum EmbedError {
    /// The store cannot be used.
    #[error("the store cannot be opened")]
    Store(#[from] OpenError),
    /// The socket cannot be listened on.
    #[error("the socket of the gate cannot be listened on")]
    Gate(#[source] io::Error),
    /// It does not start.
    #[error(transparent)]
    Start(#[from] Failure),
}

/// A control that serves its gate to this process.
pub struct Embedded {
    runs: Box<dyn Runs>,
    upkeep: Upkeep<Sqlite>,
    gate: JoinHandle<Result<(), transport::Error>>,
    drain: CancellationToken,
}

impl Embedded {
    /// Opens the store, or makes one, and serves the gate on a socket at this path: to this process and to no other,
    /// whoever may open that file.
    pub async fn start(store: &Path, gate: &Path, forge: impl Forge) -> Result<Self, EmbedError> {
        let listener = listen::bind_own(gate).await.map_err(EmbedError::Gate)?;
        let engine = Engine::begin(Sqlite::open(store)?, forge).await?;
        let drain = CancellationToken::new();
        let Services { runs, tokens: _, questions, health } = engine.services(&drain);
        let questions = services::gate(questions, health).map_err(Failure::from)?;
        let gate = tokio::spawn(server::listened(Side::Gate, questions, listener, None, drain.clone()));
        let upkeep = engine.keep_up(KEEP, &drain);
        Ok(Self { runs: Box::new(runs), upkeep, gate, drain })
    }

    /// The service that registers, revokes and shows runs.
    #[must_use]
    pub fn runs(&self) -> &dyn Runs {
        &*self.runs
    }

    /// Why it does not serve any more: it returns when that is so.
    pub async fn failed(&mut self) -> Failure {
        tokio::select! {
            failed = self.upkeep.failed() => failed,
            ended = &mut self.gate => match ended {
                Ok(Ok(())) => std::future::pending().await,
                Ok(Err(error)) => error.into(),
                Err(error) => Failure::Upkeep(error),
            },
        }
    }

    /// Ends the sessions of the gate and the upkeep.
    pub async fn end(self) {
        let Self { runs: _, upkeep, gate, drain } = self;
        drain.cancel();
        gate.abort();
        upkeep.end().await;
    }
}

/// Why a run that was left behind could not be ended.
#[derive(Debug, thiserror::Error)]
pub enum LeftError {
    /// Its store cannot be used.
    #[error("the store cannot be opened")]
    Open(#[from] OpenError),
    /// Its store fails.
    #[error("the store failed")]
    Store(#[from] StoreError),
}

/// Ends a run whose process died, in the store that it left, and gives what the ledger says of it; nothing, if it was
/// never registered. Nobody else has the store, so whatever push was open is nobody's now.
pub async fn end_left(store: &Path, run: &RunId) -> Result<Option<v1::GetRunResponse>, LeftError> {
    let (store, now) = (Sqlite::open(store)?, clock::now());
    let Some(run) = store.revoke(run, now).await? else {
        return Ok(None);
    };
    // One that is unknown already stays so.
    for push in store.unreported(&run.id).await? {
        store.close_push(push, &Closing::unknown(now)).await?;
    }
    let pushes = shown::pushes(&store, &run.id).await?;
    Ok(Some(v1::GetRunResponse { run: Some(run.to_message(now)), pushes }))
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use gitdoor_proto::RepositoryName;

    use super::*;
    use crate::push::{Outcome, Push, PushId};
    use crate::run::tests::{binding, run};
    use crate::store::Limit;

    #[tokio::test]
    async fn a_run_that_was_left_behind_is_revoked_and_its_open_push_is_unknown() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        let now = clock::now();
        let left = Sqlite::open(&path).unwrap();
        left.register(&run("r", now)).await.unwrap();
        left.bind(&run("r", now).id, run("r", now).bearer.generation, &binding(now), now).await.unwrap().unwrap();
        let limit = Limit { most: 1, lapsed: &[] };
        left.open_push(&open(now), run("r", now).bearer.generation, limit, now).await.unwrap();
        drop(left);

        let ended = end_left(&path, &run("r", now).id).await.unwrap().unwrap();
        assert_eq!(ended.run.unwrap().state(), v1::RunState::Revoked);
        assert_eq!(ended.pushes[0].outcome(), v1::PushOutcome::Unknown);
        assert!(end_left(&path, &run("other", now).id).await.unwrap().is_none());
    }

    fn open(now: SystemTime) -> Push {
        Push {
            id: PushId::from_bytes([1; 16]),
            run: run("r", now).id,
            request_id: "request".to_owned(),
            repository: RepositoryName::parse("acme/api").unwrap(),
            refs: Vec::new(),
            ticket: None,
            control: None,
            outcome: Outcome::Open,
            request_bytes: 0,
            opened_at: now,
            closed_at: None,
        }
    }
}
