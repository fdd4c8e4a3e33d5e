//! A small GitHub on loopback, for tests: an App that proves itself by JWT, installation tokens that are enforced on
//! every request, and `git http-backend` behind them.
//!
//! It runs on a runtime of its own, so a test that blocks does not stop it. Three TLS servers, like github.com,
//! api.github.com and the hosts that GitHub stores downloads on. It can be told to go wrong ([`Github::when`]), and it
//! keeps every request.

mod answer;
mod api;
mod app;
mod backend;
mod fault;
mod furnished;
mod graphql;
mod mint;
mod objects;
mod record;
mod repositories;
mod route;
mod secrets;
mod seed;
mod server;
mod shape;
mod smart;
mod storage;
mod tokens;

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::watch;

use crate::authority::Authority;
use crate::clock;

pub use answer::Canned;
pub use app::{APP_ID, BOT, INSTALLATION_ID};
pub use fault::{Edit, Fault, Rest, When};
pub use furnished::ASSET;
pub use record::{BodyEnd, Request};
pub use route::{Host, Route};
pub use seed::Seed;
pub use tokens::{Permissions, Token};

pub(crate) use seed::search_path;

/// Seconds that a token lives, as GitHub's do.
const TOKEN_LIFE: i64 = 3600;

/// The stand-in. It ends when it is dropped.
pub struct Github {
    pub(crate) state: Arc<State>,
    runtime: Option<Runtime>,
    // Last: it is removed when nothing runs in it any more.
    folder: TempDir,
}

/// What all requests share.
pub(crate) struct State {
    folder: PathBuf,
    app: app::App,
    repositories: Mutex<repositories::Repositories>,
    tokens: tokens::Tokens,
    secrets: secrets::Secrets,
    storage: storage::Storage,
    limits: api::Limits,
    classic_projects: AtomicBool,
    faults: fault::Faults,
    requests: Arc<record::Requests>,
    backends: Arc<AtomicUsize>,
    connections: AtomicUsize,
    clock_skew: AtomicI64,
    token_life: AtomicI64,
    urls: OnceLock<Urls>,
    hung_up: watch::Sender<()>,
}

/// Where the stand-in listens.
#[derive(Debug, Clone)]
pub(crate) struct Urls {
    pub(crate) git: String,
    pub(crate) api: String,
    pub(crate) storage: String,
}

impl State {
    fn now(&self) -> i64 {
        clock::unix_seconds(self.clock_skew.load(Ordering::SeqCst))
    }

    fn token_life(&self) -> i64 {
        self.token_life.load(Ordering::SeqCst)
    }

    fn urls(&self) -> Urls {
        self.urls.get().expect("set before the first request").clone()
    }
}

/// Starting and finding it.
impl Github {
    /// Starts it on ports of its own.
    pub fn start() -> Self {
        let folder = tempfile::Builder::new().prefix("standin-").tempdir().expect("a folder");
        fs::create_dir(folder.path().join("repositories")).expect("a folder");
        let authority = Authority::new("stand-in GitHub");
        fs::write(folder.path().join("ca.pem"), authority.pem()).expect("a file");
        let app = app::App::new();
        fs::write(folder.path().join("app.pem"), &app.key).expect("a file");
        let state = Arc::new(State {
            folder: folder.path().to_owned(),
            app,
            repositories: Mutex::default(),
            tokens: tokens::Tokens::default(),
            secrets: secrets::Secrets::default(),
            storage: storage::Storage::default(),
            limits: api::Limits::default(),
            classic_projects: AtomicBool::new(false),
            faults: fault::Faults::default(),
            requests: Arc::default(),
            backends: Arc::default(),
            connections: AtomicUsize::new(0),
            clock_skew: AtomicI64::new(0),
            token_life: AtomicI64::new(TOKEN_LIFE),
            urls: OnceLock::new(),
            hung_up: watch::Sender::new(()),
        });
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let tls = authority.localhost().server();
        let ports = [Host::Git, Host::Api, Host::Storage].map(|host| {
            let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port");
            listener.set_nonblocking(true).expect("a listener");
            let port = listener.local_addr().expect("its address").port();
            let _runs = runtime.enter();
            let listener = TcpListener::from_std(listener).expect("a listener");
            runtime.spawn(server::listen(Arc::clone(&state), host, listener, Arc::clone(&tls)));
            port
        });
        let [git, api, storage] = ports.map(|port| format!("https://localhost:{port}"));
        state.urls.set(Urls { git, api, storage }).expect("the first time");
        Self { state, runtime: Some(runtime), folder }
    }

