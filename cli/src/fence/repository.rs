//! The repository of the working folder: which other folder git needs, and what in both git runs or obeys.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::mounts::{Mounts, What};
use super::{Caller, FenceError, obeyed};

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
            let leads = entry.canonicalize().unwrap_or_else(|_| entry.clone());
            // A link there may be the work of a command that was here before.
            if leads != entry && !share.iter().any(|shared| leads.starts_with(shared)) {
                return Err(FenceError::Stray { file: entry, leads });
            }
            return Ok(Self { folder: Some(leads), links: Vec::new() });
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
    pub(super) fn mount(
        &self,
        mounts: &mut Mounts,
        caller: &Caller,
        work: &Path,
        writable: &[PathBuf],
        all: bool,
    ) -> Result<(), FenceError> {
        let Some(folder) = &self.folder else { return Ok(()) };
        // A place of its own even where it is seen anyway: it cannot be moved away and made anew.
        mounts.add(folder.clone(), What::Shared);
        if all {
            return Ok(());
        }
        let own =
            [work.join(".git")].into_iter().filter(|entry| entry.is_symlink()).chain(self.links.iter().cloned());
        let obeyed = own.chain(obeyed::of(folder, caller, work, writable));
        for place in obeyed {
            if let Some(link) = obeyed::link_on(&place, writable) {
                return Err(FenceError::Link(link));
            }
            let Ok(place) = place.canonicalize() else { continue };
            if writable.iter().any(|folder| place != *folder && place.starts_with(folder)) {
                mounts.pin(place, What::Shown);
            }
        }
        Ok(())
    }
}

/// Who commits, as flags of the program inside: the settings that say so stay out.
pub(super) fn identity(caller: &Caller, work: &Path) -> Vec<OsString> {
    let of = |key: &str, flag: &str| {
        let value = git(caller, work, &["config".as_ref(), "--get".as_ref(), key.as_ref()])?;
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
    // As git makes them, and so in a place that only git's own folder has: whoever can write there had the repository.
    let common = follow(&leads, &leads.join("commondir"), "").filter(|common| {
        leads.parent() == Some(&common.join("worktrees")) && is_bare(common) && !leads.starts_with(&base)
    });
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

/// What git says, as the caller would be told. It runs nothing that the repository names.
pub(super) fn git(caller: &Caller, work: &Path, arguments: &[&OsStr]) -> Option<Vec<u8>> {
    let mut git = Command::new(caller.find("git".as_ref())?);
    git.args(arguments).current_dir(work).env_clear().envs(caller.all()).stdin(Stdio::null());
    // The repository is the one that is here.
    for name in ["GIT_DIR", "GIT_COMMON_DIR", "GIT_WORK_TREE"] {
        git.env_remove(name);
    }
    let output = git.output().ok()?;
    output.status.success().then_some(output.stdout)
}
