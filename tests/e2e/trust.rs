//! Mutual TLS between the planes, end to end, with the certificates that `gitdoor certs` makes.

use std::fs;
use std::sync::Arc;

use gitdoor_proto::v1::Identity;
use gitdoor_tests::wait::until;
use gitdoor_tests::world::{Exit, World, run_to_exit};
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::PROGRAM;

async fn gitdoor(arguments: &[String]) -> Exit {
    run_to_exit(PROGRAM.as_ref(), "__gitdoor", arguments).await
}

/// `gitdoor run ...` with a client's certificate of the world.
async fn run(world: &World, name: &str, line: &str) -> Exit {
    let mut arguments: Vec<String> = line.split(' ').map(str::to_owned).collect();
    arguments.push(format!("--control={}", world.runs_address()));
    arguments.extend(world.trust().client_flags(name));
    gitdoor(&arguments).await
}

#[tokio::test]
async fn a_push_goes_through_planes_that_speak_tls_to_each_other() {
    let world = World::builder(PROGRAM).mutual_tls().start().await;
    world.github.create("acme/api");
    let bearer = run(&world, "bot", "run register --run-id r1 --identity write").await;
    assert_eq!(bearer.code, Some(0), "{}", bearer.stderr);
    let git = world.git_at(0, bearer.stdout.trim()).cloned("acme/api").await;
    git.commit("a", "a").await;
    git.run(&["push", "origin", "HEAD:fix-x"]).await.ok();
    let shown = run(&world, "ops", "run show r1").await;
    assert!(shown.code == Some(0) && shown.stdout.contains("fix-x"), "{}{}", shown.stdout, shown.stderr);
    let ended = run(&world, "ops", "run revoke r1").await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    git.run(&["push", "origin", "HEAD:late"]).await.code_is(128).says("revoked");
    world.finish().await;
}

#[tokio::test]
async fn the_ledger_says_whose_certificate_asked_for_a_mirrors_token() {
    let world = World::builder(PROGRAM).mutual_tls().start().await;
    world.github.create("acme/api");
    let denied = run(&world, "bot", "token mirror --repository acme/api").await;
    assert!(denied.code == Some(1) && denied.stderr.contains("gitdoor:mirror"), "{}", denied.stderr);
    assert!(world.github.mints().is_empty());
    let token = run(&world, "mirror", "token mirror --repository acme/api").await;
    assert!(token.code == Some(0) && token.stdout.starts_with("ghs_"), "{}", token.stderr);
    let listed = run(&world, "ops", "token list --json").await;
    let listed: serde_json::Value = serde_json::from_str(&listed.stdout).unwrap();
    let asked_by = listed["mirror_tokens"][0]["asked_by"].as_str().unwrap();
    assert!(asked_by.contains("mirror"), "{asked_by}");
    world.finish().await;
}

#[tokio::test]
async fn the_command_line_says_why_control_does_not_take_it() {
    let world = World::builder(PROGRAM).mutual_tls().start().await;
    let denied = run(&world, "ops", "run register --run-id r1 --identity read").await;
    assert_eq!((denied.code, denied.stdout.as_str()), (Some(1), ""));
    assert!(
        denied.stderr.contains("gitdoor:bot") && denied.stderr.contains("--control-tls-cert"),
        "{}",
        denied.stderr
    );
    let denied = run(&world, "dataplane", "run list").await;
    assert!(denied.code == Some(1) && denied.stderr.contains("gitdoor:ops"), "{}", denied.stderr);
    let refused = run(&world, "control", "run list").await;
    assert_eq!(refused.code, Some(1), "a server's certificate");
    assert!(refused.stderr.contains("UnsupportedCertificate"), "{}", refused.stderr);
    let without = gitdoor(&["run".into(), "list".into(), format!("--control={}", world.runs_address())]).await;
    assert_eq!(without.code, Some(64));
    assert!(without.stderr.contains("--control-tls-ca"), "{}", without.stderr);
    let plain = world.runs_address().replace("https:", "http:");
    let plain = gitdoor(&["run".into(), "list".into(), format!("--control={plain}")]).await;
    assert_eq!(plain.code, Some(1), "{}", plain.stderr);
    world.finish().await;
}

#[tokio::test]
async fn renewed_certificates_are_in_use_without_a_restart() {
    let mut world = World::builder(PROGRAM).mutual_tls().start().await;
    world.github.create("acme/api");
    let registered = world.register(Identity::Write).await;
    let folder = world.trust().path("");
    for name in ["control", "dataplane", "bot"] {
        let renewed =
            gitdoor(&["certs".into(), format!("--out={}", folder.display()), format!("--renew={name}")]).await;
        assert_eq!(renewed.code, Some(0), "{}", renewed.stderr);
    }
    let dataplane = "gitdoor_dataplane_certificate_reloads_total{certificate=\"control\",outcome=\"replaced\"}";
    until("it has a new certificate", async || counted(&world, dataplane).await).await;
    // The session is lost with control, and the next one has the new certificate on both sides.
    world.control().restart().await;
    let git = world.git(&registered).cloned("acme/api").await;
    git.commit("a", "a").await;
    git.run(&["push", "origin", "HEAD:fix-x"]).await.ok();
    assert_eq!(run(&world, "bot", "run list").await.code, Some(0));
    world.finish().await;
}

/// Whether a data plane has counted this, by name and labels.
async fn counted(world: &World, metric: &str) -> bool {
    let text = world.dataplane_admin(0, "/metrics").await.text();
    text.lines().any(|line| line.starts_with(metric) && !line.ends_with(" 0"))
}

/// The certificate that a data plane shows to its clients.
async fn shown(world: &World) -> CertificateDer<'static> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(world.ca_file()).unwrap() {
        roots.add(certificate.unwrap()).unwrap();
    }
    let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    let stream = TcpStream::connect(world.address(0)).await.unwrap();
    let connector = TlsConnector::from(Arc::new(config));
    let stream = connector.connect("localhost".try_into().unwrap(), stream).await.unwrap();
    stream.get_ref().1.peer_certificates().unwrap()[0].clone().into_owned()
}

#[tokio::test]
async fn the_doors_certificate_changes_without_a_restart_and_a_broken_one_changes_nothing() {
    let world = World::start(PROGRAM).await;
    let before = shown(&world).await;
    let leaf = world.leaf();
    let path = |name: &str| world.path().join("dataplane").join(name);
    fs::write(path("cert.pem"), &leaf.certificate).unwrap();
    let reloads = |outcome: &str| {
        format!("gitdoor_dataplane_certificate_reloads_total{{certificate=\"public\",outcome=\"{outcome}\"}}")
    };
    let kept = reloads("kept");
    until("it was told", async || counted(&world, &kept).await).await;
    assert_eq!(shown(&world).await, before, "a certificate without its key");
    fs::write(path("key.pem"), &leaf.key).unwrap();
    let replaced = reloads("replaced");
    until("it has a new certificate", async || counted(&world, &replaced).await).await;
    assert!(shown(&world).await != before);
    world.finish().await;
}
