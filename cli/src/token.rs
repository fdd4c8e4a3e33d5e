//! The commands about tokens for mirrors. A token goes to standard output, by the command that asked for it.

use std::io::{self, Read as _};

use gitdoor_proto::{RepositoryName, v1};
use v1::tokens_client::TokensClient;

use crate::answer::mirror::{Minted, MirrorToken};
use crate::args::{Asking, Mirror, TokenArgs, TokenCommand};
use crate::client::Client;
use crate::credential::{Host, QUESTION_BYTES, Question};
use crate::failure::Failure;
use crate::output::{self, Output};

/// Rows of a listing; the most that control gives.
const PAGE: u32 = 1000;

/// Performs one command.
pub(crate) fn perform(args: TokenArgs) -> Result<(), Failure> {
    let TokenArgs { asking: Asking { control, tls, timeout, json }, command } = args;
    let client = Client::new(control, &tls.files(), timeout)?;
    let output = if json { Output::Json } else { Output::Text };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::Runtime)?;
    match command {
        TokenCommand::Mirror(Mirror { repository, credential: false, action: None, forge_host: _ }) => {
            output.minted(&runtime.block_on(mint(&client, &repository, None))?)
        }
        TokenCommand::Mirror(Mirror { repository, credential: true, action: Some(action), forge_host: host }) => {
            match action.as_str() {
                "get" if read_question()?.is_for(&host, &repository) => {
                    output::credential(&runtime.block_on(mint(&client, &repository, None))?)
                }
                "get" => {
                    output::not_for_this(&host, &repository);
                    Ok(())
                }
                "erase" => runtime.block_on(erase(&client, &host, &repository)),
                // What git asks of a helper besides, such as to keep a credential, is not for this one.
                _ => Ok(()),
            }
        }
        TokenCommand::Mirror(Mirror { credential, .. }) => Err(Failure::CredentialAction { credential }),
        TokenCommand::List => output.mirror_tokens(&runtime.block_on(list(&client))?),
    }
}

fn read_question() -> Result<Question, Failure> {
    let mut question = Vec::new();
    io::stdin().lock().take(QUESTION_BYTES).read_to_end(&mut question).map_err(Failure::Input)?;
    Ok(Question::read(&question)?)
}

/// The host refused what git gives up: control is told, so that what it gives next is another.
async fn erase(client: &Client, host: &Host, repository: &RepositoryName) -> Result<(), Failure> {
    let question = read_question()?;
    if question.is_for(host, repository)
        && let Some(refused) = question.into_token_id()
    {
        mint(client, repository, Some(refused)).await?;
    }
    Ok(())
}

async fn mint(client: &Client, repository: &RepositoryName, refused: Option<String>) -> Result<Minted, Failure> {
    let request = v1::MintMirrorTokenRequest {
        repository: repository.to_string(),
        refused_token_id: refused.unwrap_or_default(),
    };
    let question = async |mut tokens: TokensClient<_>| tokens.mint_mirror_token(request.clone()).await;
    Ok(Minted::read(client.ask_tokens(question).await?, repository)?)
}

async fn list(client: &Client) -> Result<Vec<MirrorToken>, Failure> {
    let request = v1::ListMirrorTokensRequest { page_size: PAGE };
    let question = async |mut tokens: TokensClient<_>| tokens.list_mirror_tokens(request).await;
    let rows = client.ask_tokens(question).await?.mirror_tokens;
    Ok(rows.into_iter().map(MirrorToken::read).collect::<Result<_, _>>()?)
}
