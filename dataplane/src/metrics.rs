//! The data plane's metrics: names, descriptions and the one place where a finished request is counted.
//!
//! Labels come from closed enums; a run, a repository or a ref is never one.

mod credential;

use std::time::Duration;

use http::{HeaderMap, StatusCode};
use metrics::{Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};

use crate::record::Interruption;

pub use credential::Credential;

const REQUESTS: &str = "gitdoor_dataplane_requests_total";
const REFUSALS: &str = "gitdoor_dataplane_refusals_total";
const INTERRUPTIONS: &str = "gitdoor_dataplane_interruptions_total";
const PUSHES: &str = "gitdoor_dataplane_pushes_total";
const DRAINED: &str = "gitdoor_dataplane_drained_bytes_total";
const STREAMS: &str = "gitdoor_dataplane_streams";
const REQUEST_BYTES: &str = "gitdoor_dataplane_request_body_bytes";
const RESPONSE_BYTES: &str = "gitdoor_dataplane_response_body_bytes";
const DURATION: &str = "gitdoor_dataplane_request_seconds";
const GATE: &str = "gitdoor_dataplane_gate_seconds";
const SESSIONS: &str = "gitdoor_dataplane_control_sessions";
const ASKED_AGAIN: &str = "gitdoor_dataplane_questions_asked_again_total";
const RATE_LIMIT: &str = "gitdoor_dataplane_forge_rate_limit";
const RATE_REMAINING: &str = "gitdoor_dataplane_forge_rate_limit_remaining";
const RATE_RESET: &str = "gitdoor_dataplane_forge_rate_limit_reset_timestamp_seconds";
const CREDENTIALS: &str = "gitdoor_dataplane_credentials_in_answers_total";
const FIRST_BYTE: &str = "gitdoor_dataplane_upstream_first_byte_seconds";
const CONNECTIONS: &str = "gitdoor_dataplane_upstream_connections";
const CERTIFICATE_EXPIRY: &str = "gitdoor_dataplane_certificate_expiry_timestamp_seconds";
const CERTIFICATE_RELOADS: &str = "gitdoor_dataplane_certificate_reloads_total";

/// 1 KiB to 4 GiB, among them what platforms have as their ceiling for request bodies: 100, 200 and 500 MiB.
const SIZES: &[f64] = &[
    1024.0,
    4096.0,
    16384.0,
    65_536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    33_554_432.0,
    67_108_864.0,
    104_857_600.0,
    134_217_728.0,
    209_715_200.0,
    268_435_456.0,
    524_288_000.0,
    536_870_912.0,
    1_073_741_824.0,
    2_147_483_648.0,
    4_294_967_296.0,
];
/// A millisecond to ten minutes.
const TIMES: &[f64] = &[0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 60.0, 180.0, 600.0];
/// A question to control costs tens of microseconds; its deadline is two seconds.
const GATE_TIMES: &[f64] = &[0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 2.0];

/// Installs the recorder of this process.
pub fn install() -> Result<PrometheusHandle, BuildError> {
    let handle = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_body_bytes".into()), SIZES)?
        .set_buckets_for_metric(Matcher::Full(GATE.into()), GATE_TIMES)?
        .set_buckets_for_metric(Matcher::Suffix("_seconds".into()), TIMES)?
        .install_recorder()?;
    describe();
    start();
    Ok(handle)
}

/// Lets what is rare be there as 0 from the start: of a counter that begins with 1, no increase is ever seen.
fn start() {
    for state in SessionState::ALL {
        sessions(state, 0.0);
    }
    for pool in [Pool::Shared, Pool::Push, Pool::Storage] {
        connections(pool, 0.0);
    }
    for why in Again::ALL {
        counter!(ASKED_AGAIN, "why" => why.as_str()).increment(0);
    }
    for credential in Credential::ALL {
        credentials(credential, 0);
    }
    streams(0.0);
    counter!(DRAINED).increment(0);
}

