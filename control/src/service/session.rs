//! A session: questions in, answers in any order, and news of runs that ended, on one stream.

use std::collections::HashMap;
use std::future::ready;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::{FutureExt as _, Stream, StreamExt, stream};
use gitdoor_proto::v1::session_response::Answer;
use gitdoor_proto::{HOLDER_BYTES, HOLDER_METADATA, Reason, v1};
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tonic::metadata::MetadataMap;
use tonic::{Status, Streaming};

use super::gate::GateService;
use crate::forge::Forge;
use crate::gate::RequestPlace;
use crate::lease::Ended;
use crate::limit::QUESTIONS_PER_SESSION;
use crate::metrics;
use crate::store::Store;
use crate::ticket::Holder;

/// How long a session goes on after its data plane was told to leave: any answer is ready by then, or of no use.
const DRAIN: Duration = Duration::from_secs(5);

/// Answers a session until its data plane ends it, which it does soon after it is told to leave, or a while after that.
/// It is told so when control drains, and when the certificate that it was opened with has ended: one that comes back
/// shows another. `time` is what is left of that.
pub(super) fn run<S: Store, F: Forge>(
    service: GateService<S, F>,
    asker: Asker,
    questions: Streaming<v1::SessionRequest>,
    time: Option<Duration>,
) -> impl Stream<Item = Result<v1::SessionResponse, Status>> + Send {
    let (missed, news) = service.gate().leases().news();
    let over = CancellationToken::new();
    let open = Open::new(over.clone());
    let leaves = {
        let drain = service.drain().clone();
        async move {
            match time {
                // Whichever is first.
                Some(time) => drop(timeout(time, drain.cancelled()).await),
                None => drain.cancelled().await,
            }
        }
    }
    .shared();
    let asker = Arc::new(asker);
    let ended = Arc::clone(&asker);
    let answers = questions
        .filter_map(move |message| ready(ended.take_in(message).transpose()))
        .map(move |question| {
            let (service, asker) = (service.clone(), Arc::clone(&asker));
            // A stream that breaks ends the session with the status that it broke with.
            async move { Ok::<_, Status>(service.answer(question?, &asker).await) }
        })
        .buffer_unordered(QUESTIONS_PER_SESSION)
        // The news alone must not keep a session that its data plane has ended.
        .chain(stream::once(async move { open }).filter_map(|open| async move {
            drop(open);
            None
        }));
    let told_to_leave = leaves.clone();
    let draining = stream::once(async move {
        told_to_leave.await;
        Ok(news_of(Answer::Draining(v1::Draining {})))
    });
    let news = stream::select(told(&missed, news), draining).take_until(over.cancelled_owned());
    let late = async move {
        leaves.await;
        sleep(DRAIN).await;
    };
    stream::select(answers, news).take_until(late)
}

/// The data plane at the other end of a session.
#[derive(Debug)]
pub(super) struct Asker {
    holder: Option<Holder>,
    /// The places of the requests that it was permitted, by the question of each. They go with the session.
    places: Mutex<HashMap<u64, RequestPlace>>,
}

impl Asker {
    /// Who opens a session.
    pub(super) fn of(metadata: &MetadataMap) -> Result<Self, Status> {
        // Of two, nobody can say which is meant.
        let mut shown = metadata.get_all_bin(HOLDER_METADATA).iter();
        let holder = shown.next().map(|only| {
            let only = only.to_bytes().ok().filter(|bytes| bytes.len() == HOLDER_BYTES && shown.next().is_none());
            only.map(|bytes| Holder::of(&bytes))
                .ok_or_else(|| Status::invalid_argument(format!("{HOLDER_METADATA} is {HOLDER_BYTES} bytes, once")))
        });
        Ok(Self { holder: holder.transpose()?, places: Mutex::default() })
    }

    /// Who holds what is authorized here.
    pub(super) fn holder(&self) -> Option<Holder> {
        self.holder
    }

    /// Keeps a place until its request has ended.
    pub(super) fn keep(&self, id: u64, place: Option<RequestPlace>) {
        if let Some(place) = place {
            self.places().insert(id, place);
        }
    }

    /// Gives the places back of what has ended. None: the message asks nothing.
    fn take_in(&self, message: Result<v1::SessionRequest, Status>) -> Result<Option<v1::SessionRequest>, Status> {
        let message = message?;
        if !message.ended.is_empty() {
            let mut places = self.places();
            message.ended.iter().for_each(|id| drop(places.remove(id)));
        }
        let asks = message.id != 0 || message.question.is_some();
        Ok(asks.then_some(message))
    }

    fn places(&self) -> MutexGuard<'_, HashMap<u64, RequestPlace>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts a session while it is open; ends its news when it goes.
struct Open(CancellationToken);

impl Open {
    fn new(over: CancellationToken) -> Self {
        metrics::sessions(1.0);
        Self(over)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        metrics::sessions(-1.0);
        self.0.cancel();
    }
}

/// The ends of the last minutes, then each as it comes.
fn told(
    missed: &[Ended],
    news: broadcast::Receiver<Ended>,
) -> impl Stream<Item = Result<v1::SessionResponse, Status>> + Send + use<> {
    let live = stream::unfold(Some(news), |news| async move {
        let mut news = news?;
        match news.recv().await {
            Ok(ended) => Some((Ok(revocation(&ended)), Some(news))),
            Err(RecvError::Closed) => None,
            // A data plane that does not read has missed an end: it must come back, and hears of it then.
            Err(RecvError::Lagged(_)) => {
                Some((Err(Status::resource_exhausted("this session is too far behind")), None))
            }
        }
    });
    let missed: Vec<_> = missed.iter().map(|ended| Ok(revocation(ended))).collect();
    stream::iter(missed).chain(live)
}

fn revocation(ended: &Ended) -> v1::SessionResponse {
    let reason = v1::Reason::from(Reason::from(ended.end)).into();
    news_of(Answer::Revocation(v1::Revocation { run_id: ended.run.to_string(), reason }))
}

fn news_of(news: Answer) -> v1::SessionResponse {
    v1::SessionResponse { id: 0, answer: Some(news) }
}
