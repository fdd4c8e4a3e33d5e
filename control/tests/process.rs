//! The program as an operator runs it: its start, its exit statuses, and what it remembers after it was killed.

#![expect(clippy::unwrap_used, reason = "a helper that cannot do its part fails the test")]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use gitdoor_proto::v1;
use gitdoor_proto::v1::gate_client::GateClient;
use gitdoor_proto::v1::runs_client::RunsClient;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::{Channel, Endpoint};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

#[path = "../src/store/postgres/server.rs"]
#[expect(dead_code, reason = "the tests of the store itself use the rest")]
mod postgres;

/// A folder with a key and a store.
struct Place(tempfile::TempDir);

struct Control {
    child: Child,
    ready: String,
}

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        let key = rcgen::KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, rcgen::RsaKeySize::_2048).unwrap();
        std::fs::write(place.path("key.pem"), key.serialize_pem()).unwrap();
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn command(&self, changed: &[(&str, String)]) -> Command {
        let mut flags = vec![
            ("--runs-listen", format!("unix:{}", self.path("runs").display())),
            ("--gate-listen", format!("unix:{}", self.path("gate").display())),
            ("--admin-listen", "127.0.0.1:0".to_owned()),
            ("--store", format!("sqlite:{}", self.path("store").display())),
            ("--github-app-id", "1".to_owned()),
            ("--github-app-key", self.path("key.pem").display().to_string()),
            ("--github-installation-id", "2".to_owned()),
            ("--github-api-url", "http://127.0.0.1:1".to_owned()),
        ];
        for (flag, value) in changed {
            flags.retain(|(kept, _)| kept != flag);
            flags.push((flag, value.clone()));
        }
        let mut command = Command::new(env!("CARGO_BIN_EXE_gitdoor-control"));
        command.env_clear().stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        for (flag, value) in flags {
            command.arg(flag).arg(value);
        }
        command
    }

    fn start(&self) -> Control {
        self.start_with(&[])
    }

    fn start_with(&self, changed: &[(&str, String)]) -> Control {
        let mut child = self.command(changed).stderr(Stdio::inherit()).spawn().unwrap();
        let mut ready = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut ready).unwrap();
        Control { child, ready }
    }

    /// Exit status and standard error of a start that fails.
    fn refused(&self, changed: &[(&str, String)]) -> (Option<i32>, String) {
        let output = self.command(changed).output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), "", "nothing is ready");
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    }

    async fn runs(&self) -> RunsClient<Channel> {
        let url = format!("unix:{}", self.path("runs").display());
        RunsClient::new(Endpoint::from_shared(url).unwrap().connect().await.unwrap())
    }
}

