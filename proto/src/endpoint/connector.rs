//! Channels to a control.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::TokioIo;
use rustls_pki_types::ServerName;
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;
use tonic::transport::{self, Channel, Uri};
use tower::service_fn;

use super::{Address, Endpoint, Place, bare, is_loopback};
use crate::tls::{self, Reloaded, TlsError};

/// Time to connect, with the handshakes.
const CONNECT: Duration = Duration::from_secs(2);
/// A peer that is gone without a word is noticed after this and as much again.
const KEEP_ALIVE: Duration = Duration::from_secs(5);

/// Who a client of control is, and whom it trusts: PEM files.
#[derive(Debug, Clone, Default)]
pub struct TlsFiles {
    /// Authorities of control's certificate.
    pub ca: Option<PathBuf>,
    /// The client's certificate, with its role in it.
    pub cert: Option<PathBuf>,
    /// Its private key.
    pub key: Option<PathBuf>,
}

/// Why a control that parses cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    /// Plain text beyond this machine.
    #[error("plain http:// is for this machine alone: a loopback address or unix:PATH; elsewhere it is https://")]
    PlainText,
    /// Another scheme.
    #[error("a control is unix:PATH, http://HOST:PORT on loopback, or https://HOST:PORT")]
    Scheme,
    /// A user name or a password.
    #[error("a URL with a user name or a password is refused")]
    Credential,
    /// More than host and port.
    #[error("the URL ends after its port: control has no paths")]
    Path,
    /// A host that no certificate can name.
    #[error("the host is a DNS name or an IP address")]
    Host,
    /// TLS without one of its files.
    #[error(
        "https:// needs it: control is spoken to with --control-tls-ca, --control-tls-cert and --control-tls-key"
    )]
    Missing(&'static str),
    /// The files are no use.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

impl Unusable {
    /// The flags that it is about.
    #[must_use]
    pub fn flag(&self) -> &'static str {
        match self {
            Self::PlainText | Self::Scheme | Self::Credential | Self::Path | Self::Host => "--control",
            Self::Missing(flag) => flag,
            Self::Tls(_) => "--control-tls-ca, --control-tls-cert, --control-tls-key",
        }
    }
}

/// Why no channel was opened.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The address is of an endpoint that the connector was not made for.
    #[error("TLS without a certificate of one's own")]
    NoIdentity,
    /// It was not reached, or there was no agreement on TLS or HTTP/2.
    #[error("control is not reachable")]
    Transport(#[from] transport::Error),
}

/// Opens channels to controls. A clone shares the certificates.
#[derive(Debug, Clone)]
pub struct Connector {
    identity: Option<Arc<Reloaded<tls::Client>>>,
}

impl Connector {
    /// For these endpoints, all of which must be usable. The files are read where one of them is `https://`.
    pub fn new(endpoints: &[Endpoint], files: &TlsFiles) -> Result<Self, Unusable> {
        let mut secure = false;
        for endpoint in endpoints {
            secure |= is_secure(endpoint)?;
        }
        if !secure {
            return Ok(Self { identity: None });
        }
        let needed = |file: &Option<PathBuf>, flag| file.clone().ok_or(Unusable::Missing(flag));
        let ca = needed(&files.ca, "--control-tls-ca")?;
        let cert = needed(&files.cert, "--control-tls-cert")?;
        let key = needed(&files.key, "--control-tls-key")?;
        let all = vec![ca.clone(), cert.clone(), key.clone()];
        let identity = Reloaded::open(all, move || tls::client(&ca, &cert, &key))?;
        Ok(Self { identity: Some(identity) })
    }

    /// The certificates towards control, for who keeps them up; none where no TLS is spoken.
    #[must_use]
    pub fn identity(&self) -> Option<&Arc<Reloaded<tls::Client>>> {
        self.identity.as_ref()
    }

