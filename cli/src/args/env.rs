//! The flags of `gitdoor env`.

use std::path::PathBuf;

use clap::ValueEnum;
use clap::builder::FalseyValueParser;
use gitdoor_proto::RepositoryName;

use crate::env::Door;

pub(super) const AFTER: &str = "\
What it gives:
  Two files for gh, hosts.yml (mode 0600) with the bearer for the door alone, and config.yml, in a folder of mode 0700; and \
variables, with no secret in them, that lead git and gh to the door: GitHub's URLs, over https or ssh, become the \
door's, git has one credential helper, which reads hosts.yml, and nothing prompts. What could hold another \
credential is unset. The sandbox needs the folder at the same place, or GH_CONFIG_DIR with the place that it has there.

Examples:
  In the shell that is to be the workspace:
    door=$(gitdoor env --host git.example.com --bearer-file bearer) && eval \"$door\"

  For a container:
    gitdoor env --host git.example.com --bearer-file bearer --config-dir /run/gitdoor --format docker > door.env
    docker run --env-file door.env --volume /run/gitdoor:/run/gitdoor:ro ...

  A workspace that is made before its run is: the same for every run; and then, with each command of a run
    gitdoor env --host git.example.com --part creation --format json
    gitdoor env --host git.example.com --part command --format json --bearer-file bearer

Formats:
  sh          export and unset, for eval
  json        one object: set, unset, files
  docker      NAME=value lines, for --env-file; it cannot unset, so what is to be unset is set to nothing
  kubernetes  a fragment of a pod: env, and the mount of a Secret

Exit status: 64 where the bearer or another file cannot be used; nothing is printed then.";

/// A sandbox to be.
#[derive(Debug, clap::Args)]
pub(crate) struct EnvArgs {
    /// The door, as the sandbox knows it; gh knows a door on port 443 alone
    #[arg(long, value_name = "NAME[:PORT]", env = "GITDOOR_HOST", hide_env_values = true, value_parser = Door::parse)]
    pub(crate) host: Door,

    /// The file with the run's bearer; not needed for --part creation
    #[arg(long, value_name = "FILE", env = "GITDOOR_BEARER_FILE", hide_env_values = true)]
    pub(crate) bearer_file: Option<PathBuf>,

    /// The repository that gh takes where it is in no clone
    #[arg(long, value_name = "OWNER/NAME", env = "GITDOOR_REPOSITORY", hide_env_values = true)]
    #[arg(value_parser = RepositoryName::parse)]
    pub(crate) repository: Option<RepositoryName>,

    /// How it is printed
    #[arg(long, env = "GITDOOR_FORMAT", hide_env_values = true, default_value = "sh")]
    pub(crate) format: Format,

    /// The folder for gh's files; it is made. Without it, the bearer file's name with ".gh" added
    #[arg(long, value_name = "DIR", env = "GITDOOR_CONFIG_DIR", hide_env_values = true)]
    pub(crate) config_dir: Option<PathBuf>,

    /// The authorities that the door's certificate is by, where no public one is: a PEM file
    ///
    /// In a shell, git takes it for the door alone; gh, and git of the other formats, in place of the system's
    /// authorities.
    #[arg(long, value_name = "FILE", env = "GITDOOR_CA", hide_env_values = true)]
    pub(crate) ca: Option<PathBuf>,

    /// Write no file: the bearer goes into `GH_ENTERPRISE_TOKEN`, from where gh hands it to any host that is not GitHub's
    #[arg(long, env = "GITDOOR_VARIABLES_ONLY", hide_env_values = true, value_parser = FalseyValueParser::new())]
    #[arg(conflicts_with = "config_dir")]
    pub(crate) variables_only: bool,

    /// Which variables
    #[arg(long, env = "GITDOOR_PART", hide_env_values = true, default_value = "all")]
    pub(crate) part: Part,
}

/// How an environment is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For a shell's eval.
    Sh,
    /// One object.
    Json,
    /// For --env-file.
    Docker,
    /// A fragment of a pod.
    Kubernetes,
}

/// A part of an environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// What is the same for every run, and holds no secret
    Creation,
    /// What is a run's own
    Command,
    /// Both
    All,
}

impl Part {
    /// Whether the part that is a run's own is in it.
    pub(crate) fn has_command(self) -> bool {
        self != Self::Creation
    }

    /// Whether the part that is the same for every run is in it.
    pub(crate) fn has_creation(self) -> bool {
        self != Self::Command
    }
}
