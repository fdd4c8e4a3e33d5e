//! A push: judged by the rules, then again by what the forge says now, and in the ledger before its permit leaves.

use std::time::{Duration, SystemTime};

use gitdoor_proto::{Denial, Reason, RepositoryName, v1};

use super::buckets::Size;
use super::place::Name;
use super::{Gate, PUSHED_REFS, cause, permit, store_denial, whole_seconds};
use crate::forge::{Facts, Forge, Minted};
use crate::lease::{End, LEASE, Leases, PUSHES};
use crate::metrics;
use crate::policy::bearer::{self, Live};
use crate::policy::push::{Rules, judge};
use crate::push::{Command, Outcome, Push, PushId, PushedRef, TicketHash};
use crate::run::{Binding, Run};
use crate::store::{Limit, Opened, Store};
use crate::ticket::{Holder, Purpose, Shown};

/// A push as it was asked for.
pub(super) struct Asked {
    pub(super) holder: Option<Holder>,
    pub(super) request_id: String,
    pub(super) repository: RepositoryName,
    pub(super) commands: Vec<Command>,
    pub(super) key: Option<PushId>,
}

/// A push that its run and the forge allow, not yet in the ledger.
struct Allowed {
    minted: Minted,
    facts: Facts,
}

impl<S: Store, F: Forge> Gate<S, F> {
    pub(super) async fn push(&self, live: &Live, asked: Asked, now: SystemTime) -> Result<v1::Permit, Denial> {
        live.writer()?;
        // Asked about again, since an answer did not come.
        let again = asked.key.is_some_and(|key| self.leases.owns(&live.run().id, key));
        let place = Place::take(&self.leases, live.run(), asked.key)?;
        match self.allow(live, &asked, now).await {
            Ok(allowed) => {
                // A hostile run must not fill the ledger with pushes that it never sends. What came to no row of its own
                // costs nothing.
                let refs = if again { 0 } else { u32::try_from(asked.commands.len()).unwrap_or(u32::MAX) };
                self.pushed_refs.take(live.run(), PUSHED_REFS, refs, now).map_err(too_many_refs)?;
                let opened = self.open(live.run(), asked, &allowed, place, now).await;
                if opened.is_err() {
                    self.pushed_refs.give_back(live.run(), PUSHED_REFS, refs);
                }
                opened
            }
            Err(denial) => {
                self.record_refused(live.run(), asked, &denial, place.push, now).await;
                Err(denial)
            }
        }
    }

    async fn allow(&self, live: &Live, asked: &Asked, now: SystemTime) -> Result<Allowed, Denial> {
        let writer = live.writer()?;
        let binding = writer.bound()?;
        // What is refused by what is known already costs no mint.
        if asked.repository == binding.repository {
            judge(&asked.commands, rules(live.run(), binding, &binding.default_branches))?;
        }
        let name = Name { asked: asked.repository.clone(), redirected: false };
        let (minted, facts) = self.at_bound(writer, binding, &name, now).await?;
        let mut default_branches = binding.default_branches.clone();
        if !default_branches.contains(&facts.default_branch) {
            default_branches.push(facts.default_branch.clone());
        }
        judge(&asked.commands, rules(live.run(), binding, &default_branches))?;
        Ok(Allowed { minted, facts })
    }

    async fn open(
        &self,
        run: &Run,
        asked: Asked,
        allowed: &Allowed,
        place: Place<'_>,
        now: SystemTime,
    ) -> Result<v1::Permit, Denial> {
        let Allowed { minted, facts } = allowed;
        let mut permit =
            permit::forward(run, &Purpose::Push(place.push), asked.holder, minted, &facts.full_name, now);
        permit.lease = permit::duration(LEASE);
        let row = Push {
            id: place.push,
            run: run.id.clone(),
            request_id: asked.request_id,
            repository: facts.full_name.clone(),
            refs: asked.commands.into_iter().map(|command| PushedRef { command, refusal: None }).collect(),
            ticket: Some(TicketHash::of(Shown { text: &permit.authorization, holder: asked.holder })),
            control: Some(self.leases.control()),
            outcome: Outcome::Open,
            request_bytes: 0,
            opened_at: now,
            closed_at: None,
        };
        // The lease is there before the row, which others would take for one that was left behind. From here on it
        // stays, whatever becomes of this question, until the row is closed.
        place.keep()?;
        let lapsed = self.leases.lapsed(&run.id);
        let limit = Limit { most: PUSHES, lapsed: &lapsed };
        match self.store.open_push(&row, run.bearer.generation, limit, now).await.map_err(store_denial)? {
            Opened::Open => {
                metrics::push(Outcome::Open);
                Ok(permit)
            }
            Opened::Stale(stored) => {
                self.leases.close(&run.id, row.id);
                Err(stale(stored.map(|run| *run), now))
            }
            // Another control was asked before, and its answer did not come.
            Opened::Again => Ok(permit),
            Opened::TooMany => {
                self.leases.close(&run.id, row.id);
                Err(too_many())
            }
            Opened::Known => {
                self.leases.close(&run.id, row.id);
                Err(Denial::new(
                    Reason::AuthorizationUnknown,
                    "this push is over, or its key is another's; push again",
                ))
            }
        }
    }

