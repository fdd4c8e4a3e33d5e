//! Whether a name is one of the repository that a run is bound to. The id decides; a rename is followed.

use std::time::SystemTime;

use gitdoor_proto::{Denial, Reason, RepositoryName};

use super::{Gate, forge_denial, store_denial, unreadable};
use crate::forge::{Facts, Forge, Minted, Target};
use crate::policy::bearer::Writer;
use crate::run::Binding;
use crate::store::Store;

impl<S: Store, F: Forge> Gate<S, F> {
    /// The write token of the bound repository and what the forge says of it, if `asked` is a name of it: the one
    /// that it was bound under, or its present one.
    pub(super) async fn at_bound(
        &self,
        writer: Writer<'_>,
        binding: &Binding,
        asked: &RepositoryName,
        now: SystemTime,
    ) -> Result<(Minted, Facts), Denial> {
        let name = binding.repository.clone();
        let target = Target::Bound { id: binding.repository_id, name };
        let workflows = writer.run().terms.options.workflows;
        let minted = self.forge.write_token(&target, workflows, now).await;
        let minted = minted.map_err(|error| forge_denial(&error, Some(&binding.repository)))?;
        let renamed = *asked != binding.repository;
        let facts = self.forge.facts(&minted, renamed, now).await;
        let facts = facts.map_err(|error| unreadable(&binding.repository, Some(&error)))?;
        if facts.id != binding.repository_id {
            return Err(unreadable(&binding.repository, None));
        }
        if renamed && *asked != facts.full_name {
            return Err(elsewhere(&facts.full_name, asked));
        }
        self.note_default_branch(writer, binding, &facts).await?;
        Ok((minted, facts))
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
pub(super) fn elsewhere(bound: &RepositoryName, asked: &RepositoryName) -> Denial {
    let words = format!("this run is bound to {bound} and may push nowhere else; push there, not to {asked}");
    Denial::new(Reason::BoundElsewhere, words)
}
