//! What the gate promises, against a real store and a forge of a few repositories in memory.

mod api;
mod fill;
mod held;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use gitdoor_proto::{Bearer, Denial, Reason, RunId, v1};

use super::Gate;
use super::question::Question;
use super::tickets::Report;
use crate::clock;
use crate::fleet::ControlId;
use crate::forge::MintError;
use crate::lease::{End, Leases};
use crate::push::{Outcome, Push};
use crate::run::{Registration, Run};
use crate::store::sqlite::Sqlite;
use crate::store::{Registered, Store};
use crate::ticket::{Holder, Shown};
use crate::village::Village;

struct Door {
    gate: Gate<Sqlite, Village>,
    store: Arc<Sqlite>,
    forge: Arc<Village>,
    leases: Arc<Leases>,
    dir: tempfile::TempDir,
}

fn start() -> SystemTime {
    clock::from_micros(1_800_000_000_000_000)
}

impl Door {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let forge = Arc::new(Village::new());
        Self::at(dir, forge)
    }

    fn at(dir: tempfile::TempDir, forge: Arc<Village>) -> Self {
        let store = Arc::new(Sqlite::open(&dir.path().join("store")).unwrap());
        let leases = Arc::new(Leases::new(ControlId::from_bytes([1; 16])));
        let gate = Gate::new(store.clone(), forge.clone(), leases.clone());
        Self { gate, store, forge, leases, dir }
    }

    fn restart(self) -> Self {
        let Self { gate, store, forge, leases: _, dir } = self;
        drop(gate);
        drop(store);
        Self::at(dir, forge)
    }

    async fn run(&self, identity: v1::Identity, options: v1::RunOptions) -> Bearer {
        self.run_of("r", identity, options).await
    }

    async fn run_of(&self, id: &str, identity: v1::Identity, options: v1::RunOptions) -> Bearer {
        let message = v1::RegisterRunRequest {
            run_id: id.into(),
            identity: identity.into(),
            options: Some(options),
            ..Default::default()
        };
        let bearer = Bearer::generate(RunId::parse(id).unwrap()).unwrap();
        let run = Run::new(Registration::try_from(message).unwrap(), bearer.hash(), None, start());
        assert!(matches!(self.store.register(&run).await.unwrap(), Registered::Created(_)));
        bearer
    }

    async fn writer(&self) -> Bearer {
        self.run(v1::Identity::Write, v1::RunOptions::default()).await
    }

    async fn bound(&self) -> Bearer {
        let bearer = self.writer().await;
        let permit = self.ask(&bearer, discovery("acme/api")).await.unwrap();
        self.gate.bind(shown(&permit.authorization), start()).await.unwrap();
        self.forge.asked();
        bearer
    }

    async fn ask(&self, bearer: &Bearer, intent: Intent) -> Result<v1::Permit, Denial> {
        self.ask_at(bearer, intent, start()).await
    }

    async fn ask_at(&self, bearer: &Bearer, intent: Intent, now: SystemTime) -> Result<v1::Permit, Denial> {
        let message = v1::AuthorizeRequest {
            run_id: bearer.run_id().to_string(),
            secret: bearer.expose_secret().into(),
            request_id: "q-1".into(),
            intent: Some(intent),
            ..Default::default()
        };
        self.gate
            .authorize(Question::read(message, Some(holder())).unwrap(), now)
            .await
            .map(|permitted| permitted.permit)
    }

    async fn pushes(&self) -> Vec<Push> {
        self.store.pushes(&RunId::parse("r").unwrap(), None, 99).await.unwrap()
    }

    async fn stored(&self) -> Run {
        self.store.run(&RunId::parse("r").unwrap()).await.unwrap().unwrap()
    }

    async fn rotate(&self) -> Bearer {
        let next = Bearer::generate(RunId::parse("r").unwrap()).unwrap();
        self.store.rotate(next.run_id(), next.hash(), start()).await.unwrap();
        next
    }

    async fn revoke(&self) {
        let id = RunId::parse("r").unwrap();
        self.store.revoke(&id, start()).await.unwrap();
        self.leases.end(&id, End::Revoked);
    }
}

use v1::authorize_request::Intent;

/// The data plane that asks.
fn holder() -> Holder {
    Holder::of(b"a")
}

