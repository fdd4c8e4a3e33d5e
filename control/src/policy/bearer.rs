//! Whether a bearer is good, and for what.

use std::time::SystemTime;

use gitdoor_proto::{BearerHash, Denial, Reason};

use crate::run::{Binding, Identity, Run, State};

/// A run whose bearer was shown and is good. Only [`admit`] and [`still_live`] make one.
#[derive(Debug, Clone)]
pub struct Live(Run);

/// A live run that may push. Only [`Live::writer`] makes one.
#[derive(Debug, Clone, Copy)]
pub struct Writer<'a>(&'a Run);

/// Judges a bearer: the run of its id, if there is one, and the hash of its secret.
pub fn admit(run: Option<Run>, presented: &BearerHash, now: SystemTime) -> Result<Live, Denial> {
    let run = run.ok_or_else(unknown)?;
    // Before anything else about the run: who does not hold its secret learns nothing of its state.
    if !run.bearer.hash.matches(presented) {
        return Err(wrong());
    }
    still_live(run, now)
}

/// Judges the run of a ticket that its present bearer signed.
pub fn still_live(run: Run, now: SystemTime) -> Result<Live, Denial> {
    match run.state(now) {
        State::Revoked => {
            return Err(Denial::new(
                Reason::RunRevoked,
                "run revoked; stop here, this bearer opens nothing any more",
            ));
        }
        State::Expired => {
            return Err(Denial::new(
                Reason::RunExpired,
                "run expired; stop here, this bearer opens nothing any more",
            ));
        }
        State::Live => {}
    }
    if run.terms.identity == Identity::None {
        return Err(Denial::new(Reason::IdentityNone, "this run has no access to repositories; work without them"));
    }
    Ok(Live(run))
}

/// No run has the bearer's id.
#[must_use]
pub fn unknown() -> Denial {
    Denial::new(Reason::RunUnknown, "no run has this bearer's id; ask who started you for a bearer of this door")
}

/// The secret is not, or no longer, the run's.
#[must_use]
pub fn wrong() -> Denial {
    Denial::new(Reason::BearerWrong, "this bearer is not, or no longer, the run's; use its newest one")
}

impl Live {
    /// The run.
    #[must_use]
    pub fn run(&self) -> &Run {
        &self.0
    }

    /// The run as one that may push, if it may.
    pub fn writer(&self) -> Result<Writer<'_>, Denial> {
        match self.0.terms.identity {
            Identity::Write => Ok(Writer(&self.0)),
            Identity::Read | Identity::None => {
                Err(Denial::new(Reason::IdentityRead, "this run may fetch and read, but not push"))
            }
        }
    }
}

impl<'a> Writer<'a> {
    /// The run.
    #[must_use]
    pub fn run(self) -> &'a Run {
        self.0
    }

    /// What it is bound to, if it is.
    pub fn bound(self) -> Result<&'a Binding, Denial> {
        self.0.binding.as_ref().ok_or_else(|| {
            Denial::new(
                Reason::RunUnbound,
                "this run is bound to no repository yet; git push binds it: start over with its discovery request",
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::tests::{binding, run};
    use std::time::Duration;

    const START: SystemTime = SystemTime::UNIX_EPOCH;

    #[test]
    fn a_bearer_is_judged_in_a_fixed_order() {
        let good = BearerHash::from_bytes([7; 32]);
        let wrong = BearerHash::from_bytes([8; 32]);
        let late = START + Duration::from_hours(1);
        let live = run("r", START);
        let revoked = Run { revoked_at: Some(START), ..live.clone() };
        let mut none = live.clone();
        none.terms.identity = Identity::None;
        let table = [
            (None, good, START, Some(Reason::RunUnknown)),
            (Some(live.clone()), wrong, START, Some(Reason::BearerWrong)),
            (Some(revoked.clone()), wrong, late, Some(Reason::BearerWrong)),
            (Some(revoked.clone()), good, START, Some(Reason::RunRevoked)),
            (Some(revoked), good, late, Some(Reason::RunRevoked)),
            (Some(live.clone()), good, late, Some(Reason::RunExpired)),
            (Some(none.clone()), good, late, Some(Reason::RunExpired)),
            (Some(none), good, START, Some(Reason::IdentityNone)),
            (Some(live), good, START, None),
        ];
        for (run, hash, now, reason) in table {
            assert_eq!(admit(run, &hash, now).err().map(|denial| denial.reason), reason);
        }
    }

    #[test]
    fn only_a_write_run_pushes_and_only_once_it_is_bound() {
        let mut stored = run("r", START);
        let live = still_live(stored.clone(), START).unwrap();
        assert_eq!(live.writer().unwrap().bound().unwrap_err().reason, Reason::RunUnbound);
        stored.binding = Some(binding(START));
        let live = still_live(stored.clone(), START).unwrap();
        assert_eq!(live.writer().unwrap().bound().unwrap(), &binding(START));
        stored.terms.identity = Identity::Read;
        assert_eq!(still_live(stored, START).unwrap().writer().unwrap_err().reason, Reason::IdentityRead);
    }
}
