//! One control on one store: its services, and the upkeep of what they promise. Where they are served is for others.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::fleet::{self, ControlId};
use crate::forge::Forge;
use crate::gate::{Gate, cause};
use crate::lease::Leases;
use crate::server::Failure;
use crate::service::gate::GateService;
use crate::service::health::{self, State};
use crate::service::reads::Reads;
use crate::service::runs::RunsService;
use crate::service::tokens::TokensService;
use crate::store::Store;
use crate::store::measured::Measured;
use crate::sweep;

/// A control that the store knows of.
pub(crate) struct Engine<S, F> {
    store: Arc<Measured<S>>,
    forge: Arc<F>,
    leases: Arc<Leases>,
    gate: Arc<Gate<Measured<S>, F>>,
    state: watch::Sender<State>,
}

/// What it answers with.
pub(crate) struct Services<S, F> {
    pub(crate) runs: RunsService<S, F>,
    pub(crate) tokens: TokensService<S, F>,
    pub(crate) questions: GateService<S, F>,
    /// What a probe is told.
    pub(crate) health: watch::Receiver<State>,
}

impl<S: Store, F: Forge> Engine<S, F> {
    /// Tells the store of a new control. Before it opens a push: others would take that for one of a control that has
    /// ended.
    pub(crate) async fn begin(store: S, forge: F) -> Result<Self, Failure> {
        let (store, forge) = (Arc::new(Measured::new(store)), Arc::new(forge));
        let control = ControlId::generate().map_err(Failure::Identity)?;
        store.beat(control).await.map_err(Failure::Store)?;
        let leases = Arc::new(Leases::new(control));
        let gate = Arc::new(Gate::new(store.clone(), forge.clone(), leases.clone()));
        let (state, _) = watch::channel(State::Serving);
        Ok(Self { store, forge, leases, gate, state })
    }

    /// Its services, which end their sessions with the drain.
    pub(crate) fn services(&self, drain: &CancellationToken) -> Services<Measured<S>, F> {
        let Self { store, forge, leases, gate, state } = self;
        let lists = Arc::new(Reads::default());
        Services {
            tokens: TokensService::new(store.clone(), forge.clone(), lists.clone()),
            runs: RunsService::new(store.clone(), forge.clone(), leases.clone(), lists),
            questions: GateService::new(gate.clone(), drain.clone()),
            health: state.subscribe(),
        }
    }

    /// Starts the upkeep; the store forgets what is older than is kept.
    pub(crate) fn keep_up(self, keep: Duration, drain: &CancellationToken) -> Upkeep<S> {
        let Self { store, forge: _, leases, gate, state } = self;
        let control = leases.control();
        let mut tasks = JoinSet::new();
        tasks.spawn(sweep::sweep(store.clone(), leases.clone(), gate));
        tasks.spawn(fleet::beat(store.clone(), leases.clone()));
        tasks.spawn(fleet::hear(store.clone(), leases));
        tasks.spawn(sweep::count(store.clone()));
        tasks.spawn(sweep::prune(store.clone(), keep));
        tasks.spawn(health::keep(store.clone(), state, drain.clone()));
        Upkeep { store, control, tasks }
    }
}

/// The tasks without one of which a control would answer, and keep none of its promises.
pub(crate) struct Upkeep<S> {
    store: Arc<Measured<S>>,
    control: ControlId,
    tasks: JoinSet<()>,
}

impl<S: Store> Upkeep<S> {
    /// The first of them that fails.
    pub(crate) async fn failed(&mut self) -> Failure {
        while let Some(ended) = self.tasks.join_next().await {
            if let Err(error) = ended {
                return Failure::Upkeep(error);
            }
        }
        std::future::pending().await
    }

    /// Ends them, and says in the store that this control has ended.
    pub(crate) async fn end(mut self) {
        self.tasks.shutdown().await;
        if let Err(error) = self.store.leave(self.control).await {
            tracing::warn!(error = cause(&error), "others will take this control for dead a little later");
        }
    }
}
