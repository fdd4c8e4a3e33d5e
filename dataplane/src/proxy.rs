//! The walk of a request, from its head to the head of its answer.

mod api;
mod carry;
mod discovery;
mod fetch;
mod push;

use std::sync::Arc;

use bytes::Bytes;
use gitdoor_proto::permit::Grant;
use gitdoor_proto::{Bearer, Permit, RepositoryName, Token, v1};
use http::header::{EXPECT, WWW_AUTHENTICATE};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use crate::answer::{self, Language, REQUEST_ID, Refused};
use crate::api::links::Bases;
use crate::body::{self, Answer, Body, Drink, Inbound, RelayLimits, pipe};
use crate::credential;
use crate::gate::{Gate, GateError, Granted, Term};
use crate::headers::{self, BadFraming};
use crate::host::PublicHosts;
use crate::intent::{self, Intent};
use crate::origin::{Origin, Peer};
use crate::record::Record;
use crate::refusal::Refusal;
use crate::route::Route;
use crate::upstream::Upstream;

/// Bounds of a push.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Most bytes of a push, decoded.
    pub push_bytes: u64,
    /// Most bytes of a refused request that are waited for.
    pub drain_bytes: u64,
}

/// What one runtime serves requests with.
pub struct Proxy {
    /// The names that this door answers to.
    pub hosts: PublicHosts,
    /// The way to control.
    pub gate: Gate,
    /// The way to the forge.
    pub upstream: Arc<Upstream>,
    /// Where the API's URLs begin.
    pub bases: Bases,
    /// Bounds of a push.
    pub limits: Limits,
    /// Pushes that outlive their request, for the drain to wait for.
    pub tasks: TaskTracker,
}

/// One request on its walk.
struct Exchange {
    head: Parts,
    inbound: Inbound,
    language: Language,
    record: Record,
}

/// What control allowed one request, and what ends it.
struct Allowed {
    granted: Granted,
    term: Arc<Term>,
}

impl Proxy {
    /// Answers one request, whose raw head was judged, on a connection with this peer.
    pub async fn serve(
        &self,
        request: Request<Incoming>,
        raw: Result<(), BadFraming>,
        peer: Peer,
    ) -> Response<Body> {
        let client_id = request.headers().get(REQUEST_ID).and_then(|id| id.to_str().ok());
        let record = Record::open(request.method(), client_id, Origin::of(peer, request.headers()));
        let framing = raw.and_then(|()| headers::check_framing(&request));
        let host = self.hosts.check(&request);
        let (head, incoming) = request.into_parts();
        let (version, expects) = (head.version, head.headers.contains_key(EXPECT));
        let inbound = Inbound::new(incoming, version, self.upstream.config().idle_timeout, record.clone());
        let language = Language::guess(head.uri.path(), &head.headers);
        let mut exchange = Exchange { head, inbound, language, record };
        let entered = framing.map_err(Refusal::from).and(host);
        let walked = match entered {
            Ok(()) => self.walk(&mut exchange).await,
            Err(refusal) => Err(refusal),
        };
        match walked {
            Ok(answer) => answer,
            Err(refusal) => {
                let Exchange { inbound, language, record, .. } = exchange;
                let refused = Refused { refusal, language, inbound, record, version, expects };
                answer::refuse(refused, self.limits.drain_bytes).await
            }
        }
    }

    /// The walk: route, credential, intent, authorize, forward. The framing and the host were checked before.
    async fn walk(&self, exchange: &mut Exchange) -> Result<Response<Body>, Refusal> {
        let route = Route::of(&exchange.head.method, &exchange.head.uri)?;
        exchange.route(&route);
        let bearer = credential::bearer(&exchange.head.headers)?;
        exchange.record.run(bearer.run_id());
        exchange.keep_bearer(&bearer)?;
        let guard = self.gate.streams().enter(bearer.run_id());
        if exchange.head.headers.contains_key(EXPECT) {
            // To read the body is to ask for it, which only a live run may have.
            self.gate.authorize(&bearer, exchange.record.context(), intent::verification()).await?;
        }
        let intent = exchange.intent(route).await?;
        let began = Instant::now();
        let verdict = self.grant(exchange, &bearer, intent.question()).await;
        exchange.record.gate(began.elapsed());
        let granted = verdict?;
        let term = Arc::new(Term::new(&self.gate, &bearer, guard, &granted));
        let allowed = Allowed { granted, term: Arc::clone(&term) };
        match intent {
            Intent::Unserved(refusal) => Err(refusal),
            Intent::Discover(service, name) => {
                until(&term, self.discover(exchange, &bearer, allowed, service, name)).await
            }
            Intent::Fetch(_) => self.fetch(exchange, allowed).await,
            Intent::Probe(_, body) => until(&term, self.probe(exchange, allowed, body)).await,
            // It ends with its run by itself, and in a report.
            Intent::Push(push) => self.push(exchange, allowed, push).await,
            Intent::Rest(target) => until(&term, self.rest(exchange, allowed, target)).await,
            Intent::Graphql => until(&term, self.graphql(exchange, allowed)).await,
            Intent::Describe => exchange.describe(&allowed.granted.permit),
        }
    }

