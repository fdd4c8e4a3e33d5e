//! The life of a run, as rules: what each thing that can happen to a run makes of it, and when it may.
//!
//! Pure. A store reads a run, asks here and writes the answer, and lets nobody in between. No rule needs the times
//! that it is given to be in order: the controls of one store have clocks of their own.

use std::time::{Duration, SystemTime};

use gitdoor_proto::BearerHash;

use super::{Binding, Registration, Run, State, StoredBearer};

/// Time that a bearer lives on after its run's budget, so that the last push can end.
pub const GRACE: Duration = Duration::from_mins(5);

/// What becomes of a run.
#[derive(Debug, Clone, PartialEq)]
#[must_use = "a run that has changed is to be stored"]
pub enum Transition {
    /// It is this from now on.
    Changed(Run),
    /// It is already what was asked for.
    Unchanged(Run),
    /// It may not become that, and stays as it is.
    Refused(Run),
}

impl Transition {
    /// The run as it then stands.
    #[must_use]
    pub fn into_run(self) -> Run {
        match self {
            Self::Changed(run) | Self::Unchanged(run) | Self::Refused(run) => run,
        }
    }
}

impl Run {
    /// Begins a run.
    #[must_use]
    pub fn new(registration: Registration, hash: BearerHash, binding: Option<Binding>, now: SystemTime) -> Self {
        let Registration { id, terms } = registration;
        Self {
            id,
            bearer: StoredBearer { hash, generation: 1 },
            first_used_at: None,
            registered_at: now,
            adopted_at: None,
            expires_at: now + terms.budget + GRACE,
            revoked_at: None,
            binding,
            terms,
        }
    }

    /// Where it is in its life. What was revoked stays revoked after its time is over.
    #[must_use]
    pub fn state(&self, now: SystemTime) -> State {
        if self.revoked_at.is_some() {
            State::Revoked
        } else if now >= self.expires_at {
            State::Expired
        } else {
            State::Live
        }
    }

    /// Time until it expires.
    #[must_use]
    pub fn remaining(&self, now: SystemTime) -> Duration {
        self.expires_at.duration_since(now).unwrap_or_default()
    }

    /// Whether something may be done in the name of the bearer of a generation: a push of it opened, a binding made.
    #[must_use]
    pub fn is_current(&self, generation: u64, now: SystemTime) -> bool {
        self.is_live(now) && self.bearer.generation == generation
    }

    fn is_live(&self, now: SystemTime) -> bool {
        self.state(now) == State::Live
    }

    /// A registration of the same id: a retry, when it is on the same terms and nobody has used, adopted or ended
    /// the run. It then has the retry's secret, and its time still counts from the first.
    pub fn register_again(self, again: &Self) -> Transition {
        let untouched = self.first_used_at.is_none() && self.adopted_at.is_none();
        if untouched && self.is_live(again.registered_at) && self.terms == again.terms {
            Transition::Changed(self.with_secret(again.bearer.hash))
        } else {
            Transition::Refused(self)
        }
    }

    /// A new generation of its bot takes a live run over: with a new budget from now, be it shorter, and with
    /// everything else that it has.
    pub fn adopt(self, budget: Duration, now: SystemTime) -> Transition {
        if self.is_live(now) {
            Transition::Changed(Self { adopted_at: Some(now), expires_at: now + budget + GRACE, ..self })
        } else {
            Transition::Refused(self)
        }
    }

    /// A live run gets another secret.
    pub fn rotate(self, hash: BearerHash, now: SystemTime) -> Transition {
        if self.is_live(now) { Transition::Changed(self.with_secret(hash)) } else { Transition::Refused(self) }
    }

    /// Each secret has a generation of its own: what was begun with the one before has ended.
    fn with_secret(self, hash: BearerHash) -> Self {
        let bearer = StoredBearer { hash, generation: self.bearer.generation + 1 };
        Self { bearer, ..self }
    }

