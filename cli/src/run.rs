//! The commands about runs: each one question to control, and its answer shown.

use std::time::Duration;

use gitdoor_proto::{RepositoryName, RunId, v1};
use v1::runs_client::RunsClient;

use crate::answer::{Incomplete, Issued, Run, Shown};
use crate::args::{Adopt, Asking, Identity, Named, Register, Rules, RunArgs, RunCommand};
use crate::client::Client;
use crate::failure::Failure;
use crate::output::Output;

/// What revoke waits beyond `--timeout`: a revocation returns when the last lease of a push has lapsed, two seconds
/// at most, and the store has been written.
const REVOKE_MARGIN: Duration = Duration::from_secs(5);
/// Runs a page of a listing; the most that control gives.
const PAGE: u32 = 1000;

/// Performs one command.
pub(crate) fn perform(args: RunArgs) -> Result<(), Failure> {
    let RunArgs { asking: Asking { control, tls, timeout, json }, command } = args;
    let client = Client::new(control, &tls.files(), timeout)?;
    let output = if json { Output::Json } else { Output::Text };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failure::Runtime)?;
    runtime.block_on(async {
        match command {
            RunCommand::Register(run) => output.registered(&register(&client, run).await?),
            RunCommand::Adopt(adoption) => output.adopted(&adopt(&client, adoption).await?),
            RunCommand::Rotate(Named { run_id }) => output.rotated(&rotate(&client, &run_id).await?),
            RunCommand::Revoke(Named { run_id }) => {
                output.revoked(&revoke(client.with_patience(REVOKE_MARGIN), &run_id).await?)
            }
            RunCommand::Show(Named { run_id }) => output.shown(&show(&client, &run_id).await?),
            RunCommand::List => output.listed(&list(&client).await?),
        }
    })
}

async fn register(client: &Client, run: Register) -> Result<Issued, Failure> {
    let Register { run_id, identity, budget, rules } = run;
    let request = registration(&run_id, identity, budget, &rules)?;
    let answer = client.ask(async |mut runs: RunsClient<_>| runs.register_run(request.clone()).await).await?;
    let v1::RegisterRunResponse { run, bearer } = answer;
    Ok(Issued::read(run, &bearer, &request.run_id)?)
}

async fn adopt(client: &Client, adoption: Adopt) -> Result<Run, Failure> {
    let Adopt { run: Named { run_id }, budget } = adoption;
    let request = v1::AdoptRunRequest { run_id: run_id.to_string(), budget: Some(to_message(budget)) };
    let answer = client.ask(async |mut runs: RunsClient<_>| runs.adopt_run(request.clone()).await).await?;
    Ok(Run::read(answer.run)?)
}

async fn rotate(client: &Client, run_id: &RunId) -> Result<Issued, Failure> {
    let request = v1::RotateBearerRequest { run_id: run_id.to_string() };
    let answer = client.ask(async |mut runs: RunsClient<_>| runs.rotate_bearer(request.clone()).await).await?;
    let v1::RotateBearerResponse { run, bearer } = answer;
    Ok(Issued::read(run, &bearer, run_id.as_str())?)
}

async fn revoke(client: Client, run_id: &RunId) -> Result<Run, Failure> {
    let request = v1::RevokeRunRequest { run_id: run_id.to_string() };
    let answer = client.ask(async |mut runs: RunsClient<_>| runs.revoke_run(request.clone()).await).await?;
    Ok(Run::read(answer.run)?)
}

async fn show(client: &Client, run_id: &RunId) -> Result<Shown, Failure> {
    let request = v1::GetRunRequest { run_id: run_id.to_string() };
    let answer = client.ask(async |mut runs: RunsClient<_>| runs.get_run(request.clone()).await).await?;
    Ok(Shown::read(answer)?)
}

async fn list(client: &Client) -> Result<Vec<Run>, Failure> {
    let mut listed = Vec::new();
    let mut request = v1::ListRunsRequest { page_size: PAGE, page_token: String::new() };
    loop {
        let answer = client.ask(async |mut runs: RunsClient<_>| runs.list_runs(request.clone()).await).await?;
        let v1::ListRunsResponse { runs, next_page_token } = answer;
        for run in runs {
            listed.push(Run::read(Some(run))?);
        }
        if next_page_token.is_empty() {
            return Ok(listed);
        }
        // A token that comes back would be asked for for ever.
        if next_page_token == request.page_token {
            return Err(Incomplete.into());
        }
        request.page_token = next_page_token;
    }
}

/// The question for a run.
pub(crate) fn registration(
    run_id: &RunId,
    identity: Identity,
    budget: Duration,
    rules: &Rules,
) -> Result<v1::RegisterRunRequest, Failure> {
    if rules.repository.is_some() && identity != Identity::Write {
        return Err(Failure::RepositoryWithoutWrite);
    }
    let identity = match identity {
        Identity::None => v1::Identity::None,
        Identity::Read => v1::Identity::Read,
        Identity::Write => v1::Identity::Write,
    };
    Ok(v1::RegisterRunRequest {
        run_id: run_id.to_string(),
        identity: identity.into(),
        repository: rules.repository.as_ref().map(RepositoryName::to_string).unwrap_or_default(),
        budget: Some(to_message(budget)),
        // In these messages zero means "not narrowed", and no flag takes a zero.
        options: Some(v1::RunOptions {
            branches: rules.branches.iter().map(ToString::to_string).collect(),
            max_refs: rules.max_refs.unwrap_or_default(),
            no_workflows: rules.no_workflows,
            read_repositories: rules.read_repositories.iter().map(ToString::to_string).collect(),
            api_burst: rules.api_burst.unwrap_or_default(),
            api_rate: rules.api_rate.unwrap_or_default(),
        }),
    })
}

/// A budget is a day at most, which fits.
fn to_message(budget: Duration) -> prost_types::Duration {
    prost_types::Duration {
        seconds: i64::try_from(budget.as_secs()).unwrap_or(i64::MAX),
        nanos: i32::try_from(budget.subsec_nanos()).unwrap_or_default(),
    }
}
