//! The command lines of the parts.

use std::path::Path;

use super::Trust;
use crate::gh::DOOR;
use crate::github::{APP_ID, Github, INSTALLATION_ID};

/// Control's flags.
pub(super) fn control_flags(github: &Github, home: &Path) -> Vec<String> {
    vec![
        format!("--runs-listen=unix:{}", home.join("runs.sock").display()),
        format!("--gate-listen=unix:{}", home.join("gate.sock").display()),
        "--admin-listen=127.0.0.1:0".to_owned(),
        format!("--store=sqlite:{}", home.join("store.sqlite").display()),
        format!("--github-app-id={APP_ID}"),
        format!("--github-app-key={}", github.app_key_file().display()),
        format!("--github-installation-id={INSTALLATION_ID}"),
        format!("--github-api-url={}", github.api_url()),
        format!("--github-ca={}", github.ca_file().display()),
    ]
}

/// A data plane's flags.
pub(super) fn dataplane_flags(
    github: &Github,
    folder: &Path,
    gates: &[String],
    trust: Option<&Trust>,
    plain: bool,
) -> Vec<String> {
    let home = folder.join("dataplane");
    let mut flags = vec![
        "--listen=127.0.0.1:0".to_owned(),
        "--admin-listen=127.0.0.1:0".to_owned(),
        // As many on every machine.
        "--threads=2".to_owned(),
        format!("--public-host=localhost,{DOOR}"),
        format!("--github-url={}", github.url()),
        format!("--github-api-url={}", github.api_url()),
        format!("--storage-hosts={}", github.storage_address().to_string().replace("127.0.0.1", "localhost")),
        format!("--github-ca={}", github.ca_file().display()),
    ];
    flags.extend(gates.iter().map(|gate| format!("--control={gate}")));
    flags.extend(trust.map(|trust| trust.client_flags("dataplane")).unwrap_or_default());
    if !plain {
        flags.push(format!("--tls-cert={}", home.join("cert.pem").display()));
        flags.push(format!("--tls-key={}", home.join("key.pem").display()));
    }
    flags
}

/// An address of a `ready` line as a client takes it.
pub(super) fn url_of(address: &str, secure: bool) -> String {
    match (address.starts_with("unix:"), secure) {
        (true, _) => address.to_owned(),
        (false, true) => format!("https://{address}"),
        (false, false) => format!("http://{address}"),
    }
}

/// Flags of a test in place of those of the same name.
pub(super) fn merge(mut flags: Vec<String>, extra: &[String]) -> Vec<String> {
    let name = |flag: &str| flag.split('=').next().unwrap_or_default().to_owned();
    flags.retain(|flag| !extra.iter().any(|other| name(other) == name(flag)));
    flags.extend_from_slice(extra);
    flags
}