fn describe() {
    describe_counter!(REQUESTS, "Requests that ended, by route and the status that the client got");
    describe_counter!(REFUSALS, "Requests that the door refused, by route and reason");
    describe_counter!(INTERRUPTIONS, "Requests that broke after their head, by route and kind");
    describe_counter!(PUSHES, "Pushes that were let through, by what the upstream made of them");
    describe_counter!(DRAINED, Unit::Bytes, "Bytes of refused requests that were read and thrown away");
    describe_gauge!(STREAMS, "Requests under way");
    describe_gauge!(SESSIONS, "Sessions with control, one for each address and serving thread, by state");
    describe_counter!(ASKED_AGAIN, "Questions that were put to another session too, by why");
    describe_gauge!(RATE_LIMIT, "API requests that the installation has in the forge's window, by resource");
    describe_gauge!(RATE_REMAINING, "API requests that are left of them, as the forge said last, by resource");
    describe_gauge!(RATE_RESET, Unit::Seconds, "When that window of the forge ends, since 1970, by resource");
    describe_counter!(CREDENTIALS, "Credentials that were in the forge's answers, by kind");
    describe_histogram!(REQUEST_BYTES, Unit::Bytes, "Size of request bodies, decoded, by route");
    describe_histogram!(RESPONSE_BYTES, Unit::Bytes, "Size of answer bodies, by route");
    describe_histogram!(DURATION, Unit::Seconds, "Time from a request's head to the end of its answer, by route");
    describe_histogram!(GATE, Unit::Seconds, "Time that control took to answer a request's question");
    describe_histogram!(
        FIRST_BYTE,
        Unit::Seconds,
        "Time from a request's head to the head of the upstream's answer"
    );
    describe_gauge!(CONNECTIONS, "Open connections to the upstream, idle ones too, by pool");
    describe_gauge!(CERTIFICATE_EXPIRY, Unit::Seconds, "When a certificate ends, since 1970");
    describe_counter!(CERTIFICATE_RELOADS, "Changes of a certificate's files, by whether they are in use");
}

/// Adds to the requests under way.
pub fn streams(change: f64) {
    gauge!(STREAMS).increment(change);
}

/// What a session with control is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionState {
    /// It takes questions.
    Live,
    /// It has left a question unanswered for too long, and is passed over while there is another.
    Silent,
    /// Control said last that its store does not answer; it is passed over while there is another.
    Storeless,
    /// There is none with an address of control's.
    Lost,
}

impl SessionState {
    const ALL: [Self; 4] = [Self::Live, Self::Silent, Self::Storeless, Self::Lost];

    fn as_str(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Silent => "silent",
            Self::Storeless => "storeless",
            Self::Lost => "lost",
        }
    }
}

/// Counts a session in its state for as long as this is kept.
pub struct Counted(SessionState);

impl Counted {
    /// One more in this state.
    #[must_use]
    pub fn new(state: SessionState) -> Self {
        sessions(state, 1.0);
        Self(state)
    }

    /// Its state is now this.
    pub fn turn_to(&mut self, state: SessionState) {
        *self = Self::new(state);
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        sessions(self.0, -1.0);
    }
}

fn sessions(state: SessionState, change: f64) {
    gauge!(SESSIONS, "state" => state.as_str()).increment(change);
}

/// What a connection to the upstream is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pool {
    /// Fetches, discoveries and the API, one after the other.
    Shared,
    /// One push.
    Push,
    /// Files of the storage.
    Storage,
}

impl Pool {
    fn as_str(self) -> &'static str {
        match self {
            Self::Shared => "shared",
            Self::Push => "push",
            Self::Storage => "storage",
        }
    }
}

/// Counts a connection to the upstream for as long as this is kept.
pub struct UpstreamConnection(Pool);

impl UpstreamConnection {
    /// One more.
    #[must_use]
    pub fn open(pool: Pool) -> Self {
        connections(pool, 1.0);
        Self(pool)
    }
}

impl Drop for UpstreamConnection {
    fn drop(&mut self) {
        connections(self.0, -1.0);
    }
}

fn connections(pool: Pool, change: f64) {
    gauge!(CONNECTIONS, "pool" => pool.as_str()).increment(change);
}

/// Why a question is put to another session too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Again {
    /// The session that had it was lost.
    Lost,
    /// The session that has it does not answer.
    Silent,
    /// The control that had it cannot reach its store.
    Storeless,
}

impl Again {
    const ALL: [Self; 3] = [Self::Lost, Self::Silent, Self::Storeless];

    fn as_str(self) -> &'static str {
        match self {
            Self::Lost => "lost",
            Self::Silent => "silent",
            Self::Storeless => "storeless",
        }
    }
}

/// Counts a question that is put to another session too.
pub fn asked_again(why: Again) {
    counter!(ASKED_AGAIN, "why" => why.as_str()).increment(1);
}

