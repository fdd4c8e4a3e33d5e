//! The command line: flags, their environment variables, and the text of `--help`.
//!
//! What does not parse here is a usage error (exit code 2); whether a control can be used is for the client.

mod certs;
mod control;
mod doctor;
mod env;
mod exec;
mod inside;
mod rules;
mod token;

use std::time::Duration;

use clap::builder::FalseyValueParser;
use clap::{Parser, Subcommand, ValueEnum};
use gitdoor_proto::RunId;
use gitdoor_proto::endpoint::Endpoint;

pub(crate) use certs::{CertsArgs, Name};
pub(crate) use control::ControlTls;
pub(crate) use doctor::DoctorArgs;
pub(crate) use env::{EnvArgs, Format};
pub(crate) use exec::{AppFlags, ExecArgs, FenceFlags};
pub(crate) use inside::InsideArgs;
pub(crate) use rules::Rules;

pub(crate) use self::token::{Mirror, TokenArgs, TokenCommand};

/// Shortest and longest budget that control gives, in seconds.
const BUDGET_SECONDS: std::ops::RangeInclusive<u64> = 1..=24 * 60 * 60;
/// Most API requests at once, and a second, that control gives.
const API_BURST: u32 = 100_000;
const API_RATE: f64 = 10_000.0;

const ABOUT: &str = "\
The operator's command line of gitdoor, the git door for sandboxed runs.

A run is a piece of work in a sandbox, and its bearer is the only git credential it holds. This program \
registers a run and prints its bearer, gives a run more time or a new bearer, ends a run, and shows what a run is \
bound to and what it pushed. For a trusted host that keeps a clone it prints a token that reads one repository. It \
speaks to gitdoor-control's Runs listener and holds nothing itself.";

const AFTER: &str = "\
Examples:
  Register a run that may push to one repository, and keep its bearer:
    gitdoor run register --run-id fix-1234 --identity write --repository acme/api > bearer

  The same, but the run binds to the first repository that it pushes to:
    gitdoor run register --run-id fix-1234 --identity write --branch 'agent/*' > bearer

  What did it push, and what was refused?
    gitdoor run show fix-1234

  Take it over, with an hour from now:
    gitdoor run adopt fix-1234 --budget 1h

  End it; once this returns, no push of the run can still complete:
    gitdoor run revoke fix-1234

  A token for a trusted host's clone of a repository; and which were handed out?
    gitdoor token mirror --repository acme/api
    gitdoor token list

  On one machine: an agent behind a door of its own
    gitdoor exec --from-gh --repository acme/api --branch 'agent/*' -- claude

  Wire a sandbox to the door; and, in it: is there a GitHub credential?
    eval \"$(gitdoor env --host git.example.com --bearer-file bearer)\"
    gitdoor doctor

Exit status:
   0  done
   1  refused, or failed; the reason is on standard error, with what to do
   2  usage: an unknown flag, or a value that does not parse
  64  configuration that parses but cannot be used, such as plain http:// to another machine

Environment:
  Each flag is also a variable, in capitals and with underscores: GITDOOR_CONTROL for --control, GITDOOR_BUDGET \
for --budget. Where a flag may be repeated, the variable's values are separated by commas. A flag wins.";

const RUN_AFTER: &str = "\
Times are in UTC. With --json, standard output holds exactly one JSON object, times are RFC 3339, and what is \
absent is null.";

const REGISTER_AFTER: &str = "\
Output:
  The bearer, on a line of its own on standard output; a summary, on standard error. The bearer is shown this once \
and is stored nowhere: when it is lost, `gitdoor run rotate` makes another.
  With --json: run_id, bearer, expires_at, repository.

Asking twice:
  The same registration again, before the bearer's first use, makes a new bearer and kills the one before. After its \
first use, after an adoption, or with other flags, it is refused.";

const ADOPT_AFTER: &str = "\
The run keeps its bearer, what it is bound to, and how it was narrowed. Its new time may end sooner than the one \
before. A run that was revoked, or has expired, cannot be adopted. Asking again does no harm: the time counts from the \
last one.

With --json: what `gitdoor run show` prints, without the pushes.";

const SHOW_AFTER: &str = "\
Outcomes of a push:
  open              allowed; its end is not known yet
  done              the forge took every ref
  refused           refused at the door; nothing was forwarded
  refused-upstream  the forge refused at least one ref
  interrupted       cut before its end
  unknown           the data plane that carried it was lost

With --json: run_id, identity, state (live, revoked, expired), repository, repository_id, default_branch, \
expires_at, adopted_at, pushes.";

