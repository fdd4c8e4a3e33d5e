//! Listeners: bound before anything is served, so that an occupied one is told in time.

pub mod accept;
pub mod tls;

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tokio::net::{TcpListener, UnixListener, UnixStream};

use crate::config::{Listen, Unusable};
use crate::trust::Side;
use tls::Identities;

/// A listener that is bound.
#[derive(Debug)]
pub enum Listener {
    /// On an address.
    Tcp(TcpListener),
    /// On a Unix socket, whose file goes with the guard.
    Unix(UnixListener, SocketFile),
    /// On one that is for this process alone: whoever else connects is turned away.
    Own(UnixListener, SocketFile),
}

/// Binds a side's listener: without TLS on loopback or on a Unix socket.
pub async fn bind(side: Side, listen: &Listen, identities: Option<&Identities>) -> Result<Listener, Unusable> {
    let (flag, tls) = match side {
        Side::Runs => ("--runs-listen", "--runs-tls"),
        Side::Gate => ("--gate-listen", "--gate-tls"),
    };
    let unusable = |source| Unusable::unbound(flag, listen.clone(), source);
    match listen {
        Listen::Tcp(address) if identities.is_none() && !address.ip().is_loopback() => {
            Err(Unusable::NotLoopback { flag, address: *address, tls })
        }
        Listen::Tcp(address) => TcpListener::bind(address).await.map(Listener::Tcp).map_err(unusable),
        Listen::Unix(path) => {
            bind_unix(path).await.map(|(listener, file)| Listener::Unix(listener, file)).map_err(unusable)
        }
    }
}

/// Binds a listener for this process alone.
pub async fn bind_own(path: &Path) -> io::Result<Listener> {
    let (listener, file) = bind_unix(path).await?;
    Ok(Listener::Own(listener, file))
}

impl Listener {
    /// Where it listens, with the port that was picked.
    pub fn address(&self) -> io::Result<Listen> {
        match self {
            Self::Tcp(listener) => listener.local_addr().map(Listen::Tcp),
            Self::Unix(_, file) | Self::Own(_, file) => Ok(Listen::Unix(file.path.clone())),
        }
    }
}

/// A stale file, whose listener is gone, is replaced; a live one, or a file that is no socket, is left.
async fn bind_unix(path: &Path) -> io::Result<(UnixListener, SocketFile)> {
    match fs::symlink_metadata(path) {
        Ok(found) if !found.file_type().is_socket() => return Err(io::ErrorKind::AlreadyExists.into()),
        Ok(_) if UnixStream::connect(path).await.is_ok() => return Err(io::ErrorKind::AddrInUse.into()),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    // Bound in a folder that nobody else can enter, and then moved: nobody reaches it while its mode is wider.
    let folder = Folder::beside(path)?;
    let bound = folder.0.join("s");
    let listener = UnixListener::bind(&bound)?;
    fs::set_permissions(&bound, Permissions::from_mode(0o600))?;
    fs::rename(&bound, path)?;
    let inode = fs::symlink_metadata(path)?.ino();
    Ok((listener, SocketFile { path: path.to_owned(), inode }))
}

/// A folder for this process alone, which goes with the guard.
struct Folder(PathBuf);

impl Folder {
    /// A new one. Its name is short: a socket's path has little room.
    fn beside(path: &Path) -> io::Result<Self> {
        let mut random = [0; 4];
        getrandom::fill(&mut random)?;
        let folder = path.with_file_name(format!(".{:08x}", u32::from_ne_bytes(random)));
        DirBuilder::new().mode(0o700).create(&folder)?;
        Ok(Self(folder))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

/// Removes the file of a socket when it goes, unless another process has replaced it.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    inode: u64,
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if fs::symlink_metadata(&self.path).is_ok_and(|found| found.ino() == self.inode) {
            drop(fs::remove_file(&self.path));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use super::*;

    #[tokio::test]
    async fn a_stale_socket_is_replaced_and_a_live_one_is_occupied() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("gate");
        let listen = Listen::Unix(path.clone());
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        let bound = bind(Side::Gate, &listen, None).await.unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(bound.address().unwrap(), listen);
        let error = bind(Side::Gate, &listen, None).await.unwrap_err();
        assert_eq!(error.to_string(), format!("--gate-listen {listen}: occupied"));
        drop(bound);
        assert!(!path.exists());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[tokio::test]
    async fn at_no_moment_can_another_user_reach_a_socket_that_is_being_bound() {
        const TIMES: usize = 500;
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().to_owned();
        let (done, over) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let (ends, seen) = (done.clone(), over.clone());
        let watch = std::thread::spawn(move || {
            while !ends.load(Ordering::Relaxed) {
                for found in fs::read_dir(&folder).unwrap() {
                    // What is gone by now was not reached.
                    let Ok(found) = found.and_then(|found| found.metadata()) else { continue };
                    seen.fetch_add(1, Ordering::Relaxed);
                    assert_eq!(found.permissions().mode() & 0o077, 0, "{:o}", found.permissions().mode());
                }
            }
        });
        let path = dir.path().join("gate");
        for _ in 0..TIMES {
            drop(bind(Side::Gate, &Listen::Unix(path.clone()), None).await.unwrap());
        }
        done.store(true, Ordering::Relaxed);
        watch.join().unwrap();
        assert!(over.load(Ordering::Relaxed) > 0, "it was looked at");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[tokio::test]
    async fn a_file_that_is_no_socket_is_left_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        fs::write(&path, "x").unwrap();
        let error = bind(Side::Gate, &Listen::Unix(path.clone()), None).await.unwrap_err();
        assert!(matches!(error, Unusable::Listen { flag: "--gate-listen", .. }));
        assert_eq!(fs::read(&path).unwrap(), b"x");
    }

    #[tokio::test]
    async fn plain_text_stays_on_loopback_and_an_occupied_port_is_told() {
        let wide = bind(Side::Runs, &"0.0.0.0:0".parse().unwrap(), None).await.unwrap_err();
        assert!(matches!(wide, Unusable::NotLoopback { flag: "--runs-listen", .. }));
        let held = bind(Side::Runs, &"127.0.0.1:0".parse().unwrap(), None).await.unwrap();
        let again = bind(Side::Runs, &held.address().unwrap(), None).await.unwrap_err();
        assert!(matches!(again, Unusable::Occupied { flag: "--runs-listen", .. }));
    }
}
