//! A walk: each step taken by a store and by the model, and whatever can be seen of the two compared.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use gitdoor_proto::{BearerHash, RepositoryName, RunId};

use super::rules::{MOST, Model};
use super::steps::{BRANCHES, Question, RUNS, Random, Step};
use crate::clock;
use crate::fleet::ControlId;
use crate::push::{Closing, Command, Outcome, Push, PushId, PushedRef, TicketHash};
use crate::run::tests::run;
use crate::run::{Binding, Identity, Registration, Run, Terms};
use crate::store::conformance::Open;
use crate::store::{Adopted, Closed, Limit, Opened, Registered, Rotated, Store};

/// Where a walk went wrong, and how.
#[derive(Debug)]
pub(super) struct Broken {
    pub(super) at: usize,
    pub(super) how: String,
}

/// A call with all that it is made with but the time and, as in life, the secret.
#[derive(Debug, Clone)]
enum Call {
    Register(RunId, u64),
    Adopt(RunId, Duration),
    Rotate(RunId),
    Use(RunId, u64),
    Bind(RunId, u64, u64),
    SeeDefaultBranch(RunId, &'static str),
    Open(Push, u64),
    Refuse(Push),
    Close(PushId, Closing),
    Revoke(RunId),
}

struct Walk<'a, S> {
    store: S,
    model: Model,
    numbers: Random,
    last: Option<Call>,
    seen: &'a mut BTreeSet<&'static str>,
}

/// Takes steps with a new store at a path; looks at all of it after every so many, and after the last.
pub(super) async fn walk<S: Open>(
    path: PathBuf,
    steps: &[Step],
    every: usize,
    seen: &mut BTreeSet<&'static str>,
) -> Result<(), Broken> {
    let now = clock::from_micros(1_800_000_000_000_000);
    let model = Model { now, runs: [].into(), pushes: [].into() };
    let mut walk = Walk { store: S::open_at(&path).await, model, numbers: Random(0), last: None, seen };
    for (at, step) in steps.iter().enumerate() {
        walk = walk.step(step, &path).await.map_err(|how| Broken { at, how })?;
        let last = at + 1 == steps.len();
        if at % every == 0 || last {
            let page = if last { 1000 } else { 1 + u32::try_from(walk.numbers.next() % 7).unwrap() };
            walk.look(page).await.map_err(|how| Broken { at, how })?;
        }
    }
    Ok(())
}

fn same<T: PartialEq + Debug>(what: &str, store: &T, model: &T) -> Result<(), String> {
    if store == model { Ok(()) } else { Err(format!("{what}\n  the store: {store:?}\n  the model: {model:?}")) }
}

fn moved(time: SystemTime, micros: i64) -> SystemTime {
    clock::from_micros(clock::to_micros(time) + micros)
}

fn id(index: usize) -> RunId {
    RunId::parse(RUNS[index]).unwrap()
}

fn repository(number: u64, now: SystemTime) -> Binding {
    let (name, repository_id) =
        [("acme/api", 7), ("acme/web", 8), ("acme/last", u64::MAX)][usize::try_from(number).unwrap()];
    Binding {
        repository: RepositoryName::parse(name).unwrap(),
        repository_id,
        default_branch: "main".into(),
        default_branches: vec!["main".into()],
        bound_at: now,
    }
}

/// Terms by number, with the binding that the forge confirms. The second and the third are the same.
fn terms(number: u64, now: SystemTime) -> (Terms, Option<Binding>) {
    let mut terms = run("r", now).terms;
    let mut bound = |name: &str| {
        terms.repository = Some(RepositoryName::parse(name).unwrap());
        Some(repository(0, now))
    };
    let binding = match number {
        1 => bound("acme/api"),
        2 => bound("ACME/Api").map(|binding| Binding {
            default_branch: "trunk".into(),
            default_branches: vec!["trunk".into()],
            ..binding
        }),
        _ => None,
    };
    match number {
        3 => (terms.identity, terms.budget) = (Identity::Read, Duration::from_mins(1)),
        4 => terms.options.max_refs = std::num::NonZeroU32::new(3),
        _ => {}
    }
    (terms, binding)
}

