//! Flags and environment: the only file that reads either. What parses and cannot be used is found here or at the
//! binding of the listeners, before a port is served, and names its flag.

mod listen;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::builder::{FalseyValueParser, Resettable};
use clap::{Args as ClapArgs, CommandFactory as _, FromArgMatches as _, Parser, ValueEnum};
use gitdoor_proto::endpoint::{self, Connector, Endpoint, TlsFiles};
use gitdoor_proto::tls::{Reloaded, TlsError};
use http::Uri;
use http::uri::{Authority, Scheme};
use tracing_subscriber::EnvFilter;

use crate::host::PublicHost;
use crate::origin::Shim;
use crate::proxy::Limits;
use crate::tls;
use crate::upstream::storage::{self, Redirects, StorageHost};
use crate::upstream::{self, ApiSite};

pub use listen::Listen;

/// The data plane of gitdoor: the host that stock git speaks to instead of the forge.
///
/// It asks control about every request, forwards what control permits with a token that the client never sees, and
/// streams both ways. It holds no key, no database and no decision: start as many as are needed, stop any at any time.
///
/// Every flag is also an environment variable: GITDOOR_ and the flag's name in capitals, "-" as "_".
#[derive(Debug, Parser)]
#[command(
    name = "gitdoor-dataplane",
    version,
    after_help = "Exit codes: 0 stopped by a signal and drained; 1 failed; 2 usage; 64 a configuration that parses and \
                  cannot be used (the message names the flag).\n\n\
                  Once it serves it prints one line: ready listen=ADDR admin=ADDR"
)]
pub struct Args {
    /// Public listener: ADDRESS:PORT, or unix:PATH. A socket's mode follows the umask; its file goes at the end.
    #[arg(long, env = "GITDOOR_LISTEN", value_name = "ADDR|unix:PATH", default_value = "127.0.0.1:8443")]
    listen: Listen,

    /// Certificate chain of the public listener, PEM. Without it the listener is plain HTTP, for a shim in front.
    #[arg(long, env = "GITDOOR_TLS_CERT", value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,

    /// Private key of the public listener, PEM.
    #[arg(long, env = "GITDOOR_TLS_KEY", value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,

    /// Listener of /livez, /readyz and /metrics.
    #[arg(long, env = "GITDOOR_ADMIN_LISTEN", value_name = "ADDR|unix:PATH", default_value = "127.0.0.1:9443")]
    admin_listen: Listen,

