//! A forge of a few repositories in memory, for tests of what asks it.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use gitdoor_proto::RepositoryName;

use crate::forge::{Facts, Forge, MintError, Minted, ReadScope, Target};

/// A forge of repositories in memory. It keeps a token until it is rejected, and lists what was asked of it.
#[derive(Debug, Default)]
pub(crate) struct Village {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    repositories: HashMap<u64, Facts>,
    unreadable: bool,
    failure: Option<MintError>,
    generation: u64,
    rejected_lately: bool,
    facts_read: HashMap<String, (Facts, SystemTime)>,
    asked: Vec<String>,
}

impl Village {
    /// `acme/api` with default branch `main` and id 7, `acme/web` with `trunk` and 8.
    pub(crate) fn new() -> Self {
        let village = Self::default();
        village.put(7, "acme/api", "main");
        village.put(8, "acme/web", "trunk");
        village
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub(crate) fn unreadable(&self, unreadable: bool) {
        self.state().unreadable = unreadable;
    }

    pub(crate) fn fail(&self, failure: Option<MintError>) {
        self.state().failure = failure;
    }

    /// The tokens of before are over: the next mint gives others.
    pub(crate) fn tokens_expire(&self) {
        self.state().generation += 1;
    }

    pub(crate) fn a_minute_passes(&self) {
        self.state().rejected_lately = false;
    }

    pub(crate) fn put(&self, id: u64, name: &str, default_branch: &str) {
        let full_name = RepositoryName::parse(name).unwrap();
        let facts = Facts { id, full_name, default_branch: default_branch.into() };
        self.state().repositories.insert(id, facts);
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.state().asked)
    }

    fn id_of(&self, name: &RepositoryName) -> Result<u64, MintError> {
        let state = self.state();
        let found = state.repositories.values().find(|facts| facts.full_name == *name).map(|facts| facts.id);
        found.ok_or(MintError::RepositoryUnknown)
    }

    fn mint(&self, what: String, id: Option<u64>, now: SystemTime) -> Result<Minted, MintError> {
        let mut state = self.state();
        let text = format!("ghs_{what}_{}", state.generation).replace('/', "_");
        state.asked.push(what);
        let name = |id| state.repositories.get(&id).map(|facts| (id, facts.full_name.clone()));
        match &state.failure {
            Some(failure) => Err(*failure),
            None => Ok(Minted::new(text.into(), id.and_then(name), now, now + Duration::from_hours(1))),
        }
    }
}

impl Forge for Village {
    async fn read_token(&self, scope: &ReadScope, now: SystemTime) -> Result<Minted, MintError> {
        match scope {
            ReadScope::All => self.mint("read-all".into(), None, now),
            ReadScope::Repositories(names) => self.mint(format!("read-{names:?}"), None, now),
        }
    }

    async fn write_token(&self, target: &Target, workflows: bool, now: SystemTime) -> Result<Minted, MintError> {
        let id = match target {
            Target::Bound { id, .. } => *id,
            Target::Named(name) => self.id_of(name)?,
        };
        self.mint(format!("write-{id}{}", if workflows { "" } else { "-plain" }), Some(id), now)
    }

    async fn mirror_token(&self, repository: &RepositoryName, now: SystemTime) -> Result<Minted, MintError> {
        let id = self.id_of(repository)?;
        self.mint(format!("mirror-{id}"), Some(id), now)
    }

    async fn facts(&self, minted: &Minted, fresh: bool, now: SystemTime) -> Result<Facts, MintError> {
        let mut state = self.state();
        if state.unreadable {
            return Err(MintError::Unavailable(Duration::from_secs(3)));
        }
        if let Some((facts, read_at)) = state.facts_read.get(minted.id()) {
            // Who asked first may have been answered last.
            let age = now.duration_since(*read_at).unwrap_or_default();
            if !fresh || age <= Duration::from_mins(1) {
                return Ok(facts.clone());
            }
        }
        state.asked.push("facts".into());
        let id = minted.repository_id().unwrap();
        let facts = state.repositories.get(&id).cloned().ok_or(MintError::RepositoryUnknown)?;
        state.facts_read.insert(minted.id().to_owned(), (facts.clone(), now));
        Ok(facts)
    }

    async fn reject(&self, _: &str, _: SystemTime) -> bool {
        let mut state = self.state();
        if state.rejected_lately {
            return false;
        }
        state.rejected_lately = true;
        state.generation += 1;
        true
    }
}
