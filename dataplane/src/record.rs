//! What is kept of a request: the only file of a request's path that logs or counts.
//!
//! Steps add facts; the record closes when its last holder lets go, which is the end of the answer's body (or of the
//! push, where that outlives it), so bytes and interruptions are in it. One `info` event a request.

mod interruption;

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gitdoor_proto::{RepositoryName, RunId};
use http::StatusCode;

use crate::api::json::Stopped;
use crate::gate::{Context, Place};
use crate::git::receive_pack::{Capabilities, Command};
use crate::metrics::{self, Credential};
use crate::origin::Origin;
use crate::route::Route;

pub use interruption::Interruption;

/// Most refs that one event names.
const REFS_LOGGED: usize = 16;
/// Most characters of a client's own text in an event.
const TEXT_LOGGED: usize = 120;

/// A handle to one request's record; clones are of the same record.
#[derive(Clone)]
pub struct Record(Arc<Entry>);

struct Entry {
    context: Context,
    origin: Origin,
    began: Instant,
    request_bytes: AtomicU64,
    response_bytes: AtomicU64,
    drained_bytes: AtomicU64,
    facts: Mutex<Facts>,
}

#[derive(Default)]
struct Facts {
    method: String,
    client_request_id: Option<String>,
    route: Option<Route>,
    run: Option<RunId>,
    agent: Option<String>,
    refs: Option<String>,
    path: Option<String>,
    status: Option<StatusCode>,
    reason: Option<&'static str>,
    upstream_status: Option<StatusCode>,
    upstream_first_byte: Option<Duration>,
    gate: Option<Duration>,
    outcome: Option<&'static str>,
    interruption: Option<Interruption>,
    place: Option<Place>,
    credential: Option<Credential>,
}

impl Record {
    /// Opens a record, with a request id made here.
    #[must_use]
    pub fn open(method: &http::Method, client_request_id: Option<&str>, origin: Origin) -> Self {
        metrics::streams(1.0);
        let facts = Facts {
            method: printable(method.as_str()),
            client_request_id: client_request_id.map(printable),
            ..Facts::default()
        };
        Self(Arc::new(Entry {
            context: Context { request_id: request_id(), trace_parent: origin.trace_parent },
            origin,
            began: Instant::now(),
            request_bytes: AtomicU64::new(0),
            response_bytes: AtomicU64::new(0),
            drained_bytes: AtomicU64::new(0),
            facts: Mutex::new(facts),
        }))
    }

