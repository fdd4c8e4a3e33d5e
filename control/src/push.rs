//! A push as control sees it: its commands, and its row in the ledger.

use std::time::SystemTime;

use gitdoor_proto::{RepositoryName, RunId, v1};
use sha2::{Digest, Sha256};

use crate::fleet::ControlId;
use crate::id::id;
use crate::run::Invalid;
use crate::ticket::Shown;

id! {
    /// Names a push.
    PushId
}

/// One command of a push: an update of a ref.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// Object id before, in hex.
    pub old_oid: String,
    /// Object id after, in hex.
    pub new_oid: String,
    /// The ref's name, bytes as they came.
    pub ref_name: Vec<u8>,
}

impl Command {
    /// Whether it deletes its ref.
    #[must_use]
    pub fn is_delete(&self) -> bool {
        self.new_oid.bytes().all(|digit| digit == b'0')
    }

    /// Reads the commands of a push: at least one, their object ids all of one length.
    pub fn from_messages(messages: Vec<v1::PushCommand>) -> Result<Vec<Self>, Invalid> {
        let width = messages.first().ok_or(Invalid::Commands)?.old_oid.len();
        let is_oid = |text: &str| {
            matches!(width, 40 | 64)
                && text.len() == width
                && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
        };
        let read = |message: v1::PushCommand| {
            let v1::PushCommand { old_oid, new_oid, ref_name } = message;
            if is_oid(&old_oid) && is_oid(&new_oid) {
                Ok(Self { old_oid, new_oid, ref_name })
            } else {
                Err(Invalid::ObjectId)
            }
        };
        messages.into_iter().map(read).collect()
    }
}

/// A row of the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Push {
    /// Its id.
    pub id: PushId,
    /// The run that pushed.
    pub run: RunId,
    /// The request id that the client, the logs and this row share.
    pub request_id: String,
    /// Where it went, or would have gone.
    pub repository: RepositoryName,
    /// What it asked for, with the words of each refusal.
    pub refs: Vec<PushedRef>,
    /// Hash of the ticket that may report its end; missing for a refused push.
    pub ticket: Option<TicketHash>,
    /// The control that answers for it while it is open; missing for a refused push.
    pub control: Option<ControlId>,
    /// What became of it.
    pub outcome: Outcome,
    /// Bytes of its request body, decoded.
    pub request_bytes: u64,
    /// When it was decided.
    pub opened_at: SystemTime,
    /// When its outcome was recorded.
    pub closed_at: Option<SystemTime>,
}

impl Push {
    /// Whether a row is that of this push, which was asked for before and not reported.
    #[must_use]
    pub fn is_asked_again_of(&self, row: &Self) -> bool {
        let commands = |push: &Self| push.refs.iter().map(|pushed| pushed.command.clone()).collect::<Vec<_>>();
        matches!(row.outcome, Outcome::Open | Outcome::Unknown)
            && self.ticket == row.ticket
            && self.run == row.run
            && self.repository == row.repository
            && commands(self) == commands(row)
    }
}

/// A command and its verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushedRef {
    /// What was asked.
    pub command: Command,
    /// Why the door or the upstream refused it.
    pub refusal: Option<String>,
}

/// SHA-256 of a ticket: it recognises the ticket of a push after the bearer that signed it was replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TicketHash([u8; 32]);

impl TicketHash {
    /// The hash of a ticket's text and of who holds it.
    #[must_use]
    pub fn of(ticket: Shown<'_>) -> Self {
        let mut hash = Sha256::new_with_prefix(ticket.text);
        if let Some(holder) = ticket.holder {
            // No text of a ticket has this byte.
            hash.update(b"\0");
            hash.update(holder.as_bytes());
        }
        Self(hash.finalize().into())
    }

    /// A hash as it was stored.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The hash, to store it.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// What became of a push.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Allowed; its end is not yet known.
    Open,
    /// Refused by policy; nothing was forwarded.
    Refused,
    /// The upstream took every ref.
    Done,
    /// The upstream refused at least one ref.
    RefusedUpstream,
    /// Cut before its end.
    Interrupted,
    /// Its data plane was lost before it could tell.
    Unknown,
}

