//! What git's helpers, and a program that asks for passwords, answer for github.com.

use std::path::Path;
use std::process::Command;

use super::command::{self, Unanswered};
use super::git_config::without_variables;
use super::shapes::is_bearer;
use super::surroundings::Surroundings;
use super::{Findings, Kind};

/// What git would ask before a clone.
const QUESTION: &[u8] = b"protocol=https\nhost=github.com\n\n";

/// Asks in each folder of work, whose repository may have a helper of its own.
pub(super) fn look(surroundings: &Surroundings, findings: &mut Findings) {
    for folder in surroundings.workspaces() {
        let git = question(folder);
        let without = without_variables(surroundings, &git);
        for git in [git].into_iter().chain(without) {
            match command::run(git, QUESTION) {
                Ok(answer) if is_credential(&answer) => {
                    findings.add(Kind::Helper, format!("git credential fill, in {}", folder.display()));
                    break;
                }
                Err(Unanswered::Late) => findings
                    .stopped_short(format!("{}: git credential fill gave no answer in time", folder.display())),
                Ok(_) | Err(Unanswered::Missing | Unanswered::Failed) => {}
            }
        }
    }
}

fn question(folder: &Path) -> Command {
    let mut git = Command::new("git");
    // GIT_ASKPASS stays: editors answer there with a token. Nobody is asked.
    git.args(["credential", "fill"]).current_dir(folder).env("GIT_TERMINAL_PROMPT", "0");
    git.env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY").env("GCM_INTERACTIVE", "0");
    git
}

fn is_credential(answer: &[u8]) -> bool {
    let answer = String::from_utf8_lossy(answer);
    let mut values = answer
        .lines()
        .filter_map(|line| line.strip_prefix("password=").or_else(|| line.strip_prefix("credential=")));
    values.any(|value| !value.is_empty() && !is_bearer(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_a_credential_where_it_has_one_that_is_no_bearer() {
        let bearer = "password=sbr_r1.AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8\n";
        for (answer, is) in [
            ("protocol=https\nusername=x\npassword=y\n", true),
            ("authtype=Bearer\ncredential=y\n", true),
            ("username=x\npassword=\n", false),
            ("protocol=https\nhost=github.com\n", false),
            (bearer, false),
            ("", false),
        ] {
            assert_eq!(is_credential(answer.as_bytes()), is, "{answer}");
        }
    }
}
