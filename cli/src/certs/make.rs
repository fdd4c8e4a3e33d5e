//! Certificates and keys, in memory.

use std::net::IpAddr;

use rcgen::string::Ia5String;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    PublicKeyData as _, SanType,
};
use rustls_pki_types::ServerName;
use time::{Duration, OffsetDateTime};
use x509_parser::extensions::GeneralName;
use x509_parser::pem::Pem;

use super::CertsError;
use super::folder::Folder;
use crate::args::Name;

/// Clocks that are behind see a certificate that has begun.
const BEFORE: Duration = Duration::hours(1);
/// What control is reached by on its own machine.
const LOCAL: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// A certificate and its key, in PEM.
pub(super) struct Pair {
    pub(super) certificate: String,
    pub(super) key: String,
    pub(super) ends: OffsetDateTime,
}

/// What signs.
pub(super) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    ends: OffsetDateTime,
}

impl Authority {
    /// A new one, and its files.
    pub(super) fn new(days: u32) -> Result<(Self, Pair), CertsError> {
        let key = KeyPair::generate()?;
        let ends = after(days)?;
        let mut params = params("gitdoor CA", ends);
        // It signs clients and servers, and no other authority.
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let pair = Pair { certificate: params.self_signed(&key)?.pem(), key: key.serialize_pem(), ends };
        Ok((Self { issuer: Issuer::new(params, key), ends }, pair))
    }

    /// The one of a folder.
    pub(super) fn read(folder: &Folder) -> Result<Self, CertsError> {
        let (key, certificate) = (folder.read("ca", "key")?, folder.read("ca", "pem")?);
        // The readers' words are left out: they may quote the key.
        let unusable = |kind| CertsError::Authority(folder.file("ca", kind).display().to_string());
        let key = KeyPair::from_pem(&key).map_err(|_error| unusable("key"))?;
        let (spki, ends) = authority(&certificate).ok_or_else(|| unusable("pem"))?;
        if spki != key.subject_public_key_info() {
            return Err(unusable("key"));
        }
        let issuer = Issuer::from_ca_cert_pem(&certificate, key).map_err(|_error| unusable("pem"))?;
        Ok(Self { issuer, ends })
    }

    /// When it ends, and all that it signed with it.
    pub(super) fn ends(&self) -> OffsetDateTime {
        self.ends
    }

    /// Signs a certificate that lives so many days, and no longer than its authority.
    pub(super) fn sign(&self, name: Name, hosts: &[String], days: u32) -> Result<Pair, CertsError> {
        let key = KeyPair::generate()?;
        let ends = after(days)?.min(self.ends);
        let mut params = params(&format!("gitdoor {}", name.as_str()), ends);
        params.is_ca = IsCa::ExplicitNoCa;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.use_authority_key_identifier_extension = true;
        if name == Name::Control {
            params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
            params.subject_alt_names = names(hosts)?;
        } else {
            params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
            params.subject_alt_names =
                vec![SanType::URI(Ia5String::try_from(format!("gitdoor:{}", name.as_str()))?)];
        }
        let certificate = params.signed_by(&key, &self.issuer)?.pem();
        Ok(Pair { certificate, key: key.serialize_pem(), ends })
    }
}

/// The names and addresses in a server's certificate, as `--control-host` takes them; none that can be read: none.
pub(super) fn hosts_in(certificate: &str) -> Vec<String> {
    let Ok((_, pem)) = x509_parser::pem::parse_x509_pem(certificate.as_bytes()) else {
        return Vec::new();
    };
    let Ok(certificate) = pem.parse_x509() else {
        return Vec::new();
    };
    let names = certificate.subject_alternative_name().ok().flatten();
    names.map(|names| names.value.general_names.iter().filter_map(host).collect()).unwrap_or_default()
}

fn host(name: &GeneralName<'_>) -> Option<String> {
    if let GeneralName::DNSName(name) = name {
        return Some((*name).to_owned());
    }
    let GeneralName::IPAddress(bytes) = name else {
        return None;
    };
    let address = <[u8; 4]>::try_from(*bytes).map(IpAddr::from);
    let address = address.or_else(|_longer| <[u8; 16]>::try_from(*bytes).map(IpAddr::from));
    address.ok().map(|address| address.to_string())
}

/// The public key of an authority's certificate, and when it ends.
fn authority(certificate: &str) -> Option<(Vec<u8>, OffsetDateTime)> {
    let (_, pem): (_, Pem) = x509_parser::pem::parse_x509_pem(certificate.as_bytes()).ok()?;
    let certificate = pem.parse_x509().ok()?;
    certificate
        .is_ca()
        .then(|| (certificate.public_key().raw.to_vec(), certificate.validity().not_after.to_datetime()))
}

fn names(hosts: &[String]) -> Result<Vec<SanType>, CertsError> {
    let mut names = Vec::new();
    for host in LOCAL.into_iter().chain(hosts.iter().map(String::as_str)) {
        let refused = || CertsError::Host(host.to_owned());
        let name = match ServerName::try_from(host) {
            Ok(ServerName::IpAddress(address)) => SanType::IpAddress(IpAddr::from(address)),
            Ok(ServerName::DnsName(name)) => {
                SanType::DnsName(Ia5String::try_from(name.as_ref()).map_err(|_text| refused())?)
            }
            Ok(_) | Err(_) => return Err(refused()),
        };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    Ok(names)
}

fn params(common_name: &str, ends: OffsetDateTime) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.remove(DnType::CommonName);
    params.distinguished_name.push(DnType::CommonName, common_name);
    params.not_before = OffsetDateTime::now_utc() - BEFORE;
    params.not_after = ends;
    params
}

fn after(days: u32) -> Result<OffsetDateTime, CertsError> {
    OffsetDateTime::now_utc().checked_add(Duration::days(days.into())).ok_or(CertsError::Time)
}
