//! Git's answers never show the token that the request went up with, whatever the upstream writes into them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gitdoor_proto::v1::{Identity, PushOutcome};
use gitdoor_tests::github::{Canned, Fault, Route};
use gitdoor_tests::pkt::{FLUSH, line};
use gitdoor_tests::raw::Request;
use gitdoor_tests::wait::until;
use gitdoor_tests::world::{Run, World};
use serde_json::{Value, json};

use crate::PROGRAM;

async fn started(identity: Identity) -> (World, Run) {
    let world = World::builder(PROGRAM).dataplane_flag("--log-format=json").start().await;
    world.github.create("acme/api");
    let run = world.register(identity).await;
    (world, run)
}

/// The token that the last request of a route went up with, plain and as it went.
fn forms(world: &World, route: Route) -> [String; 2] {
    let last = world.github.requests_for(route).pop().unwrap();
    let token = world.github.token_of(&last).unwrap().text;
    let basic = STANDARD.encode(format!("x-access-token:{token}"));
    [token, basic]
}

/// Waits until so many answers are told of as stopped for it, and are counted.
async fn stopped(world: &World, count: usize) {
    let stopped = || world.events().iter().filter(|event| told(event)).count();
    until("they are told of", async || stopped() == count).await;
    let metric = "gitdoor_dataplane_credentials_in_answers_total{kind=\"own-token\"}";
    let counted = async || {
        let text = world.dataplane_admin(0, "/metrics").await.text();
        text.lines().find_map(|line| line.strip_prefix(metric)?.trim().parse::<usize>().ok())
    };
    until("they are counted", async || counted().await == Some(count)).await;
}

fn told(event: &Value) -> bool {
    event["credential"] == "own-token"
        && (event["interruption"] == "token-in-answer" || event["reason"] == "token-in-answer")
}

#[tokio::test]
async fn a_fetch_never_brings_the_token_back() {
    let (world, run) = started(Identity::Read).await;
    world.git(&run).cloned("acme/api").await;
    let long = "x".repeat(40_000);
    let discovery = Request::get("/acme/api.git/info/refs?service=git-upload-pack").basic(&run.bearer);
    let fetch = Request::new("POST", "/acme/api.git/git-upload-pack")
        .header("Content-Type", "application/x-git-upload-pack-request")
        .body("0011command=fetch0000")
        .basic(&run.bearer);
    for form in forms(&world, Route::UploadPack) {
        let advertised =
            [line("# service=git-upload-pack\n"), FLUSH.to_vec(), line(format!("{long} {form}\n"))].concat();
        let result = [line("packfile\n"), line(format!("\x02{long} {form}\n")), FLUSH.to_vec()].concat();
        for (route, kind, body, request) in [
            (Route::FetchDiscovery, "advertisement", advertised, &discovery),
            (Route::UploadPack, "result", result, &fetch),
        ] {
            let canned = Canned::status(200).body(&format!("application/x-git-upload-pack-{kind}"), body);
            world.github.when(route).answer(canned.clone());
            let answer = world.door(0).send(request.clone()).await;
            assert_eq!((answer.status, answer.complete), (200, false), "{route:?}");
            assert!(!answer.text().contains(&form), "{route:?}");
            world.github.when(route).answer(canned.header("x-debug", &format!("Basic {form}")));
            let answer = world.door(0).send(request.clone()).await;
            assert!(answer.complete && !format!("{answer:?}").contains(&form), "{route:?}");
            assert_eq!(answer.header("x-gitdoor-reason"), Some("token-in-answer"), "{route:?}");
        }
    }
    stopped(&world, 8).await;
    world.finish().await;
}

#[tokio::test]
async fn a_push_never_brings_the_token_back_and_is_recorded_as_interrupted() {
    let (world, run) = started(Identity::Write).await;
    let git = world.git(&run).cloned("acme/api").await;
    git.commit("fix.txt", "fix\n").await;
    git.run(&["push", "origin", "HEAD:fix"]).await.ok();
    for (number, form) in forms(&world, Route::ReceivePack).into_iter().enumerate() {
        git.commit("fix.txt", &format!("fix {number}\n")).await;
        world.github.when(Route::ReceivePack).then(Fault::Progress(format!("debug: {form}\n")));
        let push = git.run(&["push", "origin", "HEAD:fix"]).await.code_is(1);
        push.says("credential").does_not_say(&form);
        assert_eq!(world.show(&run).await.pushes[0].outcome(), PushOutcome::Interrupted);
    }
    let advertised = [line("# service=git-receive-pack\n"), FLUSH.to_vec()].concat();
    for form in forms(&world, Route::ReceivePack) {
        let id = "1".repeat(40);
        let refs = [line(format!("{id} refs/heads/{form}\0report-status\n")), FLUSH.to_vec()].concat();
        let body = [advertised.as_slice(), &refs].concat();
        let canned = Canned::status(200).body("application/x-git-receive-pack-advertisement", body);
        world.github.when(Route::PushDiscovery).answer(canned);
        git.run(&["push", "origin", "HEAD:fix"]).await.code_is(128).does_not_say(&form);
    }
    stopped(&world, 4).await;
    let last = world.events().into_iter().rfind(told).unwrap();
    assert_eq!((&last["run"], &last["route"]), (&json!(run.id), &json!("push-discovery")), "{last}");
    world.finish().await;
}
