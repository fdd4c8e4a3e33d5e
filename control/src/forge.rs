//! The forge as control needs it: tokens of three scopes, a repository's facts, and why it gives neither.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use gitdoor_proto::{RepositoryName, token_id};
use secrecy::{ExposeSecret, SecretString};

/// A git host that mints short-lived tokens for repositories.
pub trait Forge: Send + Sync + 'static {
    /// A token that only reads.
    fn read_token(
        &self,
        scope: &ReadScope,
        now: SystemTime,
    ) -> impl Future<Output = Result<Minted, MintError>> + Send;

    /// A token that pushes to exactly one repository; without `workflows` it cannot change workflow files.
    fn write_token(
        &self,
        target: &Target,
        workflows: bool,
        now: SystemTime,
    ) -> impl Future<Output = Result<Minted, MintError>> + Send;

    /// A token for a trusted host's clone: it reads exactly one repository, its pull requests included.
    fn mirror_token(
        &self,
        repository: &RepositoryName,
        now: SystemTime,
    ) -> impl Future<Output = Result<Minted, MintError>> + Send;

    /// Id, full name and default branch, read with this write token. They are read once for a token and kept with
    /// it; with `fresh` they are read again when older than a minute.
    fn facts(
        &self,
        minted: &Minted,
        fresh: bool,
        now: SystemTime,
    ) -> impl Future<Output = Result<Facts, MintError>> + Send;

    /// Drops a token that the forge answered 401 to, if it is still the one handed out and none of its key was
    /// dropped within a minute. False: not dropped.
    fn reject(&self, token_id: &str, now: SystemTime) -> impl Future<Output = bool> + Send;
}

/// What a read token reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadScope {
    /// All repositories of the installation.
    All,
    /// These alone.
    Repositories(Vec<RepositoryName>),
}

/// The one repository of a write token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// As the client spelled it; the id is not known yet.
    Named(RepositoryName),
    /// As a run is bound to it; the id decides, the name may be an older one.
    Bound {
        /// The forge's number of the repository.
        id: u64,
        /// Its last known name.
        name: RepositoryName,
    },
}

/// A token whose answer was checked. Clones share one secret; `Debug` shows the id alone.
#[derive(Clone)]
pub struct Minted(Arc<Inner>);

struct Inner {
    token: SecretString,
    id: String,
    /// Id and name of the one repository that it is pinned to.
    repository: Option<(u64, RepositoryName)>,
    minted_at: SystemTime,
    expires_at: SystemTime,
}

impl Minted {
    /// Wraps a token; `repository` is the one that it is pinned to, by id and present name.
    #[must_use]
    pub fn new(
        token: SecretString,
        repository: Option<(u64, RepositoryName)>,
        minted_at: SystemTime,
        expires_at: SystemTime,
    ) -> Self {
        let id = token_id(token.expose_secret());
        Self(Arc::new(Inner { token, id, repository, minted_at, expires_at }))
    }

    /// The token's text, for an `Authorization` header and for nothing else.
    #[must_use]
    pub fn expose(&self) -> &str {
        self.0.token.expose_secret()
    }

    /// Names the token without showing it: 16 hex digits of its hash.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.0.id
    }

    /// When it was asked for.
    #[must_use]
    pub fn minted_at(&self) -> SystemTime {
        self.0.minted_at
    }

    /// When the forge ends it.
    #[must_use]
    pub fn expires_at(&self) -> SystemTime {
        self.0.expires_at
    }

    /// The repository that it is pinned to, when it is pinned to one.
    #[must_use]
    pub fn repository_id(&self) -> Option<u64> {
        self.0.repository.as_ref().map(|(id, _)| *id)
    }

    /// The name that this repository had when the token was minted.
    #[must_use]
    pub fn repository_name(&self) -> Option<&RepositoryName> {
        self.0.repository.as_ref().map(|(_, name)| name)
    }
}

impl fmt::Debug for Minted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Minted({})", self.0.id)
    }
}

/// What the forge says of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// Its number, which a rename leaves alone.
    pub id: u64,
    /// Its present name.
    pub full_name: RepositoryName,
    /// The branch, without `refs/heads/`, that it names as default.
    pub default_branch: String,
}

/// A permission of an installation, by the forge's name for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Permission {
    /// Commits, branches, files.
    Contents,
    /// Files under `.github/workflows`.
    Workflows,
    /// Names, ids, default branches.
    Metadata,
    /// Pull requests.
    PullRequests,
    /// Issues.
    Issues,
    /// Workflow runs and artifacts.
    Actions,
    /// Check runs.
    Checks,
    /// Commit statuses.
    Statuses,
}

impl Permission {
    /// The forge's name, as in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Contents => "contents",
            Self::Workflows => "workflows",
            Self::Metadata => "metadata",
            Self::PullRequests => "pull_requests",
            Self::Issues => "issues",
            Self::Actions => "actions",
            Self::Checks => "checks",
            Self::Statuses => "statuses",
        }
    }
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Where an answer departs from what was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Mismatch {
    /// The token is not limited to selected repositories, or does not say.
    #[error("its repository selection")]
    Selection,
    /// The repositories are not exactly those asked for.
    #[error("its repositories")]
    Repositories,
    /// The repository has another id.
    #[error("its repository's id")]
    RepositoryId,
    /// It can do more than was asked for.
    #[error("wider permissions")]
    WiderPermissions,
    /// It can do less than was asked for.
    #[error("narrower permissions")]
    NarrowerPermissions,
    /// It lives much shorter or longer than an hour, or does not say.
    #[error("its expiry")]
    Expiry,
}

/// Why there is no token. The text is safe to show to a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MintError {
    /// The installation has no such repository.
    #[error("the installation has no such repository")]
    RepositoryUnknown,
    /// The forge knows no such installation.
    #[error("the App is not installed")]
    NotInstalled,
    /// The installation is suspended.
    #[error("the installation is suspended")]
    Suspended,
    /// The installation was not granted a permission.
    #[error("the installation is not granted the permission {0}")]
    PermissionMissing(Permission),
    /// The forge limits the rate of minting; the time is when asking again may help, never under 30 seconds.
    #[error("the forge limits the rate of minting for {} seconds more", .0.as_secs())]
    RateLimited(Duration),
    /// The forge cannot be reached, fails or is not understood; the time is when asking again may help.
    #[error("the forge cannot be reached or fails")]
    Unavailable(Duration),
    /// The forge gave something other than was asked for; it was not used.
    #[error("the forge's answer differs from what was asked for in {0}")]
    Untrusted(Mismatch),
    /// The forge refuses the App's signature for its times: one of the two clocks is wrong.
    #[error("the forge refuses the App's signature for its times: a clock is wrong")]
    Clock,
    /// The forge refuses the App's signature.
    #[error("the forge refuses the App's key")]
    Key,
    /// The door has one token that it was given, and it does not do.
    #[error("the door's token {0}")]
    OwnToken(OwnToken),
}

/// What a token that the door was given does not do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OwnToken {
    /// See a repository of that name.
    #[error("sees no repository of that name; check the name, and what the token may reach")]
    Repository,
    /// Open the forge.
    #[error("is refused by the forge: it has expired, or was revoked")]
    Refused,
    /// Become narrower.
    #[error("cannot be narrowed: an App's can")]
    Narrow,
}
