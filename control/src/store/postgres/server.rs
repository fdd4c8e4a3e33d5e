//! A PostgreSQL of a test's own: in a temporary folder, on a Unix socket, ended with the test.
//!
//! `initdb` takes a second, so its result is kept in `target/` and copied. The server refuses to run as root, and
//! then runs as nobody.

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Who owns the databases.
const USER: &str = "gitdoor";
/// Its settings, but for what one test wants otherwise; without these it listens on TCP. Processes are killed here and no
/// machine is, so that nothing has to reach a disk, which all tests share.
const SETTINGS: &str = "listen_addresses = ''\nmax_connections = 200\nshared_buffers = 32MB\nfsync = off\n";
/// A server that takes longer will not come.
const PATIENCE: Duration = Duration::from_mins(1);

/// A running server.
pub(crate) struct Server {
    folder: tempfile::TempDir,
    port: u16,
    process: Child,
}

impl Server {
    /// Starts one with no database of ours in it.
    pub(crate) fn start() -> Self {
        Self::start_with(5432, &[])
    }

    /// Starts one with other files among its data. The port is a part of its socket's name.
    pub(crate) fn start_with(port: u16, files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        copy(&template(), &data);
        fs::write(data.join("postgresql.conf"), SETTINGS).unwrap();
        for (name, text) in files {
            fs::write(data.join(name), text).unwrap();
            fs::set_permissions(data.join(name), fs::Permissions::from_mode(0o600)).unwrap();
        }
        own(folder.path());
        let process = spawn(folder.path(), port);
        let mut server = Self { folder, port, process };
        server.wait();
        server
    }

    /// Where it listens.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The URL of a database of it.
    pub(crate) fn url(&self, database: &str) -> String {
        format!("postgres://{USER}@/{database}?host={}", self.folder.path().display())
    }

    /// Makes a database whose order of text is not that of its bytes.
    pub(crate) fn create(&self, database: &str) {
        let options = ["--template=template0", "--locale-provider=icu", "--icu-locale=en", "--encoding=UTF8"];
        let mut command = Command::new(program("createdb"));
        assert!(command.args(options).args(self.reach()).arg(database).status().unwrap().success());
    }

    /// Runs a statement.
    pub(crate) fn sql(&self, database: &str, sql: &str) -> String {
        let mut command = Command::new(program("psql"));
        let options = ["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--set=ON_ERROR_STOP=1"];
        let done = command.args(options).args(self.reach()).args(["--command", sql, database]).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap().trim().to_owned()
    }

    /// Ends it at once, as a crash of the machine's would: a session that outlived the first process by a moment would
    /// answer once more.
    pub(crate) fn kill(&mut self) {
        self.signal("KILL");
        self.process.wait().unwrap();
    }

    /// Starts it again, with the data that it had.
    pub(crate) fn restart(&mut self) {
        self.process = spawn(self.folder.path(), self.port);
        self.wait();
    }

    /// When it starts again, it follows a primary.
    pub(crate) fn become_standby(&self) {
        File::create(self.folder.path().join("data/standby.signal")).unwrap();
        own(self.folder.path());
    }

    /// Stops the processes of the server where they are (`STOP`), lets them go on (`CONT`), or ends them (`KILL`).
    pub(crate) fn signal(&self, signal: &str) {
        let send =
            |signal: &str, process: &str| Command::new("kill").args(["-s", signal, process]).output().unwrap();
        let leader = self.process.id().to_string();
        // Stands still first, so that it begins no other.
        assert!(send("STOP", &leader).status.success());
        let children = Command::new("pgrep").args(["--parent", &leader]).output().unwrap();
        let children = String::from_utf8(children.stdout).unwrap();
        // One may have ended by itself meanwhile.
        children.split_whitespace().for_each(|child| drop(send(signal, child)));
        assert!(send(signal, &leader).status.success());
    }

