//! What every store promises, each promise a test that runs for each store.

mod adoption;
mod controls;
mod mirrors;

use std::path::Path;
use std::time::{Duration, SystemTime};

use gitdoor_proto::{BearerHash, Pattern, RepositoryName, RunId};

use self::adoption::{
    a_live_run_is_adopted_with_a_new_budget_and_no_other, an_adopted_run_is_not_registered_again_and_goes_on,
    many_changes_of_a_run_at_once_lose_none,
};
use self::controls::{
    a_push_is_lost_by_the_control_that_answers_for_it_alone,
    a_push_is_without_report_until_its_data_plane_says_what_became_of_it,
    a_push_without_report_is_taken_over_and_no_other, a_run_has_so_many_pushes_open_and_no_more,
    pushes_of_no_control_are_claimed_and_stay_with_their_claimant, runs_are_found_by_when_they_were_revoked,
    runs_that_live_are_counted_by_what_they_may_be,
};
use self::mirrors::{
    mirror_tokens_go_with_the_runs_of_their_time, mirror_tokens_read_as_they_were_recorded_newest_first,
};
use super::measured::Measured;
use super::postgres::server::Server;
use super::postgres::{self, Postgres};
use super::sqlite::Sqlite;
use super::{Adopted, Closed, Limit, Opened, Registered, Rotated, Store};
use crate::clock;
use crate::fleet::ControlId;
use crate::push::{Closing, Command, Outcome, Push, PushId, PushedRef, TicketHash};
use crate::run::tests::{binding, run};
use crate::run::{Binding, Identity, Run};

/// Opens a store at a path that may hold one already.
pub(super) trait Open: Store + Sized {
    async fn open_at(path: &Path) -> Self;
}

impl Open for Sqlite {
    async fn open_at(path: &Path) -> Self {
        Self::open(path).unwrap()
    }
}

/// A schema of the server that listens in a folder.
impl Open for Postgres {
    async fn open_at(path: &Path) -> Self {
        let (folder, schema) = (path.parent().unwrap().display(), path.file_name().unwrap().display());
        let url = format!("postgres://gitdoor@/promises?host={folder}&options=-csearch_path%3D{schema}");
        Self::open_patiently(&postgres::Config::new(&url)).await.unwrap()
    }
}

impl<S: Open> Open for Measured<S> {
    async fn open_at(path: &Path) -> Self {
        Self::new(S::open_at(path).await)
    }
}

