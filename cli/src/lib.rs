//! `gitdoor`, the operator's command line: registers, rotates, revokes and shows runs over control's `Runs` service, asks
//! its `Tokens` service for mirrors, makes the certificates of a first deployment, wires and examines workspaces, and runs a
//! command behind a door of its own.
//!
//! What a command answers goes to standard output, everything else to standard error. A bearer or a token is written
//! once, to standard output, by the command that asked for it.

mod answer;
mod args;
mod bearer;
mod certs;
mod client;
mod credential;
mod doctor;
mod env;
mod exec;
mod failure;
pub mod fence;
mod output;
mod run;
mod token;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use crate::args::{Args, Command, Shell};
use crate::failure::Failure;

/// Runs the program with these arguments, the program's name first, and says how it ended: 0 done, 1 refused or
/// failed, 2 usage, 64 configuration that cannot be used.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args = match Args::try_parse_from(args) {
        Ok(args) => args,
        Err(usage) => return output::usage(&usage),
    };
    let performed = gitdoor_proto::process::close().map_err(Failure::Runtime).and_then(|()| perform(args.command));
    match performed {
        Ok(status) => status,
        Err(failure) => output::failure(&failure),
    }
}

/// The whole command line, for whoever documents it.
#[must_use]
pub fn command() -> clap::Command {
    Args::command()
}

fn perform(command: Command) -> Result<ExitCode, Failure> {
    let done = match command {
        // Its command says how it ended.
        Command::Exec(args) => return exec::perform(&args),
        Command::Run(args) => run::perform(*args),
        Command::Token(args) => token::perform(*args),
        Command::Certs(args) => output::write(certs::perform(&args)?.as_bytes()),
        Command::Env(args) => env::perform(*args),
        Command::Doctor(args) => doctor::perform(*args),
        Command::Inside(args) => Ok(fence::enter(args)?),
        Command::Foreground => fence::take_terminal().map_err(Failure::Runtime),
        Command::Completion { shell } => output::write(&completion(shell)),
    };
    done.map(|()| ExitCode::SUCCESS)
}

fn completion(shell: Shell) -> Vec<u8> {
    let mut script = Vec::new();
    let shell = match shell {
        Shell::Bash => clap_complete::Shell::Bash,
        Shell::Zsh => clap_complete::Shell::Zsh,
        Shell::Fish => clap_complete::Shell::Fish,
    };
    clap_complete::generate(shell, &mut Args::command(), "gitdoor", &mut script);
    script
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_shell_gets_a_script_that_knows_the_commands() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = String::from_utf8(completion(shell)).unwrap();
            assert!(
                script.contains("register") && script.contains("mirror") && script.contains("read-repository"),
                "{shell:?}"
            );
        }
    }
}
