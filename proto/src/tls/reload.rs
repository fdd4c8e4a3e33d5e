//! What is made from files, and made again when they change. A set that cannot be used leaves the one before it.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use super::TlsError;

/// How often files are looked at.
const PERIOD: Duration = Duration::from_secs(5);

/// Which content a file has, as far as it can be known without reading it. A path is followed: where a folder is
/// replaced by a symbolic link, as Kubernetes does with mounted secrets, the file behind it is another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    fn of(path: &Path) -> Option<Self> {
        let file = fs::metadata(path).ok()?;
        Some(Self {
            device: file.dev(),
            inode: file.ino(),
            size: file.size(),
            modified: (file.mtime(), file.mtime_nsec()),
            changed: (file.ctime(), file.ctime_nsec()),
        })
    }
}

type Stamps = Vec<Option<Stamp>>;

#[derive(Debug)]
struct Seen {
    /// Of what is in use.
    used: Stamps,
    /// Of what could not be used, and was told.
    told: Option<Stamps>,
}

/// What a look at the files found.
#[derive(Debug)]
pub enum Look {
    /// Nothing new.
    Unchanged,
    /// Another set, in use from now on.
    Replaced,
    /// Another set that cannot be used; told once. The one before it stays.
    Kept(TlsError),
}

/// A value made from files.
pub struct Reloaded<T> {
    files: Vec<PathBuf>,
    read: Box<dyn Fn() -> Result<T, TlsError> + Send + Sync>,
    current: RwLock<Arc<T>>,
    seen: Mutex<Seen>,
}

impl<T: Send + Sync + 'static> Reloaded<T> {
    /// Makes the value, by `read`, which reads these files.
    pub fn open(
        files: Vec<PathBuf>,
        read: impl Fn() -> Result<T, TlsError> + Send + Sync + 'static,
    ) -> Result<Arc<Self>, TlsError> {
        // Stamped before they are read: what changes while they are read is seen by the next look.
        let used = stamps(&files);
        let current = RwLock::new(Arc::new(read()?));
        let seen = Mutex::new(Seen { used, told: None });
        Ok(Arc::new(Self { files, read: Box::new(read), current, seen }))
    }

    /// The value as it is now.
    #[must_use]
    pub fn current(&self) -> Arc<T> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Looks at the files once, and reads them if they changed.
    pub fn look(&self) -> Look {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let now = stamps(&self.files);
        if now == seen.used {
            seen.told = None;
            return Look::Unchanged;
        }
        match (self.read)() {
            Ok(value) => {
                *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(value);
                *seen = Seen { used: now, told: None };
                Look::Replaced
            }
            // Read again at the next look all the same: what failed may have been the reading.
            Err(_) if seen.told.as_ref() == Some(&now) => Look::Unchanged,
            Err(why) => {
                seen.told = Some(now);
                Look::Kept(why)
            }
        }
    }

    /// Looks every few seconds, for ever, and tells what is new.
    pub async fn keep(self: Arc<Self>, told: impl Fn(&Look)) {
        let mut looks = tokio::time::interval(PERIOD);
        looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            looks.tick().await;
            let files = Arc::clone(&self);
            // A file may be on a slow volume. A look that panicked has changed nothing.
            match tokio::task::spawn_blocking(move || files.look()).await {
                Ok(Look::Unchanged) | Err(_) => {}
                Ok(look) => told(&look),
            }
        }
    }
}

impl<T> std::fmt::Debug for Reloaded<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reloaded").field("files", &self.files).finish_non_exhaustive()
    }
}

fn stamps(files: &[PathBuf]) -> Stamps {
    files.iter().map(|path| Stamp::of(path)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(path: &Path) -> Result<u32, TlsError> {
        let what = "number";
        let path = path.display().to_string();
        let text = fs::read_to_string(&path).map_err(|why| TlsError::File { path: path.clone(), why })?;
        text.trim().parse().map_err(|_no_number| TlsError::Nothing { what, path })
    }

    fn opened(path: &Path) -> Arc<Reloaded<u32>> {
        let read = path.to_owned();
        Reloaded::open(vec![path.to_owned()], move || number(&read)).unwrap()
    }

    #[test]
    fn a_file_is_read_again_when_it_is_written_or_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("value");
        fs::write(&path, "1").unwrap();
        let value = opened(&path);
        assert!(matches!(value.look(), Look::Unchanged));
        fs::write(&path, "22").unwrap();
        assert!(matches!(value.look(), Look::Replaced));
        assert_eq!(*value.current(), 22);
        fs::write(folder.path().join("next"), "33").unwrap();
        fs::rename(folder.path().join("next"), &path).unwrap();
        assert!(matches!(value.look(), Look::Replaced));
        assert_eq!(*value.current(), 33);
    }

    #[test]
    fn a_folder_that_is_swapped_by_a_symbolic_link_is_seen() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for (name, text) in [("one", "1"), ("two", "2")] {
            fs::create_dir(at(name)).unwrap();
            fs::write(at(name).join("value"), text).unwrap();
        }
        std::os::unix::fs::symlink("one", at("..data")).unwrap();
        std::os::unix::fs::symlink("..data/value", at("value")).unwrap();
        let value = opened(&at("value"));
        std::os::unix::fs::symlink("two", at("..next")).unwrap();
        fs::rename(at("..next"), at("..data")).unwrap();
        assert!(matches!(value.look(), Look::Replaced));
        assert_eq!(*value.current(), 2);
    }

    #[test]
    fn what_cannot_be_used_is_told_once_and_the_set_before_it_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("value");
        fs::write(&path, "1").unwrap();
        let value = opened(&path);
        fs::write(&path, "none").unwrap();
        assert!(matches!(value.look(), Look::Kept(TlsError::Nothing { .. })));
        assert!(matches!(value.look(), Look::Unchanged));
        fs::remove_file(&path).unwrap();
        assert!(matches!(value.look(), Look::Kept(TlsError::File { .. })));
        assert_eq!(*value.current(), 1);
        fs::write(&path, "4").unwrap();
        assert!(matches!(value.look(), Look::Replaced));
        assert_eq!(*value.current(), 4);
    }
}
