//! The flags of `gitdoor certs`.

use std::path::PathBuf;

use clap::ValueEnum;
use rustls_pki_types::ServerName;

pub(super) const AFTER: &str = "\
Files:
  ca.pem, ca.key           the authority: ca.pem is for everybody, ca.key for nobody but this command
  control.pem, .key        the server certificate of both of control's listeners
  dataplane.pem, .key      for data planes: Gate
  bot.pem, .key            for what registers runs: all of Runs
  ops.pem, .key            for operators: show, list and revoke
  mirror.pem, .key         for hosts that keep clones: mirror tokens

Keys have mode 0600 and the folder 0700. Nothing is overwritten. Before a certificate ends, make another in its place:
    gitdoor certs --out FOLDER --renew dataplane
Control and data planes read their files again by themselves. Keep ca.key where none of them runs.

Output:
  Which flag takes which file; with --renew, until when the new certificate is good.";

/// Certificates to be made.
#[derive(Debug, clap::Args)]
pub(crate) struct CertsArgs {
    /// The folder for the files; it is made, or empty of them
    #[arg(long, value_name = "FOLDER", env = "GITDOOR_OUT", hide_env_values = true)]
    pub(crate) out: PathBuf,

    /// A name or address that clients reach control by, beside localhost and its two addresses
    ///
    /// May be repeated.
    #[arg(long = "control-host", value_name = "NAME", env = "GITDOOR_CONTROL_HOST", hide_env_values = true)]
    #[arg(value_delimiter = ',', value_parser = control_host)]
    pub(crate) control_hosts: Vec<String>,

    /// How many days the certificates live
    #[arg(long, value_name = "N", env = "GITDOOR_DAYS", hide_env_values = true, default_value_t = 365)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=36_500))]
    pub(crate) days: u32,

    /// How many days the authority lives
    #[arg(long, value_name = "N", env = "GITDOOR_CA_DAYS", hide_env_values = true, default_value_t = 3650)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=36_500))]
    pub(crate) ca_days: u32,

    /// Make this one certificate anew, with a new key, by the authority that is in the folder
    #[arg(long, value_name = "NAME", env = "GITDOOR_RENEW", hide_env_values = true)]
    pub(crate) renew: Option<Name>,
}

/// Text that is no name of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a name is a DNS name or an IP address")]
pub(crate) struct InvalidHost;

fn control_host(text: &str) -> Result<String, InvalidHost> {
    ServerName::try_from(text).map(|_name| text.to_owned()).map_err(|_other| InvalidHost)
}

/// Whose certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Name {
    /// Control, the server.
    Control,
    /// A data plane.
    Dataplane,
    /// What registers runs.
    Bot,
    /// An operator.
    Ops,
    /// A host that keeps clones.
    Mirror,
}

impl Name {
    pub(crate) const ALL: [Self; 5] = [Self::Control, Self::Dataplane, Self::Bot, Self::Ops, Self::Mirror];

    /// The name of its files.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Control => "control",
            Self::Dataplane => "dataplane",
            Self::Bot => "bot",
            Self::Ops => "ops",
            Self::Mirror => "mirror",
        }
    }
}
