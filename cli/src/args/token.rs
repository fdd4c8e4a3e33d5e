//! The command line about tokens.

use clap::Subcommand;
use clap::builder::FalseyValueParser;
use gitdoor_proto::RepositoryName;

use super::Asking;
use crate::credential::Host;

/// Shown below the help of all commands about tokens.
pub(super) const TOKEN_AFTER: &str = "\
Times are in UTC. With --json, standard output holds exactly one JSON object, times are RFC 3339, and what is \
absent is null.";

/// Shown below the help of `mirror`.
const MIRROR_AFTER: &str = "\
Output:
  The token, on a line of its own. It lives 25 minutes or longer, and that it was handed out stands in control's ledger.
  With --json: token, expires_at, repository.

For git:
  git -c credential.helper= -c credential.helper='!gitdoor token mirror --repository acme/api --credential' \
clone --mirror https://github.com/acme/api

  The empty helper keeps git from handing the token on to others that are configured. Git names what it wants \
after the command: `get` is answered, where git asks for https to --forge-host, and for the repository where it names one; \
`erase`, of a token that the host refused, makes control give another next time, once a minute at most; `store` does \
nothing.";

/// What all commands about tokens have in common.
#[derive(Debug, clap::Args)]
pub(crate) struct TokenArgs {
    /// Who is asked.
    #[command(flatten)]
    pub(crate) asking: Asking,

    /// What to do.
    #[command(subcommand)]
    pub(crate) command: TokenCommand,
}

/// The commands about tokens.
#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Print a token that reads one repository, for a trusted host that keeps a clone
    #[command(after_long_help = MIRROR_AFTER)]
    Mirror(Mirror),
    /// List the tokens that were handed out, newest first; a thousand at most, and none of the tokens themselves
    List,
}

/// A token to be.
#[derive(Debug, clap::Args)]
pub(crate) struct Mirror {
    /// The one repository that the token reads, its pull requests included
    #[arg(long, value_name = "OWNER/NAME", env = "GITDOOR_REPOSITORY", hide_env_values = true)]
    #[arg(value_parser = RepositoryName::parse)]
    pub(crate) repository: RepositoryName,

    /// Be a credential helper of git's; wins over --json
    #[arg(long, env = "GITDOOR_CREDENTIAL", hide_env_values = true, value_parser = FalseyValueParser::new())]
    pub(crate) credential: bool,

    /// With --credential: the host that git may send the token to
    #[arg(long, value_name = "NAME[:PORT]", env = "GITDOOR_FORGE_HOST", hide_env_values = true)]
    #[arg(value_parser = Host::parse, default_value = "github.com")]
    pub(crate) forge_host: Host,

    /// With --credential: what git asks for, which git adds by itself
    #[arg(value_name = "get|store|erase")]
    pub(crate) action: Option<String>,
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::{Args, Command};

    #[test]
    fn a_mirrors_token_is_asked_for_by_flags_and_by_what_git_adds() {
        let line = "gitdoor token mirror --repository acme/api --credential --control unix:/a get";
        let Command::Token(args) = Args::try_parse_from(line.split_ascii_whitespace()).unwrap().command else {
            panic!("not a command about tokens")
        };
        let TokenCommand::Mirror(mirror) = args.command else { panic!("not a mirror") };
        assert_eq!((mirror.credential, mirror.action.as_deref()), (true, Some("get")));
        assert_eq!(
            (mirror.repository.to_string(), mirror.forge_host.to_string()),
            ("acme/api".into(), "github.com".into())
        );
    }
}