fn shown(text: &str) -> Shown<'_> {
    Shown { text, holder: Some(holder()) }
}

fn fetch(repository: &str) -> Intent {
    Intent::Fetch(v1::Fetch { repository: repository.into() })
}

fn discovery(repository: &str) -> Intent {
    Intent::PushDiscovery(v1::PushDiscovery { repository: repository.into(), redirected: false })
}

fn probe(repository: &str) -> Intent {
    Intent::Probe(v1::Probe { repository: repository.into() })
}

fn push(repository: &str, refs: &[&str]) -> Intent {
    let command = |name: &&str| v1::PushCommand {
        old_oid: "0".repeat(40),
        new_oid: "a".repeat(40),
        ref_name: name.as_bytes().to_vec(),
    };
    Intent::Push(v1::PushIntent {
        repository: repository.into(),
        commands: refs.iter().map(command).collect(),
        key: Vec::new(),
    })
}

fn reason<T: std::fmt::Debug>(answer: Result<T, Denial>) -> Reason {
    answer.unwrap_err().reason
}

#[tokio::test]
async fn a_good_bearer_is_verified_without_a_token_and_marked_as_used_once() {
    let door = Door::new();
    let bearer = door.writer().await;
    let permit = door.ask(&bearer, Intent::Verify(v1::Verify {})).await.unwrap();
    assert_eq!((permit.token, permit.repository.as_str()), (None, ""));
    assert_eq!(permit.remaining.unwrap().seconds, 50 * 60);
    assert_eq!(door.stored().await.first_used_at, Some(start()));
    let late = start() + Duration::from_mins(1);
    door.ask_at(&bearer, Intent::Verify(v1::Verify {}), late).await.unwrap();
    assert_eq!(door.stored().await.first_used_at, Some(start()));
    assert!(door.forge.asked().is_empty());
}

#[tokio::test]
async fn a_bad_bearer_gets_nothing_and_costs_no_mint() {
    let door = Door::new();
    let bearer = door.writer().await;
    let stranger = Bearer::generate(RunId::parse("s").unwrap()).unwrap();
    let forged = Bearer::generate(RunId::parse("r").unwrap()).unwrap();
    assert_eq!(reason(door.ask(&stranger, fetch("acme/api")).await), Reason::RunUnknown);
    assert_eq!(reason(door.ask(&forged, fetch("acme/api")).await), Reason::BearerWrong);
    assert_eq!(door.stored().await.first_used_at, None);
    let late = start() + Duration::from_mins(50);
    assert_eq!(reason(door.ask_at(&bearer, fetch("acme/api"), late).await), Reason::RunExpired);
    door.revoke().await;
    assert_eq!(reason(door.ask(&bearer, fetch("acme/api")).await), Reason::RunRevoked);
    assert!(door.forge.asked().is_empty());
}

#[tokio::test]
async fn a_fetch_gets_a_read_token_of_the_runs_scope_and_binds_nothing() {
    let door = Door::new();
    let bearer = door.writer().await;
    let permit = door.ask(&bearer, fetch("Acme/API")).await.unwrap();
    assert_eq!(permit.repository, "Acme/API");
    assert!(!permit.bind && permit.lease.is_none());
    assert_eq!(door.forge.asked(), ["read-all"]);
    assert_eq!(door.stored().await.binding, None);
    assert_eq!(reason(door.gate.bind(shown(&permit.authorization), start()).await), Reason::AuthorizationUnknown);

    let door = Door::new();
    let narrow = v1::RunOptions { read_repositories: vec!["acme/web".into()], ..Default::default() };
    let bearer = door.run(v1::Identity::Read, narrow).await;
    door.ask(&bearer, fetch("acme/web")).await.unwrap();
    assert_eq!(door.forge.asked(), ["read-[acme/web]"]);
    for intent in [discovery("acme/api"), probe("acme/api"), push("acme/api", &["refs/heads/x"])] {
        assert_eq!(reason(door.ask(&bearer, intent).await), Reason::IdentityRead);
    }
    assert!(door.forge.asked().is_empty());
}