    /// The bearer of a generation was shown. The first time stands; it is not asked whether the run is live.
    pub fn mark_used(self, generation: u64, now: SystemTime) -> Transition {
        if self.bearer.generation != generation {
            Transition::Refused(self)
        } else if self.first_used_at.is_some() {
            Transition::Unchanged(self)
        } else {
            Transition::Changed(Self { first_used_at: Some(now), ..self })
        }
    }

    /// It is bound, for life: the first binding stands.
    pub fn bind(self, generation: u64, binding: &Binding, now: SystemTime) -> Transition {
        match &self.binding {
            Some(bound) if bound.repository_id == binding.repository_id => Transition::Unchanged(self),
            None if self.is_current(generation, now) => {
                Transition::Changed(Self { binding: Some(binding.clone()), ..self })
            }
            Some(_) | None => Transition::Refused(self),
        }
    }

    /// The default branch of its repository was read. Every one that it has ever been stays among them.
    pub fn see_default_branch(mut self, branch: &str) -> Transition {
        let Some(binding) = &mut self.binding else { return Transition::Refused(self) };
        let is_new = !binding.default_branches.iter().any(|earlier| earlier == branch);
        if !is_new && binding.default_branch == branch {
            return Transition::Unchanged(self);
        }
        branch.clone_into(&mut binding.default_branch);
        if is_new {
            binding.default_branches.push(branch.to_owned());
        }
        Transition::Changed(self)
    }

