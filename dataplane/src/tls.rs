//! TLS settings of both sides, from files.

use std::path::Path;
use std::sync::Arc;

use rustls::crypto::aws_lc_rs;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

/// Why a file is no use for TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file that cannot be read, or holds no PEM of the kind.
    #[error("cannot read a {what} from {path}: {why}")]
    File {
        /// The kind of thing.
        what: &'static str,
        /// The file.
        path: String,
        /// What the reader says.
        why: rustls_pki_types::pem::Error,
    },
    /// A file without a certificate.
    #[error("{0} holds no certificate")]
    Empty(String),
    /// A key that is not the certificate's, or of an unknown kind.
    #[error("the certificate and the key do not go together: {0}")]
    Pair(#[source] rustls::Error),
    /// A root that cannot be used.
    #[error("a certificate in {path} is no root: {why}")]
    Root {
        /// The file.
        path: String,
        /// What the verifier says.
        why: rustls::Error,
    },
    /// The system has no roots and none were named.
    #[error("the system has no trusted roots; name a file of them")]
    NoRoots,
}

/// Settings of the public listener.
pub fn server(cert: &Path, key: &Path, http2: bool) -> Result<Arc<ServerConfig>, TlsError> {
    let chain = certificates(cert)?;
    let key = PrivateKeyDer::from_pem_file(key).map_err(|why| file("private key", key, why))?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Pair)?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(TlsError::Pair)?;
    config.alpn_protocols =
        if http2 { vec![b"h2".to_vec(), b"http/1.1".to_vec()] } else { vec![b"http/1.1".to_vec()] };
    Ok(Arc::new(config))
}

/// Settings towards the forge: the roots in a file, or the system's.
pub fn client(ca: Option<&Path>) -> Result<Arc<ClientConfig>, TlsError> {
    let mut roots = RootCertStore::empty();
    match ca {
        Some(path) => {
            for certificate in certificates(path)? {
                roots.add(certificate).map_err(|why| TlsError::Root { path: path.display().to_string(), why })?;
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    if roots.is_empty() {
        return Err(TlsError::NoRoots);
    }
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Pair)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let certificates = read.map_err(|why| file("certificate", path, why))?;
    if certificates.is_empty() { Err(TlsError::Empty(path.display().to_string())) } else { Ok(certificates) }
}

fn file(what: &'static str, path: &Path, why: rustls_pki_types::pem::Error) -> TlsError {
    TlsError::File { what, path: path.display().to_string(), why }
}