/// The whole command line.
#[derive(Debug, Parser)]
#[command(name = "gitdoor", version, about = "The operator's command line of gitdoor", long_about = ABOUT)]
#[command(after_long_help = AFTER, max_term_width = 100)]
pub(crate) struct Args {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Register, adopt, rotate, revoke and show runs
    #[command(after_long_help = RUN_AFTER)]
    Run(Box<RunArgs>),
    /// Ask for tokens for mirrors, and list those that were handed out
    #[command(after_long_help = token::TOKEN_AFTER)]
    Token(Box<TokenArgs>),
    /// Make a small CA and the certificates of a first deployment
    #[command(after_long_help = certs::AFTER)]
    Certs(CertsArgs),
    /// Print the environment of a sandbox, and write its bearer where git and gh find it
    #[command(after_long_help = env::AFTER)]
    Env(Box<EnvArgs>),
    /// Look for GitHub credentials in the workspace that this runs in, and ask the door what its run may do
    #[command(after_long_help = doctor::AFTER)]
    Doctor(Box<DoctorArgs>),
    /// Run a command behind a door of its own on this machine
    #[command(after_long_help = exec::AFTER)]
    Exec(Box<ExecArgs>),
    /// Become a command behind a fence that was set up around this program
    #[command(name = "__inside", hide = true)]
    Inside(InsideArgs),
    /// Take the terminal for the group of this process
    #[command(name = "__foreground", hide = true)]
    Foreground,
    /// Print a completion script for a shell
    ///
    /// For bash: `gitdoor completion bash > /etc/bash_completion.d/gitdoor`
    Completion {
        /// The shell
        shell: Shell,
    },
}

/// The shells with a completion script.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Shell {
    /// GNU bash.
    Bash,
    /// Z shell.
    Zsh,
    /// fish.
    Fish,
}

/// Who is asked, how long is waited, and how the answer is shown.
#[derive(Debug, clap::Args)]
pub(crate) struct Asking {
    /// Where control's Runs listener is: unix:PATH, http://HOST:PORT or https://HOST:PORT
    ///
    /// May be repeated: the next one is asked when one cannot be reached, or says that it is unavailable. Plain
    /// http:// is for this machine's loopback addresses alone; https:// needs the three --control-tls flags.
    #[arg(long, global = true, value_name = "URL|unix:PATH", env = "GITDOOR_CONTROL", hide_env_values = true)]
    #[arg(value_delimiter = ',', default_value = "unix:/run/gitdoor/runs.sock")]
    pub(crate) control: Vec<Endpoint>,

    /// Certificates towards control.
    #[command(flatten)]
    pub(crate) tls: ControlTls,

    /// How long to wait for an answer; revoke waits 5 seconds more, for pushes to end
    #[arg(long, global = true, value_name = "TIME", env = "GITDOOR_TIMEOUT", hide_env_values = true)]
    #[arg(value_parser = timeout, default_value = "10s")]
    pub(crate) timeout: Duration,

    /// Print one JSON object
    #[arg(long, global = true, env = "GITDOOR_JSON", hide_env_values = true, value_parser = FalseyValueParser::new())]
    pub(crate) json: bool,
}

/// What all commands about runs have in common.
#[derive(Debug, clap::Args)]
pub(crate) struct RunArgs {
    /// Who is asked.
    #[command(flatten)]
    pub(crate) asking: Asking,

    /// What to do.
    #[command(subcommand)]
    pub(crate) command: RunCommand,
}

/// The commands about runs.
#[derive(Debug, Subcommand)]
pub(crate) enum RunCommand {
    /// Register a run and print its bearer, the only time it is shown
    #[command(after_long_help = REGISTER_AFTER)]
    Register(Register),
    /// Take a live run over, with a new budget from now; its bearer and its binding stay
    #[command(after_long_help = ADOPT_AFTER)]
    Adopt(Adopt),
    /// Give a live run a new bearer; the old one dies at once
    Rotate(Named),
    /// End a run for good; returns once no push of it can still complete
    Revoke(Named),
    /// Show a run and its pushes, newest first
    #[command(after_long_help = SHOW_AFTER)]
    Show(Named),
    /// List all runs
    List,
}

/// A run that exists.
#[derive(Debug, clap::Args)]
pub(crate) struct Named {
    /// The run's id
    #[arg(value_name = "RUN_ID", value_parser = RunId::parse)]
    pub(crate) run_id: RunId,
}

/// A run to be taken over.
#[derive(Debug, clap::Args)]
pub(crate) struct Adopt {
    /// The run.
    #[command(flatten)]
    pub(crate) run: Named,

    /// How long the run may take from now, 1s to 24h; its bearer lives five minutes longer
    #[arg(long, value_name = "TIME", env = "GITDOOR_BUDGET", hide_env_values = true)]
    #[arg(value_parser = budget, default_value = "45m")]
    pub(crate) budget: Duration,
}

