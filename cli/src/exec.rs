//! One machine, one process: both planes, a run, and a command whose git and gh know nothing but the door.
//!
//! Nothing is started before the door is open; and whatever becomes of the command, its run is revoked before this
//! program ends. If this program is killed its sockets die with it, and the next one ends the run that it left.

mod door;
mod error;
mod identity;
mod isolation;
mod job;
mod left;
mod notes;
mod process;
mod progress;
mod signals;
mod state;
mod terminal;
mod upstream;

use std::process::ExitCode;

use gitdoor_proto::RunId;
use tracing_subscriber::EnvFilter;

pub(crate) use error::ExecError;

use crate::answer::{Run, Shown};
use crate::args::{ExecArgs, Rules};
use crate::env::{Settings, Variables};
use crate::failure::Failure;
use crate::output;
use door::Door;
use isolation::Isolation;
use job::Job;
use left::Left;
use notes::Notes;
use process::Process;
use progress::Progress;
use signals::{Ended, Signals};
use state::{Place, State};
use upstream::Upstream;

/// What stands before the random part of a run's id, and names the folders that are ours.
const PREFIX: &str = "exec-";

/// Runs the command behind a door of its own, and says how it ended.
pub(crate) fn perform(args: &ExecArgs) -> Result<ExitCode, Failure> {
    let progress = Progress::of(args.quiet);
    progress.step("trying the fence");
    let mut isolation = Isolation::of(args)?;
    progress.step("asking for the credential of the door");
    let upstream = Upstream::of(args)?;
    let state = State::at(args.state_dir.clone())?;
    isolation.hide(state.path())?;
    let place = state.place(&new_run_id()?)?;
    start_log(&place, &args.log_level)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(Failure::Runtime)?;
    let done = runtime.block_on(run(args, isolation, upstream, place, progress));
    // An examination that nobody waits for any more ends with this process.
    runtime.shutdown_background();
    done
}

async fn run(
    args: &ExecArgs,
    mut isolation: Isolation,
    upstream: Upstream,
    place: Place,
    progress: Progress,
) -> Result<ExitCode, Failure> {
    let mut signals = Signals::listen()?;
    progress.step("ending what earlier ones left");
    state::end_left(&place).await;
    let owned = upstream.is_own_token();
    progress.step(&opening(&args.rules));
    let opened = tokio::select! {
        opened = Door::open(args, upstream, &place) => opened,
        ended = signals.any() => return Ok(gone(&place, ended)),
    };
    let (door, variables) = match opened.and_then(|door| wire(&door, &place).map(|variables| (door, variables))) {
        Ok(wired) => wired,
        Err(failure) => {
            place.forget();
            return Err(failure);
        }
    };
    if !args.quiet {
        announce(&door.run, &args.rules, &place, owned);
        isolation.notes().iter().for_each(|note| output::note(note));
    }
    isolation.lead_to(&place, &variables);
    let ended = command(args, &isolation, &variables, &door, &mut signals, progress).await;
    let progress = Progress::of(args.quiet);
    progress.step("ending the run");
    let record = door.close().await;
    drop(progress);
    if let Err(failure) = &record {
        tracing::error!(%failure, "the run's end was not recorded");
    }
    place.close(record.ok().as_ref().map(output::record).as_deref());
    Ok(ExitCode::from(ended?))
}

/// Starts the command where it has no credential, and waits for its end: the screen is the command's until then.
async fn command(
    args: &ExecArgs,
    isolation: &Isolation,
    variables: &Variables,
    door: &Door,
    signals: &mut Signals,
    progress: Progress,
) -> Result<u8, Failure> {
    let left = Left::before(isolation);
    progress.step("looking for credentials in what the command will see");
    tokio::select! {
        examined = isolation.examine(args.fence.allow_findings, args.quiet) => examined?,
        ended = signals.any() => return Ok(ended.status()),
    }
    drop(progress);
    let mut notes = Notes::begin();
    let job = Job::listen();
    let process = start(isolation, args, variables)?;
    let ended = signals.until_ended(process, job, door.failed(), &mut notes).await;
    left.mend();
    notes.end();
    Ok(ended)
}

fn start(isolation: &Isolation, args: &ExecArgs, variables: &Variables) -> Result<Process, Failure> {
    let command = isolation.command(&args.command, variables)?;
    Ok(Process::start(command, matches!(isolation, Isolation::Fence(..)))?)
}

/// A signal came before there was a command.
fn gone(place: &Place, ended: Ended) -> ExitCode {
    place.forget();
    ExitCode::from(ended.status())
}

/// gh's and git's files for the door, and the variables that lead git and gh there.
fn wire(door: &Door, place: &Place) -> Result<Variables, Failure> {
    let settings = Settings::at(&place.settings())?;
    settings.write(&door.name, &door.bearer)?;
    let git = settings.write_git(&door.name, &door.bearer, &identity::settings())?;
    let mut variables = Variables::default();
    variables.here(&door.name, settings.text(), git);
    Ok(variables)
}

fn new_run_id() -> Result<RunId, ExecError> {
    /// Easy to read out: 32 characters, without those that look like others.
    const LETTERS: &[u8; 32] = b"abcdefghjkmnpqrstuvwxyz023456789";
    let mut random = [0; 12];
    getrandom::fill(&mut random)?;
    let letter = |byte: u8| LETTERS.get(usize::from(byte % 32)).copied().map_or('a', char::from);
    let id: String = PREFIX.chars().chain(random.into_iter().map(letter)).collect();
    RunId::parse(&id).map_err(|_never| ExecError::Name)
}

fn start_log(place: &Place, level: &str) -> Result<(), ExecError> {
    let file = place.log_file()?;
    let log = tracing_subscriber::fmt().with_ansi(false).with_env_filter(EnvFilter::new(level));
    // A log that cannot be written says so nowhere: the screen is the command's.
    let log = log.log_internal_errors(false);
    // A log that is there already, in a process of several programs, stays.
    drop(log.with_writer(std::sync::Mutex::new(file)).try_init());
    Ok(())
}

/// What takes its time when a door is opened.
fn opening(rules: &Rules) -> String {
    match &rules.repository {
        Some(repository) => format!("opening the door, which asks GitHub for {repository}"),
        None => "opening the door".to_owned(),
    }
}

/// What door this is, in a line; and what it does not keep from the command.
fn announce(run: &Run, rules: &Rules, place: &Place, owned: bool) {
    let branches: Vec<_> = rules.branches.iter().map(ToString::to_string).collect();
    let branches = if branches.is_empty() { "branches".to_owned() } else { branches.join(", ") };
    let may = match (run.identity, &run.repository, &run.default_branch) {
        ("write", Some(repository), Some(default)) => {
            format!("may push {branches} of {repository}, never {default}")
        }
        ("write", ..) => {
            format!("may push {branches} of the first repository that it pushes to, never the default branch")
        }
        ("read", ..) => "may read, and push nothing".to_owned(),
        _ => "may nothing".to_owned(),
    };
    output::note(&format!("run {} {may}; log: {}", run.run_id, place.log().display()));
    if owned {
        output::note(
            "the door has a token of yours, which nothing pins to one repository: the door's rules stand in for the pin, \
             and the run reads what the token reads",
        );
    }
}

impl Door {
    /// Ends the run, and then the door; says what the run did.
    async fn close(self) -> Result<Shown, Failure> {
        let recorded = self.revoke().await;
        self.end().await;
        recorded
    }
}
