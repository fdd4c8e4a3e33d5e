//! The services over real connections.

mod holders;
mod limits;
mod listeners;
mod probes;
mod requests;
mod tokens;

mod runs;

use std::sync::Arc;
use std::time::{Duration, Instant};

use gitdoor_proto::v1::gate_client::GateClient;
use gitdoor_proto::v1::gate_server::GateServer;
use gitdoor_proto::v1::runs_client::RunsClient;
use gitdoor_proto::v1::runs_server::RunsServer;
use gitdoor_proto::v1::session_request::Question;
use gitdoor_proto::v1::session_response::Answer;
use gitdoor_proto::{Bearer, HOLDER_METADATA, v1};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::time::advance;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::metadata::MetadataValue;
use tonic::transport::{Channel, Server, server::TcpIncoming};
use tonic::{Code, Streaming};

use super::gate::GateService;
use super::runs::RunsService;
use crate::fleet::ControlId;
use crate::forge::MintError;
use crate::frozen::Frozen;
use crate::gate::Gate;
use crate::lease::{LEASE, Leases};
use crate::store::sqlite::Sqlite;
use crate::village::Village;

struct Control {
    runs: RunsClient<Channel>,
    gate: GateClient<Channel>,
    forge: Arc<Village>,
    drain: CancellationToken,
    served: tokio::task::JoinHandle<Result<(), tonic::transport::Error>>,
    _dir: tempfile::TempDir,
}

impl Control {
    async fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Arc::new(Sqlite::open(&dir.path().join("store")).unwrap());
        let (forge, drain) = (Arc::new(Village::new()), CancellationToken::new());
        let leases = Arc::new(Leases::new(ControlId::from_bytes([1; 16])));
        let gate = Arc::new(Gate::new(store.clone(), forge.clone(), leases.clone()));
        let router = Server::builder()
            .add_service(RunsServer::new(RunsService::new(store, forge.clone(), leases, Arc::default())))
            .add_service(GateServer::new(GateService::new(gate, drain.clone())));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let incoming = TcpIncoming::from(listener);
        let served = tokio::spawn(router.serve_with_incoming_shutdown(incoming, drain.clone().cancelled_owned()));
        let channel = Channel::from_shared(address).unwrap().connect().await.unwrap();
        let (runs, gate) = (RunsClient::new(channel.clone()), GateClient::new(channel));
        Self { runs, gate, forge, drain, served, _dir: dir }
    }

    async fn register(&mut self, run: &str, repository: &str) -> Result<Bearer, tonic::Status> {
        let message = v1::RegisterRunRequest {
            run_id: run.into(),
            identity: v1::Identity::Write.into(),
            repository: repository.into(),
            ..Default::default()
        };
        let answer = self.runs.register_run(message).await?.into_inner();
        Ok(Bearer::parse(&answer.bearer).unwrap())
    }

    async fn session(&self) -> Session {
        self.session_of([&[1; 32][..]]).await.unwrap()
    }

    /// A session of the data plane that shows this.
    async fn session_of<'a>(&self, shown: impl IntoIterator<Item = &'a [u8]>) -> Result<Session, tonic::Status> {
        let (questions, receiver) = mpsc::channel(64);
        let mut request = tonic::Request::new(ReceiverStream::new(receiver));
        for holder in shown {
            request.metadata_mut().append_bin(HOLDER_METADATA, MetadataValue::from_bytes(holder));
        }
        let answers = self.gate.clone().session(request).await?.into_inner();
        Ok(Session { questions, answers, id: 0 })
    }

    async fn run(&mut self, run: &str) -> v1::GetRunResponse {
        self.runs.get_run(v1::GetRunRequest { run_id: run.into() }).await.unwrap().into_inner()
    }
}

struct Session {
    questions: mpsc::Sender<v1::SessionRequest>,
    answers: Streaming<v1::SessionResponse>,
    id: u64,
}

impl Session {
    async fn send(&mut self, question: Option<Question>) -> u64 {
        self.id += 1;
        self.questions.send(v1::SessionRequest { id: self.id, question, ended: Vec::new() }).await.unwrap();
        self.id
    }

    /// Says that requests have ended.
    async fn end(&mut self, ended: Vec<u64>) {
        self.questions.send(v1::SessionRequest { ended, ..Default::default() }).await.unwrap();
    }

