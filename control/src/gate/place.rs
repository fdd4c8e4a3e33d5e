//! Whether a name is one of the repository that a run is bound to. The id decides; a rename is followed.

use std::time::SystemTime;

use gitdoor_proto::{Denial, Reason, RepositoryName};

use super::{Gate, forge_denial, store_denial, unreadable};
use crate::forge::{Facts, Forge, Minted, Target};
use crate::policy::bearer::Writer;
use crate::run::Binding;
use crate::store::Store;

/// A name that a push asks for.
pub(super) struct Name {
    pub(super) asked: RepositoryName,
    /// The forge itself sent the client's name here.
    pub(super) redirected: bool,
}

impl<S: Store, F: Forge> Gate<S, F> {
    /// The write token of the bound repository and what the forge says of it, if `name` is a name of it: the one
    /// that it was bound under, or its present one.
    pub(super) async fn at_bound(
        &self,
        writer: Writer<'_>,
        binding: &Binding,
        name: &Name,
        now: SystemTime,
    ) -> Result<(Minted, Facts), Denial> {
        let renamed = name.asked != binding.repository;
        let (mut minted, mut facts) = self.read_bound(writer, binding, renamed, now).await?;
        let mut elsewhere = renamed && name.asked != facts.full_name;
        // Facts of less than a minute ago know nothing of a rename that the forge itself tells of: those of
        // another token do. A token is dropped at most once a minute.
        if elsewhere && name.redirected && self.forge.reject(minted.id(), now).await {
            (minted, facts) = self.read_bound(writer, binding, renamed, now).await?;
            elsewhere = name.asked != facts.full_name;
        }
        if elsewhere {
            return Err(bound_elsewhere(&facts.full_name, &name.asked));
        }
        self.note_default_branch(writer, binding, &facts).await?;
        Ok((minted, facts))
    }

    async fn read_bound(
        &self,
        writer: Writer<'_>,
        binding: &Binding,
        fresh: bool,
        now: SystemTime,
    ) -> Result<(Minted, Facts), Denial> {
        let target = Target::Bound { id: binding.repository_id, name: binding.repository.clone() };
        let minted = self.forge.write_token(&target, writer.run().terms.options.workflows, now).await;
        let minted = minted.map_err(|error| forge_denial(&error, Some(&binding.repository)))?;
        let facts = self.forge.facts(&minted, fresh, now).await;
        let facts = facts.map_err(|error| unreadable(&binding.repository, Some(&error)))?;
        if facts.id == binding.repository_id {
            Ok((minted, facts))
        } else {
            Err(unreadable(&binding.repository, None))
        }
    }

    /// A default branch that is new is in the store before anything is permitted on its ground.
    async fn note_default_branch(
        &self,
        writer: Writer<'_>,
        binding: &Binding,
        facts: &Facts,
    ) -> Result<(), Denial> {
        if facts.default_branch != binding.default_branch {
            let seen = self.store.see_default_branch(&writer.run().id, &facts.default_branch).await;
            seen.map_err(store_denial)?;
        }
        Ok(())
    }
}

/// The run is bound to another repository than the one asked for.
pub(super) fn bound_elsewhere(bound: &RepositoryName, asked: &RepositoryName) -> Denial {
    let words = format!("this run is bound to {bound} and may push nowhere else; push there, not to {asked}");
    Denial::new(Reason::BoundElsewhere, words)
}
