//! The driver of one address: connects, opens a session, carries questions and answers, and does so again with
//! back-off for as long as the address is one of control's.

use std::sync::Arc;
use std::time::Duration;

use gitdoor_proto::endpoint::{Address, ConnectError, Connector};
use gitdoor_proto::v1;
use gitdoor_proto::v1::gate_client::GateClient;
use gitdoor_proto::v1::session_response::Answer;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tonic::{Code, Status, Streaming};

use super::holder::Holder;
use super::pool::Live;
use super::session::Session;
use super::streams::{Cut, Streams};
use crate::metrics::{Counted, SessionState};
use crate::upstream::cause;

/// First wait after a session or an attempt; doubles up to the last.
const BACKOFF_FIRST: Duration = Duration::from_millis(20);
/// Longest wait between attempts: a control that comes back is found within this.
const BACKOFF_LAST: Duration = Duration::from_millis(500);
/// A session that lived for this long was a good one: the next is opened without much ado.
const STEADY: Duration = Duration::from_secs(1);
/// Time to connect and to open a session.
const OPEN: Duration = Duration::from_secs(4);

/// What keeps a session with one address.
pub(super) struct Driver {
    /// The address.
    pub(super) address: Address,
    /// How it is reached.
    pub(super) connector: Connector,
    /// Who opens its sessions.
    pub(super) holder: Option<Holder>,
    /// Where its session is published.
    pub(super) live: Arc<Live>,
    /// What a revocation cuts.
    pub(super) streams: Arc<Streams>,
    /// Cancelled when the address is no longer one of control's, or nobody asks any more.
    pub(super) leave: CancellationToken,
    /// Time for the questions under way when it leaves.
    pub(super) grace: Duration,
}

#[derive(Debug, thiserror::Error)]
enum OpenError {
    #[error("no connection")]
    Connect(#[from] ConnectError),
    #[error("control opened no session: {0}")]
    Refused(Code),
    #[error("no session in time")]
    Silent,
    #[error("the system's random source failed when this process started")]
    NoRandomness,
}

/// What a session says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Heard {
    /// It goes on.
    More,
    /// Control drains: what was asked is answered, and the rest is to go elsewhere.
    Draining,
    /// There is no more.
    End,
}

impl Driver {
    /// Keeps a session published until told to leave.
    pub(super) async fn drive(self) {
        let mut backoff = BACKOFF_FIRST;
        let mut told = false;
        while !self.leave.is_cancelled() {
            let opened = {
                let _lost = Counted::new(SessionState::Lost);
                tokio::select! {
                    opened = timeout(OPEN, self.open()) => opened.unwrap_or(Err(OpenError::Silent)),
                    () = self.leave.cancelled() => return,
                }
            };
            match opened {
                Ok((session, answers)) => {
                    let began = Instant::now();
                    self.carry(&session, answers).await;
                    told = true;
                    backoff = if began.elapsed() < STEADY { backoff } else { BACKOFF_FIRST };
                }
                // An outage is told of once, and not with each attempt.
                Err(_) if told => {}
                Err(error) => {
                    tracing::warn!(control = %self.address, cause = cause(&error), "control is not reachable");
                    told = true;
                }
            }
            let _lost = Counted::new(SessionState::Lost);
            tokio::select! {
                () = sleep(jitter(backoff)) => {}
                () = self.leave.cancelled() => return,
            }
            backoff = (backoff * 2).min(BACKOFF_LAST);
        }
    }

    async fn open(&self) -> Result<(Arc<Session>, Streaming<v1::SessionResponse>), OpenError> {
        let holder = self.holder.as_ref().ok_or(OpenError::NoRandomness)?;
        let channel = self.connector.connect(&self.address).await?;
        let (session, questions) = Session::new();
        let answers = GateClient::new(channel).session(holder.open(questions)).await;
        let answers = answers.map_err(|status| OpenError::Refused(status.code()))?;
        Ok((session, answers.into_inner()))
    }

    /// Carries a session to its end.
    async fn carry(&self, session: &Arc<Session>, mut answers: Streaming<v1::SessionResponse>) {
        session.opened();
        self.live.publish(session);
        tracing::info!(control = %self.address, "session with control");
        let ended = tokio::select! {
            ended = self.hear(session, &mut answers) => Some(ended),
            () = self.leave.cancelled() => None,
        };
        // First nobody finds it any more; then what it was asked goes elsewhere.
        session.close();
        self.live.withdraw(session);
        match ended {
            Some(Ok(Heard::Draining)) | None => {
                tracing::info!(control = %self.address, "the session with control is let go");
                let more = |heard| matches!(heard, Ok(Heard::More | Heard::Draining));
                let rest = async { while !session.is_idle() && more(self.next(session, &mut answers).await) {} };
                drop(timeout(self.grace, rest).await);
            }
            Some(Ok(Heard::More | Heard::End)) => {
                tracing::warn!(control = %self.address, "control ended the session");
            }
            Some(Err(status)) => {
                tracing::warn!(control = %self.address, code = %status.code(), "the session with control was lost");
            }
        }
        session.lose();
    }

    /// Hears until it is to go elsewhere.
    async fn hear(&self, session: &Session, answers: &mut Streaming<v1::SessionResponse>) -> Result<Heard, Status> {
        loop {
            match self.next(session, answers).await? {
                Heard::More => {}
                last @ (Heard::Draining | Heard::End) => return Ok(last),
            }
        }
    }

    /// Takes one message in.
    async fn next(&self, session: &Session, answers: &mut Streaming<v1::SessionResponse>) -> Result<Heard, Status> {
        match answers.message().await? {
            None => return Ok(Heard::End),
            Some(v1::SessionResponse { answer: Some(Answer::Draining(v1::Draining {})), .. }) => {
                return Ok(Heard::Draining);
            }
            Some(v1::SessionResponse { answer: Some(Answer::Revocation(news)), .. }) => self.cut(&news),
            Some(v1::SessionResponse { id, answer }) => session.answer(id, answer),
        }
        Ok(Heard::More)
    }

    fn cut(&self, news: &v1::Revocation) {
        let cut = if news.reason() == v1::Reason::RunExpired { Cut::Expired } else { Cut::Revoked };
        self.streams.cut(&news.run_id, cut);
    }
}

/// Half the wait, and some of the other half: data planes that lost a control together come back one by one.
fn jitter(wait: Duration) -> Duration {
    // Without chance they all wait the longest.
    let chance = getrandom::u32().unwrap_or(u32::MAX);
    wait.mul_f64(0.5 + f64::from(chance) / f64::from(u32::MAX) / 2.0)
}
