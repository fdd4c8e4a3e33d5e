//! The fence that a command of this user's runs behind: bubblewrap, with what this user's credentials lie in out of its
//! sight.
//!
//! The command has the user's own id, so that only what it cannot name is safe from it. What it sees is decided by
//! [`Fence::command`] alone, before anything runs; what cannot be fenced is refused in words. `docs/fence.md` says what
//! is in it, what is out, and what it does not protect from.

mod caller;
mod examine;
mod failure;
mod filter;
mod inside;
mod mounts;
mod obeyed;
mod repository;
mod sockets;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub use caller::Caller;
pub use examine::{Examined, Finding};
pub use failure::FenceError;
pub(crate) use inside::{FOREGROUND, perform as enter, take_terminal};

use mounts::{Mounts, What};
use repository::Repository;

/// Started with signals ignored that a whole group hears, of a terminal or of `timeout`: what runs inside does as it
/// likes, and its fence stays for as long as it does. `gitdoor` makes them the command's to hear again.
const HOLD: &str = "trap '' INT QUIT HUP TERM; exec \"$@\"";

/// Namespaces of its own but for the network, which is the door's and the command's; no capability; an end when this
/// process ends. No session of its own: with one, a terminal has neither job control nor ^C nor a size. What a session
/// would keep out, putting words into the terminal's input, the filter does.
const BASE: [&str; 24] = [
    "--unshare-user",
    "--unshare-pid",
    "--unshare-ipc",
    "--unshare-uts",
    "--unshare-cgroup-try",
    "--die-with-parent",
    "--cap-drop",
    "ALL",
    "--ro-bind",
    "/",
    "/",
    "--dev",
    "/dev",
    "--proc",
    "/proc",
    // What root may write there without a capability is the whole machine's; bwrap by itself leaves it open.
    "--ro-bind-try",
    "/proc/sys",
    "/proc/sys",
    "--ro-bind-try",
    "/proc/fs",
    "/proc/fs",
    "--ro-bind-try",
    "/proc/scsi",
    "/proc/scsi",
];

/// Which namespaces a process is in, of those without which there is no fence.
const SPACES: [&str; 3] = ["/proc/self/ns/user", "/proc/self/ns/mnt", "/proc/self/ns/pid"];

/// What is run, and what it sees.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// The folder that it works in: read and written, at its own path.
    pub work: PathBuf,
    /// Read, where it would be hidden.
    pub show: Vec<PathBuf>,
    /// Read and written.
    pub share: Vec<PathBuf>,
    /// Never seen: our own state, the key, whatever the caller names.
    pub hide: Vec<PathBuf>,
    /// Variables that it has. No secret: they are for every process inside to read.
    pub set: Vec<(String, OsString)>,
    /// Variables of the caller's that it has not, beside those that lead to credentials.
    pub unset: Vec<String>,
    /// Whether it may change the hooks and settings of its repository, which git runs outside, too.
    pub writable_git_config: bool,
    /// The command.
    pub command: Vec<OsString>,
}

/// A fence that can be had here.
#[derive(Debug)]
pub struct Fence {
    bwrap: PathBuf,
    program: PathBuf,
    caller: Caller,
}

impl Fence {
    /// Looks for bubblewrap, and tries it.
    pub fn find() -> Result<Self, FenceError> {
        let program = std::env::current_exe().map_err(FenceError::Program)?;
        Self::of(&program, Caller::of_this_process())
    }

    /// The same with another `gitdoor`, for another caller.
    pub fn of(program: &Path, caller: Caller) -> Result<Self, FenceError> {
        if !filter::IS_KNOWN {
            return Err(FenceError::Machine);
        }
        let bwrap = caller.find(OsStr::new("bwrap")).ok_or(FenceError::NoBwrap)?;
        caller.homes()?;
        if sockets::has_session_bus(&caller) && !inside::hides_abstract_sockets() {
            return Err(FenceError::SessionBus);
        }
        let program = program.canonicalize().map_err(FenceError::Program)?;
        let fence = Self { bwrap, program, caller };
        fence.attempt()?;
        Ok(fence)
    }