    /// Writes what was refused by policy to the ledger. A ledger that cannot be written makes no refusal a permit.
    async fn record_refused(&self, run: &Run, asked: Asked, denial: &Denial, push: PushId, now: SystemTime) {
        let of_policy = matches!(denial.reason, Reason::RunUnbound | Reason::BoundElsewhere);
        if !of_policy && denial.refs.is_empty() {
            return;
        }
        if self.refusals.take(&run.id).is_err() {
            tracing::warn!(run = %run.id, "refused pushes of this run are not recorded for a while: too many");
            return;
        }
        let general = denial.reason.as_str();
        let mut words = denial.refs.iter().map(|(_, words)| words.clone());
        let pushed = |command| PushedRef { command, refusal: words.next().or_else(|| Some(general.to_owned())) };
        let row = Push {
            id: push,
            run: run.id.clone(),
            request_id: asked.request_id,
            repository: asked.repository,
            refs: asked.commands.into_iter().map(pushed).collect(),
            ticket: None,
            control: None,
            outcome: Outcome::Refused,
            request_bytes: 0,
            opened_at: now,
            closed_at: Some(now),
        };
        match self.store.record_refused(&row).await {
            Ok(()) => metrics::push(Outcome::Refused),
            Err(error) => tracing::error!(run = %run.id, error = cause(&error), "a refused push was not recorded"),
        }
    }
}

fn rules<'a>(run: &'a Run, binding: &'a Binding, default_branches: &'a [String]) -> Rules<'a> {
    Rules { repository: &binding.repository, default_branches, options: &run.terms.options }
}

/// What became of a run between the look-up and the ledger.
fn stale(run: Option<Run>, now: SystemTime) -> Denial {
    match run.map(|run| bearer::still_live(run, now)) {
        None => bearer::unknown(),
        Some(Err(denial)) => denial,
        Some(Ok(_replaced)) => bearer::wrong(),
    }
}

/// A place among the pushes that a run has at once; given back when it is dropped, unless it is kept.
struct Place<'a> {
    leases: &'a Leases,
    run: &'a Run,
    push: PushId,
    kept: bool,
}

impl<'a> Place<'a> {
    fn take(leases: &'a Leases, run: &'a Run, key: Option<PushId>) -> Result<Self, Denial> {
        let push = key.map_or_else(PushId::generate, Ok).map_err(|error| {
            tracing::error!(error = cause(&error), "no id for a push");
            Denial::new(Reason::StoreUnavailable, "the door cannot name this push; try again")
        })?;
        leases.hold(&run.id, push, run.expires_at).map_err(ended)?;
        Ok(Self { leases, run, push, kept: false })
    }

    /// Grants the lease anew, as of now, and keeps it.
    fn keep(mut self) -> Result<(), Denial> {
        self.leases.hold(&self.run.id, self.push, self.run.expires_at).map_err(ended)?;
        self.kept = true;
        Ok(())
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if !self.kept {
            self.leases.close(&self.run.id, self.push);
        }
    }
}

/// That a run has ended, for the client of its push.
pub(super) fn ended(end: End) -> Denial {
    match end {
        End::Revoked => Denial::new(Reason::RunRevoked, "run revoked"),
        End::Expired => Denial::new(Reason::RunExpired, "run expired"),
    }
}

fn too_many_refs(wait: Duration) -> Denial {
    let Size { burst, rate } = PUSHED_REFS;
    let wait = whole_seconds(wait);
    let words = format!(
        "this run has pushed too many refs: it may push {burst} at once and {rate} a second; push again in {} seconds",
        wait.as_secs()
    );
    Denial::new(Reason::PushLimit, words).retry_after(wait)
}

fn too_many() -> Denial {
    let words = format!("this run has {PUSHES} pushes in progress; wait until one has ended");
    Denial::new(Reason::PushLimit, words).retry_after(Duration::from_secs(2))
}
