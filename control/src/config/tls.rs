//! The TLS files of control's two listeners.

use std::path::PathBuf;

use clap::Args;

use super::{Listen, Unusable};
use crate::listen::tls::Files;

/// Of Runs' listener.
#[derive(Debug, Clone, Default, Args)]
pub struct RunsTls {
    /// Certificate chain of Runs' listener, in PEM. With the key and the client CA it may be off loopback
    #[arg(
        id = "runs-tls-cert",
        long = "runs-tls-cert",
        env = "GITDOOR_RUNS_TLS_CERT",
        value_name = "FILE",
        help_heading = "TLS"
    )]
    cert: Option<PathBuf>,

    /// Its private key, in PEM
    #[arg(
        id = "runs-tls-key",
        long = "runs-tls-key",
        env = "GITDOOR_RUNS_TLS_KEY",
        value_name = "FILE",
        help_heading = "TLS"
    )]
    key: Option<PathBuf>,

    /// Authorities of its clients' certificates, in PEM; each names gitdoor:bot, gitdoor:ops or gitdoor:mirror
    #[arg(
        id = "runs-tls-client-ca",
        long = "runs-tls-client-ca",
        env = "GITDOOR_RUNS_TLS_CLIENT_CA",
        value_name = "FILE",
        help_heading = "TLS"
    )]
    client_ca: Option<PathBuf>,
}

/// Of Gate's listener.
#[derive(Debug, Clone, Default, Args)]
pub struct GateTls {
    /// Certificate chain of Gate's listener, in PEM. With the key and the client CA it may be off loopback
    #[arg(
        id = "gate-tls-cert",
        long = "gate-tls-cert",
        env = "GITDOOR_GATE_TLS_CERT",
        value_name = "FILE",
        help_heading = "TLS"
    )]
    cert: Option<PathBuf>,

    /// Its private key, in PEM
    #[arg(
        id = "gate-tls-key",
        long = "gate-tls-key",
        env = "GITDOOR_GATE_TLS_KEY",
        value_name = "FILE",
        help_heading = "TLS"
    )]
    key: Option<PathBuf>,

    /// Authorities of data planes' certificates, in PEM; each names gitdoor:dataplane
    #[arg(
        id = "gate-tls-client-ca",
        long = "gate-tls-client-ca",
        env = "GITDOOR_GATE_TLS_CLIENT_CA",
        value_name = "FILE",
        help_heading = "TLS"
    )]
    client_ca: Option<PathBuf>,
}

impl RunsTls {
    /// The three files, or none.
    pub(crate) fn files(&self, listen: &Listen) -> Result<Option<Files>, Unusable> {
        let flags = ["--runs-tls-cert", "--runs-tls-key", "--runs-tls-client-ca"];
        together(flags, [&self.cert, &self.key, &self.client_ca], listen)
    }
}

impl GateTls {
    /// The three files, or none.
    pub(crate) fn files(&self, listen: &Listen) -> Result<Option<Files>, Unusable> {
        let flags = ["--gate-tls-cert", "--gate-tls-key", "--gate-tls-client-ca"];
        together(flags, [&self.cert, &self.key, &self.client_ca], listen)
    }
}

fn together(
    flags: [&'static str; 3],
    files: [&Option<PathBuf>; 3],
    listen: &Listen,
) -> Result<Option<Files>, Unusable> {
    if let [Some(cert), Some(key), Some(client_ca)] = files {
        return match listen {
            Listen::Tcp(_) => {
                Ok(Some(Files { cert: cert.clone(), key: key.clone(), client_ca: client_ca.clone() }))
            }
            Listen::Unix(_) => Err(Unusable::TlsOnUnix { flags: flags.join(", ") }),
        };
    }
    let missing = flags.iter().zip(files).find(|(_, file)| file.is_none());
    let given = flags.iter().zip(files).find(|(_, file)| file.is_some());
    match (missing, given) {
        (Some((missing, _)), Some((given, _))) => Err(Unusable::TlsMissing { missing, given }),
        (None, _) | (_, None) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_a_listener_come_together_or_not_at_all() {
        let tcp: Listen = "0.0.0.0:1".parse().unwrap();
        let file = || Some(PathBuf::from("x"));
        let of = |cert, key, client_ca| RunsTls { cert, key, client_ca };
        assert_eq!(of(None, None, None).files(&tcp).unwrap(), None);
        assert!(of(file(), file(), file()).files(&tcp).unwrap().is_some());
        for (tls, missing) in [
            (of(None, file(), file()), "--runs-tls-cert"),
            (of(file(), None, file()), "--runs-tls-key"),
            (of(file(), file(), None), "--runs-tls-client-ca"),
            (of(None, None, file()), "--runs-tls-cert"),
        ] {
            let error = tls.files(&tcp).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{missing} is missing")), "{error}");
        }
        let unix: Listen = "unix:/run/runs".parse().unwrap();
        assert!(matches!(of(file(), file(), file()).files(&unix), Err(Unusable::TlsOnUnix { .. })));
    }
}
