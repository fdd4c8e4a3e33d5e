//! The program itself, against a small `Runs` server over a Unix socket and over TCP: what it asks, what it prints
//! and where, and how it exits.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use gitdoor_proto::v1;
use serde_json::json;
use tokio::net::{TcpListener, UnixListener};
use tokio_stream::wrappers::{TcpListenerStream, UnixListenerStream};
use tonic::transport::Server;
use tonic::{Request, Response, Status};
use v1::runs_server::{Runs, RunsServer};

const SECRET: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8";

/// A control that keeps runs in memory and remembers what it was asked.
#[derive(Clone, Default)]
struct Control {
    runs: Arc<Mutex<BTreeMap<String, v1::Run>>>,
    registered: Arc<Mutex<Vec<v1::RegisterRunRequest>>>,
    /// Answers everything with this.
    refusal: Option<Status>,
    /// Answers nothing.
    silent: bool,
    /// How long the leases of a revoked run last.
    revocation: Duration,
}

impl Control {
    async fn run(&self, run_id: &str) -> Result<v1::Run, Status> {
        if self.silent {
            std::future::pending::<()>().await;
        }
        match &self.refusal {
            Some(refusal) => Err(refusal.clone()),
            None => self.runs.lock().unwrap().get(run_id).cloned().ok_or_else(|| Status::not_found("no such run")),
        }
    }
}

#[expect(clippy::unnecessary_wraps, reason = "the messages' fields are optional")]
fn timestamp(seconds: i64) -> Option<prost_types::Timestamp> {
    Some(prost_types::Timestamp { seconds, nanos: 0 })
}

#[tonic::async_trait]
impl Runs for Control {
    async fn register_run(
        &self,
        request: Request<v1::RegisterRunRequest>,
    ) -> Result<Response<v1::RegisterRunResponse>, Status> {
        let request = request.into_inner();
        self.registered.lock().unwrap().push(request.clone());
        if self.runs.lock().unwrap().contains_key(&request.run_id) {
            return Err(Status::already_exists("the run's bearer was used; RotateBearer makes another"));
        }
        let run = v1::Run {
            run_id: request.run_id.clone(),
            identity: request.identity,
            state: v1::RunState::Live.into(),
            registered_at: timestamp(1_800_000_000),
            expires_at: timestamp(1_800_003_000),
            options: request.options,
            ..Default::default()
        };
        self.runs.lock().unwrap().insert(request.run_id.clone(), run.clone());
        let bearer = format!("sbr_{}.{SECRET}", request.run_id);
        Ok(Response::new(v1::RegisterRunResponse { run: Some(run), bearer }))
    }

    async fn adopt_run(
        &self,
        request: Request<v1::AdoptRunRequest>,
    ) -> Result<Response<v1::AdoptRunResponse>, Status> {
        let v1::AdoptRunRequest { run_id, budget } = request.into_inner();
        let mut run = self.run(&run_id).await?;
        run.adopted_at = timestamp(1_800_000_100);
        run.expires_at = timestamp(1_800_000_400 + budget.map_or(0, |budget| budget.seconds));
        self.runs.lock().unwrap().insert(run_id, run.clone());
        Ok(Response::new(v1::AdoptRunResponse { run: Some(run) }))
    }

    async fn rotate_bearer(
        &self,
        request: Request<v1::RotateBearerRequest>,
    ) -> Result<Response<v1::RotateBearerResponse>, Status> {
        let run = self.run(&request.get_ref().run_id).await?;
        let bearer = format!("sbr_{}.{SECRET}", run.run_id);
        Ok(Response::new(v1::RotateBearerResponse { run: Some(run), bearer }))
    }

    async fn revoke_run(
        &self,
        request: Request<v1::RevokeRunRequest>,
    ) -> Result<Response<v1::RevokeRunResponse>, Status> {
        let mut run = self.run(&request.get_ref().run_id).await?;
        tokio::time::sleep(self.revocation).await;
        run.state = v1::RunState::Revoked.into();
        run.revoked_at = timestamp(1_800_000_500);
        self.runs.lock().unwrap().insert(run.run_id.clone(), run.clone());
        Ok(Response::new(v1::RevokeRunResponse { run: Some(run) }))
    }

