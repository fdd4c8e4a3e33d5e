//! A control that serves by TLS on both listeners, and calls by hand.

use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use gitdoor_proto::endpoint::{Connector, Endpoint, TlsFiles};
use http::uri::PathAndQuery;
use time::Duration as Days;
use tonic::transport::Channel;
use tonic::{Request, Status};
use tonic_prost::ProstCodec;

use crate::authority::{Authority, Use};

/// Longest wait for something that will be.
const LIMIT: Duration = Duration::from_secs(30);

pub(crate) struct Control {
    child: Child,
    ready: String,
    folder: tempfile::TempDir,
}

/// The flags of both listeners, with these authorities' files.
pub(crate) fn tls_flags(authority: &Authority) -> Vec<String> {
    let mut flags = Vec::new();
    for side in ["runs", "gate"] {
        flags.push(format!("--{side}-tls-cert={}", authority.path("control.pem").display()));
        flags.push(format!("--{side}-tls-key={}", authority.path("control.key").display()));
        flags.push(format!("--{side}-tls-client-ca={}", authority.path("clients.pem").display()));
    }
    flags
}

fn command(folder: &tempfile::TempDir, flags: &[String]) -> Command {
    let path = |name: &str| folder.path().join(name);
    let key = rcgen::KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, rcgen::RsaKeySize::_2048).unwrap();
    std::fs::write(path("app.pem"), key.serialize_pem()).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_gitdoor-control"));
    command.env_clear().stdin(Stdio::null()).stdout(Stdio::piped());
    command.args(["--admin-listen=127.0.0.1:0", "--github-app-id=1", "--github-installation-id=2"]);
    command.args(["--github-api-url=http://127.0.0.1:1", "--log-level=debug"]);
    command.arg(format!("--store=sqlite:{}", path("store").display()));
    command.arg(format!("--github-app-key={}", path("app.pem").display()));
    for side in ["runs", "gate"] {
        if !flags.iter().any(|flag| flag.starts_with(&format!("--{side}-listen="))) {
            command.arg(format!("--{side}-listen=127.0.0.1:0"));
        }
    }
    command.args(flags);
    command
}

/// Exit status and standard error of a start that fails.
pub(crate) fn refused(flags: &[String]) -> (Option<i32>, String) {
    let output = command(&tempfile::tempdir().unwrap(), flags).stderr(Stdio::piped()).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "", "it served");
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

impl Control {
    /// Starts one whose server certificate and clients' authority are this one's.
    pub(crate) fn start(authority: &Authority) -> Self {
        authority.write("control", Use::Server, &[], Days::days(1));
        std::fs::copy(authority.path("ca.pem"), authority.path("clients.pem")).unwrap();
        Self::start_with(&tls_flags(authority))
    }

    pub(crate) fn start_with(flags: &[String]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let log = std::fs::File::create(folder.path().join("log")).unwrap();
        let mut child = command(&folder, flags).stderr(log).spawn().unwrap();
        let mut ready = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut ready).unwrap();
        Self { child, ready, folder }
    }

    /// An address of its `ready` line: `runs`, `gate` or `admin`.
    pub(crate) fn address(&self, name: &str) -> String {
        let found = self.ready.split_whitespace().find_map(|word| word.strip_prefix(&format!("{name}=")));
        found.unwrap_or_else(|| panic!("{}: {}", self.ready, self.log())).to_owned()
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.log_file()).unwrap()
    }

    fn log_file(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    /// What a metric with these labels says; nothing: it is not there.
    pub(crate) fn metric(&self, line: &str) -> Option<f64> {
        let mut admin = std::net::TcpStream::connect(self.address("admin")).unwrap();
        admin.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        admin.read_to_string(&mut text).unwrap();
        text.lines().find_map(|found| found.strip_prefix(line)?.trim().parse().ok())
    }

    /// Waits until a metric says so.
    pub(crate) async fn until(&self, line: &str, right: impl Fn(f64) -> bool) {
        let begun = Instant::now();
        while !self.metric(line).is_some_and(&right) {
            assert!(begun.elapsed() < LIMIT, "{line}: {:?}\n{}", self.metric(line), self.log());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// A channel to a listener, by TLS.
    pub(crate) async fn channel(&self, side: &str, files: &TlsFiles) -> Result<Channel, String> {
        channel(&format!("https://{}", self.address(side)), files).await
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A channel to a URL.
pub(crate) async fn channel(url: &str, files: &TlsFiles) -> Result<Channel, String> {
    let endpoint: Endpoint = url.parse().unwrap();
    let connector = Connector::new(std::slice::from_ref(&endpoint), files).map_err(|why| why.to_string())?;
    let address = endpoint.resolve().await.unwrap().remove(0);
    connector.connect(&address).await.map_err(|why| format!("{why:?}"))
}

/// Makes a call with an empty message, by its path.
pub(crate) async fn call(channel: &Channel, path: &str) -> Result<(), Status> {
    let mut client = tonic::client::Grpc::new(channel.clone());
    client.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
    let path = PathAndQuery::try_from(path).unwrap();
    client.unary(Request::new(()), path, ProstCodec::<(), ()>::default()).await.map(|_answer| ())
}
