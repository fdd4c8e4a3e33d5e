//! The flags by which control is trusted, and trusts.

use std::path::PathBuf;

use gitdoor_proto::endpoint::TlsFiles;

/// Certificates towards control.
#[derive(Debug, clap::Args)]
pub(crate) struct ControlTls {
    /// Authorities of control's certificate, in PEM; an https:// control needs it
    #[arg(long, global = true, value_name = "FILE", env = "GITDOOR_CONTROL_TLS_CA", hide_env_values = true)]
    control_tls_ca: Option<PathBuf>,

    /// Certificate to ask with, in PEM: it names gitdoor:bot, or gitdoor:ops, which may show, list and revoke
    #[arg(long, global = true, value_name = "FILE", env = "GITDOOR_CONTROL_TLS_CERT", hide_env_values = true)]
    control_tls_cert: Option<PathBuf>,

    /// Its private key, in PEM
    #[arg(long, global = true, value_name = "FILE", env = "GITDOOR_CONTROL_TLS_KEY", hide_env_values = true)]
    control_tls_key: Option<PathBuf>,
}

impl ControlTls {
    /// The files.
    pub(crate) fn files(self) -> TlsFiles {
        TlsFiles { ca: self.control_tls_ca, cert: self.control_tls_cert, key: self.control_tls_key }
    }
}
