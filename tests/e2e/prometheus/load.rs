//! A little of everything that operators are to see, while Prometheus looks on.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use gitdoor_proto::v1::{Identity, ListRunsRequest, PushOutcome};
use gitdoor_tests::github::{Canned, Fault, Route};
use gitdoor_tests::pkt;
use gitdoor_tests::prometheus::Prometheus;
use gitdoor_tests::raw::Request;
use gitdoor_tests::wait::until;
use gitdoor_tests::world::{Run, World, run_to_exit};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tonic::Code;

use crate::PROGRAM;
use crate::bearers::until_served;
use crate::restart::outcome;
use crate::revocation::Cargo;

/// Controls and data planes, dead ones too.
const PLACES: usize = 4;
/// Searches that the installation has.
const SEARCHES: u64 = 20;
/// Close to what many a CDN lets through.
const LARGE: usize = 70 << 20;

/// What a push brings, and as much of it as goes up before its end.
const CARGO: usize = 512 * 1024;
const PIECE: usize = 192 * 1024;

/// Lets it all happen; at the end the second data plane is dead, and the rest is well.
pub(super) async fn everything(world: &mut World, prometheus: &Prometheus) {
    world.github.seed("acme/api").furnished().create();
    world.github.create("acme/web");
    world.github.set_rate_limit("search", SEARCHES);
    let writer = bound(world).await;
    pushes(world, &writer).await;
    api(world, &writer, 1).await;
    // Of what comes after this, it sees how much there was before.
    prometheus.scraped(PLACES).await;
    large_push(world, &writer).await;
    api(world, &writer, SEARCHES - 2).await;
    strangers(world).await;
    mirror(world).await;
    failed_mints(world).await;
    let lost = lost_dataplane(world).await;
    tokio::join!(certificates(world), a_revocation_within_a_push(world));
    silent_store(world).await;
    no_control(world, &writer, prometheus).await;
    assert_eq!(outcome(world, &lost).await, PushOutcome::Unknown);
    world.revoke(&writer).await;
}

async fn bound(world: &World) -> Run {
    world.registration(Identity::Write).repository("acme/api").send().await.unwrap()
}

async fn get(world: &World, run: &Run, path: &str) -> u16 {
    world.door(0).send(Request::get(path).basic(&run.bearer)).await.status
}

async fn pushes(world: &World, writer: &Run) {
    for door in [0, 1] {
        let git = world.git_at(door, &writer.bearer).cloned("acme/api").await;
        git.commit("a", format!("{door}")).await;
        git.run(&["push", "origin", &format!("HEAD:fix-{door}")]).await.ok();
        git.run(&["push", "origin", "HEAD:main"]).await.code_is(1);
        git.run(&["push", "origin", "HEAD:refs/tags/v1"]).await.code_is(1);
        git.run(&["push", "origin", &format!(":fix-{door}")]).await.code_is(1);
        git.run(&["push", &git.url("acme/web"), "HEAD:x"]).await.code_is(128);
    }
    world.github.forbid_ref("acme/api", "refs/heads/held");
    let git = world.git(writer).cloned("acme/api").await;
    git.run(&["push", "origin", "HEAD:held"]).await.code_is(1);
}

/// Not a pack: it goes up, and the upstream's git says what it thinks of it.
async fn large_push(world: &World, writer: &Run) {
    let section = pkt::commands(&[(pkt::ZERO, &"a".repeat(40), "refs/heads/large")], pkt::GIT_CAPABILITIES);
    let large = Request::push("acme/api", [section, b"PACK".to_vec(), vec![0; LARGE]].concat());
    assert_eq!(world.door(0).send(large.basic(&writer.bearer)).await.status, 200, "a report");
}

async fn api(world: &World, run: &Run, searches: u64) {
    for _ in 0..searches {
        assert_eq!(get(world, run, "/api/v3/search/issues?q=greet").await, 200);
    }
    let told = json!({ "title": "ghs_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789" }).to_string();
    world.github.when(Route::Rest).then(Fault::Answer(Canned::status(200).body("application/json", told)));
    assert_eq!(get(world, run, "/api/v3/repos/acme/api/issues/3").await, 200);
    let mutation = Request::post("/api/graphql").header("Content-Type", "application/json").basic(&run.bearer);
    world.door(0).send(mutation.body(json!({ "query": "mutation{x}" }).to_string())).await;
}

async fn strangers(world: &World) {
    let nobody = Run { id: "nobody".to_owned(), bearer: "no bearer".to_owned() };
    assert_eq!(get(world, &nobody, "/acme/api.git/info/refs?service=git-upload-pack").await, 401);
    assert_eq!(get(world, &nobody, "/wp-login.php").await, 404);
    let gate = world.gate_address_of(0);
    let mut plain = TcpStream::connect(gate.trim_start_matches("https://")).await.unwrap();
    plain.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    let _hung_up = plain.read(&mut [0; 1]).await;
}

