//! The gate: what a data plane asks, decided. Bearer, limits, policy, mint, facts, ledger, permit: in this order.

mod buckets;
mod denial;
mod permit;
mod place;
mod push;
pub mod question;
mod requests;
#[cfg(test)]
mod tests;
mod tickets;
mod window;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use gitdoor_proto::{Bearer, Denial, Reason, RepositoryName, v1};

use self::buckets::{Buckets, Size};
use self::place::Name;
use self::question::{Intent, Question};
use self::requests::Requests;
use self::window::Window;
use crate::forge::{Forge, Minted, ReadScope, Target};
use crate::lease::Leases;
use crate::policy::bearer::{self, Live};
use crate::run::Options;
use crate::store::Store;
use crate::ticket::{Holder, Purpose};

pub use self::denial::{cause, forge_denial, store_denial, unreadable};
pub use self::requests::{REQUESTS, RequestPlace};
pub use self::tickets::Report;

/// Push discoveries that a run has in a minute before it is bound.
const DISCOVERIES: usize = 10;
/// Refused pushes of a run that are written to the ledger in a minute; each may have hundreds of refs.
const REFUSALS: usize = 20;

/// Refs that a run may push: many at once, as a repository with all its branches has, and then ten a second. Each is
/// a row of the ledger, whether or not the push that names it is ever sent.
const PUSHED_REFS: Size = Size { burst: 1000, rate: 10.0 };

/// A yes to one request.
#[derive(Debug)]
pub struct Permitted {
    /// The permit.
    pub permit: v1::Permit,
    /// The request's place among those of its run, to be kept until the request has ended. None: it has no streams.
    pub place: Option<RequestPlace>,
}

/// Decides for one store and one forge.
#[derive(Debug)]
pub struct Gate<S, F> {
    store: Arc<S>,
    forge: Arc<F>,
    leases: Arc<Leases>,
    /// Push discoveries of unbound runs: each may mint a token for another repository.
    discoveries: Window,
    /// Refused pushes that are written to the ledger: a hostile run must not fill the store.
    refusals: Window,
    /// Refs of pushes that are let through, for the same reason.
    pushed_refs: Buckets,
    /// Requests under way: a run must not take the door from the others.
    requests: Requests,
    /// API requests: all runs of an installation share the forge's own limit.
    api_requests: Buckets,
}

impl<S: Store, F: Forge> Gate<S, F> {
    /// A gate.
    #[must_use]
    pub fn new(store: Arc<S>, forge: Arc<F>, leases: Arc<Leases>) -> Self {
        Self {
            store,
            forge,
            leases,
            discoveries: Window::new(DISCOVERIES),
            refusals: Window::new(REFUSALS),
            pushed_refs: Buckets::default(),
            requests: Requests::default(),
            api_requests: Buckets::default(),
        }
    }

    /// The leases that it grants.
    #[must_use]
    pub fn leases(&self) -> &Leases {
        &self.leases
    }

