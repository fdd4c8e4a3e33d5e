//! GitHub with one token that somebody else made: it is handed out for reads and for pushes alike.
//!
//! Nothing pins it to a repository, and it may reach everything that its owner does: the door's rules stand in for the
//! pin. What a narrower token would be needed for is refused. Only a program that has control in it can make one of these.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use gitdoor_proto::RepositoryName;
use http::StatusCode;
use secrecy::SecretString;

use super::answer::UNAVAILABLE;
use super::client::{Client, Reach};
use super::{ConfigError, repository};
use crate::forge::{Facts, Forge, MintError, Minted, Mismatch, OwnToken, ReadScope, Target};

/// How long a repository's facts are believed: no pin of the forge's would notice what changes meanwhile.
const BELIEVED: Duration = Duration::from_mins(1);
/// For how long each handing out is said to be good: when the token ends is not known here.
const LIFE: Duration = Duration::from_hours(24);

/// Where the token is good.
#[derive(Debug, Clone)]
pub struct Config {
    /// The API's URL, with the path of an Enterprise Server's; https, or http on loopback.
    pub api_url: String,
    /// Authorities to trust instead of the system's, in PEM.
    pub ca: Option<PathBuf>,
}

/// One token, and what is known of the repository that was asked about last.
pub struct Plain {
    token: SecretString,
    client: Client,
    known: Mutex<Option<(Facts, SystemTime)>>,
}

impl Plain {
    /// Reads the file of authorities; sends nothing.
    pub fn new(token: SecretString, config: &Config) -> Result<Self, ConfigError> {
        let client = Client::new(&Reach::usual(&config.api_url, config.ca.as_deref()))?;
        Ok(Self { token, client, known: Mutex::new(None) })
    }

    /// The token. How old it is nobody knows, so it is not taken for a young one.
    fn minted(&self, repository: Option<(u64, RepositoryName)>, now: SystemTime) -> Minted {
        Minted::new(self.token.clone(), repository, SystemTime::UNIX_EPOCH, now + LIFE)
    }

    fn known(&self, is_it: impl FnOnce(&Facts) -> bool, now: SystemTime) -> Option<Facts> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (facts, read_at) = known.as_ref().filter(|(facts, _)| is_it(facts))?;
        // One from the future was read before the clock was set back: it may be of any age.
        now.duration_since(*read_at).is_ok_and(|age| age < BELIEVED).then(|| facts.clone())
    }

    fn keep(&self, facts: &Facts, now: SystemTime) {
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = Some((facts.clone(), now));
    }

    /// The repository that has this name now.
    async fn find(&self, name: &RepositoryName, now: SystemTime) -> Result<Facts, MintError> {
        if let Some(facts) = self.known(|facts| facts.full_name == *name, now) {
            return Ok(facts);
        }
        let token = self.minted(None, now);
        let answer = self.client.repository_named(&token, name).await.map_err(|_logged| UNAVAILABLE)?;
        let facts = match answer.status {
            StatusCode::OK => repository::facts(&answer.body)?,
            StatusCode::UNAUTHORIZED => return Err(MintError::OwnToken(OwnToken::Refused)),
            StatusCode::NOT_FOUND => return Err(MintError::OwnToken(OwnToken::Repository)),
            _ => return Err(repository::refusal(&answer, now)),
        };
        self.keep(&facts, now);
        Ok(facts)
    }
}

impl Forge for Plain {
    async fn read_token(&self, scope: &ReadScope, now: SystemTime) -> Result<Minted, MintError> {
        match scope {
            ReadScope::All => Ok(self.minted(None, now)),
            ReadScope::Repositories(_) => Err(MintError::OwnToken(OwnToken::Narrow)),
        }
    }

    async fn write_token(&self, target: &Target, workflows: bool, now: SystemTime) -> Result<Minted, MintError> {
        if !workflows {
            return Err(MintError::OwnToken(OwnToken::Narrow));
        }
        let repository = match target {
            Target::Named(name) => {
                let Facts { id, full_name, default_branch: _ } = self.find(name, now).await?;
                (id, full_name)
            }
            Target::Bound { id, name } => (*id, name.clone()),
        };
        Ok(self.minted(Some(repository), now))
    }

    async fn mirror_token(&self, _repository: &RepositoryName, _now: SystemTime) -> Result<Minted, MintError> {
        Err(MintError::OwnToken(OwnToken::Narrow))
    }

    async fn facts(&self, minted: &Minted, _fresh: bool, now: SystemTime) -> Result<Facts, MintError> {
        let id = minted.repository_id().ok_or(MintError::Untrusted(Mismatch::RepositoryId))?;
        if let Some(facts) = self.known(|facts| facts.id == id, now) {
            return Ok(facts);
        }
        let facts = repository::read(&self.client, minted, now).await?;
        self.keep(&facts, now);
        Ok(facts)
    }

    async fn reject(&self, _token_id: &str, _now: SystemTime) -> bool {
        // There is no other to hand out.
        false
    }
}

impl fmt::Debug for Plain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plain").finish_non_exhaustive()
    }
}
