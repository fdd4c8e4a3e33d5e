//! TLS between the planes, from files: TLS 1.3, both sides with a certificate, nothing resumed.
//!
//! An error never holds what a file holds: a private key may be in it.

mod reload;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustls::client::Resumption;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::{self, PemObject as _};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use x509_cert::der::Decode as _;

pub use reload::{Look, Reloaded};

/// The protocol above TLS, as it is negotiated.
pub const ALPN: &[u8] = b"h2";

/// Why files are no use for TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file that cannot be read.
    #[error("{path} cannot be read: {why}")]
    File {
        /// The file.
        path: String,
        /// What the system says.
        why: io::Error,
    },
    /// A file that holds nothing of the kind.
    #[error("{path} holds no {what} in PEM")]
    Nothing {
        /// The kind of thing.
        what: &'static str,
        /// The file.
        path: String,
    },
    /// A file that begins as PEM and is none.
    #[error(
        "{path} is broken: a {what} in PEM has its BEGIN and END on lines of their own and base64 between them"
    )]
    Pem {
        /// The kind of thing.
        what: &'static str,
        /// The file.
        path: String,
    },
    /// A key that is not the certificate's, or of an unknown kind.
    #[error("the certificate and the key do not go together: {0}")]
    Pair(#[source] rustls::Error),
    /// A certificate that cannot be an authority.
    #[error("a certificate in {path} is no authority: {why}")]
    Authority {
        /// The file.
        path: String,
        /// What the verifier says.
        why: rustls::Error,
    },
    /// Client certificates cannot be verified by these authorities.
    #[error("client certificates cannot be verified: {0}")]
    Verifier(#[from] rustls::server::VerifierBuilderError),
    /// A certificate whose time cannot be read.
    #[error("a certificate whose times cannot be read")]
    Times,
}

/// The one provider of cryptography.
#[must_use]
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}

/// The certificates in a file, at least one.
pub fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    const WHAT: &str = "certificate";
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let certificates = read.map_err(|why| unread(WHAT, path, why))?;
    if certificates.is_empty() {
        return Err(TlsError::Nothing { what: WHAT, path: path.display().to_string() });
    }
    Ok(certificates)
}

/// The private key in a file.
pub fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_file(path).map_err(|why| unread("private key", path, why))
}

/// The authorities in a file, at least one.
pub fn authorities(path: &Path) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(|why| TlsError::Authority { path: path.display().to_string(), why })?;
    }
    Ok(roots)
}

/// The side that connects: whom it trusts, and who it is.
#[derive(Debug)]
pub struct Client {
    /// For handshakes.
    pub config: Arc<ClientConfig>,
    /// When its certificate ends, since 1970.
    pub ends: Duration,
}

/// Reads a [`Client`].
pub fn client(ca: &Path, cert: &Path, key: &Path) -> Result<Client, TlsError> {
    let chain = certificates(cert)?;
    let ends = chain.first().map(ends).transpose()?.ok_or(TlsError::Times)?;
    let mut config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(TlsError::Pair)?
        .with_root_certificates(authorities(ca)?)
        .with_client_auth_cert(chain, private_key(key)?)
        .map_err(TlsError::Pair)?;
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.resumption = Resumption::disabled();
    Ok(Client { config: Arc::new(config), ends })
}

/// When a certificate ends, since 1970.
pub fn ends(certificate: &CertificateDer<'_>) -> Result<Duration, TlsError> {
    let read = x509_cert::Certificate::from_der(certificate).map_err(|_unread| TlsError::Times)?;
    Ok(read.tbs_certificate.validity.not_after.to_unix_duration())
}

/// Who a certificate is of: its subject as RFC 4514 writes it; none: it has none.
#[must_use]
pub fn subject(certificate: &CertificateDer<'_>) -> Option<String> {
    let read = x509_cert::Certificate::from_der(certificate).ok()?;
    Some(read.tbs_certificate.subject.to_string()).filter(|subject| !subject.is_empty())
}

/// The reader's own words may quote the line that they are about, and so a key.
#[expect(clippy::wildcard_enum_match_arm, reason = "the reader may add errors; none of them is to be quoted")]
fn unread(what: &'static str, path: &Path, why: pem::Error) -> TlsError {
    let path = path.display().to_string();
    match why {
        pem::Error::Io(why) => TlsError::File { path, why },
        pem::Error::NoItemsFound => TlsError::Nothing { what, path },
        _ => TlsError::Pem { what, path },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_error_quotes_a_file_that_may_hold_a_key() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key.pem");
        for text in [
            "-----BEGIN PRIVATE KEY-----hush-----END PRIVATE KEY-----\n",
            "-----BEGIN PRIVATE KEY-----hush\n",
            "-----BEGIN PRIVATE KEY-----\nhush!\n-----END PRIVATE KEY-----\n",
            "hush\n",
        ] {
            std::fs::write(&path, text).unwrap();
            let error = private_key(&path).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("hush"), "{text:?}: {error}");
            assert!(error.to_string().contains("private key in PEM"), "{text:?}: {error}");
        }
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let error = certificates(Path::new("/nonexistent/ca.pem")).unwrap_err().to_string();
        assert!(error.starts_with("/nonexistent/ca.pem cannot be read: "), "{error}");
    }
}
