//! Runs, as the bot that owns them sees them: over control's own API.

use std::time::Duration;

use gitdoor_proto::endpoint::{Connector, Endpoint};
use gitdoor_proto::v1::runs_client::RunsClient;
use gitdoor_proto::v1::{
    GetRunRequest, GetRunResponse, Identity, RegisterRunRequest, RevokeRunRequest, RotateBearerRequest, RunOptions,
};
use tonic::Status;
use tonic::transport::Channel;

use super::{Process, World};

/// A registered run: all that its sandbox gets.
#[derive(Clone)]
pub struct Run {
    /// Its id.
    pub id: String,
    /// Its bearer.
    pub bearer: String,
}

impl std::fmt::Debug for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Run({})", self.id)
    }
}

/// A run to be.
pub struct Registration<'a> {
    world: &'a World,
    request: RegisterRunRequest,
}

impl Registration<'_> {
    /// With this id; else it gets one of its own.
    pub fn id(mut self, id: &str) -> Self {
        id.clone_into(&mut self.request.run_id);
        self
    }

    /// Bound to this repository from the start.
    pub fn repository(mut self, repository: &str) -> Self {
        repository.clone_into(&mut self.request.repository);
        self
    }

    /// With this much time.
    pub fn budget(mut self, budget: Duration) -> Self {
        self.request.budget = Some(budget.try_into().expect("a duration"));
        self
    }

    /// Narrowed.
    pub fn options(mut self, narrow: impl FnOnce(&mut RunOptions)) -> Self {
        narrow(self.request.options.get_or_insert_default());
        self
    }

    /// Registers it.
    pub async fn send(self) -> Result<Run, Status> {
        let id = self.request.run_id.clone();
        let answer = self.world.runs().await.register_run(self.request).await?.into_inner();
        Ok(self.world.keep(&id, answer.bearer))
    }
}

impl World {
    /// A client of control's `Runs`; of several, of the first that runs.
    pub async fn runs(&self) -> RunsClient<Channel> {
        let running = self.controls.iter().position(Process::is_running).expect("a control that runs");
        self.runs_at(running).await
    }

    /// A client of one control's `Runs`.
    pub async fn runs_at(&self, control: usize) -> RunsClient<Channel> {
        let files = self.trust.as_ref().map(|trust| trust.files("bot")).unwrap_or_default();
        let endpoint: Endpoint = self.runs_address_of(control).parse().expect("an address");
        let connector = Connector::new(std::slice::from_ref(&endpoint), &files).expect("what can be used");
        let address = endpoint.resolve().await.expect("an address").remove(0);
        RunsClient::new(connector.connect(&address).await.expect("control"))
    }

    /// Registers a run that is bound to nothing; it must work.
    pub async fn register(&self, identity: Identity) -> Run {
        self.registration(identity).send().await.expect("a run")
    }

    /// A run that differs from that.
    pub fn registration(&self, identity: Identity) -> Registration<'_> {
        let number = self.bearers.lock().unwrap().len();
        let request = RegisterRunRequest {
            run_id: format!("run-{number}"),
            identity: identity.into(),
            ..RegisterRunRequest::default()
        };
        Registration { world: self, request }
    }

    /// Revokes a run; returns when control says that it is done.
    pub async fn revoke(&self, run: &Run) {
        let request = RevokeRunRequest { run_id: run.id.clone() };
        self.runs().await.revoke_run(request).await.expect("to be revoked");
    }

    /// Revokes a run at one control of several.
    pub async fn revoke_at(&self, control: usize, run: &Run) {
        let request = RevokeRunRequest { run_id: run.id.clone() };
        self.runs_at(control).await.revoke_run(request).await.expect("to be revoked");
    }

    /// Gives a run another bearer.
    pub async fn rotate(&self, run: &Run) -> Run {
        let request = RotateBearerRequest { run_id: run.id.clone() };
        let answer = self.runs().await.rotate_bearer(request).await.expect("another bearer").into_inner();
        self.keep(&run.id, answer.bearer)
    }

    /// A run and its pushes, as control knows them.
    pub async fn show(&self, run: &Run) -> GetRunResponse {
        let request = GetRunRequest { run_id: run.id.clone() };
        self.runs().await.get_run(request).await.expect("the run").into_inner()
    }

    /// Looks for this bearer, too, where none may be.
    pub fn keep(&self, id: &str, bearer: String) -> Run {
        self.bearers.lock().unwrap().push(bearer.clone());
        Run { id: id.to_owned(), bearer }
    }
}
