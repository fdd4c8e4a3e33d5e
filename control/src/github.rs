//! Stands in for the GitHub client until it is there: every answer is that the forge is unavailable.

use std::io;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use crate::forge::{Facts, Forge, MintError, Minted, ReadScope, Target};

/// How to reach GitHub, and as which App.
#[derive(Debug, Clone)]
pub struct Config {
    /// The API's URL.
    pub api_url: String,
    /// Authorities to trust instead of the system's, in PEM.
    pub ca: Option<PathBuf>,
    /// The App's number or client id.
    pub app_id: String,
    /// The App's private RSA key, in PEM.
    pub app_key: PathBuf,
    /// The installation's number.
    pub installation_id: u64,
    /// Longest time for a connection.
    pub connect_timeout: Duration,
    /// Longest time from a request's start to its answer's end.
    pub overall_timeout: Duration,
}

/// A setting that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The key's file cannot be read.
    #[error("the App's key cannot be read")]
    KeyUnreadable(#[source] io::Error),
}

impl ConfigError {
    /// The flag whose value is wrong.
    #[must_use]
    pub fn flag(&self) -> &'static str {
        match self {
            Self::KeyUnreadable(_) => "--github-app-key",
        }
    }
}

/// One installation of one App.
#[derive(Clone, Debug)]
pub struct GitHub(());

impl GitHub {
    /// Reads the files that the configuration names; sends nothing.
    pub fn new(config: &Config) -> Result<Self, ConfigError> {
        std::fs::read(&config.app_key).map_err(ConfigError::KeyUnreadable)?;
        Ok(Self(()))
    }
}

impl Forge for GitHub {
    async fn read_token(&self, _: &ReadScope, _: SystemTime) -> Result<Minted, MintError> {
        Err(MintError::Unavailable(Duration::from_secs(10)))
    }

    async fn write_token(&self, _: &Target, _: bool, _: SystemTime) -> Result<Minted, MintError> {
        Err(MintError::Unavailable(Duration::from_secs(10)))
    }

    async fn facts(&self, _: &Minted, _: bool, _: SystemTime) -> Result<Facts, MintError> {
        Err(MintError::Unavailable(Duration::from_secs(10)))
    }

    async fn reject(&self, _: &str, _: SystemTime) -> bool {
        false
    }
}
