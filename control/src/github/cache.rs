//! The tokens that are held, the refusals that are remembered, and until when. Pure: the clock is an argument.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::hash::Hash;
use std::time::{Duration, SystemTime};

use gitdoor_proto::RepositoryName;

use super::answer::SHORTEST;
use super::mint::{Ask, Fresh, MARGIN, Permissions, Repositories};
use crate::forge::{Facts, MintError, Minted};

/// Most entries of each map: bounds what names invented by sandboxes can take, and what a mint has to look through.
/// What is pushed out is only asked for once more.
const ENTRIES: usize = 1024;
/// How long a repository or installation that does not exist is not asked for again, by anyone.
const UNKNOWN: Duration = Duration::from_mins(1);
/// How long a failure that a person must mend is not tried again.
const BROKEN: Duration = Duration::from_secs(10);
/// A token of one key is dropped at most this often: a forge that refuses good tokens must not make us mint more.
const REJECTION: Duration = Duration::from_mins(1);
/// Facts that are older are read again for who wants them fresh.
const FRESH: Duration = Duration::from_mins(1);

/// Tokens, refusals and rejections, each until its time.
#[derive(Default)]
pub(super) struct Cache {
    tokens: HashMap<Ask, Kept>,
    /// The ids that checked answers gave for names: the way from a name to a token kept by id.
    ids: HashMap<RepositoryName, u64>,
    held: HashMap<Hold, Held>,
    dropped: HashMap<Ask, SystemTime>,
}

struct Kept {
    minted: Minted,
    facts: Option<(Facts, SystemTime)>,
}

/// What a refusal is about: everything asked of these repositories, or one ask.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Hold {
    Repositories(Repositories),
    Ask(Ask),
}

struct Held {
    error: MintError,
    until: SystemTime,
}

impl Cache {
    /// The token for an ask, or the refusal that still stands, or neither: then it is to be minted.
    pub(super) fn find(&self, ask: &Ask, now: SystemTime) -> Option<Result<Minted, MintError>> {
        if let Some(kept) = self.tokens.get(&self.kept_as(ask)).filter(|kept| kept.is_usable(now)) {
            return Some(Ok(kept.minted.clone()));
        }
        let holds = [Hold::Repositories(ask.repositories.clone()), Hold::Ask(ask.clone())];
        holds.iter().find_map(|hold| self.held.get(hold)?.error_at(now)).map(Err)
    }

    /// The key of an ask's token: by id for a write token, as soon as its name's id is known.
    fn kept_as(&self, ask: &Ask) -> Ask {
        match (&ask.permissions, &ask.repositories) {
            (Permissions::Write { .. }, Repositories::Names(names)) => match names.as_slice() {
                [name] => self.ids.get(name).map_or_else(|| ask.clone(), |id| ask.with_id(*id)),
                _ => ask.clone(),
            },
            _ => ask.clone(),
        }
    }

    /// Keeps a checked token.
    pub(super) fn keep(&mut self, ask: &Ask, fresh: Fresh, now: SystemTime) {
        let Fresh { minted, repository } = fresh;
        self.tokens.retain(|_, kept| kept.is_usable(now));
        make_room(&mut self.tokens, |kept| kept.minted.expires_at());
        if let (Permissions::Write { .. }, Some((id, name))) = (ask.permissions, repository) {
            self.rename(id, name);
        }
        self.tokens.insert(self.kept_as(ask), Kept { minted, facts: None });
    }

    /// Remembers this as the one name of the id, and forgets the names of which no token is left.
    fn rename(&mut self, id: u64, name: RepositoryName) {
        let kept: HashSet<_> = self.tokens.keys().filter_map(|ask| ask.repositories.id()).collect();
        self.ids.retain(|_, other| *other != id && kept.contains(other));
        self.ids.insert(name, id);
    }

    /// Remembers a refusal for as long as asking again would be no use.
    pub(super) fn hold(&mut self, ask: &Ask, error: MintError, now: SystemTime) {
        use MintError::{
            Clock, Key, NotInstalled, OwnToken, PermissionMissing, RateLimited, RepositoryUnknown, Suspended,
            Unavailable, Untrusted,
        };
        let (hold, time) = match error {
            RepositoryUnknown | NotInstalled => (Hold::Repositories(ask.repositories.clone()), UNKNOWN),
            RateLimited(time) | Unavailable(time) => (Hold::Ask(ask.clone()), time),
            Suspended | PermissionMissing(_) | Key | Clock => (Hold::Ask(ask.clone()), BROKEN),
            Untrusted(_) | OwnToken(_) => return,
        };
        let Some(until) = now.checked_add(time) else { return };
        self.held.retain(|_, held| held.until > now);
        make_room(&mut self.held, |held| held.until);
        self.held.insert(hold, Held { error, until });
    }

