//! Where the controls of a world keep what they know.

use std::path::{Path, PathBuf};

use crate::chaos::Place;

/// A server of the distribution's: the same file that control's own tests start it with.
#[expect(dead_code, reason = "control's own tests use the rest")]
#[path = "../../../control/src/store/postgres/server.rs"]
mod server;

/// The database that the controls share.
const DATABASE: &str = "gitdoor";

/// A PostgreSQL of the world's own.
pub struct Postgres(server::Server);

impl Postgres {
    /// Starts one with an empty database.
    pub(super) fn start() -> Self {
        let server = server::Server::start();
        server.create(DATABASE);
        Self(server)
    }

    /// Its socket.
    pub(super) fn place(&self) -> Place {
        Place::Unix(socket_in(self.0.folder()))
    }

    /// `--store` for a control that reaches it by a socket in this folder.
    pub(super) fn flag(folder: &Path) -> String {
        format!("--store=postgres://gitdoor@/{DATABASE}?host={}", folder.display())
    }

    /// Everything that it has written.
    pub(super) fn folder(&self) -> &Path {
        self.0.folder()
    }

    /// Ends it as a crash would.
    pub fn kill(&mut self) {
        self.0.kill();
    }

    /// Starts it again with what it had.
    pub fn restart(&mut self) {
        self.0.restart();
    }

    /// Runs a statement; its answer as text.
    pub fn sql(&self, statement: &str) -> String {
        self.0.sql(DATABASE, statement)
    }
}

/// The socket of a server, or of a wire to one, in its folder.
pub(super) fn socket_in(folder: &Path) -> PathBuf {
    folder.join(".s.PGSQL.5432")
}
