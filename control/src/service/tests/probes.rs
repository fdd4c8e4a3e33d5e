//! gRPC's health and reflection on both listeners.

use std::collections::BTreeSet;
use std::time::Duration;

use tokio::time::timeout;
use tonic::transport::Channel;
use tonic::{Code, Streaming};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

use super::listeners::{Listeners, stalling};
use crate::service::admission::Times;
use crate::store::postgres::server::Server;
use crate::store::postgres::{Config, Postgres};

/// Far longer than a change of health takes.
const HANGS: Duration = Duration::from_mins(1);

fn of(service: &str) -> HealthCheckRequest {
    HealthCheckRequest { service: service.into() }
}

async fn check(health: &mut HealthClient<Channel>, service: &str) -> ServingStatus {
    health.check(of(service)).await.unwrap().into_inner().status()
}

async fn next(watch: &mut Streaming<HealthCheckResponse>) -> Option<ServingStatus> {
    let news = timeout(HANGS, watch.message()).await.expect("the health changes by itself");
    news.unwrap().map(|answer| answer.status())
}

#[tokio::test]
async fn the_health_of_each_service_of_a_listener_is_told_and_of_no_other() {
    let (control, _folder) = stalling(Times::default()).await;
    let runs = (HealthClient::new(control.runs().await), vec!["gitdoor.v1.Runs", "gitdoor.v1.Tokens"]);
    let gate = (HealthClient::new(control.gate().await), vec!["gitdoor.v1.Gate"]);
    for ((mut health, services), other) in [(runs, "gitdoor.v1.Gate"), (gate, "gitdoor.v1.Runs")] {
        for service in services.into_iter().chain([""]) {
            assert_eq!(check(&mut health, service).await, ServingStatus::Serving, "{service}");
        }
        for unknown in [other, "x"] {
            let refused = health.check(of(unknown)).await.unwrap_err();
            assert_eq!(refused.code(), Code::NotFound);
            assert!(refused.message().contains("this listener serves gitdoor.v1."), "{refused}");
            assert_eq!(health.watch(of(unknown)).await.unwrap_err().code(), Code::NotFound);
        }
    }
}

#[tokio::test]
async fn who_watches_hears_that_control_drains_and_does_not_hold_it_up() {
    let (control, _folder) = stalling(Times::default()).await;
    let mut watches = Vec::new();
    for channel in [control.runs().await, control.gate().await] {
        let mut watch = HealthClient::new(channel).watch(of("")).await.unwrap().into_inner();
        assert_eq!(next(&mut watch).await, Some(ServingStatus::Serving));
        watches.push(watch);
    }
    control.drain.cancel();
    for watch in &mut watches {
        assert_eq!(next(watch).await, Some(ServingStatus::NotServing));
        assert_eq!(next(watch).await, None);
    }
    timeout(HANGS, control.ended()).await.expect("nothing is left to wait for");
}

#[tokio::test]
async fn the_health_follows_a_postgresql_that_stops_and_comes_back() {
    let mut server = Server::start();
    let store = Postgres::open(&Config::new(&server.url("postgres"))).await.unwrap();
    let control = Listeners::start(store, Times::default()).await;
    let mut health = HealthClient::new(control.gate().await);
    let mut watch = health.watch(of("gitdoor.v1.Gate")).await.unwrap().into_inner();
    assert_eq!(next(&mut watch).await, Some(ServingStatus::Serving));
    server.kill();
    assert_eq!(next(&mut watch).await, Some(ServingStatus::NotServing));
    assert_eq!(check(&mut health, "").await, ServingStatus::NotServing);
    server.restart();
    assert_eq!(next(&mut watch).await, Some(ServingStatus::Serving));
    assert_eq!(check(&mut health, "").await, ServingStatus::Serving);
}

/// The services that a version of reflection lists, and whether it finds this name.
macro_rules! reflected {
    ($version:ident, $channel:expr, $name:expr) => {{
        use tonic_reflection::pb::$version::ServerReflectionRequest;
        use tonic_reflection::pb::$version::server_reflection_client::ServerReflectionClient;
        use tonic_reflection::pb::$version::server_reflection_request::MessageRequest;
        use tonic_reflection::pb::$version::server_reflection_response::MessageResponse;
        let ask = async |question: MessageRequest| {
            let request = ServerReflectionRequest { host: String::new(), message_request: Some(question) };
            let mut client = ServerReflectionClient::new($channel.clone());
            let answers = client.server_reflection_info(tokio_stream::once(request)).await.unwrap();
            answers.into_inner().message().await.map(|answer| answer.unwrap().message_response.unwrap())
        };
        let Ok(MessageResponse::ListServicesResponse(list)) =
            ask(MessageRequest::ListServices(String::new())).await
        else {
            panic!("no list")
        };
        let listed: BTreeSet<String> = list.service.into_iter().map(|service| service.name).collect();
        (listed, ask(MessageRequest::FileContainingSymbol($name.into())).await.is_ok())
    }};
}

#[tokio::test]
async fn reflection_lists_exactly_the_services_of_its_listener_and_describes_no_other() {
    let (control, _folder) = stalling(Times::default()).await;
    let (runs, gate) = (control.runs().await, control.gate().await);
    let common = [
        "grpc.health.v1.Health",
        "grpc.reflection.v1.ServerReflection",
        "grpc.reflection.v1alpha.ServerReflection",
    ];
    for (channel, own, other) in [
        (runs, vec!["gitdoor.v1.Runs", "gitdoor.v1.Tokens"], "gitdoor.v1.Gate"),
        (gate, vec!["gitdoor.v1.Gate"], "gitdoor.v1.Runs"),
    ] {
        let expected: BTreeSet<String> = own.iter().chain(&common).map(ToString::to_string).collect();
        assert_eq!(reflected!(v1, channel, own[0]), (expected.clone(), true));
        assert_eq!(reflected!(v1alpha, channel, own[0]), (expected.clone(), true));
        assert_eq!(reflected!(v1, channel, other), (expected, false));
        assert!(reflected!(v1, channel, "gitdoor.v1.Run").1, "a message that both name");
    }
}

#[tokio::test]
async fn a_conversation_with_reflection_ends_by_itself() {
    use tonic_reflection::pb::v1::ServerReflectionRequest;
    use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
    let (control, _folder) = stalling(Times::default()).await;
    let mut client = ServerReflectionClient::new(control.runs().await);
    let silent = tokio_stream::pending::<ServerReflectionRequest>();
    let mut answers = client.server_reflection_info(silent).await.unwrap().into_inner();
    let ended = timeout(HANGS, answers.message()).await.expect("it ends").unwrap_err();
    assert_eq!(ended.code(), Code::DeadlineExceeded);
}
