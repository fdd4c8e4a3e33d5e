//! gRPC's health: whether control serves, to be asked or to be watched.
//!
//! <https://github.com/grpc/grpc/blob/master/doc/health-checking.md>

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{Stream, stream};
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_server::Health as HealthRpc;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

use crate::gate::cause;
use crate::metrics;
use crate::store::{Store, StoreError};

/// How often the store is looked at.
const LOOK: Duration = Duration::from_secs(3);
/// Longest time of a look.
const PATIENCE: Duration = Duration::from_secs(2);
/// A store that did not answer for this long is missing: one look may be lost to a failover.
const SILENCE: Duration = Duration::from_secs(5);

/// Whether control serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It does.
    Serving,
    /// Its store does not answer. It may come back by itself.
    Silent,
    /// It ends, for good.
    Draining,
}

/// Tells the state of control under the names of a listener's services.
#[derive(Debug, Clone)]
pub struct Health {
    state: watch::Receiver<State>,
    services: &'static [&'static str],
}

impl Health {
    /// Of these services; the empty name, the whole server, is always one.
    #[must_use]
    pub fn new(state: watch::Receiver<State>, services: &'static [&'static str]) -> Self {
        Self { state, services }
    }

    fn check_name(&self, name: &str) -> Result<(), Status> {
        if name.is_empty() || self.services.contains(&name) {
            return Ok(());
        }
        Err(Status::not_found(format!("this listener serves {}", self.services.join(", "))))
    }
}

#[tonic::async_trait]
impl HealthRpc for Health {
    type WatchStream = Pin<Box<dyn Stream<Item = Result<HealthCheckResponse, Status>> + Send>>;

    async fn check(&self, request: Request<HealthCheckRequest>) -> Result<Response<HealthCheckResponse>, Status> {
        self.check_name(&request.get_ref().service)?;
        Ok(Response::new(told(*self.state.borrow())))
    }

    async fn watch(&self, request: Request<HealthCheckRequest>) -> Result<Response<Self::WatchStream>, Status> {
        self.check_name(&request.get_ref().service)?;
        Ok(Response::new(Box::pin(news(self.state.clone()))))
    }
}

/// The state, and each that is another. It ends after the news that control drains, with whoever kept the state: lest it
/// hold that up.
fn news(state: watch::Receiver<State>) -> impl Stream<Item = Result<HealthCheckResponse, Status>> + Send {
    stream::unfold((state, None), |(mut state, last)| async move {
        let next = *state.wait_for(|state| Some(*state) != last).await.ok()?;
        Some((Ok(told(next)), (state, Some(next))))
    })
}

fn told(state: State) -> HealthCheckResponse {
    let status = match state {
        State::Serving => ServingStatus::Serving,
        State::Silent | State::Draining => ServingStatus::NotServing,
    };
    HealthCheckResponse { status: status.into() }
}

/// Keeps the state until control drains.
pub async fn keep<S: Store>(store: Arc<S>, state: watch::Sender<State>, drain: CancellationToken) {
    metrics::serving(true);
    drain.run_until_cancelled(look_on_and_on(&*store, &state)).await;
    become_of(&state, State::Draining);
}

async fn look_on_and_on<S: Store>(store: &S, state: &watch::Sender<State>) {
    let mut ticks = interval(LOOK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut answered = Instant::now();
    loop {
        ticks.tick().await;
        if answers(store).await {
            answered = Instant::now();
        }
        become_of(state, if answered.elapsed() < SILENCE { State::Serving } else { State::Silent });
    }
}

fn become_of(state: &watch::Sender<State>, next: State) {
    let changed = state.send_if_modified(|state| std::mem::replace(state, next) != next);
    if changed {
        metrics::serving(next == State::Serving);
        tracing::info!(state = ?next, "health");
    }
}

/// Whether the store does its work; one that has too much of it does.
async fn answers<S: Store>(store: &S) -> bool {
    match timeout(PATIENCE, store.runs(None, 1)).await {
        Ok(Ok(_) | Err(StoreError::Busy | StoreError::Unreadable(_))) => true,
        Ok(Err(
            error @ (StoreError::Closed | StoreError::RolledBack | StoreError::Sqlite(_) | StoreError::Postgres(_)),
        )) => {
            tracing::warn!(error = cause(&error), "the store does not answer");
            false
        }
        Err(_elapsed) => {
            tracing::warn!("the store does not answer in time");
            false
        }
    }
}