    /// May this request be made, and with which token?
    pub async fn authorize(&self, question: Question, now: SystemTime) -> Result<Permitted, Denial> {
        let Question { bearer, holder, request_id, intent } = question;
        let live = self.admit(&bearer, now).await?;
        let place = if intent.has_streams() { Some(self.requests.take(&live.run().id)?) } else { None };
        let permit = match intent {
            Intent::Verify => permit::verified(live.run(), now),
            Intent::Describe => permit::described(live.run(), now),
            Intent::Api => self.api(&live, now).await?,
            Intent::Fetch(repository) => self.fetch(&live, holder, repository, now).await?,
            Intent::Discovery { repository, redirected } => {
                self.discovery(&live, holder, Name { asked: repository, redirected }, now).await?
            }
            Intent::Probe(repository) => self.probe(&live, holder, repository, now).await?,
            Intent::Push { repository, commands, key } => {
                self.push(&live, push::Asked { holder, request_id, repository, commands, key }, now).await?
            }
        };
        Ok(Permitted { permit, place })
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

    async fn fetch(
        &self,
        live: &Live,
        holder: Option<Holder>,
        repository: RepositoryName,
        now: SystemTime,
    ) -> Result<v1::Permit, Denial> {
        let minted = self.read_token(live, now).await?;
        Ok(permit::forward(live.run(), &Purpose::Fetch(repository.clone()), holder, &minted, &repository, now))
    }

    async fn api(&self, live: &Live, now: SystemTime) -> Result<v1::Permit, Denial> {
        let options = &live.run().terms.options;
        let size = Size { burst: options.api_burst.get(), rate: options.api_rate };
        self.api_requests.take(live.run(), size, 1, now).map_err(|wait| api_limit(options, wait))?;
        let minted = self.read_token(live, now).await?;
        Ok(permit::api(live.run(), &minted, now))
    }

    /// The read token of the run's scope, whatever the request names: the forge knows what may be read with it.
    async fn read_token(&self, live: &Live, now: SystemTime) -> Result<Minted, Denial> {
        let scope = match live.run().terms.options.read_repositories.as_slice() {
            [] => ReadScope::All,
            names => ReadScope::Repositories(names.to_vec()),
        };
        self.forge.read_token(&scope, now).await.map_err(|error| denial::read_denial(&error))
    }

    async fn discovery(
        &self,
        live: &Live,
        holder: Option<Holder>,
        name: Name,
        now: SystemTime,
    ) -> Result<v1::Permit, Denial> {
        let writer = live.writer()?;
        if let Some(binding) = &live.run().binding {
            let (minted, facts) = self.at_bound(writer, binding, &name, now).await?;
            // A former name is asked for as it is: the forge alone knows whether it still leads to the repository or
            // is another's by now, on which the pinned token is no good.
            let place = if name.asked == facts.full_name { &facts.full_name } else { &name.asked };
            let purpose = Purpose::Discovery(place.clone());
            return Ok(permit::forward(live.run(), &purpose, holder, &minted, place, now));
        }
        self.discoveries.take(&live.run().id).map_err(discovery_limit)?;
        let minted = self.write_named(live, &name.asked, now).await?;
        let purpose = Purpose::Discovery(name.asked.clone());
        Ok(v1::Permit { bind: true, ..permit::forward(live.run(), &purpose, holder, &minted, &name.asked, now) })
    }

    /// The write token of a repository that the run is not bound to yet.
    async fn write_named(&self, live: &Live, name: &RepositoryName, now: SystemTime) -> Result<Minted, Denial> {
        let target = Target::Named(name.clone());
        let minted = self.forge.write_token(&target, live.run().terms.options.workflows, now).await;
        minted.map_err(|error| forge_denial(&error, Some(name)))
    }

    async fn probe(
        &self,
        live: &Live,
        holder: Option<Holder>,
        repository: RepositoryName,
        now: SystemTime,
    ) -> Result<v1::Permit, Denial> {
        let writer = live.writer()?;
        let name = Name { asked: repository, redirected: false };
        let (minted, facts) = self.at_bound(writer, writer.bound()?, &name, now).await?;
        let purpose = Purpose::Probe(facts.full_name.clone());
        Ok(permit::forward(live.run(), &purpose, holder, &minted, &facts.full_name, now))
    }

    /// Forgets what is too old to matter. To be called now and then.
    pub fn tidy(&self) {
        self.discoveries.tidy();
        self.refusals.tidy();
        self.pushed_refs.tidy();
        self.api_requests.tidy();
    }
}

fn discovery_limit(wait: Duration) -> Denial {
    let words = format!("a run that is bound to no repository may start {DISCOVERIES} pushes a minute; wait");
    Denial::new(Reason::DiscoveryLimit, words).retry_after(wait)
}

fn api_limit(options: &Options, wait: Duration) -> Denial {
    let Options { api_burst, api_rate, .. } = options;
    let words = format!(
        "this run's API requests are spent: it may make {api_burst} at once and {api_rate} a second; wait, ask for \
         more in one request (per_page=100, one GraphQL query), or work from the clone"
    );
    Denial::new(Reason::ApiLimit, words).retry_after(whole_seconds(wait))
}

/// A client is told whole seconds, and whoever comes back early is refused again.
fn whole_seconds(wait: Duration) -> Duration {
    Duration::from_secs(wait.as_secs() + u64::from(wait.subsec_nanos() > 0))
}
