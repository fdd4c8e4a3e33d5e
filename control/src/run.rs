//! A run: what it may be, how long, and the one repository that it pushes to.
//!
//! Its state is derived from its times, and `life` has the rules by which it changes; a message is read whole or
//! refused by the name of a field.

mod life;
mod message;

use std::num::NonZeroU32;
use std::time::{Duration, SystemTime};

use gitdoor_proto::repository::InvalidRepository;
use gitdoor_proto::{BearerHash, Pattern, RepositoryName, RunId};

pub use self::life::{GRACE, Transition};
pub use self::message::Registration;
pub(crate) use self::message::{budget_from, run_id_from};

/// What a run may be towards the forge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Identity {
    /// Nothing.
    None,
    /// It may read.
    Read,
    /// It may read, and push to one repository.
    Write,
}

impl Identity {
    /// Its name, in the store and in words.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Read => "read",
            Self::Write => "write",
        }
    }
}

/// Where a run is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Its bearer works.
    Live,
    /// It was ended.
    Revoked,
    /// Its time is over.
    Expired,
}

impl State {
    /// Its name, in words.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Revoked => "revoked",
            Self::Expired => "expired",
        }
    }
}

/// How a run is narrowed. Nothing here widens it.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Branches that it may push; empty: any but the default.
    pub branches: Vec<Pattern>,
    /// Most refs in one push; missing: no limit of its own.
    pub max_refs: Option<NonZeroU32>,
    /// Whether its write token may change workflow files.
    pub workflows: bool,
    /// What its read token is minted for; empty: all of the installation.
    pub read_repositories: Vec<RepositoryName>,
    /// Size of its bucket of API requests.
    pub api_burst: NonZeroU32,
    /// API requests a second that the bucket regains.
    pub api_rate: f64,
}

/// What a run was registered with. A retry of a registration has the same terms.
#[derive(Debug, Clone, PartialEq)]
pub struct Terms {
    /// What it may be.
    pub identity: Identity,
    /// The repository that it was to be bound to from the start.
    pub repository: Option<RepositoryName>,
    /// The time that it was given at first.
    pub budget: Duration,
    /// How it was narrowed.
    pub options: Options,
}

/// The one repository that a run may push to, for life.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding {
    /// Its name when it was bound.
    pub repository: RepositoryName,
    /// The forge's id: what the binding goes by.
    pub repository_id: u64,
    /// The default branch as last read.
    pub default_branch: String,
    /// Every branch that was default at any time in the run.
    pub default_branches: Vec<String>,
    /// When it was bound.
    pub bound_at: SystemTime,
}

/// A run as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Its id.
    pub id: RunId,
    /// What it was registered with.
    pub terms: Terms,
    /// The hash of its present bearer, and how many it had before.
    pub bearer: StoredBearer,
    /// When a bearer of it first worked.
    pub first_used_at: Option<SystemTime>,
    /// When it was registered.
    pub registered_at: SystemTime,
    /// When it was last adopted.
    pub adopted_at: Option<SystemTime>,
    /// When its bearer stops: registration or adoption, the budget given then, and [`GRACE`].
    pub expires_at: SystemTime,
    /// When it was ended.
    pub revoked_at: Option<SystemTime>,
    /// What it is bound to.
    pub binding: Option<Binding>,
}

/// What is stored of a bearer.
#[derive(Debug, Clone, Copy)]
pub struct StoredBearer {
    /// SHA-256 of its secret.
    pub hash: BearerHash,
    /// Counts up from 1 with every new secret of the run.
    pub generation: u64,
}

impl PartialEq for StoredBearer {
    fn eq(&self, other: &Self) -> bool {
        self.generation == other.generation && self.hash.matches(&other.hash)
    }
}

/// A request that cannot be read: which field, and what it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// No run id.
    #[error("run_id: a run id is 1 to 64 of A-Z, a-z, 0-9, \"_\" and \"-\"")]
    RunId,
    /// No identity.
    #[error("identity: required; it is none, read or write")]
    Identity,
    /// No repository's name.
    #[error("repository: {0}")]
    Repository(InvalidRepository),
    /// A repository for a run that binds to none.
    #[error("repository: only a run of identity write takes one")]
    RepositoryWithoutWrite,
    /// No time, or too much.
    #[error("budget: 1 second to 24 hours")]
    Budget,
    /// No branch pattern.
    #[error("options.branches: {0}")]
    Branch(gitdoor_proto::refname::InvalidPattern),
    /// Too many of them.
    #[error("options.branches: at most 100")]
    Branches,
    /// No repository's name.
    #[error("options.read_repositories: {0}")]
    ReadRepository(InvalidRepository),
    /// Too many of them, or one twice.
    #[error("options.read_repositories: at most 500, each once")]
    ReadRepositories,
    /// A bucket larger than any.
    #[error("options.api_burst: 1 to 100000, or 0 for the default")]
    ApiBurst,
    /// A rate that no bucket has.
    #[error("options.api_rate: a number above 0 and at most 10000, or 0 for the default")]
    ApiRate,
    /// No name of a token.
    #[error("refused_token_id: the 16 hex digits of a token_id, or nothing")]
    RefusedTokenId,
    /// A page that is too large.
    #[error("page_size: 1 to 1000, or 0 for 100")]
    PageSize,
    /// Not the token of a page.
    #[error("page_token: the next_page_token of the page before, or nothing")]
    PageToken,
    /// Not a bearer by its shape.
    #[error("secret: 32 bytes in base64url without padding")]
    Secret,
    /// No request id.
    #[error("request_id: 1 to 128 printable ASCII characters")]
    RequestId,
    /// A question of a kind that this program does not know.
    #[error("question: required")]
    Question,
    /// No intent.
    #[error("intent: required")]
    Intent,
    /// A push of nothing.
    #[error("push.commands: at least one")]
    Commands,
    /// Not an object id.
    #[error("push.commands: an object id is 40 or 64 of 0-9 and a-f, in one push all of one length")]
    ObjectId,
    /// Not the name of a push.
    #[error("push.key: 16 bytes, or none")]
    PushKey,
    /// No outcome that a data plane can report.
    #[error("result: done, refused upstream or interrupted")]
    PushResult,
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A run of identity write, registered at `now`, with 45 minutes, bound to nothing.
    pub(crate) fn run(id: &str, now: SystemTime) -> Run {
        let message = gitdoor_proto::v1::RegisterRunRequest {
            run_id: id.into(),
            identity: gitdoor_proto::v1::Identity::Write.into(),
            ..Default::default()
        };
        Run::new(message.try_into().unwrap(), BearerHash::from_bytes([7; 32]), None, now)
    }

    /// A binding to `acme/api`, id 7, default branch `main`.
    pub(crate) fn binding(now: SystemTime) -> Binding {
        Binding {
            repository: RepositoryName::parse("acme/api").unwrap(),
            repository_id: 7,
            default_branch: "main".into(),
            default_branches: vec!["main".into()],
            bound_at: now,
        }
    }
}
