//! Processes that are killed at random moments under load: what was decided is there, and nothing else happened.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use gitdoor_proto::v1::runs_client::RunsClient;
use gitdoor_proto::v1::{Identity, PushOutcome, RegisterRunRequest};
use gitdoor_tests::pkt;
use gitdoor_tests::raw::{Door, Request};
use gitdoor_tests::wait::until;
use gitdoor_tests::world::{Run, World};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tonic::transport::Endpoint;

use super::{Dice, asked};
use crate::PROGRAM;
use crate::revocation::Cargo;

const REPOSITORIES: [&str; 2] = ["acme/api", "acme/web"];
/// Runs that have pushed: fewer say nothing.
const LOAD: usize = 10;
/// Longer than any request here may take.
const LONG: Duration = Duration::from_secs(20);

/// What a client was told.
struct Told {
    run: Run,
    /// The repository whose refs it was shown.
    bound: Option<&'static str>,
    /// Its push was reported as done.
    pushed: bool,
}

/// Registers runs and lets each push to the first repository that it is shown, again and again.
struct Worker {
    number: usize,
    controls: Vec<String>,
    doors: Vec<Door>,
    cargo: [Arc<Cargo>; 2],
    told: Arc<Mutex<Vec<Told>>>,
    dice: Dice,
}

impl Worker {
    async fn work(mut self, stop: CancellationToken) {
        for round in 0.. {
            if stop.is_cancelled() {
                return;
            }
            let id = format!("w{}-{round}", self.number);
            let Some(run) = timeout(LONG, self.register(&id)).await.ok().flatten() else {
                sleep(Duration::from_millis(50)).await;
                continue;
            };
            let mut told = Told { run, bound: None, pushed: false };
            drop(timeout(LONG, self.use_up(&mut told)).await);
            self.told.lock().unwrap().push(told);
        }
    }

    async fn register(&mut self, id: &str) -> Option<Run> {
        let control = &self.controls[self.dice.below(2)];
        let channel = Endpoint::from_shared(control.clone()).unwrap().connect().await.ok()?;
        let request = RegisterRunRequest {
            run_id: id.to_owned(),
            identity: Identity::Write.into(),
            ..RegisterRunRequest::default()
        };
        let answer = RunsClient::new(channel).register_run(request).await.ok()?.into_inner();
        Some(Run { id: id.to_owned(), bearer: answer.bearer })
    }

    /// Both repositories are asked for, in any order: only the first that is shown may be pushed to.
    async fn use_up(&mut self, told: &mut Told) {
        let first = self.dice.below(2);
        for which in [first, 1 - first, first, 1 - first] {
            let path = format!("/{}.git/info/refs?service=git-receive-pack", REPOSITORIES[which]);
            let door = self.door();
            let Ok(connection) = door.connect().await else { continue };
            let request = Request::get(&path).basic(&told.run.bearer).header("Connection", "close");
            let Ok(answer) = connection.exchange(&request.to_bytes(&door.host)).await else { continue };
            if answer.status == 200 {
                assert!(told.bound.is_none_or(|bound| bound == REPOSITORIES[which]), "{} twice", told.run.id);
                told.bound = Some(REPOSITORIES[which]);
            }
        }
        let Some(which) = REPOSITORIES.iter().position(|name| told.bound == Some(name)) else { return };
        let cargo = Arc::clone(&self.cargo[which]);
        for attempt in 0..2 {
            let reference = format!("refs/heads/{}/{attempt}", told.run.id);
            let Ok(mut push) = cargo.start(&self.door(), &told.run, &reference).await else { continue };
            push.send(usize::MAX).await;
            let Ok(answer) = push.end().await else { continue };
            told.pushed |= answer.status == 200 && pkt::report(&answer.body).contains(&format!("ok {reference}"));
        }
    }

    fn door(&mut self) -> Door {
        self.doors[self.dice.below(2)].clone()
    }
}

/// Kills something, and starts it again after a while.
async fn kill_something(world: &mut World, dice: &mut Dice) {
    let pause = dice.within(Duration::from_millis(800));
    match dice.below(5) {
        0 => {
            world.postgres().kill();
            sleep(pause).await;
            world.postgres().restart();
        }
        victim @ (1 | 2) => {
            let control = world.control_at(victim - 1);
            control.kill().await;
            sleep(pause).await;
            control.start_again().await;
        }
        victim => {
            let dataplane = world.dataplane(victim - 3);
            dataplane.kill().await;
            sleep(pause).await;
            dataplane.start_again().await;
        }
    }
}

