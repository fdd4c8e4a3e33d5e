//! git's credential cache: <https://git-scm.com/docs/git-credential-cache>. Whoever reaches its socket gets what it has.

use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use super::command::bounded;
use super::surroundings::Surroundings;
use super::{Findings, Kind, stores};

/// Looks whether one answers.
pub(super) fn look(surroundings: &Surroundings, findings: &mut Findings) {
    for socket in sockets(surroundings).into_iter().filter(|socket| answers(socket.clone())) {
        findings.add(Kind::Cache, socket.display().to_string());
    }
}

/// Where they are by default, and where git's settings say.
pub(super) fn sockets(surroundings: &Surroundings) -> Vec<PathBuf> {
    let mut sockets = surroundings.in_homes(".git-credential-cache/socket");
    sockets.extend(surroundings.in_cache("git/credential/socket"));
    sockets.extend(stores::options(surroundings, "cache", "--socket"));
    sockets
}

/// Whether somebody listens there.
pub(super) fn answers(socket: PathBuf) -> bool {
    bounded(move || UnixStream::connect(socket).is_ok()).unwrap_or(true)
}