    /// Opens a channel. When it is lost it connects again by itself, to the same place, with the certificates of then.
    pub async fn connect(&self, address: &Address) -> Result<Channel, ConnectError> {
        let Address { place, authority, server } = address;
        let scheme = if server.is_some() { "https" } else { "http" };
        let origin = format!("{scheme}://{authority}").parse::<Uri>().unwrap_or_default();
        // TLS is this connector's own, so to tonic it is plain; the origin is what the peer is told.
        let channel = Channel::builder(Uri::from_static("http://localhost"))
            .origin(origin)
            .connect_timeout(CONNECT)
            .http2_keep_alive_interval(KEEP_ALIVE)
            .keep_alive_timeout(KEEP_ALIVE)
            .keep_alive_while_idle(true);
        match (place.clone(), server.clone()) {
            (Place::Unix(path), _) => {
                let connect = move |_: Uri| {
                    let path = path.clone();
                    async move { UnixStream::connect(path).await.map(TokioIo::new) }
                };
                Ok(channel.connect_with_connector(service_fn(connect)).await?)
            }
            (Place::Tcp(socket), None) => {
                let connect = move |_: Uri| async move { tcp(socket).await.map(TokioIo::new) };
                Ok(channel.connect_with_connector(service_fn(connect)).await?)
            }
            (Place::Tcp(socket), Some(server)) => {
                let identity = self.identity.clone().ok_or(ConnectError::NoIdentity)?;
                let connect = move |_: Uri| {
                    let (tls, server) =
                        (TlsConnector::from(Arc::clone(&identity.current().config)), server.clone());
                    async move { tls.connect(server, tcp(socket).await?).await.map(TokioIo::new) }
                };
                Ok(channel.connect_with_connector(service_fn(connect)).await?)
            }
        }
    }
}

async fn tcp(socket: std::net::SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(socket).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Whether it is spoken to by TLS, if it can be used at all.
fn is_secure(endpoint: &Endpoint) -> Result<bool, Unusable> {
    let Endpoint::Url(uri) = endpoint else {
        return Ok(false);
    };
    if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        return Err(Unusable::Credential);
    }
    let secure = match uri.scheme_str() {
        Some("http") => false,
        Some("https") => true,
        Some(_) | None => return Err(Unusable::Scheme),
    };
    if uri.path_and_query().is_some_and(|path| path.as_str() != "/") {
        return Err(Unusable::Path);
    }
    let host = uri.host().unwrap_or_default();
    if !secure && !is_loopback(host) {
        return Err(Unusable::PlainText);
    }
    if secure && ServerName::try_from(bare(host)).is_err() {
        return Err(Unusable::Host);
    }
    Ok(secure)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str, files: &TlsFiles) -> String {
        let made = Connector::new(&[text.parse().unwrap()], files);
        made.err().map(|why| format!("{}: {why}", why.flag())).unwrap_or_default()
    }

    #[test]
    fn what_cannot_be_used_is_said_with_its_flag() {
        for (text, words) in [
            ("unix:/run/gitdoor/runs.sock", ""),
            ("unix:relative.sock", ""),
            ("http://127.0.0.1:7000", ""),
            ("http://127.9.9.9:7000/", ""),
            ("http://[::1]:7000", ""),
            ("http://LOCALHOST:7000", ""),
            ("http://10.0.0.1:7000", "--control: plain http://"),
            ("http://localhost.example.com:7000", "--control: plain http://"),
            ("http://[::ffff:10.0.0.1]:7000", "--control: plain http://"),
            ("http://0.0.0.0:7000", "--control: plain http://"),
            ("ftp://127.0.0.1:7000", "--control: a control is"),
            ("http://user:pass@127.0.0.1:7000", "--control: a URL with a user name"),
            ("https://user:pass@127.0.0.1:7000", "--control: a URL with a user name"),
            ("http://127.0.0.1:7000/x", "--control: the URL ends after its port"),
            ("https://127.0.0.1:7000/?x", "--control: the URL ends after its port"),
            ("https://a_b..c:7000", "--control: the host is"),
            ("https://control.example.com", "--control-tls-ca: https:// needs it"),
        ] {
            let said = said(text, &TlsFiles::default());
            assert!(if words.is_empty() { said.is_empty() } else { said.starts_with(words) }, "{text}: {said}");
        }
    }

    #[test]
    fn each_file_that_tls_lacks_is_named() {
        let file = Some(PathBuf::from("/nonexistent"));
        let mut files = TlsFiles { ca: file.clone(), ..TlsFiles::default() };
        assert!(said("https://h:1", &files).starts_with("--control-tls-cert: "));
        files.cert.clone_from(&file);
        assert!(said("https://h:1", &files).starts_with("--control-tls-key: "));
        files.key = file;
        assert!(said("https://h:1", &files).contains("/nonexistent cannot be read"));
        assert_eq!(said("unix:/run/gate.sock", &files), "");
    }

    #[tokio::test]
    async fn an_address_that_speaks_tls_is_never_reached_without_an_identity() {
        let plain = Connector::new(&["unix:/run/gate.sock".parse().unwrap()], &TlsFiles::default()).unwrap();
        let address = "https://127.0.0.1:1".parse::<Endpoint>().unwrap().resolve().await.unwrap().remove(0);
        assert!(matches!(plain.connect(&address).await, Err(ConnectError::NoIdentity)));
    }
}
