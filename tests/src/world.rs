//! Everything at once: a control, data planes and a stand-in GitHub on ports of their own, each part of gitdoor a
//! process. Ending a world asserts that all ended well and that no secret is where it must not be.

mod clients;
mod events;
mod flags;
mod process;
mod runs;
mod scan;
mod store;
mod trust;

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use tempfile::TempDir;

use crate::authority::Authority;
use crate::chaos::{Link, Place};
use crate::gh::DOOR;
use crate::git::Transcript;
use crate::github::Github;
use crate::raw::{Door, Request};
use crate::recorder::Recorder;

use flags::{control_flags, dataplane_flags, merge, url_of};
use process::Part;
pub use process::{Exit, Process, run_to_exit};
pub use runs::{Registration, Run};
pub use scan::Secret;
pub use store::Postgres;
pub use trust::Trust;

/// How long a part may take to end after SIGTERM.
const STOP: Duration = Duration::from_secs(15);

/// How a world is to be.
pub struct Builder {
    program: PathBuf,
    controls: Option<usize>,
    known_controls: usize,
    dataplanes: usize,
    plain: bool,
    detached: bool,
    mutual_tls: bool,
    control_arguments: Vec<String>,
    dataplane_arguments: Vec<String>,
}

impl Builder {
    /// With this many controls on one PostgreSQL, each of which every data plane knows; else there is one, on SQLite.
    /// Wires lead to them, and from them to PostgreSQL.
    pub fn controls(mut self, count: usize) -> Self {
        self.controls = Some(count);
        self
    }

    /// The data planes know only this many of the controls.
    pub fn known_controls(mut self, count: usize) -> Self {
        self.known_controls = count;
        self
    }

    /// With this many data planes; else one.
    pub fn dataplanes(mut self, count: usize) -> Self {
        self.dataplanes = count;
        self
    }

    /// The data planes listen without TLS.
    pub fn plain(mut self) -> Self {
        self.plain = true;
        self
    }

    /// The data planes offer HTTP/2.
    pub fn http2(self) -> Self {
        self.dataplane_flag("--http2")
    }

    /// Control is reached by TLS with a certificate on both sides.
    pub fn mutual_tls(mut self) -> Self {
        self.mutual_tls = true;
        self
    }

    /// The parts do not get the Ctrl-C of the terminal that this program runs in; it ends them in its own order.
    pub fn detached(mut self) -> Self {
        self.detached = true;
        self
    }

    /// A flag for control, as `--flag` or `--flag=value`. One that is given by default is replaced.
    pub fn control_flag(mut self, flag: &str) -> Self {
        self.control_arguments.push(flag.to_owned());
        self
    }

    /// A flag for the data planes, likewise.
    pub fn dataplane_flag(mut self, flag: &str) -> Self {
        self.dataplane_arguments.push(flag.to_owned());
        self
    }

    /// Starts everything, and waits until it serves.
    pub async fn start(self) -> World {
        World::build(self).await
    }
}

/// The wires of a control.
pub struct Links {
    /// From the data planes to its gate.
    pub gate: Link,
    /// From it to PostgreSQL.
    pub store: Link,
}

/// A running world.
pub struct World {
    /// The stand-in GitHub.
    pub github: Github,
    folder: TempDir,
    authority: Authority,
    recorder: Recorder,
    plain: bool,
    postgres: Option<Postgres>,
    controls: Vec<Process>,
    links: Vec<Links>,
    trust: Option<Trust>,
    dataplanes: Vec<Process>,
    clients: AtomicUsize,
    transcript: Transcript,
    bearers: Mutex<Vec<String>>,
}

/// Starting and ending.
impl World {
    /// A world with one data plane. `program` has all parts of gitdoor in it: the demo's.
    pub async fn start(program: impl Into<PathBuf>) -> Self {
        Self::builder(program).start().await
    }

    /// A world that differs from that.
    pub fn builder(program: impl Into<PathBuf>) -> Builder {
        Builder {
            program: program.into(),
            controls: None,
            known_controls: usize::MAX,
            dataplanes: 1,
            plain: false,
            detached: false,
            mutual_tls: false,
            control_arguments: Vec::new(),
            dataplane_arguments: Vec::new(),
        }
    }

