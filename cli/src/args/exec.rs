//! The flags of `gitdoor exec`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::ArgGroup;
use clap::builder::FalseyValueParser;

use super::{Identity, Rules, budget};

pub(super) const AFTER: &str = "\
What it does:
  It starts a door on this machine, registers a run, and runs the command so that its git and gh go through that door with \
the run's bearer, and with nothing else of yours. What they push and read is judged as on a door of a server. When the \
command ends, however it ends, the run is revoked and the door is gone.

The credential, one of three, stays in this program: it is in no file that it writes, in no log and in no environment.
  A GitHub App's key is the best: its tokens reach one repository. A token of yours, from a file or from gh, reaches what you \
reach: the door's rules alone keep a push to the one repository, and the run reads what the token reads. Such a token \
cannot be narrowed, so --no-workflows, --read-repository and --read-statuses need an App.

Examples:
  An agent that may push agent/* of one repository, with the token that gh has:
    gitdoor exec --from-gh --repository acme/api --branch 'agent/*' --share ~/.claude --share ~/.claude.json -- claude

  The same with a GitHub App:
    gitdoor exec --github-app-id 123456 --github-app-key app.pem --github-installation-id 7890123 \
--repository acme/api --branch 'agent/*' -- claude

  Only to read:
    gitdoor exec --token-file token --identity read -- ./review.sh

The fence:
  The command runs in namespaces of its own (bubblewrap's): your home is empty but for what --show and --share name, your agents, key rings and other programs are not there, and of the working folder's repository settings and hooks are only read. Before it is started `gitdoor doctor` looks from inside; a credential that it finds keeps the command from being started. Where no fence can be had nothing is started, unless with --no-isolation.

Files:
  In the state folder, a folder for each run, named by its id:
    log       what the door logged
    run.json  once the command has ended: what `gitdoor run show --json` prints of the run, every push included
  They are kept for 30 days. The rest of it is there while the command runs.

Signals:
  SIGINT, SIGTERM, SIGHUP and SIGQUIT reach the command; what the terminal sends to both is not sent again. When the program \
that started this one ends, the command is asked to end, and ten seconds later made to. It ends with this program.
  At a terminal, it stops once the command has, by ^Z or by itself, and goes on with it. What the door has to say is in the log, and \
nothing is shown while the command runs. Once it has ended, the terminal has the settings that it had before.

Exit status:
  that of the command, or 128 and the number of the signal that ended it; 127 where there is no such command. Where the \
command was not started:
   1  the door could not be opened: GitHub cannot be reached, or does not know the repository; or the command would have had a credential
   2  usage
  64  what was given cannot be used, such as a key file that is not there";

/// A command to be run behind a door.
#[derive(Debug, clap::Args)]
#[command(group = ArgGroup::new("upstream").required(true).args(["github_app_id", "token_file", "from_gh"]))]
pub(crate) struct ExecArgs {
    /// What the run may be
    #[arg(long, env = "GITDOOR_IDENTITY", hide_env_values = true, default_value = "write")]
    pub(crate) identity: Identity,

    /// How the run is narrowed.
    #[command(flatten)]
    pub(crate) rules: Rules,

    /// How long the run may take, 1s to 24h; the command is not ended then, but the door is shut
    #[arg(long, value_name = "TIME", env = "GITDOOR_BUDGET", hide_env_values = true)]
    #[arg(value_parser = budget, default_value = "24h")]
    pub(crate) budget: Duration,

    /// The App whose tokens are used.
    #[command(flatten)]
    pub(crate) app: AppFlags,

    /// A file with a token of GitHub's, and nothing else
    #[arg(long, value_name = "FILE", env = "GITDOOR_TOKEN_FILE", hide_env_values = true)]
    #[arg(help_heading = "Credential", conflicts_with_all = ["no_workflows", "read_repositories"])]
    pub(crate) token_file: Option<PathBuf>,

    /// Ask your gh for the token that it has for the host of --github-url
    #[arg(long, env = "GITDOOR_FROM_GH", hide_env_values = true, value_parser = FalseyValueParser::new())]
    #[arg(help_heading = "Credential", conflicts_with_all = ["no_workflows", "read_repositories"])]
    pub(crate) from_gh: bool,

    /// GitHub, or a GitHub Enterprise Server
    #[arg(long, value_name = "URL", env = "GITDOOR_GITHUB_URL", hide_env_values = true, help_heading = "GitHub")]
    #[arg(default_value = "https://github.com")]
    pub(crate) github_url: String,

    /// Its API; that of GitHub Enterprise Server is `https://HOST/api/v3`
    #[arg(
        long,
        value_name = "URL",
        env = "GITDOOR_GITHUB_API_URL",
        hide_env_values = true,
        help_heading = "GitHub"
    )]
    #[arg(default_value = "https://api.github.com")]
    pub(crate) github_api_url: String,

    /// Certificate authorities to trust for it instead of the system's: a file in PEM
    #[arg(long, value_name = "FILE", env = "GITDOOR_GITHUB_CA", hide_env_values = true, help_heading = "GitHub")]
    pub(crate) github_ca: Option<PathBuf>,

    /// The folder of logs and of what runs did; without it, `gitdoor` in `XDG_STATE_HOME`, or in ~/.local/state
    #[arg(
        long,
        value_name = "DIR",
        env = "GITDOOR_STATE_DIR",
        hide_env_values = true,
        help_heading = "This machine"
    )]
    pub(crate) state_dir: Option<PathBuf>,

    /// What the door logs: a level, or levels by module, as in info,h2=warn
    #[arg(
        long,
        value_name = "FILTER",
        env = "GITDOOR_LOG_LEVEL",
        hide_env_values = true,
        help_heading = "This machine"
    )]
    #[arg(default_value = "info", value_parser = filter)]
    pub(crate) log_level: String,

    /// Say nothing but why the command is not run
    #[arg(long, env = "GITDOOR_QUIET", hide_env_values = true, help_heading = "This machine")]
    #[arg(value_parser = FalseyValueParser::new())]
    pub(crate) quiet: bool,

    /// What the command sees.
    #[command(flatten)]
    pub(crate) fence: FenceFlags,

    /// The command, and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// A GitHub App.
#[derive(Debug, clap::Args)]
pub(crate) struct AppFlags {
    /// The id of a GitHub App
    #[arg(
        long,
        value_name = "ID",
        env = "GITDOOR_GITHUB_APP_ID",
        hide_env_values = true,
        help_heading = "Credential"
    )]
    #[arg(requires_all = ["github_app_key", "github_installation_id"])]
    pub(crate) github_app_id: Option<String>,

    /// The App's private key: a file in PEM
    #[arg(long, value_name = "FILE", env = "GITDOOR_GITHUB_APP_KEY", hide_env_values = true)]
    #[arg(help_heading = "Credential", requires = "github_app_id")]
    pub(crate) github_app_key: Option<PathBuf>,

    /// The App's installation whose repositories the run may use
    #[arg(long, value_name = "ID", env = "GITDOOR_GITHUB_INSTALLATION_ID", hide_env_values = true)]
    #[arg(help_heading = "Credential", requires = "github_app_id")]
    pub(crate) github_installation_id: Option<u64>,

    /// Let the run read commit statuses, too, which the App must have been granted
    #[arg(long, env = "GITDOOR_READ_STATUSES", hide_env_values = true, value_parser = FalseyValueParser::new())]
    #[arg(help_heading = "Credential", requires = "github_app_id")]
    pub(crate) read_statuses: bool,
}

/// The fence.
#[derive(Debug, clap::Args)]
pub(crate) struct FenceFlags {
    /// A file or folder of your home, or of another hidden place, that the command may read
    ///
    /// May be repeated. Of your home it has nothing else: an agent's own settings and programs are named here, or by --share.
    #[arg(long, value_name = "PATH", env = "GITDOOR_SHOW", hide_env_values = true, value_delimiter = ',')]
    #[arg(help_heading = "Fence", conflicts_with = "no_isolation")]
    pub(crate) show: Vec<PathBuf>,

    /// The same, and the command may write there
    #[arg(long, value_name = "PATH", env = "GITDOOR_SHARE", hide_env_values = true, value_delimiter = ',')]
    #[arg(help_heading = "Fence", conflicts_with = "no_isolation")]
    pub(crate) share: Vec<PathBuf>,

    /// A file or folder that the command may not see
    #[arg(long, value_name = "PATH", env = "GITDOOR_HIDE", hide_env_values = true, value_delimiter = ',')]
    #[arg(help_heading = "Fence", conflicts_with = "no_isolation")]
    pub(crate) hide: Vec<PathBuf>,

    /// Let the command change the settings and hooks of the repository that it works in, which your own git obeys afterwards
    #[arg(long, env = "GITDOOR_WRITABLE_GIT_CONFIG", hide_env_values = true, value_parser = FalseyValueParser::new())]
    #[arg(help_heading = "Fence", conflicts_with = "no_isolation")]
    pub(crate) writable_git_config: bool,

    /// Start the command although there are GitHub credentials, or what looks like one, in what it sees
    #[arg(long, env = "GITDOOR_ALLOW_FINDINGS", hide_env_values = true, value_parser = FalseyValueParser::new())]
    #[arg(help_heading = "Fence", conflicts_with = "no_isolation")]
    pub(crate) allow_findings: bool,

    /// Run the command as you: it can read your files, and with them your own credentials
    #[arg(long, env = "GITDOOR_NO_ISOLATION", hide_env_values = true, help_heading = "Fence")]
    #[arg(value_parser = FalseyValueParser::new())]
    pub(crate) no_isolation: bool,
}

fn filter(text: &str) -> Result<String, tracing_subscriber::filter::ParseError> {
    tracing_subscriber::EnvFilter::try_new(text).map(|_filter| text.to_owned())
}
