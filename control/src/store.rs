//! What control remembers: runs with their bindings, and the ledger of pushes and of tokens for mirrors.
//!
//! What an operation has answered is durable. Every operation is atomic by itself; none needs another to hold. What
//! becomes of a run is not decided here: the rules are its own, in `run/life.rs`.

#[cfg(test)]
mod conformance;
pub mod measured;
mod migration;
#[cfg(test)]
mod model;
pub mod postgres;
mod row;
pub mod sqlite;

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use gitdoor_proto::{BearerHash, RunId};

use crate::fleet::ControlId;
use crate::mirror::MirrorToken;
use crate::push::{Closing, Push, PushId};
use crate::run::{Binding, Identity, Run, Transition};

pub use self::row::Unreadable;

/// A store. One conformance suite holds for all of them.
pub trait Store: Send + Sync + 'static {
    /// Creates a run; or, when one of that id takes the registration for a retry, gives that one the new secret.
    fn register(&self, run: &Run) -> impl Future<Output = Result<Registered, StoreError>> + Send;

    /// Gives a live run a new budget, counted from now.
    fn adopt(
        &self,
        id: &RunId,
        budget: Duration,
        now: SystemTime,
    ) -> impl Future<Output = Result<Adopted, StoreError>> + Send;

    /// Gives a live run a new secret.
    fn rotate(
        &self,
        id: &RunId,
        hash: BearerHash,
        now: SystemTime,
    ) -> impl Future<Output = Result<Rotated, StoreError>> + Send;

    /// Ends a run, if it has not been ended, and returns it.
    fn revoke(&self, id: &RunId, now: SystemTime) -> impl Future<Output = Result<Option<Run>, StoreError>> + Send;

    /// A run.
    fn run(&self, id: &RunId) -> impl Future<Output = Result<Option<Run>, StoreError>> + Send;

    /// Runs in the order of their ids, from the one after `after`.
    fn runs(&self, after: Option<&RunId>, limit: u32) -> impl Future<Output = Result<Vec<Run>, StoreError>> + Send;

    /// Marks the bearer of a generation as used. False: the run has another by now.
    fn mark_used(
        &self,
        id: &RunId,
        generation: u64,
        now: SystemTime,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// Binds a run, if it is live, has the bearer of this generation and is not bound; returns the run as it
    /// then stands, bound by this call, by another, or not at all.
    fn bind(
        &self,
        id: &RunId,
        generation: u64,
        binding: &Binding,
        now: SystemTime,
    ) -> impl Future<Output = Result<Option<Run>, StoreError>> + Send;

    /// Notes the default branch of the bound repository as it was read now; earlier ones stay refused.
    /// Returns the run as it then stands.
    fn see_default_branch(
        &self,
        id: &RunId,
        branch: &str,
    ) -> impl Future<Output = Result<Option<Run>, StoreError>> + Send;

    /// Writes an open push, if its run is live, has the bearer of this generation and not too many open pushes:
    /// those of every control count.
    fn open_push(
        &self,
        push: &Push,
        generation: u64,
        limit: Limit<'_>,
        now: SystemTime,
    ) -> impl Future<Output = Result<Opened, StoreError>> + Send;

    /// Writes a push that was refused, unless there is one of its id.
    fn record_refused(&self, push: &Push) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Records the end of a push. The first that was reported stands; `Unknown` is none, and gives way to one.
    fn close_push(&self, id: PushId, closing: &Closing) -> impl Future<Output = Result<Closed, StoreError>> + Send;

    /// A row of the ledger.
    fn push(&self, id: PushId) -> impl Future<Output = Result<Option<Push>, StoreError>> + Send;

    /// The pushes of a run, newest first, from the one after `after`. Each may have hundreds of refs: many are read a
    /// few at a time.
    fn pushes(
        &self,
        run: &RunId,
        after: Option<PushId>,
        limit: u32,
    ) -> impl Future<Output = Result<Vec<Push>, StoreError>> + Send;

    /// The pushes of a run that were let through and whose end was not reported: open, or closed as unknown.
    fn unreported(&self, run: &RunId) -> impl Future<Output = Result<Vec<PushId>, StoreError>> + Send;

    /// Makes a push of a run this control's, if it is open, or open again if it was closed as unknown: its data plane
    /// lives. False: the run has no such push.
    fn take_push(
        &self,
        id: PushId,
        run: &RunId,
        control: ControlId,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// Closes a push as unknown, if it is open and still this control's. False: it is not.
    fn lose_push(
        &self,
        id: PushId,
        control: ControlId,
        now: SystemTime,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// Says that a control is alive, by the store's own clock.
    fn beat(&self, control: ControlId) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Says that a control ends: others answer for its pushes at once.
    fn leave(&self, control: ControlId) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Makes the open pushes of dead controls and of none this control's, each for one claimant alone, and returns
    /// every open push that is this control's now.
    fn claim_pushes(&self, control: ControlId) -> impl Future<Output = Result<Vec<Claimed>, StoreError>> + Send;

    /// Runs that were revoked after a time.
    fn ended_since(&self, time: SystemTime) -> impl Future<Output = Result<Vec<RunId>, StoreError>> + Send;

    /// Writes that a token for a mirror is handed out.
    fn record_mirror_token(&self, row: &MirrorToken) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// The tokens for mirrors that were handed out, newest first.
    fn mirror_tokens(&self, limit: u32) -> impl Future<Output = Result<Vec<MirrorToken>, StoreError>> + Send;

    /// How many runs live, by what they may be. Kinds of which there are none may be missing.
    fn live_runs(&self, now: SystemTime) -> impl Future<Output = Result<Vec<LiveRuns>, StoreError>> + Send;

    /// Removes runs that expired before a time, their pushes and what those asked for, and the tokens for mirrors that
    /// did, at most `limit` rows. Returns how many; fewer than `limit`: there are no more.
    fn prune(&self, before: SystemTime, limit: u32) -> impl Future<Output = Result<u32, StoreError>> + Send;
}

/// The live runs of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveRuns {
    /// What they may be.
    pub identity: Identity,
    /// Whether they are bound.
    pub bound: bool,
    /// How many there are.
    pub count: u32,
}

/// How many pushes a run may have open at once.
#[derive(Debug, Clone, Copy)]
pub struct Limit<'a> {
    /// So many, the new one among them.
    pub most: u32,
    /// Open pushes of the new one's control that do not count: their leases have lapsed.
    pub lapsed: &'a [PushId],
}

