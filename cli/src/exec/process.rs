//! The command as a process.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;

use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use tokio::process::{Child, Command};

use super::ExecError;
use crate::env::Variables;

/// What our own flags are called as variables: they name keys, and are nobody's business behind the door.
const OURS: &[u8] = b"GITDOOR_";

/// A command that is ready to be started.
pub(super) struct Prepared<'a> {
    /// What is set for it, and what it must not have.
    pub(super) variables: &'a Variables,
    /// The command, and its arguments.
    pub(super) command: &'a [OsString],
}

/// Keeps this process from those of the same user: they cannot trace it or read its memory, and it leaves no core.
pub(super) fn keep_to_ourselves() -> Result<(), ExecError> {
    set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(|error| ExecError::Start(error.into()))
}

/// Starts the command on this program's own input, output and terminal. It is killed when the thread ends that this is
/// called on, which is to be the first one: it ends with the process, whatever ends that.
pub(super) fn start(prepared: &Prepared<'_>) -> Result<Child, ExecError> {
    let Prepared { variables, command } = prepared;
    let mut process = Command::new("setpriv");
    process.args(["--pdeathsig", "KILL", "--"]).args(*command);
    for name in variables.unset() {
        process.env_remove(name);
    }
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.as_bytes().starts_with(OURS)) {
        process.env_remove(name);
    }
    process.envs(variables.set().iter().map(|(name, value)| (name, value)));
    process.spawn().map_err(ExecError::Command)
}