async fn mirror(world: &World) {
    for (name, code) in [("mirror", 0), ("bot", 1)] {
        let mut arguments = ["token", "mirror", "--repository", "acme/api"].map(str::to_owned).to_vec();
        arguments.push(format!("--control={}", world.runs_address()));
        arguments.extend(world.trust().client_flags(name));
        let exit = run_to_exit(PROGRAM.as_ref(), "__gitdoor", &arguments).await;
        assert_eq!(exit.code, Some(code), "{}", exit.stderr);
    }
}

/// A certificate that ends in two days, and then files that are none.
async fn certificates(world: &World) {
    let folder = world.path().join("dataplane");
    let leaf = world.short_leaf(Duration::from_hours(48));
    for (certificate, outcome) in [(leaf.certificate.as_str(), "replaced"), ("no certificate", "kept")] {
        fs::write(folder.join("key.pem"), &leaf.key).unwrap();
        fs::write(folder.join("cert.pem"), certificate).unwrap();
        let never = format!("_reloads_total{{certificate=\"public\",outcome=\"{outcome}\"}} 0\n");
        until("the files were read again", async || {
            !world.dataplane_admin(0, "/metrics").await.text().contains(&never)
        })
        .await;
    }
}

async fn failed_mints(world: &World) {
    for (repository, status) in [("acme/m0", 500), ("acme/m1", 500)] {
        world.github.create(repository);
        let run = world.register(Identity::Write).await;
        world.github.when(Route::Mint).then(Fault::Answer(Canned::status(status)));
        let discovery = format!("/{repository}.git/info/refs?service=git-receive-pack");
        assert_eq!(get(world, &run, &discovery).await, 503);
    }
}

/// A data plane that is killed within a push.
async fn lost_dataplane(world: &mut World) -> Run {
    let run = bound(world).await;
    let cargo = Cargo::load(world, &run, 1, "acme/api", CARGO).await;
    let mut push = cargo.start(&world.door(1), &run, "refs/heads/lost").await.unwrap();
    push.send(PIECE).await;
    until("the push is under way", async || world.github.push_of("refs/heads/lost").is_some()).await;
    world.dataplane(1).kill().await;
    run
}

/// Its control is lost first, so that another takes it over.
async fn a_revocation_within_a_push(world: &World) {
    let run = bound(world).await;
    let cargo = Arc::new(Cargo::load(world, &run, 0, "acme/api", CARGO).await);
    let mut push = cargo.start(&world.door(0), &run, "refs/heads/revoked").await.unwrap();
    push.send(PIECE).await;
    until("the push is under way", async || world.github.push_of("refs/heads/revoked").is_some()).await;
    for control in [0, 1] {
        world.links(control).gate.cut();
        // Longer than a lease, in which the other has been asked to renew it.
        tokio::time::sleep(Duration::from_millis(2500)).await;
        world.links(control).gate.mend();
    }
    world.revoke(&run).await;
    push.finish().await;
}

/// A control without its store: it says so, and cuts what waits for it.
async fn silent_store(world: &World) {
    let mut runs = world.runs_at(0).await;
    world.links(0).store.cut();
    let mut request = tonic::Request::new(ListRunsRequest::default());
    request.set_timeout(Duration::from_millis(300));
    let refused = runs.list_runs(request).await.unwrap_err();
    assert!([Code::DeadlineExceeded, Code::Cancelled].contains(&refused.code()), "{refused}");
    let serving = async || world.control_admin("/metrics").await.text().contains("\ngitdoor_control_serving 1\n");
    until("control says that its store is silent", async || !serving().await).await;
    // As often as somebody is told of it.
    let more = (0..3).map(|_| {
        let mut runs = runs.clone();
        async move { runs.list_runs(ListRunsRequest::default()).await.is_err() }
    });
    assert_eq!(futures_util::future::join_all(more).await, [true; 3]);
    world.links(0).store.mend();
    until("control serves again", serving).await;
}

/// Both controls are cut off, so that many requests fail at once.
async fn no_control(world: &World, run: &Run, prometheus: &Prometheus) {
    let all = [0, 1].map(|control| &world.links(control).gate);
    for gate in all {
        gate.cut();
    }
    let path = "/acme/api.git/info/refs?service=git-upload-pack";
    assert_eq!(get(world, run, path).await, 503);
    prometheus.scraped(PLACES).await;
    let failed = futures_util::future::join_all((0..20).map(|_| get(world, run, path))).await;
    assert!(failed.iter().all(|status| *status == 503), "{failed:?}");
    for gate in all {
        gate.mend();
    }
    until_served(world, 0).await;
}
