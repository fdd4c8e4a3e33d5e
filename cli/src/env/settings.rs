//! The folder of gh's two files. It is its owner's alone from its first moment, and nobody else's settings are
//! overwritten.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use gitdoor_proto::Bearer;

use super::{Door, EnvError, as_value};

/// The files.
pub(crate) const HOSTS: &str = "hosts.yml";
pub(crate) const CONFIG: &str = "config.yml";
/// Of a door on this machine.
const GIT: &str = "door.gitconfig";
const GLOBAL: &str = "gitconfig";

/// Without it, some versions of gh take `hosts.yml` for an old one and ask the door whose token it has.
const VERSION: &str = "version: \"1\"\n";

/// The mode of both files.
pub(super) const MODE: u32 = 0o600;

/// The files of git's for a door on this machine.
pub(crate) struct GitFiles {
    /// The door's.
    pub(crate) door: String,
    /// In place of the user's own.
    pub(crate) global: String,
}

/// The folder.
pub(crate) struct Settings {
    path: PathBuf,
    text: String,
}

impl Settings {
    /// Makes the folder, or takes one that is there, where that is its owner's alone and holds no other settings.
    pub(crate) fn at(path: &Path) -> Result<Self, EnvError> {
        let unwritable = |why| EnvError::Unwritable { path: path.to_owned(), why };
        DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(unwritable)?;
        let path = path.canonicalize().map_err(unwritable)?;
        let mode = fs::metadata(&path).map_err(unwritable)?.permissions().mode();
        if mode & 0o077 != 0 {
            return Err(EnvError::Open(path));
        }
        for (file, is_ours) in [(HOSTS, holds_bearers as fn(&str) -> bool), (CONFIG, is_versioned)] {
            match fs::read_to_string(path.join(file)) {
                Ok(text) if !is_ours(&text) => return Err(EnvError::Foreign { path, file }),
                Err(why) if why.kind() != ErrorKind::NotFound => return Err(unwritable(why)),
                Ok(_) | Err(_) => {}
            }
        }
        Ok(Self { text: as_value("--config-dir", path.clone())?, path })
    }

    /// Its full name.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Writes the files, with the bearer for the door and for no other host.
    pub(crate) fn write(&self, door: &Door, bearer: &Bearer) -> Result<(), EnvError> {
        let hosts = format!("{door}:\n    user: x-access-token\n    oauth_token: {}\n", bearer.expose());
        // YAML takes a string of JSON as it is.
        let socket = door.socket().map(|path| format!("http_unix_socket: {}\n", serde_json::Value::from(path)));
        let config = format!("{VERSION}{}", socket.unwrap_or_default());
        for (name, text) in [(CONFIG, config.as_str()), (HOSTS, hosts.as_str())] {
            self.put(name, text)?;
        }
        Ok(())
    }

    /// Writes git's part for a door on this machine: `own`, in place of the user's settings, and what is the door's, with
    /// the bearer for it alone.
    ///
    /// gh runs git with `-c credential.helper=` and itself as the only helper, and answers for https alone: by plain HTTP
    /// no helper is left to be asked.
    pub(crate) fn write_git(&self, door: &Door, bearer: &Bearer, own: &str) -> Result<GitFiles, EnvError> {
        // The empty one first: no header that is configured elsewhere is sent beside it.
        let header = format!("\textraHeader =\n\textraHeader = Authorization: Bearer {}\n", bearer.expose());
        self.put(GIT, &format!("[http \"{}/\"]\n{header}", door.url()))?;
        self.put(GLOBAL, own)?;
        let full = |name| format!("{}/{name}", self.text);
        Ok(GitFiles { door: full(GIT), global: full(GLOBAL) })
    }

    fn put(&self, name: &str, text: &str) -> Result<(), EnvError> {
        replace(&self.path.join(name), text, MODE)
            .map_err(|why| EnvError::Unwritable { path: self.path.clone(), why })
    }
}

/// Whether each token of a `hosts.yml` is a run's bearer.
fn holds_bearers(hosts: &str) -> bool {
    let tokens = hosts.lines().filter_map(|line| line.trim_start().strip_prefix("oauth_token:"));
    tokens.map(str::trim).all(|token| Bearer::parse(token).is_ok())
}

fn is_versioned(config: &str) -> bool {
    config.lines().any(|line| line == VERSION.trim_end())
}

/// Puts a file in the place of one of this name, at once; it has its mode before it has content.
pub(crate) fn replace(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    let mut next = path.as_os_str().to_owned();
    next.push(format!(".new-{}", std::process::id()));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&next)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| fs::rename(&next, path));
    written.inspect_err(|_why| {
        let _may_be_gone = fs::remove_file(&next);
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEARER: &str = "sbr_r1.AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8";

    #[test]
    fn a_hosts_file_with_any_other_token_is_somebody_elses() {
        assert!(holds_bearers(""));
        assert!(holds_bearers(&format!("a.example:\n    user: x\n    oauth_token: {BEARER}\n")));
        assert!(!holds_bearers(&format!("a:\n  oauth_token: {BEARER}\ngithub.com:\n  oauth_token: gho_x\n")));
    }

    #[test]
    fn what_cannot_be_put_in_place_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("taken")).unwrap();
        assert!(replace(&folder.path().join("taken"), BEARER, MODE).is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
