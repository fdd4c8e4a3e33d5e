//! Where the server is and how it is spoken to: the URL, the password's file, the certificates.
//!
//! Plain text is spoken on this machine alone; elsewhere the server shows a certificate for its name.

use std::borrow::Cow;
use std::fs;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustls::crypto::aws_lc_rs;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::Config;
use super::open::OpenError;

/// Time to connect to one of a server's addresses; there may be several, and a question waits.
const CONNECT: Duration = Duration::from_millis(500);
/// A peer that vanished is noticed within a minute, although nobody asks it.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(30);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
const KEEPALIVE_RETRIES: u32 = 3;
/// Bytes that a peer does not acknowledge for this long end their connection.
const UNACKNOWLEDGED: Duration = Duration::from_secs(10);
/// How this program is called in the server's own views.
const APPLICATION: &str = "gitdoor-control";

/// How connections are made.
pub(super) struct Target {
    pub(super) server: tokio_postgres::Config,
    pub(super) tls: MakeRustlsConnect,
}

/// Whether TLS was asked for, or not.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    Nothing,
    Plain,
    Verified,
}

impl Target {
    pub(super) fn new(config: &Config) -> Result<Self, OpenError> {
        let (asked, mut server) = read_url(&config.url)?;
        let local = is_local(&server);
        let plain = match asked {
            Asked::Plain if !local => return Err(OpenError::PlainText),
            Asked::Plain => true,
            Asked::Nothing => local,
            Asked::Verified => false,
        };
        server.ssl_mode(if plain { SslMode::Disable } else { SslMode::Require });
        if let Some(path) = &config.password_file {
            server.password(password(path)?);
        }
        server.target_session_attrs(TargetSessionAttrs::ReadWrite);
        if server.get_application_name().is_none() {
            server.application_name(APPLICATION);
        }
        if server.get_connect_timeout().is_none() {
            server.connect_timeout(CONNECT);
        }
        server.tcp_user_timeout(UNACKNOWLEDGED);
        server.keepalives_idle(KEEPALIVE_IDLE).keepalives_interval(KEEPALIVE_INTERVAL);
        server.keepalives_retries(KEEPALIVE_RETRIES);
        let roots = if plain { RootCertStore::empty() } else { roots(config.ca.as_deref())? };
        Ok(Self { server, tls: MakeRustlsConnect::new(tls(roots)?) })
    }
}

fn read_url(url: &str) -> Result<(Asked, tokio_postgres::Config), OpenError> {
    // Before anything is parsed: an error must not quote a part of a password.
    let authority = url.split_once("//").map_or("", |(_, rest)| rest);
    if authority.rsplit_once('@').is_some_and(|(user, _)| user.contains(':')) {
        return Err(OpenError::Password);
    }
    let (asked, url) = without_sslmode(url)?;
    let server: tokio_postgres::Config = url.parse().map_err(|source| OpenError::Url { source })?;
    if server.get_password().is_some() {
        return Err(OpenError::Password);
    }
    if server.get_hosts().is_empty() && server.get_hostaddrs().is_empty() {
        return Err(OpenError::NoHost);
    }
    Ok((asked, server))
}

/// Takes `sslmode` out, of which the driver knows other values than are good enough here.
fn without_sslmode(url: &str) -> Result<(Asked, Cow<'_, str>), OpenError> {
    let Some((place, options)) = url.split_once('?') else {
        return Ok((Asked::Nothing, url.into()));
    };
    let mut asked = Asked::Nothing;
    let mut others = Vec::new();
    for option in options.split('&') {
        match option.strip_prefix("sslmode=") {
            None => others.push(option),
            Some("disable") => asked = Asked::Plain,
            Some("verify-full") => asked = Asked::Verified,
            Some(_) => return Err(OpenError::SslMode),
        }
    }
    Ok((asked, format!("{place}?{}", others.join("&")).into()))
}

fn is_local(server: &tokio_postgres::Config) -> bool {
    let host = |host: &Host| match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => name == "localhost" || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback()),
    };
    server.get_hosts().iter().all(host) && server.get_hostaddrs().iter().all(IpAddr::is_loopback)
}

fn password(path: &Path) -> Result<String, OpenError> {
    let read = fs::read_to_string(path);
    let text = read.map_err(|source| OpenError::PasswordFile { path: path.to_owned(), source })?;
    let password = text.trim_end_matches(['\r', '\n']);
    if password.is_empty() { Err(OpenError::NoPassword { path: path.to_owned() }) } else { Ok(password.to_owned()) }
}