    /// Drops a token that the forge refuses. False when it is not held any more, or its key lost one just now.
    pub(super) fn reject(&mut self, token_id: &str, now: SystemTime) -> bool {
        self.dropped.retain(|_, at| now.duration_since(*at).is_ok_and(|age| age < REJECTION));
        let kept = self.tokens.iter().find(|(_, kept)| kept.minted.id() == token_id);
        let Some(ask) = kept.filter(|(_, kept)| kept.is_usable(now)).map(|(ask, _)| ask.clone()) else {
            return false;
        };
        match self.dropped.entry(ask) {
            Entry::Occupied(_) => false,
            Entry::Vacant(vacant) => {
                self.tokens.remove(vacant.key());
                vacant.insert(now);
                true
            }
        }
    }

    /// Facts read earlier with this token; not those older than a minute, when they are to be fresh.
    pub(super) fn facts(&self, token_id: &str, fresh: bool, now: SystemTime) -> Option<Facts> {
        let kept = self.tokens.values().find(|kept| kept.minted.id() == token_id)?;
        let (facts, read_at) = kept.facts.as_ref()?;
        let stale = now.duration_since(*read_at).is_ok_and(|age| age > FRESH);
        (!fresh || !stale).then(|| facts.clone())
    }

    /// Keeps facts with their token, and follows the name that they give.
    pub(super) fn keep_facts(&mut self, token_id: &str, facts: &Facts, now: SystemTime) {
        let Some(kept) = self.tokens.values_mut().find(|kept| kept.minted.id() == token_id) else { return };
        kept.facts = Some((facts.clone(), now));
        self.rename(facts.id, facts.full_name.clone());
    }
}

impl Kept {
    fn is_usable(&self, now: SystemTime) -> bool {
        self.minted.expires_at().duration_since(now).is_ok_and(|left| left >= MARGIN)
    }
}

impl Held {
    /// The refusal, with the time that is left of it.
    fn error_at(&self, now: SystemTime) -> Option<MintError> {
        let left = self.until.duration_since(now).ok().filter(|left| !left.is_zero())?;
        Some(match self.error {
            MintError::RateLimited(_) => MintError::RateLimited(left.max(SHORTEST)),
            MintError::Unavailable(_) => MintError::Unavailable(left.max(Duration::from_secs(1))),
            error @ (MintError::RepositoryUnknown
            | MintError::NotInstalled
            | MintError::Suspended
            | MintError::PermissionMissing(_)
            | MintError::Untrusted(_)
            | MintError::Clock
            | MintError::Key
            | MintError::OwnToken(_)) => error,
        })
    }
}

/// Removes what ends soonest when a map is full.
fn make_room<K: Clone + Eq + Hash, V>(map: &mut HashMap<K, V>, end: impl Fn(&V) -> SystemTime) {
    if map.len() >= ENTRIES
        && let Some(soonest) = map.iter().min_by_key(|(_, value)| end(value)).map(|(key, _)| key.clone())
    {
        map.remove(&soonest);
    }
}

#[cfg(test)]
mod tests {
    use secrecy::SecretString;

    use super::*;
    use crate::github::stand_in::{at, now};

    fn ask(permissions: Permissions, repositories: Repositories) -> Ask {
        Ask { installation: 1, permissions, repositories }
    }

    fn fresh(id: u64) -> Fresh {
        let repository = Some((id, RepositoryName::parse(&format!("acme/r{id}")).unwrap()));
        Fresh {
            minted: Minted::new(SecretString::from(format!("ghs_{id}")), repository.clone(), now(), at(3600 + id)),
            repository,
        }
    }

    #[test]
    fn names_that_a_sandbox_invents_take_bounded_memory() {
        let mut cache = Cache::default();
        let last = ENTRIES as u64 + 10;
        for id in 1..=last {
            let (_, name) = fresh(id).repository.unwrap();
            let unknown = ask(Permissions::Read { statuses: false }, Repositories::Names(vec![name]));
            cache.hold(&unknown, MintError::RepositoryUnknown, now());
            let pinned = ask(Permissions::Write { workflows: true }, Repositories::Id(id));
            cache.keep(&pinned, fresh(id), now());
        }
        assert_eq!((cache.held.len(), cache.tokens.len()), (ENTRIES, ENTRIES));
        assert!(cache.ids.len() <= ENTRIES + 1);
        let newest = ask(Permissions::Write { workflows: true }, Repositories::Id(last));
        assert!(matches!(cache.find(&newest, now()), Some(Ok(_))));
    }

    #[test]
    fn what_is_over_is_forgotten() {
        let mut cache = Cache::default();
        let pinned = ask(Permissions::Write { workflows: true }, Repositories::Id(1));
        cache.hold(&pinned, MintError::Suspended, now());
        cache.keep(&pinned, fresh(1), now());
        let other = ask(Permissions::Write { workflows: true }, Repositories::Id(2));
        cache.hold(&other, MintError::Suspended, at(4000));
        cache.keep(&other, fresh(2), at(4000));
        assert_eq!((cache.held.len(), cache.tokens.len(), cache.ids.len()), (1, 1, 1));
    }

    #[test]
    fn another_installations_token_is_not_found() {
        let mut cache = Cache::default();
        let mine = ask(Permissions::Write { workflows: true }, Repositories::Id(1));
        cache.keep(&mine, fresh(1), now());
        assert!(cache.find(&Ask { installation: 2, ..mine }, now()).is_none());
    }
}
