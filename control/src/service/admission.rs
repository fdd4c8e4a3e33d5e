//! Who comes in: every call of a listener takes a place or is refused at once, and ends within its time.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::{BoxFuture, ready};
use http::{HeaderMap, Request, Response};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};
use tonic::Status;
use tonic::body::Body;
use tower::{Layer, Service};

use super::held::Held;
use crate::limit::{self, Limit};
use crate::metrics;

/// Control ends a call so much earlier than its caller's time is over, lest the caller be gone when it is told.
const EARLIER: Duration = Duration::from_millis(2);

/// How long calls may take.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    /// Any call.
    pub call: Duration,
    /// A revocation.
    pub revocation: Duration,
}

impl Default for Times {
    fn default() -> Self {
        Self { call: limit::CALL_TIME, revocation: limit::REVOCATION_TIME }
    }
}

/// The places of a listener.
#[derive(Debug, Clone)]
pub struct Admission {
    listener: &'static str,
    times: Times,
    calls: Arc<Semaphore>,
    tokens: Arc<Semaphore>,
    revocations: Arc<Semaphore>,
    streams: Arc<Semaphore>,
    sessions: Arc<Semaphore>,
}

impl Admission {
    /// All the places of a listener, which is named so in metrics.
    #[must_use]
    pub fn new(listener: &'static str, times: Times) -> Self {
        let places = |count| Arc::new(Semaphore::new(count));
        Self {
            listener,
            times,
            calls: places(limit::CALLS),
            tokens: places(limit::TOKENS),
            revocations: places(limit::REVOCATIONS),
            streams: places(limit::STREAMS),
            sessions: places(limit::SESSIONS),
        }
    }

    fn enter(&self, kind: Kind) -> Result<Option<Place>, Status> {
        let (places, limit) = match kind {
            Kind::Call => (&self.calls, Limit::Calls),
            Kind::Tokens => (&self.tokens, Limit::Tokens),
            Kind::Revocation => (&self.revocations, Limit::Revocations),
            Kind::Watch | Kind::Reflection => (&self.streams, Limit::Streams),
            Kind::Session => (&self.sessions, Limit::Sessions),
            Kind::Probe => return Ok(None),
        };
        places.clone().try_acquire_owned().map(|place| Some(Place { _permit: Arc::new(place) })).map_err(|_full| {
            metrics::limited(self.listener, limit);
            Status::resource_exhausted(format!(
                "control has as many {} at once as it takes; ask again in a moment",
                limit.as_str()
            ))
        })
    }

    fn time(&self, kind: Kind, headers: &HeaderMap) -> Duration {
        let most = match kind {
            Kind::Revocation => self.times.revocation,
            Kind::Call | Kind::Tokens | Kind::Probe | Kind::Watch | Kind::Reflection | Kind::Session => {
                self.times.call
            }
        };
        asked(headers).map_or(most, |asked| most.min(asked.saturating_sub(EARLIER)))
    }

    fn late(&self, time: Duration) -> Status {
        metrics::limited(self.listener, Limit::Time);
        Status::deadline_exceeded(format!(
            "control did not end this call within {}; it may have been done all the same",
            humantime::format_duration(Duration::from_millis(u64::try_from(time.as_millis()).unwrap_or(u64::MAX)))
        ))
    }
}

/// A call's place, which is free again once nobody has a hold of it.
#[derive(Debug, Clone)]
pub(super) struct Place {
    _permit: Arc<OwnedSemaphorePermit>,
}

/// What a call takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// An answer to a question.
    Call,
    /// A mirror's, which may wait for the forge.
    Tokens,
    /// The end of a run.
    Revocation,
    /// A look at the health, which tells whether control is alive when it is full, too: it takes no place.
    Probe,
    /// News of the health, as long as somebody listens.
    Watch,
    /// A conversation about what is served.
    Reflection,
    /// A session of a data plane.
    Session,
}

impl Kind {
    fn of(path: &str) -> Self {
        match path {
            "/gitdoor.v1.Runs/RevokeRun" => Self::Revocation,
            "/gitdoor.v1.Gate/Session" => Self::Session,
            "/grpc.health.v1.Health/Check" => Self::Probe,
            "/grpc.health.v1.Health/Watch" => Self::Watch,
            "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"
            | "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo" => Self::Reflection,
            path if path.starts_with("/gitdoor.v1.Tokens/") => Self::Tokens,
            _ => Self::Call,
        }
    }