    /// Names that clients know this host by; a request for another is answered with 421.
    ///
    /// A default port (80, 443) counts as none; without a port, that of --listen is meant too.
    #[arg(
        long,
        env = "GITDOOR_PUBLIC_HOST",
        value_name = "NAME[:PORT],...",
        value_delimiter = ',',
        required = true
    )]
    public_host: Vec<PublicHost>,

    /// What stands in front of this listener: addresses, networks, or unix for every peer on a Unix socket. From these
    /// alone the log takes a request's trace (traceparent) and its client's address (X-Forwarded-For, the last entry).
    #[arg(long, env = "GITDOOR_SHIM", value_name = "ADDRESS[/PREFIX]|unix,...", value_delimiter = ',')]
    shim: Vec<Shim>,

    /// Where control serves its Gate; may be given several times, and a name may have several addresses.
    ///
    /// All of them are asked, the less busy first. Names are looked up every ten seconds, and when no control is left.
    #[arg(
        long,
        env = "GITDOOR_CONTROL",
        value_name = "URL|unix:PATH",
        value_delimiter = ',',
        default_value = "unix:/run/gitdoor/gate.sock"
    )]
    control: Vec<Endpoint>,

    /// Authorities of control's certificate, PEM; an https:// control needs it, and it is for HOST.
    #[arg(long, env = "GITDOOR_CONTROL_TLS_CA", value_name = "FILE")]
    control_tls_ca: Option<PathBuf>,

    /// Certificate chain of this data plane towards control, PEM; it names gitdoor:dataplane.
    #[arg(long, env = "GITDOOR_CONTROL_TLS_CERT", value_name = "FILE")]
    control_tls_cert: Option<PathBuf>,

    /// Its private key, PEM. Certificates and keys are read again when their files change.
    #[arg(long, env = "GITDOOR_CONTROL_TLS_KEY", value_name = "FILE")]
    control_tls_key: Option<PathBuf>,

    /// The forge.
    #[arg(long, env = "GITDOOR_GITHUB_URL", value_name = "URL", default_value = "https://github.com")]
    github_url: Uri,

    /// The forge's API. GitHub Enterprise Server's is `https://HOST/api/v3`.
    #[arg(long, env = "GITDOOR_GITHUB_API_URL", value_name = "URL", default_value = "https://api.github.com")]
    github_api_url: Uri,

    /// Roots that the forge's certificate is checked against, PEM; the system's without it.
    #[arg(long, env = "GITDOOR_GITHUB_CA", value_name = "FILE")]
    github_ca: Option<PathBuf>,

    /// What becomes of an API redirect to the forge's storage (logs, artifacts, assets, archives): it is followed here
    /// and the file streamed, or it is passed on, and with it a URL that opens the file to anyone for some minutes.
    #[arg(long, env = "GITDOOR_STORAGE_REDIRECTS", value_enum, default_value_t = Redirects::Follow)]
    storage_redirects: Redirects,

    /// Hosts of the forge's storage: NAME, or *.NAME for all beneath it, by https on port 443 and with a public
    /// address; NAME:PORT for one of one's own, which may have a private one.
    #[arg(
        long,
        env = "GITDOOR_STORAGE_HOSTS",
        value_name = "HOST,...",
        value_delimiter = ',',
        default_value = storage::GITHUB
    )]
    storage_hosts: Vec<StorageHost>,

    /// Most bytes of a push, decoded.
    #[arg(long, env = "GITDOOR_MAX_PUSH_BYTES", value_name = "N", default_value_t = 2 * 1024 * 1024 * 1024,
        value_parser = clap::value_parser!(u64).range(1..))]
    max_push_bytes: u64,

    /// Most bytes of a refused push that are read to its end, so that git can be told why.
    #[arg(long, env = "GITDOOR_MAX_DRAIN_BYTES", value_name = "N", default_value_t = 256 * 1024 * 1024)]
    max_drain_bytes: u64,

    /// After SIGTERM, time for requests under way to end.
    #[arg(long, env = "GITDOOR_DRAIN_TIMEOUT", value_name = "TIME", default_value = "30s", value_parser = time)]
    drain_timeout: Duration,

    /// Offer HTTP/2 to clients too. Stock git is told to push over HTTP/1.1, since it can hang on HTTP/2; a balancer in
    /// front that speaks HTTP/2 to this listener has to pass that on.
    #[arg(long, env = "GITDOOR_HTTP2", value_parser = FalseyValueParser::new())]
    http2: bool,

    /// Time to connect to the forge.
    #[arg(long, env = "GITDOOR_CONNECT_TIMEOUT", value_name = "TIME", default_value = "10s", value_parser = time)]
    connect_timeout: Duration,

    /// Time for a client to send a request's head, and for its TLS handshake.
    #[arg(long, env = "GITDOOR_HEAD_TIMEOUT", value_name = "TIME", default_value = "15s", value_parser = time)]
    head_timeout: Duration,

    /// Time for the forge to begin its answer once it has the whole request.
    #[arg(long, env = "GITDOOR_UPSTREAM_HEAD_TIMEOUT", value_name = "TIME", default_value = "10m", value_parser = time)]
    upstream_head_timeout: Duration,

    /// Longest silence of either side within a body.
    #[arg(long, env = "GITDOOR_IDLE_TIMEOUT", value_name = "TIME", default_value = "5m", value_parser = time)]
    idle_timeout: Duration,

    /// Time for control to answer a question.
    #[arg(long, env = "GITDOOR_GATE_TIMEOUT", value_name = "TIME", default_value = "2s", value_parser = time)]
    gate_timeout: Duration,

    /// Threads that serve, each with a runtime, sessions with control and connections of its own; 0: one a core.
    #[arg(long, env = "GITDOOR_THREADS", value_name = "N", default_value_t = 0)]
    threads: usize,

    /// Logging.
    #[command(flatten)]
    pub log: Log,
}

/// How events are logged, on standard error.
#[derive(Debug, Clone, ClapArgs)]
pub struct Log {
    /// Form of an event.
    #[arg(long, env = "GITDOOR_LOG_FORMAT", value_enum, default_value_t = LogFormat::Text)]
    log_format: LogFormat,