/// What a run may be towards the forge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Identity {
    /// No access at all: every request is refused
    None,
    /// Fetch, clone and API reads
    Read,
    /// What read may, and pushes to the non-default branches of one repository
    Write,
}

/// A run to be.
#[derive(Debug, clap::Args)]
pub(crate) struct Register {
    /// The run's id: 1 to 64 of A-Z, a-z, 0-9, "_" and "-"
    #[arg(long, value_name = "ID", env = "GITDOOR_RUN_ID", hide_env_values = true)]
    #[arg(value_parser = RunId::parse)]
    pub(crate) run_id: RunId,

    /// What the run may be
    #[arg(long, env = "GITDOOR_IDENTITY", hide_env_values = true)]
    pub(crate) identity: Identity,

    /// How long the run may take, 1s to 24h; its bearer lives five minutes longer
    #[arg(long, value_name = "TIME", env = "GITDOOR_BUDGET", hide_env_values = true)]
    #[arg(value_parser = budget, default_value = "45m")]
    pub(crate) budget: Duration,

    /// How it is narrowed.
    #[command(flatten)]
    pub(crate) rules: Rules,
}

/// Text that is no value of its flag.
#[derive(Debug, thiserror::Error)]
enum InvalidValue {
    #[error("{0}; write it like 45m, or 1h 30m")]
    Duration(#[from] humantime::DurationError),
    #[error("a budget is from 1s to 24h")]
    Budget,
    #[error("a timeout is more than 0s")]
    Timeout,
    #[error("a rate is a number above 0 and at most 10000")]
    Rate,
}

fn budget(text: &str) -> Result<Duration, InvalidValue> {
    let budget = humantime::parse_duration(text)?;
    let (least, most) = (Duration::from_secs(*BUDGET_SECONDS.start()), Duration::from_secs(*BUDGET_SECONDS.end()));
    if (least..=most).contains(&budget) { Ok(budget) } else { Err(InvalidValue::Budget) }
}

fn timeout(text: &str) -> Result<Duration, InvalidValue> {
    let timeout = humantime::parse_duration(text)?;
    if timeout.is_zero() { Err(InvalidValue::Timeout) } else { Ok(timeout) }
}

fn rate(text: &str) -> Result<f64, InvalidValue> {
    match text.parse::<f64>() {
        Ok(rate) if rate > 0.0 && rate <= API_RATE => Ok(rate),
        Ok(_) | Err(_) => Err(InvalidValue::Rate),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use clap::error::ErrorKind;
    use gitdoor_proto::Pattern;

    use super::*;

    fn parse(line: &str) -> Result<Box<RunArgs>, clap::Error> {
        match Args::try_parse_from(line.split_ascii_whitespace())?.command {
            Command::Run(args) => Ok(args),
            Command::Token(_)
            | Command::Certs(_)
            | Command::Env(_)
            | Command::Doctor(_)
            | Command::Exec(_)
            | Command::Inside(_)
            | Command::Foreground
            | Command::Completion { .. } => {
                panic!("not a command about runs: {line}")
            }
        }
    }

    fn register(line: &str) -> Register {
        let RunCommand::Register(register) = parse(line).unwrap().command else {
            panic!("no registration: {line}")
        };
        register
    }

    #[test]
    fn the_declarations_agree_with_each_other() {
        Args::command().debug_assert();
    }

    #[test]
    fn a_registration_has_the_promised_defaults() {
        let run = register("gitdoor run register --run-id r1 --identity write");
        assert_eq!((run.run_id.as_str(), run.identity), ("r1", Identity::Write));
        assert_eq!(run.budget, Duration::from_mins(45));
        let rules = run.rules;
        assert!(rules.repository.is_none() && rules.branches.is_empty() && rules.read_repositories.is_empty());
        assert_eq!(
            (rules.max_refs, rules.no_workflows, rules.api_burst, rules.api_rate),
            (None, false, None, None)
        );
    }

    #[test]
    fn a_registration_takes_every_flag() {
        let run = register(
            "gitdoor run register --run-id r1 --identity write --repository acme/api --budget 90m --branch agent/* \
             --branch fix --max-refs 3 --no-workflows --read-repository a/b --read-repository c/d --api-burst 9 \
             --api-rate 0.5",
        );
        assert_eq!(run.budget, Duration::from_mins(90));
        let rules = run.rules;
        assert_eq!(rules.repository.unwrap().to_string(), "acme/api");
        assert_eq!(rules.branches.iter().map(Pattern::as_str).collect::<Vec<_>>(), ["agent/*", "fix"]);
        assert_eq!(rules.read_repositories.len(), 2);
        assert_eq!((rules.max_refs, rules.no_workflows), (Some(3), true));
        assert_eq!((rules.api_burst, rules.api_rate), (Some(9), Some(0.5)));
    }

    #[test]
    fn an_adoption_gives_as_much_time_as_a_registration_unless_it_says_so() {
        for (line, budget) in [
            ("gitdoor run adopt r1", Duration::from_mins(45)),
            ("gitdoor run adopt --budget 1h r1", Duration::from_hours(1)),
        ] {
            let RunCommand::Adopt(adopt) = parse(line).unwrap().command else { panic!("no adoption: {line}") };
            assert_eq!((adopt.run.run_id.as_str(), adopt.budget), ("r1", budget), "{line}");
        }
    }

    #[test]
    fn the_common_flags_stand_before_or_after_the_command() {
        for line in [
            "gitdoor run --control unix:/a --control http://127.0.0.1:1 --timeout 3s --json show r1",
            "gitdoor run show r1 --control unix:/a --control http://127.0.0.1:1 --timeout 3s --json",
        ] {
            let args = parse(line).unwrap();
            let controls: Vec<_> = args.asking.control.iter().map(ToString::to_string).collect();
            assert_eq!(controls, ["unix:/a", "http://127.0.0.1:1"], "{line}");
            assert_eq!((args.asking.timeout, args.asking.json), (Duration::from_secs(3), true), "{line}");
        }
        let args = parse("gitdoor run list").unwrap();
        assert_eq!(args.asking.control.first().unwrap().to_string(), "unix:/run/gitdoor/runs.sock");
        assert_eq!(args.asking.timeout, Duration::from_secs(10));
    }

    #[test]
    fn a_value_that_does_not_parse_is_a_usage_error() {
        for line in [
            "gitdoor run register --identity write --run-id a.b",
            "gitdoor run adopt a.b",
            "gitdoor run adopt r1 --budget 0s",
            "gitdoor run adopt r1 --budget 25h",
            "gitdoor run register --run-id r1 --identity admin",
            "gitdoor run register --run-id r1 --identity write --repository acme",
            "gitdoor run register --run-id r1 --identity write --budget soon",
            "gitdoor run register --run-id r1 --identity write --budget 0s",
            "gitdoor run register --run-id r1 --identity write --budget 25h",
            "gitdoor run register --run-id r1 --identity write --branch refs/heads/a",
            "gitdoor run register --run-id r1 --identity write --max-refs 0",
            "gitdoor run register --run-id r1 --identity write --api-rate=-1",
            "gitdoor run register --run-id r1 --identity write --api-rate NaN",
            "gitdoor run register --run-id r1 --identity write --api-rate inf",
            "gitdoor run register --run-id r1 --identity write --api-rate 10001",
            "gitdoor run register --run-id r1 --identity write --api-burst 0",
            "gitdoor run register --run-id r1 --identity write --api-burst 100001",
            "gitdoor run list --control nowhere",
            "gitdoor run list --control unix:",
            "gitdoor run list --timeout 0s",
            "gitdoor run show a/b",
            "gitdoor token mirror --repository acme",
            "gitdoor token mirror --repository acme/api --forge-host https://github.com",
        ] {
            let error = parse(line).unwrap_err();
            assert_eq!(error.exit_code(), 2, "{line}: {error}");
            assert!(
                matches!(error.kind(), ErrorKind::ValueValidation | ErrorKind::InvalidValue),
                "{line}: {error}"
            );
        }
    }

    #[test]
    fn what_is_missing_or_unknown_is_a_usage_error() {
        for line in [
            "gitdoor",
            "gitdoor run",
            "gitdoor run register --run-id r1",
            "gitdoor run register --identity read",
            "gitdoor run show",
            "gitdoor run adopt",
            "gitdoor run adopt r1 --identity write",
            "gitdoor run list r1",
            "gitdoor run show r1 --repository a/b",
            "gitdoor token",
            "gitdoor token mirror",
            "gitdoor token list --repository a/b",
            "gitdoor env",
            "gitdoor env --host a --variables-only --config-dir b",
            "gitdoor doctor --host a",
            "gitdoor doctor --bearer-file a",
        ] {
            assert_eq!(Args::try_parse_from(line.split_ascii_whitespace()).unwrap_err().exit_code(), 2, "{line}");
        }
    }

    #[test]
    fn each_flag_is_also_a_variable_of_its_name() {
        fn check(command: &clap::Command) {
            for arg in command.get_arguments() {
                let Some(flag) = arg.get_long().filter(|flag| !["help", "version"].contains(flag)) else {
                    continue;
                };
                let expected = format!("GITDOOR_{}", flag.to_uppercase().replace('-', "_"));
                assert_eq!(arg.get_env().and_then(|name| name.to_str()), Some(expected.as_str()), "--{flag}");
            }
            // What only this program calls is called with flags alone.
            command.get_subcommands().filter(|command| !command.is_hide_set()).for_each(check);
        }
        check(&Args::command());
    }
}
