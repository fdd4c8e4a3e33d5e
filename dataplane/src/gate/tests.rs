//! The gate against controls that really serve.

mod control;
mod follow;
mod loss;
mod names;
mod places;
mod silence;
mod state;
mod stores;
mod terms;

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{join_all, select};
use gitdoor_proto::Bearer;
use gitdoor_proto::endpoint::{Address, Connector, TlsFiles};
use gitdoor_proto::v1::authorize_request::Intent;
use gitdoor_proto::v1::session_request::Question;
use gitdoor_proto::v1::{self, PushIntent};
use tokio::sync::watch;

use super::pool::Resolve;
use super::{Context, Gate, Granted};
use crate::refusal::Refusal;
use control::{Place, Scripted};

/// Time for a question. Nothing that goes well comes near it.
const LONG: Duration = Duration::from_mins(1);
/// Time for a question of which half is waited for.
const SHORT: Duration = Duration::from_secs(2);
/// The trace of that request.
const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
/// Names are looked up this often where a test waits for it.
const OFTEN: Duration = Duration::from_millis(20);
/// And this often where none does.
const NEVER: Duration = Duration::from_hours(1);

/// A name that stands for what a test says.
#[derive(Clone)]
struct Name(Arc<watch::Sender<Found>>);

#[derive(Default)]
struct Found {
    /// None: the look-up fails.
    addresses: Option<Vec<Address>>,
    lookups: usize,
}

impl Name {
    fn of(addresses: &[&Scripted]) -> Self {
        let name = Self(Arc::new(watch::channel(Found::default()).0));
        name.set(addresses);
        name
    }

    fn set(&self, controls: &[&Scripted]) {
        let addresses = controls.iter().map(|control| control.place.address()).collect();
        self.0.send_modify(|found| found.addresses = Some(addresses));
    }

    fn fail(&self) {
        self.0.send_modify(|found| found.addresses = None);
    }

    /// Waits for that many look-ups from now on.
    async fn until_looked_up(&self, more: usize) {
        let most = self.0.borrow().lookups + more;
        self.0.subscribe().wait_for(|found| found.lookups >= most).await.unwrap();
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("http://control.test")
    }
}

impl Resolve for Name {
    async fn resolve(&self) -> io::Result<Vec<Address>> {
        self.0.send_modify(|found| found.lookups += 1);
        self.0.borrow().addresses.clone().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

/// A gate that asks what these names stand for, in plain text.
fn over(names: Vec<Name>, deadline: Duration, lookup: Duration) -> Gate {
    Gate::over(names, Connector::new(&[], &TlsFiles::default()).unwrap(), deadline, lookup)
}

/// A gate that asks these controls.
async fn gate(controls: &[&Scripted], deadline: Duration) -> Gate {
    let gate = over(vec![Name::of(controls)], deadline, NEVER);
    until_live(&gate, controls.len()).await;
    gate
}

async fn until_live(gate: &Gate, sessions: usize) {
    let live = gate.pool.live.until(|live| live == sessions);
    tokio::time::timeout(LONG, live).await.unwrap_or_else(|_| panic!("there are never {sessions} sessions"));
}

fn bearer() -> Bearer {
    Bearer::parse("sbr_run.AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8").unwrap()
}

/// The request that everything here is part of.
fn context() -> Context {
    let trace_parent = gitdoor_proto::TraceParent::parse(TRACE);
    Context { request_id: "q".to_owned(), trace_parent }
}

/// Asks what may be asked twice.
async fn verify(gate: &Gate) -> Result<Granted, Refusal> {
    gate.authorize(&bearer(), &context(), Intent::Verify(v1::Verify {})).await
}

/// Asks what may not.
async fn push(gate: &Gate) -> Result<Granted, Refusal> {
    gate.authorize(&bearer(), &context(), Intent::Push(PushIntent::default())).await
}

fn pushes(control: &Scripted) -> usize {
    let is_push = |question: &&Question| {
        matches!(question, Question::Authorize(v1::AuthorizeRequest { intent: Some(Intent::Push(_)), .. }))
    };
    control.seen().iter().filter(is_push).count()
}

/// Asks so many questions, by so many callers at once.
async fn ask_many(gate: &Gate, callers: usize, each: usize) {
    let calls = (0..callers).map(async |_| {
        for _ in 0..each {
            verify(gate).await.unwrap_or_else(|refusal| panic!("{refusal}"));
        }
    });
    join_all(calls).await;
}

#[tokio::test]
async fn questions_are_spread_over_all_controls() {
    let folder = tempfile::tempdir().unwrap();
    let (a, b) = (Scripted::tcp("a").await, Scripted::unix("b", folder.path()).await);
    let gate = gate(&[&a, &b], LONG).await;
    // While none is answered, the one with fewer open is asked, however fast either is.
    a.be_silent();
    b.be_silent();
    let asking = gate.clone();
    let asked = tokio::spawn(async move { ask_many(&asking, 20, 1).await });
    tokio::join!(a.until_seen(10), b.until_seen(10));
    a.speak();
    b.speak();
    asked.await.unwrap();
    // And of two that have none open, now this one and now that.
    ask_many(&gate, 1, 100).await;
    assert_eq!((a.seen().len(), b.seen().len()), (60, 60));
}

#[tokio::test]
async fn a_control_that_is_busy_is_asked_less() {
    let (a, b) = (Scripted::tcp("a").await, Scripted::tcp("b").await);
    let gate = gate(&[&a, &b], LONG).await;
    a.be_silent();
    let (one, two) = (Box::pin(ask_many(&gate, 1, 1)), Box::pin(ask_many(&gate, 1, 1)));
    let ((), waiting) = select(one, two).await.factor_first();
    a.until_seen(1).await;
    ask_many(&gate, 1, 50).await;
    assert_eq!((a.seen().len(), b.seen().len()), (1, 51), "what is slower was asked as much");
    a.speak();
    waiting.await;
}

#[tokio::test]
async fn a_revocation_that_any_control_brings_cuts() {
    let (a, b) = (Scripted::tcp("a").await, Scripted::tcp("b").await);
    let gate = gate(&[&a, &b], LONG).await;
    for (control, run) in [(&a, "one"), (&b, "two")] {
        let guard = gate.streams().enter(&gitdoor_proto::RunId::parse(run).unwrap());
        control.revoke(run);
        assert_eq!(guard.watch().cut().await, super::Cut::Revoked);
    }
}
