//! What control measures. Label values come from closed sets; no run, repository or ref is ever one.

use std::time::Duration;

use metrics::{Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};

use crate::github::{OUTCOMES, SCOPES};
use crate::limit::Limit;
use crate::push::Outcome;
use crate::run::Identity;
use crate::trust::Side;

const QUESTIONS: &str = "gitdoor_control_questions_total";
const QUESTION_SECONDS: &str = "gitdoor_control_question_seconds";
const SESSIONS: &str = "gitdoor_control_sessions";
const REQUESTS: &str = "gitdoor_control_requests";
const LEASES: &str = "gitdoor_control_push_leases";
const TAKEN: &str = "gitdoor_control_pushes_taken_total";
const PUSHES: &str = "gitdoor_control_pushes_total";
const REVOCATIONS: &str = "gitdoor_control_revocations_total";
const LIVE_RUNS: &str = "gitdoor_control_live_runs";
const RUN_CALLS: &str = "gitdoor_control_run_calls_total";
const TOKEN_CALLS: &str = "gitdoor_control_token_calls_total";
const LIMITED: &str = "gitdoor_control_limited_total";
const SERVING: &str = "gitdoor_control_serving";
const STORE_SECONDS: &str = "gitdoor_control_store_operation_seconds";
const STORE_FAILURES: &str = "gitdoor_control_store_failures_total";
const PRUNED: &str = "gitdoor_control_pruned_rows_total";
const MINTS: &str = "gitdoor_control_mints_total";
const TOKEN_CACHE_HITS: &str = "gitdoor_control_token_cache_hits_total";
const HANDSHAKES: &str = "gitdoor_control_tls_handshakes_refused_total";
const CALLS_REFUSED: &str = "gitdoor_control_calls_refused_total";
const CERTIFICATE_EXPIRY: &str = "gitdoor_control_certificate_expiry_timestamp_seconds";
const CERTIFICATE_RELOADS: &str = "gitdoor_control_certificate_reloads_total";

/// From a look-up in memory to a mint at a slow forge.
pub(crate) const SECONDS: &[f64] =
    &[0.000_01, 0.000_1, 0.000_5, 0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

/// Says what each metric is.
pub fn describe() {
    describe_counter!(QUESTIONS, Unit::Count, "Questions of data planes, by what was asked and the verdict");
    describe_histogram!(QUESTION_SECONDS, Unit::Seconds, "Time to answer a question, by what was asked");
    describe_gauge!(SESSIONS, Unit::Count, "Open sessions of data planes");
    describe_gauge!(REQUESTS, Unit::Count, "Requests of runs under way that were permitted here");
    describe_gauge!(LEASES, Unit::Count, "Pushes in progress");
    describe_counter!(TAKEN, Unit::Count, "Pushes taken over from another control, by how");
    describe_counter!(PUSHES, Unit::Count, "Pushes recorded in the ledger, by outcome");
    describe_counter!(REVOCATIONS, Unit::Count, "Ends of runs told to sessions, by reason");
    describe_gauge!(LIVE_RUNS, Unit::Count, "Live runs, by identity and whether they are bound");
    describe_counter!(RUN_CALLS, Unit::Count, "Calls of Runs, by call and status");
    describe_counter!(TOKEN_CALLS, Unit::Count, "Calls of Tokens, by call and status");
    describe_counter!(LIMITED, Unit::Count, "What was refused or cut, by listener and limit");
    describe_gauge!(SERVING, Unit::Count, "1 while gRPC's health says that control serves");
    describe_histogram!(STORE_SECONDS, Unit::Seconds, "Time of a store operation");
    describe_counter!(STORE_FAILURES, Unit::Count, "Store operations that failed");
    describe_counter!(PRUNED, Unit::Count, "Rows removed because they are older than is kept");
    describe_counter!(MINTS, Unit::Count, "Installation tokens asked for, by scope and outcome");
    describe_counter!(TOKEN_CACHE_HITS, Unit::Count, "Installation tokens that were there already, by scope");
    describe_counter!(HANDSHAKES, Unit::Count, "TLS handshakes that were refused, by listener and kind");
    describe_counter!(CALLS_REFUSED, Unit::Count, "Calls refused by the certificate's role, by listener and role");
    describe_gauge!(CERTIFICATE_EXPIRY, Unit::Seconds, "When a listener's certificate ends, since 1970");
    describe_counter!(
        CERTIFICATE_RELOADS,
        Unit::Count,
        "Changes of a listener's files, by whether they are in use"
    );
}

/// A question was answered; `verdict` is `permitted` or the code of a reason.
pub(crate) fn question(kind: &'static str, verdict: &'static str, took: Duration) {
    counter!(QUESTIONS, "question" => kind, "verdict" => verdict).increment(1);
    histogram!(QUESTION_SECONDS, "question" => kind).record(took);
}

/// A session opened (1) or ended (-1).
pub(crate) fn sessions(change: f64) {
    gauge!(SESSIONS).increment(change);
}

/// So many requests of runs are under way.
pub(crate) fn requests(count: u32) {
    gauge!(REQUESTS).set(count);
}

/// So many pushes are in progress.
pub(crate) fn leases(count: usize) {
    gauge!(LEASES).set(u32::try_from(count).unwrap_or(u32::MAX));
}

/// How a push of another control became this one's.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Taken {
    /// Its data plane renewed its lease here.
    Renewed,
    /// Its control has ended.
    Claimed,
}

