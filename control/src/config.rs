//! The command line and the environment, read once. A value that does not parse exits 2; one that parses but
//! cannot be used is an [`Unusable`], exits 64 and names its flag.

mod listen;
mod tls;

use std::io;
use std::net::SocketAddr;
use std::num::NonZeroU16;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::builder::FalseyValueParser;
use clap::{Parser, ValueEnum};
use gitdoor_proto::tls::TlsError;
use tracing_subscriber::EnvFilter;

use crate::github;
use crate::store::{postgres, sqlite};
use crate::trust::Side;

pub use listen::{InvalidListen, Listen};
pub use tls::{GateTls, RunsTls};

const AFTER_HELP: &str = "\
Every flag is also an environment variable: --runs-listen is GITDOOR_RUNS_LISTEN.

Once it serves, one line is printed on standard output, with the addresses it bound (port 0 picks a free one):
  ready runs=127.0.0.1:7001 gate=unix:/run/gitdoor/gate admin=127.0.0.1:7003

Logs go to standard error. SIGTERM and SIGINT drain: sessions are ended, calls in work are answered, then it exits.

Exit status:
  0   drained
  1   failed while serving
  2   an unknown flag, or a value that does not parse
  64  a value that parses but cannot be used (a missing key file, an unreadable store, an occupied port); the
      flag is named, and no port was served";

/// The command line of `gitdoor-control`.
#[derive(Debug, Clone, Parser)]
#[command(
    name = "gitdoor-control",
    version,
    about = "gitdoor's control plane: it owns runs, bearers, bindings and the push ledger, and mints tokens",
    long_about = "gitdoor's control plane.\n\nIt registers and ends runs for a bot and its operators (Runs), hands read \
                  tokens to mirrors (Tokens), answers the questions of data planes (Gate), remembers all of it in a \
                  store, and mints installation tokens of a GitHub App. It is the only part of gitdoor that holds the App's key.",
    after_long_help = AFTER_HELP,
    max_term_width = 100
)]
pub struct Config {
    /// Where Runs and Tokens are served, for the bot and for operators: IP:PORT, or unix:PATH
    ///
    /// Without --runs-tls-cert, on loopback alone, and who reaches it can register runs, read their ledger and get
    /// tokens that read a repository. A Unix socket is made with mode 0600.
    #[arg(long, env = "GITDOOR_RUNS_LISTEN", value_name = "ADDR|unix:PATH", help_heading = "Listeners")]
    pub runs_listen: Listen,

    /// Where Gate is served, for data planes: IP:PORT, or unix:PATH. Without --gate-tls-cert, on loopback alone
    #[arg(long, env = "GITDOOR_GATE_LISTEN", value_name = "ADDR|unix:PATH", help_heading = "Listeners")]
    pub gate_listen: Listen,

    /// Where /livez, /readyz and /metrics are served: IP:PORT
    #[arg(long, env = "GITDOOR_ADMIN_LISTEN", value_name = "ADDR", help_heading = "Listeners")]
    pub admin_listen: SocketAddr,

    /// TLS of Runs' listener.
    #[command(flatten)]
    pub runs_tls: RunsTls,

    /// TLS of Gate's listener.
    #[command(flatten)]
    pub gate_tls: GateTls,

