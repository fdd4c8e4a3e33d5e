//! Permits as they are sent: the one place where a token leaves for a data plane.

use std::time::{Duration, SystemTime};

use gitdoor_proto::{RepositoryName, v1};

use crate::forge::Minted;
use crate::run::Run;
use crate::ticket::{self, Holder, Purpose};

/// The bearer is good; nothing can be forwarded with this.
pub(super) fn verified(run: &Run, now: SystemTime) -> v1::Permit {
    v1::Permit { remaining: duration(run.remaining(now)), ..Default::default() }
}

/// What the run may do; nothing can be forwarded with this.
pub(super) fn described(run: &Run, now: SystemTime) -> v1::Permit {
    v1::Permit { run: Some(Box::new(run.to_message(now))), ..verified(run, now) }
}

/// Read the API with a token. Such a permit has no authorization: nothing is asked about it later.
pub(super) fn api(run: &Run, minted: &Minted, now: SystemTime) -> v1::Permit {
    v1::Permit { token: Some(token(minted, now)), ..verified(run, now) }
}

/// Forward to a repository with a token.
pub(super) fn forward(
    run: &Run,
    purpose: &Purpose,
    holder: Option<Holder>,
    minted: &Minted,
    repository: &RepositoryName,
    now: SystemTime,
) -> v1::Permit {
    v1::Permit {
        authorization: ticket::issue(&run.id, purpose, &run.bearer.hash, holder),
        token: Some(token(minted, now)),
        repository: repository.to_string(),
        remaining: duration(run.remaining(now)),
        lease: None,
        bind: false,
        run: None,
    }
}

/// A token.
pub(super) fn token(minted: &Minted, now: SystemTime) -> v1::Token {
    let age = now.duration_since(minted.minted_at()).unwrap_or_default();
    v1::Token { value: minted.expose().to_owned(), id: minted.id().to_owned(), age: duration(age) }
}

/// A length of time; one that no message holds is none, which no data plane takes for a permit.
pub(super) fn duration(time: Duration) -> Option<prost_types::Duration> {
    time.try_into().ok()
}
