//! What control asks of the forge: tokens, and the facts of a repository. `github` is the implementation.
//!
//! A token that leaves here was checked: it has exactly the permissions and the repositories that were asked for.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use gitdoor_proto::RepositoryName;
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};

/// Bytes of the token's hash that name it: enough to tell tokens apart, useless to guess one.
const ID_BYTES: usize = 8;

/// A forge, as the gate needs it. Every answer may come from a cache; none needs another mint than it says.
pub trait Forge: Send + Sync + 'static {
    /// A token that may read.
    fn read_token(
        &self,
        scope: &ReadScope,
        now: SystemTime,
    ) -> impl Future<Output = Result<Minted, MintError>> + Send;

    /// A token that may write to exactly one repository; `workflows` says whether to workflow files too.
    fn write_token(
        &self,
        target: &Target,
        workflows: bool,
        now: SystemTime,
    ) -> impl Future<Output = Result<Minted, MintError>> + Send;

    /// Id, full name and default branch, read with this write token; read once per token and kept with it,
    /// unless `fresh` and older than a minute.
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

/// What a read token reaches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadScope {
    /// Every repository of the installation.
    All,
    /// Exactly these.
    Repositories(Vec<RepositoryName>),
}

/// What a write token is pinned to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// The repository that has this name now: before a binding.
    Named(RepositoryName),
    /// The repository with this id, whatever its name is now.
    Bound {
        /// The forge's id.
        id: u64,
        /// Its name when it was bound: for words and logs.
        name: RepositoryName,
    },
}

/// An installation token that was checked. Cheap to clone.
#[derive(Clone)]
pub struct Minted(Arc<Inner>);

struct Inner {
    value: SecretString,
    id: String,
    minted_at: SystemTime,
    repository_id: Option<u64>,
}

impl Minted {
    /// A token whose answer was checked; `repository_id` is set when it is pinned to one repository.
    #[must_use]
    pub fn new(value: SecretString, minted_at: SystemTime, repository_id: Option<u64>) -> Self {
        let hash = Sha256::digest(value.expose_secret().as_bytes());
        let id = hash.iter().take(ID_BYTES).fold(0_u64, |id, byte| id << 8 | u64::from(*byte));
        Self(Arc::new(Inner { value, id: format!("{id:016x}"), minted_at, repository_id }))
    }

    /// The token's text, for the permit and for requests to the forge, and for nothing else.
    #[must_use]
    pub fn expose(&self) -> &str {
        self.0.value.expose_secret()
    }

    /// Names the token without showing it: the start of its hash, in hex.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.0.id
    }

    /// When it was minted.
    #[must_use]
    pub fn minted_at(&self) -> SystemTime {
        self.0.minted_at
    }

    /// The one repository that it is pinned to, if it is.
    #[must_use]
    pub fn repository_id(&self) -> Option<u64> {
        self.0.repository_id
    }
}

impl fmt::Debug for Minted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Minted({})", self.0.id)
    }
}

/// A repository as the forge describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// The forge's id: it stays when the repository is renamed.
    pub id: u64,
    /// Its present name.
    pub full_name: RepositoryName,
    /// Its default branch, without `refs/heads/`.
    pub default_branch: String,
}

/// Why the forge gave no token, or no facts. `Display` is safe to show a client.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MintError {
    /// No such repository, or the installation does not have it.
    #[error("no such repository in the installation")]
    RepositoryUnknown,
    /// The App is not, or no longer, installed.
    #[error("the GitHub App is not installed")]
    NotInstalled,
    /// The installation is suspended.
    #[error("the installation of the GitHub App is suspended")]
    Suspended,
    /// The installation does not grant a permission.
    #[error("the installation does not grant the permission {0}")]
    PermissionMissing(Permission),
    /// The forge limits the rate; no mint before this time has passed.
    #[error("the forge limits the rate of requests")]
    RateLimited(Duration),
    /// The forge cannot be reached or fails; no mint before this time has passed.
    #[error("the forge is unavailable")]
    Unavailable(Duration),
    /// The forge minted another token than was asked for; it was revoked.
    #[error("the forge minted another token than was asked for: {0}")]
    Untrusted(Mismatch),
    /// The forge says that the App's JWT is from another time.
    #[error("the clocks of this control and of the forge differ")]
    Clock,
    /// The forge does not take the App's key.
    #[error("the forge does not accept the key of the GitHub App")]
    Key,
}

/// A permission that tokens are asked for with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Permission {
    /// Code, commits, branches.
    Contents,
    /// Workflow files.
    Workflows,
    /// The repository's own data.
    Metadata,
    /// Pull requests.
    PullRequests,
    /// Issues.
    Issues,
    /// Workflow runs.
    Actions,
    /// Check runs.
    Checks,
}

impl Permission {
    /// The forge's name for it.
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
        }
    }
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How a minted token differs from the one that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Mismatch {
    /// It reaches all repositories, or not all.
    #[error("its repository selection")]
    Selection,
    /// It reaches other repositories.
    #[error("its repositories")]
    Repositories,
    /// The repository of that name has another id.
    #[error("the id of its repository")]
    RepositoryId,
    /// It may do more.
    #[error("it has more permissions")]
    WiderPermissions,
    /// It may do less.
    #[error("it has fewer permissions")]
    NarrowerPermissions,
    /// It ends too soon, or its end cannot be read.
    #[error("its expiry")]
    Expiry,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minted_token_shows_its_id_alone() {
        let minted = Minted::new("ghs_hush".to_owned().into(), SystemTime::UNIX_EPOCH, Some(7));
        assert_eq!(minted.id().len(), 2 * ID_BYTES);
        assert_eq!(format!("{minted:?}"), format!("Minted({})", minted.id()));
        assert_eq!((minted.expose(), minted.repository_id()), ("ghs_hush", Some(7)));
    }
}
