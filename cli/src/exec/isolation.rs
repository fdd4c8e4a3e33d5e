//! What keeps the command from its user's own credentials: the fence, or with `--no-isolation` nothing.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use super::ExecError;
use super::state::Place;
use crate::args::{ExecArgs, FenceFlags};
use crate::env::{OURS, Variables};
use crate::failure::Failure;
use crate::fence::{Examined, Fence, FenceError, Plan};
use crate::output;

/// What the command is started in.
pub(super) enum Isolation {
    /// A fence, and what the command has inside.
    Fence(Arc<Fence>, Box<Plan>),
    /// Nothing.
    None,
}

impl Isolation {
    /// A fence that can be had here, for this command, unless none is wanted.
    pub(super) fn of(args: &ExecArgs) -> Result<Self, Failure> {
        let FenceFlags { show, share, hide, writable_git_config, allow_findings: _, no_isolation } = &args.fence;
        if *no_isolation {
            return Ok(Self::None);
        }
        let fence = Fence::find()?;
        let work = std::env::current_dir().map_err(ExecError::Folder)?;
        let keys = [&args.app.github_app_key, &args.token_file].into_iter().flatten();
        let plan = Plan {
            work,
            show: show.clone(),
            share: share.clone(),
            hide: hide.iter().chain(keys).cloned().collect(),
            writable_git_config: *writable_git_config,
            command: args.command.clone(),
            ..Plan::default()
        };
        // What cannot be fenced is said before gh is asked and a folder is made.
        fence.command(&plan)?;
        Ok(Self::Fence(Arc::new(fence), Box::new(plan)))
    }

    /// Where git keeps everything of the repository that a fenced command may write.
    pub(super) fn repository(&self) -> Option<PathBuf> {
        match self {
            Self::Fence(fence, plan) => Some(fence.repository(plan)),
            Self::None => None,
        }
    }

    /// What the caller should know of it, a line each.
    pub(super) fn notes(&self) -> Vec<String> {
        match self {
            Self::Fence(fence, _) => fence.notes(),
            Self::None => {
                vec!["no isolation: the command runs as you, and can read your files, and with them your own credentials".into()]
            }
        }
    }

    /// Keeps the command from the state. What cannot be fenced is said now, before anything is opened.
    pub(super) fn hide(&mut self, state: &Path) -> Result<(), FenceError> {
        let Self::Fence(fence, plan) = self else { return Ok(()) };
        plan.hide.push(state.to_owned());
        fence.command(plan).map(drop)
    }

    /// Lets the command have the door and what leads there, and nothing else of the state.
    pub(super) fn lead_to(&mut self, place: &Place, variables: &Variables) {
        let Self::Fence(_, plan) = self else { return };
        plan.show.extend(place.door().parent().map(ToOwned::to_owned));
        // git's own settings are in there, which it may change.
        plan.share.push(place.settings());
        plan.set = variables.set().iter().map(|(name, value)| (name.clone(), OsString::from(value))).collect();
        plan.unset = variables.unset().iter().map(ToString::to_string).collect();
    }

    /// Looks for credentials where the command will be. With `allow` they are told of, and that is all; with `quiet`
    /// nothing else is said.
    pub(super) async fn examine(&self, allow: bool, quiet: bool) -> Result<(), Failure> {
        let Self::Fence(fence, plan) = self else { return Ok(()) };
        let Examined { findings, astray, notes } = examined(Arc::clone(fence), plan.as_ref().clone()).await?;
        for words in astray.iter().filter(|_| !quiet) {
            output::note(words);
        }
        for note in notes {
            tracing::info!(note, "doctor");
        }
        for finding in &findings {
            output::note(&format!("the command would have: {}, in {}", finding.words, finding.place));
        }
        if findings.is_empty() || allow { Ok(()) } else { Err(ExecError::Found(findings.len()).into()) }
    }

    /// The command, to be started by the first thread: it is killed when the thread ends that starts it, and that one
    /// ends with the process, whatever ends that.
    pub(super) fn command(&self, command: &[OsString], variables: &Variables) -> Result<Command, FenceError> {
        match self {
            Self::Fence(fence, plan) => fence.command(plan),
            Self::None => Ok(bare(command, variables)),
        }
    }
}

async fn examined(fence: Arc<Fence>, plan: Plan) -> Result<Examined, Failure> {
    let done = tokio::task::spawn_blocking(move || fence.examine(&plan)).await;
    Ok(done.map_err(|panicked| ExecError::Start(panicked.into()))??)
}

fn bare(command: &[OsString], variables: &Variables) -> Command {
    let mut process = Command::new("setpriv");
    process.args(["--pdeathsig", "KILL", "--"]).args(command);
    for name in variables.unset() {
        process.env_remove(name);
    }
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.as_bytes().starts_with(OURS.as_bytes())) {
        process.env_remove(name);
    }
    process.envs(variables.set().iter().map(|(name, value)| (name, value)));
    process
}
