//! Tokens for mirrors, as the ledger has them: that one was handed out, never the token.

use std::time::SystemTime;

use gitdoor_proto::{RepositoryName, v1};

use crate::forge::{MintError, Minted, Mismatch};
use crate::id::id;

id! {
    /// Names a row.
    MirrorTokenId
}

/// A row of the ledger: a token was handed out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MirrorToken {
    /// Its id.
    pub id: MirrorTokenId,
    /// The repository as the forge spells it.
    pub repository: RepositoryName,
    /// The forge's number of it.
    pub repository_id: u64,
    /// Names the token without showing it.
    pub token_id: String,
    /// The subject of the certificate of who asked, where it had one.
    pub asked_by: Option<String>,
    /// When the token was minted.
    pub minted_at: SystemTime,
    /// When it was handed out.
    pub handed_out_at: SystemTime,
    /// When it ends.
    pub expires_at: SystemTime,
}

impl MirrorToken {
    /// The row of a token that is handed out now. A token that is pinned to no repository has none.
    pub fn new(
        id: MirrorTokenId,
        minted: &Minted,
        asked_by: Option<String>,
        now: SystemTime,
    ) -> Result<Self, MintError> {
        let repository = minted.repository_name().cloned().zip(minted.repository_id());
        let (repository, repository_id) = repository.ok_or(MintError::Untrusted(Mismatch::Repositories))?;
        Ok(Self {
            id,
            repository,
            repository_id,
            token_id: minted.id().to_owned(),
            asked_by,
            minted_at: minted.minted_at(),
            handed_out_at: now,
            expires_at: minted.expires_at(),
        })
    }
}

impl From<MirrorToken> for v1::MirrorToken {
    fn from(row: MirrorToken) -> Self {
        let MirrorToken { id, repository, repository_id, token_id, asked_by, minted_at, handed_out_at, expires_at } =
            row;
        Self {
            mirror_token_id: id.to_string(),
            repository: repository.to_string(),
            repository_id,
            token_id,
            asked_by: asked_by.unwrap_or_default(),
            minted_at: Some(minted_at.into()),
            handed_out_at: Some(handed_out_at.into()),
            expires_at: Some(expires_at.into()),
        }
    }
}
