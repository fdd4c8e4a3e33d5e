//! Files that change while control serves.

use std::sync::Arc;

use gitdoor_proto::v1::gate_client::GateClient;
use gitdoor_proto::v1::session_response::Answer;
use gitdoor_proto::{tls, v1};
use rustls_pki_types::CertificateDer;
use time::Duration;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::authority::{Authority, Use};
use crate::control::{Control, call};

const LIST: &str = "/gitdoor.v1.Runs/ListRuns";

fn reloads(outcome: &str) -> String {
    format!("gitdoor_control_certificate_reloads_total{{listener=\"runs\",outcome=\"{outcome}\"}}")
}

/// The certificate that control shows to a new connection.
async fn shown(control: &Control, authority: &Authority) -> CertificateDer<'static> {
    let path = |name: &str| authority.path(name);
    let client = tls::client(&path("ca.pem"), &path("bot.pem"), &path("bot.key")).unwrap();
    let stream = TcpStream::connect(control.address("runs")).await.unwrap();
    let connector = TlsConnector::from(Arc::clone(&client.config));
    let stream = connector.connect("localhost".try_into().unwrap(), stream).await.unwrap();
    stream.get_ref().1.peer_certificates().unwrap().first().unwrap().clone().into_owned()
}

#[tokio::test]
async fn new_connections_have_the_new_certificate_and_old_ones_go_on() {
    let authority = Authority::new();
    let control = Control::start(&authority);
    let bot = authority.client("bot", &["gitdoor:bot"]);
    let old = control.channel("runs", &bot).await.unwrap();
    call(&old, LIST).await.unwrap();
    let before = shown(&control, &authority).await;
    let expiry = "gitdoor_control_certificate_expiry_timestamp_seconds{listener=\"runs\"}";
    let ends = control.metric(expiry).unwrap();

    authority.write("control", Use::Server, &[], Duration::days(9));
    control.until(&reloads("replaced"), |count| count >= 1.0).await;
    control.until(expiry, |now| now > ends + 86_400.0).await;
    let after = shown(&control, &authority).await;
    assert!(before != after && after == tls::certificates(&authority.path("control.pem")).unwrap().remove(0));
    call(&old, LIST).await.unwrap();

    // A key alone that is another's: what is there stays, and is told once. So may be what was seen above before both of its
    // files were there.
    let kept = control.metric(&reloads("kept")).unwrap_or_default();
    authority.write("other", Use::Server, &[], Duration::days(9));
    std::fs::rename(authority.path("other.key"), authority.path("control.key")).unwrap();
    control.until(&reloads("kept"), |count| count > kept).await;
    assert_eq!(shown(&control, &authority).await, after);
    call(&old, LIST).await.unwrap();
    let log = control.log();
    assert!(log.contains("the certificate and the key do not go together"), "{log}");
    assert!(authority.key_lines().iter().all(|line| !log.contains(line.as_str())), "a key is in the log");
}

#[tokio::test]
async fn another_client_authority_counts_from_the_next_handshake() {
    let (authority, next) = (Authority::new(), Authority::new());
    let control = Control::start(&authority);
    let bot = authority.client("bot", &["gitdoor:bot"]);
    let old = control.channel("runs", &bot).await.unwrap();
    call(&old, LIST).await.unwrap();
    std::fs::copy(next.path("ca.pem"), authority.path("clients.pem")).unwrap();
    control.until(&reloads("replaced"), |count| count >= 1.0).await;
    call(&old, LIST).await.unwrap();
    let refused = match control.channel("runs", &bot).await {
        Ok(channel) => call(&channel, LIST).await.is_err(),
        Err(_) => true,
    };
    assert!(refused, "{}", control.log());
    let mut other = next.client("bot", &["gitdoor:bot"]);
    other.ca = Some(authority.path("ca.pem"));
    call(&control.channel("runs", &other).await.unwrap(), LIST).await.unwrap();
}

#[tokio::test]
async fn a_connection_does_not_outlive_its_certificate() {
    let authority = Authority::new();
    let control = Control::start(&authority);
    authority.write("bot", Use::Client, &["gitdoor:bot"], Duration::seconds(5));
    let bot = authority.files("bot");
    let channel = control.channel("runs", &bot).await.unwrap();
    let mut good = 0;
    let refused = loop {
        match call(&channel, LIST).await {
            Ok(()) => good += 1,
            Err(refused) => break refused,
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    };
    assert!(good > 0, "{refused}");
    assert_eq!(refused.code(), tonic::Code::Unauthenticated, "{refused}");
    let name = "gitdoor_control_calls_refused_total{listener=\"runs\",role=\"ended\"}";
    control.until(name, |count| count >= 1.0).await;
}

#[tokio::test]
async fn a_session_is_told_to_leave_when_its_certificate_ends_and_is_cut_if_it_stays() {
    let authority = Authority::new();
    let control = Control::start(&authority);
    authority.write("dataplane", Use::Client, &["gitdoor:dataplane"], Duration::seconds(15));
    let channel = control.channel("gate", &authority.files("dataplane")).await.unwrap();
    let silent = tokio_stream::pending::<v1::SessionRequest>();
    let mut answers = GateClient::new(channel).session(silent).await.unwrap().into_inner();
    let mut next = async || {
        let hangs = std::time::Duration::from_mins(1);
        tokio::time::timeout(hangs, answers.message()).await.expect("the session ends by itself").unwrap()
    };
    let leave = v1::SessionResponse { id: 0, answer: Some(Answer::Draining(v1::Draining {})) };
    assert_eq!(next().await, Some(leave));
    assert_eq!(next().await, None);
}
