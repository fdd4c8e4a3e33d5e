//! What a data plane asks about an authorization that it holds: bind, renew, report, replace the token.

use std::time::{Duration, SystemTime};

use gitdoor_proto::reason::printable;
use gitdoor_proto::{Denial, Reason, v1};

use super::{Gate, forge_denial, permit, place, push, store_denial, unreadable};
use crate::forge::{Forge, MintError, Minted, Target};
use crate::lease::LEASE;
use crate::metrics::{self, Taken};
use crate::policy::bearer::{self, Live};
use crate::push::{Closing, Outcome, PushId};
use crate::run::{Binding, Run};
use crate::store::{Closed, Store};
use crate::ticket::{Holder, Presented, Purpose, Shown};

/// Most characters of the upstream's words that are kept.
const WORDS: usize = 300;

/// The end of a push, as a data plane reports it.
#[derive(Debug)]
pub struct Report {
    /// From the permit.
    pub ticket: String,
    /// Who reports, if the data plane says who it is.
    pub holder: Option<Holder>,
    /// What became of it.
    pub outcome: Outcome,
    /// Refs that the upstream refused, with its words.
    pub upstream_refusals: Vec<(Vec<u8>, String)>,
    /// Bytes of the request body, decoded.
    pub request_bytes: u64,
}

impl<S: Store, F: Forge> Gate<S, F> {
    /// Binds a run to the repository whose push discovery the forge confirmed.
    pub async fn bind(&self, ticket: Shown<'_>, now: SystemTime) -> Result<Binding, Denial> {
        let (live, purpose) = self.present(ticket, now).await?;
        let Purpose::Discovery(repository) = purpose else {
            return Err(unknown());
        };
        live.writer()?;
        // The token of the discovery: it is in the forge's cache.
        let minted = self.write_named(&live, &repository, now).await?;
        let facts = self.forge.facts(&minted, false, now).await;
        let facts = facts.map_err(|error| unreadable(&repository, Some(&error)))?;
        if minted.repository_id().is_some_and(|id| id != facts.id) {
            return Err(unreadable(&repository, None));
        }
        let offer = Binding {
            repository: facts.full_name,
            repository_id: facts.id,
            default_branches: vec![facts.default_branch.clone()],
            default_branch: facts.default_branch,
            bound_at: now,
        };
        let run = live.run();
        let stored = self.store.bind(&run.id, run.bearer.generation, &offer, now).await.map_err(store_denial)?;
        standing(stored, &offer, now)
    }

    /// May a push go on? With `sent` its last byte went up, and there is nothing left to stop.
    pub async fn renew(&self, ticket: Shown<'_>, sent: bool, now: SystemTime) -> Result<Duration, Denial> {
        let ticket = Presented::parse(ticket).map_err(|_shape| unknown())?;
        let push = ticket.claimed_push().ok_or_else(unknown)?;
        let run = self.store.run(ticket.run()).await.map_err(store_denial)?.ok_or_else(unknown)?;
        let signed = ticket.verify(&run.bearer.hash).is_ok();
        if !signed && !self.is_ticket_of(&ticket, push).await? {
            return Err(unknown());
        }
        if sent {
            self.answer_for(&run, push).await?;
            self.leases.sent(&run.id, push, run.expires_at);
            return Ok(LEASE);
        }
        if !signed {
            return Err(bearer::still_live(run, now).map_or_else(|denial| denial, |_replaced| bearer::wrong()));
        }
        let live = bearer::still_live(run, now)?;
        let run = live.run();
        if !self.leases.renew(&run.id, push, run.expires_at).map_err(push::ended)? {
            self.take_over(run, push).await?;
        }
        Ok(LEASE)
    }

    /// Sees to it that nobody else closes a push as unknown that is heard of here. One that was reported stays as it is.
    async fn answer_for(&self, run: &Run, push: PushId) -> Result<(), Denial> {
        if !self.leases.owns(&run.id, push) {
            let taken = self.store.take_push(push, &run.id, self.leases.control()).await.map_err(store_denial)?;
            metrics::taken(Taken::Renewed, u64::from(taken));
        }
        Ok(())
    }

    /// Answers from now on for a push that another control permitted: its data plane has come here.
    async fn take_over(&self, run: &Run, push: PushId) -> Result<(), Denial> {
        if !self.store.take_push(push, &run.id, self.leases.control()).await.map_err(store_denial)? {
            return Err(Denial::new(Reason::AuthorizationUnknown, "this push is over"));
        }
        metrics::taken(Taken::Renewed, 1);
        self.leases.hold(&run.id, push, run.expires_at).map_err(push::ended)
    }