    fn reach(&self) -> [String; 3] {
        let host = format!("--host={}", self.folder.path().display());
        [host, format!("--port={}", self.port), format!("--username={USER}")]
    }

    fn wait(&mut self) {
        let start = Instant::now();
        loop {
            let mut ready = Command::new(program("pg_isready"));
            if ready.arg("--quiet").args(self.reach()).status().unwrap().success() {
                return;
            }
            // After a kill, it does not start while a process of the one before is left.
            if self.process.try_wait().unwrap().is_some() {
                self.process = spawn(self.folder.path(), self.port);
            }
            assert!(start.elapsed() < PATIENCE, "{}", self.log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Its own processes end with it, and it takes its shared memory along.
        let process = self.process.id().to_string();
        drop(Command::new("kill").args(["-QUIT", &process]).status());
        drop(self.process.wait());
    }
}

fn spawn(folder: &Path, port: u16) -> Child {
    let log = File::options().create(true).append(true).open(folder.join("log")).unwrap();
    // Should the test be killed, the server goes too.
    let mut command = unprivileged(&["--pdeathsig=QUIT"], program("postgres"));
    command.arg("-D").arg(folder.join("data")).arg("-k").arg(folder).args(["-p", &port.to_string()]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().unwrap()
}

/// A command that runs as nobody when the test runs as root.
fn unprivileged(options: &[&str], program: PathBuf) -> Command {
    let mut command = Command::new("setpriv");
    command.args(options);
    if is_root() {
        command.args(["--reuid=nobody", "--regid=nogroup", "--clear-groups"]);
    }
    command.arg(program).env_clear().current_dir("/");
    command
}

fn is_root() -> bool {
    fs::metadata("/proc/self").unwrap().uid() == 0
}

fn own(folder: &Path) {
    if is_root() {
        assert!(Command::new("chown").args(["-R", "nobody:nogroup"]).arg(folder).status().unwrap().success());
    }
}

/// What `initdb` makes, made once for all tests.
fn template() -> PathBuf {
    let program_of_test = std::env::current_exe().unwrap();
    let target = program_of_test.ancestors().find(|folder| folder.ends_with("deps")).unwrap().parent().unwrap();
    let kept = target.join("postgres-template");
    let lock = File::create(target.join("postgres-template.lock")).unwrap();
    lock.lock().unwrap();
    let version = fs::read_to_string(kept.join("PG_VERSION")).unwrap_or_default();
    if !version.is_empty() && version.trim() == major() {
        return kept;
    }
    let folder = tempfile::tempdir().unwrap();
    own(folder.path());
    let made = folder.path().join("data");
    let mut initdb = unprivileged(&[], program("initdb"));
    initdb.args(["--username", USER, "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8"]);
    initdb.args(["--wal-segsize=1", "--no-sync", "--no-instructions", "--pgdata"]).arg(&made);
    assert!(initdb.stdout(Stdio::null()).status().unwrap().success());
    drop(fs::remove_dir_all(&kept));
    let part = kept.with_extension("part");
    drop(fs::remove_dir_all(&part));
    copy(&made, &part);
    fs::rename(part, &kept).unwrap();
    kept
}

fn copy(from: &Path, to: &Path) {
    assert!(Command::new("cp").args(["-r", "--reflink=auto"]).arg(from).arg(to).status().unwrap().success());
    fs::set_permissions(to, fs::Permissions::from_mode(0o700)).unwrap();
}

fn major() -> String {
    let folder = folder();
    folder.parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned()
}

fn program(name: &str) -> PathBuf {
    folder().join(name)
}

/// The programs of the newest PostgreSQL, where Debian puts them.
fn folder() -> PathBuf {
    let installed = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    let newest = installed.filter_map(|version| version.unwrap().file_name().to_str()?.parse::<u32>().ok()).max();
    assert!(newest.is_some(), "these tests need PostgreSQL: apt-get install postgresql");
    format!("/usr/lib/postgresql/{}/bin", newest.unwrap()).into()
}
