//! TLS settings of both sides, from files, and the watch over those that may change.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use gitdoor_proto::endpoint::Connector;
use gitdoor_proto::tls::{self, Look, Reloaded, TlsError};
use rustls::{ClientConfig, RootCertStore, ServerConfig};

use crate::metrics;

/// Why nothing can be trusted.
#[derive(Debug, thiserror::Error)]
pub enum Untrusting {
    /// A file is no use.
    #[error(transparent)]
    File(#[from] TlsError),
    /// The system has no roots and none were named.
    #[error("the system has no trusted roots; name a file of them")]
    NoRoots,
}

/// The public listener by TLS.
#[derive(Debug)]
pub struct Identity {
    /// For handshakes.
    pub config: Arc<ServerConfig>,
    /// When its certificate ends, since 1970.
    ends: Duration,
}

/// Settings of the public listener, read again when the files change.
pub fn server(cert: PathBuf, key: PathBuf, http2: bool) -> Result<Arc<Reloaded<Identity>>, TlsError> {
    Reloaded::open(vec![cert.clone(), key.clone()], move || identity(&cert, &key, http2))
}

fn identity(cert: &Path, key: &Path, http2: bool) -> Result<Identity, TlsError> {
    let chain = tls::certificates(cert)?;
    let ends = chain.first().map(tls::ends).transpose()?.ok_or(TlsError::Times)?;
    let mut config = ServerConfig::builder_with_provider(tls::provider())
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Pair)?
        .with_no_client_auth()
        .with_single_cert(chain, tls::private_key(key)?)
        .map_err(TlsError::Pair)?;
    config.alpn_protocols =
        if http2 { vec![b"h2".to_vec(), b"http/1.1".to_vec()] } else { vec![b"http/1.1".to_vec()] };
    Ok(Identity { config: Arc::new(config), ends })
}

/// Settings towards the forge: the roots in a file, or the system's.
pub fn client(ca: Option<&Path>) -> Result<Arc<ClientConfig>, Untrusting> {
    let mut roots = RootCertStore::empty();
    match ca {
        Some(path) => roots = tls::authorities(path)?,
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    if roots.is_empty() {
        return Err(Untrusting::NoRoots);
    }
    let config = ClientConfig::builder_with_provider(tls::provider())
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Pair)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

/// Reads the public listener's files again when they change, for ever.
pub async fn keep_public(identities: Arc<Reloaded<Identity>>) {
    let current = Arc::clone(&identities);
    metrics::certificate_expiry("public", current.current().ends);
    metrics::certificate_reloads("public");
    identities.keep(move |look| told("public", look, || current.current().ends)).await;
}

/// Reads the files towards control again when they change, for ever.
pub async fn keep_control(connector: Connector) {
    let Some(identity) = connector.identity() else { return };
    let current = Arc::clone(identity);
    metrics::certificate_expiry("control", current.current().ends);
    metrics::certificate_reloads("control");
    Arc::clone(identity).keep(move |look| told("control", look, || current.current().ends)).await;
}

fn told(certificate: &'static str, look: &Look, ends: impl Fn() -> Duration) {
    match look {
        Look::Unchanged => {}
        Look::Replaced => {
            metrics::certificate_expiry(certificate, ends());
            metrics::certificate_reload(certificate, "replaced");
            tracing::info!(certificate, "a new certificate is in use");
        }
        Look::Kept(why) => {
            metrics::certificate_reload(certificate, "kept");
            tracing::error!(certificate, %why, "changed files cannot be used; those before them stay");
        }
    }
}
