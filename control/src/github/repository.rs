//! A repository's facts, read with the very token that is pinned to it.
//!
//! By its id, which a rename leaves alone: `/repositories/<id>`, where GitHub redirects a former name to. A forge
//! without that path is asked by name (<https://docs.github.com/en/rest/repos/repos#get-a-repository>); the id decides.

use std::time::{Duration, SystemTime};

use gitdoor_proto::{RefName, RepositoryName};
use http::StatusCode;
use serde::Deserialize;

use super::answer::{Answer, UNAVAILABLE};
use super::client::Client;
use crate::forge::{Facts, MintError, Minted, Mismatch, Permission};

/// GitHub's replicas may not know a token yet that is younger than this.
const YOUNG: Duration = Duration::from_secs(30);
/// How long a replica is given before the same token is tried once more.
const REPLICATION: Duration = Duration::from_secs(1);

#[derive(Deserialize)]
struct Described {
    id: u64,
    full_name: String,
    default_branch: String,
}

/// Reads the facts of the one repository that the token is pinned to.
pub(super) async fn read(client: &Client, minted: &Minted, now: SystemTime) -> Result<Facts, MintError> {
    let id = minted.repository_id().ok_or(MintError::Untrusted(Mismatch::RepositoryId))?;
    let mut answer = look(client, minted, id).await?;
    if is_unknown_yet(&answer, minted, now) {
        tokio::time::sleep(REPLICATION).await;
        answer = look(client, minted, id).await?;
    }
    match answer.status {
        StatusCode::OK => facts(&answer.body).and_then(|facts| {
            if facts.id == id { Ok(facts) } else { Err(MintError::Untrusted(Mismatch::RepositoryId)) }
        }),
        _ => Err(refusal(&answer, now)),
    }
}

async fn look(client: &Client, minted: &Minted, id: u64) -> Result<Answer, MintError> {
    let answer = client.repository(minted, id).await.map_err(|_logged| UNAVAILABLE)?;
    match minted.repository_name() {
        Some(name) if answer.status == StatusCode::NOT_FOUND => {
            client.repository_named(minted, name).await.map_err(|_logged| UNAVAILABLE)
        }
        Some(_) | None => Ok(answer),
    }
}

fn is_unknown_yet(answer: &Answer, minted: &Minted, now: SystemTime) -> bool {
    let young = now.duration_since(minted.minted_at()).unwrap_or_default() < YOUNG;
    let refused = answer.status == StatusCode::UNAUTHORIZED
        || (answer.status == StatusCode::FORBIDDEN && answer.limited(now).is_none());
    young && refused
}

/// What a description says, if a push can be judged by it.
pub(super) fn facts(body: &[u8]) -> Result<Facts, MintError> {
    let Described { id, full_name, default_branch } =
        serde_json::from_slice(body).map_err(|_unreadable| UNAVAILABLE)?;
    // A default branch that no push could name would protect nothing.
    RefName::parse(format!("refs/heads/{default_branch}").as_bytes()).map_err(|_illegal| UNAVAILABLE)?;
    let full_name = RepositoryName::parse(&full_name).map_err(|_illegal| UNAVAILABLE)?;
    Ok(Facts { id, full_name, default_branch })
}

/// Why a repository was not described.
pub(super) fn refusal(answer: &Answer, now: SystemTime) -> MintError {
    match answer.status.as_u16() {
        404 => MintError::RepositoryUnknown,
        403 if answer.message().contains("suspended") => MintError::Suspended,
        403 | 429 => match answer.limited(now) {
            Some(wait) => MintError::RateLimited(wait),
            None => MintError::PermissionMissing(Permission::Metadata),
        },
        _ => UNAVAILABLE,
    }
}