    /// The request id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.0.context.request_id
    }

    /// How the request is named to control.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.0.context
    }

    /// The request's route.
    pub fn route(&self, route: &Route) {
        self.facts().route = Some(route.clone());
    }

    /// The run that the bearer claims.
    pub fn run(&self, run: &RunId) {
        self.facts().run = Some(run.clone());
    }

    /// The commands of a push.
    pub fn push(&self, commands: &[Command], capabilities: &Capabilities) {
        let mut refs = String::new();
        for command in commands.iter().take(REFS_LOGGED) {
            let separator = if refs.is_empty() { "" } else { " " };
            let name = command.ref_name.get(..TEXT_LOGGED).unwrap_or(&command.ref_name);
            let _ = write!(refs, "{separator}{}", name.escape_ascii());
        }
        if commands.len() > REFS_LOGGED {
            let _ = write!(refs, " and {} more", commands.len() - REFS_LOGGED);
        }
        let mut facts = self.facts();
        facts.refs = Some(refs);
        facts.agent.clone_from(&capabilities.agent);
    }

    /// What was asked of the API. The query stays out: anything may stand there.
    pub fn path(&self, path: &str) {
        self.facts().path = Some(printable(path));
    }

    /// The request's place at control, which is given back when the record closes. The one before it is given back now.
    pub fn hold(&self, place: Option<Place>) {
        self.facts().place = place;
    }

    /// How long control took to answer.
    pub fn gate(&self, time: Duration) {
        self.facts().gate = Some(time);
    }

    /// The upstream's status, and the time to it.
    pub fn upstream(&self, status: StatusCode) {
        let time = self.0.began.elapsed();
        let mut facts = self.facts();
        facts.upstream_status = Some(status);
        facts.upstream_first_byte.get_or_insert(time);
    }

    /// The status that the client gets.
    pub fn status(&self, status: StatusCode) {
        self.facts().status = Some(status);
    }

    /// The request was refused.
    pub fn refused(&self, code: &'static str) {
        if code == Interruption::TokenInAnswer.as_str() {
            self.credential(Credential::OwnToken);
        }
        self.facts().reason = Some(code);
    }

    /// What became of a push at the upstream.
    pub fn outcome(&self, outcome: &'static str) {
        self.facts().outcome = Some(outcome);
    }

    /// Something broke after the head; the first such thing is what counts.
    pub fn interrupted(&self, why: Interruption) {
        if why == Interruption::TokenInAnswer {
            self.credential(Credential::OwnToken);
        }
        self.facts().interruption.get_or_insert(why);
    }

    /// Credentials of the answer did not pass. The forge writes them into many.
    pub fn stopped(&self, stopped: Stopped) {
        metrics::credentials(Credential::CloneToken, stopped.clone_tokens);
        metrics::credentials(Credential::DownloadUrl, stopped.download_urls);
    }

    /// Something in the shape of a token passed.
    pub fn saw_token_shape(&self) {
        self.credential(Credential::TokenShaped);
    }

    /// A credential that has no place in an answer. A push is both interrupted and refused for one; it counts once.
    fn credential(&self, credential: Credential) {
        if self.facts().credential.replace(credential) != Some(credential) {
            metrics::credentials(credential, 1);
        }
    }

    /// Bytes of the request's body came, decoded.
    pub fn received(&self, bytes: usize) {
        self.0.request_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Bytes of the request's body so far.
    #[must_use]
    pub fn request_bytes(&self) -> u64 {
        self.0.request_bytes.load(Ordering::Relaxed)
    }

    /// Bytes of the answer's body went.
    pub fn sent(&self, bytes: usize) {
        self.0.response_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Bytes of a refused request were thrown away.
    pub fn drained(&self, bytes: u64) {
        self.0.drained_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    fn facts(&self) -> MutexGuard<'_, Facts> {
        self.0.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        let facts = std::mem::take(self.facts.get_mut().unwrap_or_else(PoisonError::into_inner));
        let request_bytes = self.request_bytes.load(Ordering::Relaxed);
        let response_bytes = self.response_bytes.load(Ordering::Relaxed);
        let drained_bytes = self.drained_bytes.load(Ordering::Relaxed);
        let elapsed = self.began.elapsed();
        // No status: the client left before there was one.
        let interruption = match facts.status {
            None => Some(facts.interruption.unwrap_or(Interruption::ClientLeft)),
            Some(_) => facts.interruption,
        };
        let route = facts.route.as_ref().map_or("none", Route::as_str);
        let trace = self.origin.trace_parent;
        metrics::request(&metrics::Request {
            route,
            status: facts.status,
            reason: facts.reason,
            interruption,
            outcome: facts.outcome,
            request_bytes,
            response_bytes,
            drained_bytes,
            elapsed,
            gate: facts.gate,
            upstream_first_byte: facts.upstream_first_byte,
        });
        tracing::info!(
            request_id = self.context.request_id,
            client_request_id = facts.client_request_id,
            trace_id = trace.map(|trace| trace.trace_id()),
            parent_id = trace.map(|trace| trace.parent_id()),
            client = self.origin.client.map(|client| client.to_string()),
            method = facts.method,
            route,
            run = facts.run.as_ref().map(RunId::as_str),
            repository = facts.route.as_ref().and_then(Route::repository).map(RepositoryName::to_string),
            refs = facts.refs,
            path = facts.path,
            agent = facts.agent,
            status = facts.status.map(|status| status.as_u16()),
            reason = facts.reason,
            upstream_status = facts.upstream_status.map(|status| status.as_u16()),
            outcome = facts.outcome,
            interruption = interruption.map(Interruption::as_str),
            credential = facts.credential.map(Credential::as_str),
            request_bytes,
            response_bytes,
            drained_bytes,
            gate_us = facts.gate.map(micros),
            first_byte_us = facts.upstream_first_byte.map(micros),
            elapsed_us = micros(elapsed),
            "request"
        );
        // Last: where no request is under way any more, each was counted and told of.
        metrics::streams(-1.0);
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// 16 random hex digits. Without randomness a request still has an id; it is a name, not a secret.
fn request_id() -> String {
    let random = getrandom::u64().unwrap_or_default();
    format!("{random:016x}")
}

/// A client's own text, bounded and in one line.
fn printable(text: &str) -> String {
    text.chars().take(TEXT_LOGGED).map(|c| if c.is_ascii_graphic() { c } else { '_' }).collect()
}
