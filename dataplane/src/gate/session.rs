//! The session's driver: connects to a control, carries questions and answers, and reconnects with back-off.

use std::sync::Arc;
use std::time::Duration;

use gitdoor_proto::endpoint::{Connector, Endpoint};
use gitdoor_proto::v1;
use gitdoor_proto::v1::gate_client::GateClient;
use gitdoor_proto::v1::session_response::Answer;
use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;

use super::streams::{Cut, Streams};
use super::{QUEUE, Session};
use crate::upstream::cause;

/// First wait after a failed attempt; doubles up to the last.
const BACKOFF_FIRST: Duration = Duration::from_millis(20);
/// Longest wait between attempts: a control that comes back is found within this.
const BACKOFF_LAST: Duration = Duration::from_millis(500);

/// Keeps a session published for as long as anybody may ask.
pub(super) async fn drive(
    controls: Vec<Endpoint>,
    connector: Connector,
    publish: watch::Sender<Option<Arc<Session>>>,
    streams: Arc<Streams>,
) {
    let mut backoff = BACKOFF_FIRST;
    for control in controls.iter().cycle() {
        let lived = tokio::select! {
            lived = run(control, &connector, &publish, &streams) => lived,
            () = publish.closed() => return,
        };
        publish.send_replace(None);
        backoff = if lived { BACKOFF_FIRST } else { (backoff * 2).min(BACKOFF_LAST) };
        tokio::time::sleep(backoff).await;
    }
}

/// Runs one session to its end. False: there was none.
async fn run(
    control: &Endpoint,
    connector: &Connector,
    publish: &watch::Sender<Option<Arc<Session>>>,
    streams: &Streams,
) -> bool {
    let Some(channel) = connect(control, connector).await else {
        return false;
    };
    let (questions, queue) = mpsc::channel(QUEUE);
    let answers = GateClient::new(channel).session(ReceiverStream::new(queue)).await;
    let mut answers = match answers {
        Ok(answers) => answers.into_inner(),
        Err(status) => {
            // A certificate that control does not take is told by the first call: the handshake ends before.
            tracing::warn!(%control, code = %status.code(), cause = cause(&status), "control opened no session");
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

/// Connects to the first place of a control that is there.
async fn connect(control: &Endpoint, connector: &Connector) -> Option<Channel> {
    let addresses = match control.resolve().await {
        Ok(addresses) => addresses,
        Err(error) => {
            tracing::warn!(%control, %error, "control's name cannot be looked up");
            return None;
        }
    };
    for address in addresses {
        match connector.connect(&address).await {
            Ok(channel) => return Some(channel),
            Err(error) => tracing::warn!(control = %address, cause = cause(&error), "control is not reachable"),
        }
    }
    None
}

fn cut(streams: &Streams, news: &v1::Revocation) {
    let cut = if news.reason() == v1::Reason::RunExpired { Cut::Expired } else { Cut::Revoked };
    streams.cut(&news.run_id, cut);
}
