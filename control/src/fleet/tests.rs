//! What holds with several controls on one PostgreSQL.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use gitdoor_proto::v1::runs_server::Runs as _;
use gitdoor_proto::{Bearer, Denial, Reason, RunId, v1};
use tokio::task::yield_now;
use tokio::time::{Instant, advance, sleep, timeout};

use super::*;
use crate::frozen::Frozen;
use crate::gate::question::Question;
use crate::gate::{Gate, Report};
use crate::lease::{Ended, LEASE, LOST_AFTER, PUSHES};
use crate::push::{Outcome, Push};
use crate::run::tests::binding;
use crate::run::{Registration, Run};
use crate::service::runs::RunsService;
use crate::store::postgres::server::Server;
use crate::store::postgres::{self, Postgres};
use crate::sweep;
use crate::ticket::Shown;
use crate::village::Village;

/// What takes so long does not come.
const HANGS: Duration = Duration::from_mins(1);

/// A control, with connections and a registry of its own.
#[derive(Clone)]
struct Control {
    store: Arc<Postgres>,
    leases: Arc<Leases>,
    gate: Arc<Gate<Postgres, Village>>,
    runs: Arc<RunsService<Postgres, Village>>,
}

impl Control {
    async fn start(server: &Server) -> Self {
        let config = postgres::Config::new(&server.url("postgres"));
        let store = Arc::new(Postgres::open_patiently(&config).await.unwrap());
        let (forge, leases) = (Arc::new(Village::new()), Arc::new(Leases::new(ControlId::generate().unwrap())));
        store.beat(leases.control()).await.unwrap();
        let gate = Arc::new(Gate::new(store.clone(), forge.clone(), leases.clone()));
        let runs = Arc::new(RunsService::new(store.clone(), forge, leases.clone(), Arc::default()));
        Self { store, leases, gate, runs }
    }

    /// A run that is bound to `acme/api`.
    async fn run(&self, id: &str) -> Bearer {
        let identity = v1::Identity::Write.into();
        let message = v1::RegisterRunRequest { run_id: id.into(), identity, ..Default::default() };
        let bearer = Bearer::generate(RunId::parse(id).unwrap()).unwrap();
        let (registration, now) = (Registration::try_from(message).unwrap(), clock::now());
        let run = Run::new(registration, bearer.hash(), Some(binding(now)), now);
        self.store.register(&run).await.unwrap();
        bearer
    }

    /// The authorization of a push.
    async fn push(&self, bearer: &Bearer) -> Result<String, Denial> {
        self.push_as(bearer, Vec::new(), "refs/heads/x").await
    }

    /// The authorization of a push that its data plane has named.
    async fn push_as(&self, bearer: &Bearer, key: Vec<u8>, name: &str) -> Result<String, Denial> {
        let command = v1::PushCommand { old_oid: "0".repeat(40), new_oid: "a".repeat(40), ref_name: name.into() };
        let push = v1::PushIntent { repository: "acme/api".into(), commands: vec![command], key };
        let message = v1::AuthorizeRequest {
            run_id: bearer.run_id().to_string(),
            secret: bearer.expose_secret().into(),
            request_id: "q-1".into(),
            intent: Some(v1::authorize_request::Intent::Push(push)),
            ..Default::default()
        };
        let question = Question::read(message, None).unwrap();
        self.gate.authorize(question, clock::now()).await.map(|permitted| permitted.permit.authorization)
    }

    async fn renew(&self, ticket: &str) -> Result<Duration, Denial> {
        self.gate.renew(Shown { text: ticket, holder: None }, false, clock::now()).await
    }

    async fn report(&self, ticket: &str) {
        let report = Report {
            ticket: ticket.into(),
            holder: None,
            outcome: Outcome::Done,
            upstream_refusals: Vec::new(),
            request_bytes: 3,
        };
        self.gate.report(report, clock::now()).await.unwrap();
    }

    async fn revoke(&self, run: &str) -> Result<(), tonic::Status> {
        self.runs.revoke_run(tonic::Request::new(v1::RevokeRunRequest { run_id: run.into() })).await.map(drop)
    }

