//! The state folder: a folder for each run, marked by a lock that its process holds while it lives.
//!
//! What a dead process left is ended by the next: its run is revoked in the store that it left, what it pushed is kept,
//! and the rest is removed. A folder whose lock is held is somebody's, and is left alone.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use gitdoor_control::embed;
use gitdoor_proto::RunId;

use super::{ExecError, PREFIX};
use crate::answer::Shown;
use crate::env::replace;
use crate::output;

/// Most bytes of a socket's path, and what the longest of ours adds to the folder of the state.
const SOCKET_BYTES: usize = 107;
const ADDED: usize = "/exec-xxxxxxxxxxxx/door/door.sock".len();
/// How long what a run did is kept.
const KEEP: Duration = Duration::from_hours(24 * 30);

const LOCK: &str = "lock";
const LOG: &str = "log";
const RECORD: &str = "run.json";
const STORE: &str = "store.sqlite";

/// The state folder.
pub(super) struct State {
    path: PathBuf,
}

impl State {
    /// Makes the folder, or takes one that is there and its owner's alone.
    pub(super) fn at(named: Option<PathBuf>) -> Result<Self, ExecError> {
        let path = named.or_else(usual).ok_or(ExecError::NoState)?;
        let unusable = |why| ExecError::State { path: path.clone(), why };
        DirBuilder::new().recursive(true).mode(0o700).create(&path).map_err(unusable)?;
        let path = path.canonicalize().map_err(unusable)?;
        let mode = fs::metadata(&path).map_err(unusable)?.permissions().mode();
        if mode & 0o077 != 0 {
            return Err(ExecError::Open(path));
        }
        let most = SOCKET_BYTES - ADDED;
        let fits = |text: &&str| text.len() <= most && !text.contains(|c: char| c == ',' || c.is_control());
        match path.to_str().filter(fits) {
            Some(_) => Ok(Self { path }),
            None => Err(ExecError::Path { path, most }),
        }
    }

    /// The folder.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// A folder for a run of this process.
    pub(super) fn place(self, run: &RunId) -> Result<Place, ExecError> {
        let folder = self.path.join(run.as_str());
        let made = self.lock().and_then(|_held| {
            DirBuilder::new().mode(0o700).create(&folder)?;
            let lock = private_file(&folder.join(LOCK))?;
            lock.try_lock().map_err(io::Error::from)?;
            DirBuilder::new().mode(0o700).create(folder.join("door"))?;
            Ok(lock)
        });
        let lock = made.map_err(|why| ExecError::State { path: folder.clone(), why })?;
        Ok(Place { state: self.path, folder, run: run.clone(), _lock: lock })
    }

    fn lock(&self) -> io::Result<File> {
        lock(&self.path)
    }
}

/// Held while folders are made or looked through: a folder that is being made has no lock of its own yet.
fn lock(state: &Path) -> io::Result<File> {
    let file = private_file(&state.join(LOCK))?;
    file.lock()?;
    Ok(file)
}

fn private_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path)
}

/// `$XDG_STATE_HOME/gitdoor`, or `~/.local/state/gitdoor`.
fn usual() -> Option<PathBuf> {
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let absolute = named("XDG_STATE_HOME").filter(|path| path.is_absolute());
    let home = || named("HOME").filter(|home| home.is_absolute());
    Some(absolute.or_else(|| Some(home()?.join(".local/state")))?.join("gitdoor"))
}

/// The folder of this process's run.
pub(super) struct Place {
    state: PathBuf,
    folder: PathBuf,
    run: RunId,
    _lock: File,
}

impl Place {
    /// The run.
    pub(super) fn run(&self) -> &RunId {
        &self.run
    }

    /// The store's file.
    pub(super) fn store(&self) -> PathBuf {
        self.folder.join(STORE)
    }

    /// Where control listens, for this process alone.
    pub(super) fn gate(&self) -> PathBuf {
        self.folder.join("gate")
    }

