//! The flags by which control is trusted, and trusts.

use std::path::PathBuf;

use gitdoor_proto::endpoint::TlsFiles;

/// Certificates towards control.
#[derive(Debug, clap::Args)]
pub(crate) struct ControlTls {
    /// Authorities of control's certificate, in PEM; an https:// control needs it
    #[arg(id = "control-tls-ca", long = "control-tls-ca", global = true, value_name = "FILE")]
    #[arg(env = "GITDOOR_CONTROL_TLS_CA", hide_env_values = true)]
    ca: Option<PathBuf>,

    /// Certificate to ask with, in PEM: it names gitdoor:bot, or gitdoor:ops, which may show, list and revoke
    #[arg(id = "control-tls-cert", long = "control-tls-cert", global = true, value_name = "FILE")]
    #[arg(env = "GITDOOR_CONTROL_TLS_CERT", hide_env_values = true)]
    cert: Option<PathBuf>,

    /// Its private key, in PEM
    #[arg(id = "control-tls-key", long = "control-tls-key", global = true, value_name = "FILE")]
    #[arg(env = "GITDOOR_CONTROL_TLS_KEY", hide_env_values = true)]
    key: Option<PathBuf>,
}

impl ControlTls {
    /// The files.
    pub(crate) fn files(self) -> TlsFiles {
        TlsFiles { ca: self.ca, cert: self.cert, key: self.key }
    }
}
