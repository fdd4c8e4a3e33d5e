//! The clients: each makes one request after the other, of the kinds in turn, until a bound is reached.

use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use gitdoor_proto::Bearer;
use tempfile::TempDir;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::Unusable;
use super::args::{Args, Kind};
use super::budget::Budget;
use super::stock::{Git, Pusher};
use super::table::{Done, Tally};
use super::web::Web;

/// Pushes of a run at once: more than the door lets through would measure its refusals.
const PUSHES: usize = 4;

/// A run that requests are made for.
struct Run {
    web: Web,
    git: Git,
    pushes: Semaphore,
}

/// What all clients share.
struct Shared {
    args: Args,
    runs: Vec<Run>,
    budget: Budget,
    folder: TempDir,
    tag: String,
}

/// Does the work, and says how it went.
pub(super) async fn drive(args: Args) -> Result<Tally, Unusable> {
    if !args.is_loopback() && !args.yes_this_deployment {
        return Err(Unusable::NotLoopback(args.host.to_string()));
    }
    let folder = tempfile::Builder::new().prefix("gitdoor-load-").tempdir()?;
    let runs = args.bearer_files.iter().enumerate().map(|(number, file)| {
        let path = file.display().to_string();
        let unusable = || Unusable::Bearer { path: path.clone() };
        let place = fs::canonicalize(file).map_err(|_unreadable| unusable())?;
        let text = fs::read_to_string(&place).map_err(|_unreadable| unusable())?;
        let bearer = Bearer::parse(text.trim()).map_err(|_other| unusable())?;
        let home = folder.path().join(format!("run-{number}"));
        let git = Git::new(home, &place, args.ca.as_deref())?;
        Ok(Run { web: Web::new(&args, &bearer)?, git, pushes: Semaphore::new(PUSHES) })
    });
    let runs = runs.collect::<Result<Vec<_>, Unusable>>()?;
    let tag = folder.path().file_name().unwrap_or_default().to_string_lossy().replace("gitdoor-load-", "");
    let budget = Budget::begin(&args);
    let shared = Arc::new(Shared { args, runs, budget, folder, tag: tag.replace('.', "") });
    let mut clients = JoinSet::new();
    for number in 0..usize::from(shared.args.at_once) {
        clients.spawn(work(Arc::clone(&shared), number));
    }
    let mut tally = Tally::new(&shared.args);
    while let Some(done) = clients.join_next().await {
        done.expect("a client that does not fail").into_iter().for_each(|done| tally.add(done));
    }
    tally.end(shared.budget.elapsed());
    Ok(tally)
}

/// One client.
async fn work(shared: Arc<Shared>, number: usize) -> Vec<Done> {
    let run = &shared.runs[number % shared.runs.len()];
    let branch = format!("gitdoor-load/{}-{number}", shared.tag);
    let home = shared.folder.path().join(format!("client-{number}"));
    let mut pusher = Pusher::new(&run.git, home.join("push"), branch);
    let mut all = Vec::new();
    while let Some(turn) = shared.budget.next() {
        let turn = usize::try_from(turn).expect("a number of requests");
        let kind = shared.args.kinds[turn % shared.args.kinds.len()];
        let request = one(&shared, run, kind, &mut pusher, &home);
        match tokio::time::timeout(shared.budget.limit(), request).await {
            Ok((took, end)) => {
                let moved = *end.as_ref().unwrap_or(&0);
                shared.budget.moved(moved);
                all.push(Done { kind, took, end });
            }
            // It neither failed nor was done.
            Err(_elapsed) if shared.budget.is_over() => {}
            Err(elapsed) => {
                let end = Err(format!("no end within a minute ({elapsed})"));
                all.push(Done { kind, took: Duration::from_mins(1), end });
            }
        }
    }
    all
}

/// One request: how long it took, and how many bytes it moved or why it failed.
async fn one(
    shared: &Shared,
    run: &Run,
    kind: Kind,
    pusher: &mut Pusher<'_>,
    home: &std::path::Path,
) -> (Duration, Result<u64, String>) {
    let (door, repository) = (shared.args.door(), shared.args.repository.to_string());
    let url = format!("{door}/{repository}.git");
    if kind == Kind::Push {
        // What a push needs is not the door's work, so its time begins later.
        let _place = run.pushes.acquire().await.expect("places that stay");
        if let Err(why) = pusher.prepare(&url, shared.args.push_bytes).await {
            return (Duration::ZERO, Err(why));
        }
        let began = Instant::now();
        let end = pusher.push(shared.args.push_bytes).await;
        return (began.elapsed(), end);
    }
    let began = Instant::now();
    let end = match kind {
        Kind::Discovery => run.web.get(&format!("{url}/info/refs?service=git-upload-pack")).await,
        Kind::Run => run.web.get(&format!("{door}/api/v3/gitdoor/run")).await,
        Kind::Rest => run.web.get(&format!("{door}/api/v3/repos/{repository}")).await,
        Kind::Clone | Kind::Push => run.git.clone_bare(&url, &home.join("clone")).await,
    };
    (began.elapsed(), end)
}