#[tokio::test]
async fn whatever_is_killed_every_decision_stands_and_no_ref_moved_without_one() {
    let mut world = World::builder(PROGRAM).controls(2).dataplanes(2).start().await;
    let mut dice = Dice::throw();
    let mut cargo = Vec::new();
    for repository in REPOSITORIES {
        world.github.create(repository);
        let run = world.register(Identity::Read).await;
        cargo.push(Arc::new(Cargo::load(&world, &run, 0, repository, 100 * 1024).await));
    }
    let cargo: [Arc<Cargo>; 2] = cargo.try_into().map_err(drop).unwrap();
    let (told, stop) = (Arc::<Mutex<Vec<Told>>>::default(), CancellationToken::new());
    let workers: Vec<_> = (0..4)
        .map(|number| Worker {
            number,
            controls: vec![world.runs_address_of(0), world.runs_address_of(1)],
            doors: vec![world.door(0), world.door(1)],
            cargo: cargo.clone(),
            told: Arc::clone(&told),
            dice: dice.another(),
        })
        .map(|worker| tokio::spawn(worker.work(stop.clone())))
        .collect();
    let pushed = || told.lock().unwrap().iter().filter(|told| told.pushed).count();
    let mut kills = 0;
    // A slow machine takes longer for a load that says something.
    while kills < 12 || pushed() <= LOAD {
        kills += 1;
        sleep(Duration::from_millis(200) + dice.within(Duration::from_millis(1500))).await;
        kill_something(&mut world, &mut dice).await;
    }
    // What was killed last is back for a while before the end.
    sleep(Duration::from_secs(2)).await;
    stop.cancel();
    for worker in workers {
        worker.await.unwrap();
    }
    let told = std::mem::take(&mut *told.lock().unwrap());
    until("the doors are open", async || {
        (asked(&world, 0, &told[0].run).await.0, asked(&world, 1, &told[0].run).await.0) == (200, 200)
    })
    .await;
    until("git has ended", async || world.github.running_backends() == 0).await;
    assert_told(&world, &told).await;
    assert_decided(&world).await;
    world.finish().await;
}

/// What a client was told is in the store.
async fn assert_told(world: &World, told: &[Told]) {
    for Told { run, bound, pushed } in told {
        world.keep(&run.id, run.bearer.clone());
        let shown = world.show(run).await;
        let binding = shown.run.unwrap().binding;
        if let Some(bound) = bound {
            assert_eq!(binding.as_ref().map(|binding| binding.repository.as_str()), Some(*bound), "{}", run.id);
        }
        // Of one whose data plane was killed before the store was back, nobody could say how it ended.
        let stands = [PushOutcome::Done, PushOutcome::Open, PushOutcome::Unknown];
        let there = shown.pushes.iter().any(|push| stands.contains(&push.outcome()));
        assert!(there || !pushed, "{} was told of a push that the ledger does not have", run.id);
    }
}

/// Every ref that moved has a push in the ledger that was let through, of the run that is bound there.
async fn assert_decided(world: &World) {
    let mut owners: BTreeMap<String, &str> = BTreeMap::new();
    for repository in REPOSITORIES {
        for reference in world.github.refs(repository).into_keys().filter(|name| name != "refs/heads/main") {
            let id = reference.trim_start_matches("refs/heads/").split('/').next().unwrap().to_owned();
            let shown = world.show(&Run { id: id.clone(), bearer: String::new() }).await;
            let binding = shown.run.unwrap().binding.unwrap();
            assert_eq!(binding.repository, repository, "{reference}");
            let decided = shown.pushes.iter().any(|push| {
                push.outcome() != PushOutcome::Refused
                    && push.repository == repository
                    && push.refs.iter().any(|pushed| pushed.ref_name == reference.as_bytes())
            });
            assert!(decided, "{reference} of {repository} moved without a decision");
            assert_eq!(*owners.entry(id).or_insert(repository), repository, "a run pushed to both");
        }
    }
    assert!(owners.len() > LOAD, "there was no load");
}
