//! The folder of certificates and keys.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use super::CertsError;
use super::make::Pair;

/// A folder for its owner alone, if it was made here.
pub(super) struct Folder(PathBuf);

impl Folder {
    /// Makes it, where there is none.
    pub(super) fn make(path: &Path) -> Result<Self, CertsError> {
        match DirBuilder::new().mode(0o700).create(path) {
            Err(why) if why.kind() != ErrorKind::AlreadyExists => Err(failed(path, why)),
            Ok(()) | Err(_) => Self::open(path),
        }
    }

    /// One that is there.
    pub(super) fn open(path: &Path) -> Result<Self, CertsError> {
        match fs::metadata(path) {
            Ok(found) if found.is_dir() => Ok(Self(path.to_owned())),
            Ok(_) => Err(failed(path, ErrorKind::NotADirectory.into())),
            Err(why) => Err(failed(path, why)),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Refuses where a file of this name is.
    pub(super) fn vacant(&self, name: &str) -> Result<(), CertsError> {
        for kind in ["pem", "key"] {
            let path = self.file(name, kind);
            if fs::symlink_metadata(&path).is_ok() {
                return Err(CertsError::Exists(path.display().to_string()));
            }
        }
        Ok(())
    }

    /// Adds a certificate and its key.
    pub(super) fn add(&self, name: &str, pair: &Pair) -> Result<(), CertsError> {
        write(&self.file(name, "key"), &pair.key, 0o600)?;
        write(&self.file(name, "pem"), &pair.certificate, 0o644)
    }

    /// Puts a certificate and its key in the place of those of this name. Who reads between the two renamings has a pair
    /// that does not fit together, and keeps what it had.
    pub(super) fn replace(&self, name: &str, pair: &Pair) -> Result<(), CertsError> {
        let mut random = [0; 8];
        getrandom::fill(&mut random)?;
        let next = format!("{name}.new-{:016x}", u64::from_ne_bytes(random));
        let replaced = self.add(&next, pair).and_then(|()| self.rename(&next, name));
        if replaced.is_err() {
            for kind in ["key", "pem"] {
                // Of the two, those that are there.
                drop(fs::remove_file(self.file(&next, kind)));
            }
        }
        replaced
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), CertsError> {
        for kind in ["key", "pem"] {
            let (from, to) = (self.file(from, kind), self.file(to, kind));
            fs::rename(&from, &to).map_err(|why| failed(&to, why))?;
        }
        Ok(())
    }

    /// Reads a file.
    pub(super) fn read(&self, name: &str, kind: &str) -> Result<String, CertsError> {
        let path = self.file(name, kind);
        fs::read_to_string(&path).map_err(|why| failed(&path, why))
    }

    pub(super) fn file(&self, name: &str, kind: &str) -> PathBuf {
        self.0.join(format!("{name}.{kind}"))
    }
}

/// A new file, which has its mode before it has content.
fn write(path: &Path, text: &str, mode: u32) -> Result<(), CertsError> {
    let opened = OpenOptions::new().write(true).create_new(true).mode(mode).open(path);
    let written = opened.and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()));
    written.map_err(|why| {
        if why.kind() == ErrorKind::AlreadyExists {
            CertsError::Exists(path.display().to_string())
        } else {
            failed(path, why)
        }
    })
}

fn failed(path: &Path, why: io::Error) -> CertsError {
    CertsError::File { path: path.display().to_string(), why }
}
