//! Who is not let in, and bad flags.

use std::io::{Read as _, Write as _};
use std::sync::Arc;

use gitdoor_proto::endpoint::TlsFiles;
use gitdoor_proto::tls;
use rustls::ClientConfig;
use time::Duration;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::authority::{Authority, Use};
use crate::control::{Control, call, channel, refused, tls_flags};

const LIST: &str = "/gitdoor.v1.Runs/ListRuns";

/// What a client is told that asks with these files.
async fn told(control: &Control, files: &TlsFiles) -> String {
    let channel = match control.channel("runs", files).await {
        Ok(channel) => channel,
        Err(why) => return why,
    };
    let status = call(&channel, LIST).await.unwrap_err();
    assert_ne!(status.code(), tonic::Code::PermissionDenied, "the handshake was let through");
    format!("{status:?}")
}

async fn counted(control: &Control, kind: &str) {
    let name = "gitdoor_control_tls_handshakes_refused_total";
    control.until(&format!("{name}{{listener=\"runs\",kind=\"{kind}\"}}"), |count| count >= 1.0).await;
    assert!(control.log().contains(&format!("kind=\"{kind}\"")), "{}", control.log());
}

#[tokio::test]
async fn a_client_without_a_good_certificate_is_refused_counted_and_logged_without_a_key() {
    let (authority, stranger, namesake) = (Authority::new(), Authority::named("another"), Authority::new());
    let control = Control::start(&authority);
    let ca = Some(authority.path("ca.pem"));
    // Good in all but its authority.
    let foreign = TlsFiles { ca: ca.clone(), ..stranger.client("foreign", &["gitdoor:bot"]) };
    let forged = TlsFiles { ca, ..namesake.client("forged", &["gitdoor:bot"]) };
    authority.write("expired", Use::Client, &["gitdoor:bot"], -Duration::days(1));
    authority.write("server", Use::Server, &["gitdoor:bot"], Duration::days(1));
    for (files, kind, alert) in [
        (foreign, "untrusted", "UnknownCA"),
        (forged, "untrusted", "DecryptError"),
        (authority.files("expired"), "expired", "CertificateExpired"),
        (authority.files("server"), "purpose", "UnsupportedCertificate"),
    ] {
        let told = told(&control, &files).await;
        assert!(told.contains(alert), "{kind}: {told}");
        counted(&control, kind).await;
    }
    without_certificate(&control, &authority).await;
    counted(&control, "no-certificate").await;
    // The good one is served all the same.
    let good = authority.client("good", &["gitdoor:bot"]);
    call(&control.channel("runs", &good).await.unwrap(), LIST).await.unwrap();
    let log = control.log();
    for line in authority.key_lines().iter().chain(&stranger.key_lines()) {
        assert!(!log.contains(line.as_str()), "a key is in the log");
    }
}