    /// The answer with its place: until its head for what is one message, and to its end for a stream.
    fn answered(self, answer: Response<Body>, place: Option<Place>) -> Response<Body> {
        match self {
            // What is left is the client's to read, and one that does not must not keep others out.
            Self::Call | Self::Tokens | Self::Revocation | Self::Probe => answer,
            Self::Watch | Self::Session => answer.map(|body| Body::new(Held::new(body, place, None))),
            Self::Reflection => answer.map(|body| Body::new(Held::new(body, place, Some(limit::REFLECTION_TIME)))),
        }
    }
}

/// What the caller gives it, in the text of gRPC: up to eight digits and a unit. What is no such text is not heard.
///
/// <https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md#requests>
fn asked(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get("grpc-timeout")?.to_str().ok()?;
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.len() > 8 || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let count = digits.parse().ok()?;
    match unit {
        "H" => Some(Duration::from_secs(count * 3600)),
        "M" => Some(Duration::from_secs(count * 60)),
        "S" => Some(Duration::from_secs(count)),
        "m" => Some(Duration::from_millis(count)),
        "u" => Some(Duration::from_micros(count)),
        "n" => Some(Duration::from_nanos(count)),
        _ => None,
    }
}

impl<S> Layer<S> for Admission {
    type Service = Admitted<S>;

    fn layer(&self, inner: S) -> Admitted<S> {
        Admitted { inner, admission: self.clone() }
    }
}

/// A listener's services behind its places.
#[derive(Debug, Clone)]
pub struct Admitted<S> {
    inner: S,
    admission: Admission,
}

impl<S> Service<Request<Body>> for Admitted<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let kind = Kind::of(request.uri().path());
        let place = match self.admission.enter(kind) {
            Ok(place) => place,
            Err(full) => return Box::pin(ready(Ok(full.into_http()))),
        };
        if let (Kind::Revocation, Some(place)) = (kind, &place) {
            // It goes on without its caller, and has its place for as long.
            request.extensions_mut().insert(place.clone());
        }
        let time = self.admission.time(kind, request.headers());
        let until = Instant::now() + time;
        let (answer, admission) = (self.inner.call(request), self.admission.clone());
        Box::pin(async move {
            match timeout_at(until, answer).await {
                Ok(answer) => answer.map(|answer| kind.answered(answer, place)),
                Err(_elapsed) => Ok(admission.late(time).into_http()),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::timeout;
    use tower::ServiceExt as _;

    use super::*;

    fn request(path: &str, given: Option<&str>) -> Request<Body> {
        let mut request = Request::builder().uri(path);
        if let Some(given) = given {
            request = request.header("grpc-timeout", given);
        }
        request.body(Body::empty()).unwrap()
    }

    fn given(text: &str) -> Option<Duration> {
        asked(request("/", Some(text)).headers())
    }

    #[test]
    fn a_time_is_read_as_grpc_writes_it_and_what_is_none_is_not_heard() {
        let table = [("7H", 25_200_000), ("2M", 120_000), ("3S", 3000), ("40m", 40), ("5000u", 5), ("6000000n", 6)];
        for (text, milliseconds) in table {
            assert_eq!(given(text), Some(Duration::from_millis(milliseconds)), "{text}");
        }
        assert_eq!(given("99999999H"), Some(Duration::from_hours(99_999_999)));
        for text in ["", "S", "5", "5s", "-5S", "+5S", "5 S", "1.5S", "100000000S"] {
            assert_eq!(given(text), None, "{text}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_ends_within_the_shorter_of_its_callers_time_and_controls() {
        let never = tower::service_fn(|_: Request<Body>| std::future::pending());
        let control = Admission::new("runs", Times::default()).layer(never);
        let (get, revoke) = ("/gitdoor.v1.Runs/GetRun", "/gitdoor.v1.Runs/RevokeRun");
        for (path, given, milliseconds) in [
            (get, None, 10_000),
            (revoke, None, 15_000),
            (get, Some("30S"), 10_000),
            (get, Some("1S"), 998),
            (revoke, Some("1M"), 15_000),
            (get, Some("1u"), 0),
            (get, Some("soon"), 10_000),
        ] {
            let start = Instant::now();
            let answer = timeout(Duration::from_mins(1), control.clone().oneshot(request(path, given))).await;
            let status = Status::from_header_map(answer.unwrap().unwrap().headers()).unwrap();
            assert_eq!(status.code(), tonic::Code::DeadlineExceeded);
            let took = start.elapsed().as_millis();
            assert!((milliseconds..milliseconds + 3).contains(&took), "{path} {given:?}: {took}");
        }
    }
}
