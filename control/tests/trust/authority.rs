//! Certificates for a test.

use std::path::{Path, PathBuf};

use gitdoor_proto::endpoint::TlsFiles;
use rcgen::string::Ia5String;
use rcgen::{BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, SanType};
use time::{Duration, OffsetDateTime};

/// A certificate authority in a folder of its own.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    folder: tempfile::TempDir,
}

/// What a certificate is for.
#[derive(Clone, Copy)]
pub(crate) enum Use {
    Server,
    Client,
}

impl Authority {
    pub(crate) fn new() -> Self {
        Self::named("one authority")
    }

    pub(crate) fn named(name: &str) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("ca.pem"), params.self_signed(&key).unwrap().pem()).unwrap();
        Self { issuer: Issuer::new(params, key), folder }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes `NAME.pem` and `NAME.key`: a certificate with these URIs that ends so far from now.
    pub(crate) fn write(&self, name: &str, purpose: Use, uris: &[&str], ends: Duration) {
        let key = KeyPair::generate().unwrap();
        let mut params = match purpose {
            Use::Server => CertificateParams::new(vec!["localhost".into(), "127.0.0.1".into()]).unwrap(),
            Use::Client => CertificateParams::default(),
        };
        params.extended_key_usages = match purpose {
            Use::Server => vec![ExtendedKeyUsagePurpose::ServerAuth],
            Use::Client => vec![ExtendedKeyUsagePurpose::ClientAuth],
        };
        let uris = uris.iter().map(|uri| SanType::URI(Ia5String::try_from(*uri).unwrap()));
        params.subject_alt_names.extend(uris);
        params.not_before = OffsetDateTime::now_utc() - Duration::days(30);
        params.not_after = OffsetDateTime::now_utc() + ends;
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        replace(&self.path(&format!("{name}.key")), &key.serialize_pem());
        replace(&self.path(&format!("{name}.pem")), &certificate.pem());
    }

    /// A client's certificate, written and named, which control's clients trust by this authority.
    pub(crate) fn client(&self, name: &str, uris: &[&str]) -> TlsFiles {
        self.write(name, Use::Client, uris, Duration::days(1));
        self.files(name)
    }

    pub(crate) fn files(&self, name: &str) -> TlsFiles {
        TlsFiles {
            ca: Some(self.path("ca.pem")),
            cert: Some(self.path(&format!("{name}.pem"))),
            key: Some(self.path(&format!("{name}.key"))),
        }
    }

    /// Every key that it wrote, line by line.
    pub(crate) fn key_lines(&self) -> Vec<String> {
        let files = std::fs::read_dir(self.folder.path()).unwrap().map(|file| file.unwrap().path());
        let keys = files.filter(|path| path.extension().is_some_and(|kind| kind == "key"));
        let lines = keys.flat_map(|path| {
            let text = std::fs::read_to_string(path).unwrap();
            text.lines().filter(|line| !line.starts_with("---")).map(str::to_owned).collect::<Vec<_>>()
        });
        lines.filter(|line| line.len() > 20).collect()
    }
}

fn replace(path: &Path, text: &str) {
    let next = path.with_extension("next");
    std::fs::write(&next, text).unwrap();
    std::fs::rename(next, path).unwrap();
}