/// A client that trusts control and shows nothing: its handshake ends well, and then it is cut off.
async fn without_certificate(control: &Control, authority: &Authority) {
    let mut config = ClientConfig::builder_with_provider(tls::provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(tls::authorities(&authority.path("ca.pem")).unwrap())
        .with_no_client_auth();
    config.alpn_protocols = vec![tls::ALPN.to_vec()];
    let stream = TcpStream::connect(control.address("runs")).await.unwrap();
    let connector = TlsConnector::from(Arc::new(config));
    let mut stream = connector.connect("localhost".try_into().unwrap(), stream).await.unwrap();
    let error = stream.read(&mut [0; 1]).await.unwrap_err().to_string();
    assert!(error.contains("CertificateRequired"), "{error}");
}

#[tokio::test]
async fn plain_text_is_refused_where_tls_is_served_and_the_reverse() {
    let authority = Authority::new();
    let control = Control::start(&authority);
    let mut plain = std::net::TcpStream::connect(control.address("runs")).unwrap();
    plain.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    let _reset_or_end = plain.read_to_end(&mut answer);
    assert!(answer.len() < 16, "an alert at most: {answer:?}");
    counted(&control, "plain-text").await;

    let open = Control::start_with(&[]);
    let files = authority.client("bot", &["gitdoor:bot"]);
    assert!(open.channel("runs", &files).await.is_err());
    let local = channel(&format!("http://{}", open.address("runs")), &TlsFiles::default()).await.unwrap();
    call(&local, LIST).await.unwrap();
}

#[tokio::test]
async fn a_client_that_says_nothing_holds_up_no_other() {
    let authority = Authority::new();
    let control = Control::start(&authority);
    let silent: Vec<_> = (0..32).map(|_| std::net::TcpStream::connect(control.address("runs")).unwrap()).collect();
    let files = authority.client("bot", &["gitdoor:bot"]);
    call(&control.channel("runs", &files).await.unwrap(), LIST).await.unwrap();
    let name = "gitdoor_control_tls_handshakes_refused_total{listener=\"runs\",kind=\"timeout\"}";
    control.until(name, |count| count >= 32.0).await;
    drop(silent);
}

#[tokio::test]
async fn any_number_of_clients_that_say_nothing_keep_no_other_out() {
    // More than twice the handshakes that there may be at once.
    const SILENT: usize = 700;
    let authority = Authority::new();
    let control = Control::start(&authority);
    let files = authority.client("bot", &["gitdoor:bot"]);
    let connect = |_| std::net::TcpStream::connect(control.address("runs")).unwrap();
    let mut silent: Vec<_> = (0..SILENT).map(connect).collect();
    call(&control.channel("runs", &files).await.unwrap(), LIST).await.unwrap();
    // It was served while others wait that came before it: not after their time, but beside them.
    let youngest = silent.last_mut().unwrap();
    youngest.set_nonblocking(true).unwrap();
    assert_eq!(youngest.read(&mut [0; 1]).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    counted(&control, "crowded").await;
}

#[test]
fn files_that_cannot_be_used_exit_64_and_name_their_flags() {
    let authority = Authority::new();
    authority.write("control", Use::Server, &[], Duration::days(1));
    authority.write("other", Use::Server, &[], Duration::days(1));
    std::fs::copy(authority.path("ca.pem"), authority.path("clients.pem")).unwrap();
    let flags = tls_flags(&authority);
    for at in 0..flags.len() {
        let mut fewer = flags.clone();
        let missing = fewer.remove(at);
        let (code, words) = refused(&fewer);
        let flag = missing.split('=').next().unwrap();
        assert_eq!(code, Some(64), "{words}");
        assert!(words.contains(&format!("{flag} is missing")), "{words}");
    }
    let with = |flag: &str, value: String| {
        let mut changed: Vec<_> = flags.iter().filter(|it| !it.starts_with(&format!("{flag}="))).cloned().collect();
        changed.push(format!("{flag}={value}"));
        refused(&changed)
    };
    let named = |name: &str| authority.path(name).display().to_string();
    for (flag, value, words) in [
        ("--runs-tls-cert", named("none"), "cannot be read"),
        ("--runs-tls-cert", named("control.key"), "no certificate in PEM"),
        ("--gate-tls-key", named("other.key"), "do not go together"),
        ("--gate-tls-key", named("control.pem"), "no private key in PEM"),
        ("--gate-tls-client-ca", named("control.key"), "no certificate in PEM"),
        ("--gate-listen", format!("unix:{}", named("gate.sock")), "a Unix socket is plain text"),
    ] {
        let (code, said) = with(flag, value);
        assert_eq!(code, Some(64), "{flag}: {said}");
        assert!(said.contains(words), "{flag}: {said}");
        let about = if flag == "--gate-listen" { "--gate-tls-cert" } else { flag };
        assert!(said.contains(about), "{flag}: {said}");
    }
    let (code, said) = refused(&["--runs-listen=0.0.0.0:0".to_owned()]);
    assert_eq!(code, Some(64));
    assert!(said.contains("--runs-listen") && said.contains("--runs-tls-cert"), "{said}");
}

#[tokio::test]
async fn with_tls_a_listener_may_be_off_loopback() {
    let authority = Authority::new();
    authority.write("control", Use::Server, &[], Duration::days(1));
    std::fs::copy(authority.path("ca.pem"), authority.path("clients.pem")).unwrap();
    let mut flags = tls_flags(&authority);
    flags.push("--gate-listen=0.0.0.0:0".to_owned());
    let control = Control::start_with(&flags);
    let port = control.address("gate").rsplit_once(':').unwrap().1.to_owned();
    let files = authority.client("dataplane", &["gitdoor:dataplane"]);
    let gate = channel(&format!("https://localhost:{port}"), &files).await.unwrap();
    let answered = call(&gate, "/gitdoor.v1.Gate/Authorize").await.err().map(|status| status.code());
    assert!(!matches!(answered, Some(tonic::Code::PermissionDenied | tonic::Code::Unavailable)), "{answered:?}");
    // The certificate is for a name: control at another is not believed.
    assert!(channel(&format!("https://127.0.0.2:{port}"), &files).await.is_err());
}
