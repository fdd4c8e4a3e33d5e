//! What a request wants, read from its route and, for a push, from a bounded prefix of its body.
//!
//! Nothing is decided here. A push that breaks a rule of the format is an intent too: whether its bearer is good comes
//! first, and is control's to say.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use gitdoor_proto::{RepositoryName, v1};
use tokio::time::{Instant, timeout_at};
use v1::authorize_request::Intent as Question;

use crate::api::ApiRefusal;
use crate::body::Inbound;
use crate::git::receive_pack::{Malformed, PackStart, Section, SectionReader};
use crate::refusal::Refusal;
use crate::route::{Route, Service, Target};

/// A coded push is held up to here, until its coding has proved whole: what is broken at its end is then seen before
/// anything goes up. The one client that codes pushes codes none that is longer.
const HELD_DECODED: usize = 1024 * 1024;
/// Time for a client to send its commands.
const SECTION_TIME: Duration = Duration::from_mins(1);

/// What a request wants.
pub enum Intent {
    /// A service's advertisement.
    Discover(Service, RepositoryName),
    /// A fetch or a clone.
    Fetch(RepositoryName),
    /// A push without commands: may I push? The bytes are the whole body.
    Probe(RepositoryName, Bytes),
    /// A push.
    Push(Push),
    /// A REST resource.
    Rest(Target),
    /// A GraphQL query. Its body is read once the run may ask at all: to judge one costs milliseconds.
    Graphql,
    /// What the run may do.
    Describe,
    /// Nothing that is served; the reason is told to a good bearer only.
    Unserved(Refusal),
}

/// A push whose commands were read.
pub struct Push {
    /// Where to, as the client spelled it.
    pub repository: RepositoryName,
    /// Its command section.
    pub section: Section,
    /// Every byte that was read: the section and the beginning of the pack. They go up first, unchanged.
    pub first: Bytes,
}

impl Intent {
    /// Reads what a request wants.
    pub async fn read(route: Route, inbound: &mut Inbound) -> Result<Self, Refusal> {
        match route {
            Route::Discovery(service, repository) => Ok(Self::Discover(service, repository)),
            Route::Rpc(Service::UploadPack, repository) => Ok(Self::Fetch(repository)),
            Route::Rpc(Service::ReceivePack, repository) => match read_push(repository, inbound).await {
                Err(broken @ (Refusal::Malformed(_) | Refusal::Gzip)) => Ok(Self::Unserved(broken)),
                other => other,
            },
            Route::Rest(target) => Ok(Self::Rest(target)),
            Route::Graphql => Ok(Self::Graphql),
            Route::Run => Ok(Self::Describe),
            Route::Uploads => Ok(Self::Unserved(ApiRefusal::Uploads.into())),
            Route::LfsLocks => Ok(Self::Unserved(Refusal::LfsLocks)),
            Route::Lfs => Ok(Self::Unserved(Refusal::Lfs)),
        }
    }

    /// The question that it puts to control.
    #[must_use]
    pub fn question(&self) -> Question {
        match self {
            Self::Discover(Service::UploadPack, repository) | Self::Fetch(repository) => {
                Question::Fetch(v1::Fetch { repository: repository.to_string() })
            }
            Self::Discover(Service::ReceivePack, repository) => discovery(repository, false),
            Self::Probe(repository, _) => Question::Probe(v1::Probe { repository: repository.to_string() }),
            Self::Push(push) => push.question(),
            Self::Rest(_) | Self::Graphql => Question::ApiRead(v1::ApiRead {}),
            Self::Describe => Question::Describe(v1::DescribeRun {}),
            Self::Unserved(_) => verification(),
        }
    }
}

/// The question whether a bearer is good, and no more.
#[must_use]
pub fn verification() -> Question {
    Question::Verify(v1::Verify {})
}

/// The question of a push discovery; `redirected` when the forge led from the client's name to this one.
#[must_use]
pub fn discovery(repository: &RepositoryName, redirected: bool) -> Question {
    Question::PushDiscovery(v1::PushDiscovery { repository: repository.to_string(), redirected })
}

impl Push {
    fn question(&self) -> Question {
        let command = |command: &crate::git::receive_pack::Command| v1::PushCommand {
            old_oid: command.old.as_str().to_owned(),
            new_oid: command.new.as_str().to_owned(),
            ref_name: command.ref_name.to_vec(),
        };
        Question::Push(v1::PushIntent {
            repository: self.repository.to_string(),
            commands: self.section.commands.iter().map(command).collect(),
            key: key(),
        })
    }
}

/// Names a push, so that it may be asked about twice. Without randomness it has no name, and is asked about once.
fn key() -> Vec<u8> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_or_else(|_no_randomness| Vec::new(), |()| bytes.to_vec())
}

/// Reads the command section, and on until it is clear that what follows may follow.
async fn read_push(repository: RepositoryName, inbound: &mut Inbound) -> Result<Intent, Refusal> {
    let until = Instant::now() + SECTION_TIME;
    let mut reader = SectionReader::new();
    let section = loop {
        let next = timeout_at(until, inbound.next()).await.map_err(|_elapsed| Refusal::ClientLeft)?;
        let Some(bytes) = next? else {
            // The section was not whole, so this is a refusal.
            return Err(reader.finish().err().unwrap_or(Malformed::Truncated).into());
        };
        if let Some(section) = reader.push(&bytes)? {
            break section;
        }
    };
    let read = reader.into_bytes();
    let mut pack = PackStart::after(&section);
    let mut after = read.len().saturating_sub(section.length);
    pack.push(read.get(section.length..).unwrap_or_default())?;
    let mut first = BytesMut::from(read.as_ref());
    let ends_here = section.is_probe() || section.deletes_only();
    let held = if inbound.is_decoded() { HELD_DECODED } else { PackStart::MAGIC_BYTES };
    while ends_here || after < held {
        let Some(bytes) = inbound.next().await? else {
            pack.finish()?;
            break;
        };
        pack.push(&bytes)?;
        after += bytes.len();
        first.extend_from_slice(&bytes);
    }
    let first = first.freeze();
    if section.is_probe() {
        return Ok(Intent::Probe(repository, first));
    }
    Ok(Intent::Push(Push { repository, section, first }))
}
