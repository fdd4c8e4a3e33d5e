//! Both listeners as control serves them, on ports of their own, over a store that can be made to stand still.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use gitdoor_proto::{BearerHash, RunId, v1};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;
use tonic::transport::{Channel, server::TcpIncoming};

use crate::fleet::ControlId;
use crate::gate::Gate;
use crate::lease::Leases;
use crate::mirror::MirrorToken;
use crate::push::{Closing, Push, PushId};
use crate::run::{Binding, Run};
use crate::server::server;
use crate::service::admission::{Admission, Times};
use crate::service::gate::GateService;
use crate::service::health::{self, State};
use crate::service::listener;
use crate::service::reads::Reads;
use crate::service::runs::RunsService;
use crate::service::tokens::TokensService;
use crate::store::sqlite::Sqlite;
use crate::store::{Adopted, Claimed, Closed, Limit, LiveRuns, Opened, Registered, Rotated, Store, StoreError};
use crate::village::Village;

/// A store whose runs are read, rotated and ended, and whose tokens for mirrors are written, only while it moves.
#[derive(Debug)]
pub(super) struct Stalling<S> {
    store: S,
    moves: watch::Sender<bool>,
}

impl<S> Stalling<S> {
    pub(super) fn new(store: S) -> Self {
        Self { store, moves: watch::Sender::new(true) }
    }

    pub(super) fn stall(&self, stall: bool) {
        self.moves.send_replace(!stall);
    }

    async fn moving(&self) {
        self.moves.subscribe().wait_for(|moves| *moves).await.unwrap();
    }
}

macro_rules! passes {
    ($($operation:ident($($argument:ident: $type:ty),*) -> $answer:ty;)*) => {
        $(async fn $operation(&self, $($argument: $type),*) -> Result<$answer, StoreError> {
            self.store.$operation($($argument),*).await
        })*
    };
}

impl<S: Store> Store for Stalling<S> {
    async fn run(&self, id: &RunId) -> Result<Option<Run>, StoreError> {
        self.moving().await;
        self.store.run(id).await
    }

    async fn rotate(&self, id: &RunId, hash: BearerHash, now: SystemTime) -> Result<Rotated, StoreError> {
        self.moving().await;
        self.store.rotate(id, hash, now).await
    }

    async fn revoke(&self, id: &RunId, now: SystemTime) -> Result<Option<Run>, StoreError> {
        self.moving().await;
        self.store.revoke(id, now).await
    }

    async fn record_mirror_token(&self, row: &MirrorToken) -> Result<(), StoreError> {
        self.moving().await;
        self.store.record_mirror_token(row).await
    }

    passes! {
        register(run: &Run) -> Registered;
        runs(after: Option<&RunId>, limit: u32) -> Vec<Run>;
        mark_used(id: &RunId, generation: u64, now: SystemTime) -> bool;
        bind(id: &RunId, generation: u64, binding: &Binding, now: SystemTime) -> Option<Run>;
        see_default_branch(id: &RunId, branch: &str) -> Option<Run>;
        open_push(push: &Push, generation: u64, limit: Limit<'_>, now: SystemTime) -> Opened;
        record_refused(push: &Push) -> ();
        close_push(id: PushId, closing: &Closing) -> Closed;
        push(id: PushId) -> Option<Push>;
        pushes(run: &RunId, after: Option<PushId>, limit: u32) -> Vec<Push>;
        unreported(run: &RunId) -> Vec<PushId>;
        adopt(id: &RunId, budget: Duration, now: SystemTime) -> Adopted;
        take_push(id: PushId, run: &RunId, control: ControlId) -> bool;
        lose_push(id: PushId, control: ControlId, now: SystemTime) -> bool;
        beat(control: ControlId) -> ();
        leave(control: ControlId) -> ();
        claim_pushes(control: ControlId) -> Vec<Claimed>;
        ended_since(time: SystemTime) -> Vec<RunId>;
        live_runs(now: SystemTime) -> Vec<LiveRuns>;
        mirror_tokens(limit: u32) -> Vec<MirrorToken>;
        prune(before: SystemTime, limit: u32) -> u32;
    }
}

/// Both listeners.
pub(super) struct Listeners<S> {
    pub(super) store: Arc<S>,
    pub(super) forge: Arc<Village>,
    pub(super) drain: CancellationToken,
    runs: Listening,
    gate: Listening,
}

struct Listening {
    url: String,
    served: tokio::task::JoinHandle<()>,
}

/// Listeners over a store in a file, which can be made to stand still.
pub(super) async fn stalling(times: Times) -> (Listeners<Stalling<Sqlite>>, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let store = Sqlite::open(&folder.path().join("store")).unwrap();
    (Listeners::start(Stalling::new(store), times).await, folder)
}

/// Calls that are cut after a moment, in which a busy machine may get nothing done.
pub(super) fn short() -> Times {
    let moment = Duration::from_millis(100);
    Times { call: moment, revocation: moment }
}

impl<S: Store> Listeners<S> {
    pub(super) async fn start(store: S, times: Times) -> Self {
        Self::over(Arc::new(store), times).await
    }

    /// Others over the same store, which have other times.
    pub(super) async fn beside(&self, times: Times) -> Self {
        Self::over(self.store.clone(), times).await
    }

    async fn over(store: Arc<S>, times: Times) -> Self {
        let (forge, leases) = (Arc::new(Village::new()), Arc::new(Leases::new(ControlId::from_bytes([1; 16]))));
        let drain = CancellationToken::new();
        let (state, health) = watch::channel(State::Serving);
        let reads = Arc::<Reads>::default();
        let tokens = TokensService::new(store.clone(), forge.clone(), reads.clone());
        let runs = RunsService::new(store.clone(), forge.clone(), leases.clone(), reads);
        let runs = listener::runs(runs, tokens, health.clone()).unwrap();
        let gate = Arc::new(Gate::new(store.clone(), forge.clone(), leases));
        let gate = listener::gate(GateService::new(gate, drain.clone()), health).unwrap();
        tokio::spawn(health::keep(store.clone(), state, drain.clone()));
        let runs = listen("runs", runs, times, &drain).await;
        let gate = listen("gate", gate, times, &drain).await;
        Self { store, forge, drain, runs, gate }
    }

    /// A connection to the one.
    pub(super) async fn runs(&self) -> Channel {
        connect(&self.runs.url).await
    }

    /// A connection to the other.
    pub(super) async fn gate(&self) -> Channel {
        connect(&self.gate.url).await
    }

    /// Both have ended.
    pub(super) async fn ended(self) {
        self.runs.served.await.unwrap();
        self.gate.served.await.unwrap();
    }
}

async fn listen(name: &'static str, routes: Routes, times: Times, drain: &CancellationToken) -> Listening {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let serving = server().layer(Admission::new(name, times)).add_routes(routes);
    let serving =
        serving.serve_with_incoming_shutdown(TcpIncoming::from(listener), drain.clone().cancelled_owned());
    Listening { url, served: tokio::spawn(async move { serving.await.unwrap() }) }
}

async fn connect(url: &str) -> Channel {
    Channel::from_shared(url.to_owned()).unwrap().connect().await.unwrap()
}

/// A registration of a run that only reads.
pub(super) fn reader(run_id: &str) -> v1::RegisterRunRequest {
    v1::RegisterRunRequest { run_id: run_id.into(), identity: v1::Identity::Read.into(), ..Default::default() }
}

/// A question about a run.
pub(super) fn get(run_id: &str) -> v1::GetRunRequest {
    v1::GetRunRequest { run_id: run_id.into() }
}
