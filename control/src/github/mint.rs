//! Asking for an installation token, and believing the answer only when it is exactly what was asked for.
//!
//! <https://docs.github.com/en/rest/apps/apps#create-an-installation-access-token-for-an-app>

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, SystemTime};

use gitdoor_proto::RepositoryName;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::answer::{Answer, UNAVAILABLE};
use super::client::Client;
use super::jwt::{AppKey, Unsigned};
use crate::forge::{MintError, Minted, Mismatch, Permission};

/// A token is handed out only with this much of its life left, so that none ends under a long push.
pub(super) const MARGIN: Duration = Duration::from_mins(25);
/// GitHub's tokens live an hour; one that lives longer is not what was asked for. Ten minutes are for clocks.
const LONGEST_LIFE: Duration = Duration::from_mins(70);

/// One token as it is asked for: the request's content, and the whole key under which it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Ask {
    pub(super) installation: u64,
    pub(super) permissions: Permissions,
    pub(super) repositories: Repositories,
}

/// The exact permissions of a scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Permissions {
    Read { statuses: bool },
    Write { workflows: bool },
    Mirror,
}

/// The repositories of a token. Names compare without case, so all spellings are one key.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Repositories {
    All,
    /// Sorted, each once, of one owner, at least one: what `named` makes.
    Names(Vec<RepositoryName>),
    Id(u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
}

/// A checked token, and what its answer taught.
#[derive(Debug, Clone)]
pub(super) struct Fresh {
    pub(super) minted: Minted,
    /// The one repository, when exactly one was asked for.
    pub(super) repository: Option<(u64, RepositoryName)>,
}

impl Permissions {
    pub(super) fn scope(self) -> &'static str {
        match self {
            Self::Read { .. } => "read",
            Self::Write { .. } => "write",
            Self::Mirror => "mirror",
        }
    }

    pub(super) fn grants(self) -> &'static [(Permission, Access)] {
        use Access::{Read, Write};
        use Permission::{Actions, Checks, Contents, Issues, Metadata, PullRequests, Statuses, Workflows};
        match self {
            Self::Read { statuses: true } => &[
                (Contents, Read),
                (PullRequests, Read),
                (Issues, Read),
                (Actions, Read),
                (Checks, Read),
                (Statuses, Read),
                (Metadata, Read),
            ],
            Self::Read { statuses: false } => &[
                (Contents, Read),
                (PullRequests, Read),
                (Issues, Read),
                (Actions, Read),
                (Checks, Read),
                (Metadata, Read),
            ],
            Self::Write { workflows: true } => &[(Contents, Write), (Workflows, Write), (Metadata, Read)],
            Self::Write { workflows: false } => &[(Contents, Write), (Metadata, Read)],
            Self::Mirror => &[(Contents, Read), (PullRequests, Read), (Metadata, Read)],
        }
    }

    /// Which permission a refusal means. GitHub's own text names none; then it is the one that operators most
    /// often forget: workflows, statuses or a mirror's pull requests where they are asked for, else contents.
    fn missing(self, message: &str) -> Permission {
        let named = |permission: &Permission| words(message).any(|word| word == permission.as_str());
        let asked = self.grants().iter().map(|(permission, _)| *permission);
        asked.clone().find(named).unwrap_or(match self {
            Self::Write { workflows: true } => Permission::Workflows,
            Self::Read { statuses: true } => Permission::Statuses,
            Self::Read { statuses: false } | Self::Write { workflows: false } => Permission::Contents,
            Self::Mirror => Permission::PullRequests,
        })
    }
}

impl Repositories {
    /// Those of this list. None when no installation can have them all: an installation has one owner, and an
    /// empty list would mean every repository to GitHub.
    pub(super) fn named(mut names: Vec<RepositoryName>) -> Option<Self> {
        names.sort_by_cached_key(RepositoryName::to_key);
        names.dedup();
        let owner = names.first()?.owner();
        let one_owner = names.iter().all(|name| name.owner().eq_ignore_ascii_case(owner));
        one_owner.then_some(Self::Names(names))
    }

    /// The id, when it is asked for by id.
    pub(super) fn id(&self) -> Option<u64> {
        match self {
            Self::Id(id) => Some(*id),
            Self::All | Self::Names(_) => None,
        }
    }
}

