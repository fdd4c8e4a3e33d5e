//! Control's answers as this program shows them; their JSON is what the fields say, in this order.
//!
//! An answer that lacks what it must have is refused, never filled in.

pub(crate) mod mirror;

use std::time::SystemTime;

use gitdoor_proto::{Bearer, v1};
use serde::{Serialize, Serializer};

/// Seconds from 1970 to the end of the year 9999, past which RFC 3339 has no spelling.
const LAST_SECOND: i64 = 253_402_300_799;

/// An answer without what it must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("control's answer is incomplete")]
pub(crate) struct Incomplete;

/// A time, as RFC 3339 in UTC, to the second.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Time(pub(crate) String);

impl Time {
    fn read(time: Option<prost_types::Timestamp>) -> Result<Self, Incomplete> {
        let time = time.filter(|time| (0..=LAST_SECOND).contains(&time.seconds)).ok_or(Incomplete)?;
        let time = SystemTime::try_from(time).map_err(|_unrepresentable| Incomplete)?;
        Ok(Self(humantime::format_rfc3339_seconds(time).to_string()))
    }

    fn read_optional(time: Option<prost_types::Timestamp>) -> Result<Option<Self>, Incomplete> {
        time.map(|time| Self::read(Some(time))).transpose()
    }
}

/// A run.
#[derive(Debug, Serialize)]
#[expect(clippy::struct_field_names, reason = "the names are those of the JSON")]
pub(crate) struct Run {
    pub(crate) run_id: String,
    pub(crate) identity: &'static str,
    pub(crate) state: &'static str,
    pub(crate) repository: Option<String>,
    pub(crate) repository_id: Option<u64>,
    pub(crate) default_branch: Option<String>,
    pub(crate) expires_at: Time,
    pub(crate) adopted_at: Option<Time>,
    #[serde(skip)]
    pub(crate) registered_at: Time,
    #[serde(skip)]
    pub(crate) revoked_at: Option<Time>,
    #[serde(skip)]
    pub(crate) former_default_branches: Vec<String>,
    #[serde(skip)]
    pub(crate) options: v1::RunOptions,
}

impl Run {
    /// Reads the message.
    pub(crate) fn read(message: Option<v1::Run>) -> Result<Self, Incomplete> {
        let message = message.ok_or(Incomplete)?;
        let (identity, state) = (identity(message.identity())?, state(message.state())?);
        let v1::Run { run_id, binding, registered_at, adopted_at, expires_at, revoked_at, options, .. } = message;
        let mut run = Self {
            run_id,
            identity,
            state,
            repository: None,
            repository_id: None,
            default_branch: None,
            expires_at: Time::read(expires_at)?,
            adopted_at: Time::read_optional(adopted_at)?,
            registered_at: Time::read(registered_at)?,
            revoked_at: Time::read_optional(revoked_at)?,
            former_default_branches: Vec::new(),
            options: options.unwrap_or_default(),
        };
        if let Some(binding) = binding {
            run.bind(binding)?;
        }
        Ok(run)
    }

    fn bind(&mut self, binding: v1::Binding) -> Result<(), Incomplete> {
        let v1::Binding { repository, repository_id, default_branch, mut default_branches, bound_at: _ } = binding;
        if repository.is_empty() || repository_id == 0 || default_branch.is_empty() {
            return Err(Incomplete);
        }
        default_branches.retain(|branch| *branch != default_branch);
        self.former_default_branches = default_branches;
        self.repository = Some(repository);
        self.repository_id = Some(repository_id);
        self.default_branch = Some(default_branch);
        Ok(())
    }
}

fn identity(identity: v1::Identity) -> Result<&'static str, Incomplete> {
    match identity {
        v1::Identity::Unspecified => Err(Incomplete),
        v1::Identity::None => Ok("none"),
        v1::Identity::Read => Ok("read"),
        v1::Identity::Write => Ok("write"),
    }
}

fn state(state: v1::RunState) -> Result<&'static str, Incomplete> {
    match state {
        v1::RunState::Unspecified => Err(Incomplete),
        v1::RunState::Live => Ok("live"),
        v1::RunState::Revoked => Ok("revoked"),
        v1::RunState::Expired => Ok("expired"),
    }
}

/// A run with the bearer that was made for it.
#[derive(Debug)]
pub(crate) struct Issued {
    pub(crate) run: Run,
    pub(crate) bearer: Bearer,
}

impl Issued {
    /// Reads the messages' fields; the run and the bearer must be those of the id that was asked for.
    pub(crate) fn read(run: Option<v1::Run>, bearer: &str, run_id: &str) -> Result<Self, Incomplete> {
        let run = Run::read(run)?;
        let bearer = Bearer::parse(bearer).map_err(|_malformed| Incomplete)?;
        if run.run_id != run_id || bearer.run_id().as_str() != run_id {
            return Err(Incomplete);
        }
        Ok(Self { run, bearer })
    }
}

/// A run with its pushes, newest first.
#[derive(Debug, Serialize)]
pub(crate) struct Shown {
    #[serde(flatten)]
    pub(crate) run: Run,
    pub(crate) pushes: Vec<Push>,
}

