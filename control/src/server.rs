//! The process: everything is opened and bound, then served, then drained.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use metrics_exporter_prometheus::PrometheusHandle;
use tokio::net::TcpListener;
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tonic::service::Routes;
use tonic::transport::{self, Server};

use crate::config::{Config, Listen, StoreUrl, Unusable};
use crate::engine::{Engine, Services};
use crate::github::GitHub;
use crate::id::NoRandomness;
use crate::listen::tls::{self, Identities};
use crate::listen::{self, Listener, accept};
use crate::service::admission::{Admission, Times};
use crate::service::listener as services;
use crate::store::postgres::Postgres;
use crate::store::sqlite::Sqlite;
use crate::store::{Store, StoreError};
use crate::trust::Side;
use crate::trust::layer::ByRole;
use crate::{admin, limit};

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
    /// What is served cannot be described.
    #[error("the services cannot be described")]
    Describe(#[from] tonic_reflection::server::Error),
    /// A task that keeps what is promised has panicked.
    #[error("a task of the upkeep failed")]
    Upkeep(#[source] JoinError),
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
    let runs_tls = identities(Side::Runs, config.runs_tls.files(&config.runs_listen)?)?;
    let gate_tls = identities(Side::Gate, config.gate_tls.files(&config.gate_listen)?)?;
    let engine = Engine::begin(store, forge).await?;
    let runs_listener = listen::bind(Side::Runs, &config.runs_listen, runs_tls.as_ref()).await?;
    let gate_listener = listen::bind(Side::Gate, &config.gate_listen, gate_tls.as_ref()).await?;
    let admin_listener = bind_admin(config.admin_listen).await?;
    let addresses = Addresses {
        runs: runs_listener.address().map_err(Failure::Address)?,
        gate: gate_listener.address().map_err(Failure::Address)?,
        admin: admin_listener.local_addr().map_err(Failure::Address)?,
    };

    let Services { runs, tokens, questions, health } = engine.services(&drain);
    let runs = services::runs(runs, tokens, health.clone())?;
    let questions = services::gate(questions, health)?;
    let over = CancellationToken::new();
    let admin = tokio::spawn(admin::serve(admin_listener, metrics, drain.clone(), over.clone()));
    let mut upkeep = engine.keep_up(config.keep, &drain);
    let services = async {
        tokio::try_join!(
            listened(Side::Runs, runs, runs_listener, runs_tls, drain.clone()),
            listened(Side::Gate, questions, gate_listener, gate_tls, drain.clone()),
        )
    };
    ready(&addresses);
    let served = tokio::select! {
        served = until_drained(services, &drain) => served,
        failed = upkeep.failed() => Err(failed),
    };

    over.cancel();
    // Only a task that panicked or was aborted has an error here; neither leaves anything to do.
    drop(tokio::join!(admin, upkeep.end()));
    served
}

async fn bind_admin(address: SocketAddr) -> Result<TcpListener, Unusable> {
    let bound = TcpListener::bind(address).await;
    bound.map_err(|source| Unusable::unbound("--admin-listen", Listen::Tcp(address), source))
}

fn identities(side: Side, files: Option<tls::Files>) -> Result<Option<Identities>, Unusable> {
    files.map(|files| tls::open(side, files)).transpose().map_err(|source| Unusable::Tls { side, source })
}

/// What a listener lets a connection do.
pub(crate) fn server() -> Server {
    Server::builder()
        .http2_keepalive_interval(Some(KEEPALIVE))
        .http2_keepalive_timeout(Some(KEEPALIVE))
        .max_concurrent_streams(limit::STREAMS_PER_CONNECTION)
        .http2_max_header_list_size(limit::HEADER_BYTES)
}

/// Serves a side's services to whoever comes to its listener, until the drain.
pub(crate) async fn listened(
    side: Side,
    routes: Routes,
    listener: Listener,
    tls: Option<Identities>,
    drain: CancellationToken,
) -> Result<(), transport::Error> {
    let _kept = tls.clone().map(|tls| AbortOnDropHandle::new(tokio::spawn(tls::keep(side, tls))));
    let incoming = accept::accept(side, listener, tls);
    // Who may not make a call takes no place among those who may.
    let mut serving = server().layer(ByRole(side)).layer(Admission::new(side.as_str(), Times::default()));
    serving.add_routes(routes).serve_with_incoming_shutdown(incoming, drain.cancelled_owned()).await
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