    /// What stands for `https://github.com`.
    pub fn url(&self) -> String {
        self.state.urls().git
    }

    /// What stands for `https://api.github.com`.
    pub fn api_url(&self) -> String {
        self.state.urls().api
    }

    /// What stands for the hosts that downloads come from, `*.blob.core.windows.net` and the like.
    pub fn storage_url(&self) -> String {
        self.state.urls().storage
    }

    /// The address of what stands for `github.com`.
    pub fn address(&self) -> SocketAddr {
        address(&self.url())
    }

    /// The address of what stands for `api.github.com`.
    pub fn api_address(&self) -> SocketAddr {
        address(&self.api_url())
    }

    /// The address of what stands for the hosts that downloads come from.
    pub fn storage_address(&self) -> SocketAddr {
        address(&self.storage_url())
    }

    /// The folder that holds all it has.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The certificate that its clients trust: a PEM file.
    pub fn ca_file(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// The App's private key: a PEM file.
    pub fn app_key_file(&self) -> PathBuf {
        self.folder.path().join("app.pem")
    }
}

/// Its API.
impl Github {
    /// Every secret that went into an answer, whatever it opens: clone tokens, tokens and signatures in URLs.
    pub fn returned_secrets(&self) -> Vec<String> {
        self.state.secrets.all()
    }

    /// Lets a furnished repository's run have one more artifact, of so many bytes, which are made as they are sent.
    pub fn add_artifact(&self, name: &str, run: u64, artifact: &str, bytes: u64) -> u64 {
        let mut id = 0;
        self.state.repositories.lock().unwrap().change(name, |repository| {
            id = 1000 + repository.furnishing.list("artifacts").len() as u64;
            let facts = json!({ "artifact_id": id, "artifact": artifact, "run_id": run, "made": bytes });
            repository.furnishing = repository.furnishing.with("artifacts", facts);
        });
        id
    }

    /// Opens a pull request for a branch of a furnished repository, as a person would; returns its number.
    pub fn open_pull(&self, name: &str, branch: &str, title: &str) -> u64 {
        let mut number = 0;
        self.state.repositories.lock().unwrap().change(name, |repository| {
            (number, repository.furnishing) = repository.furnishing.with_pull(&repository.folder, branch, title);
        });
        number
    }

    /// Lets it have classic projects, as an older GitHub had: none, but asking for them is no error.
    pub fn set_classic_projects(&self, there: bool) {
        self.state.classic_projects.store(there, Ordering::SeqCst);
    }

    /// Lets `core`, `search`, `code_search` or `graphql` be asked so often in a window.
    pub fn set_rate_limit(&self, resource: &str, requests: u64) {
        self.state.limits.set(resource, requests);
    }
}

/// Its App and tokens.
impl Github {
    /// Suspends the installation, or ends that.
    pub fn set_suspended(&self, suspended: bool) {
        self.state.app.installation.lock().unwrap().suspended = suspended;
    }

    /// Gives the installation a permission at this level, or takes it away.
    pub fn set_permission(&self, name: &str, level: Option<&str>) {
        let permissions = &mut self.state.app.installation.lock().unwrap().permissions;
        match level {
            Some(level) => permissions.insert(name.to_owned(), level.to_owned()),
            None => permissions.remove(name),
        };
    }

