//! `Runs`: the life of a run, for the bot and for operators.

use std::sync::Arc;
use std::time::SystemTime;

use gitdoor_proto::v1::runs_server::Runs;
use gitdoor_proto::{Bearer, RepositoryName, RunId, v1};
use tokio::time::Instant;
use tonic::{Request, Response, Status};

use super::admission::Place;
use super::reads::Reads;
use super::{page, shown};
use crate::clock;
use crate::forge::{Forge, MintError, Mismatch, Target};
use crate::lease::{End, Leases, settled};
use crate::metrics;
use crate::run::{Binding, Invalid, Registration, Run, budget_from, run_id_from};
use crate::status::{self, Failure};
use crate::store::{Adopted, Registered, Rotated, Store};

/// Registers and ends the runs of one store.
#[derive(Debug)]
pub struct RunsService<S, F> {
    store: Arc<S>,
    forge: Arc<F>,
    leases: Arc<Leases>,
    reads: Arc<Reads>,
}

impl<S: Store, F: Forge> RunsService<S, F> {
    /// The service.
    #[must_use]
    pub fn new(store: Arc<S>, forge: Arc<F>, leases: Arc<Leases>, reads: Arc<Reads>) -> Self {
        Self { store, forge, leases, reads }
    }

    async fn register(
        &self,
        message: v1::RegisterRunRequest,
        now: SystemTime,
    ) -> Result<v1::RegisterRunResponse, Failure> {
        let registration = Registration::try_from(message)?;
        let bearer = Bearer::generate(registration.id.clone())?;
        let binding = match &registration.terms.repository {
            None => None,
            Some(repository) => {
                let workflows = registration.terms.options.workflows;
                Some(self.confirm(repository, workflows, now).await.map_err(Failure::Unconfirmed)?)
            }
        };
        let run = Run::new(registration, bearer.hash(), binding, now);
        match self.store.register(&run).await? {
            Registered::Created(run) | Registered::Replaced(run) => {
                Ok(v1::RegisterRunResponse { run: Some(run.to_message(now)), bearer: bearer.expose() })
            }
            Registered::Exists(run) => Err(Failure::Exists(run.id)),
        }
    }

    /// The binding of a run that names its repository from the start: what the forge says of it.
    async fn confirm(
        &self,
        repository: &RepositoryName,
        workflows: bool,
        now: SystemTime,
    ) -> Result<Binding, MintError> {
        let minted = self.forge.write_token(&Target::Named(repository.clone()), workflows, now).await?;
        let facts = self.forge.facts(&minted, false, now).await?;
        if minted.repository_id().is_some_and(|id| id != facts.id) {
            return Err(MintError::Untrusted(Mismatch::RepositoryId));
        }
        Ok(Binding {
            repository: facts.full_name,
            repository_id: facts.id,
            default_branches: vec![facts.default_branch.clone()],
            default_branch: facts.default_branch,
            bound_at: now,
        })
    }

    async fn adopt(&self, message: v1::AdoptRunRequest, now: SystemTime) -> Result<v1::AdoptRunResponse, Failure> {
        let v1::AdoptRunRequest { run_id, budget } = message;
        let (id, budget) = (run_id_from(&run_id)?, budget_from(budget)?);
        match self.store.adopt(&id, budget, now).await? {
            Adopted::Adopted(run) => {
                self.leases.adopt(&run.id, run.expires_at);
                Ok(v1::AdoptRunResponse { run: Some(run.to_message(now)) })
            }
            Adopted::NotLive(run) => Err(Failure::NotLive(id, run.state(now))),
            Adopted::Unknown => Err(Failure::Unknown(id)),
        }
    }

    async fn rotate(&self, id: RunId, now: SystemTime) -> Result<v1::RotateBearerResponse, Failure> {
        let bearer = Bearer::generate(id.clone())?;
        match self.store.rotate(&id, bearer.hash(), now).await? {
            Rotated::Rotated(run) => {
                Ok(v1::RotateBearerResponse { run: Some(run.to_message(now)), bearer: bearer.expose() })
            }
            Rotated::NotLive(run) => Err(Failure::NotLive(id, run.state(now))),
            Rotated::Unknown => Err(Failure::Unknown(id)),
        }
    }