/// For the log.
impl fmt::Display for Repositories {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all"),
            Self::Id(id) => write!(f, "id {id}"),
            Self::Names(names) => {
                for (place, name) in names.iter().enumerate() {
                    write!(f, "{}{name}", if place == 0 { "" } else { "," })?;
                }
                Ok(())
            }
        }
    }
}

/// GitHub refuses `owner/name` in `repositories`: it takes bare names.
#[derive(Serialize)]
struct Body<'a> {
    permissions: BTreeMap<&'static str, &'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    repositories: Option<Vec<&'a str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    repository_ids: Option<[u64; 1]>,
}

impl Ask {
    /// The same permissions for the repository of this id.
    pub(super) fn with_id(&self, id: u64) -> Self {
        Self { repositories: Repositories::Id(id), ..self.clone() }
    }

    fn body(&self) -> Body<'_> {
        let grants = self.permissions.grants().iter();
        let permissions = grants.map(|(permission, access)| (permission.as_str(), access.as_str())).collect();
        let (repositories, repository_ids) = match &self.repositories {
            Repositories::All => (None, None),
            Repositories::Names(names) => (Some(names.iter().map(RepositoryName::name).collect()), None),
            Repositories::Id(id) => (None, Some([*id])),
        };
        Body { permissions, repositories, repository_ids }
    }
}

impl Access {
    fn as_str(self) -> &'static str {
        match self {
            Self::Read { .. } => "read",
            Self::Write => "write",
        }
    }
}

/// Mints. A token that is not what was asked for is revoked before this returns.
pub(super) async fn mint(client: &Client, key: &AppKey, ask: &Ask, now: SystemTime) -> Result<Fresh, MintError> {
    let jwt = key.sign(now)?;
    let body = serde_json::to_vec(&ask.body()).map_err(|_never| UNAVAILABLE)?;
    let answer = client.mint(&jwt, ask.installation, body).await.map_err(|_logged| UNAVAILABLE)?;
    if !answer.status.is_success() {
        return Err(refusal(&answer, ask, now));
    }
    let described: Value = serde_json::from_slice(&answer.body).map_err(|_unreadable| UNAVAILABLE)?;
    let token = token(&described).ok_or(UNAVAILABLE)?;
    match check(ask, &described, now) {
        Ok((expires_at, repository)) => {
            Ok(Fresh { minted: Minted::new(token, repository.clone(), now, expires_at), repository })
        }
        Err(error) => {
            let revoked = client.revoke(&token).await.is_ok_and(|status| status.is_success());
            tracing::warn!(scope = ask.permissions.scope(), %error, revoked, "a token was not what was asked for");
            Err(error)
        }
    }
}

impl From<Unsigned> for MintError {
    fn from(unsigned: Unsigned) -> Self {
        match unsigned {
            Unsigned::Key => Self::Key,
            Unsigned::Clock => Self::Clock,
        }
    }
}

/// A token is opaque: any text that can stand in a header.
fn token(answer: &Value) -> Option<SecretString> {
    let token = answer.get("token")?.as_str()?;
    let usable = !token.is_empty() && token.bytes().all(|b| b.is_ascii_graphic());
    usable.then(|| token.into())
}

#[derive(Deserialize)]
struct Listed {
    id: u64,
    full_name: String,
}

type Learned = (SystemTime, Option<(u64, RepositoryName)>);

fn check(ask: &Ask, answer: &Value, now: SystemTime) -> Result<Learned, MintError> {
    let repository = check_repositories(ask, answer)?;
    check_permissions(ask.permissions, answer).map_err(MintError::Untrusted)?;
    let expires_at = check_expiry(answer, now).ok_or(MintError::Untrusted(Mismatch::Expiry))?;
    Ok((expires_at, repository))
}

fn check_repositories(ask: &Ask, answer: &Value) -> Result<Option<(u64, RepositoryName)>, MintError> {
    use Mismatch::{Repositories as Other, RepositoryId, Selection};
    let selection = answer.get("repository_selection").and_then(Value::as_str);
    let selected = selection == Some("selected");
    if ask.repositories == Repositories::All {
        let known = selected || selection == Some("all");
        return if known { Ok(None) } else { Err(MintError::Untrusted(Selection)) };
    }
    if !selected {
        return Err(MintError::Untrusted(Selection));
    }
    let mut listed = listed(answer).ok_or(MintError::Untrusted(Other))?;
    match &ask.repositories {
        Repositories::All => {}
        Repositories::Names(asked) => check_names(asked, &listed)?,
        // The name is not compared: the repository may have been renamed since.
        Repositories::Id(asked) => match listed.as_slice() {
            [(id, _)] if id == asked => {}
            [_] => return Err(MintError::Untrusted(RepositoryId)),
            _ => return Err(MintError::Untrusted(Other)),
        },
    }
    if listed.iter().any(|(id, _)| *id == 0) {
        return Err(MintError::Untrusted(RepositoryId));
    }
    let first = listed.pop();
    Ok(if listed.is_empty() { first } else { None })
}

