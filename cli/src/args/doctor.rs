//! The flags of `gitdoor doctor`.

use std::path::PathBuf;

use clap::builder::FalseyValueParser;

use crate::env::Door;

pub(super) const AFTER: &str = "\
Where it looks:
  the environment; the environments and command lines of the processes that it may read; git's settings at every level, \
those of every repository in the workspace included; git's credential files and the credential cache; netrc; gh's \
hosts.yml; ssh keys and the agent; the files of home and workspace, for tokens of GitHub's and private keys by their \
shape; and what git's helpers answer for github.com. git is asked \
as it is, and without the settings that variables bring, which any program can leave out. A run's bearer is no finding.

The door:
  Asked what the run may do, and whether it gets anything from GitHub, by --host and --bearer-file; without them, as gh's variables and files say.

Output:
  Kinds and places, never a value. With --json, one object: clean, complete, findings, scrubbed, astray, notes, door.

Exit status:
  0  no GitHub credential was found, and the door, where it is known, takes the bearer and gets
     what it asks of GitHub
  1  one was found, or the door does not take the bearer, gets nothing from GitHub or cannot be reached,
     or a rewrite of GitHub's URLs leads git past it
  2  usage";

/// A workspace to be looked through.
#[derive(Debug, clap::Args)]
pub(crate) struct DoctorArgs {
    /// A home to look through; without it, HOME
    ///
    /// May be repeated.
    #[arg(long = "home", value_name = "DIR", env = "GITDOOR_HOME", hide_env_values = true, value_delimiter = ',')]
    pub(crate) homes: Vec<PathBuf>,

    /// A folder of work to look through; without it, the current one
    ///
    /// May be repeated.
    #[arg(long = "workspace", value_name = "DIR", env = "GITDOOR_WORKSPACE", hide_env_values = true)]
    #[arg(value_delimiter = ',')]
    pub(crate) workspaces: Vec<PathBuf>,

    /// Where the processes are
    #[arg(long, value_name = "DIR", env = "GITDOOR_PROC", hide_env_values = true, default_value = "/proc")]
    pub(crate) proc: PathBuf,

    /// The door
    #[arg(long, value_name = "NAME[:PORT]", env = "GITDOOR_HOST", hide_env_values = true, value_parser = Door::parse)]
    #[arg(requires = "bearer_file")]
    pub(crate) host: Option<Door>,

    /// The file with the run's bearer
    #[arg(long, value_name = "FILE", env = "GITDOOR_BEARER_FILE", hide_env_values = true, requires = "host")]
    pub(crate) bearer_file: Option<PathBuf>,

    /// The authorities that the door's certificate is by; without it, those of `SSL_CERT_FILE`, or the system's
    #[arg(long, value_name = "FILE", env = "GITDOOR_CA", hide_env_values = true)]
    pub(crate) ca: Option<PathBuf>,

    /// Remove what older set-ups left: credentials in git's and gh's files and in netrc, and the credential cache
    ///
    /// Nothing is asked. Keys, other files, variables and what this user may not write are left, and named.
    #[arg(long, env = "GITDOOR_SCRUB", hide_env_values = true, value_parser = FalseyValueParser::new())]
    pub(crate) scrub: bool,

    /// Print one JSON object
    #[arg(long, env = "GITDOOR_JSON", hide_env_values = true, value_parser = FalseyValueParser::new())]
    pub(crate) json: bool,
}
