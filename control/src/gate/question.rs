//! A question as it came, read whole: a field that is missing or broken is named.

use gitdoor_proto::{Bearer, RepositoryName, v1};

use crate::push::{Command, Outcome, PushId};
use crate::run::Invalid;
use crate::ticket::Holder;

/// Most characters of a request id.
const REQUEST_ID_CHARS: usize = 128;

/// A request of a sandbox, as far as it needs a decision.
#[derive(Debug)]
pub struct Question {
    /// What the sandbox showed.
    pub bearer: Bearer,
    /// Who holds what is authorized, if the data plane says who it is.
    pub holder: Option<Holder>,
    /// The data plane's id of the request.
    pub request_id: String,
    /// What the request wants to do.
    pub intent: Intent,
}

/// Whether a text may name a request.
#[must_use]
pub fn is_request_id(text: &str) -> bool {
    (1..=REQUEST_ID_CHARS).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic())
}

/// What a request wants to do.
#[derive(Debug)]
pub enum Intent {
    /// Know whether the bearer is good.
    Verify,
    /// Know what the run may do.
    Describe,
    /// Read the forge's API.
    Api,
    /// Fetch from a repository.
    Fetch(RepositoryName),
    /// Discover for a push to a repository.
    Discovery {
        /// Which.
        repository: RepositoryName,
        /// Whether the forge redirected the client's name to this one.
        redirected: bool,
    },
    /// Send an empty body ahead of a push to a repository.
    Probe(RepositoryName),
    /// Push.
    Push {
        /// Where to.
        repository: RepositoryName,
        /// What.
        commands: Vec<Command>,
        /// Its name, if its data plane drew one.
        key: Option<PushId>,
    },
}

impl Intent {
    /// Its name, in logs and metrics.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Verify => "verify",
            Self::Describe => "describe",
            Self::Api => "api_read",
            Self::Fetch(_) => "fetch",
            Self::Discovery { .. } => "push_discovery",
            Self::Probe(_) => "probe",
            Self::Push { .. } => "push",
        }
    }

    /// Whether a request of this kind has streams, and so a place among those of its run. What verifies a bearer is a
    /// part of another request, or of one that is refused.
    #[must_use]
    pub fn has_streams(&self) -> bool {
        match self {
            Self::Verify => false,
            Self::Describe
            | Self::Api
            | Self::Fetch(_)
            | Self::Discovery { .. }
            | Self::Probe(_)
            | Self::Push { .. } => true,
        }
    }

    /// The repository that it is about, as the client spelled it.
    #[must_use]
    pub fn repository(&self) -> Option<&RepositoryName> {
        match self {
            Self::Verify | Self::Describe | Self::Api => None,
            Self::Fetch(repository)
            | Self::Discovery { repository, .. }
            | Self::Probe(repository)
            | Self::Push { repository, .. } => Some(repository),
        }
    }

    /// How many refs it is about.
    #[must_use]
    pub fn refs(&self) -> usize {
        match self {
            Self::Verify
            | Self::Describe
            | Self::Api
            | Self::Fetch(_)
            | Self::Discovery { .. }
            | Self::Probe(_) => 0,
            Self::Push { commands, .. } => commands.len(),
        }
    }
}

impl Question {
    /// Reads the question of a data plane.
    pub fn read(message: v1::AuthorizeRequest, holder: Option<Holder>) -> Result<Self, Invalid> {
        let v1::AuthorizeRequest { run_id, secret, request_id, intent, trace_parent: _ } = message;
        crate::run::run_id_from(&run_id)?;
        let bearer = Bearer::from_parts(&run_id, &secret).map_err(|_shape| Invalid::Secret)?;
        if !is_request_id(&request_id) {
            return Err(Invalid::RequestId);
        }
        Ok(Self { bearer, holder, request_id, intent: intent.ok_or(Invalid::Intent)?.try_into()? })
    }
}

fn key_from(bytes: &[u8]) -> Result<Option<PushId>, Invalid> {
    match bytes {
        [] => Ok(None),
        bytes => bytes.try_into().map(|key| Some(PushId::from_bytes(key))).map_err(|_length| Invalid::PushKey),
    }
}

impl TryFrom<v1::authorize_request::Intent> for Intent {
    type Error = Invalid;

    fn try_from(message: v1::authorize_request::Intent) -> Result<Self, Invalid> {
        use v1::authorize_request::Intent as Message;
        let name = |text: &str| RepositoryName::parse(text).map_err(Invalid::Repository);
        Ok(match message {
            Message::Verify(v1::Verify {}) => Self::Verify,
            Message::Describe(v1::DescribeRun {}) => Self::Describe,
            Message::ApiRead(v1::ApiRead {}) => Self::Api,
            Message::Fetch(v1::Fetch { repository }) => Self::Fetch(name(&repository)?),
            Message::PushDiscovery(v1::PushDiscovery { repository, redirected }) => {
                Self::Discovery { repository: name(&repository)?, redirected }
            }
            Message::Probe(v1::Probe { repository }) => Self::Probe(name(&repository)?),
            Message::Push(v1::PushIntent { repository, commands, key }) => Self::Push {
                repository: name(&repository)?,
                commands: Command::from_messages(commands)?,
                key: key_from(&key)?,
            },
        })
    }
}

/// Reads the end of a push that a data plane reports.
pub fn outcome(message: v1::PushResult) -> Result<Outcome, Invalid> {
    match message {
        v1::PushResult::Unspecified => Err(Invalid::PushResult),
        v1::PushResult::Done => Ok(Outcome::Done),
        v1::PushResult::RefusedUpstream => Ok(Outcome::RefusedUpstream),
        v1::PushResult::Interrupted => Ok(Outcome::Interrupted),
    }
}