#[tokio::test]
async fn a_first_push_discovery_binds_when_it_is_confirmed_and_not_before() {
    let door = Door::new();
    let bearer = door.writer().await;
    for intent in [probe("acme/api"), push("acme/api", &["refs/heads/x"])] {
        assert_eq!(reason(door.ask(&bearer, intent).await), Reason::RunUnbound);
    }
    assert!(door.forge.asked().is_empty());
    let permit = door.ask(&bearer, discovery("ACME/api")).await.unwrap();
    assert!(permit.bind);
    assert_eq!(door.stored().await.binding, None);
    for _ in 0..2 {
        let bound = door.gate.bind(shown(&permit.authorization), start()).await.unwrap();
        assert_eq!((bound.repository.to_string().as_str(), bound.repository_id), ("acme/api", 7));
    }
    let binding = door.stored().await.binding.unwrap();
    assert_eq!((binding.default_branch.as_str(), binding.default_branches), ("main", vec!["main".to_owned()]));
    let again = door.ask(&bearer, discovery("acme/API")).await.unwrap();
    assert_eq!((again.bind, again.repository.as_str()), (false, "acme/api"));
    door.ask(&bearer, probe("acme/api")).await.unwrap();
}

#[tokio::test]
async fn nothing_binds_when_the_default_branch_cannot_be_read_or_the_repository_is_unknown() {
    let door = Door::new();
    let bearer = door.writer().await;
    let permit = door.ask(&bearer, discovery("acme/api")).await.unwrap();
    door.forge.unreadable(true);
    let denial = door.gate.bind(shown(&permit.authorization), start()).await.unwrap_err();
    assert_eq!((denial.reason, denial.retry_after), (Reason::RepositoryUnreadable, Some(Duration::from_secs(3))));
    assert_eq!(door.stored().await.binding, None);
    assert_eq!(reason(door.ask(&bearer, discovery("acme/none")).await), Reason::RepositoryUnknown);
    door.forge.unreadable(false);
    door.gate.bind(shown(&permit.authorization), start()).await.unwrap();
}

#[tokio::test]
async fn of_two_first_pushes_one_binds_and_the_other_is_told_where() {
    let door = Door::new();
    let bearer = door.writer().await;
    let api = door.ask(&bearer, discovery("acme/api")).await.unwrap();
    let web = door.ask(&bearer, discovery("acme/web")).await.unwrap();
    let (api, web) = tokio::join!(
        door.gate.bind(shown(&api.authorization), start()),
        door.gate.bind(shown(&web.authorization), start()),
    );
    let binding = door.stored().await.binding.unwrap();
    let (won, lost) = if api.is_ok() { (api, web) } else { (web, api) };
    assert_eq!(won.unwrap(), binding);
    let denial = lost.unwrap_err();
    assert_eq!(denial.reason, Reason::BoundElsewhere);
    assert!(denial.message.contains(&binding.repository.to_string()), "{}", denial.message);
}

#[tokio::test]
async fn a_bound_run_pushes_nowhere_else() {
    let door = Door::new();
    let bearer = door.bound().await;
    for intent in [discovery("acme/web"), probe("acme/web"), push("acme/web", &["refs/heads/x"])] {
        let denial = door.ask(&bearer, intent).await.unwrap_err();
        assert_eq!(denial.reason, Reason::BoundElsewhere);
        assert!(denial.message.contains("bound to acme/api"), "{}", denial.message);
    }
    assert!(!door.forge.asked().iter().any(|asked| asked.starts_with("write-8")));
    let row = &door.pushes().await[0];
    assert_eq!((row.outcome, row.refs[0].refusal.as_deref()), (Outcome::Refused, Some("bound-elsewhere")));
}

#[tokio::test]
async fn a_rename_is_followed_by_the_id_under_both_names() {
    let door = Door::new();
    let bearer = door.bound().await;
    door.forge.put(7, "acme/api2", "main");
    door.forge.put(9, "acme/api", "main");
    let late = start() + Duration::from_secs(61);
    assert_eq!(reason(door.ask(&bearer, probe("acme/api2")).await), Reason::BoundElsewhere);
    for name in ["acme/api2", "acme/api", "ACME/Api2"] {
        for intent in [probe(name), push(name, &["refs/heads/x"])] {
            let permit = door.ask_at(&bearer, intent, late).await.unwrap();
            assert_eq!(permit.repository, "acme/api2", "{name}");
        }
    }
    // At the former name the forge is to say itself what is there now: the token is good for nothing else.
    for (name, place) in [("acme/api2", "acme/api2"), ("ACME/Api2", "acme/api2"), ("acme/api", "acme/api")] {
        assert_eq!(door.ask_at(&bearer, discovery(name), late).await.unwrap().repository, place);
    }
    assert!(!door.forge.asked().iter().any(|asked| asked.starts_with("write-9")));
}

