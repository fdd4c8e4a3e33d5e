//! The files of home and workspace: their names and lengths, no link followed, up to a bound.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Most files that are looked at.
const FILES: usize = 200_000;
/// How long the walk may take.
const LIMIT: Duration = Duration::from_secs(20);
/// What is no file of anybody's, where a root is `/`.
const SYSTEM: [&str; 3] = ["/proc", "/sys", "/dev"];

/// The files below some folders.
#[derive(Default)]
pub(super) struct Tree {
    files: Vec<PathBuf>,
    configs: Vec<PathBuf>,
    short: Option<String>,
}

impl Tree {
    /// Lists them.
    pub(super) fn walk(roots: &[&PathBuf]) -> Self {
        // A workspace in a home is a part of it.
        let is_inner = |root: &PathBuf| roots.iter().any(|other| root != *other && root.starts_with(other));
        let mut folders: Vec<PathBuf> =
            roots.iter().filter(|root| !is_inner(root)).map(|root| (*root).clone()).collect();
        folders.sort_unstable();
        folders.dedup();
        let (mut tree, started) = (Self::default(), Instant::now());
        while let Some(folder) = folders.pop() {
            if tree.files.len() >= FILES || started.elapsed() > LIMIT {
                tree.short = Some(format!(
                    "after {} files not all of home and workspace was listed; give smaller folders: --home, --workspace",
                    tree.files.len()
                ));
                break;
            }
            tree.list(&folder, &mut folders);
        }
        tree
    }

    fn list(&mut self, folder: &Path, folders: &mut Vec<PathBuf>) {
        // What this user may not read is no credential of theirs.
        let Ok(entries) = fs::read_dir(folder) else { return };
        let is_git = folder.join("HEAD").is_file();
        for entry in entries.flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            let Ok(kind) = entry.file_type() else { continue };
            // Objects are compressed: nothing has a shape there.
            if kind.is_dir()
                && !(is_git && name == "objects")
                && !SYSTEM.iter().any(|system| path == Path::new(system))
            {
                folders.push(path);
            } else if kind.is_file() {
                if (is_git && (name == "config" || name == "config.worktree")) || name == ".gitmodules" {
                    self.configs.push(path.clone());
                }
                self.files.push(path);
            }
        }
    }

    /// The files.
    pub(super) fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// Those with settings of a repository.
    pub(super) fn configs(&self) -> &[PathBuf] {
        &self.configs
    }

    /// What is missing, if anything is.
    pub(super) fn stopped_short(&self) -> Option<String> {
        self.short.clone()
    }
}
