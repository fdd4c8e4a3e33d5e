//! What is on the wire between the parts, against what the previous release had there: its programs and these
//! understand each other.

mod compatible;

use std::future::ready;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};

use futures_util::{Stream, StreamExt as _};
use gitdoor_proto::endpoint::{Connector, Endpoint, TlsFiles};
use gitdoor_proto::v1::Identity;
use gitdoor_tests::raw::Request as ClientRequest;
use gitdoor_tests::world::World;
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::{Channel, Server};
use tonic::{Request, Response, Status, Streaming};

use crate::PROGRAM;
use crate::bearers::until_served;

use previous::gate_client::GateClient;
use previous::gate_server::{Gate, GateServer};
use previous::runs_client::RunsClient;
use previous::tokens_client::TokensClient;

/// The messages, clients and servers as the previous release has them.
#[expect(
    clippy::allow_attributes_without_reason,
    clippy::pedantic,
    unreachable_pub,
    reason = "generated; the comments are in the .proto files"
)]
mod previous {
    tonic::include_proto!("gitdoor.v1");
}

async fn channel(address: &str) -> Channel {
    let endpoint: Endpoint = address.parse().unwrap();
    let connector = Connector::new(std::slice::from_ref(&endpoint), &TlsFiles::default()).unwrap();
    let address = endpoint.resolve().await.unwrap().remove(0);
    connector.connect(&address).await.unwrap()
}

/// Stands between data planes and a control, and knows only what the previous release knows: to each it is the other,
/// as that was.
#[derive(Clone, Default)]
struct Between(Arc<OnceLock<String>>);

impl Between {
    /// Serves on a port of its own; its address.
    async fn serve(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let served = Server::builder().add_service(GateServer::new(self.clone()));
        tokio::spawn(served.serve_with_incoming(TcpListenerStream::new(listener)));
        format!("http://{address}")
    }

    async fn control(&self) -> Result<GateClient<Channel>, Status> {
        let address = self.0.get().ok_or_else(|| Status::unavailable("control is not known yet"))?;
        Ok(GateClient::new(channel(address).await))
    }
}

#[tonic::async_trait]
impl Gate for Between {
    type SessionStream = Pin<Box<dyn Stream<Item = Result<previous::SessionResponse, Status>> + Send>>;

    async fn session(
        &self,
        request: Request<Streaming<previous::SessionRequest>>,
    ) -> Result<Response<Self::SessionStream>, Status> {
        let questions = request.into_inner().take_while(|question| ready(question.is_ok()));
        let questions = questions.filter_map(|question| ready(question.ok()));
        let answers = self.control().await?.session(questions).await?.into_inner();
        Ok(Response::new(Box::pin(answers)))
    }

    async fn authorize(
        &self,
        request: Request<previous::AuthorizeRequest>,
    ) -> Result<Response<previous::AuthorizeResponse>, Status> {
        self.control().await?.authorize(request.into_inner()).await
    }
}

#[tokio::test]
async fn planes_of_this_release_and_of_the_previous_one_understand_each_other() {
    let between = Between::default();
    let flag = format!("--control={}", between.serve().await);
    let world = World::builder(PROGRAM).dataplane_flag(&flag).dataplane_flag("--shim=127.0.0.1").start().await;
    between.0.set(world.gate_address_of(0)).unwrap();
    world.github.seed("acme/api").furnished().create();
    let run = world.register(Identity::Write).await;
    until_served(&world, 0).await;
    let git = world.git(&run).cloned("acme/api").await;
    git.commit("a", "a").await;
    git.run(&["push", "origin", "HEAD:fix-x"]).await.ok();
    git.run(&["push", "origin", "HEAD:main"]).await.code_is(1).says("refused: default branch");
    for path in ["/api/v3/repos/acme/api", "/api/v3/gitdoor/run"] {
        let request = ClientRequest::get(path).basic(&run.bearer);
        let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let answer = world.door(0).send(request.header("traceparent", trace)).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
    let outcomes = world.show(&run).await.pushes.into_iter().map(|push| push.outcome().as_str_name());
    assert_eq!(outcomes.collect::<Vec<_>>(), ["PUSH_OUTCOME_REFUSED", "PUSH_OUTCOME_DONE"]);
    world.github.expire_tokens();
    git.run(&["fetch"]).await.ok();
    world.revoke(&run).await;
    git.run(&["fetch"]).await.code_is(128).says("revoked");
    world.finish().await;
}

#[tokio::test]
async fn a_bot_of_the_previous_release_registers_shows_adopts_rotates_and_revokes() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    let mut runs = RunsClient::new(channel(&world.runs_address()).await);
    let registered = runs
        .register_run(previous::RegisterRunRequest {
            run_id: "r1".into(),
            identity: previous::Identity::Write.into(),
            repository: "acme/api".into(),
            options: Some(previous::RunOptions { branches: vec!["agent/*".into()], ..Default::default() }),
            ..Default::default()
        })
        .await
        .unwrap()
        .into_inner();
    let first = world.keep("r1", registered.bearer);
    let git = world.git(&first).cloned("acme/api").await;
    git.commit("a", "a").await;
    git.run(&["push", "origin", "HEAD:agent/a"]).await.ok();
    git.run(&["push", "origin", "HEAD:b"]).await.code_is(1);
    let run_id = || "r1".to_owned();
    let shown = runs.get_run(previous::GetRunRequest { run_id: run_id() }).await.unwrap().into_inner();
    let run = shown.run.unwrap();
    assert_eq!((run.state(), run.identity()), (previous::RunState::Live, previous::Identity::Write));
    assert_eq!(run.binding.unwrap().repository, "acme/api");
    assert_eq!(run.options.unwrap().branches, ["agent/*"]);
    let outcomes: Vec<_> = shown.pushes.iter().map(previous::Push::outcome).collect();
    assert_eq!(outcomes, [previous::PushOutcome::Refused, previous::PushOutcome::Done]);
    assert!(shown.pushes.iter().all(|push| !push.request_id.is_empty() && push.closed_at.is_some()));
    let adopted = runs.adopt_run(previous::AdoptRunRequest { run_id: run_id(), budget: None }).await.unwrap();
    assert!(adopted.into_inner().run.unwrap().adopted_at.is_some());
    let rotated = runs.rotate_bearer(previous::RotateBearerRequest { run_id: run_id() }).await.unwrap();
    let second = world.keep("r1", rotated.into_inner().bearer);
    assert_ne!(first.bearer, second.bearer);
    let listed = runs.list_runs(previous::ListRunsRequest::default()).await.unwrap().into_inner();
    assert_eq!(listed.runs.len(), 1);
    let revoked = runs.revoke_run(previous::RevokeRunRequest { run_id: run_id() }).await.unwrap().into_inner();
    assert_eq!(revoked.run.unwrap().state(), previous::RunState::Revoked);
    world.finish().await;
}

#[tokio::test]
async fn a_mirror_of_the_previous_release_gets_its_token() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    let mut tokens = TokensClient::new(channel(&world.runs_address()).await);
    let request = previous::MintMirrorTokenRequest { repository: "acme/api".into(), ..Default::default() };
    let minted = tokens.mint_mirror_token(request).await.unwrap().into_inner();
    assert!(minted.token.starts_with("ghs_"));
    let listed =
        tokens.list_mirror_tokens(previous::ListMirrorTokensRequest::default()).await.unwrap().into_inner();
    assert_eq!(listed.mirror_tokens, [minted.mirror_token.unwrap()]);
    world.finish().await;
}