    async fn get_run(&self, request: Request<v1::GetRunRequest>) -> Result<Response<v1::GetRunResponse>, Status> {
        let run = self.run(&request.get_ref().run_id).await?;
        Ok(Response::new(v1::GetRunResponse { run: Some(run), pushes: Vec::new() }))
    }

    /// Two runs a page, whatever was asked for.
    async fn list_runs(
        &self,
        request: Request<v1::ListRunsRequest>,
    ) -> Result<Response<v1::ListRunsResponse>, Status> {
        let after = request.into_inner().page_token;
        let all = self.runs.lock().unwrap();
        let runs: Vec<v1::Run> = all.values().filter(|run| run.run_id > after).take(2).cloned().collect();
        let last = runs.last().map(|run| run.run_id.clone()).filter(|last| all.keys().any(|id| id > last));
        Ok(Response::new(v1::ListRunsResponse { runs, next_page_token: last.unwrap_or_default() }))
    }
}

/// Serves the control on both kinds of listener for as long as the guard lives.
struct Served {
    control: Control,
    socket: String,
    url: String,
    _folder: tempfile::TempDir,
    _runtime: tokio::runtime::Runtime,
}

fn serve(control: Control) -> Served {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.sock");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (unix, tcp) = runtime
        .block_on(async { (UnixListener::bind(&path).unwrap(), TcpListener::bind("127.0.0.1:0").await.unwrap()) });
    let url = format!("http://{}", tcp.local_addr().unwrap());
    let service = RunsServer::new(control.clone());
    runtime
        .spawn(Server::builder().add_service(service.clone()).serve_with_incoming(UnixListenerStream::new(unix)));
    runtime.spawn(Server::builder().add_service(service).serve_with_incoming(TcpListenerStream::new(tcp)));
    Served { control, socket: format!("unix:{}", path.display()), url, _folder: folder, _runtime: runtime }
}

/// Runs the program with nothing in its environment but these.
fn gitdoor_with(environment: &[(&str, &str)], args: &[&str]) -> Output {
    let mut command = Command::new(Path::new(env!("CARGO_BIN_EXE_gitdoor")));
    command.args(args).env_clear().envs(environment.iter().copied()).output().unwrap()
}

fn gitdoor(args: &[&str]) -> Output {
    gitdoor_with(&[], args)
}

fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}

fn json(output: &Output) -> serde_json::Value {
    assert_eq!(output.status.code(), Some(0), "{}", stderr(output));
    serde_json::from_str(stdout(output)).unwrap()
}

#[test]
fn a_registration_prints_the_bearer_alone_and_warns_beside_it() {
    let served = serve(Control::default());
    let args = ["run", "register", "--run-id", "r1", "--identity", "write", "--control", &served.socket];
    let output = gitdoor(&args);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(stdout(&output), format!("sbr_r1.{SECRET}\n"));
    assert!(stderr(&output).contains("shown this once") && stderr(&output).contains("gitdoor run rotate r1"));
    assert!(!stderr(&output).contains(SECRET));
}

#[test]
fn a_registration_asks_for_what_its_flags_say() {
    let served = serve(Control::default());
    let line = "run register --run-id r1 --identity write --repository acme/api --budget 90s --branch agent/* \
                --max-refs 3 --no-workflows --read-repository acme/lib --api-burst 9 --api-rate 0.5 --json";
    let mut args: Vec<&str> = line.split_ascii_whitespace().collect();
    args.extend(["--control", &served.url]);
    let value = json(&gitdoor(&args));
    assert_eq!(value["run_id"], "r1");
    assert_eq!(value["bearer"], format!("sbr_r1.{SECRET}"));
    assert_eq!(value["expires_at"], "2027-01-15T08:50:00Z");
    let expected = v1::RegisterRunRequest {
        run_id: "r1".into(),
        identity: v1::Identity::Write.into(),
        repository: "acme/api".into(),
        budget: Some(prost_types::Duration { seconds: 90, nanos: 0 }),
        options: Some(v1::RunOptions {
            branches: vec!["agent/*".into()],
            max_refs: 3,
            no_workflows: true,
            read_repositories: vec!["acme/lib".into()],
            api_burst: 9,
            api_rate: 0.5,
        }),
    };
    assert_eq!(*served.control.registered.lock().unwrap(), [expected]);
}

