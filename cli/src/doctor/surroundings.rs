//! What there is to look at: read once, at the start.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::Findings;
use super::git_config::{self, Read, Setting};
use super::tree::Tree;
use crate::args::DoctorArgs;

/// Most bytes that are read of a file of settings.
const BYTES: u64 = 4 << 20;

/// The text of a file of settings; what is no text in it does not hide the rest.
pub(super) fn text_of(file: &Path) -> Option<String> {
    // A pipe of that name would be waited for.
    if !file.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    File::open(file).ok()?.take(BYTES).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// A workspace from the inside.
pub(super) struct Surroundings {
    environment: Vec<(String, String)>,
    homes: Vec<PathBuf>,
    workspaces: Vec<PathBuf>,
    proc: PathBuf,
    tree: Tree,
    settings: Vec<Setting>,
    /// What variables keep out of them.
    kept_out: Vec<Setting>,
    /// What could not be looked at.
    notes: Vec<String>,
}

impl Surroundings {
    /// Reads the environment, git's settings and the names of the files.
    pub(super) fn of(args: DoctorArgs) -> Self {
        let variables = std::env::vars_os();
        let text = |value: std::ffi::OsString| value.to_string_lossy().into_owned();
        let environment: Vec<_> = variables.map(|(name, value)| (text(name), text(value))).collect();
        let home = environment.iter().find(|(name, value)| name == "HOME" && !value.is_empty());
        let homes = or(args.homes, home.map(|(_, value)| value.into()));
        let workspaces = or(args.workspaces, std::env::current_dir().ok());
        Self::read(environment, homes, workspaces, args.proc)
    }

    /// The same, as it is now.
    pub(super) fn again(self) -> Self {
        Self::read(self.environment, self.homes, self.workspaces, self.proc)
    }

    fn read(
        environment: Vec<(String, String)>,
        homes: Vec<PathBuf>,
        workspaces: Vec<PathBuf>,
        proc: PathBuf,
    ) -> Self {
        let mut notes = Vec::new();
        let mut exact = |roots: Vec<PathBuf>| -> Vec<PathBuf> {
            let found = roots.into_iter().filter_map(|root| match root.canonicalize() {
                Ok(root) => Some(root),
                Err(why) => {
                    notes.push(format!("{}: {why}; it was not looked through", root.display()));
                    None
                }
            });
            found.collect()
        };
        let (homes, workspaces) = (exact(homes), exact(workspaces));
        if homes.is_empty() {
            notes.push("no home is known here, and none was looked through; --home names it".to_owned());
        }
        let tree = Tree::walk(&homes.iter().chain(&workspaces).collect::<Vec<_>>());
        notes.extend(tree.stopped_short());
        let (settings, kept_out) = (Vec::new(), Vec::new());
        let mut this = Self { environment, homes, workspaces, proc, tree, settings, kept_out, notes };
        let Read { in_force, kept_out, unread } = git_config::read(&this);
        this.notes.extend(unread);
        Self { settings: in_force, kept_out, ..this }
    }

    /// Says what could not be looked at.
    pub(super) fn remark(&self, findings: &mut Findings) {
        for note in &self.notes {
            findings.stopped_short(note);
        }
    }

    /// Every variable.
    pub(super) fn environment(&self) -> impl Iterator<Item = (&str, &str)> {
        self.environment.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// A variable that is not empty.
    pub(super) fn variable(&self, name: &str) -> Option<&str> {
        self.environment().find(|(known, value)| *known == name && !value.is_empty()).map(|(_, value)| value)
    }
}

/// The places.
impl Surroundings {
    /// Homes, by their full names.
    pub(super) fn homes(&self) -> &[PathBuf] {
        &self.homes
    }

    /// Folders of work, likewise.
    pub(super) fn workspaces(&self) -> &[PathBuf] {
        &self.workspaces
    }

    /// Where the processes are.
    pub(super) fn proc(&self) -> &Path {
        &self.proc
    }

    /// The files.
    pub(super) fn tree(&self) -> &Tree {
        &self.tree
    }

    /// git's settings, whether or not variables keep them out.
    pub(super) fn settings(&self) -> impl Iterator<Item = &Setting> {
        self.settings.iter().chain(&self.kept_out)
    }

    /// Those that git obeys here.
    pub(super) fn settings_in_force(&self) -> &[Setting] {
        &self.settings
    }

    /// Places of this name below the folders of settings: what `XDG_CONFIG_HOME` names, and each home's `.config`.
    pub(super) fn in_config(&self, name: &str) -> Vec<PathBuf> {
        self.below("XDG_CONFIG_HOME", ".config", name)
    }

    /// Likewise, below the folders of caches.
    pub(super) fn in_cache(&self, name: &str) -> Vec<PathBuf> {
        self.below("XDG_CACHE_HOME", ".cache", name)
    }

    /// Places of this name in the homes.
    pub(super) fn in_homes(&self, name: &str) -> Vec<PathBuf> {
        self.homes.iter().map(|home| home.join(name)).collect()
    }

    fn below(&self, variable: &str, folder: &str, name: &str) -> Vec<PathBuf> {
        let named = self.variable(variable).map(PathBuf::from);
        let folders = named.into_iter().chain(self.in_homes(folder));
        folders.map(|folder| folder.join(name)).collect()
    }
}

fn or(named: Vec<PathBuf>, default: Option<PathBuf>) -> Vec<PathBuf> {
    if named.is_empty() { default.into_iter().collect() } else { named }
}
