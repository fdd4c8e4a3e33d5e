//! The process: everything is opened and bound, then served, then drained.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use gitdoor_proto::v1::gate_server::GateServer;
use gitdoor_proto::v1::runs_server::RunsServer;
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_stream::wrappers::UnixListenerStream;
use tokio_util::sync::CancellationToken;
use tonic::transport::server::{Router, TcpIncoming};
use tonic::transport::{self, Server};

use crate::config::{Config, Listen, StoreUrl, Unusable};
use crate::fleet::{self, ControlId};
use crate::gate::Gate;
use crate::github::GitHub;
use crate::lease::Leases;
use crate::listen::{self, Listener};
use crate::push::NoRandomness;
use crate::service::gate::GateService;
use crate::service::runs::RunsService;
use crate::store::measured::Measured;
use crate::store::postgres::Postgres;
use crate::store::sqlite::Sqlite;
use crate::store::{Store, StoreError};
use crate::{admin, sweep};

/// A connection that is silent for this long is asked whether its peer is still there.
const KEEPALIVE: Duration = Duration::from_secs(20);
/// How long calls in work have when control drains.
const DRAIN: Duration = Duration::from_secs(10);

/// What is served where, once it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Addresses {
    /// Runs.
    pub runs: Listen,
    /// Gate.
    pub gate: Listen,
    /// The admin listener.
    pub admin: SocketAddr,
}

impl std::fmt::Display for Addresses {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "runs={} gate={} admin={}", self.runs, self.gate, self.admin)
    }
}

/// Why control ended other than by draining.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Configuration that cannot be used; nothing was served.
    #[error(transparent)]
    Unusable(#[from] Unusable),
    /// No threads to serve with.
    #[error("the runtime cannot be started")]
    Runtime(#[source] io::Error),
    /// No randomness for a name.
    #[error("this process cannot be named")]
    Identity(#[source] NoRandomness),
    /// The store failed when it was told of this process.
    #[error("the store failed at the start")]
    Store(#[source] StoreError),
    /// A listener has no address.
    #[error("a listener has no address")]
    Address(#[source] io::Error),
    /// A service ended.
    #[error("a service failed")]
    Serve(#[from] transport::Error),
}

/// Opens, binds and serves until `drain` is cancelled, and then until all is answered. `ready` is called once it
/// serves. `metrics` renders what this process measures.
pub async fn serve(
    config: Config,
    metrics: PrometheusHandle,
    drain: CancellationToken,
    ready: impl FnOnce(&Addresses),
) -> Result<(), Failure> {
    let forge = GitHub::new(&config.github()).map_err(|source| Unusable::GitHub { source })?;
    match &config.store {
        StoreUrl::Sqlite(path) => {
            let store = Sqlite::open(path).map_err(|source| Unusable::Sqlite { source })?;
            serve_store(store, forge, config, metrics, drain, ready).await
        }
        StoreUrl::Postgres(url) => {
            let opened = Postgres::open(&config.postgres(url)).await;
            let store = opened.map_err(|source| Unusable::Postgres { source })?;
            serve_store(store, forge, config, metrics, drain, ready).await
        }
    }
}

async fn serve_store<S: Store>(
    store: S,
    forge: GitHub,
    config: Config,
    metrics: PrometheusHandle,
    drain: CancellationToken,
    ready: impl FnOnce(&Addresses),
) -> Result<(), Failure> {
    let store = Arc::new(Measured::new(store));
    let control = ControlId::generate().map_err(Failure::Identity)?;
    // Before it opens a push: others would take that for one of a control that has ended.
    store.beat(control).await.map_err(Failure::Store)?;
    let runs_listener = listen::bind("--runs-listen", &config.runs_listen).await?;
    let gate_listener = listen::bind("--gate-listen", &config.gate_listen).await?;
    let admin_listener = bind_admin(config.admin_listen).await?;
    let addresses = Addresses {
        runs: runs_listener.address().map_err(Failure::Address)?,
        gate: gate_listener.address().map_err(Failure::Address)?,
        admin: admin_listener.local_addr().map_err(Failure::Address)?,
    };

    let (forge, leases) = (Arc::new(forge), Arc::new(Leases::new(control)));
    let gate = Arc::new(Gate::new(store.clone(), forge.clone(), leases.clone()));
    let runs = RunsServer::new(RunsService::new(store.clone(), forge, leases.clone()));
    let questions = GateServer::new(GateService::new(gate.clone(), drain.clone()));
    let over = CancellationToken::new();
    let admin = tokio::spawn(admin::serve(admin_listener, metrics, drain.clone(), over.clone()));
    let mut upkeep = JoinSet::new();
    upkeep.spawn(sweep::sweep(store.clone(), leases.clone(), gate));
    upkeep.spawn(fleet::beat(store.clone(), leases.clone()));
    upkeep.spawn(fleet::hear(store.clone(), leases));
    upkeep.spawn(sweep::prune(store, config.keep));
    let services = async {
        tokio::try_join!(
            listened(server().add_service(runs), runs_listener, drain.clone()),
            listened(server().add_service(questions), gate_listener, drain.clone()),
        )
    };
    ready(&addresses);
    let served = until_drained(services, &drain).await;

    over.cancel();
    // Only a task that panicked or was aborted has an error here; neither leaves anything to do.
    drop(tokio::join!(admin, upkeep.shutdown()));
    served
}

async fn bind_admin(address: SocketAddr) -> Result<TcpListener, Unusable> {
    let bound = TcpListener::bind(address).await;
    bound.map_err(|source| Unusable::unbound("--admin-listen", Listen::Tcp(address), source))
}

fn server() -> Server {
    Server::builder().http2_keepalive_interval(Some(KEEPALIVE)).http2_keepalive_timeout(Some(KEEPALIVE))
}

async fn listened(router: Router, listener: Listener, drain: CancellationToken) -> Result<(), transport::Error> {
    let drained = drain.cancelled_owned();
    match listener {
        Listener::Tcp(listener) => {
            let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
            router.serve_with_incoming_shutdown(incoming, drained).await
        }
        Listener::Unix(listener, file) => {
            let served = router.serve_with_incoming_shutdown(UnixListenerStream::new(listener), drained).await;
            drop(file);
            served
        }
    }
}

/// Serves; once it drains, calls in work have a time to end.
async fn until_drained(
    services: impl Future<Output = Result<((), ()), transport::Error>>,
    drain: &CancellationToken,
) -> Result<(), Failure> {
    let late = async {
        drain.cancelled().await;
        tokio::time::sleep(DRAIN).await;
    };
    tokio::select! {
        served = services => Ok(served.map(|((), ())| ())?),
        () = late => {
            tracing::warn!("calls in work were cut: they did not end in time");
            Ok(())
        }
    }
}
