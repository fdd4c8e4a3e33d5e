//! Runs to and from their messages. Reading is total: a field that is missing or broken is named.

use std::collections::HashSet;
use std::num::NonZeroU32;
use std::time::{Duration, SystemTime};

use gitdoor_proto::{Pattern, RepositoryName, RunId, v1};

use super::{Binding, Identity, Invalid, Options, Run, State, Terms};

/// Time that a run is given when its registration or adoption names none.
const DEFAULT_BUDGET: Duration = Duration::from_mins(45);
/// The longest run.
const MAX_BUDGET: Duration = Duration::from_hours(24);
/// Size of the API bucket when a registration names none.
const DEFAULT_API_BURST: NonZeroU32 = NonZeroU32::new(200).unwrap();
/// More than any forge serves one client in an hour.
const MAX_API_BURST: u32 = 100_000;
/// What the API bucket regains in a second when a registration names nothing.
const DEFAULT_API_RATE: f64 = 2.0;
/// More a second than any forge serves one client.
const MAX_API_RATE: f64 = 10_000.0;
/// Every pattern is compared for every ref of every push.
const MAX_BRANCHES: usize = 100;
/// Most repositories that GitHub pins one token to.
const MAX_READ_REPOSITORIES: usize = 500;

/// What a registration asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct Registration {
    /// The id of the run.
    pub id: RunId,
    /// What it may do, and for how long.
    pub terms: Terms,
}

impl TryFrom<v1::RegisterRunRequest> for Registration {
    type Error = Invalid;

    fn try_from(message: v1::RegisterRunRequest) -> Result<Self, Invalid> {
        let identity = Identity::try_from(message.identity())?;
        let v1::RegisterRunRequest { run_id, identity: _, repository, budget, options } = message;
        let id = run_id_from(&run_id)?;
        let repository = match repository.as_str() {
            "" => None,
            text => Some(RepositoryName::parse(text).map_err(Invalid::Repository)?),
        };
        if repository.is_some() && identity != Identity::Write {
            return Err(Invalid::RepositoryWithoutWrite);
        }
        let budget = budget_from(budget)?;
        let options = Options::try_from(options.unwrap_or_default())?;
        Ok(Self { id, terms: Terms { identity, repository, budget, options } })
    }
}

/// Reads the id of a run.
pub(crate) fn run_id_from(text: &str) -> Result<RunId, Invalid> {
    RunId::parse(text).map_err(|_shape| Invalid::RunId)
}

/// Reads the time that a run is given.
pub(crate) fn budget_from(message: Option<prost_types::Duration>) -> Result<Duration, Invalid> {
    let Some(message) = message else { return Ok(DEFAULT_BUDGET) };
    let budget = Duration::try_from(message).map_err(|_negative| Invalid::Budget)?;
    // Whole microseconds, as they are stored: a retry must compare equal to what was stored.
    let budget = Duration::from_micros(u64::try_from(budget.as_micros()).map_err(|_long| Invalid::Budget)?);
    if (Duration::from_secs(1)..=MAX_BUDGET).contains(&budget) { Ok(budget) } else { Err(Invalid::Budget) }
}

impl TryFrom<v1::Identity> for Identity {
    type Error = Invalid;

    fn try_from(message: v1::Identity) -> Result<Self, Invalid> {
        match message {
            v1::Identity::Unspecified => Err(Invalid::Identity),
            v1::Identity::None => Ok(Self::None),
            v1::Identity::Read => Ok(Self::Read),
            v1::Identity::Write => Ok(Self::Write),
        }
    }
}

impl From<Identity> for v1::Identity {
    fn from(identity: Identity) -> Self {
        match identity {
            Identity::None => Self::None,
            Identity::Read => Self::Read,
            Identity::Write => Self::Write,
        }
    }
}

impl From<State> for v1::RunState {
    fn from(state: State) -> Self {
        match state {
            State::Live => Self::Live,
            State::Revoked => Self::Revoked,
            State::Expired => Self::Expired,
        }
    }
}