    /// Which events: a level, or target=level pairs. One event a request is of level info.
    #[arg(long, env = "GITDOOR_LOG_LEVEL", value_name = "FILTER", default_value = "info")]
    log_level: EnvFilter,
}

/// Form of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LogFormat {
    /// A line for people.
    Text,
    /// One JSON object a line.
    Json,
}

impl Log {
    /// Starts logging. A second start in one process changes nothing.
    pub fn install(&self) {
        let builder = tracing_subscriber::fmt()
            .with_writer(std::io::stderr)
            .with_ansi(false)
            .with_env_filter(self.log_level.clone());
        let _ = match self.log_format {
            LogFormat::Text => builder.try_init(),
            LogFormat::Json => builder.json().flatten_event(true).try_init(),
        };
    }
}

/// A configuration that parses and cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    /// The flag's value is no use.
    #[error("{flag}: {why}")]
    Flag {
        /// The flag.
        flag: &'static str,
        /// Why, and what would be accepted.
        why: &'static str,
    },
    /// The flag's file is no use.
    #[error("{flag}: {why}")]
    Tls {
        /// The flags.
        flag: &'static str,
        /// Why.
        why: TlsError,
    },
    /// The forge's certificate could not be checked.
    #[error("--github-ca: {0}")]
    Forge(tls::Untrusting),
    /// A control cannot be used.
    #[error("{flag}: {0}", flag = .0.flag())]
    Control(#[from] endpoint::Unusable),
    /// The flag's address cannot be bound.
    #[error("{flag}: cannot listen on {address}: {why}")]
    Address {
        /// The flag.
        flag: &'static str,
        /// Its value.
        address: String,
        /// What the system says.
        why: std::io::Error,
    },
}

/// What the data plane is started with, checked.
pub struct Config {
    /// Public listener.
    pub listen: Listen,
    /// Its TLS; none: plain.
    pub tls: Option<Arc<Reloaded<tls::Identity>>>,
    /// Whether HTTP/2 is offered.
    pub http2: bool,
    /// Admin listener.
    pub admin: Listen,
    /// Names of this host.
    pub hosts: Vec<PublicHost>,
    /// What stands in front of it.
    pub shims: Vec<Shim>,
    /// Where control is.
    pub controls: Vec<Endpoint>,
    /// How it is reached.
    pub connector: Connector,
    /// Time for control to answer.
    pub gate_timeout: Duration,
    /// Time for a client's head.
    pub head_timeout: Duration,
    /// Where the forge is.
    pub upstream: upstream::Config,
    /// Bounds of a push.
    pub limits: Limits,
    /// Time for requests under way after SIGTERM.
    pub drain_timeout: Duration,
    /// Threads that serve.
    pub threads: usize,
}

impl Args {
    /// What these flags say, each as `--flag=value`, and the environment of this process does not: for a program that
    /// has a data plane in it, whose environment is another's.
    pub fn of_flags(flags: impl IntoIterator<Item = String>) -> Result<Self, clap::Error> {
        let command = Self::command().mut_args(|flag| flag.env(Resettable::Reset));
        let line = std::iter::once(env!("CARGO_PKG_NAME").to_owned()).chain(flags);
        Self::from_arg_matches(&command.try_get_matches_from(line)?)
    }

    /// Checks what can be checked without binding a port.
    pub fn check(self) -> Result<Config, Unusable> {
        let server = match (self.tls_cert, self.tls_key) {
            (Some(cert), Some(key)) => {
                let tls = tls::server(cert, key, self.http2);
                Some(tls.map_err(|why| Unusable::Tls { flag: "--tls-cert, --tls-key", why })?)
            }
            _ => None,
        };
        let client = tls::client(self.github_ca.as_deref()).map_err(Unusable::Forge)?;
        let files = TlsFiles { ca: self.control_tls_ca, cert: self.control_tls_cert, key: self.control_tls_key };
        let connector = Connector::new(&self.control, &files)?;
        let (scheme, authority) = origin("--github-url", &self.github_url)?;
        let api = api("--github-api-url", &self.github_api_url)?;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(Config {
            listen: self.listen,
            tls: server,
            http2: self.http2,
            admin: self.admin_listen,
            hosts: self.public_host,
            shims: self.shim,
            controls: self.control,
            connector,
            gate_timeout: self.gate_timeout,
            head_timeout: self.head_timeout,
            upstream: upstream::Config {
                scheme,
                authority,
                api,
                storage: storage::Config { redirects: self.storage_redirects, hosts: self.storage_hosts }.into(),
                tls: client,
                connect_timeout: self.connect_timeout,
                head_timeout: self.upstream_head_timeout,
                idle_timeout: self.idle_timeout,
            },
            limits: Limits { push_bytes: self.max_push_bytes, drain_bytes: self.max_drain_bytes },
            drain_timeout: self.drain_timeout,
            threads: if self.threads == 0 { cores } else { self.threads },
        })
    }
}

