//! Both planes in this process, and the run that they serve.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::time::Duration;

use gitdoor_control::embed::Embedded;
use gitdoor_control::github::GitHub;
use gitdoor_control::github::plain::Plain;
use gitdoor_dataplane::config::{Args, Config, Listen};
use gitdoor_dataplane::server::{Public, Workers};
use gitdoor_proto::{Bearer, RunId, v1};
use tokio::sync::Mutex;
use tonic::{Request, Status};

use super::ExecError;
use super::state::Place;
use super::upstream::Upstream;
use crate::answer::{Issued, Run, Shown};
use crate::args::ExecArgs;
use crate::env;
use crate::failure::Failure;
use crate::run::registration;

/// How long the planes may take to find each other.
const FIND: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(5);
/// How long requests have to end when the command has: nobody is left who waits for an answer.
const DRAIN: &str = "1s";

/// A door, and the run that it is for.
pub(super) struct Door {
    /// As git and gh know it.
    pub(super) name: env::Door,
    /// The run, as it was registered.
    pub(super) run: Run,
    /// What opens the door.
    pub(super) bearer: Bearer,
    id: RunId,
    control: Mutex<Embedded>,
    workers: Workers,
}

impl Door {
    /// Starts both planes and registers the run. What fails leaves nothing that serves.
    pub(super) async fn open(args: &ExecArgs, upstream: Upstream, place: &Place) -> Result<Self, Failure> {
        let id = place.run().clone();
        let request = registration(&id, args.identity, args.budget, &args.rules)?;
        let public = listen(args, place)?;
        let port = public.port().ok_or(ExecError::Apart)?;
        let socket = place.door();
        // Its folder is this user's alone from its first moment.
        fs::set_permissions(&socket, Permissions::from_mode(0o600)).map_err(ExecError::Start)?;
        let name = env::Door::here(port, socket.to_string_lossy().into_owned());
        let control = decide(upstream, place).await?;
        let workers = public.start().map_err(ExecError::Start)?;
        let connected = tokio::time::timeout(FIND, connected(&workers)).await;
        let registered = match connected {
            Ok(()) => register(&control, request, &id).await,
            Err(_elapsed) => Err(ExecError::Apart.into()),
        };
        match registered {
            Ok(Issued { run, bearer }) => Ok(Self { name, run, bearer, id, control: Mutex::new(control), workers }),
            Err(failure) => {
                tokio::join!(workers.drain(), control.end());
                Err(failure)
            }
        }
    }

    /// Why the door is shut before its time: it returns when that is so.
    pub(super) async fn failed(&self) -> String {
        let mut control = self.control.lock().await;
        let threads = async {
            while !self.workers.has_ended() {
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
        };
        tokio::select! {
            failed = control.failed() => gitdoor_control::gate::cause(&failed),
            () = threads => "a serving thread has ended".to_owned(),
        }
    }

    /// Ends the run, and says what it did. When this has returned no push of it can complete.
    pub(super) async fn revoke(&self) -> Result<Shown, Failure> {
        let control = self.control.lock().await;
        let request = v1::RevokeRunRequest { run_id: self.id.to_string() };
        control.runs().revoke_run(Request::new(request)).await.map_err(refused)?;
        let request = v1::GetRunRequest { run_id: self.id.to_string() };
        let shown = control.runs().get_run(Request::new(request)).await.map_err(refused)?;
        Ok(Shown::read(shown.into_inner())?)
    }

    /// Ends both planes.
    pub(super) async fn end(self) {
        self.workers.drain().await;
        self.control.into_inner().end().await;
    }
}

async fn connected(workers: &Workers) {
    while !workers.are_connected() {
        tokio::time::sleep(POLL).await;
    }
}

async fn register(control: &Embedded, request: v1::RegisterRunRequest, id: &RunId) -> Result<Issued, Failure> {
    let answer = control.runs().register_run(Request::new(request)).await.map_err(refused)?;
    let v1::RegisterRunResponse { run, bearer } = answer.into_inner();
    Ok(Issued::read(run, &bearer, id.as_str())?)
}

fn refused(status: Status) -> Failure {
    Failure::Refused(Box::new(status))
}

async fn decide(upstream: Upstream, place: &Place) -> Result<Embedded, ExecError> {
    let (store, gate) = (place.store(), place.gate());
    let started = match upstream {
        Upstream::App(config) => Embedded::start(&store, &gate, GitHub::new(&config)?).await,
        Upstream::Token(token, config) => Embedded::start(&store, &gate, Plain::new(token, &config)?).await,
    };
    started.map_err(|error| ExecError::Control(Box::new(error)))
}

/// The data plane's listeners: on loopback for git, on a socket for gh.
fn listen(args: &ExecArgs, place: &Place) -> Result<Public, ExecError> {
    let mut flags = vec![
        "--listen=127.0.0.1:0".to_owned(),
        "--public-host=127.0.0.1".to_owned(),
        format!("--control=unix:{}", place.gate().display()),
        format!("--drain-timeout={DRAIN}"),
        format!("--github-url={}", args.github_url),
        format!("--github-api-url={}", args.github_api_url),
    ];
    if let Some(ca) = &args.github_ca {
        flags.push(format!("--github-ca={}", ca.display()));
    }
    // What it says of a value is one line, before what it says of its usage.
    let words = |error: clap::Error| error.to_string().lines().next().unwrap_or_default().to_owned();
    let args = Args::of_flags(flags).map_err(|error| ExecError::Flag(words(error)))?;
    let config: Config = args.check()?;
    let listeners = [config.listen.clone(), Listen::Unix(place.door())];
    Ok(Public::bind(&Arc::new(config), &listeners, 1)?)
}
