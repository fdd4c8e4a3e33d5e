//! The gate: what a data plane asks, decided. Bearer, limits, policy, mint, facts, ledger, permit: in this order.

mod denial;
mod discoveries;
mod permit;
mod place;
mod push;
pub mod question;
#[cfg(test)]
mod tests;
mod tickets;

use std::sync::Arc;
use std::time::SystemTime;

use gitdoor_proto::{Bearer, Denial, RepositoryName, v1};

use self::discoveries::Discoveries;
use self::question::{Intent, Question};
use crate::forge::{Forge, ReadScope, Target};
use crate::lease::Leases;
use crate::policy::bearer::{self, Live};
use crate::store::Store;
use crate::ticket::Purpose;

pub use self::denial::{cause, forge_denial, store_denial, unreadable};
pub use self::tickets::Report;

/// Decides for one store and one forge.
#[derive(Debug)]
pub struct Gate<S, F> {
    store: Arc<S>,
    forge: Arc<F>,
    leases: Arc<Leases>,
    discoveries: Discoveries,
}

impl<S: Store, F: Forge> Gate<S, F> {
    /// A gate.
    #[must_use]
    pub fn new(store: Arc<S>, forge: Arc<F>, leases: Arc<Leases>) -> Self {
        Self { store, forge, leases, discoveries: Discoveries::default() }
    }

    /// The leases that it grants.
    #[must_use]
    pub fn leases(&self) -> &Leases {
        &self.leases
    }

    /// May this request be made, and with which token?
    pub async fn authorize(&self, question: Question, now: SystemTime) -> Result<v1::Permit, Denial> {
        let Question { bearer, request_id, intent } = question;
        let live = self.admit(&bearer, now).await?;
        match intent {
            Intent::Verify => Ok(permit::verified(live.run(), now)),
            Intent::Fetch(repository) => self.fetch(&live, repository, now).await,
            Intent::Discovery(repository) => self.discovery(&live, repository, now).await,
            Intent::Probe(repository) => self.probe(&live, repository, now).await,
            Intent::Push { repository, commands } => {
                self.push(&live, push::Asked { request_id, repository, commands }, now).await
            }
        }
    }

    async fn admit(&self, presented: &Bearer, now: SystemTime) -> Result<Live, Denial> {
        let run = self.store.run(presented.run_id()).await.map_err(store_denial)?;
        let live = bearer::admit(run, &presented.hash(), now)?;
        if live.run().first_used_at.is_none() {
            let run = live.run();
            let marked = self.store.mark_used(&run.id, run.bearer.generation, now).await.map_err(store_denial)?;
            // A retried registration replaced the secret between the look-up and the mark.
            if !marked {
                return Err(bearer::wrong());
            }
        }
        Ok(live)
    }

    async fn fetch(&self, live: &Live, repository: RepositoryName, now: SystemTime) -> Result<v1::Permit, Denial> {
        let minted = self.forge.read_token(&read_scope(live), now).await;
        let minted = minted.map_err(|error| forge_denial(&error, Some(&repository)))?;
        Ok(permit::forward(live.run(), &Purpose::Fetch(repository.clone()), &minted, &repository, now))
    }

    async fn discovery(
        &self,
        live: &Live,
        repository: RepositoryName,
        now: SystemTime,
    ) -> Result<v1::Permit, Denial> {
        let writer = live.writer()?;
        if let Some(binding) = &live.run().binding {
            let (minted, facts) = self.at_bound(writer, binding, &repository, now).await?;
            let purpose = Purpose::Discovery(facts.full_name.clone());
            return Ok(permit::forward(live.run(), &purpose, &minted, &facts.full_name, now));
        }
        self.discoveries.take(&live.run().id)?;
        let target = Target::Named(repository.clone());
        let minted = self.forge.write_token(&target, live.run().terms.options.workflows, now).await;
        let minted = minted.map_err(|error| forge_denial(&error, Some(&repository)))?;
        let purpose = Purpose::Discovery(repository.clone());
        Ok(v1::Permit { bind: true, ..permit::forward(live.run(), &purpose, &minted, &repository, now) })
    }

    async fn probe(&self, live: &Live, repository: RepositoryName, now: SystemTime) -> Result<v1::Permit, Denial> {
        let writer = live.writer()?;
        let (minted, facts) = self.at_bound(writer, writer.bound()?, &repository, now).await?;
        let purpose = Purpose::Probe(facts.full_name.clone());
        Ok(permit::forward(live.run(), &purpose, &minted, &facts.full_name, now))
    }

    /// Forgets what is too old to matter. To be called now and then.
    pub fn tidy(&self) {
        self.discoveries.tidy();
    }
}

fn read_scope(live: &Live) -> ReadScope {
    match live.run().terms.options.read_repositories.as_slice() {
        [] => ReadScope::All,
        names => ReadScope::Repositories(names.to_vec()),
    }
}