    /// Asks control. The place that a permit takes is the record's, which lasts as long as the request has streams; one
    /// request has one.
    async fn grant(
        &self,
        exchange: &Exchange,
        bearer: &Bearer,
        question: v1::authorize_request::Intent,
    ) -> Result<Granted, Refusal> {
        exchange.record.hold(None);
        let mut granted = self.gate.authorize(bearer, exchange.record.context(), question).await?;
        exchange.record.hold(granted.place.take());
        Ok(granted)
    }
}

/// Goes on until the run ends: what has not been answered by then is refused.
async fn until<T>(term: &Term, forward: impl Future<Output = Result<T, Refusal>>) -> Result<T, Refusal> {
    tokio::select! {
        biased;
        why = term.ended() => Err(Refusal::Cut(why)),
        forwarded = forward => forwarded,
    }
}

impl Allowed {
    /// What was granted, and what ends this request's stream.
    fn split(self, upstream: &Upstream) -> (Granted, RelayLimits) {
        (self.granted, RelayLimits { term: self.term, idle: upstream.config().idle_timeout })
    }
}

impl Exchange {
    fn route(&mut self, route: &Route) {
        self.record.route(route);
        self.language = Language::of(route);
    }

    /// Reads what the request wants, and with it the language of its refusals.
    async fn intent(&mut self, route: Route) -> Result<Intent, Refusal> {
        let is_push = matches!(route, Route::Rpc(crate::route::Service::ReceivePack, _));
        if is_push && let Err(coding) = self.inbound.decode(&self.head.headers) {
            return Ok(Intent::Unserved(coding));
        }
        let intent = Intent::read(route, &mut self.inbound).await?;
        match &intent {
            Intent::Fetch(_) => self.language = Language::Fetch,
            Intent::Push(push) => {
                let section = &push.section;
                self.record.push(&section.commands, &section.capabilities);
                self.language = Language::Push {
                    capabilities: section.capabilities.clone(),
                    refs: section.commands.iter().map(|command| command.ref_name.clone()).collect(),
                };
            }
            Intent::Discover(..)
            | Intent::Probe(..)
            | Intent::Rest(_)
            | Intent::Graphql
            | Intent::Describe
            | Intent::Unserved(_) => {}
        }
        Ok(intent)
    }

    /// An answer's head, with the request id, and its body.
    fn respond(&self, status: StatusCode, headers: HeaderMap, body: Body) -> Response<Body> {
        let mut response = Response::new(body);
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        if let Ok(id) = HeaderValue::from_str(self.record.id()) {
            response.headers_mut().insert(REQUEST_ID, id);
        }
        if status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(WWW_AUTHENTICATE, answer::CHALLENGE);
        }
        self.record.status(status);
        response
    }

    /// An answer whose body is fed.
    fn respond_fed(&self, status: StatusCode, headers: HeaderMap, drink: Drink) -> Response<Body> {
        let body = Body::fed(drink, carry::length(&headers), self.record.clone());
        self.respond(status, headers, body)
    }
}

impl Proxy {
    /// Passes an answer down, as long as its run lives.
    fn pass(
        &self,
        exchange: &Exchange,
        allowed: Allowed,
        (status, headers): (StatusCode, HeaderMap),
        answer: Answer,
    ) -> Response<Body> {
        let bodyless = [StatusCode::NO_CONTENT, StatusCode::NOT_MODIFIED].contains(&status);
        if bodyless || exchange.head.method == Method::HEAD {
            return exchange.respond(status, headers, Body::full(Bytes::new(), exchange.record.clone()));
        }
        let (feed, drink) = pipe();
        let (_, limits) = allowed.split(&self.upstream);
        self.tasks.spawn(body::pass(answer, feed, limits, exchange.record.clone()));
        exchange.respond_fed(status, headers, drink)
    }
}

/// What a permit grants to forward: without it nothing goes up.
fn forwardable(permit: &Permit) -> Result<(&RepositoryName, &Token), Refusal> {
    match permit.grant() {
        Grant::Forward { repository, token, .. } => Ok((repository, token)),
        Grant::Verified | Grant::Described(_) | Grant::Api { .. } => Err(GateError::Unreadable.into()),
    }
}