/// The authorities of a file, or else the system's.
fn roots(ca: Option<&Path>) -> Result<RootCertStore, OpenError> {
    let mut roots = RootCertStore::empty();
    let Some(path) = ca else {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        return if roots.is_empty() { Err(OpenError::CaMissing) } else { Ok(roots) };
    };
    let pem = fs::read(path).map_err(|source| OpenError::CaFile { path: path.to_owned(), source })?;
    let invalid = || OpenError::CaInvalid { path: path.to_owned() };
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        roots.add(certificate.map_err(|_pem| invalid())?).map_err(|_der| invalid())?;
    }
    if roots.is_empty() { Err(invalid()) } else { Ok(roots) }
}

fn tls(roots: RootCertStore) -> Result<ClientConfig, OpenError> {
    let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().map_err(|source| OpenError::Tls { source })?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(url: &str) -> Result<Target, OpenError> {
        Target::new(&Config::new(url))
    }

    fn words(url: &str) -> String {
        target(url).err().map(|error| crate::gate::cause(&error)).unwrap_or_default()
    }

    #[test]
    fn plain_text_is_spoken_on_this_machine_alone() {
        for local in [
            "postgres://door@localhost/gitdoor",
            "postgresql://127.0.0.1:5433/gitdoor?application_name=x",
            "postgres://[::1]/gitdoor",
            "postgres:///gitdoor?host=/run/postgresql",
            "postgres://%2Frun%2Fpostgresql/gitdoor",
            "postgres://localhost/gitdoor?sslmode=disable",
        ] {
            assert_eq!(target(local).unwrap().server.get_ssl_mode(), SslMode::Disable, "{local}");
        }
        for remote in [
            "postgres://db.example.com/gitdoor",
            "postgres://10.0.0.1/gitdoor?sslmode=verify-full",
            "postgres://localhost,db.example.com/gitdoor",
            "postgres://localhost/gitdoor?hostaddr=10.0.0.1",
            "postgres://localhost/gitdoor?sslmode=verify-full",
        ] {
            assert_eq!(target(remote).unwrap().server.get_ssl_mode(), SslMode::Require, "{remote}");
        }
        assert!(matches!(target("postgres://db/x?sslmode=disable").err(), Some(OpenError::PlainText)));
        for mode in ["allow", "prefer", "require", "verify-ca", ""] {
            let url = format!("postgres://db/x?sslmode={mode}&application_name=y");
            assert!(matches!(target(&url).err(), Some(OpenError::SslMode)), "{url}");
        }
    }

    #[test]
    fn a_password_in_the_url_is_refused_and_never_shown() {
        for url in [
            "postgres://door:hush@db/gitdoor",
            "postgres://door:h?ush@db/gitdoor",
            "postgres://door:h/ush@db/gitdoor",
            "postgres://door:hush@db:5432/gitdoor?sslmode=verify-full",
            "postgres://db/gitdoor?password=hush",
            "postgres://db/gitdoor?sslmode=verify-full&password=hush",
        ] {
            assert!(matches!(target(url).err(), Some(OpenError::Password)), "{url}");
            assert!(!words(url).contains("hush"), "{url}");
        }
    }

    #[test]
    fn what_is_no_url_is_refused_in_words() {
        assert!(words("postgres://db/x?sslrootcert=y").contains("sslrootcert"));
        assert!(words("postgres://db:port/x").contains("port"));
        assert!(matches!(target("postgres:///gitdoor").err(), Some(OpenError::NoHost)));
    }

    #[test]
    fn the_password_and_the_authorities_are_files() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = dir.path().join(name);
            fs::write(&path, text).unwrap();
            Some(path)
        };
        let none = Some(dir.path().join("none"));
        let remote = Config::new("postgres://db/gitdoor");
        let with_password = |password_file| Target::new(&Config { password_file, ..remote.clone() });
        let server = with_password(file("password", "hush hush\r\n")).unwrap().server;
        assert_eq!(server.get_password(), Some(&b"hush hush"[..]));
        assert!(!format!("{server:?}").contains("hush"));
        assert!(matches!(with_password(file("empty", "\n")).err(), Some(OpenError::NoPassword { .. })));
        assert!(matches!(with_password(none.clone()).err(), Some(OpenError::PasswordFile { .. })));
        let with_ca = |ca| Target::new(&Config { ca, ..remote.clone() });
        assert!(matches!(with_ca(none).err(), Some(OpenError::CaFile { .. })));
        assert!(matches!(with_ca(file("letter", "dear friend")).err(), Some(OpenError::CaInvalid { .. })));
        let own = rcgen::generate_simple_self_signed(["db".to_owned()]).unwrap();
        assert!(with_ca(file("ca", &own.cert.pem())).is_ok());
    }
}