    /// Commits the end, tells every session, and waits until no push of the run can still be written.
    async fn revoke(
        &self,
        id: RunId,
        place: Option<Place>,
        now: SystemTime,
    ) -> Result<v1::RevokeRunResponse, Failure> {
        let (store, leases) = (self.store.clone(), self.leases.clone());
        // A task of its own: a caller that leaves after the commit must not keep the sessions from hearing of it.
        let end = async move {
            let _place = place;
            let run = store.revoke(&id, now).await?.ok_or_else(|| Failure::Unknown(id.clone()))?;
            let ended = Instant::now();
            leases.end(&id, End::Revoked);
            settled(&*store, &id, ended).await;
            Ok::<_, Failure>(v1::RevokeRunResponse { run: Some(run.to_message(now)) })
        };
        tokio::spawn(end).await?
    }

    async fn run(&self, id: RunId, now: SystemTime) -> Result<v1::GetRunResponse, Failure> {
        let _place = self.reads.enter().await?;
        let run = self.store.run(&id).await?.ok_or_else(|| Failure::Unknown(id.clone()))?;
        let pushes = shown::pushes(&*self.store, &id).await?;
        Ok(v1::GetRunResponse { run: Some(run.to_message(now)), pushes })
    }

    async fn list(&self, message: v1::ListRunsRequest, now: SystemTime) -> Result<v1::ListRunsResponse, Failure> {
        let v1::ListRunsRequest { page_size, page_token } = message;
        let size = page::size(page_size)?;
        let after = match page_token.as_str() {
            "" => None,
            token => Some(RunId::parse(token).map_err(|_shape| Invalid::PageToken)?),
        };
        let _place = self.reads.enter().await?;
        // One more than is asked for says whether there is another.
        let stored = self.store.runs(after.as_ref(), size + 1).await?;
        let page = stored.iter().take(size as usize).map(|run| run.to_message(now));
        let runs: Vec<v1::Run> = page::as_fit(page);
        let last = runs.last().filter(|_| runs.len() < stored.len()).map(|run| run.run_id.clone());
        Ok(v1::ListRunsResponse { runs, next_page_token: last.unwrap_or_default() })
    }
}

#[tonic::async_trait]
impl<S: Store, F: Forge> Runs for RunsService<S, F> {
    async fn register_run(
        &self,
        request: Request<v1::RegisterRunRequest>,
    ) -> Result<Response<v1::RegisterRunResponse>, Status> {
        let message = request.into_inner();
        let run = message.run_id.clone();
        answered("register", &run, self.register(message, clock::now()).await)
    }

    async fn adopt_run(
        &self,
        request: Request<v1::AdoptRunRequest>,
    ) -> Result<Response<v1::AdoptRunResponse>, Status> {
        let message = request.into_inner();
        let run = message.run_id.clone();
        answered("adopt", &run, self.adopt(message, clock::now()).await)
    }

    async fn rotate_bearer(
        &self,
        request: Request<v1::RotateBearerRequest>,
    ) -> Result<Response<v1::RotateBearerResponse>, Status> {
        let v1::RotateBearerRequest { run_id } = request.into_inner();
        let answer = match run_id_from(&run_id) {
            Ok(id) => self.rotate(id, clock::now()).await,
            Err(invalid) => Err(invalid.into()),
        };
        answered("rotate", &run_id, answer)
    }

    async fn revoke_run(
        &self,
        request: Request<v1::RevokeRunRequest>,
    ) -> Result<Response<v1::RevokeRunResponse>, Status> {
        let place = request.extensions().get::<Place>().cloned();
        let v1::RevokeRunRequest { run_id } = request.into_inner();
        let answer = match run_id_from(&run_id) {
            Ok(id) => self.revoke(id, place, clock::now()).await,
            Err(invalid) => Err(invalid.into()),
        };
        answered("revoke", &run_id, answer)
    }

    async fn get_run(&self, request: Request<v1::GetRunRequest>) -> Result<Response<v1::GetRunResponse>, Status> {
        let v1::GetRunRequest { run_id } = request.into_inner();
        let answer = match run_id_from(&run_id) {
            Ok(id) => self.run(id, clock::now()).await,
            Err(invalid) => Err(invalid.into()),
        };
        answered("get", &run_id, answer)
    }

    async fn list_runs(
        &self,
        request: Request<v1::ListRunsRequest>,
    ) -> Result<Response<v1::ListRunsResponse>, Status> {
        answered("list", "", self.list(request.into_inner(), clock::now()).await)
    }
}

/// The end of every call: counted, logged, translated.
fn answered<T>(call: &'static str, run: &str, answer: Result<T, Failure>) -> Result<Response<T>, Status> {
    let answer = answer.map(Response::new).map_err(Status::from);
    let status = status::name(answer.as_ref().map(|_| ()));
    metrics::run_call(call, status);
    let run = status::shown(run);
    tracing::info!(call, run, status, words = answer.as_ref().err().map(Status::message), "runs");
    answer
}