/// The repositories of an answer, sorted as those of an `Ask`.
fn listed(answer: &Value) -> Option<Vec<(u64, RepositoryName)>> {
    let listed = Vec::<Listed>::deserialize(answer.get("repositories")?).ok()?;
    let named = |Listed { id, full_name }| Some((id, RepositoryName::parse(&full_name).ok()?));
    let mut listed: Vec<_> = listed.into_iter().map(named).collect::<Option<_>>()?;
    listed.sort_by_cached_key(|(_, name)| name.to_key());
    Some(listed)
}

fn check_names(asked: &[RepositoryName], listed: &[(u64, RepositoryName)]) -> Result<(), MintError> {
    if listed.iter().map(|(_, name)| name).eq(asked) {
        return Ok(());
    }
    // Only bare names can be asked for. Where the owners alone differ, the client named somebody else's
    // repository, and the forge did nothing wrong.
    let bare = |name: &RepositoryName| name.name().to_ascii_lowercase();
    if listed.iter().map(|(_, name)| bare(name)).eq(asked.iter().map(bare)) {
        return Err(MintError::RepositoryUnknown);
    }
    Err(MintError::Untrusted(Mismatch::Repositories))
}

fn check_permissions(asked: Permissions, answer: &Value) -> Result<(), Mismatch> {
    let effective = answer.get("permissions").map(BTreeMap::<String, String>::deserialize);
    let Some(Ok(mut effective)) = effective else {
        return Err(Mismatch::NarrowerPermissions);
    };
    let mut narrower = false;
    for (permission, access) in asked.grants() {
        match (effective.remove(permission.as_str()).as_deref(), access) {
            (Some("read"), Access::Read) | (Some("write"), Access::Write) => {}
            // GitHub leaves out what every token has.
            (None, Access::Read) if *permission == Permission::Metadata => {}
            (None, Access::Read | Access::Write) | (Some("read"), Access::Write) => narrower = true,
            (Some(_), Access::Read | Access::Write) => return Err(Mismatch::WiderPermissions),
        }
    }
    if !effective.is_empty() {
        return Err(Mismatch::WiderPermissions);
    }
    if narrower { Err(Mismatch::NarrowerPermissions) } else { Ok(()) }
}

fn check_expiry(answer: &Value, now: SystemTime) -> Option<SystemTime> {
    let expires_at = humantime::parse_rfc3339(answer.get("expires_at")?.as_str()?).ok()?;
    let life = expires_at.duration_since(now).ok()?;
    (MARGIN..=LONGEST_LIFE).contains(&life).then_some(expires_at)
}

/// What a refusal means. GitHub tells several apart by their text alone.
fn refusal(answer: &Answer, ask: &Ask, now: SystemTime) -> MintError {
    let message = answer.message();
    let missing = || MintError::PermissionMissing(ask.permissions.missing(&message));
    match answer.status.as_u16() {
        401 if names_times(&message) => MintError::Clock,
        401 => MintError::Key,
        404 => MintError::NotInstalled,
        403 if message.contains("suspended") => MintError::Suspended,
        403 | 429 => match answer.limited(now) {
            Some(wait) => MintError::RateLimited(wait),
            None if message.contains("permission") || message.contains("not accessible") => missing(),
            None => UNAVAILABLE,
        },
        422 if message.contains("permission") => missing(),
        422 if ask.repositories != Repositories::All => MintError::RepositoryUnknown,
        _ => UNAVAILABLE,
    }
}

/// `'Expiration time' claim ('exp') is too far in the future`, and the like.
fn names_times(message: &str) -> bool {
    message.contains("expiration time")
        || message.contains("issued at")
        || words(message).any(|word| word == "exp" || word == "iat")
}

fn words(message: &str) -> impl Iterator<Item = &str> {
    message.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
}