#[tokio::test]
async fn a_rename_that_the_forge_tells_of_is_followed_at_once() {
    let door = Door::new();
    let bearer = door.bound().await;
    door.forge.put(7, "acme/api2", "main");
    let redirected =
        |name: &str| Intent::PushDiscovery(v1::PushDiscovery { repository: name.into(), redirected: true });
    for intent in [redirected("acme/api2"), discovery("acme/api2"), push("acme/api", &["refs/heads/x"])] {
        assert_eq!(door.ask(&bearer, intent).await.unwrap().repository, "acme/api2");
    }
    assert_eq!(reason(door.ask(&bearer, redirected("acme/web")).await), Reason::BoundElsewhere);
}

#[tokio::test]
async fn an_allowed_push_is_in_the_ledger_before_its_permit_leaves() {
    let door = Door::new();
    let bearer = door.bound().await;
    let permit = door.ask(&bearer, push("acme/api", &["refs/heads/fix-x"])).await.unwrap();
    assert_eq!(permit.lease.unwrap().seconds, 2);
    let pushes = door.pushes().await;
    let [row] = pushes.as_slice() else { panic!("{pushes:?}") };
    assert_eq!((row.outcome, row.request_id.as_str()), (Outcome::Open, "q-1"));
    assert_eq!(row.refs[0].command.ref_name, b"refs/heads/fix-x");
}

#[tokio::test]
async fn a_refused_push_is_in_the_ledger_with_every_verdict_and_costs_no_mint() {
    let door = Door::new();
    let bearer = door.bound().await;
    let denial = door.ask(&bearer, push("acme/api", &["refs/heads/x", "refs/heads/main"])).await.unwrap_err();
    assert_eq!(denial.reason, Reason::DefaultBranch);
    assert_eq!(denial.message, "this run may push branches of acme/api other than main");
    let rows = door.pushes().await;
    let words: Vec<_> = rows[0].refs.iter().map(|pushed| pushed.refusal.as_deref().unwrap()).collect();
    assert_eq!(words, ["another ref of this push was refused", "default branch"]);
    assert!(door.forge.asked().is_empty());
}

#[tokio::test]
async fn a_branch_that_became_default_is_refused_and_stays_so() {
    let door = Door::new();
    let bearer = door.bound().await;
    for (default, refused) in [("trunk", "trunk"), ("main", "trunk"), ("main", "main")] {
        door.forge.put(7, "acme/api", default);
        door.forge.tokens_expire();
        let name = format!("refs/heads/{refused}");
        assert_eq!(reason(door.ask(&bearer, push("acme/api", &[&name])).await), Reason::DefaultBranch);
        door.ask(&bearer, probe("acme/api")).await.unwrap();
    }
    let binding = door.stored().await.binding.unwrap();
    assert_eq!((binding.default_branch.as_str(), binding.default_branches.len()), ("main", 2));
}

#[tokio::test]
async fn a_push_is_refused_when_the_facts_cannot_be_read() {
    let door = Door::new();
    let bearer = door.bound().await;
    door.forge.tokens_expire();
    door.forge.unreadable(true);
    let denied = door.ask(&bearer, push("acme/api", &["refs/heads/x"])).await;
    assert_eq!(reason(denied), Reason::RepositoryUnreadable);
    assert!(door.pushes().await.is_empty());
    door.forge.unreadable(false);
    door.forge.fail(Some(MintError::Suspended));
    let denied = door.ask(&bearer, push("acme/api", &["refs/heads/x"])).await;
    assert_eq!(reason(denied), Reason::InstallationSuspended);
}