    async fn build(builder: Builder) -> Self {
        let github = Github::start();
        let folder = tempfile::Builder::new().prefix("gitdoor-").tempdir().expect("a folder");
        for part in ["dataplane", "clients"] {
            fs::create_dir(folder.path().join(part)).expect("a folder");
        }
        let authority = Authority::new("gitdoor test");
        let recorder = Recorder::start(DOOR).await;
        let leaf = authority.leaf(&["localhost", "127.0.0.1", DOOR]);
        let trusted = [authority.pem(), recorder.authority()].concat();
        let files = [("ca.pem", &trusted), ("cert.pem", &leaf.certificate), ("key.pem", &leaf.key)];
        for (name, text) in files {
            fs::write(folder.path().join("dataplane").join(name), text).expect("a file");
        }
        let part = |name: &str, role| Part {
            name: name.to_owned(),
            program: builder.program.clone(),
            role,
            detached: builder.detached,
        };
        let trust = if builder.mutual_tls {
            Some(Trust::make(&builder.program, folder.path().join("trust")).await)
        } else {
            None
        };
        let postgres = builder.controls.map(|_count| Postgres::start());
        let (mut controls, mut links, mut gates) = (Vec::new(), Vec::new(), Vec::new());
        for number in 0..builder.controls.unwrap_or(1) {
            let name = if number == 0 { "control".to_owned() } else { format!("control-{number}") };
            let home = folder.path().join(&name);
            fs::create_dir(&home).expect("a folder");
            let mut flags = control_flags(&github, &home);
            let store = postgres.as_ref().map(|postgres| Link::unix(store::socket_in(&home), postgres.place()));
            if store.is_some() {
                flags = merge(flags, &[Postgres::flag(&home), "--gate-listen=127.0.0.1:0".to_owned()]);
            }
            let secured = trust.as_ref().map(Trust::control_flags).unwrap_or_default();
            let flags = merge(merge(flags, &secured), &builder.control_arguments);
            let control = Process::start(part(&name, "__control"), flags).await;
            if let Some(store) = store {
                let gate = Link::tcp(Place::Tcp(control.address("gate").to_owned())).await;
                gates.push(url_of(&gate.place().to_string(), trust.is_some()));
                links.push(Links { gate, store });
            } else {
                gates.push(url_of(control.address("gate"), trust.is_some()));
            }
            controls.push(control);
        }
        gates.truncate(builder.known_controls);
        let mut dataplanes = Vec::new();
        for number in 0..builder.dataplanes {
            let flags = dataplane_flags(&github, folder.path(), &gates, trust.as_ref(), builder.plain);
            let flags = merge(flags, &builder.dataplane_arguments);
            let name = format!("dataplane-{number}");
            dataplanes.push(Process::start(part(&name, "__dataplane"), flags).await);
        }
        let world = Self {
            github,
            folder,
            authority,
            recorder,
            plain: builder.plain,
            postgres,
            controls,
            links,
            trust,
            dataplanes,
            clients: AtomicUsize::new(0),
            transcript: Transcript::default(),
            bearers: Mutex::default(),
        };
        // One that listens on a Unix socket has no address that a name could lead to.
        world.tcp_address(0).into_iter().for_each(|address| world.recorder.lead_to(address));
        world
    }

    /// Ends everything with SIGTERM and asserts that it ended well: status 0 for each part, no git left at the
    /// upstream, and no secret in a line, a metric or a file.
    pub async fn finish(mut self) {
        self.scan_secrets().await;
        for dataplane in &mut self.dataplanes {
            dataplane.stop(STOP).await;
        }
        for control in &mut self.controls {
            control.stop(STOP).await;
        }
        for _ in 0..100 {
            if self.github.running_backends() == 0 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(self.github.running_backends(), 0, "git still runs at the upstream");
        self.scan_files_and_lines();
    }
}

/// Its parts.
impl World {
    /// The control process; of several, the first.
    pub fn control(&mut self) -> &mut Process {
        self.control_at(0)
    }

