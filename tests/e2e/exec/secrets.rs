//! What opens GitHub stays in the one process: a command of the same user finds it nowhere.

use gitdoor_tests::gh;
use gitdoor_tests::laptop::{DECOY, Laptop};

use crate::PROGRAM;

/// Looks for what there is to be found, into files that are then searched. `$1` is the state folder.
const LOOK: &str = "
    env >environment
    cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline >processes 2>/dev/null || :
    cat /proc/$PPID/environ /proc/$PPID/cmdline >parent || :
    find \"$STATE\" -type f -exec cat {} + >state
    git clone --quiet https://github.com/acme/api
    cd api && gh pr view 42 --json=title && gh auth status 2>&1 || :";

fn look(laptop: &Laptop) -> String {
    format!("STATE='{}'\n{LOOK}", laptop.state().display())
}

#[tokio::test]
async fn a_token_of_the_developers_is_in_no_environment_no_file_and_no_log() {
    let laptop = Laptop::new(PROGRAM, &gh::newest());
    let flag = laptop.token_flag();
    let token = laptop.github.tokens().pop().unwrap().text;
    laptop.shell(&[&flag, "--log-level=trace", "--no-isolation"], &look(&laptop)).await.ok().says("Greet by name");
    laptop.assert_nowhere("the developer's token", token.trim_start_matches("ghs_"));
    let environment = std::fs::read_to_string(laptop.work().join("environment")).unwrap();
    for name in ["GH_TOKEN=", "SSH_AUTH_SOCK=", "GITDOOR_", DECOY] {
        assert!(!environment.contains(name), "{name}");
    }
}

#[tokio::test]
async fn neither_an_apps_key_nor_its_tokens_are() {
    let laptop = Laptop::new(PROGRAM, &gh::newest());
    let app = laptop.app();
    let flags = [app[0].as_str(), &app[1], &app[2], "--read-statuses", "--log-level=trace", "--no-isolation"];
    laptop.shell(&flags, &look(&laptop)).await.ok().says("Greet by name");
    let key = std::fs::read_to_string(laptop.github.app_key_file()).unwrap();
    laptop.assert_nowhere("a line of the App's key", key.lines().nth(3).unwrap());
    assert!(!laptop.github.tokens().is_empty());
    for token in laptop.github.tokens() {
        laptop.assert_nowhere("a token of the App's", token.text.trim_start_matches("ghs_"));
    }
}

#[tokio::test]
async fn the_command_cannot_ask_control_for_what_the_door_is_given() {
    let laptop = Laptop::new(PROGRAM, &gh::newest());
    let token = laptop.token_flag();
    let ask = format!(
        "'{PROGRAM}' __gitdoor run list --control unix:$(echo '{}'/exec-*/gate) 2>&1",
        laptop.state().display()
    );
    laptop.shell(&[&token, "--no-isolation"], &ask).await.code_is(1).does_not_say("--gate-listen");
    let log = std::fs::read_to_string(laptop.places()[0].join("log")).unwrap();
    assert!(log.contains("a connection of another process was turned away"), "{log}");
}
