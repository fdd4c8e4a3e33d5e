//! A certificate authority of one's own: each server of a test has one, and only its clients are told of it.

use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use rustls::ServerConfig;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use crate::clock;

/// A certificate authority made for one test.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

/// A certificate of an [`Authority`] and its key, both PEM.
pub struct Leaf {
    /// The certificate.
    pub certificate: String,
    /// Its private key.
    pub key: String,
}

impl Authority {
    /// Makes an authority with this common name.
    pub fn new(name: &str) -> Self {
        let key = KeyPair::generate().expect("a key pair");
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params.distinguished_name.push(DnType::CommonName, name);
        let pem = params.self_signed(&key).expect("a certificate").pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    /// The authority's certificate: what a client trusts.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// A certificate for `localhost` and `127.0.0.1`.
    pub fn localhost(&self) -> Leaf {
        self.leaf(&["localhost", "127.0.0.1"])
    }

    /// A certificate for these names and addresses.
    pub fn leaf(&self, names: &[&str]) -> Leaf {
        self.leaf_that(names, |_| {})
    }

    /// A certificate for these names and addresses that ends after this time.
    pub fn short_leaf(&self, names: &[&str], life: Duration) -> Leaf {
        let ends = UNIX_EPOCH + Duration::from_secs(clock::unix_seconds(0).unsigned_abs()) + life;
        self.leaf_that(names, |params| params.not_after = ends.into())
    }

    fn leaf_that(&self, names: &[&str], change: impl FnOnce(&mut CertificateParams)) -> Leaf {
        let key = KeyPair::generate().expect("a key pair");
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).expect("names and addresses");
        params.distinguished_name.push(DnType::CommonName, "server of a test");
        change(&mut params);
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        Leaf { certificate: certificate.pem(), key: key.serialize_pem() }
    }
}

impl Leaf {
    /// A TLS server with this certificate that speaks HTTP/1.1.
    pub fn server(&self) -> Arc<ServerConfig> {
        let chain = CertificateDer::pem_slice_iter(self.certificate.as_bytes());
        let chain = chain.collect::<Result<Vec<_>, _>>().expect("a certificate in PEM");
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes()).expect("a key in PEM");
        let builder = ServerConfig::builder().with_no_client_auth();
        let mut config = builder.with_single_cert(chain, key).expect("a key that fits its certificate");
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Arc::new(config)
    }
}
