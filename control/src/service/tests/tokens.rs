//! Tokens for mirrors.

use std::time::Duration;

use gitdoor_proto::v1;
use gitdoor_proto::v1::tokens_client::TokensClient;
use tonic::Code;
use tonic::transport::Channel;

use super::listeners::{short, stalling};
use crate::forge::{MintError, Mismatch, Permission};
use crate::service::admission::Times;
use crate::store::Store as _;

async fn mint(
    tokens: &mut TokensClient<Channel>,
    repository: &str,
) -> Result<v1::MintMirrorTokenResponse, tonic::Status> {
    mint_but(tokens, repository, "").await
}

async fn mint_but(
    tokens: &mut TokensClient<Channel>,
    repository: &str,
    refused: &str,
) -> Result<v1::MintMirrorTokenResponse, tonic::Status> {
    let message = v1::MintMirrorTokenRequest { repository: repository.into(), refused_token_id: refused.into() };
    Ok(tokens.mint_mirror_token(message).await?.into_inner())
}

async fn list(tokens: &mut TokensClient<Channel>, page_size: u32) -> Vec<v1::MirrorToken> {
    let answer = tokens.list_mirror_tokens(v1::ListMirrorTokensRequest { page_size }).await.unwrap();
    answer.into_inner().mirror_tokens
}

#[tokio::test]
async fn a_mirrors_token_is_for_one_repository_and_each_that_is_handed_out_has_a_row_without_it() {
    let (control, folder) = stalling(Times::default()).await;
    let mut tokens = TokensClient::new(control.runs().await);
    let first = mint(&mut tokens, "ACME/api").await.unwrap();
    let again = mint(&mut tokens, "acme/api").await.unwrap();
    let other = mint(&mut tokens, "acme/web").await.unwrap();
    assert_eq!(control.forge.asked(), ["mirror-7", "mirror-7", "mirror-8"]);
    assert_eq!((first.token.as_str(), again.token.as_str()), ("ghs_mirror-7_0", "ghs_mirror-7_0"));
    let rows = [other.mirror_token.unwrap(), again.mirror_token.unwrap(), first.mirror_token.unwrap()];
    assert_eq!(list(&mut tokens, 0).await, rows);
    assert_eq!(list(&mut tokens, 1).await, rows[..1]);
    let [web, api, _] = rows;
    assert_eq!((web.repository.as_str(), web.repository_id), ("acme/web", 8));
    assert_eq!((api.repository.as_str(), api.repository_id), ("acme/api", 7));
    assert!(web.token_id.len() == 16 && web.token_id != api.token_id && web.asked_by.is_empty());
    let (handed_out, expires) = (web.handed_out_at.unwrap().seconds, web.expires_at.unwrap().seconds);
    assert_eq!(expires, handed_out + 3600);

    let mut searched = 0;
    for file in std::fs::read_dir(folder.path()).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        let holds = |text: &[u8]| bytes.windows(text.len()).any(|window| window == text);
        searched += usize::from(holds(web.token_id.as_bytes()));
        assert!(!holds(b"ghs_"));
    }
    assert_eq!(searched, 1, "the row is in one of the files, which the search therefore reads");
}

