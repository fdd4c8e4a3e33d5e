//! GitHub as the forge: an App's client that mints each token once, checks it, and keeps it while it is good.

mod answer;
mod cache;
mod client;
mod flight;
mod jwt;
mod mint;
pub mod plain;
mod repository;
#[cfg(test)]
mod stand_in;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use cache::Cache;
use client::{Client, Reach};
use flight::{Flight, Flights, Landing};
use gitdoor_proto::RepositoryName;
use jwt::AppKey;
use mint::{Ask, Permissions, Repositories};
use secrecy::zeroize::Zeroizing;

use crate::forge::{Facts, Forge, MintError, Minted, ReadScope, Target};

/// Most bytes of a key or certificate file; a bundle of all public authorities has some 250 KiB.
const FILE_BYTES: usize = 1 << 20;
/// Most characters of an App's id; a client id has 20.
const APP_ID_CHARS: usize = 64;

/// Longest time for a connection to GitHub.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest time for a request: within the time that a question has.
pub const OVERALL_TIMEOUT: Duration = Duration::from_secs(9);

/// How to reach GitHub, and as which App.
#[derive(Debug, Clone)]
pub struct Config {
    /// The API's URL, with the path of an Enterprise Server's; https, or http on loopback.
    pub api_url: String,
    /// Authorities to trust instead of the system's, in PEM.
    pub ca: Option<PathBuf>,
    /// The App's number or client id.
    pub app_id: String,
    /// The App's private RSA key, in PEM.
    pub app_key: PathBuf,
    /// The installation's number.
    pub installation_id: u64,
    /// Whether read tokens read commit statuses too.
    pub statuses: bool,
    /// Longest time for a connection, TLS included.
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
    /// The key's file holds no private RSA key.
    #[error("the App's key is not a private RSA key in PEM")]
    KeyInvalid,
    /// The authorities' file cannot be read.
    #[error("the authorities' certificates cannot be read")]
    CaUnreadable(#[source] io::Error),
    /// The authorities' file holds no certificate that can be used.
    #[error("no certificate in PEM")]
    CaInvalid,
    /// No authorities are named, and the system has none.
    #[error("the system has no authorities' certificates: name a file of them")]
    CaMissing,
    /// Not a URL of scheme, authority and path.
    #[error("not an https URL of a host and, at most, a path")]
    UrlInvalid,
    /// Plain text to another machine.
    #[error("plain http is for loopback alone: https is required")]
    UrlInsecure,
    /// A user name or a password in the URL.
    #[error("a URL must not hold a user name or a password")]
    UrlCredential,
    /// The App's id is empty or holds what no id has.
    #[error("not an App's id")]
    AppIdInvalid,
    /// The installation's id is 0.
    #[error("not an installation's id: a number above 0")]
    InstallationIdInvalid,
}

impl ConfigError {
    /// The flag whose value is wrong.
    #[must_use]
    pub fn flag(&self) -> &'static str {
        match self {
            Self::KeyUnreadable(_) | Self::KeyInvalid => "--github-app-key",
            Self::CaUnreadable(_) | Self::CaInvalid | Self::CaMissing => "--github-ca",
            Self::UrlInvalid | Self::UrlInsecure | Self::UrlCredential => "--github-api-url",
            Self::AppIdInvalid => "--github-app-id",
            Self::InstallationIdInvalid => "--github-installation-id",
        }
    }
}

/// One installation of one App. Clones share tokens and connections.
#[derive(Clone)]
pub struct GitHub(Arc<Installation>);

struct Installation {
    id: u64,
    statuses: bool,
    key: AppKey,
    client: Client,
    desk: Mutex<Desk>,
}

/// What must be seen and changed together: else a token could be minted twice.
struct Desk {
    cache: Cache,
    mints: Flights<Ask, Minted>,
    readings: Flights<String, Facts>,
}

impl GitHub {
    /// Reads the files that the configuration names; sends nothing.
    pub fn new(config: &Config) -> Result<Self, ConfigError> {
        let id_char = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
        if !(1..=APP_ID_CHARS).contains(&config.app_id.len()) || !config.app_id.bytes().all(id_char) {
            return Err(ConfigError::AppIdInvalid);
        }
        if config.installation_id == 0 {
            return Err(ConfigError::InstallationIdInvalid);
        }
        let Config { api_url, ca, connect_timeout, overall_timeout, .. } = config;
        let (connect_timeout, overall_timeout) = (*connect_timeout, *overall_timeout);
        let client = Client::new(&Reach { api_url, ca: ca.as_deref(), connect_timeout, overall_timeout })?;
        let pem = Zeroizing::new(read_file(&config.app_key, ConfigError::KeyUnreadable)?);
        let key = AppKey::from_pem(&config.app_id, &pem).map_err(|_unsigned| ConfigError::KeyInvalid)?;
        let desk = Desk { cache: Cache::default(), mints: Flights::new(), readings: Flights::new() };
        Ok(Self(Arc::new(Installation {
            id: config.installation_id,
            statuses: config.statuses,
            key,
            client,
            desk: Mutex::new(desk),
        })))
    }

    fn ask(&self, permissions: Permissions, repositories: Repositories) -> Ask {
        Ask { installation: self.0.id, permissions, repositories }
    }

    async fn token(&self, ask: Ask, now: SystemTime) -> Result<Minted, MintError> {
        let flight = {
            let mut desk = self.0.desk();
            match desk.cache.find(&ask, now) {
                Some(found) => return found.inspect(|_| count_hit(ask.permissions)),
                None => self.join(&mut desk, &ask, now),
            }
        };
        flight.landed().await
    }