    async fn next(&mut self) -> v1::SessionResponse {
        self.answers.message().await.unwrap().expect("the session goes on")
    }

    async fn ask(&mut self, question: Question) -> Answer {
        let id = self.send(Some(question)).await;
        let answer = self.next().await;
        assert_eq!(answer.id, id);
        answer.answer.unwrap()
    }

    async fn permit(&mut self, bearer: &Bearer, intent: v1::authorize_request::Intent) -> v1::Permit {
        let answer = self.ask(Question::Authorize(authorize(bearer, intent))).await;
        let Answer::Authorize(v1::AuthorizeResponse { verdict: Some(verdict) }) = answer else { panic!() };
        let v1::authorize_response::Verdict::Permit(permit) = verdict else { panic!("{verdict:?}") };
        permit
    }

    async fn renew(&mut self, authorization: &str, sent: bool) -> v1::renew_lease_response::Verdict {
        let message = v1::RenewLeaseRequest { authorization: authorization.into(), sent };
        let Answer::Renew(answer) = self.ask(Question::Renew(message)).await else { panic!() };
        answer.verdict.unwrap()
    }
}

fn authorize(bearer: &Bearer, intent: v1::authorize_request::Intent) -> v1::AuthorizeRequest {
    v1::AuthorizeRequest {
        run_id: bearer.run_id().to_string(),
        secret: bearer.expose_secret().into(),
        request_id: "q".into(),
        intent: Some(intent),
        ..Default::default()
    }
}

fn verify() -> v1::authorize_request::Intent {
    v1::authorize_request::Intent::Verify(v1::Verify {})
}

fn push(name: &str) -> v1::authorize_request::Intent {
    let command = v1::PushCommand {
        old_oid: "0".repeat(40),
        new_oid: "a".repeat(40),
        ref_name: format!("refs/heads/{name}").into_bytes(),
    };
    v1::authorize_request::Intent::Push(v1::PushIntent {
        repository: "acme/api".into(),
        commands: vec![command],
        key: Vec::new(),
    })
}

fn report(authorization: &str) -> Question {
    Question::Report(v1::ReportPushRequest {
        authorization: authorization.into(),
        result: v1::PushResult::Done.into(),
        upstream_refusals: Vec::new(),
        request_bytes: 3,
        ..Default::default()
    })
}

#[tokio::test]
async fn a_run_is_registered_shown_rotated_and_revoked() {
    let mut control = Control::start().await;
    let first = control.register("r", "ACME/api").await.unwrap();
    let shown = control.run("r").await.run.unwrap();
    assert_eq!(shown.state(), v1::RunState::Live);
    let binding = shown.binding.unwrap();
    assert_eq!(
        (binding.repository.as_str(), binding.repository_id, binding.default_branch.as_str()),
        ("acme/api", 7, "main")
    );

    let retried = control.register("r", "acme/API").await.unwrap();
    assert_ne!(first.expose(), retried.expose());
    let mut session = control.session().await;
    session.permit(&retried, verify()).await;
    let again = control.register("r", "acme/api").await.unwrap_err();
    assert_eq!(again.code(), Code::AlreadyExists);
    assert!(again.message().contains("RotateBearer"), "{again}");

    let rotated = control.runs.rotate_bearer(v1::RotateBearerRequest { run_id: "r".into() }).await.unwrap();
    session.permit(&Bearer::parse(&rotated.into_inner().bearer).unwrap(), verify()).await;
    let revoked = control.runs.revoke_run(v1::RevokeRunRequest { run_id: "r".into() }).await.unwrap().into_inner();
    assert_eq!(revoked.run.unwrap().state(), v1::RunState::Revoked);
    let late = control.runs.rotate_bearer(v1::RotateBearerRequest { run_id: "r".into() }).await.unwrap_err();
    assert_eq!((late.code(), late.message()), (Code::FailedPrecondition, "the run r is revoked"));
}

#[tokio::test]
async fn a_run_is_described_to_its_sandbox_as_it_is_shown_to_its_owner() {
    let mut control = Control::start().await;
    let bearer = control.register("r", "acme/api").await.unwrap();
    let mut session = control.session().await;
    let describe = v1::authorize_request::Intent::Describe(v1::DescribeRun {});
    let described = session.permit(&bearer, describe).await.run;
    assert_eq!(described.map(|run| *run), control.run("r").await.run);
}

