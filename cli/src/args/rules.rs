//! The flags that narrow a run.

use clap::builder::FalseyValueParser;
use gitdoor_proto::{Pattern, RepositoryName};

use super::{API_BURST, rate};

/// What a run may.
#[derive(Debug, clap::Args)]
pub(crate) struct Rules {
    /// The one repository that a write run may push to
    ///
    /// Without it, the run binds to the first repository that it pushes to, for life.
    #[arg(long, value_name = "OWNER/NAME", env = "GITDOOR_REPOSITORY", hide_env_values = true)]
    #[arg(value_parser = RepositoryName::parse)]
    pub(crate) repository: Option<RepositoryName>,

    /// A branch, or a glob of branches, that the run may push; "*" stops at "/"
    ///
    /// May be repeated. Without it, any branch. The default branch is never among them.
    #[arg(long = "branch", value_name = "GLOB", env = "GITDOOR_BRANCH", hide_env_values = true)]
    #[arg(value_parser = Pattern::parse, value_delimiter = ',')]
    pub(crate) branches: Vec<Pattern>,

    /// The most refs in one push; without it, no limit of the run's own
    #[arg(long, value_name = "N", env = "GITDOOR_MAX_REFS", hide_env_values = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_refs: Option<u32>,

    /// Mint the run's write token without permission to change workflow files
    #[arg(long, env = "GITDOOR_NO_WORKFLOWS", hide_env_values = true, value_parser = FalseyValueParser::new())]
    pub(crate) no_workflows: bool,

    /// A repository that the run may read; without it, all of the installation
    ///
    /// May be repeated.
    #[arg(long = "read-repository", value_name = "OWNER/NAME", env = "GITDOOR_READ_REPOSITORY")]
    #[arg(value_parser = RepositoryName::parse, value_delimiter = ',', hide_env_values = true)]
    pub(crate) read_repositories: Vec<RepositoryName>,

    /// API requests that the run may make at once before it has to wait, 1 to 100000; without it, 200
    #[arg(long, value_name = "N", env = "GITDOOR_API_BURST", hide_env_values = true)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=i64::from(API_BURST)))]
    pub(crate) api_burst: Option<u32>,

    /// API requests a second that the run regains, above 0 and at most 10000; without it, 2
    #[arg(long, value_name = "N", env = "GITDOOR_API_RATE", hide_env_values = true)]
    #[arg(value_parser = rate)]
    pub(crate) api_rate: Option<f64>,
}
