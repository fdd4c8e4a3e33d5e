//! Planes that speak TLS to each other, with certificates as `gitdoor certs` makes them.

use std::path::{Path, PathBuf};

use gitdoor_proto::endpoint::TlsFiles;

use super::process::run_to_exit;

/// The folder of certificates.
pub struct Trust(PathBuf);

impl Trust {
    /// Lets the program make them.
    pub(super) async fn make(program: &Path, folder: PathBuf) -> Self {
        let arguments = ["certs".to_owned(), format!("--out={}", folder.display())];
        let exit = run_to_exit(program, "__gitdoor", &arguments).await;
        assert_eq!(exit.code, Some(0), "{}", exit.stderr);
        for flag in ["--runs-tls-client-ca", "--gate-tls-key", "--control-tls-cert"] {
            assert!(exit.stdout.contains(flag), "{flag}: {}", exit.stdout);
        }
        Self(folder)
    }

    /// A file.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// What a client of control needs, as `bot`, `ops`, `mirror` or `dataplane`.
    pub fn files(&self, name: &str) -> TlsFiles {
        TlsFiles {
            ca: Some(self.path("ca.pem")),
            cert: Some(self.path(&format!("{name}.pem"))),
            key: Some(self.path(&format!("{name}.key"))),
        }
    }

    /// The same as flags.
    pub fn client_flags(&self, name: &str) -> Vec<String> {
        vec![
            format!("--control-tls-ca={}", self.path("ca.pem").display()),
            format!("--control-tls-cert={}", self.path(&format!("{name}.pem")).display()),
            format!("--control-tls-key={}", self.path(&format!("{name}.key")).display()),
        ]
    }

    /// Control's flags.
    pub(super) fn control_flags(&self) -> Vec<String> {
        let mut flags = Vec::new();
        for side in ["runs", "gate"] {
            flags.push(format!("--{side}-listen=127.0.0.1:0"));
            flags.push(format!("--{side}-tls-cert={}", self.path("control.pem").display()));
            flags.push(format!("--{side}-tls-key={}", self.path("control.key").display()));
            flags.push(format!("--{side}-tls-client-ca={}", self.path("ca.pem").display()));
        }
        flags
    }
}