#[tokio::test]
async fn a_repository_that_cannot_be_confirmed_registers_nothing() {
    let mut control = Control::start().await;
    let unknown = control.register("r", "acme/none").await.unwrap_err();
    assert_eq!(unknown.code(), Code::FailedPrecondition);
    control.forge.fail(Some(MintError::Unavailable(Duration::from_secs(3))));
    assert_eq!(control.register("r", "acme/api").await.unwrap_err().code(), Code::Unavailable);
    control.forge.fail(None);
    control.forge.unreadable(true);
    assert_eq!(control.register("r", "acme/api").await.unwrap_err().code(), Code::Unavailable);
    let missing = control.runs.get_run(v1::GetRunRequest { run_id: "r".into() }).await.unwrap_err();
    assert_eq!((missing.code(), missing.message()), (Code::NotFound, "no run has the id r"));
}

#[tokio::test]
async fn what_cannot_be_read_is_an_invalid_argument_that_names_the_field() {
    let mut control = Control::start().await;
    let invalid = control.register("a b", "").await.unwrap_err();
    assert_eq!(invalid.code(), Code::InvalidArgument);
    assert!(invalid.message().starts_with("run_id: "), "{invalid}");
    let invalid = control.runs.list_runs(v1::ListRunsRequest { page_size: 1001, page_token: String::new() }).await;
    assert_eq!(invalid.unwrap_err().code(), Code::InvalidArgument);
    let bearer = control.register("r", "").await.unwrap();
    let mut question = authorize(&bearer, verify());
    question.intent = None;
    assert_eq!(control.gate.authorize(question).await.unwrap_err().code(), Code::InvalidArgument);
    let answer = control.gate.authorize(authorize(&bearer, verify())).await.unwrap().into_inner();
    assert!(matches!(answer.verdict, Some(v1::authorize_response::Verdict::Permit(_))));
}

#[tokio::test]
async fn runs_are_listed_a_page_at_a_time() {
    let mut control = Control::start().await;
    for run in ["c", "a", "b"] {
        control.register(run, "").await.unwrap();
    }
    let (mut seen, mut page_token) = (Vec::new(), String::new());
    loop {
        let page =
            control.runs.list_runs(v1::ListRunsRequest { page_size: 2, page_token }).await.unwrap().into_inner();
        seen.push(page.runs.into_iter().map(|run| run.run_id).collect::<Vec<_>>());
        page_token = page.next_page_token;
        if page_token.is_empty() {
            break;
        }
    }
    assert_eq!(seen, [vec!["a", "b"], vec!["c"]]);
}

#[tokio::test]
async fn a_question_that_cannot_be_read_has_an_empty_answer_and_the_session_goes_on() {
    let mut control = Control::start().await;
    let bearer = control.register("r", "").await.unwrap();
    let mut session = control.session().await;
    let id = session.send(None).await;
    assert_eq!(session.next().await, v1::SessionResponse { id, answer: None });
    let mut broken = authorize(&bearer, verify());
    broken.request_id = "a\nb".into();
    let id = session.send(Some(Question::Authorize(broken))).await;
    assert_eq!(session.next().await, v1::SessionResponse { id, answer: None });
    session.permit(&bearer, verify()).await;
}

#[tokio::test]
async fn every_session_hears_of_a_revocation_and_so_does_one_that_comes_late() {
    let mut control = Control::start().await;
    control.register("r", "").await.unwrap();
    let mut sessions = [control.session().await, control.session().await];
    control.runs.revoke_run(v1::RevokeRunRequest { run_id: "r".into() }).await.unwrap();
    let [one, two] = &mut sessions;
    let mut late = control.session().await;
    for session in [one, two, &mut late] {
        let news = session.next().await;
        let told = v1::Revocation { run_id: "r".into(), reason: v1::Reason::RunRevoked.into() };
        assert_eq!(news, v1::SessionResponse { id: 0, answer: Some(Answer::Revocation(told)) });
    }
}