#[test]
fn the_environment_speaks_where_no_flag_does() {
    let served = serve(Control::default());
    let environment = [
        ("GITDOOR_CONTROL", served.socket.as_str()),
        ("GITDOOR_RUN_ID", "r1"),
        ("GITDOOR_IDENTITY", "read"),
        ("GITDOOR_BRANCH", "a/*,b"),
        ("GITDOOR_JSON", "true"),
    ];
    let value = json(&gitdoor_with(&environment, &["run", "register", "--identity", "write"]));
    assert_eq!((value["run_id"].as_str(), value["repository"].is_null()), (Some("r1"), true));
    let asked = served.control.registered.lock().unwrap();
    let asked = asked.first().unwrap();
    assert_eq!(asked.identity(), v1::Identity::Write);
    assert_eq!(asked.options.as_ref().unwrap().branches, ["a/*", "b"]);
}

#[test]
fn a_run_lives_through_all_its_commands() {
    let served = serve(Control::default());
    let call = |args: &[&str]| {
        let mut all = vec!["run"];
        all.extend(args);
        all.extend(["--control", &served.url]);
        gitdoor(&all)
    };
    json(&call(&["register", "--run-id", "r1", "--identity", "write", "--json"]));
    let again = call(&["register", "--run-id", "r1", "--identity", "write"]);
    assert_eq!((again.status.code(), stdout(&again)), (Some(1), ""));
    assert!(stderr(&again).contains("RotateBearer") && stderr(&again).contains("gitdoor run rotate"));
    let adopted = call(&["adopt", "r1", "--budget", "1h"]);
    let words = "run r1 adopted, its bearer stays: identity write, not bound, until 2027-01-15T09:06:40Z\n";
    assert_eq!((adopted.status.code(), stdout(&adopted)), (Some(0), words));
    let adopted = json(&call(&["adopt", "r1", "--json"]));
    assert_eq!(
        (&adopted["expires_at"], &adopted["adopted_at"]),
        (&json!("2027-01-15T08:51:40Z"), &json!("2027-01-15T08:01:40Z"))
    );
    assert_eq!(stdout(&call(&["rotate", "r1"])), format!("sbr_r1.{SECRET}\n"));
    assert_eq!(json(&call(&["show", "r1", "--json"]))["state"], "live");
    assert_eq!(json(&call(&["revoke", "r1", "--json"]))["state"], "revoked");
    assert_eq!(stdout(&call(&["revoke", "r1"])), "run r1 revoked; no push of it can still complete\n");
    let shown = call(&["show", "r1"]);
    assert!(stdout(&shown).contains("revoked     2027-01-15T08:08:20Z"), "{}", stdout(&shown));
    assert!(stdout(&shown).ends_with("\nno pushes\n"));
    let missing = call(&["show", "r2"]);
    assert_eq!((missing.status.code(), stdout(&missing)), (Some(1), ""));
    assert!(stderr(&missing).starts_with("gitdoor: no such run\n"));
}

#[test]
fn a_list_goes_through_every_page() {
    let served = serve(Control::default());
    for id in ["a", "b", "c", "d", "e"] {
        let args = ["run", "register", "--run-id", id, "--identity", "read", "--control", &served.socket];
        assert_eq!(gitdoor(&args).status.code(), Some(0));
    }
    let value = json(&gitdoor(&["run", "list", "--json", "--control", &served.socket]));
    let ids: Vec<&str> =
        value["runs"].as_array().unwrap().iter().filter_map(|run| run["run_id"].as_str()).collect();
    assert_eq!(ids, ["a", "b", "c", "d", "e"]);
    assert_eq!(stdout(&gitdoor(&["run", "list", "--control", &served.socket])).lines().count(), 6);
}

