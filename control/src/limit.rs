//! How much control takes at once, how large a message may be, and how long a call may take. Who comes when it is full
//! is told so at once: a queue would only make everybody late.

use std::time::Duration;

/// Handshakes of one listener at once. One more ends the oldest: to crowd out a client, which needs some milliseconds,
/// a stranger would have to open tens of thousands of connections a second.
pub const HANDSHAKES: usize = 256;
/// Connections of one listener at once that are past their handshake: four times the sessions there may be, and far
/// below the descriptors that a process usually has.
pub const CONNECTIONS: usize = 1024;
/// Time for the first bytes of HTTP/2, which a client sends at once, from the handshake or without TLS from the accept.
pub const SILENCE: Duration = Duration::from_secs(5);
/// Calls of one listener at once, but those that have places of their own. With the default of `--store-connections` as
/// many may wait for a store in PostgreSQL; with fewer connections it is the store that says that it is busy.
pub const CALLS: usize = 512;
/// Lists and shows in work at once. Each reads up to a thousand rows: more of them would keep the store's short
/// operations waiting.
pub const READS: usize = 8;
/// How long another list or show waits for one of these to end.
pub const READ_WAIT: Duration = Duration::from_secs(1);
/// Calls of Tokens at once. Each may wait for the forge: with places of their own they keep no run from being registered.
pub const TOKENS: usize = 128;
/// Revocations at once. They have places of their own, lest other calls keep the end of a run out; each may wait two
/// seconds for the leases of a push.
pub const REVOCATIONS: usize = 512;
/// Health watches and reflections of one listener at once: a few probes and a few people.
pub const STREAMS: usize = 64;
/// Sessions at once. A data plane has one for each core: enough for 32 machines of 8.
pub const SESSIONS: usize = 256;
/// Questions of one session that are worked on at once; a slow mint must not hold the others. More wait on the stream.
pub const QUESTIONS_PER_SESSION: usize = 512;
/// Questions of all sessions that are worked on at once: as many as may wait for a store. More would wait in vain.
pub const QUESTIONS: usize = 4096;
/// Streams of one connection at once. A client that wants more waits with them on its own side.
pub const STREAMS_PER_CONNECTION: u32 = 128;

/// Bytes of a question to Runs or Tokens. The largest that is legal is a registration with a hundred branches and five
/// hundred repositories, each with the longest name: 96 KiB.
pub const RUNS_MESSAGE_BYTES: usize = 128 << 10;
/// Bytes of a question to Gate. A push has 64 KiB of commands at most, which are 68 KiB here; the largest that is legal
/// is the report of a push of some 750 refs, each with 1000 bytes of the upstream's words. It ends the whole session
/// when one is larger, so that none that is legal may be.
pub const GATE_MESSAGE_BYTES: usize = 1 << 20;
/// Bytes of a probe, or of a question to reflection: a name.
pub const PROBE_BYTES: usize = 4 << 10;
/// Bytes of an answer: what clients of gRPC take unless they are told otherwise.
pub const ANSWER_BYTES: usize = 4 << 20;
/// Bytes of a request's headers; those of gRPC have some hundred.
pub const HEADER_BYTES: u32 = 16 << 10;

/// Longest time of a call, from its head: what a client is patient for. A request to the forge has nine seconds.
pub const CALL_TIME: Duration = Duration::from_secs(10);
/// Longest time of a revocation, which may wait two seconds for the leases of a push and more for its store. What is
/// under way then goes on without its caller.
pub const REVOCATION_TIME: Duration = Duration::from_secs(15);
/// Longest time of a conversation with reflection, so that none is left when control drains.
pub const REFLECTION_TIME: Duration = Duration::from_secs(5);

/// What there is too much of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Connections at once.
    Connections,
    /// Calls at once.
    Calls,
    /// Calls of Tokens at once.
    Tokens,
    /// Lists and shows at once.
    Reads,
    /// Revocations at once.
    Revocations,
    /// Health watches and reflections at once.
    Streams,
    /// Sessions at once.
    Sessions,
    /// Questions at once.
    Questions,
    /// Time.
    Time,
}

impl Limit {
    /// Every limit.
    pub const ALL: [Self; 9] = [
        Self::Connections,
        Self::Calls,
        Self::Tokens,
        Self::Reads,
        Self::Revocations,
        Self::Streams,
        Self::Sessions,
        Self::Questions,
        Self::Time,
    ];