#[tokio::test]
async fn a_revocation_returns_once_the_push_is_reported() {
    let mut control = Control::start().await;
    let bearer = control.register("r", "acme/api").await.unwrap();
    let mut session = control.session().await;
    let frozen = Frozen::new();
    let ticket = session.permit(&bearer, push("x")).await.authorization;
    let mut runs = control.runs.clone();
    let revoked = tokio::spawn(async move { runs.revoke_run(v1::RevokeRunRequest { run_id: "r".into() }).await });
    assert!(matches!(session.next().await.answer, Some(Answer::Revocation(_))));
    let refused = session.renew(&ticket, false).await;
    assert!(
        matches!(refused, v1::renew_lease_response::Verdict::Refusal(why) if why.reason() == v1::Reason::RunRevoked)
    );
    assert!(!revoked.is_finished());
    session.renew(&ticket, true).await;
    assert!(!revoked.is_finished());
    assert!(matches!(session.ask(report(&ticket)).await, Answer::Report(v1::ReportPushResponse { refusal: None })));
    frozen.before(LEASE, revoked).await.unwrap().unwrap();
    let pushes = control.run("r").await.pushes;
    assert_eq!((pushes.len(), pushes[0].outcome(), pushes[0].request_bytes), (1, v1::PushOutcome::Done, 3));
}

#[tokio::test]
async fn a_revocation_waits_for_a_silent_push_until_its_lease_has_lapsed() {
    let mut control = Control::start().await;
    let bearer = control.register("r", "acme/api").await.unwrap();
    let mut session = control.session().await;
    let frozen = Frozen::new();
    session.permit(&bearer, push("x")).await;
    let mut runs = control.runs.clone();
    let revoked = tokio::spawn(async move { runs.revoke_run(v1::RevokeRunRequest { run_id: "r".into() }).await });
    // It is told of once it stands in the store.
    assert!(matches!(session.next().await.answer, Some(Answer::Revocation(_))));
    drop(session);
    advance(LEASE.saturating_sub(Duration::from_millis(1))).await;
    // What is asked after it has had its turn is answered.
    control.run("r").await;
    assert!(!revoked.is_finished(), "the lease is not over");
    // A timer ends with the next whole millisecond.
    advance(Duration::from_millis(2)).await;
    frozen.at_once(revoked).await.unwrap().unwrap();
}

#[tokio::test]
async fn sessions_end_when_control_drains_and_when_their_data_plane_is_done() {
    let control = Control::start().await;
    let Session { questions, mut answers, .. } = control.session().await;
    drop(questions);
    assert_eq!(answers.message().await.unwrap(), None);
    let mut open = control.session().await;
    control.drain.cancel();
    let news = open.next().await;
    assert_eq!(news.answer, Some(Answer::Draining(v1::Draining {})));
    // What was asked before it heard of that is answered.
    let id = open.send(None).await;
    assert_eq!(open.next().await, v1::SessionResponse { id, answer: None });
    let Session { questions, mut answers, .. } = open;
    drop(questions);
    assert_eq!(answers.message().await.unwrap(), None);
    drop((answers, control.runs, control.gate));
    control.served.await.unwrap().unwrap();
}

#[tokio::test]
async fn many_questions_at_once_are_each_answered_by_their_id() {
    let mut control = Control::start().await;
    let bearer = control.register("r", "acme/api").await.unwrap();
    let stranger = Bearer::generate(gitdoor_proto::RunId::parse("s").unwrap()).unwrap();
    let mut session = control.session().await;
    let mut open = std::collections::HashMap::new();
    for number in 0..300_u32 {
        let (known, who) = if number % 3 == 0 { (false, &stranger) } else { (true, &bearer) };
        if open.len() >= 60 {
            let answer = session.next().await;
            check(&mut open, answer);
        }
        open.insert(session.send(Some(Question::Authorize(authorize(who, verify())))).await, known);
    }
    while !open.is_empty() {
        let answer = session.next().await;
        check(&mut open, answer);
    }
}

fn check(open: &mut std::collections::HashMap<u64, bool>, answer: v1::SessionResponse) {
    let known = open.remove(&answer.id).expect("answered once");
    let Some(Answer::Authorize(v1::AuthorizeResponse { verdict: Some(verdict) })) = answer.answer else { panic!() };
    assert_eq!(matches!(verdict, v1::authorize_response::Verdict::Permit(_)), known);
}
