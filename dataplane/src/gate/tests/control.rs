//! A control for tests: a real server of the Gate in a runtime of its own, which answers, is silent, has no store, drains
//! or dies as it is told.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt as _;
use gitdoor_proto::endpoint::{Address, Endpoint};
use gitdoor_proto::v1::gate_server::{Gate as GateRpc, GateServer};
use gitdoor_proto::v1::session_request::Question;
use gitdoor_proto::v1::session_response::Answer;
use gitdoor_proto::{HOLDER_METADATA, v1};
use tokio::net::{TcpListener, TcpSocket, UnixListener};
use tokio::runtime::Runtime;
use tokio::sync::{broadcast, mpsc, watch};
use tokio_stream::wrappers::{ReceiverStream, UnixListenerStream};
use tonic::transport::Server;
use tonic::transport::server::{Router, TcpIncoming};
use tonic::{Request, Response, Status, Streaming};

/// Where it listens.
#[derive(Clone)]
pub(super) enum Place {
    /// On loopback.
    Tcp(SocketAddr),
    /// On a socket.
    Unix(PathBuf),
}

impl Place {
    /// As its clients know it.
    pub(super) fn address(&self) -> Address {
        let text = match self {
            Self::Tcp(address) => format!("http://{address}"),
            Self::Unix(path) => format!("unix:{}", path.display()),
        };
        // A number is looked up without a wait.
        text.parse::<Endpoint>().unwrap().resolve().now_or_never().unwrap().unwrap().remove(0)
    }
}

/// A control that does as it is told.
pub(super) struct Scripted {
    pub(super) place: Place,
    script: Arc<Script>,
    runtime: Option<Runtime>,
    /// Whether it lets no question through to itself.
    deaf: bool,
    /// Has its port and does not listen, so that nobody else is given the port while it is dead.
    _port: Option<TcpSocket>,
}

/// What is answered.
#[derive(Clone, Copy)]
struct Says {
    /// No, for this reason.
    refuses: Option<v1::Reason>,
    /// How long the run still lives.
    remaining: Duration,
}

struct Script {
    name: &'static str,
    silent: watch::Sender<bool>,
    says: Arc<Mutex<Says>>,
    draining: AtomicBool,
    drain: broadcast::Sender<()>,
    news: broadcast::Sender<v1::Revocation>,
    seen: watch::Sender<Vec<Question>>,
    ended: watch::Sender<Vec<u64>>,
    /// What each session was opened with.
    holders: Mutex<Vec<Vec<u8>>>,
}

impl Scripted {
    /// On loopback.
    pub(super) async fn tcp(name: &'static str) -> Self {
        Self::start(name, Place::Tcp(SocketAddr::from(([127, 0, 0, 1], 0))), false).await
    }

    /// On a Unix socket.
    pub(super) async fn unix(name: &'static str, folder: &Path) -> Self {
        Self::start(name, Place::Unix(folder.join(name)), false).await
    }

    /// One that opens sessions, and leaves every question with those who ask.
    pub(super) async fn deaf(name: &'static str) -> Self {
        Self::start(name, Place::Tcp(SocketAddr::from(([127, 0, 0, 1], 0))), true).await
    }

    async fn start(name: &'static str, place: Place, deaf: bool) -> Self {
        let script = Script {
            name,
            silent: watch::channel(false).0,
            says: Arc::new(Mutex::new(Says { refuses: None, remaining: Duration::from_mins(1) })),
            draining: AtomicBool::new(false),
            drain: broadcast::channel(1).0,
            news: broadcast::channel(8).0,
            seen: watch::channel(Vec::new()).0,
            ended: watch::channel(Vec::new()).0,
            holders: Mutex::default(),
        };
        let (place, port) = match place {
            Place::Tcp(any) => {
                let port = TcpSocket::new_v4().unwrap();
                port.set_reuseaddr(true).unwrap();
                port.bind(any).unwrap();
                (Place::Tcp(port.local_addr().unwrap()), Some(port))
            }
            Place::Unix(_) => (place, None),
        };
        let mut control = Self { place, script: Arc::new(script), runtime: None, deaf, _port: port };
        control.start_again().await;
        control
    }

    /// Who opened its sessions, one after the other.
    pub(super) fn holders(&self) -> Vec<Vec<u8>> {
        self.script.holders.lock().unwrap().clone()
    }

