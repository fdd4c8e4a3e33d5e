//! A store that counts and times every operation of another.

use std::future::Future;
use std::time::{Duration, SystemTime};

use gitdoor_proto::{BearerHash, RunId};
use tokio::time::Instant;

use super::{Adopted, Claimed, Closed, Limit, LiveRuns, Opened, Registered, Rotated, Store, StoreError};
use crate::fleet::ControlId;
use crate::metrics;
use crate::mirror::MirrorToken;
use crate::push::{Closing, Push, PushId};
use crate::run::{Binding, Run};

/// A store whose operations are measured.
#[derive(Debug)]
pub struct Measured<S>(S);

impl<S> Measured<S> {
    /// Measures a store.
    pub fn new(store: S) -> Self {
        Self(store)
    }
}

async fn measure<T>(
    operation: &'static str,
    work: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    let start = Instant::now();
    let done = work.await;
    metrics::store_operation(operation, done.is_ok(), start.elapsed());
    done
}

impl<S: Store> Store for Measured<S> {
    async fn register(&self, run: &Run) -> Result<Registered, StoreError> {
        measure("register", self.0.register(run)).await
    }

    async fn adopt(&self, id: &RunId, budget: Duration, now: SystemTime) -> Result<Adopted, StoreError> {
        measure("adopt", self.0.adopt(id, budget, now)).await
    }

    async fn rotate(&self, id: &RunId, hash: BearerHash, now: SystemTime) -> Result<Rotated, StoreError> {
        measure("rotate", self.0.rotate(id, hash, now)).await
    }

    async fn revoke(&self, id: &RunId, now: SystemTime) -> Result<Option<Run>, StoreError> {
        measure("revoke", self.0.revoke(id, now)).await
    }

    async fn run(&self, id: &RunId) -> Result<Option<Run>, StoreError> {
        measure("run", self.0.run(id)).await
    }

    async fn runs(&self, after: Option<&RunId>, limit: u32) -> Result<Vec<Run>, StoreError> {
        measure("runs", self.0.runs(after, limit)).await
    }

    async fn mark_used(&self, id: &RunId, generation: u64, now: SystemTime) -> Result<bool, StoreError> {
        measure("mark_used", self.0.mark_used(id, generation, now)).await
    }

    async fn bind(
        &self,
        id: &RunId,
        generation: u64,
        binding: &Binding,
        now: SystemTime,
    ) -> Result<Option<Run>, StoreError> {
        measure("bind", self.0.bind(id, generation, binding, now)).await
    }

    async fn see_default_branch(&self, id: &RunId, branch: &str) -> Result<Option<Run>, StoreError> {
        measure("see_default_branch", self.0.see_default_branch(id, branch)).await
    }

    async fn open_push(
        &self,
        push: &Push,
        generation: u64,
        limit: Limit<'_>,
        now: SystemTime,
    ) -> Result<Opened, StoreError> {
        measure("open_push", self.0.open_push(push, generation, limit, now)).await
    }

    async fn record_refused(&self, push: &Push) -> Result<(), StoreError> {
        measure("record_refused", self.0.record_refused(push)).await
    }

    async fn close_push(&self, id: PushId, closing: &Closing) -> Result<Closed, StoreError> {
        measure("close_push", self.0.close_push(id, closing)).await
    }

    async fn push(&self, id: PushId) -> Result<Option<Push>, StoreError> {
        measure("push", self.0.push(id)).await
    }

    async fn pushes(&self, run: &RunId, after: Option<PushId>, limit: u32) -> Result<Vec<Push>, StoreError> {
        measure("pushes", self.0.pushes(run, after, limit)).await
    }

    async fn unreported(&self, run: &RunId) -> Result<Vec<PushId>, StoreError> {
        measure("unreported", self.0.unreported(run)).await
    }

    async fn take_push(&self, id: PushId, run: &RunId, control: ControlId) -> Result<bool, StoreError> {
        measure("take_push", self.0.take_push(id, run, control)).await
    }

    async fn lose_push(&self, id: PushId, control: ControlId, now: SystemTime) -> Result<bool, StoreError> {
        measure("lose_push", self.0.lose_push(id, control, now)).await
    }

    async fn beat(&self, control: ControlId) -> Result<(), StoreError> {
        measure("beat", self.0.beat(control)).await
    }

    async fn leave(&self, control: ControlId) -> Result<(), StoreError> {
        measure("leave", self.0.leave(control)).await
    }

    async fn claim_pushes(&self, control: ControlId) -> Result<Vec<Claimed>, StoreError> {
        measure("claim_pushes", self.0.claim_pushes(control)).await
    }

    async fn ended_since(&self, time: SystemTime) -> Result<Vec<RunId>, StoreError> {
        measure("ended_since", self.0.ended_since(time)).await
    }

    async fn record_mirror_token(&self, row: &MirrorToken) -> Result<(), StoreError> {
        measure("record_mirror_token", self.0.record_mirror_token(row)).await
    }

    async fn mirror_tokens(&self, limit: u32) -> Result<Vec<MirrorToken>, StoreError> {
        measure("mirror_tokens", self.0.mirror_tokens(limit)).await
    }

    async fn live_runs(&self, now: SystemTime) -> Result<Vec<LiveRuns>, StoreError> {
        measure("live_runs", self.0.live_runs(now)).await
    }

    async fn prune(&self, before: SystemTime, limit: u32) -> Result<u32, StoreError> {
        measure("prune", self.0.prune(before, limit)).await
    }
}