impl Shown {
    /// Reads the message.
    pub(crate) fn read(message: v1::GetRunResponse) -> Result<Self, Incomplete> {
        let v1::GetRunResponse { run, pushes } = message;
        let pushes = pushes.into_iter().map(Push::read).collect::<Result<_, _>>()?;
        Ok(Self { run: Run::read(run)?, pushes })
    }
}

/// A row of the ledger.
#[derive(Debug, Serialize)]
#[expect(clippy::struct_field_names, reason = "the names are those of the JSON")]
pub(crate) struct Push {
    pub(crate) push_id: String,
    pub(crate) request_id: String,
    pub(crate) repository: String,
    pub(crate) outcome: &'static str,
    pub(crate) request_bytes: u64,
    pub(crate) opened_at: Time,
    pub(crate) closed_at: Option<Time>,
    pub(crate) refs: Vec<PushedRef>,
}

impl Push {
    fn read(message: v1::Push) -> Result<Self, Incomplete> {
        let outcome = outcome(message.outcome())?;
        let v1::Push { push_id, request_id, repository, refs, request_bytes, opened_at, closed_at, outcome: _ } =
            message;
        Ok(Self {
            push_id,
            request_id,
            repository,
            outcome,
            request_bytes,
            opened_at: Time::read(opened_at)?,
            closed_at: Time::read_optional(closed_at)?,
            refs: refs.into_iter().map(PushedRef::read).collect(),
        })
    }
}

fn outcome(outcome: v1::PushOutcome) -> Result<&'static str, Incomplete> {
    match outcome {
        v1::PushOutcome::Unspecified => Err(Incomplete),
        v1::PushOutcome::Open => Ok("open"),
        v1::PushOutcome::Refused => Ok("refused"),
        v1::PushOutcome::Done => Ok("done"),
        v1::PushOutcome::RefusedUpstream => Ok("refused-upstream"),
        v1::PushOutcome::Interrupted => Ok("interrupted"),
        v1::PushOutcome::Unknown => Ok("unknown"),
    }
}

/// One command of a push and its verdict.
#[derive(Debug, Serialize)]
pub(crate) struct PushedRef {
    /// Bytes as they came; in JSON, what is not UTF-8 is U+FFFD.
    #[serde(serialize_with = "lossy")]
    pub(crate) ref_name: Vec<u8>,
    pub(crate) old_oid: String,
    pub(crate) new_oid: String,
    pub(crate) refusal: Option<String>,
}

impl PushedRef {
    fn read(message: v1::PushedRef) -> Self {
        let v1::PushedRef { ref_name, old_oid, new_oid, refusal } = message;
        Self { ref_name, old_oid, new_oid, refusal: Some(refusal).filter(|words| !words.is_empty()) }
    }
}

fn lossy<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&String::from_utf8_lossy(bytes))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    #[expect(clippy::unnecessary_wraps, reason = "the messages' fields are optional")]
    pub(crate) fn at(seconds: i64) -> Option<prost_types::Timestamp> {
        Some(prost_types::Timestamp { seconds, nanos: 999_999_999 })
    }

    pub(crate) fn run() -> v1::Run {
        v1::Run {
            run_id: "r1".into(),
            identity: v1::Identity::Write.into(),
            state: v1::RunState::Live.into(),
            binding: Some(v1::Binding {
                repository: "acme/api".into(),
                repository_id: 42,
                default_branch: "main".into(),
                default_branches: vec!["trunk".into(), "main".into()],
                bound_at: at(1_800_000_010),
            }),
            registered_at: at(1_800_000_000),
            expires_at: at(1_800_003_000),
            adopted_at: None,
            revoked_at: None,
            options: Some(v1::RunOptions::default()),
        }
    }

    #[test]
    fn an_incomplete_answer_is_refused() {
        let spoilers: [fn(&mut v1::Run); 9] = [
            |run| run.identity = 0,
            |run| run.identity = 99,
            |run| run.state = 0,
            |run| run.expires_at = None,
            |run| run.registered_at = at(-1),
            |run| run.revoked_at = at(i64::MAX),
            |run| run.adopted_at = at(-1),
            |run| run.binding.as_mut().unwrap().repository = String::new(),
            |run| run.binding.as_mut().unwrap().default_branch = String::new(),
        ];
        for (at, spoil) in spoilers.iter().enumerate() {
            let mut run = run();
            spoil(&mut run);
            assert_eq!(Run::read(Some(run)).unwrap_err(), Incomplete, "spoiler {at}");
        }
        assert_eq!(Run::read(None).unwrap_err(), Incomplete);
    }

    #[test]
    fn a_bearer_of_another_run_is_not_handed_on() {
        let secret = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8";
        let bearer = format!("sbr_r1.{secret}");
        assert!(Issued::read(Some(run()), &bearer, "r1").is_ok());
        assert!(Issued::read(Some(run()), &bearer, "r2").is_err());
        assert!(Issued::read(Some(run()), &format!("sbr_r2.{secret}"), "r1").is_err());
        assert!(Issued::read(Some(run()), "", "r1").is_err());
    }
}