/// Makes each promise a test for each store in a file; and one test of them all for each store in a server, which
/// takes longer to start than they do.
macro_rules! promises {
    ($($promise:ident,)*) => {
        mod sqlite { $(#[tokio::test] async fn $promise() { super::with_folder::<super::Sqlite, _, _>(super::$promise).await; })* }
        mod measured_sqlite { $(#[tokio::test] async fn $promise() { super::with_folder::<super::Measured<super::Sqlite>, _, _>(super::$promise).await; })* }

        async fn every_promise<S: Open>() {
            let server = Server::start();
            server.create("promises");
            let schemas = [$(concat!("CREATE SCHEMA ", stringify!($promise))),*].join(";");
            server.sql("promises", &schemas);
            $(
                // The last one that is named is the one that broke.
                println!("{}", stringify!($promise));
                let path = server.folder().join(stringify!($promise));
                $promise(S::open_at(&path).await, path).await;
            )*
        }
    };
}

#[tokio::test]
async fn every_promise_holds_in_postgres() {
    every_promise::<Postgres>().await;
}

#[tokio::test]
async fn every_promise_holds_in_measured_postgres() {
    every_promise::<Measured<Postgres>>().await;
}

promises! {
    a_run_reads_as_it_was_registered,
    an_unused_run_registered_again_on_the_same_terms_gets_a_new_secret,
    a_run_that_was_used_or_ended_or_asked_for_otherwise_is_not_registered_again,
    many_retries_at_once_leave_one_secret_and_count_each,
    a_use_is_marked_once_and_only_for_the_present_bearer,
    a_live_run_is_rotated_and_no_other,
    a_live_run_is_adopted_with_a_new_budget_and_no_other,
    an_adopted_run_is_not_registered_again_and_goes_on,
    many_changes_of_a_run_at_once_lose_none,
    a_revocation_stands_from_its_first_time,
    one_binding_stands_for_life,
    a_run_that_ended_or_was_rotated_is_not_bound,
    a_branch_that_was_default_once_stays_in_the_binding,
    a_push_is_opened_for_the_present_bearer_of_a_live_run_alone,
    a_revocation_that_was_answered_is_followed_by_no_push,
    the_first_reported_end_of_a_push_stands,
    an_unknown_end_gives_way_to_a_reported_one,
    a_run_has_so_many_pushes_open_and_no_more,
    a_push_is_without_report_until_its_data_plane_says_what_became_of_it,
    a_push_without_report_is_taken_over_and_no_other,
    a_push_is_lost_by_the_control_that_answers_for_it_alone,
    pushes_of_no_control_are_claimed_and_stay_with_their_claimant,
    runs_are_found_by_when_they_were_revoked,
    runs_that_live_are_counted_by_what_they_may_be,
    pushes_are_listed_newest_first_with_their_refs_in_order,
    a_refused_push_is_a_row_with_every_verdict,
    runs_are_listed_by_id_a_page_at_a_time,
    what_is_older_than_kept_goes_in_small_batches,
    what_was_answered_is_there_after_a_restart,
    many_writers_at_once_bind_one_repository,
    mirror_tokens_read_as_they_were_recorded_newest_first,
    mirror_tokens_go_with_the_runs_of_their_time,
}

async fn with_folder<S: Open, F, Fut>(promise: F)
where
    F: FnOnce(S, std::path::PathBuf) -> Fut,
    Fut: Future<Output = ()>,
{
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    promise(S::open_at(&path).await, path).await;
}

fn id(text: &str) -> RunId {
    RunId::parse(text).unwrap()
}

fn start() -> SystemTime {
    clock::from_micros(1_800_000_000_000_000)
}

fn later(seconds: u64) -> SystemTime {
    start() + Duration::from_secs(seconds)
}

fn other_hash() -> BearerHash {
    BearerHash::from_bytes([9; 32])
}

async fn created<S: Store>(store: &S, name: &str) -> Run {
    let run = run(name, start());
    assert_eq!(store.register(&run).await.unwrap(), Registered::Created(run.clone()));
    run
}

fn push(run: &str, number: u8) -> Push {
    let pushed = |name: &[u8]| PushedRef {
        command: Command { old_oid: "0".repeat(40), new_oid: "a".repeat(40), ref_name: name.to_vec() },
        refusal: None,
    };
    Push {
        id: PushId::from_bytes([number; 16]),
        run: id(run),
        request_id: format!("request-{number}"),
        repository: RepositoryName::parse("acme/api").unwrap(),
        refs: vec![pushed(b"refs/heads/z"), pushed(b"refs/heads/\xc0")],
        ticket: Some(TicketHash::from_bytes([8; 32])),
        control: Some(control(1)),
        outcome: Outcome::Open,
        request_bytes: 0,
        opened_at: later(number.into()),
        closed_at: None,
    }
}

/// Any number of pushes.
const ANY: Limit<'_> = Limit { most: u32::MAX, lapsed: &[] };

fn control(number: u8) -> ControlId {
    ControlId::from_bytes([number; 16])
}

fn closing(outcome: Outcome) -> Closing {
    Closing { outcome, upstream_refusals: Vec::new(), request_bytes: 5, at: later(60) }
}

async fn a_run_reads_as_it_was_registered<S: Store>(store: S, _: std::path::PathBuf) {
    let mut run = run("full", start());
    run.terms.repository = Some(RepositoryName::parse("Acme/API").unwrap());
    run.terms.budget = Duration::from_micros(1_500_001);
    run.terms.options.branches = vec![Pattern::parse("agent/*").unwrap(), Pattern::parse("ä").unwrap()];
    run.terms.options.max_refs = std::num::NonZeroU32::new(u32::MAX);
    run.terms.options.workflows = false;
    run.terms.options.read_repositories = vec![RepositoryName::parse("acme/web").unwrap()];
    run.terms.options.api_rate = 1.0 / 11.0;
    run.binding = Some(Binding { repository_id: u64::MAX, ..binding(start()) });
    store.register(&run).await.unwrap();
    assert_eq!(store.run(&run.id).await.unwrap(), Some(run.clone()));
    let spelled = store.run(&run.id).await.unwrap().unwrap().terms.repository.unwrap();
    assert_eq!(spelled.to_string(), "Acme/API");
    assert_eq!(store.run(&id("other")).await.unwrap(), None);
}

async fn an_unused_run_registered_again_on_the_same_terms_gets_a_new_secret<S: Store>(
    store: S,
    _: std::path::PathBuf,
) {
    let first = created(&store, "r").await;
    let mut again = run("r", later(10));
    again.bearer.hash = other_hash();
    let Registered::Replaced(stored) = store.register(&again).await.unwrap() else { panic!() };
    assert!(stored.bearer.hash.matches(&other_hash()));
    assert_eq!(stored.bearer.generation, 2);
    assert_eq!((stored.registered_at, stored.expires_at), (first.registered_at, first.expires_at));
    assert_eq!(store.run(&id("r")).await.unwrap(), Some(stored));
}

async fn a_run_that_was_used_or_ended_or_asked_for_otherwise_is_not_registered_again<S: Store>(
    store: S,
    _: std::path::PathBuf,
) {
    for name in ["used", "revoked", "expired", "otherwise"] {
        created(&store, name).await;
    }
    assert!(store.mark_used(&id("used"), 1, later(1)).await.unwrap());
    store.revoke(&id("revoked"), later(1)).await.unwrap();
    let mut otherwise = run("otherwise", later(2));
    otherwise.terms.identity = Identity::Read;
    let again = [run("used", later(2)), run("revoked", later(2)), run("expired", later(86_400)), otherwise];
    for again in again {
        let stored = store.run(&again.id).await.unwrap().unwrap();
        assert_eq!(store.register(&again).await.unwrap(), Registered::Exists(stored), "{}", again.id);
    }
}

async fn many_retries_at_once_leave_one_secret_and_count_each<S: Store>(store: S, _: std::path::PathBuf) {
    let store = &store;
    let registrations = (1..=16_u8).map(|number| async move {
        let mut run = run("r", later(number.into()));
        // The same repository, however it is spelled.
        let spelled = if number % 2 == 0 { "acme/api" } else { "Acme/API" };
        run.terms.repository = Some(RepositoryName::parse(spelled).unwrap());
        run.bearer.hash = BearerHash::from_bytes([number; 32]);
        store.register(&run).await.unwrap()
    });
    let mut answers = futures_util::future::join_all(registrations).await;
    answers.sort_by_key(|answer| match answer {
        Registered::Created(run) | Registered::Replaced(run) | Registered::Exists(run) => run.bearer.generation,
    });
    assert!(matches!(answers[0], Registered::Created(_)));
    assert!(answers[1..].iter().all(|answer| matches!(answer, Registered::Replaced(_))));
    let Some(Registered::Replaced(last)) = answers.pop() else { panic!() };
    assert_eq!(last.bearer.generation, 16);
    assert_eq!(store.run(&id("r")).await.unwrap(), Some(last));
}

async fn a_use_is_marked_once_and_only_for_the_present_bearer<S: Store>(store: S, _: std::path::PathBuf) {
    created(&store, "r").await;
    assert!(!store.mark_used(&id("r"), 2, later(1)).await.unwrap());
    assert!(!store.mark_used(&id("other"), 1, later(1)).await.unwrap());
    assert_eq!(store.run(&id("r")).await.unwrap().unwrap().first_used_at, None);
    assert!(store.mark_used(&id("r"), 1, later(2)).await.unwrap());
    assert!(store.mark_used(&id("r"), 1, later(3)).await.unwrap());
    assert_eq!(store.run(&id("r")).await.unwrap().unwrap().first_used_at, Some(later(2)));
}

async fn a_live_run_is_rotated_and_no_other<S: Store>(store: S, _: std::path::PathBuf) {
    created(&store, "r").await;
    created(&store, "ended").await;
    assert_eq!(store.rotate(&id("other"), other_hash(), later(1)).await.unwrap(), Rotated::Unknown);
    let Rotated::Rotated(run) = store.rotate(&id("r"), other_hash(), later(1)).await.unwrap() else { panic!() };
    assert!(run.bearer.hash.matches(&other_hash()) && run.bearer.generation == 2);
    assert_eq!(store.run(&id("r")).await.unwrap(), Some(run));
    store.revoke(&id("ended"), later(1)).await.unwrap();
    let late = store.rotate(&id("ended"), other_hash(), later(2)).await.unwrap();
    assert!(matches!(late, Rotated::NotLive(run) if run.bearer.generation == 1));
    let expired = store.rotate(&id("r"), other_hash(), later(86_400)).await.unwrap();
    assert!(matches!(expired, Rotated::NotLive(_)));
}

async fn a_revocation_stands_from_its_first_time<S: Store>(store: S, _: std::path::PathBuf) {
    created(&store, "r").await;
    assert_eq!(store.revoke(&id("other"), later(1)).await.unwrap(), None);
    for seconds in [1, 2] {
        let run = store.revoke(&id("r"), later(seconds)).await.unwrap().unwrap();
        assert_eq!(run.revoked_at, Some(later(1)));
        assert_eq!(store.run(&id("r")).await.unwrap(), Some(run));
    }
}

async fn one_binding_stands_for_life<S: Store>(store: S, _: std::path::PathBuf) {
    created(&store, "r").await;
    let mine = binding(later(1));
    let theirs =
        Binding { repository_id: 8, repository: RepositoryName::parse("acme/web").unwrap(), ..mine.clone() };
    assert_eq!(store.bind(&id("other"), 1, &mine, later(1)).await.unwrap(), None);
    let run = store.bind(&id("r"), 1, &mine, later(1)).await.unwrap().unwrap();
    assert_eq!(run.binding, Some(mine.clone()));
    let run = store.bind(&id("r"), 1, &theirs, later(2)).await.unwrap().unwrap();
    assert_eq!(run.binding, Some(mine.clone()));
    assert_eq!(store.run(&id("r")).await.unwrap().unwrap().binding, Some(mine));
}

async fn a_run_that_ended_or_was_rotated_is_not_bound<S: Store>(store: S, _: std::path::PathBuf) {
    for name in ["revoked", "rotated", "expired"] {
        created(&store, name).await;
    }
    store.revoke(&id("revoked"), later(1)).await.unwrap();
    store.rotate(&id("rotated"), other_hash(), later(1)).await.unwrap();
    for (name, at) in [("revoked", later(2)), ("rotated", later(2)), ("expired", later(86_400))] {
        let run = store.bind(&id(name), 1, &binding(at), at).await.unwrap().unwrap();
        assert_eq!(run.binding, None, "{name}");
    }
}

async fn a_branch_that_was_default_once_stays_in_the_binding<S: Store>(store: S, _: std::path::PathBuf) {
    created(&store, "r").await;
    let unbound = store.see_default_branch(&id("r"), "trunk").await.unwrap().unwrap();
    assert_eq!(unbound.binding, None);
    store.bind(&id("r"), 1, &binding(later(1)), later(1)).await.unwrap();
    for (branch, all) in [("trunk", ["main", "trunk"]), ("main", ["main", "trunk"]), ("main", ["main", "trunk"])] {
        let run = store.see_default_branch(&id("r"), branch).await.unwrap().unwrap();
        let stored = store.run(&id("r")).await.unwrap().unwrap();
        assert_eq!(run, stored);
        let binding = stored.binding.unwrap();
        assert_eq!(
            (binding.default_branch.as_str(), binding.default_branches),
            (branch, all.map(String::from).to_vec())
        );
    }
    assert_eq!(store.see_default_branch(&id("other"), "trunk").await.unwrap(), None);
}

async fn a_push_is_opened_for_the_present_bearer_of_a_live_run_alone<S: Store>(store: S, _: std::path::PathBuf) {
    created(&store, "r").await;
    assert_eq!(store.open_push(&push("r", 1), 1, ANY, later(1)).await.unwrap(), Opened::Open);
    assert_eq!(store.push(PushId::from_bytes([1; 16])).await.unwrap(), Some(push("r", 1)));
    assert_eq!(store.open_push(&push("other", 2), 1, ANY, later(1)).await.unwrap(), Opened::Stale(None));
    let run = store.run(&id("r")).await.unwrap().unwrap();
    let stale = Opened::Stale(Some(Box::new(run)));
    assert_eq!(store.open_push(&push("r", 2), 2, ANY, later(1)).await.unwrap(), stale);
    assert_eq!(store.open_push(&push("r", 2), 1, ANY, later(86_400)).await.unwrap(), stale);
    let run = store.revoke(&id("r"), later(2)).await.unwrap().unwrap();
    let stale = Opened::Stale(Some(Box::new(run)));
    assert_eq!(store.open_push(&push("r", 2), 1, ANY, later(2)).await.unwrap(), stale);
    assert_eq!(store.push(PushId::from_bytes([2; 16])).await.unwrap(), None);
    assert_eq!(store.unreported(&id("r")).await.unwrap(), [PushId::from_bytes([1; 16])]);
    assert_eq!(store.unreported(&id("other")).await.unwrap(), []);
}

async fn a_revocation_that_was_answered_is_followed_by_no_push<S: Store>(store: S, _: std::path::PathBuf) {
    let store = &store;
    for number in 0..16_u8 {
        let name = format!("r{number}");
        created(store, &name).await;
        let pushes = (0..8).map(|n| push(&name, number * 8 + n)).collect::<Vec<_>>();
        let opening = pushes.iter().map(|push| async move {
            (push.id, store.open_push(push, 1, ANY, later(1)).await.unwrap() == Opened::Open)
        });
        let revoking = async {
            store.revoke(&id(&name), later(1)).await.unwrap();
            store.unreported(&id(&name)).await.unwrap()
        };
        let (opened, known) = tokio::join!(futures_util::future::join_all(opening), revoking);
        for (push, open) in opened {
            assert_eq!(open, known.contains(&push), "{push}");
        }
    }
}

async fn the_first_reported_end_of_a_push_stands<S: Store>(store: S, _: std::path::PathBuf) {
    created(&store, "r").await;
    let opened = push("r", 1);
    store.open_push(&opened, 1, ANY, later(1)).await.unwrap();
    let refused = Closing {
        upstream_refusals: [
            (&b"refs/heads/\xc0"[..], "first words"),
            (b"x", "y"),
            (b"refs/heads/\xc0", "hook declined"),
        ]
        .map(|(name, words)| (name.to_vec(), words.to_owned()))
        .to_vec(),
        ..closing(Outcome::RefusedUpstream)
    };
    assert_eq!(store.close_push(opened.id, &refused).await.unwrap(), Closed::Now);
    for outcome in [Outcome::RefusedUpstream, Outcome::Done, Outcome::Unknown] {
        assert_eq!(store.close_push(opened.id, &closing(outcome)).await.unwrap(), Closed::Before);
    }
    let stored = store.push(opened.id).await.unwrap().unwrap();
    assert_eq!(
        (stored.outcome, stored.request_bytes, stored.closed_at),
        (Outcome::RefusedUpstream, 5, Some(later(60)))
    );
    let words: Vec<_> = stored.refs.iter().map(|pushed| pushed.refusal.as_deref()).collect();
    assert_eq!(words, [None, Some("hook declined")]);
    assert_eq!(store.close_push(PushId::from_bytes([9; 16]), &refused).await.unwrap(), Closed::Unknown);
}

async fn an_unknown_end_gives_way_to_a_reported_one<S: Store>(store: S, _: std::path::PathBuf) {
    created(&store, "r").await;
    let opened = push("r", 1);
    store.open_push(&opened, 1, ANY, later(1)).await.unwrap();
    assert_eq!(store.close_push(opened.id, &Closing::unknown(later(30))).await.unwrap(), Closed::Now);
    assert_eq!(store.close_push(opened.id, &Closing::unknown(later(31))).await.unwrap(), Closed::Before);
    assert_eq!(store.push(opened.id).await.unwrap().unwrap().closed_at, Some(later(30)));
    assert_eq!(store.close_push(opened.id, &closing(Outcome::Done)).await.unwrap(), Closed::Now);
    assert_eq!(store.close_push(opened.id, &closing(Outcome::Interrupted)).await.unwrap(), Closed::Before);
    assert_eq!(store.push(opened.id).await.unwrap().unwrap().outcome, Outcome::Done);
}

async fn pushes_are_listed_newest_first_with_their_refs_in_order<S: Store>(store: S, _: std::path::PathBuf) {
    created(&store, "r").await;
    created(&store, "s").await;
    for (run, number) in [("r", 1), ("r", 3), ("s", 4), ("r", 2)] {
        store.open_push(&push(run, number), 1, ANY, later(1)).await.unwrap();
    }
    assert_eq!(store.pushes(&id("r"), None, 9).await.unwrap(), [push("r", 3), push("r", 2), push("r", 1)]);
    assert_eq!(store.pushes(&id("r"), None, 1).await.unwrap(), [push("r", 3)]);
    // Of one time, in the order of their ids.
    store.open_push(&Push { opened_at: later(2), ..push("r", 5) }, 1, ANY, later(1)).await.unwrap();
    let (mut listed, mut after) = (Vec::new(), None);
    while let [next] = store.pushes(&id("r"), after, 1).await.unwrap().as_slice() {
        listed.push(next.id);
        after = listed.last().copied();
    }
    assert_eq!(listed, [3, 2, 5, 1].map(|number| PushId::from_bytes([number; 16])));
}

async fn a_refused_push_is_a_row_with_every_verdict<S: Store>(store: S, _: std::path::PathBuf) {
    created(&store, "r").await;
    let mut refused =
        Push { outcome: Outcome::Refused, ticket: None, control: None, closed_at: Some(later(1)), ..push("r", 1) };
    refused.refs[0].refusal = Some("default branch".into());
    store.record_refused(&refused).await.unwrap();
    assert_eq!(store.pushes(&id("r"), None, 9).await.unwrap(), std::slice::from_ref(&refused));
    assert_eq!(store.close_push(refused.id, &closing(Outcome::Done)).await.unwrap(), Closed::Before);
}

async fn runs_are_listed_by_id_a_page_at_a_time<S: Store>(store: S, _: std::path::PathBuf) {
    for name in ["b", "a", "C", "d"] {
        created(&store, name).await;
    }
    let names = |runs: Vec<Run>| runs.into_iter().map(|run| run.id.to_string()).collect::<Vec<_>>();
    assert_eq!(names(store.runs(None, 2).await.unwrap()), ["C", "a"]);
    assert_eq!(names(store.runs(Some(&id("a")), 2).await.unwrap()), ["b", "d"]);
    assert_eq!(names(store.runs(Some(&id("d")), 2).await.unwrap()), Vec::<String>::new());
}

async fn what_is_older_than_kept_goes_in_small_batches<S: Store>(store: S, _: std::path::PathBuf) {
    created(&store, "old").await;
    for number in 1..=3 {
        store.open_push(&push("old", number), 1, ANY, later(1)).await.unwrap();
    }
    let young = run("young", later(86_400));
    store.register(&young).await.unwrap();
    store.open_push(&Push { opened_at: later(86_400), ..push("young", 9) }, 1, ANY, later(86_400)).await.unwrap();
    let mut batches = Vec::new();
    loop {
        let gone = store.prune(later(86_400), 2).await.unwrap();
        batches.push(gone);
        if gone < 2 {
            break;
        }
    }
    // The run, its three pushes, and two refs of each: however many refs a push has, none makes a batch larger.
    assert_eq!(batches, [2, 2, 2, 2, 2, 0]);
    assert_eq!(store.run(&id("old")).await.unwrap(), None);
    assert_eq!(store.pushes(&id("old"), None, 9).await.unwrap(), []);
    assert_eq!(store.push(PushId::from_bytes([1; 16])).await.unwrap(), None);
    assert_eq!(store.pushes(&id("young"), None, 9).await.unwrap().len(), 1);
}

async fn what_was_answered_is_there_after_a_restart<S: Open>(store: S, path: std::path::PathBuf) {
    created(&store, "r").await;
    store.mark_used(&id("r"), 1, later(1)).await.unwrap();
    store.bind(&id("r"), 1, &binding(later(1)), later(1)).await.unwrap();
    store.open_push(&push("r", 1), 1, ANY, later(1)).await.unwrap();
    store.revoke(&id("r"), later(2)).await.unwrap();
    let (run, pushes) = (store.run(&id("r")).await.unwrap(), store.pushes(&id("r"), None, 9).await.unwrap());
    drop(store);
    let store = S::open_at(&path).await;
    assert_eq!(store.run(&id("r")).await.unwrap(), run);
    assert_eq!(store.pushes(&id("r"), None, 9).await.unwrap(), pushes);
    assert_eq!(pushes.len(), 1);
}

async fn many_writers_at_once_bind_one_repository<S: Store>(store: S, _: std::path::PathBuf) {
    created(&store, "r").await;
    let offers = (0_u64..64).map(|number| Binding { repository_id: number, ..binding(later(1)) });
    let (store, run) = (&store, &id("r"));
    let binds = offers.map(|offer| async move {
        store.bind(run, 1, &offer, later(1)).await.unwrap().unwrap().binding.unwrap().repository_id
    });
    let standing = futures_util::future::join_all(binds).await;
    assert!(standing.iter().all(|id| *id == standing[0]), "{standing:?}");
}