/// An open push that a control answers for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claimed {
    /// Its id.
    pub push: PushId,
    /// Its run.
    pub run: RunId,
    /// When the run expires.
    pub expires_at: SystemTime,
}

/// What became of a registration.
#[derive(Debug, Clone, PartialEq)]
pub enum Registered {
    /// The run is new.
    Created(Run),
    /// It was there, and this was a retry: it has the new secret now.
    Replaced(Run),
    /// It was there, and stays as it was.
    Exists(Run),
}

impl From<Transition> for Registered {
    fn from(transition: Transition) -> Self {
        match transition {
            Transition::Changed(run) | Transition::Unchanged(run) => Self::Replaced(run),
            Transition::Refused(run) => Self::Exists(run),
        }
    }
}

/// What became of an adoption.
#[derive(Debug, Clone, PartialEq)]
pub enum Adopted {
    /// The run has the new budget.
    Adopted(Run),
    /// The run is not live.
    NotLive(Run),
    /// There is no such run.
    Unknown,
}

impl From<Option<Transition>> for Adopted {
    fn from(transition: Option<Transition>) -> Self {
        match transition {
            Some(Transition::Changed(run) | Transition::Unchanged(run)) => Self::Adopted(run),
            Some(Transition::Refused(run)) => Self::NotLive(run),
            None => Self::Unknown,
        }
    }
}

/// What became of a rotation.
#[derive(Debug, Clone, PartialEq)]
pub enum Rotated {
    /// The run has the new secret.
    Rotated(Run),
    /// The run is not live.
    NotLive(Run),
    /// There is no such run.
    Unknown,
}

impl From<Option<Transition>> for Rotated {
    fn from(transition: Option<Transition>) -> Self {
        match transition {
            Some(Transition::Changed(run) | Transition::Unchanged(run)) => Self::Rotated(run),
            Some(Transition::Refused(run)) => Self::NotLive(run),
            None => Self::Unknown,
        }
    }
}

/// Whether a push was opened.
#[derive(Debug, Clone, PartialEq)]
pub enum Opened {
    /// Its row is durable.
    Open,
    /// Its row was there, and is this push's: it was asked for before. It is the asking control's now.
    Again,
    /// A row of its id was there, and is another's, or was reported.
    Known,
    /// The run ended, or its bearer was replaced, meanwhile; as it stands.
    Stale(Option<Box<Run>>),
    /// The run has too many open pushes.
    TooMany,
}

/// Whether the end of a push was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closed {
    /// It was recorded by this call.
    Now,
    /// An end of it stands already.
    Before,
    /// There is no such push.
    Unknown,
}

/// Why the store did not do it. Nothing of the operation is left behind, unless its answer was lost.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// Too many operations wait.
    #[error("the store is busy: too much waits for it; try again in a moment")]
    Busy,
    /// It is shut down.
    #[error("the store is closed")]
    Closed,
    /// Another write broke the transaction that this one shared.
    #[error("the store rolled back")]
    RolledBack,
    /// A row does not read as what was written.
    #[error("a row of the store cannot be read")]
    Unreadable(#[source] Unreadable),
    /// `SQLite` failed.
    #[error("the store failed")]
    Sqlite(#[source] Arc<rusqlite::Error>),
    /// PostgreSQL failed, or cannot be reached.
    #[error("the store failed")]
    Postgres(#[source] postgres::Failure),
}