#[tokio::test]
async fn a_token_that_the_forge_refuses_is_replaced_once_a_minute_and_no_others_is() {
    let (control, _folder) = stalling(Times::default()).await;
    let mut tokens = TokensClient::new(control.runs().await);
    let (first, web) = (mint(&mut tokens, "acme/api").await.unwrap(), mint(&mut tokens, "acme/web").await.unwrap());
    let id = |minted: &v1::MintMirrorTokenResponse| minted.mirror_token.as_ref().unwrap().token_id.clone();
    let other = mint_but(&mut tokens, "acme/api", &id(&web)).await.unwrap();
    assert_eq!(other.token, first.token, "what another repository has is not this one's to refuse");
    assert_eq!(mint(&mut tokens, "acme/web").await.unwrap().token, web.token);

    let second = mint_but(&mut tokens, "acme/api", &id(&first)).await.unwrap();
    assert!(second.token != first.token && id(&second) != id(&first));
    assert_eq!(
        mint(&mut tokens, "acme/api").await.unwrap().token,
        second.token,
        "and whoever asks next has it, too"
    );
    let late = mint_but(&mut tokens, "acme/api", &id(&first)).await.unwrap();
    assert_eq!(late.token, second.token, "it was replaced already");
    let soon = mint_but(&mut tokens, "acme/api", &id(&second)).await.unwrap();
    assert_eq!(soon.token, second.token, "a forge that refuses good tokens makes control mint no storm of them");
    control.forge.a_minute_passes();
    let third = mint_but(&mut tokens, "acme/api", &id(&second)).await.unwrap();
    assert_ne!(third.token, second.token);

    let invalid = mint_but(&mut tokens, "acme/api", "ghs_hush").await.unwrap_err();
    assert_eq!(invalid.code(), Code::InvalidArgument);
    assert!(
        invalid.message().starts_with("refused_token_id: ") && !invalid.message().contains("hush"),
        "{invalid}"
    );
}

#[tokio::test]
async fn no_token_leaves_before_its_row_is_written() {
    let (control, _folder) = stalling(Times::default()).await;
    let hasty = control.beside(short()).await;
    let mut tokens = TokensClient::new(control.runs().await);
    control.store.stall(true);
    let late = mint(&mut TokensClient::new(hasty.runs().await), "acme/api").await.unwrap_err();
    assert_eq!(late.code(), Code::DeadlineExceeded);
    assert_eq!(hasty.forge.asked(), ["mirror-7"], "it was there to be handed out");
    control.store.stall(false);
    let minted = mint(&mut tokens, "acme/api").await.unwrap();
    let rows = control.store.mirror_tokens(9).await.unwrap();
    let ids: Vec<_> = rows.iter().map(|row| row.id.to_string()).collect();
    assert_eq!(ids, [minted.mirror_token.unwrap().mirror_token_id]);
}

#[tokio::test]
async fn a_token_that_is_not_given_has_a_status_and_words_and_no_row() {
    let (control, _folder) = stalling(Times::default()).await;
    let mut tokens = TokensClient::new(control.runs().await);
    for repository in ["", "acme", "acme/api/x", "https://github.com/acme/api"] {
        let invalid = mint(&mut tokens, repository).await.unwrap_err();
        assert_eq!(invalid.code(), Code::InvalidArgument, "{repository}");
        assert!(invalid.message().starts_with("repository: "), "{invalid}");
    }
    let unknown = mint(&mut tokens, "acme/none").await.unwrap_err();
    assert_eq!(unknown.code(), Code::FailedPrecondition);
    assert!(unknown.message().starts_with("no token for acme/none: this repository is not"), "{unknown}");
    let second = Duration::from_secs(1);
    for (error, code, words) in [
        (MintError::NotInstalled, Code::FailedPrecondition, "not installed"),
        (MintError::Suspended, Code::FailedPrecondition, "suspended"),
        (MintError::PermissionMissing(Permission::PullRequests), Code::FailedPrecondition, "pull_requests"),
        (MintError::Untrusted(Mismatch::WiderPermissions), Code::FailedPrecondition, "wider permissions"),
        (MintError::Key, Code::FailedPrecondition, "key"),
        (MintError::Clock, Code::FailedPrecondition, "clock"),
        (MintError::RateLimited(second * 90), Code::Unavailable, "90 seconds"),
        (MintError::Unavailable(second), Code::Unavailable, "cannot be reached"),
    ] {
        control.forge.fail(Some(error));
        let refused = mint(&mut tokens, "acme/api").await.unwrap_err();
        assert_eq!(refused.code(), code, "{error}");
        assert!(refused.message().contains(words), "{refused}");
    }
    assert_eq!(list(&mut tokens, 0).await, []);
    let long = tokens.list_mirror_tokens(v1::ListMirrorTokensRequest { page_size: 1001 }).await.unwrap_err();
    assert_eq!(long.code(), Code::InvalidArgument);
}
