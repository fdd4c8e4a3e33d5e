//! The flags of what this program does behind a fence of its own making.

use std::ffi::OsString;

/// A command, and who commits.
#[derive(Debug, clap::Args)]
pub(crate) struct InsideArgs {
    /// The name of who commits
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,

    /// The address of who commits
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) email: Option<String>,

    /// What to become
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}