/// Counts credentials that were in an answer.
pub fn credentials(credential: Credential, count: u64) {
    counter!(CREDENTIALS, "kind" => credential.as_str()).increment(count);
}

/// A certificate ends then, since 1970.
pub(crate) fn certificate_expiry(certificate: &'static str, ends: Duration) {
    gauge!(CERTIFICATE_EXPIRY, "certificate" => certificate).set(ends.as_secs_f64());
}

/// There is a certificate whose files may change.
pub(crate) fn certificate_reloads(certificate: &'static str) {
    for outcome in ["replaced", "kept"] {
        counter!(CERTIFICATE_RELOADS, "certificate" => certificate, "outcome" => outcome).increment(0);
    }
}

/// A certificate's files changed.
pub(crate) fn certificate_reload(certificate: &'static str, outcome: &'static str) {
    counter!(CERTIFICATE_RELOADS, "certificate" => certificate, "outcome" => outcome).increment(1);
}

/// A finished request's facts.
pub struct Request {
    /// The route's label.
    pub route: &'static str,
    /// The client's status; none: it left before.
    pub status: Option<StatusCode>,
    /// Why the door refused.
    pub reason: Option<&'static str>,
    /// What broke.
    pub interruption: Option<Interruption>,
    /// What the upstream made of a push.
    pub outcome: Option<&'static str>,
    /// Of the request's body, decoded.
    pub request_bytes: u64,
    /// Of the answer's body.
    pub response_bytes: u64,
    /// Thrown away.
    pub drained_bytes: u64,
    /// From head to end.
    pub elapsed: Duration,
    /// In control.
    pub gate: Option<Duration>,
    /// To the upstream's head.
    pub upstream_first_byte: Option<Duration>,
}

/// Counts a finished request.
pub fn request(request: &Request) {
    let route = request.route;
    let status = request.status.map_or_else(|| "none".to_owned(), |status| status.as_str().to_owned());
    counter!(REQUESTS, "route" => route, "status" => status).increment(1);
    if let Some(reason) = request.reason {
        counter!(REFUSALS, "route" => route, "reason" => reason).increment(1);
    }
    if let Some(interruption) = request.interruption {
        counter!(INTERRUPTIONS, "route" => route, "kind" => interruption.as_str()).increment(1);
    }
    if let Some(outcome) = request.outcome {
        counter!(PUSHES, "outcome" => outcome).increment(1);
    }
    counter!(DRAINED).increment(request.drained_bytes);
    // What the client sent: whatever stands in front of the door has let all of it through.
    let sent = request.request_bytes.saturating_add(request.drained_bytes);
    histogram!(REQUEST_BYTES, "route" => route).record(as_f64(sent));
    histogram!(RESPONSE_BYTES, "route" => route).record(as_f64(request.response_bytes));
    histogram!(DURATION, "route" => route).record(request.elapsed);
    if let Some(gate) = request.gate {
        histogram!(GATE).record(gate);
    }
    if let Some(first_byte) = request.upstream_first_byte {
        histogram!(FIRST_BYTE, "route" => route).record(first_byte);
    }
}

#[expect(clippy::cast_precision_loss, reason = "a histogram's sum may round above 2^53 bytes")]
fn as_f64(bytes: u64) -> f64 {
    bytes as f64
}

/// What the API's limits are counted by. <https://docs.github.com/en/rest/rate-limit>
const RESOURCES: [&str; 6] = ["core", "search", "graphql", "code_search", "dependency_snapshots", "source_import"];

/// Takes in what an answer of the API tells of the installation's limit, which all runs share.
pub fn rate_limit(headers: &HeaderMap) {
    let text = |name: &str| headers.get(name)?.to_str().ok();
    let number = |name: &str| text(name)?.parse::<u32>().ok().map(f64::from);
    let Some(resource) = text("x-ratelimit-resource") else { return };
    let resource = RESOURCES.into_iter().find(|known| *known == resource).unwrap_or("other");
    if let Some(limit) = number("x-ratelimit-limit") {
        gauge!(RATE_LIMIT, "resource" => resource).set(limit);
    }
    if let Some(remaining) = number("x-ratelimit-remaining") {
        gauge!(RATE_REMAINING, "resource" => resource).set(remaining);
    }
    // After this nobody knows what is left until the forge answers again.
    if let Some(reset) = number("x-ratelimit-reset") {
        gauge!(RATE_RESET, "resource" => resource).set(reset);
    }
}