    fn join(&self, desk: &mut Desk, ask: &Ask, now: SystemTime) -> Flight<Minted> {
        desk.mints.join(ask, |landing| {
            tokio::spawn(Arc::clone(&self.0).mint(ask.clone(), now, landing));
        })
    }
}

impl Installation {
    fn desk(&self) -> MutexGuard<'_, Desk> {
        // No step on the desk leaves it half done: what a panic elsewhere poisoned is still good.
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn mint(self: Arc<Self>, ask: Ask, now: SystemTime, landing: Landing<Minted>) {
        let outcome = mint::mint(&self.client, &self.key, &ask, now).await;
        let minted = outcome.as_ref().map(|fresh| fresh.minted.clone()).map_err(|error| *error);
        record(&ask, &minted);
        {
            let mut desk = self.desk();
            match outcome {
                Ok(fresh) => desk.cache.keep(&ask, fresh, now),
                Err(error) => desk.cache.hold(&ask, error, now),
            }
            desk.mints.end(&ask);
        }
        landing.deliver(minted);
    }

    async fn read_facts(self: Arc<Self>, minted: Minted, now: SystemTime, landing: Landing<Facts>) {
        let outcome = repository::read(&self.client, &minted, now).await;
        {
            let mut desk = self.desk();
            if let Ok(facts) = &outcome {
                desk.cache.keep_facts(minted.id(), facts, now);
            }
            desk.readings.end(&minted.id().to_owned());
        }
        landing.deliver(outcome);
    }
}

impl Forge for GitHub {
    async fn read_token(&self, scope: &ReadScope, now: SystemTime) -> Result<Minted, MintError> {
        let repositories = match scope {
            ReadScope::All => Repositories::All,
            ReadScope::Repositories(names) => {
                Repositories::named(names.clone()).ok_or(MintError::RepositoryUnknown)?
            }
        };
        self.token(self.ask(Permissions::Read { statuses: self.0.statuses }, repositories), now).await
    }

    async fn write_token(&self, target: &Target, workflows: bool, now: SystemTime) -> Result<Minted, MintError> {
        let repositories = match target {
            Target::Named(name) => Repositories::Names(vec![name.clone()]),
            Target::Bound { id, name: _ } => Repositories::Id(*id),
        };
        self.token(self.ask(Permissions::Write { workflows }, repositories), now).await
    }

    async fn mirror_token(&self, repository: &RepositoryName, now: SystemTime) -> Result<Minted, MintError> {
        let repositories = Repositories::Names(vec![repository.clone()]);
        self.token(self.ask(Permissions::Mirror, repositories), now).await
    }

    async fn facts(&self, minted: &Minted, fresh: bool, now: SystemTime) -> Result<Facts, MintError> {
        let flight = {
            let mut desk = self.0.desk();
            if let Some(facts) = desk.cache.facts(minted.id(), fresh, now) {
                return Ok(facts);
            }
            desk.readings.join(&minted.id().to_owned(), |landing| {
                tokio::spawn(Arc::clone(&self.0).read_facts(minted.clone(), now, landing));
            })
        };
        flight.landed().await
    }

    async fn reject(&self, token_id: &str, now: SystemTime) -> bool {
        self.0.desk().cache.reject(token_id, now)
    }
}

impl fmt::Debug for GitHub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GitHub").field("installation", &self.0.id).field("key", &self.0.key).finish_non_exhaustive()
    }
}

fn count_hit(permissions: Permissions) {
    crate::metrics::token_cache_hit(permissions.scope());
}

/// The one line and the one count of a mint.
fn record(ask: &Ask, minted: &Result<Minted, MintError>) {
    let (scope, outcome) = (ask.permissions.scope(), outcome(minted));
    crate::metrics::mint(scope, outcome);
    let token = minted.as_ref().map_or("-", Minted::id);
    tracing::info!(scope, repository = %ask.repositories, outcome, token, "mint");
}

/// What a token may be for, and what may become of asking for one: the labels of a mint.
pub(crate) const SCOPES: [&str; 3] = ["read", "write", "mirror"];
pub(crate) const OUTCOMES: [&str; 10] = [
    "minted",
    "repository-unknown",
    "not-installed",
    "suspended",
    "permission-missing",
    "rate-limited",
    "unavailable",
    "untrusted",
    "clock",
    "key",
];

fn outcome(minted: &Result<Minted, MintError>) -> &'static str {
    match minted {
        Ok(_) => "minted",
        Err(MintError::RepositoryUnknown) => "repository-unknown",
        Err(MintError::NotInstalled) => "not-installed",
        Err(MintError::Suspended) => "suspended",
        Err(MintError::PermissionMissing(_)) => "permission-missing",
        Err(MintError::RateLimited(_)) => "rate-limited",
        Err(MintError::Unavailable(_)) => "unavailable",
        Err(MintError::Untrusted(_)) => "untrusted",
        Err(MintError::Clock) => "clock",
        // What nobody mints fails elsewhere.
        Err(MintError::Key | MintError::OwnToken(_)) => "key",
    }
}

fn read_file(path: &Path, unreadable: fn(io::Error) -> ConfigError) -> Result<Vec<u8>, ConfigError> {
    let mut content = Vec::new();
    let file = std::fs::File::open(path).map_err(unreadable)?;
    file.take(FILE_BYTES as u64 + 1).read_to_end(&mut content).map_err(unreadable)?;
    if content.len() > FILE_BYTES {
        return Err(unreadable(io::ErrorKind::FileTooLarge.into()));
    }
    Ok(content)
}