impl TryFrom<v1::RunOptions> for Options {
    type Error = Invalid;

    fn try_from(message: v1::RunOptions) -> Result<Self, Invalid> {
        let v1::RunOptions { branches, max_refs, no_workflows, read_repositories, api_burst, api_rate } = message;
        if branches.len() > MAX_BRANCHES {
            return Err(Invalid::Branches);
        }
        let branches: Result<_, _> = branches.iter().map(|text| Pattern::parse(text)).collect();
        Ok(Self {
            branches: branches.map_err(Invalid::Branch)?,
            max_refs: NonZeroU32::new(max_refs),
            workflows: !no_workflows,
            read_repositories: repositories_from(&read_repositories)?,
            api_burst: burst_from(api_burst)?,
            api_rate: rate_from(api_rate)?,
        })
    }
}

fn repositories_from(texts: &[String]) -> Result<Vec<RepositoryName>, Invalid> {
    let names: Result<Vec<_>, _> = texts.iter().map(|text| RepositoryName::parse(text)).collect();
    let names = names.map_err(Invalid::ReadRepository)?;
    let distinct: HashSet<_> = names.iter().collect();
    if names.len() > MAX_READ_REPOSITORIES || distinct.len() < names.len() {
        return Err(Invalid::ReadRepositories);
    }
    Ok(names)
}

fn burst_from(burst: u32) -> Result<NonZeroU32, Invalid> {
    match NonZeroU32::new(burst) {
        None => Ok(DEFAULT_API_BURST),
        Some(burst) if burst.get() <= MAX_API_BURST => Ok(burst),
        Some(_) => Err(Invalid::ApiBurst),
    }
}

fn rate_from(rate: f64) -> Result<f64, Invalid> {
    if rate == 0.0 {
        Ok(DEFAULT_API_RATE)
    } else if rate > 0.0 && rate <= MAX_API_RATE {
        Ok(rate)
    } else {
        Err(Invalid::ApiRate)
    }
}

impl From<Options> for v1::RunOptions {
    fn from(options: Options) -> Self {
        let Options { branches, max_refs, workflows, read_repositories, api_burst, api_rate } = options;
        Self {
            branches: branches.iter().map(Pattern::to_string).collect(),
            max_refs: max_refs.map_or(0, NonZeroU32::get),
            no_workflows: !workflows,
            read_repositories: read_repositories.iter().map(RepositoryName::to_string).collect(),
            api_burst: api_burst.get(),
            api_rate,
        }
    }
}

impl From<Binding> for v1::Binding {
    fn from(binding: Binding) -> Self {
        let Binding { repository, repository_id, default_branch, default_branches, bound_at } = binding;
        Self {
            repository: repository.to_string(),
            repository_id,
            default_branch,
            default_branches,
            bound_at: Some(bound_at.into()),
        }
    }
}