    /// Whether the ledger knows a ticket as that of its push: proof enough after the bearer was replaced.
    async fn is_ticket_of(&self, ticket: &Presented<'_>, push: PushId) -> Result<bool, Denial> {
        let row = self.store.push(push).await.map_err(store_denial)?;
        Ok(row.is_some_and(|row| row.ticket.is_some_and(|hash| ticket.has_hash(hash)) && row.run == *ticket.run()))
    }

    /// Records the end of a push. Idempotent; the first end that was reported stands.
    pub async fn report(&self, report: Report, now: SystemTime) -> Result<(), Denial> {
        let Report { ticket, holder, outcome, upstream_refusals, request_bytes } = report;
        let ticket = Presented::parse(Shown { text: &ticket, holder }).map_err(|_shape| unknown())?;
        let push = ticket.claimed_push().ok_or_else(unknown)?;
        if !self.is_ticket_of(&ticket, push).await? {
            return Err(unknown());
        }
        let upstream_refusals = upstream_refusals.into_iter().map(|(name, words)| (name, brief(&words))).collect();
        let closing = Closing { outcome, upstream_refusals, request_bytes, at: now };
        match self.store.close_push(push, &closing).await.map_err(store_denial)? {
            Closed::Now => metrics::push(outcome),
            Closed::Before => {}
            Closed::Unknown => return Err(unknown()),
        }
        self.leases.close(ticket.run(), push);
        Ok(())
    }

    /// Another token for an authorization whose own the forge answered 401 to.
    pub async fn replace_token(
        &self,
        ticket: Shown<'_>,
        token_id: &str,
        now: SystemTime,
    ) -> Result<v1::Token, Denial> {
        let (live, purpose) = self.present(ticket, now).await?;
        self.forge.reject(token_id, now).await;
        let minted = self.mint_again(&live, &purpose, now).await?;
        // The one that was refused again: it was dropped less than a minute ago, or is another's by now.
        if minted.id() == token_id { Err(rejected()) } else { Ok(permit::token(&minted, now)) }
    }

    async fn mint_again(&self, live: &Live, purpose: &Purpose, now: SystemTime) -> Result<Minted, Denial> {
        let workflows = live.run().terms.options.workflows;
        let denied = |error: MintError| forge_denial(&error, None);
        let repository = match purpose {
            Purpose::Fetch(_) => return self.read_token(live, now).await,
            Purpose::Discovery(repository) | Purpose::Probe(repository) => repository,
            // The body of a push is sent once.
            Purpose::Push(_) => return Err(rejected()),
        };
        let target = match &live.writer()?.run().binding {
            Some(binding) => Target::Bound { id: binding.repository_id, name: binding.repository.clone() },
            None => Target::Named(repository.clone()),
        };
        self.forge.write_token(&target, workflows, now).await.map_err(denied)
    }

    /// Verifies a ticket with the present bearer of its run, and that the run is live.
    async fn present(&self, ticket: Shown<'_>, now: SystemTime) -> Result<(Live, Purpose), Denial> {
        let ticket = Presented::parse(ticket).map_err(|_shape| unknown())?;
        let run = self.store.run(ticket.run()).await.map_err(store_denial)?.ok_or_else(unknown)?;
        let purpose = ticket.verify(&run.bearer.hash).map_err(|_forged| unknown())?.clone();
        Ok((bearer::still_live(run, now)?, purpose))
    }
}

/// What stands after a binding was offered.
fn standing(stored: Option<Run>, offer: &Binding, now: SystemTime) -> Result<Binding, Denial> {
    let live = bearer::still_live(stored.ok_or_else(bearer::unknown)?, now)?;
    match &live.run().binding {
        Some(binding) if binding.repository_id == offer.repository_id => Ok(binding.clone()),
        Some(other) => Err(place::bound_elsewhere(&other.repository, &offer.repository)),
        None => Err(bearer::wrong()),
    }
}

fn unknown() -> Denial {
    Denial::new(Reason::AuthorizationUnknown, "this authorization is not known, or is over; start over")
}

fn rejected() -> Denial {
    Denial::new(Reason::TokenRejected, "the forge refuses the door's token; try again in a minute")
        .retry_after(Duration::from_mins(1))
}

fn brief(words: &str) -> String {
    printable(words).chars().take(WORDS).collect()
}