    async fn beat(&self) {
        beat_once(&*self.store, &self.leases).await.unwrap();
    }

    async fn sweep(&self) {
        sweep::once(&*self.store, &self.leases, clock::now()).await;
    }

    /// The one push of a run.
    async fn pushed(&self, run: &str) -> Push {
        let pushes = self.store.pushes(&RunId::parse(run).unwrap(), None, 2).await.unwrap();
        let [push] = <[Push; 1]>::try_from(pushes).unwrap();
        push
    }

    fn id(&self) -> ControlId {
        self.leases.control()
    }
}

/// The controls have not been seen for longer than a live one is silent.
fn all_are_silent(server: &Server) {
    server.sql("postgres", "UPDATE controls SET seen_at = seen_at - interval '16 s'");
}

/// Time passes for leases alone: connections have none that is running.
async fn pass(time: Duration) {
    tokio::time::pause();
    advance(time).await;
    tokio::time::resume();
}

/// Numbers that look random and are the same for the same seed.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }
}

/// A data plane that renews a push now here and now there until it is cut. Returns when it last asked a question
/// that was answered with a lease; a push that was reported has none.
async fn carry(controls: [Control; 2], ticket: String, mut numbers: Numbers) -> Option<Instant> {
    let mut asked = Instant::now();
    let whole = numbers.below(3) == 0;
    for _ in 0..numbers.below(20) + if whole { 0 } else { 1_000 } {
        sleep(Duration::from_millis(numbers.below(250))).await;
        let question = Instant::now();
        let control = &controls[usize::try_from(numbers.below(2)).unwrap()];
        match control.renew(&ticket).await {
            Ok(_) => asked = question,
            Err(denial) if denial.reason == Reason::StoreUnavailable => {}
            Err(denial) => {
                assert_eq!(denial.reason, Reason::RunRevoked);
                return Some(asked);
            }
        }
    }
    controls[0].report(&ticket).await;
    None
}

/// Revokes a run at one control, at some point of what a data plane does with it at two.
async fn revoke_at_some_point(controls: [Control; 2], seed: u64) {
    let mut numbers = Numbers(seed);
    let run = format!("r{seed}");
    let bearer = controls[0].run(&run).await;
    let ticket = controls[usize::try_from(numbers.below(2)).unwrap()].push(&bearer).await.unwrap();
    let carried = tokio::spawn(carry(controls.clone(), ticket.clone(), Numbers(numbers.below(u64::MAX))));
    sleep(Duration::from_millis(numbers.below(2_500))).await;
    controls[0].revoke(&run).await.unwrap();
    let returned = Instant::now();
    if let Some(asked) = timeout(HANGS, carried).await.unwrap().unwrap() {
        assert!(asked + LEASE <= returned, "seed {seed}: {:?} of the lease are left", asked + LEASE - returned);
    }
    // Whoever is asked now.
    for control in &controls {
        assert!(control.renew(&ticket).await.is_err(), "seed {seed}");
    }
}

#[tokio::test]
async fn when_a_revocation_returns_no_lease_of_any_control_is_in_use() {
    let server = Server::start();
    let controls = [Control::start(&server).await, Control::start(&server).await];
    for wave in 0..4 {
        let points = (0..50).map(|point| revoke_at_some_point(controls.clone(), wave * 50 + point));
        join_all(points).await;
    }
}