    /// Where runs and the ledger are kept: sqlite:PATH, or postgres://USER@HOST:PORT/DATABASE?OPTIONS
    ///
    /// A file is made when there is none. It belongs to one process at a time. A file that is no store, or a broken
    /// one, is refused and left as it is. A database of PostgreSQL serves several controls, and is in UTF8. Its
    /// certificate is checked against HOST, but on loopback and with ?host=/FOLDER, a Unix socket.
    #[arg(
        long,
        env = "GITDOOR_STORE",
        value_name = "sqlite:PATH|postgres://...",
        default_value = "sqlite:gitdoor.sqlite",
        help_heading = "Store"
    )]
    pub store: StoreUrl,

    /// The password for PostgreSQL: a file. One in the URL is refused, since other processes see it
    #[arg(long, env = "GITDOOR_STORE_PASSWORD_FILE", value_name = "FILE", help_heading = "Store")]
    pub store_password_file: Option<PathBuf>,

    /// Certificate authorities to trust for PostgreSQL instead of the system's: a file in PEM
    #[arg(long, env = "GITDOOR_STORE_CA", value_name = "FILE", help_heading = "Store")]
    pub store_ca: Option<PathBuf>,

    /// Most connections to PostgreSQL
    #[arg(long, env = "GITDOOR_STORE_CONNECTIONS", value_name = "N", default_value = "16", help_heading = "Store")]
    pub store_connections: NonZeroU16,

    /// How long runs and their pushes are kept after the run has expired, and what is known of a token for a mirror after
    /// the token has
    #[arg(
        long,
        env = "GITDOOR_KEEP",
        value_name = "TIME",
        default_value = "30d",
        value_parser = humantime::parse_duration,
        help_heading = "Store"
    )]
    pub keep: Duration,

    /// The GitHub App's id
    #[arg(long, env = "GITDOOR_GITHUB_APP_ID", value_name = "ID", help_heading = "GitHub")]
    pub github_app_id: String,

    /// The GitHub App's private key: a file in PEM
    #[arg(long, env = "GITDOOR_GITHUB_APP_KEY", value_name = "FILE", help_heading = "GitHub")]
    pub github_app_key: PathBuf,

    /// The App's installation whose repositories runs may use
    #[arg(long, env = "GITDOOR_GITHUB_INSTALLATION_ID", value_name = "ID", help_heading = "GitHub")]
    pub github_installation_id: u64,

    /// Let runs read commit statuses, too: gh shows no pull request that has some without. The App must have been
    /// granted "Commit statuses: read"
    #[arg(
        long,
        env = "GITDOOR_READ_STATUSES",
        value_parser = FalseyValueParser::new(),
        help_heading = "GitHub"
    )]
    pub read_statuses: bool,

    /// The URL of GitHub's API; that of GitHub Enterprise Server ends in /api/v3
    #[arg(
        long,
        env = "GITDOOR_GITHUB_API_URL",
        value_name = "URL",
        default_value = "https://api.github.com",
        help_heading = "GitHub"
    )]
    pub github_api_url: String,

    /// Certificate authorities to trust for GitHub instead of the system's: a file in PEM
    #[arg(long, env = "GITDOOR_GITHUB_CA", value_name = "FILE", help_heading = "GitHub")]
    pub github_ca: Option<PathBuf>,

    /// How log lines are written
    #[arg(long, env = "GITDOOR_LOG_FORMAT", value_enum, default_value_t = LogFormat::Text, help_heading = "Logs")]
    pub log_format: LogFormat,

    /// What is logged: a level, or levels by module, as in info,h2=warn
    #[arg(
        long,
        env = "GITDOOR_LOG_LEVEL",
        value_name = "FILTER",
        default_value = "info",
        value_parser = log_filter,
        help_heading = "Logs"
    )]
    pub log_level: String,
}

impl Config {
    /// The settings of the forge's client.
    #[must_use]
    pub fn github(&self) -> github::Config {
        github::Config {
            api_url: self.github_api_url.clone(),
            ca: self.github_ca.clone(),
            app_id: self.github_app_id.clone(),
            app_key: self.github_app_key.clone(),
            installation_id: self.github_installation_id,
            statuses: self.read_statuses,
            connect_timeout: github::CONNECT_TIMEOUT,
            overall_timeout: github::OVERALL_TIMEOUT,
        }
    }

    /// The settings of a store in PostgreSQL.
    pub(crate) fn postgres(&self, url: &str) -> postgres::Config {
        postgres::Config {
            url: url.to_owned(),
            password_file: self.store_password_file.clone(),
            ca: self.store_ca.clone(),
            connections: self.store_connections,
        }
    }
}

/// How log lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

fn log_filter(text: &str) -> Result<String, tracing_subscriber::filter::ParseError> {
    EnvFilter::try_new(text).map(|_filter| text.to_owned())
}

/// Which store.
#[derive(Clone, PartialEq, Eq)]
pub enum StoreUrl {
    /// A file.
    Sqlite(PathBuf),
    /// A server; its URL is not shown, since it may hold a password by mistake.
    Postgres(String),
}

/// Text that names no store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a store is sqlite:PATH or postgres://HOST/DATABASE")]
pub struct InvalidStore;

impl FromStr for StoreUrl {
    type Err = InvalidStore;

    fn from_str(text: &str) -> Result<Self, InvalidStore> {
        match text.split_once(':') {
            Some(("sqlite", path)) if !path.is_empty() => Ok(Self::Sqlite(path.into())),
            Some(("postgres" | "postgresql", rest)) if rest.starts_with("//") => {
                Ok(Self::Postgres(text.to_owned()))
            }
            Some(_) | None => Err(InvalidStore),
        }
    }
}

impl std::fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Self::Postgres(_) => f.write_str("postgres://***"),
        }
    }
}

