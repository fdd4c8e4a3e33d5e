//! What each program of ours does first: it closes itself to others of its user.

use std::io;

use rustix::process::{DumpableBehavior, Resource, Rlimit, getrlimit, set_dumpable_behavior, setrlimit};

/// No process of the same user can read this one's memory, environment or descriptors from here on, and what it holds is
/// in no core file. What it starts is as open as any program, but makes no core file unless it asks for some.
pub fn close() -> io::Result<()> {
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    setrlimit(Resource::Core, Rlimit { current: Some(0), ..getrlimit(Resource::Core) })?;
    Ok(())
}