impl Outcome {
    /// Every outcome.
    pub const ALL: [Self; 6] =
        [Self::Open, Self::Refused, Self::Done, Self::RefusedUpstream, Self::Interrupted, Self::Unknown];

    /// Its name, in the store and in metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Refused => "refused",
            Self::Done => "done",
            Self::RefusedUpstream => "refused-upstream",
            Self::Interrupted => "interrupted",
            Self::Unknown => "unknown",
        }
    }
}

impl From<Outcome> for v1::PushOutcome {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Open => Self::Open,
            Outcome::Refused => Self::Refused,
            Outcome::Done => Self::Done,
            Outcome::RefusedUpstream => Self::RefusedUpstream,
            Outcome::Interrupted => Self::Interrupted,
            Outcome::Unknown => Self::Unknown,
        }
    }
}

/// The end of a push, as it is recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closing {
    /// What became of it.
    pub outcome: Outcome,
    /// Refs that the upstream refused, with its words.
    pub upstream_refusals: Vec<(Vec<u8>, String)>,
    /// Bytes of the request body, decoded.
    pub request_bytes: u64,
    /// When it ended.
    pub at: SystemTime,
}

impl Closing {
    /// The end of a push whose data plane was lost.
    #[must_use]
    pub fn unknown(at: SystemTime) -> Self {
        Self { outcome: Outcome::Unknown, upstream_refusals: Vec::new(), request_bytes: 0, at }
    }
}

impl From<Push> for v1::Push {
    fn from(push: Push) -> Self {
        let pushed = |PushedRef { command, refusal }| {
            let Command { old_oid, new_oid, ref_name } = command;
            v1::PushedRef { ref_name, old_oid, new_oid, refusal: refusal.unwrap_or_default() }
        };
        Self {
            push_id: push.id.to_string(),
            request_id: push.request_id,
            repository: push.repository.to_string(),
            refs: push.refs.into_iter().map(pushed).collect(),
            outcome: v1::PushOutcome::from(push.outcome).into(),
            request_bytes: push.request_bytes,
            opened_at: Some(push.opened_at.into()),
            closed_at: push.closed_at.map(Into::into),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// An open push to `acme/api` of control 1.
    pub(crate) fn open_push(run: &RunId, id: PushId, now: SystemTime) -> Push {
        Push {
            id,
            run: run.clone(),
            request_id: "q".into(),
            repository: RepositoryName::parse("acme/api").unwrap(),
            refs: Vec::new(),
            ticket: Some(TicketHash::from_bytes([8; 32])),
            control: Some(ControlId::from_bytes([1; 16])),
            outcome: Outcome::Open,
            request_bytes: 0,
            opened_at: now,
            closed_at: None,
        }
    }

    fn read(commands: &[(&str, &str)]) -> Result<Vec<Command>, Invalid> {
        let message = |(old, new): &(&str, &str)| v1::PushCommand {
            old_oid: (*old).into(),
            new_oid: (*new).into(),
            ref_name: b"refs/heads/x".to_vec(),
        };
        Command::from_messages(commands.iter().map(message).collect())
    }

    #[test]
    fn object_ids_are_of_one_length_and_lower_case() {
        let (short, long, zero) = ("a".repeat(40), "b".repeat(64), "0".repeat(40));
        assert!(!read(&[(&zero, &short)]).unwrap()[0].is_delete());
        assert!(read(&[(&short, &zero)]).unwrap()[0].is_delete());
        assert!(read(&[(&long, &long)]).is_ok());
        assert_eq!(read(&[]), Err(Invalid::Commands));
        let upper = "A".repeat(40);
        for (old, new) in [(&short, &long), (&short, &upper), (&upper, &short)] {
            assert_eq!(read(&[(old, new)]), Err(Invalid::ObjectId));
        }
        assert_eq!(read(&[(&short, &short), (&long, &long)]), Err(Invalid::ObjectId));
        assert_eq!(read(&[("", "")]), Err(Invalid::ObjectId));
    }
}