    /// One of several controls.
    pub fn control_at(&mut self, number: usize) -> &mut Process {
        &mut self.controls[number]
    }

    /// The wires of one of several controls.
    pub fn links(&self, number: usize) -> &Links {
        &self.links[number]
    }

    /// The server that several controls share.
    pub fn postgres(&mut self) -> &mut Postgres {
        self.postgres.as_mut().expect("a world with PostgreSQL")
    }

    /// A data plane's process.
    pub fn dataplane(&mut self, number: usize) -> &mut Process {
        &mut self.dataplanes[number]
    }

    /// Where a data plane listens.
    pub fn address(&self, number: usize) -> SocketAddr {
        self.tcp_address(number).expect("a data plane that listens on a port")
    }

    fn tcp_address(&self, number: usize) -> Option<SocketAddr> {
        self.dataplanes.get(number)?.address("listen").parse().ok()
    }

    /// The URL that clients of a data plane know.
    pub fn url(&self, number: usize) -> String {
        let scheme = if self.plain { "http" } else { "https" };
        format!("{scheme}://localhost:{}", self.address(number).port())
    }

    /// Where control serves `Runs`, as `gitdoor --control` takes it.
    pub fn runs_address(&self) -> String {
        self.runs_address_of(0)
    }

    /// Where one of several controls does.
    pub fn runs_address_of(&self, control: usize) -> String {
        url_of(self.controls[control].address("runs"), self.trust.is_some())
    }

    /// Where one of several controls serves `Gate`.
    pub fn gate_address_of(&self, control: usize) -> String {
        url_of(self.controls[control].address("gate"), self.trust.is_some())
    }

    /// The certificates of a world with mutual TLS.
    pub fn trust(&self) -> &Trust {
        self.trust.as_ref().expect("a world with mutual TLS")
    }

    /// A data plane, for requests by hand.
    pub fn door(&self, number: usize) -> Door {
        let address = self.address(number);
        let door = if self.plain { Door::plain(address) } else { Door::tls(address, self.authority.pem()) };
        door.keeping(self.transcript.clone())
    }

    /// The folder that holds everything but the stand-in's.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Every line that the parts printed so far, each after its part's name.
    pub fn lines(&self) -> Vec<String> {
        self.processes().flat_map(Process::lines).collect()
    }

    /// What each part's `/metrics` says, after the part's name.
    pub async fn metrics(&self) -> Vec<(String, String)> {
        let mut all = Vec::new();
        for process in self.processes().filter(|process| process.is_running()) {
            all.push((process.name().to_owned(), self.admin(process, "/metrics").await.text()));
        }
        all
    }

    /// Answers of a data plane's admin listener.
    pub async fn dataplane_admin(&self, number: usize, path: &str) -> crate::raw::Response {
        self.admin(&self.dataplanes[number], path).await
    }

    /// Answers of control's admin listener.
    pub async fn control_admin(&self, path: &str) -> crate::raw::Response {
        self.admin(&self.controls[0], path).await
    }

    async fn admin(&self, process: &Process, path: &str) -> crate::raw::Response {
        let address = process.address("admin").parse().expect("an address");
        Door::plain(address).send(Request::get(path).header("Connection", "close")).await
    }

    fn processes(&self) -> impl Iterator<Item = &Process> {
        self.controls.iter().chain(&self.dataplanes)
    }
}

impl Drop for World {
    #[expect(clippy::print_stderr, reason = "a test that failed says what the parts said")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.lines().iter().for_each(|line| eprintln!("{line}"));
            for request in self.github.requests() {
                let crate::github::Request { method, path, query, status, body_len, body_end, .. } = request;
                eprintln!(
                    "upstream: {method} {path}?{} {status:?}, {body_len} bytes, {body_end:?}",
                    query.unwrap_or_default()
                );
            }
            for crate::recorder::Request { host, method, target, .. } in self.recorder.requests() {
                eprintln!("elsewhere: {method} {host}{target}");
            }
        }
    }
}
