//! The session's driver: connects to a control, carries questions and answers, and reconnects with back-off.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use gitdoor_proto::v1;
use gitdoor_proto::v1::gate_client::GateClient;
use gitdoor_proto::v1::session_response::Answer;
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::{Channel, Endpoint, Uri};

use super::streams::{Cut, Streams};
use super::{QUEUE, Session};
use crate::upstream::cause;

/// First wait after a failed attempt; doubles up to the last.
const BACKOFF_FIRST: Duration = Duration::from_millis(20);
/// Longest wait between attempts: a control that comes back is found within this.
const BACKOFF_LAST: Duration = Duration::from_millis(500);
/// Time to connect.
const CONNECT: Duration = Duration::from_secs(2);
/// A peer that is gone without a word is noticed after this and as much again.
const KEEP_ALIVE: Duration = Duration::from_secs(5);

/// Where a control listens for the gate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Control {
    /// `http://host:port`.
    Tcp(Uri),
    /// A Unix socket.
    Unix(PathBuf),
}

impl fmt::Display for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(uri) => write!(f, "{uri}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl Control {
    async fn connect(&self) -> Result<Channel, tonic::transport::Error> {
        match self {
            Self::Tcp(uri) => tune(Endpoint::from(uri.clone())).connect().await,
            Self::Unix(path) => {
                let path = path.clone();
                let connect = move |_: Uri| {
                    let path = path.clone();
                    async move { UnixStream::connect(path).await.map(TokioIo::new) }
                };
                // The socket's path is the address; the URI only names an authority.
                let endpoint = tune(Endpoint::from_static("http://control"));
                endpoint.connect_with_connector(tower::service_fn(connect)).await
            }
        }
    }
}

fn tune(endpoint: Endpoint) -> Endpoint {
    endpoint
        .connect_timeout(CONNECT)
        .http2_keep_alive_interval(KEEP_ALIVE)
        .keep_alive_timeout(KEEP_ALIVE)
        .keep_alive_while_idle(true)
        .tcp_nodelay(true)
}

/// Keeps a session published for as long as anybody may ask.
pub(super) async fn drive(
    controls: Vec<Control>,
    publish: watch::Sender<Option<Arc<Session>>>,
    streams: Arc<Streams>,
) {
    let mut backoff = BACKOFF_FIRST;
    for control in controls.iter().cycle() {
        let lived = tokio::select! {
            lived = run(control, &publish, &streams) => lived,
            () = publish.closed() => return,
        };
        publish.send_replace(None);
        backoff = if lived { BACKOFF_FIRST } else { (backoff * 2).min(BACKOFF_LAST) };
        tokio::time::sleep(backoff).await;
    }
}

/// Runs one session to its end. False: there was none.
async fn run(control: &Control, publish: &watch::Sender<Option<Arc<Session>>>, streams: &Streams) -> bool {
    let channel = match control.connect().await {
        Ok(channel) => channel,
        Err(error) => {
            tracing::warn!(%control, cause = cause(&error), "control is not reachable");
            return false;
        }
    };
    let (questions, queue) = mpsc::channel(QUEUE);
    let answers = GateClient::new(channel).session(ReceiverStream::new(queue)).await;
    let mut answers = match answers {
        Ok(answers) => answers.into_inner(),
        Err(status) => {
            tracing::warn!(code = %status.code(), "control opened no session");
            return false;
        }
    };
    let session = Session::new(questions);
    publish.send_replace(Some(Arc::clone(&session)));
    tracing::info!("session with control");
    loop {
        match answers.message().await {
            Ok(Some(v1::SessionResponse { answer: Some(Answer::Revocation(news)), .. })) => cut(streams, &news),
            Ok(Some(v1::SessionResponse { id, answer: Some(answer) })) => session.answer(id, answer),
            Ok(Some(v1::SessionResponse { answer: None, .. })) => {}
            Ok(None) => break,
            Err(status) => {
                tracing::warn!(code = %status.code(), "the session with control was lost");
                break;
            }
        }
    }
    publish.send_replace(None);
    session.lose();
    true
}

fn cut(streams: &Streams, news: &v1::Revocation) {
    let cut = if news.reason() == v1::Reason::RunExpired { Cut::Expired } else { Cut::Revoked };
    streams.cut(&news.run_id, cut);
}
