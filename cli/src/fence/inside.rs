//! What happens inside, right before the command: who commits is written down, what the mounts leave open is closed, and
//! this process becomes the command.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use landlock::{CompatLevel, Compatible as _, Ruleset, RulesetAttr as _, RulesetError, Scope};
use rustix::process::getpgrp;
use rustix::termios::tcsetpgrp;
use tokio::signal::unix::{SignalKind, signal};

use super::{FenceError, filter};
use crate::args::InsideArgs;

/// The command of this program's that does so.
pub(super) const COMMAND: &str = "__inside";

/// The command of this program's that takes the terminal back from a group that has ended.
pub(crate) const FOREGROUND: &str = "__foreground";

/// Takes the terminal for this process's group.
pub(crate) fn take_terminal() -> std::io::Result<()> {
    Ok(tcsetpgrp(File::open("/dev/tty")?, getpgrp())?)
}

/// Becomes the command, or says why not.
pub(crate) fn perform(args: InsideArgs) -> Result<(), FenceError> {
    let InsideArgs { name, email, command } = args;
    let open = |why: &dyn ToString| FenceError::Open(why.to_string());
    let Some((program, arguments)) = command.split_first() else { return Ok(()) };
    if let Some(home) = std::env::var_os("HOME") {
        write_identity(Path::new(&home), name.as_deref(), email.as_deref()).map_err(|why| open(&why))?;
    }
    hear_signals().map_err(|why| open(&why))?;
    // A kernel without it was told of before.
    scope(CompatLevel::BestEffort).and_then(landlock::RulesetCreated::restrict_self).map_err(|why| open(&why))?;
    seccompiler::apply_filter(&filter::program()).map_err(|why| open(&why))?;
    let why = Command::new(program).args(arguments).exec();
    Err(FenceError::Command { program: program.clone(), why })
}

/// Whether this kernel can keep abstract sockets of others out, which belong to the network, and signals in: a process
/// group reaches beyond what can be seen. Both are shared with who starts the command.
pub(super) fn hides_abstract_sockets() -> bool {
    scope(CompatLevel::HardRequirement).is_ok()
}

fn scope(level: CompatLevel) -> Result<landlock::RulesetCreated, RulesetError> {
    Ruleset::default().set_compatibility(level).scope(Scope::AbstractUnixSocket | Scope::Signal)?.create()
}

/// Signals that were ignored on the way here have a handler once they are listened to, and a program that is started
/// begins without handlers.
fn hear_signals() -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let _runs_here = runtime.enter();
    for kind in [SignalKind::interrupt(), SignalKind::quit(), SignalKind::hangup(), SignalKind::terminate()] {
        drop(signal(kind)?);
    }
    Ok(())
}

/// Into the settings of the empty home, where the command and repositories may say otherwise.
fn write_identity(home: &Path, name: Option<&str>, email: Option<&str>) -> std::io::Result<()> {
    let lines = [("name", name), ("email", email)].into_iter().filter_map(|(key, value)| {
        let value = value?.replace('\\', "\\\\").replace('"', "\\\"");
        (!value.contains(char::is_control)).then(|| format!("\t{key} = \"{value}\"\n"))
    });
    let lines: String = lines.collect();
    if lines.is_empty() {
        return Ok(());
    }
    match OpenOptions::new().write(true).create_new(true).open(home.join(".gitconfig")) {
        Ok(mut file) => file.write_all(format!("[user]\n{lines}").as_bytes()),
        Err(why) if why.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(why) => Err(why),
    }
}
