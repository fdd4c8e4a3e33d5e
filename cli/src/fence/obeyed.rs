//! What git runs or obeys of a repository, whoever calls it: its settings and what they include, its hooks, and the files
//! that lead its worktrees to it.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use super::Caller;
use super::repository::git;

/// Most files of settings that are followed; git itself follows ten, one in the other.
const MOST: usize = 64;

/// The places, as git names them. What is not there and could be made is made, without anything in it.
pub(super) fn of(folder: &Path, caller: &Caller, work: &Path, writable: &[PathBuf]) -> Vec<PathBuf> {
    drop(fs::create_dir(folder.join("hooks")));
    drop(File::create_new(folder.join("config")));
    let is_split =
        fs::read_to_string(folder.join("config")).is_ok_and(|text| text.to_lowercase().contains("worktreeconfig"));
    let worktrees = fs::read_dir(folder.join("worktrees")).into_iter().flatten().flatten();
    let worktrees: Vec<_> = worktrees.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    if is_split {
        for settings in [folder].into_iter().chain(worktrees.iter().map(PathBuf::as_path)) {
            drop(File::create_new(settings.join("config.worktree")));
        }
    }
    let mut places: Vec<_> =
        ["hooks", "config", "config.worktree", "commondir"].map(|name| folder.join(name)).into();
    let leading = |worktree: &PathBuf| ["commondir", "gitdir", "config.worktree"].map(|name| worktree.join(name));
    places.extend(worktrees.iter().flat_map(leading));
    let is_writable = |place: &Path| within(&ending_at(place), writable);
    for file in settings(caller, work) {
        if is_writable(&file) && !file.exists() {
            drop(file.parent().map(fs::create_dir_all));
            drop(File::create_new(&file));
        }
        places.push(file);
    }
    let hooks = git(caller, work, &["rev-parse", "--git-path", "hooks"].map(OsStr::new));
    if let Some(hooks) = hooks.map(|hooks| work.join(path(hooks.strip_suffix(b"\n").unwrap_or(&hooks)))) {
        if is_writable(&hooks) {
            drop(fs::create_dir_all(&hooks));
        }
        places.push(hooks);
    }
    places
}

/// The first symbolic link on the way to a place that whoever may write these folders could make lead elsewhere.
pub(super) fn link_on(place: &Path, writable: &[PathBuf]) -> Option<PathBuf> {
    let mut at = PathBuf::new();
    for part in place.components() {
        step(&mut at, part);
        if at.is_symlink() {
            if within(&at, writable) {
                return Some(at);
            }
            at = at.canonicalize().unwrap_or(at);
        }
    }
    None
}

/// The full name, whether or not something is there.
fn ending_at(place: &Path) -> PathBuf {
    let mut at = PathBuf::new();
    for part in place.components() {
        step(&mut at, part);
        at = at.canonicalize().unwrap_or(at);
    }
    at
}

fn step(at: &mut PathBuf, part: Component<'_>) {
    if part == Component::ParentDir {
        at.pop();
    } else {
        at.push(part);
    }
}

fn within(place: &Path, writable: &[PathBuf]) -> bool {
    writable.iter().any(|folder| place != folder && place.starts_with(folder))
}

/// The files of settings that git reads there, and all that these could include: a condition may hold later.
fn settings(caller: &Caller, work: &Path) -> Vec<PathBuf> {
    const LIST: [&str; 6] = ["config", "--list", "-z", "--show-origin", "--includes", "--name-only"];
    const INCLUDED: [&str; 5] = ["-z", "--type=path", "--no-includes", "--get-regexp", r"^include(if\..*)?\.path$"];
    let listed = git(caller, work, &LIST.map(OsStr::new)).unwrap_or_default();
    let origins = listed.split(|byte| *byte == 0).filter_map(|origin| origin.strip_prefix(b"file:"));
    let mut files: Vec<PathBuf> = Vec::new();
    let add = |files: &mut Vec<PathBuf>, file: PathBuf| {
        if files.len() < MOST && !files.contains(&file) {
            files.push(file);
        }
    };
    origins.for_each(|origin| add(&mut files, work.join(path(origin))));
    let mut next = 0;
    while let Some(file) = files.get(next).cloned() {
        next += 1;
        let asked = ["config", "--file"].map(OsStr::new).into_iter().chain([file.as_os_str()]);
        let asked: Vec<_> = asked.chain(INCLUDED.map(OsStr::new)).collect();
        let said = git(caller, work, &asked).unwrap_or_default();
        let values =
            said.split(|byte| *byte == 0).filter_map(|entry| entry.splitn(2, |byte| *byte == b'\n').nth(1));
        let base = file.parent().unwrap_or(&file);
        values.for_each(|value| add(&mut files, base.join(path(value))));
    }
    files
}

fn path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}
