//! The model: what a store answers, written once more from what is promised, with none of the code that it is
//! compared to. Its runs and pushes are plain maps, and it has one clock.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use gitdoor_proto::{BearerHash, RunId};

use crate::push::{Closing, Outcome, Push, PushId};
use crate::run::{Binding, Run, StoredBearer, Terms};
use crate::store::{Adopted, Closed, Opened, Registered, Rotated};

/// The open pushes of a run at once, in the walks.
pub(super) const MOST: u32 = 2;

#[derive(Debug)]
pub(super) struct Model {
    pub(super) now: SystemTime,
    pub(super) runs: BTreeMap<String, Run>,
    pub(super) pushes: BTreeMap<[u8; 16], Push>,
}

impl Model {
    pub(super) fn is_live(&self, id: &str) -> bool {
        self.runs.get(id).is_some_and(|run| run.revoked_at.is_none() && self.now < run.expires_at)
    }

    fn is_live_with(&self, id: &str, generation: u64) -> bool {
        self.is_live(id) && self.runs[id].bearer.generation == generation
    }

    fn end_of(&self, budget: Duration) -> SystemTime {
        self.now + budget + Duration::from_mins(5)
    }

    pub(super) fn register(
        &mut self,
        name: &str,
        terms: Terms,
        hash: BearerHash,
        binding: Option<Binding>,
    ) -> Registered {
        let live = self.is_live(name);
        let Some(run) = self.runs.get_mut(name) else {
            let run = Run {
                id: RunId::parse(name).unwrap(),
                bearer: StoredBearer { hash, generation: 1 },
                first_used_at: None,
                registered_at: self.now,
                adopted_at: None,
                expires_at: self.end_of(terms.budget),
                revoked_at: None,
                binding,
                terms,
            };
            self.runs.insert(name.to_owned(), run.clone());
            return Registered::Created(run);
        };
        if !live || run.first_used_at.is_some() || run.adopted_at.is_some() || run.terms != terms {
            return Registered::Exists(run.clone());
        }
        run.bearer = StoredBearer { hash, generation: run.bearer.generation + 1 };
        Registered::Replaced(run.clone())
    }

    pub(super) fn adopt(&mut self, name: &str, budget: Duration) -> Adopted {
        let (live, now, end) = (self.is_live(name), self.now, self.end_of(budget));
        match self.runs.get_mut(name) {
            None => Adopted::Unknown,
            Some(run) if live => {
                run.adopted_at = Some(now);
                run.expires_at = end;
                Adopted::Adopted(run.clone())
            }
            Some(run) => Adopted::NotLive(run.clone()),
        }
    }

    pub(super) fn rotate(&mut self, name: &str, hash: BearerHash) -> Rotated {
        let live = self.is_live(name);
        match self.runs.get_mut(name) {
            None => Rotated::Unknown,
            Some(run) if live => {
                run.bearer = StoredBearer { hash, generation: run.bearer.generation + 1 };
                Rotated::Rotated(run.clone())
            }
            Some(run) => Rotated::NotLive(run.clone()),
        }
    }

    pub(super) fn mark_used(&mut self, name: &str, generation: u64) -> bool {
        match self.runs.get_mut(name) {
            Some(run) if run.bearer.generation == generation => {
                run.first_used_at = run.first_used_at.or(Some(self.now));
                true
            }
            Some(_) | None => false,
        }
    }

    pub(super) fn bind(&mut self, name: &str, generation: u64, binding: &Binding) -> Option<Run> {
        let may = self.is_live_with(name, generation);
        let run = self.runs.get_mut(name)?;
        if may && run.binding.is_none() {
            run.binding = Some(binding.clone());
        }
        Some(run.clone())
    }

    pub(super) fn see_default_branch(&mut self, name: &str, branch: &str) -> Option<Run> {
        let run = self.runs.get_mut(name)?;
        if let Some(binding) = &mut run.binding {
            binding.default_branch = branch.to_owned();
            if !binding.default_branches.contains(&binding.default_branch) {
                binding.default_branches.push(branch.to_owned());
            }
        }
        Some(run.clone())
    }

    pub(super) fn revoke(&mut self, name: &str) -> Option<Run> {
        let run = self.runs.get_mut(name)?;
        run.revoked_at = run.revoked_at.or(Some(self.now));
        Some(run.clone())
    }

    /// Nothing: the store fails.
    pub(super) fn open_push(&mut self, push: &Push, generation: u64) -> Option<Opened> {
        let name = push.run.as_str();
        if !self.is_live_with(name, generation) {
            return Some(Opened::Stale(self.runs.get(name).cloned().map(Box::new)));
        }
        let others = self.pushes_in(&[Outcome::Open], Some(name)).into_iter().filter(|open| *open != push.id);
        if others.count() >= MOST as usize {
            return Some(Opened::TooMany);
        }
        let Some(known) = self.pushes.get_mut(push.id.as_bytes()) else {
            return self.record(push).then_some(Opened::Open);
        };
        if !matches!(known.outcome, Outcome::Open | Outcome::Unknown) {
            return Some(Opened::Known);
        }
        (known.outcome, known.closed_at) = (Outcome::Open, None);
        Some(Opened::Again)
    }

    /// Whether there was a run for it. The first push of an id stands.
    pub(super) fn record(&mut self, push: &Push) -> bool {
        let known = self.runs.contains_key(push.run.as_str());
        if known {
            self.pushes.entry(*push.id.as_bytes()).or_insert_with(|| push.clone());
        }
        known || self.pushes.contains_key(push.id.as_bytes())
    }

    pub(super) fn close_push(&mut self, id: PushId, closing: &Closing) -> Closed {
        let Some(push) = self.pushes.get_mut(id.as_bytes()) else { return Closed::Unknown };
        let reported = closing.outcome != Outcome::Unknown;
        if push.outcome != Outcome::Open && !(push.outcome == Outcome::Unknown && reported) {
            return Closed::Before;
        }
        push.outcome = closing.outcome;
        push.request_bytes = closing.request_bytes;
        push.closed_at = Some(closing.at);
        for (name, words) in &closing.upstream_refusals {
            let named = push.refs.iter_mut().filter(|pushed| pushed.command.ref_name == *name);
            named.for_each(|pushed| pushed.refusal = Some(words.clone()));
        }
        Closed::Now
    }

    /// How many rows go.
    pub(super) fn prune(&mut self, before: SystemTime) -> usize {
        let rows = |model: &Self| {
            let refs: usize = model.pushes.values().map(|push| push.refs.len()).sum();
            model.runs.len() + model.pushes.len() + refs
        };
        let before_it = rows(self);
        self.runs.retain(|_, run| run.expires_at >= before);
        let runs = &self.runs;
        self.pushes.retain(|_, push| runs.contains_key(push.run.as_str()));
        before_it - rows(self)
    }

    /// The pushes of a run, newest first.
    pub(super) fn pushes_of(&self, name: &str) -> Vec<Push> {
        let mut pushes: Vec<Push> =
            self.pushes.values().filter(|push| push.run.as_str() == name).cloned().collect();
        // Stable: those of one time stay in the order of their ids.
        pushes.sort_by_key(|push| std::cmp::Reverse(push.opened_at));
        pushes
    }

    /// The pushes of one run, or of all, that have one of these outcomes, in the order of their ids.
    pub(super) fn pushes_in(&self, outcomes: &[Outcome], name: Option<&str>) -> Vec<PushId> {
        let is_in =
            |push: &&Push| outcomes.contains(&push.outcome) && name.is_none_or(|name| push.run.as_str() == name);
        self.pushes.values().filter(is_in).map(|push| push.id).collect()
    }
}
