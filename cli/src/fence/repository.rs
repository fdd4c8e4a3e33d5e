//! The repository of the working folder: which other folder git needs, and what in both git runs or obeys.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::mounts::{Mounts, What};
use super::{Caller, FenceError};

/// A repository, or none.
#[derive(Debug, Default)]
pub(super) struct Repository {
    /// What git keeps everything in.
    folder: Option<PathBuf>,
    /// The file that leads there from a worktree, and what leads from there on.
    links: Vec<PathBuf>,
}

impl Repository {
    /// Looks for it.
    pub(super) fn of(work: &Path, homes: &[PathBuf], share: &[PathBuf]) -> Result<Self, FenceError> {
        let entry = work.join(".git");
        if entry.is_dir() {
            return Ok(Self { folder: entry.canonicalize().ok(), links: Vec::new() });
        }
        if entry.is_file() {
            return linked(entry, share);
        }
        if is_bare(work) {
            return Ok(Self { folder: Some(work.to_owned()), links: Vec::new() });
        }
        // A home may be a repository of settings: that is none of the work's.
        let above =
            work.ancestors().skip(1).take_while(|folder| !homes.iter().any(|home| home.starts_with(folder)));
        match above.into_iter().find(|folder| folder.join(".git").exists()) {
            Some(top) => Err(FenceError::Part { work: work.to_owned(), top: top.to_owned() }),
            None => Ok(Self::default()),
        }
    }

    /// The folder that git writes.
    pub(super) fn folder(&self) -> Option<&PathBuf> {
        self.folder.as_ref()
    }

    /// Lets git write, and not change what it runs or obeys when the user calls it outside.
    pub(super) fn mount(&self, mounts: &mut Mounts, caller: &Caller, work: &Path, writable: &[PathBuf], all: bool) {
        let Some(folder) = &self.folder else { return };
        // A place of its own even where it is seen anyway: it cannot be moved away and made anew.
        mounts.add(folder.clone(), What::Shared);
        if all {
            return;
        }
        // What is not there could be made.
        drop(fs::create_dir(folder.join("hooks")));
        drop(File::create_new(folder.join("config")));
        if fs::read_to_string(folder.join("config"))
            .is_ok_and(|text| text.to_lowercase().contains("worktreeconfig"))
        {
            drop(File::create_new(folder.join("config.worktree")));
        }
        let names = ["hooks", "config", "config.worktree", "commondir"];
        let own = names.into_iter().map(|name| folder.join(name)).chain(self.links.iter().cloned());
        let obeyed = own.chain(settings(caller, work)).filter_map(|place| place.canonicalize().ok());
        for place in
            obeyed.filter(|place| writable.iter().any(|folder| place != folder && place.starts_with(folder)))
        {
            mounts.add(place, What::Shown);
        }
    }
}

/// Who commits, as flags of the program inside: the settings that say so stay out.
pub(super) fn identity(caller: &Caller, work: &Path) -> Vec<OsString> {
    let of = |key: &str, flag: &str| {
        let value = git(caller, work, &["config", "--get", key])?;
        let value = value.strip_suffix(b"\n").unwrap_or(&value);
        let value = str::from_utf8(value).ok().filter(|value| !value.is_empty())?;
        Some(format!("{flag}={value}").into())
    };
    of("user.name", "--name").into_iter().chain(of("user.email", "--email")).collect()
}

/// A worktree: its folder must say that this file leads there, or anybody's file could open any folder.
fn linked(entry: PathBuf, share: &[PathBuf]) -> Result<Repository, FenceError> {
    let base = entry.parent().unwrap_or(&entry).to_owned();
    let follow = |base: &Path, file: &Path, key: &str| -> Option<PathBuf> {
        let text = fs::read_to_string(file).ok()?;
        base.join(text.trim_end().strip_prefix(key)?).canonicalize().ok()
    };
    let leads = follow(&base, &entry, "gitdir: ").unwrap_or_default();
    let common =
        follow(&leads, &leads.join("commondir"), "").filter(|common| leads.starts_with(common.join("worktrees")));
    let back = follow(&leads, &leads.join("gitdir"), "");
    if let Some(common) = common.filter(|_| back.as_ref() == Some(&entry)) {
        let links = ["commondir", "gitdir", "config.worktree"].map(|name| leads.join(name));
        return Ok(Repository { folder: Some(common), links: [entry].into_iter().chain(links).collect() });
    }
    if share.iter().any(|shared| leads.starts_with(shared)) {
        return Ok(Repository { folder: Some(leads), links: vec![entry] });
    }
    Err(FenceError::Stray { file: entry, leads })
}

fn is_bare(work: &Path) -> bool {
    work.join("HEAD").is_file() && work.join("objects").is_dir() && work.join("config").is_file()
}

/// The files of settings that git reads there, what is included, too; and the folder that it takes hooks from.
fn settings(caller: &Caller, work: &Path) -> Vec<PathBuf> {
    let listed = git(caller, work, &["config", "--list", "-z", "--show-origin", "--includes", "--name-only"]);
    let files = listed.iter().flat_map(|listed| listed.split(|byte| *byte == 0));
    let files = files.filter_map(|origin| origin.strip_prefix(b"file:"));
    let hooks = git(caller, work, &["rev-parse", "--git-path", "hooks"]);
    let hooks = hooks.iter().map(|hooks| hooks.strip_suffix(b"\n").unwrap_or(hooks));
    files.chain(hooks).map(|place| work.join(OsStr::from_bytes(place))).collect()
}

/// What git says, as the caller would be told. It runs nothing that the repository names.
fn git(caller: &Caller, work: &Path, arguments: &[&str]) -> Option<Vec<u8>> {
    let mut git = Command::new(caller.find("git".as_ref())?);
    git.args(arguments).current_dir(work).env_clear().envs(caller.all()).stdin(Stdio::null());
    let output = git.output().ok()?;
    output.status.success().then_some(output.stdout)
}
