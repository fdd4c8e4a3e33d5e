//! The table of repositories: ids, names, and the names they had before.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::furnished::Furnishing;

/// One repository.
#[derive(Debug, Clone)]
pub(crate) struct Repository {
    pub(crate) id: u64,
    /// `owner/name`, as it is spelled.
    pub(crate) name: String,
    pub(crate) default_branch: String,
    pub(crate) private: bool,
    /// Whether it belongs to the installation.
    pub(crate) installed: bool,
    /// The bare repository.
    pub(crate) folder: PathBuf,
    /// What it has besides its objects.
    pub(crate) furnishing: Arc<Furnishing>,
}

/// How a name was found.
pub(crate) enum Found {
    /// It is the present one.
    Here(Repository),
    /// It was renamed.
    Moved(Repository),
}

/// All repositories.
#[derive(Debug, Default)]
pub(crate) struct Repositories {
    list: Vec<Repository>,
    /// Names that renamed repositories had, in lower case, with the id.
    former: HashMap<String, u64>,
    made: u64,
}

impl Repositories {
    /// An id that none has or had.
    pub(crate) fn next_id(&mut self) -> u64 {
        self.made += 1;
        8_100_000 + 17 * self.made
    }

    /// Adds one. A former name that it takes leads nowhere else from now on.
    pub(crate) fn add(&mut self, repository: Repository) {
        assert!(self.named(&repository.name).is_none(), "{} is there already", repository.name);
        self.former.remove(&repository.name.to_ascii_lowercase());
        self.list.push(repository);
    }

    /// By `owner/name` without case, also a former one.
    pub(crate) fn find(&self, name: &str) -> Option<Found> {
        if let Some(repository) = self.named(name) {
            return Some(Found::Here(repository.clone()));
        }
        let id = self.former.get(&name.to_ascii_lowercase())?;
        self.by_id(*id).cloned().map(Found::Moved)
    }

    /// All of them.
    pub(crate) fn all(&self) -> &[Repository] {
        &self.list
    }

    /// By id.
    pub(crate) fn by_id(&self, id: u64) -> Option<&Repository> {
        self.list.iter().find(|repository| repository.id == id)
    }

    /// By the name alone, as a mint request has it: one of the installation first.
    pub(crate) fn by_bare_name(&self, name: &str) -> Option<&Repository> {
        let same = |full: &str| full.split_once('/').is_some_and(|(_, bare)| bare.eq_ignore_ascii_case(name));
        let mut found = self.list.iter().filter(|repository| same(&repository.name)).collect::<Vec<_>>();
        found.sort_by_key(|repository| !repository.installed);
        found.first().copied()
    }

    /// Changes one that is there.
    pub(crate) fn change(&mut self, name: &str, change: impl FnOnce(&mut Repository)) {
        let same = |repository: &&mut Repository| repository.name.eq_ignore_ascii_case(name);
        change(self.list.iter_mut().find(same).expect("a repository of that name"));
    }

    /// Gives one another name; the old one leads to it.
    pub(crate) fn rename(&mut self, from: &str, to: &str) {
        let mut id = 0;
        self.change(from, |repository| {
            to.clone_into(&mut repository.name);
            id = repository.id;
        });
        self.former.insert(from.to_ascii_lowercase(), id);
        self.former.remove(&to.to_ascii_lowercase());
    }

    /// Takes one away.
    pub(crate) fn remove(&mut self, name: &str) {
        self.list.retain(|repository| !repository.name.eq_ignore_ascii_case(name));
    }

    fn named(&self, name: &str) -> Option<&Repository> {
        self.list.iter().find(|repository| repository.name.eq_ignore_ascii_case(name))
    }
}
