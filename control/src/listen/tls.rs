//! What a listener is by TLS: its certificate, and whose client certificates it takes.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use gitdoor_proto::tls::{self, Look, Reloaded, TlsError};
use rustls::ServerConfig;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};

use crate::metrics;
use crate::trust::Side;

/// The files of a listener.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    /// Its certificate chain.
    pub cert: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// Authorities of its clients' certificates.
    pub client_ca: PathBuf,
}

/// What its files make of a listener.
#[derive(Debug)]
pub struct Identity {
    /// For handshakes.
    pub config: Arc<ServerConfig>,
    /// When its certificate ends, since 1970.
    ends: Duration,
}

impl Identity {
    fn read(files: &Files) -> Result<Self, TlsError> {
        let chain = tls::certificates(&files.cert)?;
        let ends = chain.first().map(tls::ends).transpose()?.ok_or(TlsError::Times)?;
        let clients = Arc::new(tls::authorities(&files.client_ca)?);
        let verifier = WebPkiClientVerifier::builder_with_provider(clients, tls::provider()).build()?;
        let mut config = ServerConfig::builder_with_provider(tls::provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(TlsError::Pair)?
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain, tls::private_key(&files.key)?)
            .map_err(TlsError::Pair)?;
        config.alpn_protocols = vec![tls::ALPN.to_vec()];
        // A session that is resumed shows no certificate: it would outlive its certificate and its authority.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Self { config: Arc::new(config), ends })
    }
}

/// A listener's identity, read again when its files change.
pub type Identities = Arc<Reloaded<Identity>>;

/// Reads a listener's files.
pub fn open(side: Side, files: Files) -> Result<Identities, TlsError> {
    let all = vec![files.cert.clone(), files.key.clone(), files.client_ca.clone()];
    let identities = Reloaded::open(all, move || Identity::read(&files))?;
    metrics::certificate_expiry(side.as_str(), identities.current().ends);
    Ok(identities)
}

/// Reads them again when they change, for ever.
pub async fn keep(side: Side, identities: Identities) {
    let listener = side.as_str();
    metrics::certificate_reloads(listener);
    let current = Arc::clone(&identities);
    let told = move |look: &Look| match look {
        Look::Unchanged => {}
        Look::Replaced => {
            metrics::certificate_expiry(listener, current.current().ends);
            metrics::certificate_reload(listener, "replaced");
            tracing::info!(listener, "new certificates are in use");
        }
        Look::Kept(why) => {
            metrics::certificate_reload(listener, "kept");
            tracing::error!(listener, %why, "changed certificates cannot be used; those before them stay");
        }
    };
    identities.keep(told).await;
}
