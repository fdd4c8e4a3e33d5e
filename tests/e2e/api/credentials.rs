//! A credential of the forge in an answer of its API: what belongs there goes, what does not is told or cut.

use std::io::Read as _;

use flate2::Compression;
use flate2::read::GzEncoder;
use gitdoor_proto::v1::Identity;
use gitdoor_tests::github::{Canned, Fault, Route};
use gitdoor_tests::raw::Request;
use gitdoor_tests::wait::until;
use gitdoor_tests::world::{Run, World};
use serde_json::json;

use super::{furnished_with, get};

const METRIC: &str = "gitdoor_dataplane_credentials_in_answers_total";
const SHAPED: &str = "ghs_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789";

async fn started() -> (World, Run) {
    let world = furnished_with(|builder| builder.dataplane_flag("--log-format=json")).await;
    let run = world.register(Identity::Read).await;
    (world, run)
}

/// How many of a kind were seen.
async fn seen(world: &World, kind: &str) -> String {
    let text = world.dataplane_admin(0, "/metrics").await.text();
    let sample = format!("{METRIC}{{kind=\"{kind}\"}} ");
    text.lines().find_map(|line| line.strip_prefix(&sample)).unwrap().to_owned()
}

/// The token that the run's requests go up with.
async fn own_token(world: &World, run: &Run) -> String {
    assert_eq!(get(world, run, "/repos/acme/api/issues/3").await.status, 200);
    let asked = world.github.requests_for(Route::Rest);
    world.github.token_of(asked.last().unwrap()).unwrap().text
}

fn gzip(text: &str) -> Vec<u8> {
    let mut coded = Vec::new();
    GzEncoder::new(text.as_bytes(), Compression::default()).read_to_end(&mut coded).unwrap();
    coded
}

#[tokio::test]
async fn what_the_forge_writes_into_its_answers_is_counted_as_it_goes() {
    let (world, run) = started().await;
    for kind in ["clone-token", "download-url", "own-token", "token-shaped"] {
        assert_eq!(seen(&world, kind).await, "0", "{kind}: there from the start");
    }
    assert_eq!(get(&world, &run, "/repos/acme/api").await.status, 200);
    assert_eq!(get(&world, &run, "/repos/acme/api/contents/README.md").await.status, 200);
    world.quiet(0).await;
    for (kind, count) in [("clone-token", "1"), ("download-url", "1"), ("own-token", "0"), ("token-shaped", "0")] {
        assert_eq!(seen(&world, kind).await, count, "{kind}");
    }
    until("both are told of", async || world.events().len() == 2).await;
    assert!(world.events().iter().all(|event| event.get("credential").is_none()));
    world.finish().await;
}

#[tokio::test]
async fn the_token_that_a_request_went_up_with_never_comes_back() {
    let (world, run) = started().await;
    let token = own_token(&world, &run).await;
    let (beginning, _) = token.split_at(12);
    let long = "x".repeat(100_000);
    let json = json!({ "a": long, "b": format!("Bearer {token}"), "c": long }).to_string();
    let answers = [
        Canned::status(200).body("application/json", json.clone()),
        Canned::status(404).body("application/problem+json", json),
        Canned::status(200).body("text/plain", format!("{long}{token}")),
        Canned::status(502).body("text/html", gzip(&format!("<p>{token}"))).header("content-encoding", "gzip"),
    ];
    for (before, answer) in answers.into_iter().enumerate() {
        world.github.when(Route::Rest).then(Fault::Answer(answer));
        let request = Request::get("/api/v3/repos/acme/api/issues/3").basic(&run.bearer);
        let request = request.header("Accept-Encoding", "gzip");
        let mut connection = world.door(0).connect().await.unwrap();
        connection.write(&request.to_bytes("localhost")).await.unwrap();
        let came = connection.rest().await;
        let came = String::from_utf8_lossy(&came);
        assert!(came.contains("x-request-id") && !came.contains(beginning), "what came of the token");
        let told =
            || world.events().into_iter().filter(|event| event["credential"] == "own-token").collect::<Vec<_>>();
        until("it is told of", async || told().len() > before).await;
        assert_eq!(told()[before]["interruption"], "token-in-answer", "{:?}", told());
    }
    // In a header the whole answer goes.
    let answer = Canned::status(200).body("application/json", "{}").header("x-debug", &format!("Bearer {token}"));
    world.github.when(Route::Rest).then(Fault::Answer(answer));
    let answer = get(&world, &run, "/repos/acme/api/issues/3").await;
    assert_eq!((answer.status, answer.header("x-gitdoor-reason")), (502, Some("token-in-answer")));
    assert!(!format!("{answer:?}").contains(&token));
    world.quiet(0).await;
    assert_eq!(seen(&world, "own-token").await, "5");
    world.finish().await;
}

#[tokio::test]
async fn what_has_the_shape_of_a_token_passes_and_is_told() {
    let (world, run) = started().await;
    let body = json!({ "title": format!("leaked {SHAPED}, oh no") }).to_string();
    let answer = Canned::status(200).body("application/json", body.clone());
    world.github.when(Route::Rest).then(Fault::Answer(answer));
    let answer = get(&world, &run, "/repos/acme/api/issues/3").await;
    assert_eq!(answer.text(), body);
    let event = world.event("credential", "token-shaped").await;
    assert_eq!((&event["run"], event.get("interruption")), (&run.id.as_str().into(), None), "{event}");
    assert_eq!(seen(&world, "token-shaped").await, "1");
    world.finish().await;
}