/// Pushes were taken over from another control.
pub(crate) fn taken(how: Taken, pushes: u64) {
    let how = match how {
        Taken::Renewed => "renewed",
        Taken::Claimed => "claimed",
    };
    counter!(TAKEN, "how" => how).increment(pushes);
}

/// A push was recorded.
pub(crate) fn push(outcome: Outcome) {
    counter!(PUSHES, "outcome" => outcome.as_str()).increment(1);
}

/// The end of a run was told.
pub(crate) fn revocation(reason: &'static str) {
    counter!(REVOCATIONS, "reason" => reason).increment(1);
}

/// So many runs of a kind live.
pub(crate) fn live_runs(identity: Identity, bound: bool, count: u32) {
    let bound = if bound { "yes" } else { "no" };
    gauge!(LIVE_RUNS, "identity" => identity.as_str(), "bound" => bound).set(count);
}

/// A call of Runs was answered.
pub(crate) fn run_call(call: &'static str, status: &'static str) {
    counter!(RUN_CALLS, "call" => call, "status" => status).increment(1);
}

/// A call of Tokens was answered.
pub(crate) fn token_call(call: &'static str, status: &'static str) {
    counter!(TOKEN_CALLS, "call" => call, "status" => status).increment(1);
}

/// A connection, a call or a question was refused because there are too many, or cut because it took too long.
pub(crate) fn limited(listener: &'static str, limit: Limit) {
    counter!(LIMITED, "listener" => listener, "limit" => limit.as_str()).increment(1);
}

/// Whether control serves, as its health says.
pub(crate) fn serving(serving: bool) {
    gauge!(SERVING).set(u8::from(serving));
}

/// A store operation ended.
pub(crate) fn store_operation(operation: &'static str, good: bool, took: Duration) {
    histogram!(STORE_SECONDS, "operation" => operation).record(took);
    counter!(STORE_FAILURES, "operation" => operation).increment(u64::from(!good));
}

/// Rows were pruned.
pub(crate) fn pruned(rows: u32) {
    counter!(PRUNED).increment(rows.into());
}

/// An installation token was asked for.
pub(crate) fn mint(scope: &'static str, outcome: &'static str) {
    counter!(MINTS, "scope" => scope, "outcome" => outcome).increment(1);
}

/// An installation token was there already.
pub(crate) fn token_cache_hit(scope: &'static str) {
    counter!(TOKEN_CACHE_HITS, "scope" => scope).increment(1);
}

/// A TLS handshake was refused.
pub(crate) fn handshake_refused(listener: &'static str, kind: &'static str) {
    counter!(HANDSHAKES, "listener" => listener, "kind" => kind).increment(1);
}

/// A call was refused: the certificate has not the role.
pub(crate) fn call_refused(listener: &'static str, role: &'static str) {
    counter!(CALLS_REFUSED, "listener" => listener, "role" => role).increment(1);
}

/// Lets what is rare be there as 0 from the start: of a counter that begins with 1, no increase is ever seen.
pub(crate) fn start() {
    for outcome in Outcome::ALL {
        counter!(PUSHES, "outcome" => outcome.as_str()).increment(0);
    }
    taken(Taken::Renewed, 0);
    taken(Taken::Claimed, 0);
    for listener in [Side::Runs, Side::Gate] {
        for limit in Limit::ALL {
            counter!(LIMITED, "listener" => listener.as_str(), "limit" => limit.as_str()).increment(0);
        }
    }
    for scope in SCOPES {
        for outcome in OUTCOMES {
            counter!(MINTS, "scope" => scope, "outcome" => outcome).increment(0);
        }
    }
}

/// A listener has a certificate whose files may change.
pub(crate) fn certificate_reloads(listener: &'static str) {
    for outcome in ["replaced", "kept"] {
        counter!(CERTIFICATE_RELOADS, "listener" => listener, "outcome" => outcome).increment(0);
    }
}

/// A listener's certificate ends then, since 1970.
pub(crate) fn certificate_expiry(listener: &'static str, ends: Duration) {
    gauge!(CERTIFICATE_EXPIRY, "listener" => listener).set(ends.as_secs_f64());
}

/// A listener's files changed.
pub(crate) fn certificate_reload(listener: &'static str, outcome: &'static str) {
    counter!(CERTIFICATE_RELOADS, "listener" => listener, "outcome" => outcome).increment(1);
}