    /// Where the door listens for gh: in a folder that holds nothing else.
    pub(super) fn door(&self) -> PathBuf {
        self.folder.join("door/door.sock")
    }

    /// The folder of gh's files.
    pub(super) fn settings(&self) -> PathBuf {
        self.folder.join("gh")
    }

    /// Where the planes log.
    pub(super) fn log(&self) -> PathBuf {
        self.folder.join(LOG)
    }

    /// The log's file.
    pub(super) fn log_file(&self) -> Result<File, ExecError> {
        private_file(&self.log()).map_err(|why| ExecError::State { path: self.log(), why })
    }

    /// Keeps the log and what the run did, and removes the rest.
    pub(super) fn close(&self, record: Option<&str>) {
        finish(&self.folder, record);
    }

    /// Removes all of it: there was no run.
    pub(super) fn forget(&self) {
        drop(fs::remove_dir_all(&self.folder));
    }
}

/// Without a record the store stays: the next process finds it.
fn finish(folder: &Path, record: Option<&str>) {
    let Some(record) = record else { return };
    if let Err(error) = replace(&folder.join(RECORD), record, 0o600) {
        tracing::error!(%error, "what the run did was not written; its store stays");
        return;
    }
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let (name, path) = (entry.file_name(), entry.path());
        if name == LOG || name == RECORD {
            continue;
        }
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        // What stays is found by the next process.
        drop(if is_folder { fs::remove_dir_all(path) } else { fs::remove_file(path) });
    }
}

/// Ends the runs that dead processes left, and removes what is older than is kept. What fails is tried again by the next
/// process, and keeps nobody from their work.
pub(super) async fn end_left(place: &Place) {
    // Who else has it looks through them now: nobody is waited for.
    let held = match private_file(&place.state.join(LOCK)).and_then(|file| Ok(file.try_lock().map(|()| file)?)) {
        Ok(held) => held,
        Err(error) if error.kind() == ErrorKind::WouldBlock => return,
        Err(error) => return tracing::warn!(%error, "the state folder was not looked through"),
    };
    for entry in fs::read_dir(&place.state).into_iter().flatten().flatten() {
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if let Some(run) = run_of(&entry.file_name()).filter(|_| is_folder)
            && let Err(error) = tidy(&entry.path(), &run).await
        {
            tracing::warn!(%run, %error, "a run that was left behind was not ended");
        }
    }
    drop(held);
}

/// The run whose folder has this name.
fn run_of(name: &OsString) -> Option<RunId> {
    name.to_str().filter(|name| name.starts_with(PREFIX)).and_then(|name| RunId::parse(name).ok())
}

/// Why a folder stays as it is.
#[derive(Debug, thiserror::Error)]
enum Untidy {
    #[error("{0}")]
    File(#[from] io::Error),
    #[error("{}", gitdoor_control::gate::cause(.0))]
    Store(#[from] embed::LeftError),
    #[error("{0}")]
    Record(#[from] crate::answer::Incomplete),
}

async fn tidy(folder: &Path, run: &RunId) -> Result<(), Untidy> {
    let _lock = match OpenOptions::new().write(true).open(folder.join(LOCK)) {
        Ok(lock) => match lock.try_lock() {
            Ok(()) => Some(lock),
            Err(TryLockError::WouldBlock) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(error.into()),
        },
        // It was closed in order, or died at once.
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(error.into()),
    };
    let store = folder.join(STORE);
    if store.try_exists()? {
        if let Some(left) = embed::end_left(&store, run).await? {
            tracing::info!(%run, "a run that was left behind is revoked");
            finish(folder, Some(&output::record(&Shown::read(left)?)));
            return Ok(());
        }
    } else if let Ok(record) = fs::metadata(folder.join(RECORD)) {
        let old = record.modified()?.elapsed().is_ok_and(|age| age > KEEP);
        return if old { Ok(fs::remove_dir_all(folder)?) } else { Ok(()) };
    }
    // No run was ever there.
    Ok(fs::remove_dir_all(folder)?)
}