    /// Serves, on the address that it has.
    pub(super) async fn start_again(&mut self) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let window = self.deaf.then_some(0);
        let router = Server::builder().initial_stream_window_size(window);
        let router = { router }.add_service(GateServer::from_arc(Arc::clone(&self.script)));
        runtime.spawn(serve(router, self.place.clone())).await.unwrap();
        self.runtime = Some(runtime);
    }

    /// Dies, with all its connections.
    pub(super) async fn stop(&mut self) {
        let runtime = self.runtime.take().unwrap();
        tokio::task::spawn_blocking(|| runtime.shutdown_timeout(Duration::from_secs(10))).await.unwrap();
        if let Place::Unix(path) = &self.place {
            std::fs::remove_file(path).unwrap();
        }
    }

    /// Reads questions, and does not answer them before it speaks.
    pub(super) fn be_silent(&self) {
        self.script.silent.send_replace(true);
    }

    /// Answers what was asked, and what is.
    pub(super) fn speak(&self) {
        self.script.silent.send_replace(false);
    }

    /// Answers that its store does not, or whatever it has to.
    pub(super) fn lose_store(&self, lost: bool) {
        self.refuse(lost.then_some(v1::Reason::StoreUnavailable));
    }

    /// Refuses whatever is asked for this reason, or permits it.
    pub(super) fn refuse(&self, reason: Option<v1::Reason>) {
        self.script.says.lock().unwrap().refuses = reason;
    }

    /// Lets the run live for as long from each question on.
    pub(super) fn leave(&self, remaining: Duration) {
        self.script.says.lock().unwrap().remaining = remaining;
    }

    /// Ends its sessions and opens none.
    pub(super) fn drain(&self) {
        self.script.draining.store(true, Ordering::SeqCst);
        self.script.drain.send(()).unwrap();
    }

    /// Opens sessions again.
    pub(super) fn come_back(&self) {
        self.script.draining.store(false, Ordering::SeqCst);
    }

    /// Tells its sessions that a run was revoked.
    pub(super) fn revoke(&self, run: &str) {
        let news = v1::Revocation { run_id: run.into(), reason: v1::Reason::RunRevoked.into() };
        self.script.news.send(news).unwrap();
    }

    /// The questions that it has seen.
    pub(super) fn seen(&self) -> Vec<Question> {
        self.script.seen.borrow().clone()
    }

    /// The requests that are said to have ended, in the order in which that was said.
    pub(super) fn ended(&self) -> Vec<u64> {
        self.script.ended.borrow().clone()
    }

    /// Waits until so many requests are said to have ended.
    pub(super) async fn until_ended(&self, count: usize) {
        let ended = tokio::time::timeout(super::LONG, async {
            self.script.ended.subscribe().wait_for(|ended| ended.len() >= count).await.map(drop).unwrap();
        });
        ended.await.unwrap_or_else(|_| panic!("not {count} have ended: {:?}", self.ended()));
    }

    /// Waits until it has seen so many questions.
    pub(super) async fn until_seen(&self, count: usize) {
        let seen = tokio::time::timeout(super::LONG, async {
            self.script.seen.subscribe().wait_for(|seen| seen.len() >= count).await.map(drop).unwrap();
        });
        seen.await.unwrap_or_else(|_| panic!("not {count} were seen: {}", self.seen().len()));
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Serves in a task, once it has its place.
async fn serve(router: Router, place: Place) {
    match place {
        Place::Tcp(address) => {
            let listener = TcpListener::bind(address).await.unwrap();
            tokio::spawn(router.serve_with_incoming(TcpIncoming::from(listener)));
        }
        Place::Unix(path) => {
            let listener = UnixListenerStream::new(UnixListener::bind(&path).unwrap());
            tokio::spawn(router.serve_with_incoming(listener));
        }
    }
}

#[tonic::async_trait]
impl GateRpc for Script {
    type SessionStream = Pin<Box<dyn tokio_stream::Stream<Item = Result<v1::SessionResponse, Status>> + Send>>;

    async fn session(
        &self,
        request: Request<Streaming<v1::SessionRequest>>,
    ) -> Result<Response<Self::SessionStream>, Status> {
        if self.draining.load(Ordering::SeqCst) {
            return Err(Status::unavailable("control is draining"));
        }
        let holder = request.metadata().get_bin(HOLDER_METADATA).unwrap().to_bytes().unwrap();
        self.holders.lock().unwrap().push(holder.to_vec());
        let (answers, receiver) = mpsc::channel(1024);
        let session = Session {
            name: self.name,
            seen: self.seen.clone(),
            ended: self.ended.clone(),
            says: Arc::clone(&self.says),
            silent: self.silent.subscribe(),
            drain: self.drain.subscribe(),
            news: self.news.subscribe(),
            answers,
        };
        tokio::spawn(session.run(request.into_inner()));
        Ok(Response::new(Box::pin(ReceiverStream::new(receiver))))
    }

    async fn authorize(
        &self,
        _request: Request<v1::AuthorizeRequest>,
    ) -> Result<Response<v1::AuthorizeResponse>, Status> {
        Err(Status::unimplemented("a session is asked"))
    }
}

struct Session {
    name: &'static str,
    seen: watch::Sender<Vec<Question>>,
    ended: watch::Sender<Vec<u64>>,
    says: Arc<Mutex<Says>>,
    silent: watch::Receiver<bool>,
    drain: broadcast::Receiver<()>,
    news: broadcast::Receiver<v1::Revocation>,
    answers: mpsc::Sender<Result<v1::SessionResponse, Status>>,
}

impl Session {
    async fn run(mut self, mut questions: Streaming<v1::SessionRequest>) {
        let mut held = Vec::new();
        loop {
            let message = tokio::select! {
                question = questions.message() => match question {
                    Ok(Some(message)) => {
                        self.ended.send_modify(|ended| ended.extend(&message.ended));
                        self.seen.send_modify(|seen| seen.extend(message.question.clone()));
                        held.extend(message.question.map(|question| (message.id, question)));
                        None
                    }
                    Ok(None) | Err(_) => return,
                },
                changed = self.silent.changed() => changed.ok().and(None),
                _ = self.drain.recv() => return,
                news = self.news.recv() => {
                    let answer = Some(Answer::Revocation(news.unwrap()));
                    Some(v1::SessionResponse { id: 0, answer })
                }
            };
            let spoken = if *self.silent.borrow() { Vec::new() } else { std::mem::take(&mut held) };
            let Says { refuses, remaining } = *self.says.lock().unwrap();
            let spoken = spoken.into_iter().map(|(id, question)| {
                let no = refuses.map(|reason| refusal(reason, &question));
                let answer = no.unwrap_or_else(|| answer(self.name, remaining, &question));
                v1::SessionResponse { id, answer: Some(answer) }
            });
            for message in message.into_iter().chain(spoken) {
                if self.answers.send(Ok(message)).await.is_err() {
                    return;
                }
            }
        }
    }
}

/// No, to whatever is asked.
fn refusal(reason: v1::Reason, question: &Question) -> Answer {
    let refusal = v1::Refusal { reason: reason.into(), message: "no".into(), ..Default::default() };
    match question {
        Question::Authorize(_) => {
            let verdict = Some(v1::authorize_response::Verdict::Refusal(refusal));
            Answer::Authorize(v1::AuthorizeResponse { verdict })
        }
        Question::Bind(_) => {
            Answer::Bind(v1::BindRunResponse { verdict: Some(v1::bind_run_response::Verdict::Refusal(refusal)) })
        }
        Question::Renew(_) => {
            let verdict = Some(v1::renew_lease_response::Verdict::Refusal(refusal));
            Answer::Renew(v1::RenewLeaseResponse { verdict })
        }
        Question::Report(_) => Answer::Report(v1::ReportPushResponse { refusal: Some(refusal) }),
        Question::ReplaceToken(_) => {
            let verdict = Some(v1::replace_token_response::Verdict::Refusal(refusal));
            Answer::ReplaceToken(v1::ReplaceTokenResponse { verdict })
        }
    }
}

/// Yes, to whatever is asked. An authorization begins with the name of the control that gave it.
fn answer(name: &str, remaining: Duration, question: &Question) -> Answer {
    let second = |seconds| Some(prost_types::Duration { seconds, nanos: 0 });
    match question {
        Question::Authorize(_) => {
            let remaining = remaining.try_into().ok();
            let permit = v1::Permit { authorization: name.into(), remaining, ..Default::default() };
            let verdict = v1::authorize_response::Verdict::Permit(permit);
            Answer::Authorize(v1::AuthorizeResponse { verdict: Some(verdict) })
        }
        Question::Bind(_) => {
            let verdict = v1::bind_run_response::Verdict::Bound(v1::Bound::default());
            Answer::Bind(v1::BindRunResponse { verdict: Some(verdict) })
        }
        Question::Renew(_) => {
            let verdict = v1::renew_lease_response::Verdict::Lease(v1::Lease { duration: second(2) });
            Answer::Renew(v1::RenewLeaseResponse { verdict: Some(verdict) })
        }
        Question::Report(_) => Answer::Report(v1::ReportPushResponse { refusal: None }),
        Question::ReplaceToken(_) => {
            let token = v1::Token { value: "ghs_x".into(), id: "1".into(), age: second(1) };
            let verdict = v1::replace_token_response::Verdict::Token(token);
            Answer::ReplaceToken(v1::ReplaceTokenResponse { verdict: Some(verdict) })
        }
    }
}
