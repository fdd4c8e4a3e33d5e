//! Every store against a model, on random walks: whatever is called, in whatever order, however often, at whatever
//! time, store and model answer the same and look the same.
//!
//! A walk that breaks is printed with its seed, after all steps were left out without which it breaks as well.
//! `GITDOOR_TEST_SEED` walks from a seed again.

mod rules;
mod steps;
mod walk;

use std::collections::BTreeSet;
use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use self::steps::{Step, steps};
use self::walk::{Broken, walk};
use super::conformance::Open;
use super::measured::Measured;
use super::postgres::Postgres;
use super::postgres::server::Server;
use super::sqlite::Sqlite;

const WALKS: u64 = 40;
/// What is met seldom, every fifth walk meets: a few of many tests have to walk on for it, and none this far.
const MOST_WALKS: u64 = 4 * WALKS;
const STEPS: usize = 250;
/// All of a store is looked at after so many steps.
const LOOK: usize = 16;
/// Longest time to find out which steps of a broken walk matter.
const SHORTEN: Duration = Duration::from_secs(30);
/// What the walks are to have met, lest they only pass by.
const MET: [&str; 34] = [
    "a default branch",
    "adopted",
    "adopted before",
    "adopted past its first time",
    "bound",
    "bound before",
    "bound elsewhere",
    "closed",
    "closed before",
    "created",
    "default branches",
    "exists",
    "nobody adopted",
    "nobody rotated",
    "nobody's push",
    "not adopted",
    "not bound",
    "not refused",
    "not rotated",
    "not used",
    "nothing closed",
    "nothing pruned",
    "open",
    "opened twice",
    "pruned",
    "refused",
    "replaced",
    "reported late",
    "revoked",
    "revoked before",
    "rotated",
    "stale",
    "too many",
    "used",
];

#[tokio::test]
async fn sqlite_does_what_the_model_does_on_any_walk() {
    walk_in_folder::<Sqlite>().await;
}

#[tokio::test]
async fn a_measured_store_does_what_the_model_does_on_any_walk() {
    walk_in_folder::<Measured<Sqlite>>().await;
}

/// A server has a way to go for each step: its walks are parted among tests, each with a server of its own.
macro_rules! parts {
    ($($number:literal $part:ident)*) => {
        const PARTS: usize = [$($number),*].len();
        $(#[tokio::test] async fn $part() { walk_a_part($number).await; })*
    };
}

parts! {
    0 postgres_does_what_the_model_does_on_any_walk
    1 postgres_does_what_the_model_does_on_any_other_walk
    2 postgres_does_what_the_model_does_on_any_third_walk
    3 postgres_does_what_the_model_does_on_any_fourth_walk
}

async fn walk_a_part(part: u64) {
    let server = Server::start();
    server.create("promises");
    let place = |walk: &str| {
        server.sql("promises", &format!("CREATE SCHEMA {walk}"));
        server.folder().join(walk)
    };
    let seed = seed();
    for number in (part..WALKS).step_by(PARTS) {
        walk_one::<Postgres>(seed, number, &place, &mut BTreeSet::new()).await;
    }
}

async fn walk_in_folder<S: Open>() {
    // No walk loses the machine, so that nothing has to reach a disk.
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_none| tempfile::tempdir()).unwrap();
    walk_all::<S>(|walk| folder.path().join(walk)).await;
}

/// All walks, which together meet all that there is to meet.
async fn walk_all<S: Open>(place: impl Fn(&str) -> PathBuf) {
    let (seed, mut met) = (seed(), BTreeSet::new());
    let mut missed = MET.to_vec();
    for number in 0..MOST_WALKS {
        walk_one::<S>(seed, number, &place, &mut met).await;
        missed.retain(|what| !met.contains(what));
        if missed.is_empty() && number + 1 >= WALKS {
            return;
        }
    }
    panic!("GITDOOR_TEST_SEED={seed} never met {missed:?}");
}

/// A walk from a seed. `place` makes a place for a store by its name.
async fn walk_one<S: Open>(
    seed: u64,
    number: u64,
    place: &impl Fn(&str) -> PathBuf,
    met: &mut BTreeSet<&'static str>,
) {
    let mut steps = steps(seed.wrapping_add(number), STEPS);
    if let Err(broken) = walk::<S>(place(&format!("walk{number}")), &steps, LOOK, met).await {
        steps.truncate(broken.at + 1);
        let (steps, broken) = shorten::<S>(place, steps, broken).await;
        let lines: Vec<String> = steps.iter().map(|step| format!("  {step:?}")).collect();
        panic!("GITDOOR_TEST_SEED={seed}, walk {number}, breaks by\n{}\n{}", lines.join("\n"), broken.how);
    }
}

/// Leaves steps out, many at once and then fewer, as long as the rest breaks as well.
async fn shorten<S: Open>(
    place: impl Fn(&str) -> PathBuf,
    mut steps: Vec<Step>,
    mut broken: Broken,
) -> (Vec<Step>, Broken) {
    let start = Instant::now();
    let (mut out, mut tries) = (steps.len().div_ceil(2), 0);
    while out > 0 {
        let mut from = 0;
        while from < steps.len() && start.elapsed() < SHORTEN {
            let mut fewer = steps.clone();
            fewer.drain(from..steps.len().min(from + out));
            tries += 1;
            match walk::<S>(place(&format!("shorter{tries}")), &fewer, 1, &mut BTreeSet::new()).await {
                Ok(()) => from += out,
                Err(still) => {
                    fewer.truncate(still.at + 1);
                    (steps, broken) = (fewer, still);
                }
            }
        }
        out /= 2;
    }
    (steps, broken)
}

#[expect(clippy::disallowed_methods, reason = "a test's own setting, and no program's")]
fn seed() -> u64 {
    match std::env::var("GITDOOR_TEST_SEED") {
        Ok(seed) => seed.parse().expect("GITDOOR_TEST_SEED is a number"),
        Err(_unset) => RandomState::new().hash_one("a walk"),
    }
}