impl Run {
    /// The run as it may be shown, to its own sandbox too, at a time: without anything of its bearer.
    #[must_use]
    pub fn to_message(&self, now: SystemTime) -> v1::Run {
        v1::Run {
            run_id: self.id.to_string(),
            identity: v1::Identity::from(self.terms.identity).into(),
            state: v1::RunState::from(self.state(now)).into(),
            binding: self.binding.clone().map(Into::into),
            registered_at: Some(self.registered_at.into()),
            adopted_at: self.adopted_at.map(Into::into),
            expires_at: Some(self.expires_at.into()),
            revoked_at: self.revoked_at.map(Into::into),
            options: Some(self.terms.options.clone().into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> v1::RegisterRunRequest {
        v1::RegisterRunRequest {
            run_id: "run-1".into(),
            identity: v1::Identity::Write.into(),
            repository: "acme/api".into(),
            budget: Some(prost_types::Duration { seconds: 60, nanos: 0 }),
            options: Some(v1::RunOptions {
                branches: vec!["agent/*".into()],
                max_refs: 3,
                no_workflows: true,
                read_repositories: vec!["acme/api".into()],
                api_burst: 9,
                api_rate: 0.5,
            }),
        }
    }

    #[test]
    fn a_registration_survives_the_wire() {
        let read = Registration::try_from(request()).unwrap();
        assert_eq!(read.id.as_str(), "run-1");
        assert_eq!(read.terms.budget, Duration::from_mins(1));
        assert!(!read.terms.options.workflows);
        assert_eq!(v1::RunOptions::from(read.terms.options), request().options.unwrap());
    }

    #[test]
    fn what_is_left_out_has_its_default() {
        let message =
            v1::RegisterRunRequest { repository: String::new(), budget: None, options: None, ..request() };
        let terms = Registration::try_from(message).unwrap().terms;
        assert_eq!((terms.repository, terms.budget), (None, DEFAULT_BUDGET));
        assert!(terms.options.workflows && terms.options.branches.is_empty() && terms.options.max_refs.is_none());
        assert_eq!(terms.options.api_burst.get(), 200);
        assert!((terms.options.api_rate - 2.0).abs() < f64::EPSILON);
    }

    #[test]
    fn a_field_that_cannot_be_read_is_named() {
        use gitdoor_proto::refname::InvalidPattern;
        use gitdoor_proto::repository::InvalidRepository;
        type Spoil = fn(&mut v1::RegisterRunRequest);
        let table: &[(Spoil, Invalid)] = &[
            (|m| m.run_id = "a b".into(), Invalid::RunId),
            (|m| m.identity = 0, Invalid::Identity),
            (|m| m.identity = 99, Invalid::Identity),
            (|m| m.repository = "acme".into(), Invalid::Repository(InvalidRepository::Segments)),
            (|m| m.identity = v1::Identity::Read.into(), Invalid::RepositoryWithoutWrite),
            (|m| m.identity = v1::Identity::None.into(), Invalid::RepositoryWithoutWrite),
            (|m| m.budget = Some(prost_types::Duration { seconds: 0, nanos: 1 }), Invalid::Budget),
            (|m| m.budget = Some(prost_types::Duration { seconds: -5, nanos: 0 }), Invalid::Budget),
            (|m| m.budget = Some(prost_types::Duration { seconds: 86_400, nanos: 1_000 }), Invalid::Budget),
            (|m| m.options.as_mut().unwrap().branches = vec!["a b".into()], Invalid::Branch(InvalidPattern)),
            (|m| m.options.as_mut().unwrap().branches = vec!["a".into(); 101], Invalid::Branches),
            (
                |m| m.options.as_mut().unwrap().read_repositories = vec!["/x".into()],
                Invalid::ReadRepository(InvalidRepository::Owner),
            ),
            (
                |m| m.options.as_mut().unwrap().read_repositories = vec!["a/b".into(), "A/B".into()],
                Invalid::ReadRepositories,
            ),
            (|m| m.options.as_mut().unwrap().api_burst = 100_001, Invalid::ApiBurst),
            (|m| m.options.as_mut().unwrap().api_burst = u32::MAX, Invalid::ApiBurst),
            (|m| m.options.as_mut().unwrap().api_rate = 10_000.1, Invalid::ApiRate),
            (|m| m.options.as_mut().unwrap().api_rate = f64::MAX, Invalid::ApiRate),
            (|m| m.options.as_mut().unwrap().api_rate = f64::NAN, Invalid::ApiRate),
            (|m| m.options.as_mut().unwrap().api_rate = -1.0, Invalid::ApiRate),
            (|m| m.options.as_mut().unwrap().api_rate = -5e-324, Invalid::ApiRate),
            (|m| m.options.as_mut().unwrap().api_rate = f64::INFINITY, Invalid::ApiRate),
        ];
        for (spoil, why) in table {
            let mut message = request();
            spoil(&mut message);
            assert_eq!(Registration::try_from(message).unwrap_err(), *why);
        }
    }
}