/// Configuration that parses but cannot be used: exit status 64, before a port is served.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    /// Plain text would leave the machine.
    #[error(
        "{flag} {address}: plain text is served on loopback addresses and Unix sockets only; elsewhere by TLS, \
             with {tls}-cert, {tls}-key and {tls}-client-ca"
    )]
    NotLoopback {
        /// The flag.
        flag: &'static str,
        /// Its value.
        address: SocketAddr,
        /// How the flags of TLS begin.
        tls: &'static str,
    },
    /// TLS with a file too few.
    #[error("{missing} is missing: {given} needs it; certificate, key and client CA come together")]
    TlsMissing {
        /// The flag that is not there.
        missing: &'static str,
        /// One that is.
        given: &'static str,
    },
    /// TLS on a Unix socket.
    #[error("{flags}: a Unix socket is plain text; give the listener an address, or leave these out")]
    TlsOnUnix {
        /// The flags.
        flags: String,
    },
    /// The files of a listener are no use.
    #[error("--{side}-tls-cert, --{side}-tls-key, --{side}-tls-client-ca", side = side.as_str())]
    Tls {
        /// Which listener.
        side: Side,
        /// Why.
        source: TlsError,
    },
    /// Another process listens there.
    #[error("{flag} {address}: occupied")]
    Occupied {
        /// The flag.
        flag: &'static str,
        /// Its value.
        address: Listen,
    },
    /// The address cannot be listened on.
    #[error("{flag} {address}: cannot be listened on")]
    Listen {
        /// The flag.
        flag: &'static str,
        /// Its value.
        address: Listen,
        /// Why.
        source: io::Error,
    },
    /// The store's file cannot be opened.
    #[error("--store")]
    Sqlite {
        /// Why.
        source: sqlite::OpenError,
    },
    /// The store's server cannot be used.
    #[error("{}", source.flag())]
    Postgres {
        /// Why.
        source: postgres::OpenError,
    },
    /// The forge's client cannot be made.
    #[error("{}", source.flag())]
    GitHub {
        /// Why.
        source: github::ConfigError,
    },
}

impl Unusable {
    /// An address that could not be bound.
    #[must_use]
    pub fn unbound(flag: &'static str, address: Listen, source: io::Error) -> Self {
        if source.kind() == io::ErrorKind::AddrInUse {
            Self::Occupied { flag, address }
        } else {
            Self::Listen { flag, address, source }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    const NEEDED: [&str; 13] = [
        "gitdoor-control",
        "--runs-listen",
        "127.0.0.1:0",
        "--gate-listen",
        "unix:/tmp/gate",
        "--admin-listen",
        "127.0.0.1:0",
        "--github-app-id",
        "1",
        "--github-app-key",
        "key.pem",
        "--github-installation-id",
        "2",
    ];

    fn parsed(more: &[&str]) -> Result<Config, clap::Error> {
        Config::try_parse_from(NEEDED.iter().chain(more))
    }

    #[test]
    fn the_command_line_is_consistent() {
        Config::command().debug_assert();
    }

    #[test]
    fn what_is_left_out_has_its_default() {
        let config = parsed(&[]).unwrap();
        assert_eq!(config.gate_listen, Listen::Unix("/tmp/gate".into()));
        assert_eq!(config.keep, Duration::from_hours(24 * 30));
        assert_eq!(config.github_api_url, "https://api.github.com");
        assert_eq!(config.store, StoreUrl::Sqlite("gitdoor.sqlite".into()));
        assert_eq!(config.store_connections.get(), 16);
    }

    #[test]
    fn every_flag_is_an_environment_variable() {
        for argument in Config::command().get_arguments().filter(|argument| argument.get_long().is_some()) {
            let flag = argument.get_long().unwrap();
            if matches!(flag, "help" | "version") {
                continue;
            }
            let variable = format!("GITDOOR_{}", flag.to_uppercase().replace('-', "_"));
            assert_eq!(argument.get_env().and_then(|name| name.to_str()), Some(variable.as_str()), "{flag}");
        }
    }

    #[test]
    fn a_value_that_does_not_parse_exits_2() {
        for wrong in [
            ["--store", "mysql://x"],
            ["--store", "sqlite:"],
            ["--store-connections", "0"],
            ["--keep", "soon"],
            ["--log-level", "a=b=c"],
            ["--github-installation-id", "x"],
            ["--unknown", "x"],
        ] {
            assert_eq!(parsed(&wrong).unwrap_err().exit_code(), 2, "{wrong:?}");
        }
        assert_eq!("localhost".parse::<Listen>(), Err(InvalidListen));
        assert_eq!("unix:".parse::<Listen>(), Err(InvalidListen));
    }

    #[test]
    fn a_password_in_the_stores_url_is_never_shown() {
        let config = parsed(&["--store", "postgres://u:hush@db/gitdoor"]).unwrap();
        assert!(!format!("{config:?}").contains("hush"));
    }
}