#[test]
fn the_next_control_is_asked_when_one_cannot_be() {
    let absent = tempfile::tempdir().unwrap();
    let absent = format!("unix:{}", absent.path().join("runs.sock").display());
    let draining =
        serve(Control { refusal: Some(Status::unavailable("control is draining")), ..Control::default() });
    let served = serve(Control::default());
    let run = v1::Run {
        run_id: "r1".into(),
        identity: v1::Identity::Read.into(),
        state: v1::RunState::Live.into(),
        registered_at: timestamp(1),
        expires_at: timestamp(2),
        ..Default::default()
    };
    served.control.runs.lock().unwrap().insert("r1".into(), run);
    let show = |controls: &[&String]| {
        let mut args = vec!["run", "show", "r1", "--json"];
        args.extend(controls.iter().flat_map(|control| ["--control", control.as_str()]));
        gitdoor(&args)
    };
    assert_eq!(json(&show(&[&absent, &draining.url, &served.socket]))["run_id"], "r1");
    // What a control said is told as its own.
    let said = show(&[&absent, &draining.socket]);
    assert_eq!(said.status.code(), Some(1));
    let words = stderr(&said);
    assert!(words.contains("control is draining") && !words.contains("is gitdoor-control running"), "{words}");
    let nobody = show(&[&absent]);
    assert_eq!(nobody.status.code(), Some(1));
    let words = stderr(&nobody);
    assert!(words.contains("No such file or directory"), "{words}");
    assert!(words.contains("is gitdoor-control running"), "{words}");
}

#[test]
fn a_silent_control_is_given_up_in_words() {
    let served = serve(Control { silent: true, ..Control::default() });
    let output = gitdoor(&["run", "show", "r1", "--timeout", "50ms", "--control", &served.socket]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("within 50ms"), "{}", stderr(&output));
}

#[test]
fn revoke_waits_for_leases_beyond_its_timeout() {
    let served = serve(Control { revocation: Duration::from_millis(300), ..Control::default() });
    let control = ["--timeout", "100ms", "--control", &served.socket];
    let call = |args: &[&str]| gitdoor(&[["run"].as_slice(), args, &control].concat());
    let run = ["run", "register", "--run-id", "r1", "--identity", "write", "--control", &served.socket];
    assert_eq!(gitdoor(&run).status.code(), Some(0));
    assert_eq!(call(&["revoke", "r1"]).status.code(), Some(0));
}

#[test]
fn a_control_that_cannot_be_used_is_named_before_anything_is_asked() {
    for (control, words) in [
        ("http://192.0.2.1:7000", "plain http:// is for this machine alone"),
        ("https://127.0.0.1:7000", "https:// needs it"),
        ("http://user:hush@127.0.0.1:7000", "a user name or a password"),
    ] {
        let output = gitdoor(&["run", "list", "--control", control]);
        assert_eq!((output.status.code(), stdout(&output)), (Some(64), ""), "{control}");
        assert!(stderr(&output).contains("--control") && stderr(&output).contains(words), "{}", stderr(&output));
        assert!(!stderr(&output).contains("hush"));
    }
}

#[test]
fn usage_errors_exit_2_and_help_exits_0() {
    for args in [
        ["run", "show", "a/b"].as_slice(),
        &["run", "walk"],
        &["run", "register", "--run-id", "r1", "--identity", "read", "--repository", "acme/api"],
    ] {
        let output = gitdoor(args);
        assert_eq!((output.status.code(), stdout(&output)), (Some(2), ""), "{args:?}");
        assert!(!stderr(&output).is_empty());
    }
    for args in [["--help"].as_slice(), &["--version"], &["run", "register", "--help"], &["completion", "zsh"]] {
        let output = gitdoor(args);
        assert_eq!((output.status.code(), stderr(&output)), (Some(0), ""), "{args:?}");
        assert!(!stdout(&output).is_empty());
    }
    let help = gitdoor(&["--help"]);
    for words in ["Examples:", "Exit status:", "Environment:", "GITDOOR_CONTROL"] {
        assert!(stdout(&help).contains(words), "{words}");
    }
}