    fn attempt(&self) -> Result<(), FenceError> {
        let mut attempt = Command::new(&self.bwrap);
        attempt.args(BASE).args(["--tmpfs", "/tmp", "--", "readlink"]).args(SPACES).stdin(Stdio::null());
        let output = attempt.output().map_err(|_why| FenceError::NoBwrap)?;
        if !output.status.success() {
            return Err(FenceError::Namespaces(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
        }
        let said = String::from_utf8_lossy(&output.stdout);
        let outside: Vec<_> = SPACES.iter().filter_map(|space| fs::read_link(space).ok()).collect();
        let own = said.lines().filter(|inside| !outside.iter().any(|space| space.as_os_str() == *inside)).count();
        if own == SPACES.len() { Ok(()) } else { Err(FenceError::NoFence(self.bwrap.clone())) }
    }

    /// What the caller should know of this machine, a line each.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        if inside::hides_abstract_sockets() { Vec::new() } else { sockets::abstract_notes() }
    }

    /// Where git keeps the settings and everything else of this plan's repository, or would if the command makes one.
    #[must_use]
    pub fn repository(&self, plan: &Plan) -> PathBuf {
        let full = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
        let (work, homes) = (full(&plan.work), self.caller.homes().unwrap_or_default());
        let share: Vec<_> = plan.share.iter().map(full).collect();
        let known = Repository::of(&work, &homes, &share).ok().and_then(|repository| repository.folder().cloned());
        known.unwrap_or_else(|| work.join(".git"))
    }

    /// The command, behind the fence. It ends with the thread that starts it: start it from one that waits for it.
    pub fn command(&self, plan: &Plan) -> Result<Command, FenceError> {
        let homes = self.caller.homes()?;
        let Layout { mounts, work } = self.layout(plan, &homes)?;
        let mut arguments: Vec<OsString> = BASE.iter().map(OsString::from).collect();
        let has_settings = homes.iter().any(|home| mounts.shows(&home.join(".gitconfig")));
        arguments.extend(mounts.arguments());
        for home in &homes {
            arguments.extend(["--dir".into(), home.into()]);
        }
        arguments.extend(["--chdir".into(), work.clone().into(), "--".into(), self.program.clone().into()]);
        arguments.push(inside::COMMAND.into());
        if !has_settings {
            arguments.extend(repository::identity(&self.caller, &work));
        }
        arguments.push("--".into());
        arguments.extend(plan.command.iter().cloned());

        let mut command = Command::new("/bin/sh");
        command.args(["-c", HOLD, "sh"]).arg(&self.bwrap).args(arguments);
        command.env_clear().envs(self.caller.variables()).env("PWD", &work);
        for name in &plan.unset {
            command.env_remove(name);
        }
        command.envs(plan.set.iter().map(|(name, value)| (name, value)));
        Ok(command)
    }

    fn layout(&self, plan: &Plan, homes: &[PathBuf]) -> Result<Layout, FenceError> {
        let work = existing("the working folder", &plan.work)?;
        let named =
            |flag, paths: &[PathBuf]| paths.iter().map(|path| existing(flag, path)).collect::<Result<Vec<_>, _>>();
        let (show, share) = (named("--show", &plan.show)?, named("--share", &plan.share)?);
        // Whoever names it may have made none.
        let hide = plan.hide.iter().map(|path| path.canonicalize().unwrap_or_else(|_| path.clone()));
        let hide: Vec<PathBuf> = hide.filter(|path| !caller::is_of_kernel(path)).collect();
        let mut mounts = Mounts::default();
        for place in self.caller.closed(homes).iter().chain(&hide) {
            mounts.hide(place);
        }
        for place in self.caller.programs(&mounts, homes, plan.command.first()) {
            mounts.add(place, What::Shown);
        }
        for place in caller::needed() {
            mounts.add(place, What::Shown);
        }
        mounts.extend(&show, What::Shown);
        mounts.extend(&share, What::Shared);
        mounts.add(work.clone(), What::Shared);
        let repository = Repository::of(&work, homes, &share)?;
        let writable: Vec<PathBuf> = share.iter().chain([&work]).chain(repository.folder()).cloned().collect();
        for (flag, paths) in [("--show", show.as_slice()), ("--share or the working folder", &writable)] {
            for path in paths {
                if caller::is_of_kernel(path) {
                    return Err(FenceError::Kernel { flag, path: path.clone() });
                }
                refuse_wide(flag, path, homes)?;
                refuse_hidden(flag, path, &hide)?;
            }
        }
        refuse_wide("the working folder", &work, &self.caller.common())?;
        let run = ["bwrap", "git", "gh"].into_iter().flat_map(|name| self.caller.places(name.as_ref()));
        if let Some(program) =
            run.chain([self.bwrap.clone()]).find(|it| writable.iter().any(|at| it.starts_with(at)))
        {
            return Err(FenceError::Writable(program));
        }
        repository.mount(&mut mounts, &self.caller, &work, &writable, plan.writable_git_config)?;
        mounts.add(self.program.clone(), What::Shown);
        for socket in self.caller.sockets() {
            mounts.hide_bare(&socket);
        }
        Ok(Layout { mounts, work })
    }
}

struct Layout {
    mounts: Mounts,
    work: PathBuf,
}

fn existing(flag: &'static str, path: &Path) -> Result<PathBuf, FenceError> {
    path.canonicalize().map_err(|why| FenceError::Missing { flag, path: path.to_owned(), why })
}

/// Refuses what is, or holds, a place that the fence is there to hide.
fn refuse_wide(flag: &'static str, path: &Path, places: &[PathBuf]) -> Result<(), FenceError> {
    match places.iter().find(|place| place.starts_with(path)) {
        Some(place) => Err(FenceError::Wide { flag, path: path.to_owned(), place: place.clone() }),
        None => Ok(()),
    }
}

fn refuse_hidden(flag: &'static str, path: &Path, hide: &[PathBuf]) -> Result<(), FenceError> {
    match hide.iter().find(|hidden| hidden.starts_with(path)) {
        Some(hidden) => Err(FenceError::Holds { flag, path: path.to_owned(), hidden: hidden.clone() }),
        None => Ok(()),
    }
}