#[tokio::test]
async fn a_fifth_push_at_once_waits_and_a_report_makes_room() {
    let door = Door::new();
    let bearer = door.bound().await;
    let mut tickets = Vec::new();
    for number in 0..4 {
        let name = format!("refs/heads/x{number}");
        tickets.push(door.ask(&bearer, push("acme/api", &[&name])).await.unwrap().authorization);
    }
    let denial = door.ask(&bearer, push("acme/api", &["refs/heads/y"])).await.unwrap_err();
    assert_eq!(denial.reason, Reason::PushLimit);
    assert!(denial.retry_after.is_some());
    door.gate.report(report(&tickets[0], Outcome::Done), start()).await.unwrap();
    door.ask(&bearer, push("acme/api", &["refs/heads/y"])).await.unwrap();
}

fn report(ticket: &str, outcome: Outcome) -> Report {
    Report {
        ticket: ticket.into(),
        holder: Some(holder()),
        outcome,
        upstream_refusals: Vec::new(),
        request_bytes: 9,
    }
}

#[tokio::test]
async fn a_report_closes_its_push_once_and_no_other_ticket_does() {
    let door = Door::new();
    let bearer = door.bound().await;
    let fetched = door.ask(&bearer, fetch("acme/api")).await.unwrap();
    let pushed = door.ask(&bearer, push("acme/api", &["refs/heads/x"])).await.unwrap();
    for wrong in ["", "AAAA", fetched.authorization.as_str()] {
        let denied = door.gate.report(report(wrong, Outcome::Done), start()).await;
        assert_eq!(reason(denied), Reason::AuthorizationUnknown);
    }
    let words = Report {
        upstream_refusals: vec![(b"refs/heads/x".to_vec(), "declined\n".repeat(100))],
        ..report(&pushed.authorization, Outcome::RefusedUpstream)
    };
    door.gate.report(words, start()).await.unwrap();
    door.gate.report(report(&pushed.authorization, Outcome::Done), start()).await.unwrap();
    let row = &door.pushes().await[0];
    assert_eq!((row.outcome, row.request_bytes), (Outcome::RefusedUpstream, 9));
    let kept = row.refs[0].refusal.as_deref().unwrap();
    assert!(kept.starts_with("declined declined") && kept.len() == 300);
    assert_eq!(
        reason(door.gate.renew(shown(&pushed.authorization), false, start()).await),
        Reason::AuthorizationUnknown
    );
}

#[tokio::test]
async fn a_lease_is_renewed_while_the_run_lives_and_no_longer() {
    let door = Door::new();
    let bearer = door.bound().await;
    let ticket = door.ask(&bearer, push("acme/api", &["refs/heads/x"])).await.unwrap().authorization;
    assert_eq!(door.gate.renew(shown(&ticket), false, start()).await.unwrap(), Duration::from_secs(2));
    let late = start() + Duration::from_mins(50);
    assert_eq!(reason(door.gate.renew(shown(&ticket), false, late).await), Reason::RunExpired);
    let other = door.ask(&bearer, fetch("acme/api")).await.unwrap().authorization;
    assert_eq!(reason(door.gate.renew(shown(&other), false, start()).await), Reason::AuthorizationUnknown);
    door.revoke().await;
    assert_eq!(reason(door.gate.renew(shown(&ticket), false, start()).await), Reason::RunRevoked);
    // Its last byte is up: nothing is left to stop, and its outcome is of use.
    door.gate.renew(shown(&ticket), true, start()).await.unwrap();
    door.gate.report(report(&ticket, Outcome::Done), start()).await.unwrap();
    assert_eq!(door.pushes().await[0].outcome, Outcome::Done);
}

#[tokio::test]
async fn a_rotated_bearer_kills_its_tickets_but_the_ledger_row_can_be_closed() {
    let door = Door::new();
    let bearer = door.bound().await;
    let found = door.ask(&bearer, discovery("acme/api")).await.unwrap().authorization;
    let pushed = door.ask(&bearer, push("acme/api", &["refs/heads/x"])).await.unwrap().authorization;
    let next = door.rotate().await;
    assert_eq!(reason(door.ask(&bearer, fetch("acme/api")).await), Reason::BearerWrong);
    assert_eq!(reason(door.gate.bind(shown(&found), start()).await), Reason::AuthorizationUnknown);
    assert_eq!(reason(door.gate.renew(shown(&pushed), false, start()).await), Reason::BearerWrong);
    door.gate.renew(shown(&pushed), true, start()).await.unwrap();
    door.gate.report(report(&pushed, Outcome::Done), start()).await.unwrap();
    assert_eq!(door.pushes().await[0].outcome, Outcome::Done);
    door.ask(&next, push("acme/api", &["refs/heads/x"])).await.unwrap();
}