    /// Lets its clock go ahead by so many seconds, or behind.
    pub fn set_clock_skew(&self, seconds: i64) {
        self.state.clock_skew.store(seconds, Ordering::SeqCst);
    }

    /// Lets the tokens that it mints from now on live so many seconds.
    pub fn set_token_life(&self, seconds: i64) {
        self.state.token_life.store(seconds, Ordering::SeqCst);
    }

    /// Every token ever minted, in order.
    pub fn tokens(&self) -> Vec<Token> {
        self.state.tokens.all()
    }

    /// Mints a token as if the App had asked; for tests of the stand-in itself.
    pub fn token(&self, permissions: &[(&str, &str)], repositories: Option<&[u64]>) -> Token {
        let pairs = permissions.iter().map(|(name, level)| ((*name).to_owned(), (*level).to_owned()));
        let expires_at = self.state.now() + self.state.token_life();
        self.state.tokens.mint(pairs.collect(), repositories.map(<[u64]>::to_vec), expires_at)
    }

    /// Ends every token, as if its time were over.
    pub fn expire_tokens(&self) {
        (0..self.tokens().len()).for_each(|index| self.state.tokens.change(index, |token| token.expires_at = 0));
    }
}

/// What came, and what is to go wrong.
impl Github {
    /// Every request, in the order of their heads.
    pub fn requests(&self) -> Vec<Request> {
        self.state.requests.all()
    }

    /// The requests of one kind.
    pub fn requests_for(&self, route: Route) -> Vec<Request> {
        self.requests().into_iter().filter(|request| request.route == route).collect()
    }

    /// Every `POST git-receive-pack`, probes too.
    pub fn pushes(&self) -> Vec<Request> {
        self.requests_for(Route::ReceivePack)
    }

    /// The `POST git-receive-pack` whose first command is for this ref.
    pub fn push_of(&self, reference: &str) -> Option<Request> {
        let name = format!(" {reference}\0");
        let command = |body: &[u8]| {
            body.get(..512.min(body.len())).map(String::from_utf8_lossy).unwrap_or_default().contains(&name)
        };
        self.state.requests.find(|request| request.route == Route::ReceivePack && command(&request.body))
    }

    /// Every `POST git-receive-pack` that is no probe.
    pub fn pushes_with_commands(&self) -> Vec<Request> {
        self.pushes().into_iter().filter(|request| !request.is_probe()).collect()
    }

    /// Every mint request.
    pub fn mints(&self) -> Vec<Request> {
        self.requests_for(Route::Mint)
    }

    /// How many `git http-backend` run just now.
    pub fn running_backends(&self) -> usize {
        self.state.backends.load(Ordering::SeqCst)
    }

    /// Every request to the host that downloads come from.
    pub fn downloads(&self) -> Vec<Request> {
        self.requests_for(Route::Storage)
    }

    /// The token that a request carried, if it was good.
    pub fn token_of(&self, request: &Request) -> Option<Token> {
        self.tokens().into_iter().nth(request.token?)
    }

    /// The next request of this kind is to go wrong.
    pub fn when(&self, route: Route) -> When<'_> {
        When::new(self, route)
    }

    /// Closes every connection, idle or not.
    pub fn hang_up(&self) {
        self.state.hung_up.send_replace(());
    }

    /// With one repository nothing goes wrong any more.
    pub fn heal_repository(&self, name: &str) {
        self.state.faults.clear_for(name);
    }

    /// Nothing goes wrong any more.
    pub fn heal(&self) {
        self.state.faults.clear();
    }
}

impl Drop for Github {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // Elsewhere, since a runtime may not be waited for inside another.
            let end = std::thread::spawn(move || runtime.shutdown_timeout(Duration::from_secs(5)));
            let _panicked = end.join();
        }
    }
}

fn address(url: &str) -> SocketAddr {
    let port = url.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port");
    SocketAddr::from(([127, 0, 0, 1], port))
}