    /// Its name in metrics and logs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Connections => "connections",
            Self::Calls => "calls",
            Self::Tokens => "token-calls",
            Self::Reads => "reads",
            Self::Revocations => "revocations",
            Self::Streams => "streams",
            Self::Sessions => "sessions",
            Self::Questions => "questions",
            Self::Time => "time",
        }
    }
}

#[cfg(test)]
mod tests {
    use gitdoor_proto::v1;
    use gitdoor_proto::v1::session_request::Question;
    use prost::Message as _;

    use super::*;

    /// Bytes of a command section, and of the words of a refusal, that a data plane takes at most.
    const SECTION: usize = 64 << 10;
    const WORDS: usize = 1000;

    /// Requests that a data plane says to have ended in one message, at most.
    const ENDED: usize = 1024;

    fn encoded(question: Question) -> usize {
        v1::SessionRequest { id: u64::MAX, question: Some(question), ended: vec![u64::MAX; ENDED] }.encoded_len()
    }

    /// So many commands as fill a section: a length of four digits, two object ids, two spaces, a name.
    fn names(oid: usize, name: &str) -> usize {
        SECTION / (4 + 2 * oid + 2 + name.len())
    }

    #[test]
    fn every_limit_that_operators_are_told_of_is_counted_from_the_start() {
        let (_, told) = include_str!("../../docs/metrics.md").split_once("; `limit` is one\nof ").unwrap();
        let (told, _) = told.split_once(", of which").unwrap();
        let told: Vec<_> = told.split(',').map(|name| name.trim().trim_matches('`')).collect();
        assert_eq!(Limit::ALL.map(Limit::as_str).to_vec(), told);
    }

    #[test]
    fn the_largest_registration_fits_a_question() {
        let options = v1::RunOptions {
            branches: vec!["b".repeat(255); 100],
            read_repositories: (0..500).map(|number| format!("{}/{number:0100}", "o".repeat(39))).collect(),
            ..Default::default()
        };
        let message = v1::RegisterRunRequest {
            run_id: "r".repeat(64),
            identity: v1::Identity::Write.into(),
            repository: format!("{}/{}", "o".repeat(39), "n".repeat(100)),
            options: Some(options),
            ..Default::default()
        };
        assert!(crate::run::Registration::try_from(message.clone()).is_ok(), "it is legal");
        assert!(message.encoded_len() < RUNS_MESSAGE_BYTES, "{}", message.encoded_len());
    }

    #[test]
    fn the_largest_command_section_fits_a_question() {
        for oid in [40, 64] {
            for name in ["r".to_owned(), "r".repeat(200), "r".repeat(60_000)] {
                let command = v1::PushCommand {
                    old_oid: "a".repeat(oid),
                    new_oid: "b".repeat(oid),
                    ref_name: name.clone().into_bytes(),
                };
                let commands = vec![command; names(oid, &name)];
                let intent =
                    v1::PushIntent { repository: format!("{0}/{0}", "o".repeat(100)), commands, key: vec![0; 16] };
                let question = v1::AuthorizeRequest {
                    run_id: "r".repeat(64),
                    secret: "s".repeat(43),
                    request_id: "q".repeat(64),
                    intent: Some(v1::authorize_request::Intent::Push(intent)),
                    trace_parent: "t".repeat(55),
                };
                let bytes = encoded(Question::Authorize(question));
                assert!(bytes < 80 << 10, "{oid} {}: {bytes}", name.len());
            }
        }
    }

    #[test]
    fn the_longest_report_fits_a_question() {
        for name in ["r".to_owned(), "r".repeat(200), "r".repeat(60_000)] {
            let refusal = v1::UpstreamRefusal { ref_name: name.clone().into_bytes(), message: "w".repeat(WORDS) };
            let report = v1::ReportPushRequest {
                authorization: "t".repeat(4096),
                result: v1::PushResult::RefusedUpstream.into(),
                upstream_refusals: vec![refusal; names(40, &name)],
                request_bytes: u64::MAX,
                context: Some(v1::RequestContext { request_id: "q".repeat(64), trace_parent: "t".repeat(55) }),
            };
            let bytes = encoded(Question::Report(report));
            assert!(bytes < GATE_MESSAGE_BYTES, "{}: {bytes}", name.len());
        }
    }
}