#[tokio::test]
async fn bindings_pushes_and_tickets_hold_over_a_restart() {
    let door = Door::new();
    let bearer = door.bound().await;
    let ticket = door.ask(&bearer, push("acme/api", &["refs/heads/x"])).await.unwrap().authorization;
    let door = door.restart();
    door.gate.renew(shown(&ticket), false, start()).await.unwrap();
    assert_eq!(reason(door.ask(&bearer, discovery("acme/web")).await), Reason::BoundElsewhere);
    door.gate.report(report(&ticket, Outcome::Interrupted), start()).await.unwrap();
    assert_eq!(door.pushes().await[0].outcome, Outcome::Interrupted);
}

#[tokio::test]
async fn an_unbound_run_has_ten_discoveries_a_minute_and_a_bound_one_any() {
    let door = Door::new();
    let bearer = door.writer().await;
    for _ in 0..10 {
        door.ask(&bearer, discovery("acme/api")).await.unwrap();
    }
    let denial = door.ask(&bearer, discovery("acme/api")).await.unwrap_err();
    assert_eq!(denial.reason, Reason::DiscoveryLimit);
    assert!(denial.retry_after.is_some());

    let door = Door::new();
    let bearer = door.bound().await;
    for _ in 0..20 {
        door.ask(&bearer, discovery("acme/api")).await.unwrap();
    }
}

#[tokio::test]
async fn a_refused_token_is_replaced_once() {
    let door = Door::new();
    let bearer = door.bound().await;
    for intent in [fetch("acme/api"), discovery("acme/api")] {
        door.forge.a_minute_passes();
        let permit = door.ask(&bearer, intent).await.unwrap();
        let first = permit.token.unwrap();
        let second = door.gate.replace_token(shown(&permit.authorization), &first.id, start()).await.unwrap();
        assert_ne!((&second.id, &second.value), (&first.id, &first.value));
        // Another request that was refused the first token gets the second, too.
        let same = door.gate.replace_token(shown(&permit.authorization), &first.id, start()).await.unwrap();
        assert_eq!(same.id, second.id);
        let denied = door.gate.replace_token(shown(&permit.authorization), &second.id, start()).await;
        assert_eq!(denied.unwrap_err().reason, Reason::TokenRejected);
    }
    let pushed = door.ask(&bearer, push("acme/api", &["refs/heads/x"])).await.unwrap();
    let denied = door.gate.replace_token(shown(&pushed.authorization), "x", start()).await;
    assert_eq!(denied.unwrap_err().reason, Reason::TokenRejected);
}

#[tokio::test]
async fn a_run_without_workflows_gets_no_token_with_them() {
    let door = Door::new();
    let plain = v1::RunOptions { no_workflows: true, ..Default::default() };
    let bearer = door.run(v1::Identity::Write, plain).await;
    let permit = door.ask(&bearer, discovery("acme/api")).await.unwrap();
    door.gate.bind(shown(&permit.authorization), start()).await.unwrap();
    door.ask(&bearer, push("acme/api", &["refs/heads/x"])).await.unwrap();
    let asked = door.forge.asked();
    assert!(
        asked.iter().filter(|asked| asked.starts_with("write")).all(|asked| asked == "write-7-plain"),
        "{asked:?}"
    );
}

#[tokio::test]
async fn a_run_that_ends_between_look_up_and_ledger_has_no_push() {
    let door = Door::new();
    let bearer = door.bound().await;
    let id = RunId::parse("r").unwrap();
    // Ended in the registry, not in the store: what a renewal between the two commits would meet.
    door.leases.end(&id, End::Revoked);
    assert_eq!(reason(door.ask(&bearer, push("acme/api", &["refs/heads/x"])).await), Reason::RunRevoked);
    assert!(door.pushes().await.is_empty());
}
