//! `Tokens`: tokens of the forge for trusted hosts, each in the ledger before it leaves.

use std::sync::Arc;
use std::time::SystemTime;

use gitdoor_proto::v1::tokens_server::Tokens;
use gitdoor_proto::{RepositoryName, is_token_id, v1};
use tonic::{Request, Response, Status};

use super::page;
use super::reads::Reads;
use crate::clock;
use crate::forge::Forge;
use crate::metrics;
use crate::mirror::{MirrorToken, MirrorTokenId};
use crate::run::Invalid;
use crate::status::{self, Failure};
use crate::store::Store;
use crate::trust::layer::Peer;

/// Hands out the tokens of one forge.
#[derive(Debug)]
pub struct TokensService<S, F> {
    store: Arc<S>,
    forge: Arc<F>,
    reads: Arc<Reads>,
}

impl<S: Store, F: Forge> TokensService<S, F> {
    /// The service.
    #[must_use]
    pub fn new(store: Arc<S>, forge: Arc<F>, reads: Arc<Reads>) -> Self {
        Self { store, forge, reads }
    }

    async fn mint(
        &self,
        message: v1::MintMirrorTokenRequest,
        asked_by: Option<String>,
        now: SystemTime,
    ) -> Result<v1::MintMirrorTokenResponse, Failure> {
        let repository = RepositoryName::parse(&message.repository).map_err(Invalid::Repository)?;
        let refused = |error| Failure::NoToken { repository: repository.clone(), error };
        let v1::MintMirrorTokenRequest { refused_token_id, .. } = message;
        if !refused_token_id.is_empty() && !is_token_id(&refused_token_id) {
            return Err(Invalid::RefusedTokenId.into());
        }
        let mut minted = self.forge.mirror_token(&repository, now).await.map_err(refused)?;
        // Only this repository's: whoever may ask for it must not drop another's.
        if minted.id() == refused_token_id && self.forge.reject(&refused_token_id, now).await {
            minted = self.forge.mirror_token(&repository, now).await.map_err(refused)?;
        }
        let row = MirrorToken::new(MirrorTokenId::generate()?, &minted, asked_by, now).map_err(refused)?;
        self.store.record_mirror_token(&row).await?;
        Ok(v1::MintMirrorTokenResponse { token: minted.expose().to_owned(), mirror_token: Some(row.into()) })
    }

    async fn list(&self, message: v1::ListMirrorTokensRequest) -> Result<v1::ListMirrorTokensResponse, Failure> {
        let size = page::size(message.page_size)?;
        let _place = self.reads.enter().await?;
        let rows = self.store.mirror_tokens(size).await?;
        Ok(v1::ListMirrorTokensResponse { mirror_tokens: page::as_fit(rows.into_iter().map(Into::into)) })
    }
}

#[tonic::async_trait]
impl<S: Store, F: Forge> Tokens for TokensService<S, F> {
    async fn mint_mirror_token(
        &self,
        request: Request<v1::MintMirrorTokenRequest>,
    ) -> Result<Response<v1::MintMirrorTokenResponse>, Status> {
        let asked_by = request.extensions().get::<Peer>().and_then(Peer::subject).map(str::to_owned);
        let message = request.into_inner();
        let asked = message.repository.clone();
        let answer = self.mint(message, asked_by, clock::now()).await;
        let row = answer.as_ref().ok().and_then(|answer| answer.mirror_token.clone());
        answered("mint_mirror", &asked, row, answer)
    }

    async fn list_mirror_tokens(
        &self,
        request: Request<v1::ListMirrorTokensRequest>,
    ) -> Result<Response<v1::ListMirrorTokensResponse>, Status> {
        answered("list_mirror", "", None, self.list(request.into_inner()).await)
    }
}

/// The end of every call: counted, logged, translated.
fn answered<T>(
    call: &'static str,
    repository: &str,
    row: Option<v1::MirrorToken>,
    answer: Result<T, Failure>,
) -> Result<Response<T>, Status> {
    let answer = answer.map(Response::new).map_err(Status::from);
    let status = status::name(answer.as_ref().map(|_| ()));
    metrics::token_call(call, status);
    let repository = status::shown(repository);
    let words = answer.as_ref().err().map(Status::message);
    tracing::info!(call, repository, token = row.map(|row| row.token_id), status, words, "tokens");
    answer
}
