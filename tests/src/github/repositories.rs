//! Repositories: how a test makes, changes and looks at them, and the table of their names, also former ones.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use super::Github;
use super::furnished::Furnishing;
use super::seed::{Seed, git};

/// Its repositories.
impl Github {
    /// Makes a private repository of the installation with three commits on `main`; returns its id.
    pub fn create(&self, name: &str) -> u64 {
        self.seed(name).create()
    }

    /// A repository that differs from that.
    pub fn seed(&self, name: &str) -> Seed<'_> {
        Seed::new(self, name)
    }

    /// Renames one; the old name redirects.
    pub fn rename(&self, from: &str, to: &str) {
        self.state.repositories.lock().unwrap().rename(from, to);
    }

    /// Deletes one.
    pub fn delete(&self, name: &str) {
        self.state.repositories.lock().unwrap().remove(name);
    }

    /// Takes one out of the installation, or puts it in.
    pub fn set_installed(&self, name: &str, installed: bool) {
        self.state.repositories.lock().unwrap().change(name, |repository| repository.installed = installed);
    }

    /// Makes another branch the default one.
    pub fn set_default_branch(&self, name: &str, branch: &str) {
        fs::write(self.folder(name).join("HEAD"), format!("ref: refs/heads/{branch}\n")).expect("a file");
        let change = |repository: &mut Repository| branch.clone_into(&mut repository.default_branch);
        self.state.repositories.lock().unwrap().change(name, change);
    }

    /// Lets the repository itself refuse a ref, as a rule on a branch does.
    pub fn forbid_ref(&self, name: &str, reference: &str) {
        let path = self.folder(name).join("forbidden");
        let mut file = fs::OpenOptions::new().create(true).append(true).open(path).expect("a file");
        writeln!(file, "{reference}").expect("to be written");
    }

    /// Holds back every push, once it was read whole and before a ref moves, until [`Github::let_pushes_go`].
    pub fn hold_pushes(&self, name: &str) {
        let hook = self.folder(name).join("hooks/pre-receive");
        fs::write(&hook, "#!/bin/sh\nuntil [ -e let-go ]; do sleep 0.05; done\n").expect("a hook");
        fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).expect("a hook that runs");
    }

    /// Lets held pushes go on.
    pub fn let_pushes_go(&self, name: &str) {
        fs::write(self.folder(name).join("let-go"), "").expect("a file");
    }

    /// All refs of a repository with their object ids.
    pub fn refs(&self, name: &str) -> BTreeMap<String, String> {
        let text = self.git(name, &["for-each-ref", "--format=%(refname) %(objectname)"]);
        text.lines().filter_map(|line| line.split_once(' ')).map(|(r, id)| (r.to_owned(), id.to_owned())).collect()
    }

    /// The object id of one ref, by its full name.
    pub fn ref_of(&self, name: &str, reference: &str) -> Option<String> {
        self.refs(name).remove(reference)
    }

    /// What a git command on the bare repository prints; it must succeed.
    #[track_caller]
    pub fn git(&self, name: &str, arguments: &[&str]) -> String {
        let output = git(&self.folder(name)).args(arguments).output().expect("git");
        assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    }

    /// The bare repository, also by a former name.
    #[track_caller]
    pub fn folder(&self, name: &str) -> PathBuf {
        match self.state.repositories.lock().unwrap().find(name) {
            Some(Found::Here(found) | Found::Moved(found)) => found.folder,
            None => panic!("there is no repository {name}"),
        }
    }
}

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