/// The forge's scheme and authority. Nothing else of a URL is of use, and a password in one would be a secret in a
/// command line.
fn origin(flag: &'static str, url: &Uri) -> Result<(Scheme, Authority), Unusable> {
    if url.path() != "/" || url.query().is_some() {
        return Err(Unusable::Flag { flag, why: "a URL is https://HOST[:PORT], without a path" });
    }
    site(flag, url)
}

/// The API's site. What stands behind its path would be lost.
fn api(flag: &'static str, url: &Uri) -> Result<ApiSite, Unusable> {
    let (scheme, authority) = site(flag, url)?;
    if url.query().is_some() {
        return Err(Unusable::Flag { flag, why: "a URL is https://HOST[:PORT][/PATH], without a query" });
    }
    Ok(ApiSite::new(scheme, authority, url.path()))
}

/// Scheme and authority of a URL that may have a path, as the API of GitHub Enterprise Server has.
fn site(flag: &'static str, url: &Uri) -> Result<(Scheme, Authority), Unusable> {
    let unusable = |why| Unusable::Flag { flag, why };
    let (Some(scheme), Some(authority)) = (url.scheme(), url.authority()) else {
        return Err(unusable("a URL is https://HOST[:PORT]"));
    };
    if authority.as_str().contains('@') {
        return Err(unusable("a URL holds no user name and no password"));
    }
    if *scheme != Scheme::HTTPS && !(*scheme == Scheme::HTTP && is_loopback(authority.host())) {
        return Err(unusable("a URL is https; plain http is for loopback only"));
    }
    Ok((scheme.clone(), authority.clone()))
}

fn is_loopback(host: &str) -> bool {
    let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
    host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}

fn time(text: &str) -> Result<Duration, humantime::DurationError> {
    humantime::parse_duration(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(args: &[&str]) -> Result<Config, String> {
        let all = ["gitdoor-dataplane", "--public-host", "git.door.test"].iter().chain(args);
        Args::try_parse_from(all).map_err(|error| error.to_string())?.check().map_err(|error| error.to_string())
    }

    #[test]
    fn a_value_that_cannot_be_used_names_its_flag() {
        for (args, flag) in [
            (&["--github-url", "github.com"][..], "--github-url"),
            (&["--github-url", "http://github.com"], "--github-url"),
            (&["--github-url", "https://u:p@github.com"], "--github-url"),
            (&["--github-url", "https://github.com/x"], "--github-url"),
            (&["--github-api-url", "ftp://x"], "--github-api-url"),
            (&["--github-api-url", "https://x/api/v3?a"], "--github-api-url"),
            (&["--storage-hosts", "https://x"], "--storage-hosts"),
            (&["--storage-redirects", "never"], "--storage-redirects"),
            (&["--github-ca", "/nonexistent"], "--github-ca"),
            (&["--tls-cert", "/nonexistent", "--tls-key", "/nonexistent"], "--tls-cert"),
            (&["--control", "http://10.0.0.1:1"], "--control"),
            (&["--control", "unix:"], "--control"),
            (&["--control", "https://control:7002"], "--control-tls-ca"),
            (&["--shim", "10.0.0.0/8,balancer"], "--shim"),
            (&["--tls-cert", "x"], "--tls-key"),
            (&["--listen", "nowhere"], "--listen"),
            (&["--idle-timeout", "soon"], "--idle-timeout"),
        ] {
            let error = check(args).err().unwrap_or_default();
            assert!(error.contains(flag), "{args:?}: {error}");
        }
    }
}