impl Control {
    fn signal(mut self, signal: &str) -> ExitStatus {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
        self.child.wait().unwrap()
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Registers runs one after the other until control is gone, and ends every second one. Returns what was answered.
async fn churn(mut runs: RunsClient<Channel>, worker: u32, answered: mpsc::Sender<()>) -> Vec<(String, bool)> {
    let mut done = Vec::new();
    for number in 0.. {
        let run_id = format!("run-{worker}-{number:05}");
        let message = v1::RegisterRunRequest {
            run_id: run_id.clone(),
            identity: v1::Identity::Write.into(),
            ..Default::default()
        };
        if runs.register_run(message).await.is_err() {
            break;
        }
        done.push((run_id.clone(), false));
        if number % 2 == 1 {
            if runs.revoke_run(v1::RevokeRunRequest { run_id }).await.is_err() {
                break;
            }
            done.last_mut().unwrap().1 = true;
        }
        // The channel would connect to the next control by itself: nothing is asked of that one.
        if answered.send(()).await.is_err() {
            break;
        }
    }
    done
}

#[tokio::test]
async fn what_was_answered_is_there_after_a_kill_amid_the_work() {
    let place = Place::new();
    let control = place.start();
    assert!(control.ready.starts_with(&format!("ready runs=unix:{} gate=unix:", place.path("runs").display())));
    let (answered, mut answers) = mpsc::channel(1);
    let runs = place.runs().await;
    let workers: Vec<_> = (0..8).map(|n| tokio::spawn(churn(runs.clone(), n, answered.clone()))).collect();
    drop(answered);
    for _ in 0..200 {
        answers.recv().await.unwrap();
    }
    assert_eq!(control.signal("-KILL").code(), None);
    drop(answers);

    let control = place.start();
    let mut runs = place.runs().await;
    let mut count = 0;
    for worker in workers {
        for (run_id, revoked) in worker.await.unwrap() {
            let shown = runs.get_run(v1::GetRunRequest { run_id: run_id.clone() }).await.unwrap().into_inner();
            if revoked {
                assert_eq!(shown.run.unwrap().state(), v1::RunState::Revoked, "{run_id}");
            }
            count += 1;
        }
    }
    assert!(count >= 200, "{count}");
    assert_eq!(control.signal("-TERM").code(), Some(0));
    assert!(!place.path("runs").exists());
}

#[tokio::test]
async fn two_controls_share_the_runs_of_a_postgresql_and_a_kill_of_one_loses_none() {
    let server = postgres::Server::start();
    let store = [("--store", server.url("postgres"))];
    let (one, other) = (Place::new(), Place::new());
    let (killed, kept) = (one.start_with(&store), other.start_with(&store));
    let message =
        v1::RegisterRunRequest { run_id: "r".into(), identity: v1::Identity::Read.into(), ..Default::default() };
    one.runs().await.register_run(message).await.unwrap();
    assert_eq!(killed.signal("-KILL").code(), None);
    let run = v1::GetRunRequest { run_id: "r".into() };
    let shown = other.runs().await.get_run(run.clone()).await.unwrap().into_inner().run.unwrap();
    assert_eq!(shown.state(), v1::RunState::Live);
    other.runs().await.revoke_run(v1::RevokeRunRequest { run_id: "r".into() }).await.unwrap();
    let again = Place::new();
    let restarted = again.start_with(&store);
    let shown = again.runs().await.get_run(run).await.unwrap().into_inner().run.unwrap();
    assert_eq!(shown.state(), v1::RunState::Revoked);
    assert_eq!((kept.signal("-TERM").code(), restarted.signal("-TERM").code()), (Some(0), Some(0)));
}

#[tokio::test]
async fn both_listeners_tell_their_health_and_who_watches_hears_of_the_end() {
    let place = Place::new();
    let control = place.start();
    let mut watches = Vec::new();
    for (socket, service) in [("runs", "gitdoor.v1.Tokens"), ("gate", "gitdoor.v1.Gate")] {
        let url = format!("unix:{}", place.path(socket).display());
        let mut health = HealthClient::new(Endpoint::from_shared(url).unwrap().connect().await.unwrap());
        let of_service = HealthCheckRequest { service: service.into() };
        let told = health.check(of_service.clone()).await.unwrap().into_inner();
        assert_eq!(told.status(), ServingStatus::Serving, "{service}");
        let mut watch = health.watch(of_service).await.unwrap().into_inner();
        assert_eq!(watch.message().await.unwrap().unwrap().status(), ServingStatus::Serving);
        watches.push(watch);
    }
    let ended = tokio::task::spawn_blocking(move || control.signal("-TERM"));
    for watch in &mut watches {
        assert_eq!(watch.message().await.unwrap().unwrap().status(), ServingStatus::NotServing);
        assert!(watch.message().await.unwrap().is_none(), "a watch does not hold the drain up");
    }
    assert_eq!(ended.await.unwrap().code(), Some(0));
}

/// What the admin listener answers, as its status line.
async fn probe(admin: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(admin).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {admin}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer.lines().next().unwrap().to_owned()
}

#[tokio::test]
async fn a_control_that_drains_is_not_ready_while_a_session_is_still_open() {
    let place = Place::new();
    let control = place.start();
    let (_, admin) = control.ready.trim_end().rsplit_once("admin=").unwrap();
    let admin = admin.to_owned();
    let url = format!("unix:{}", place.path("gate").display());
    let mut gate = GateClient::new(Endpoint::from_shared(url).unwrap().connect().await.unwrap());
    let (questions, receiver) = mpsc::channel::<v1::SessionRequest>(1);
    let mut session = gate.session(ReceiverStream::new(receiver)).await.unwrap().into_inner();
    assert_eq!(probe(&admin, "/readyz").await, "HTTP/1.1 200 OK");
    let ended = tokio::task::spawn_blocking(move || control.signal("-TERM"));
    let news = session.message().await.unwrap().unwrap();
    assert_eq!(news.answer, Some(v1::session_response::Answer::Draining(v1::Draining {})));
    assert_eq!(probe(&admin, "/readyz").await, "HTTP/1.1 503 Service Unavailable");
    assert_eq!(probe(&admin, "/livez").await, "HTTP/1.1 200 OK");
    drop(questions);
    assert!(session.message().await.unwrap().is_none());
    assert_eq!(ended.await.unwrap().code(), Some(0));
}

#[tokio::test]
async fn no_secret_is_logged_at_any_level() {
    let place = Place::new();
    let log = place.path("log");
    let mut command = place.command(&[("--log-level", "trace".to_owned()), ("--log-format", "json".to_owned())]);
    let mut child = command.stderr(std::fs::File::create(&log).unwrap()).spawn().unwrap();
    let mut ready = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut ready).unwrap();
    let control = Control { child, ready };
    let message =
        v1::RegisterRunRequest { run_id: "r".into(), identity: v1::Identity::Read.into(), ..Default::default() };
    let shown = place.runs().await.register_run(message).await.unwrap().into_inner();
    let bearer = gitdoor_proto::Bearer::parse(&shown.bearer).unwrap();
    let question = v1::AuthorizeRequest {
        run_id: "r".into(),
        secret: bearer.expose_secret().into(),
        request_id: "q-1".into(),
        intent: Some(v1::authorize_request::Intent::Verify(v1::Verify {})),
        ..Default::default()
    };
    let url = format!("unix:{}", place.path("gate").display());
    let mut gate = GateClient::new(Endpoint::from_shared(url).unwrap().connect().await.unwrap());
    gate.authorize(question).await.unwrap();
    assert_eq!(control.signal("-TERM").code(), Some(0));
    let log = std::fs::read_to_string(&log).unwrap();
    assert!(log.contains("\"intent\":\"verify\"") && log.contains("q-1"), "{log}");
    assert!(!log.contains(bearer.expose_secret()));
}

#[tokio::test]
async fn a_signal_drains_although_a_client_stays_connected() {
    let place = Place::new();
    let control = place.start();
    let _runs = place.runs().await;
    assert_eq!(control.signal("-INT").code(), Some(0));
}

#[test]
fn configuration_that_cannot_be_used_exits_64_and_names_its_flag() {
    let place = Place::new();
    std::fs::write(place.path("letter"), "dear friend").unwrap();
    let value = |name: &str| place.path(name).display().to_string();
    let table = [
        ("--github-app-key", value("none")),
        ("--store", format!("sqlite:{}", value("letter"))),
        ("--store", format!("sqlite:{}", value("none/store"))),
        ("--store", format!("postgres:///gitdoor?host={}", value("none"))),
        ("--store", "postgres://127.0.0.1:1/gitdoor".into()),
        ("--store", "postgres://user:hush@db/gitdoor".into()),
        ("--store", "postgres://db/gitdoor?sslmode=require".into()),
        ("--runs-listen", "0.0.0.0:0".into()),
        ("--gate-listen", format!("unix:{}", value("none/gate"))),
    ];
    for (flag, value) in table {
        let (status, words) = place.refused(&[(flag, value.clone())]);
        assert_eq!(status, Some(64), "{flag} {value}: {words}");
        assert!(words.contains(flag) && !words.contains("hush"), "{flag} {value}: {words}");
    }
    assert_eq!(std::fs::read_to_string(place.path("letter")).unwrap(), "dear friend");
}

#[test]
fn an_occupied_listener_exits_64() {
    let place = Place::new();
    let held = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = held.local_addr().unwrap().to_string();
    for flag in ["--runs-listen", "--gate-listen", "--admin-listen"] {
        let (status, words) = place.refused(&[(flag, address.clone())]);
        assert_eq!(status, Some(64), "{words}");
        assert!(words.contains(flag) && words.contains("occupied"), "{words}");
    }
}

#[test]
fn a_store_in_use_exits_64() {
    let place = Place::new();
    let control = place.start();
    let other = [("--runs-listen", "127.0.0.1:0".to_owned()), ("--gate-listen", "127.0.0.1:0".to_owned())];
    let (status, words) = place.refused(&other);
    assert_eq!(status, Some(64), "{words}");
    assert!(words.contains("--store") && words.contains("in use"), "{words}");
    assert_eq!(control.signal("-TERM").code(), Some(0));
}

#[test]
fn usage_exits_2_and_help_0() {
    let place = Place::new();
    let (status, words) = place.refused(&[("--admin-listen", "nowhere".into())]);
    assert_eq!(status, Some(2), "{words}");
    let program = Path::new(env!("CARGO_BIN_EXE_gitdoor-control"));
    let help = Command::new(program).arg("--help").output().unwrap();
    assert!(help.status.success());
    let text = String::from_utf8(help.stdout).unwrap();
    for word in ["--runs-listen", "GITDOOR_STORE", "SIGTERM", "64"] {
        assert!(text.contains(word), "{word}");
    }
}
