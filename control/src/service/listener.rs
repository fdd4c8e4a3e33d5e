//! What each listener serves: its services with their limits, gRPC's health, and reflection on exactly these.

use gitdoor_proto::descriptors;
use gitdoor_proto::v1::gate_server::{self, GateServer};
use gitdoor_proto::v1::runs_server::{self, RunsServer};
use gitdoor_proto::v1::tokens_server::{self, TokensServer};
use tokio::sync::watch;
use tonic::service::Routes;
use tonic_health::pb::health_server::HealthServer;
use tonic_reflection::server::{Builder, Error};

use super::gate::GateService;
use super::health::{Health, State};
use super::runs::RunsService;
use super::tokens::TokensService;
use crate::forge::Forge;
use crate::limit::{ANSWER_BYTES, GATE_MESSAGE_BYTES, PROBE_BYTES, RUNS_MESSAGE_BYTES};
use crate::store::Store;

/// For the owners of runs and the keepers of mirrors.
pub fn runs<S: Store, F: Forge>(
    runs: RunsService<S, F>,
    tokens: TokensService<S, F>,
    state: watch::Receiver<State>,
) -> Result<Routes, Error> {
    let runs =
        RunsServer::new(runs).max_decoding_message_size(RUNS_MESSAGE_BYTES).max_encoding_message_size(ANSWER_BYTES);
    let tokens = TokensServer::new(tokens)
        .max_decoding_message_size(RUNS_MESSAGE_BYTES)
        .max_encoding_message_size(ANSWER_BYTES);
    let health = Health::new(state, &[runs_server::SERVICE_NAME, tokens_server::SERVICE_NAME]);
    probed(Routes::new(runs).add_service(tokens), health, descriptors::RUNS_LISTENER)
}

/// For data planes.
pub fn gate<S: Store, F: Forge>(gate: GateService<S, F>, state: watch::Receiver<State>) -> Result<Routes, Error> {
    let gate =
        GateServer::new(gate).max_decoding_message_size(GATE_MESSAGE_BYTES).max_encoding_message_size(ANSWER_BYTES);
    let health = Health::new(state, &[gate_server::SERVICE_NAME]);
    probed(Routes::new(gate), health, descriptors::GATE_LISTENER)
}

/// With what every listener has.
fn probed(routes: Routes, health: Health, services: &'static [u8]) -> Result<Routes, Error> {
    let reflection = || {
        let described = [
            services,
            tonic_health::pb::FILE_DESCRIPTOR_SET,
            tonic_reflection::pb::v1::FILE_DESCRIPTOR_SET,
            tonic_reflection::pb::v1alpha::FILE_DESCRIPTOR_SET,
        ];
        // Both versions of its own are served, and either tells of both.
        let builder = Builder::configure().include_reflection_service(false);
        described.into_iter().fold(builder, Builder::register_encoded_file_descriptor_set)
    };
    let health = HealthServer::new(health).max_decoding_message_size(PROBE_BYTES);
    let v1 = reflection().build_v1()?.max_decoding_message_size(PROBE_BYTES);
    let v1alpha = reflection().build_v1alpha()?.max_decoding_message_size(PROBE_BYTES);
    Ok(routes.add_service(health).add_service(v1).add_service(v1alpha))
}