    /// It is ended, be it expired or not. The first time stands.
    pub fn revoke(self, now: SystemTime) -> Transition {
        if self.revoked_at.is_some() {
            Transition::Unchanged(self)
        } else {
            Transition::Changed(Self { revoked_at: Some(now), ..self })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::tests::{binding, run};

    const BUDGET: Duration = Duration::from_mins(10);

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    /// When [`fresh`] expires.
    fn end() -> SystemTime {
        at(50 * 60)
    }

    fn fresh() -> Run {
        run("r", at(0))
    }

    fn revoked() -> Run {
        fresh().revoke(at(1)).into_run()
    }

    fn hash() -> BearerHash {
        BearerHash::from_bytes([9; 32])
    }

    fn changed(transition: Transition) -> Run {
        let Transition::Changed(run) = transition else { panic!("{transition:?}") };
        run
    }

    /// What a table has of runs that a rule does not let through.
    fn refuses(rule: impl Fn(Run) -> Transition, runs: &[Run]) {
        for run in runs {
            assert_eq!(rule(run.clone()), Transition::Refused(run.clone()));
        }
    }

    #[test]
    fn a_run_lives_five_minutes_longer_than_its_budget() {
        let run = fresh();
        assert_eq!(run.state(end() - Duration::from_micros(1)), State::Live);
        assert_eq!(run.state(end()), State::Expired);
        assert_eq!(run.remaining(end() + GRACE), Duration::ZERO);
        assert_eq!(revoked().state(end()), State::Revoked);
    }

    #[test]
    fn a_registration_is_a_retry_until_the_run_is_used_adopted_or_ended() {
        let again = Run { bearer: StoredBearer { hash: hash(), generation: 1 }, ..run("r", at(5)) };
        let late = Run { registered_at: end(), ..again.clone() };
        let mut otherwise = fresh();
        otherwise.terms.budget = BUDGET;
        let replaced = changed(fresh().register_again(&again));
        assert_eq!(replaced, Run { bearer: StoredBearer { hash: hash(), generation: 2 }, ..fresh() });
        let used = fresh().mark_used(1, at(1)).into_run();
        let adopted = fresh().adopt(BUDGET, at(1)).into_run();
        refuses(|run| run.register_again(&again), &[used, adopted, revoked(), otherwise]);
        refuses(|run| run.register_again(&late), &[fresh()]);
    }

    #[test]
    fn an_adopted_run_has_a_new_budget_from_then_and_all_else_that_it_had() {
        let before = changed(fresh().mark_used(1, at(1)).into_run().bind(1, &binding(at(2)), at(2)));
        let adopted = changed(before.clone().adopt(BUDGET, at(100)));
        let expires_at = at(100) + BUDGET + GRACE;
        assert_eq!(adopted, Run { adopted_at: Some(at(100)), expires_at, ..before });
        let again = changed(adopted.clone().adopt(BUDGET, at(100)));
        assert_eq!(again, adopted);
        assert_eq!(changed(adopted.adopt(BUDGET, at(900))).expires_at, at(900) + BUDGET + GRACE);
        refuses(|run| run.adopt(BUDGET, at(2)), &[revoked()]);
        refuses(|run| run.adopt(BUDGET, end()), &[fresh()]);
    }

    #[test]
    fn only_a_live_run_is_rotated() {
        let rotated = changed(fresh().rotate(hash(), at(1)));
        assert_eq!(rotated, Run { bearer: StoredBearer { hash: hash(), generation: 2 }, ..fresh() });
        refuses(|run| run.rotate(hash(), at(2)), &[revoked()]);
        refuses(|run| run.rotate(hash(), end()), &[fresh()]);
    }

    #[test]
    fn the_first_use_of_the_present_bearer_stands() {
        let used = changed(fresh().mark_used(1, at(1)));
        assert_eq!(used.first_used_at, Some(at(1)));
        assert_eq!(used.clone().mark_used(1, at(2)), Transition::Unchanged(used));
        refuses(|run| run.mark_used(1, at(2)), &[fresh().rotate(hash(), at(1)).into_run()]);
    }

    #[test]
    fn the_first_binding_of_a_live_run_by_its_present_bearer_stands() {
        let (here, there) = (binding(at(1)), Binding { repository_id: 8, ..binding(at(1)) });
        let bound = changed(fresh().bind(1, &here, at(1)));
        assert_eq!(bound, Run { binding: Some(here.clone()), ..fresh() });
        let later = Binding { default_branch: "trunk".into(), ..here.clone() };
        assert_eq!(bound.clone().bind(1, &later, at(2)), Transition::Unchanged(bound.clone()));
        refuses(|run| run.bind(1, &there, at(2)), &[bound]);
        refuses(|run| run.bind(1, &here, at(2)), &[revoked(), fresh().rotate(hash(), at(1)).into_run()]);
        refuses(|run| run.bind(1, &here, end()), &[fresh()]);
    }

    #[test]
    fn a_branch_that_was_default_once_is_kept() {
        let bound = changed(fresh().bind(1, &binding(at(1)), at(1)));
        assert_eq!(bound.clone().see_default_branch("main"), Transition::Unchanged(bound.clone()));
        let moved = changed(bound.see_default_branch("trunk"));
        let back = changed(moved.see_default_branch("main")).binding.unwrap();
        assert_eq!(
            (back.default_branch, back.default_branches),
            ("main".into(), vec!["main".into(), "trunk".into()])
        );
        refuses(|run| run.see_default_branch("main"), &[fresh()]);
    }

    #[test]
    fn the_first_revocation_stands() {
        let run = changed(fresh().revoke(at(1)));
        assert_eq!(run, Run { revoked_at: Some(at(1)), ..fresh() });
        assert_eq!(run.clone().revoke(at(2)), Transition::Unchanged(run));
        assert_eq!(changed(fresh().revoke(end())).revoked_at, Some(end()));
    }

    #[test]
    fn a_push_is_for_the_present_bearer_of_a_live_run() {
        let adopted = fresh().adopt(BUDGET, at(1)).into_run();
        assert!(fresh().is_current(1, at(1)) && adopted.is_current(1, at(1)));
        assert!(!fresh().is_current(2, at(1)) && !fresh().is_current(1, end()) && !revoked().is_current(1, at(2)));
        // A shorter budget ends it sooner.
        assert!(!adopted.is_current(1, at(1) + BUDGET + GRACE));
    }
}