#[tokio::test]
async fn a_report_to_another_control_lets_a_revocation_return() {
    let server = Server::start();
    let [a, b] = [Control::start(&server).await, Control::start(&server).await];
    let bearer = a.run("r").await;
    let ticket = b.push(&bearer).await.unwrap();
    let frozen = Frozen::new();
    let revoked = tokio::spawn(async move { a.revoke("r").await });
    while b.renew(&ticket).await.is_ok() {
        yield_now().await;
    }
    assert!(!revoked.is_finished(), "it was not reported");
    b.report(&ticket).await;
    frozen.before(LEASE, revoked).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_push_that_is_renewed_elsewhere_is_taken_over_and_its_first_control_lets_it_go() {
    let server = Server::start();
    let [a, b] = [Control::start(&server).await, Control::start(&server).await];
    let bearer = a.run("r").await;
    let ticket = a.push(&bearer).await.unwrap();
    assert_eq!(a.pushed("r").await.control, Some(a.id()));
    pass(LEASE + LOST_AFTER).await;
    b.renew(&ticket).await.unwrap();
    assert_eq!(a.pushed("r").await.control, Some(b.id()));
    a.sweep().await;
    assert_eq!(a.pushed("r").await.outcome, Outcome::Open);
    assert!(a.leases.known().is_empty());
    // And back, while it is still known there.
    a.renew(&ticket).await.unwrap();
    b.beat().await;
    b.renew(&ticket).await.unwrap();
    assert_eq!(a.pushed("r").await.control, Some(b.id()));
    pass(LEASE + LOST_AFTER).await;
    b.sweep().await;
    assert_eq!(a.pushed("r").await.outcome, Outcome::Unknown);
    // Its data plane was not lost after all.
    a.beat().await;
    a.renew(&ticket).await.unwrap();
    assert_eq!((a.pushed("r").await.outcome, a.pushed("r").await.control), (Outcome::Open, Some(a.id())));
}

#[tokio::test]
async fn the_pushes_of_a_control_that_died_are_closed_once_by_one_of_the_others() {
    let server = Server::start();
    let dead = Control::start(&server).await;
    let bearer = dead.run("r").await;
    let ticket = dead.push(&bearer).await.unwrap();
    drop(dead);
    all_are_silent(&server);
    let [b, c] = [Control::start(&server).await, Control::start(&server).await];
    tokio::join!(b.beat(), c.beat());
    let known = [b.leases.known().len(), c.leases.known().len()];
    assert_eq!(known[0] + known[1], 1, "{known:?}");
    assert_eq!(b.pushed("r").await.outcome, Outcome::Open);
    pass(LOST_AFTER).await;
    tokio::join!(b.sweep(), c.sweep());
    let closed = b.pushed("r").await;
    assert_eq!(closed.outcome, Outcome::Unknown);
    tokio::join!(b.sweep(), c.sweep());
    assert_eq!(b.pushed("r").await, closed);
    assert!(b.leases.known().is_empty() && c.leases.known().is_empty());
    // Its data plane lives, and says what became of it.
    c.report(&ticket).await;
    assert_eq!(b.pushed("r").await.outcome, Outcome::Done);
}

#[tokio::test]
async fn a_claimed_push_that_is_renewed_goes_on() {
    let server = Server::start();
    let dead = Control::start(&server).await;
    let ticket = dead.push(&dead.run("r").await).await.unwrap();
    all_are_silent(&server);
    let b = Control::start(&server).await;
    b.beat().await;
    pass(LOST_AFTER / 2).await;
    b.renew(&ticket).await.unwrap();
    pass(LOST_AFTER / 2).await;
    b.sweep().await;
    assert_eq!(b.pushed("r").await.outcome, Outcome::Open);
}

#[tokio::test]
async fn a_control_that_stood_still_makes_no_revocation_return_early() {
    let server = Server::start();
    let frozen = Control::start(&server).await;
    let ticket = frozen.push(&frozen.run("r").await).await.unwrap();
    all_are_silent(&server);
    let b = Control::start(&server).await;
    b.beat().await;
    pass(LOST_AFTER).await;
    b.sweep().await;
    assert_eq!(b.pushed("r").await.outcome, Outcome::Unknown);
    // It goes on where it was, before any beat of it.
    let asked = Instant::now();
    frozen.renew(&ticket).await.unwrap();
    b.revoke("r").await.unwrap();
    assert!(Instant::now() >= asked + LEASE);
    assert_eq!(frozen.renew(&ticket).await.unwrap_err().reason, Reason::RunRevoked);
    frozen.report(&ticket).await;
    assert_eq!(b.pushed("r").await.outcome, Outcome::Done);
    // What was reported is not waited for.
    Frozen::new().at_once(b.revoke("r")).await.unwrap();
}

#[tokio::test]
async fn a_control_that_stood_still_takes_back_what_it_renews_once_it_has_beaten() {
    let server = Server::start();
    let frozen = Control::start(&server).await;
    let ticket = frozen.push(&frozen.run("r").await).await.unwrap();
    let kept = frozen.push(&frozen.run("s").await).await.unwrap();
    all_are_silent(&server);
    let b = Control::start(&server).await;
    b.beat().await;
    let push = b.pushed("r").await.id;
    assert!(b.store.lose_push(push, b.leases.control(), clock::now()).await.unwrap());
    frozen.beat().await;
    for (ticket, run) in [(&ticket, "r"), (&kept, "s")] {
        frozen.renew(ticket).await.unwrap();
        let push = b.pushed(run).await;
        assert_eq!((push.outcome, push.control), (Outcome::Open, Some(frozen.id())));
    }
    // What was reported is over.
    b.report(&kept).await;
    frozen.beat().await;
    assert_eq!(frozen.renew(&kept).await.unwrap_err().reason, Reason::AuthorizationUnknown);
}

#[tokio::test]
async fn a_run_has_four_pushes_at_once_with_however_many_controls() {
    let server = Server::start();
    let controls = [Control::start(&server).await, Control::start(&server).await];
    for round in 0..10 {
        let bearer = controls[0].run(&format!("r{round}")).await;
        let pushes = (0..8).map(|number| controls[number % 2].push(&bearer));
        let answers = join_all(pushes).await;
        let denied: Vec<_> = answers.iter().filter_map(|answer| answer.as_ref().err()).collect();
        assert!(denied.iter().all(|denial| denial.reason == Reason::PushLimit), "{denied:?}");
        let open = controls[0].store.unreported(bearer.run_id()).await.unwrap();
        assert_eq!((open.len(), answers.len() - denied.len()), (PUSHES as usize, PUSHES as usize));
        // A place that was refused is free again, as soon as one is.
        let ticket = answers.into_iter().flatten().next().unwrap();
        controls[1].report(&ticket).await;
        assert!(controls[round % 2].push(&bearer).await.is_ok());
        assert_eq!(controls[1].push(&bearer).await.unwrap_err().reason, Reason::PushLimit);
    }
}

#[tokio::test]
async fn the_end_of_a_run_is_told_to_the_sessions_of_every_control_once() {
    let server = Server::start();
    let [a, b] = [Control::start(&server).await, Control::start(&server).await];
    a.run("r").await;
    a.run("before").await;
    a.revoke("before").await.unwrap();
    let (_, mut news) = b.leases.news();
    let hearing = tokio::spawn(hear(b.store.clone(), b.leases.clone()));
    let ended = |run| Ok(Ended { run: RunId::parse(run).unwrap(), end: End::Revoked });
    assert_eq!(timeout(HANGS, news.recv()).await.unwrap(), ended("before"));
    let frozen = Frozen::new();
    frozen.at_once(a.revoke("r")).await.unwrap();
    // A timer ends with the next whole millisecond.
    advance(HEAR + Duration::from_millis(1)).await;
    assert_eq!(frozen.at_once(news.recv()).await, ended("r"));
    for _ in 0..3 {
        hear_once(&*b.store, &b.leases, clock::now()).await.unwrap();
    }
    assert!(news.is_empty());
    hearing.abort();
}

#[tokio::test]
async fn ends_are_heard_of_however_long_the_store_could_not_be_read() {
    let server = Server::start();
    let [a, b] = [Control::start(&server).await, Control::start(&server).await];
    a.run("r").await;
    let revoked = clock::now();
    a.store.revoke(&RunId::parse("r").unwrap(), revoked).await.unwrap();
    let (_, news) = b.leases.news();
    hear_once(&*b.store, &b.leases, revoked + BACK).await.unwrap();
    assert!(news.is_empty());
    hear_once(&*b.store, &b.leases, revoked + BACK - Duration::from_micros(1)).await.unwrap();
    assert_eq!(news.len(), 1);
}

#[tokio::test]
async fn a_push_that_is_asked_of_two_controls_is_one_and_goes_on_at_the_second() {
    let server = Server::start();
    let (a, b) = (Control::start(&server).await, Control::start(&server).await);
    let (bearer, other) = (a.run("r").await, a.run("s").await);
    let ticket = a.push_as(&bearer, vec![7; 16], "refs/heads/x").await.unwrap();
    assert_eq!(b.push_as(&bearer, vec![7; 16], "refs/heads/x").await.unwrap(), ticket);
    assert_eq!((a.pushed("r").await.control, a.pushed("r").await.outcome), (Some(b.id()), Outcome::Open));
    // A key does not lead to what another run pushes, nor to other refs than were judged for it.
    for (bearer, name) in [(&other, "refs/heads/x"), (&bearer, "refs/heads/y")] {
        let denial = b.push_as(bearer, vec![7; 16], name).await.unwrap_err();
        assert_eq!(denial.reason, Reason::AuthorizationUnknown);
    }
    assert_eq!(b.renew(&ticket).await.unwrap(), LEASE);
    b.report(&ticket).await;
    let over = a.push_as(&bearer, vec![7; 16], "refs/heads/x").await.unwrap_err();
    assert_eq!((over.reason, a.pushed("r").await.outcome), (Reason::AuthorizationUnknown, Outcome::Done));
}

#[tokio::test]
async fn a_push_that_went_up_whole_and_is_heard_of_elsewhere_is_not_closed_by_its_first_control() {
    let server = Server::start();
    let (a, b) = (Control::start(&server).await, Control::start(&server).await);
    let bearer = a.run("r").await;
    let ticket = a.push(&bearer).await.unwrap();
    b.gate.renew(Shown { text: &ticket, holder: None }, true, clock::now()).await.unwrap();
    pass(LEASE + LOST_AFTER).await;
    a.sweep().await;
    assert_eq!((a.pushed("r").await.outcome, a.pushed("r").await.control), (Outcome::Open, Some(b.id())));
}

#[tokio::test]
async fn a_push_that_was_closed_as_unknown_goes_on_when_it_is_renewed() {
    let server = Server::start();
    let control = Control::start(&server).await;
    let bearer = control.run("r").await;
    let ticket = control.push(&bearer).await.unwrap();
    pass(LEASE + LOST_AFTER).await;
    control.sweep().await;
    assert_eq!(control.pushed("r").await.outcome, Outcome::Unknown);
    assert_eq!(control.renew(&ticket).await.unwrap(), LEASE);
    assert_eq!(control.pushed("r").await.outcome, Outcome::Open);
}

#[tokio::test]
async fn the_pushes_of_a_control_that_left_are_claimed_at_once() {
    let server = Server::start();
    let (a, b) = (Control::start(&server).await, Control::start(&server).await);
    let bearer = a.run("r").await;
    a.push(&bearer).await.unwrap();
    b.beat().await;
    assert_eq!(b.pushed("r").await.control, Some(a.id()));
    a.store.leave(a.id()).await.unwrap();
    b.beat().await;
    assert_eq!(b.pushed("r").await.control, Some(b.id()));
}

#[tokio::test]
async fn a_run_that_cannot_be_read_keeps_no_other_from_being_read() {
    let server = Server::start();
    let control = Control::start(&server).await;
    let (broken, sound) = (control.run("r").await, control.run("s").await);
    server.sql("postgres", "UPDATE runs SET options = '{\"unheard_of\":1}' WHERE run_id = 'r'");
    let look_up = |bearer: &Bearer| {
        let (store, id) = (control.store.clone(), bearer.run_id().clone());
        async move { store.run(&id).await }
    };
    let looked_up = join_all((0..20).map(|number| look_up(if number % 2 == 0 { &broken } else { &sound }))).await;
    for (number, run) in looked_up.into_iter().enumerate() {
        assert_eq!(run.is_ok(), number % 2 == 1, "{run:?}");
    }
}
