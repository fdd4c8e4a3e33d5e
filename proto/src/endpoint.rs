//! Where a control is, and how it is reached: a Unix socket, plain text on this machine, or TLS with a certificate on
//! both sides.
//!
//! Text becomes an [`Endpoint`], which the look-up of its name turns into [`Address`]es, to which a [`Connector`]
//! opens channels. A connector is only made for endpoints that may be used.

mod connector;

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

use rustls_pki_types::ServerName;
use tonic::transport::Uri;

pub use connector::{ConnectError, Connector, TlsFiles, Unusable};

/// Where a control is, as far as its text parses; whether it can be used, a [`Connector`] says.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// `unix:PATH`.
    Unix(PathBuf),
    /// `http://HOST:PORT` or `https://HOST:PORT`.
    Url(Uri),
}

/// Text that names no control.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a control is unix:PATH, http://HOST:PORT on loopback, or https://HOST:PORT")]
pub struct InvalidEndpoint;

impl FromStr for Endpoint {
    type Err = InvalidEndpoint;

    fn from_str(text: &str) -> Result<Self, InvalidEndpoint> {
        if let Some(path) = text.strip_prefix("unix:") {
            return if path.is_empty() { Err(InvalidEndpoint) } else { Ok(Self::Unix(path.into())) };
        }
        match text.parse::<Uri>() {
            Ok(uri) if uri.scheme().is_some() && uri.host().is_some_and(|host| !host.is_empty()) => {
                Ok(Self::Url(uri))
            }
            Ok(_) | Err(_) => Err(InvalidEndpoint),
        }
    }
}

/// Without a user name or a password, which a URL may hold by mistake.
impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Url(uri) => {
                write!(f, "{}://{}", uri.scheme_str().unwrap_or_default(), uri.host().unwrap_or_default())?;
                uri.port().map_or(Ok(()), |port| write!(f, ":{port}"))
            }
        }
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Endpoint({self})")
    }
}

impl Endpoint {
    /// Looks its name up: every place that it leads to now, none of them twice. Plain text leads to loopback alone,
    /// whatever a name resolves to.
    pub async fn resolve(&self) -> io::Result<Vec<Address>> {
        let uri = match self {
            Self::Unix(path) => return Ok(vec![Address::unix(path.clone())]),
            Self::Url(uri) => uri,
        };
        let secure = uri.scheme_str() == Some("https");
        let host = bare(uri.host().unwrap_or_default());
        let port = uri.port_u16().unwrap_or(if secure { 443 } else { 80 });
        let tls = if secure { Some(server_name(host)?) } else { None };
        let authority = uri.host().map(|host| format!("{host}:{port}")).unwrap_or_default();
        let mut addresses = Vec::new();
        for socket in tokio::net::lookup_host((host, port)).await? {
            let address = Address { place: Place::Tcp(socket), authority: authority.clone(), server: tls.clone() };
            if (secure || socket.ip().is_loopback()) && !addresses.contains(&address) {
                addresses.push(address);
            }
        }
        if addresses.is_empty() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "the name leads to no loopback address"));
        }
        Ok(addresses)
    }
}

/// One place where a control is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Address {
    place: Place,
    /// What HTTP/2 names it by.
    authority: String,
    /// The name that its certificate must have; none: plain text.
    server: Option<ServerName<'static>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Place {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

impl Address {
    fn unix(path: PathBuf) -> Self {
        Self { place: Place::Unix(path), authority: "localhost".to_owned(), server: None }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.place, &self.server) {
            (Place::Unix(path), _) => write!(f, "unix:{}", path.display()),
            (Place::Tcp(socket), None) => write!(f, "http://{socket}"),
            (Place::Tcp(socket), Some(ServerName::DnsName(name))) => {
                write!(f, "https://{}:{} ({})", name.as_ref(), socket.port(), socket.ip())
            }
            (Place::Tcp(socket), Some(_)) => write!(f, "https://{socket}"),
        }
    }
}

/// A host without the brackets of an IPv6 address.
fn bare(host: &str) -> &str {
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

fn is_loopback(host: &str) -> bool {
    let host = bare(host);
    host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn server_name(host: &str) -> io::Result<ServerName<'static>> {
    let name = ServerName::try_from(host.to_owned());
    name.map_err(|_name| io::Error::new(io::ErrorKind::InvalidInput, "a certificate cannot have this name"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_names_no_control_does_not_parse() {
        for text in ["", "unix:", "127.0.0.1:7000", "/run/x.sock", "http://", "http:///x", "a b"] {
            assert_eq!(text.parse::<Endpoint>(), Err(InvalidEndpoint), "{text}");
        }
    }

    #[test]
    fn an_endpoint_is_shown_without_a_password() {
        let endpoint: Endpoint = "http://user:hush@127.0.0.1:7000/x".parse().unwrap();
        assert_eq!(endpoint.to_string(), "http://127.0.0.1:7000");
        assert!(!format!("{endpoint:?}").contains("hush"));
    }

    #[tokio::test]
    async fn an_endpoint_resolves_to_places_that_say_where_they_are() {
        for (text, shown) in [
            ("unix:/run/gate.sock", "unix:/run/gate.sock"),
            ("http://127.0.0.1:7000", "http://127.0.0.1:7000"),
            ("http://[::1]:7000", "http://[::1]:7000"),
            ("https://10.0.0.1:7000", "https://10.0.0.1:7000"),
            ("https://[2001:db8::1]", "https://[2001:db8::1]:443"),
        ] {
            let addresses = text.parse::<Endpoint>().unwrap().resolve().await.unwrap();
            assert_eq!(addresses.iter().map(ToString::to_string).collect::<Vec<_>>(), [shown], "{text}");
        }
        let named = "https://localhost:7000".parse::<Endpoint>().unwrap().resolve().await.unwrap();
        assert!(
            named.iter().any(|address| address.to_string() == "https://localhost:7000 (127.0.0.1)"),
            "{named:?}"
        );
    }

    #[tokio::test]
    async fn plain_text_leads_to_loopback_alone() {
        assert!("http://10.0.0.1:7000".parse::<Endpoint>().unwrap().resolve().await.is_err());
    }
}