impl<S: Open> Walk<'_, S> {
    async fn step(mut self, step: &Step, path: &Path) -> Result<Self, String> {
        match *step {
            Step::Ask(question) => {
                let call = self.resolve(question);
                self.call(&call).await?;
                self.last = Some(call);
            }
            Step::Wait(micros) => self.model.now = moved(self.model.now, micros),
            Step::WaitForEnd { run, after } => {
                if let Some(run) = self.model.runs.get(RUNS[run]) {
                    self.model.now = moved(run.expires_at, after);
                }
            }
            Step::Restart => {
                // A file has one owner at a time.
                drop(self.store);
                self.store = S::open_at(path).await;
            }
            Step::Prune { age, limit } => self.prune(moved(self.model.now, -age), limit).await?,
            Step::Again => {
                if let Some(call) = self.last.clone() {
                    self.call(&call).await?;
                }
            }
        }
        Ok(self)
    }
}

impl<S: Store> Walk<'_, S> {
    /// The call that a question is, as things stand.
    fn resolve(&mut self, question: Question) -> Call {
        match question {
            Question::Register { run, terms } => Call::Register(id(run), terms),
            Question::Adopt { run, budget } => Call::Adopt(id(run), Duration::from_secs(budget)),
            Question::Rotate(run) => Call::Rotate(id(run)),
            Question::Use { run, generation } => Call::Use(id(run), self.generation(run, generation)),
            Question::Bind { run, generation, repository } => {
                Call::Bind(id(run), self.generation(run, generation), repository)
            }
            Question::SeeDefaultBranch { run, branch } => Call::SeeDefaultBranch(id(run), BRANCHES[branch]),
            Question::Open { run, generation } => Call::Open(self.push(run), self.generation(run, generation)),
            Question::Refuse(run) => {
                let mut push = Push { outcome: Outcome::Refused, ticket: None, control: None, ..self.push(run) };
                push.closed_at = Some(push.opened_at);
                push.refs[0].refusal = Some("default branch".into());
                Call::Refuse(push)
            }
            Question::Close { push, outcome, refs } => self.close(push, outcome, refs),
            Question::Revoke(run) => Call::Revoke(id(run)),
        }
    }

    fn generation(&self, run: usize, more: i64) -> u64 {
        self.model.runs.get(RUNS[run]).map_or(1, |run| run.bearer.generation).saturating_add_signed(more)
    }

    fn bytes<const N: usize>(&mut self) -> [u8; N] {
        std::array::from_fn(|_| self.numbers.next().to_le_bytes()[0])
    }

    fn push(&mut self, run: usize) -> Push {
        let pushed = |name: &[u8]| PushedRef {
            command: Command { old_oid: "0".repeat(40), new_oid: "a".repeat(40), ref_name: name.to_vec() },
            refusal: None,
        };
        Push {
            id: PushId::from_bytes(self.bytes()),
            run: id(run),
            request_id: format!("request-{}", self.numbers.next()),
            repository: RepositoryName::parse("acme/api").unwrap(),
            refs: vec![pushed(b"refs/heads/z"), pushed(b"refs/heads/\xc0"), pushed(b"refs/heads/a")],
            ticket: Some(TicketHash::from_bytes([8; 32])),
            outcome: Outcome::Open,
            request_bytes: 0,
            opened_at: self.model.now,
            closed_at: None,
            control: Some(control()),
        }
    }

    fn close(&mut self, push: usize, outcome: Outcome, refs: usize) -> Call {
        let known: Vec<&Push> = self.model.pushes.values().collect();
        let chosen = known.get(push % known.len().max(1));
        let refused =
            chosen.filter(|_| outcome == Outcome::RefusedUpstream).map(|push| push.refs.iter().take(refs));
        let refused = refused.into_iter().flatten().map(|pushed| pushed.command.ref_name.clone());
        let closing = Closing {
            outcome,
            upstream_refusals: refused.map(|name| (name, "hook declined".to_owned())).collect(),
            request_bytes: refs as u64,
            at: self.model.now,
        };
        Call::Close(chosen.map_or(PushId::from_bytes([0; 16]), |push| push.id), closing)
    }

    /// Puts a call to both.
    async fn call(&mut self, call: &Call) -> Result<(), String> {
        let (store, now) = (&self.store, self.model.now);
        match call {
            Call::Register(id, number) => return self.register(id, *number).await,
            Call::Rotate(id) => return self.rotate(id).await,
            Call::Bind(id, generation, number) => return self.bind(id, *generation, *number).await,
            Call::Open(push, generation) => return self.open(push, *generation).await,
            Call::Close(id, closing) => return self.report(*id, closing).await,
            Call::Adopt(id, budget) => {
                let late = self
                    .model
                    .runs
                    .get(id.as_str())
                    .is_some_and(|run| now >= run.registered_at + run.terms.budget + Duration::from_mins(5));
                let answer = self.model.adopt(id.as_str(), *budget);
                same("adopt", &store.adopt(id, *budget, now).await.ok(), &Some(answer.clone()))?;
                self.seen.insert(match answer {
                    Adopted::Adopted(_) if late => "adopted past its first time",
                    Adopted::Adopted(_) => "adopted",
                    Adopted::NotLive(_) => "not adopted",
                    Adopted::Unknown => "nobody adopted",
                });
            }
            Call::Use(id, generation) => {
                let used = self.model.mark_used(id.as_str(), *generation);
                same("use", &store.mark_used(id, *generation, now).await.ok(), &Some(used))?;
                self.seen.insert(if used { "used" } else { "not used" });
            }
            Call::SeeDefaultBranch(id, branch) => {
                let run = self.model.see_default_branch(id.as_str(), branch);
                let several = run
                    .as_ref()
                    .and_then(|run| run.binding.as_ref())
                    .is_some_and(|binding| binding.default_branches.len() > 1);
                same("see a default branch", &store.see_default_branch(id, branch).await.ok(), &Some(run))?;
                self.seen.insert(if several { "default branches" } else { "a default branch" });
            }
            Call::Refuse(push) => {
                let recorded = self.model.record(push);
                same("record a refused push", &store.record_refused(push).await.is_ok(), &recorded)?;
                self.seen.insert(if recorded { "refused" } else { "not refused" });
            }
            Call::Revoke(id) => {
                let run = self.model.revoke(id.as_str());
                let first = run.as_ref().is_some_and(|run| run.revoked_at == Some(now));
                same("revoke", &store.revoke(id, now).await.ok(), &Some(run))?;
                self.seen.insert(if first { "revoked" } else { "revoked before" });
            }
        }
        Ok(())
    }

    async fn register(&mut self, id: &RunId, number: u64) -> Result<(), String> {
        let (hash, now) = (BearerHash::from_bytes(self.bytes()), self.model.now);
        let (terms, binding) = terms(number, now);
        let new = Run::new(Registration { id: id.clone(), terms: terms.clone() }, hash, binding.clone(), now);
        let answer = self.model.register(id.as_str(), terms, hash, binding);
        same("register", &self.store.register(&new).await.ok(), &Some(answer.clone()))?;
        self.seen.insert(match answer {
            Registered::Created(_) => "created",
            Registered::Replaced(_) => "replaced",
            Registered::Exists(run) if run.adopted_at.is_some() && run.first_used_at.is_none() => "adopted before",
            Registered::Exists(_) => "exists",
        });
        Ok(())
    }

    async fn rotate(&mut self, id: &RunId) -> Result<(), String> {
        let hash = BearerHash::from_bytes(self.bytes());
        let answer = self.model.rotate(id.as_str(), hash);
        same("rotate", &self.store.rotate(id, hash, self.model.now).await.ok(), &Some(answer.clone()))?;
        self.seen.insert(match answer {
            Rotated::Rotated(_) => "rotated",
            Rotated::NotLive(_) => "not rotated",
            Rotated::Unknown => "nobody rotated",
        });
        Ok(())
    }

    async fn bind(&mut self, id: &RunId, generation: u64, number: u64) -> Result<(), String> {
        let now = self.model.now;
        let offer = repository(number, now);
        let run = self.model.bind(id.as_str(), generation, &offer);
        same("bind", &self.store.bind(id, generation, &offer, now).await.ok(), &Some(run.clone()))?;
        self.seen.insert(match run.and_then(|run| run.binding) {
            Some(binding) if binding == offer => "bound",
            Some(binding) if binding.repository_id == offer.repository_id => "bound before",
            Some(_) => "bound elsewhere",
            None => "not bound",
        });
        Ok(())
    }

    async fn open(&mut self, push: &Push, generation: u64) -> Result<(), String> {
        let opened = self.model.open_push(push, generation);
        let limit = Limit { most: MOST, lapsed: &[] };
        same("open a push", &self.store.open_push(push, generation, limit, self.model.now).await.ok(), &opened)?;
        self.seen.insert(match opened {
            Some(Opened::Open) => "open",
            Some(Opened::Again) => "opened twice",
            Some(Opened::Known) => "opened when over",
            Some(Opened::TooMany) => "too many",
            Some(Opened::Stale(Some(_))) => "stale",
            Some(Opened::Stale(None)) => "nobody's push",
            None => "not opened",
        });
        Ok(())
    }

    async fn report(&mut self, id: PushId, closing: &Closing) -> Result<(), String> {
        let before = self.model.pushes.get(id.as_bytes()).map(|push| push.outcome);
        let closed = self.model.close_push(id, closing);
        same("close a push", &self.store.close_push(id, closing).await.ok(), &Some(closed))?;
        self.seen.insert(match closed {
            Closed::Now if before == Some(Outcome::Unknown) => "reported late",
            Closed::Now => "closed",
            Closed::Before => "closed before",
            Closed::Unknown => "nothing closed",
        });
        Ok(())
    }

    /// In batches, until there is no more.
    async fn prune(&mut self, before: SystemTime, limit: u32) -> Result<(), String> {
        let expected = self.model.prune(before);
        let mut gone = 0;
        loop {
            let batch = self.store.prune(before, limit).await.map_err(|error| error.to_string())?;
            gone += batch as usize;
            if batch < limit {
                break;
            }
            same("rows of a batch", &batch, &limit)?;
        }
        self.seen.insert(if gone > 0 { "pruned" } else { "nothing pruned" });
        same("pruned rows", &gone, &expected)
    }

    /// Compares all that can be seen, of a run's pushes and of single ones so many as are on a page.
    async fn look(&self, page: u32) -> Result<(), String> {
        let (store, model) = (&self.store, &self.model);
        let failed = |error: crate::store::StoreError| error.to_string();
        let mut listed: Vec<Run> = Vec::new();
        loop {
            let runs = store.runs(listed.last().map(|run| &run.id), page).await.map_err(failed)?;
            let full = runs.len() == page as usize;
            listed.extend(runs);
            if !full {
                break;
            }
        }
        same("all runs", &listed, &model.runs.values().cloned().collect())?;
        for name in RUNS {
            let id = RunId::parse(name).unwrap();
            same("a run", &store.run(&id).await.map_err(failed)?, &model.runs.get(name).cloned())?;
            let mut pushes = Vec::new();
            loop {
                let after = pushes.last().map(|push: &Push| push.id);
                let next = store.pushes(&id, after, page).await.map_err(failed)?;
                let full = next.len() == page as usize;
                pushes.extend(next);
                if !full {
                    break;
                }
            }
            same("the pushes of a run", &pushes, &model.pushes_of(name))?;
            let unreported = sorted(store.unreported(&id).await.map_err(failed)?);
            let expected = model.pushes_in(&[Outcome::Open, Outcome::Unknown], Some(name));
            same("the pushes of a run that were not reported", &unreported, &expected)?;
        }
        let first = usize::try_from(self.numbers.0 % 1000).unwrap();
        let count = model.pushes.len();
        for push in model.pushes.values().cycle().skip(first).take(count.min(page as usize)) {
            same("a push", &store.push(push.id).await.map_err(failed)?.as_ref(), &Some(push))?;
        }
        let claimed = store.claim_pushes(control()).await.map_err(failed)?;
        let open = sorted(claimed.into_iter().map(|claimed| claimed.push).collect());
        same("all open pushes", &open, &model.pushes_in(&[Outcome::Open], None))
    }
}

/// The one that has all the pushes.
fn control() -> ControlId {
    ControlId::from_bytes([1; 16])
}

fn sorted(mut pushes: Vec<PushId>) -> Vec<PushId> {
    pushes.sort_by_key(|push| *push.as_bytes());
    pushes
}
