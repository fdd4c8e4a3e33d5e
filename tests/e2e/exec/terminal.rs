//! In front of a person: the command has their terminal, whole and for itself, and they have it back as it was.

use std::fs;
use std::time::Duration;

use gitdoor_tests::gh;
use gitdoor_tests::github::{Fault, Route};
use gitdoor_tests::laptop::Laptop;

use super::COMMIT;
use crate::PROGRAM;

/// With the fence, and without.
const BOTH: [&[&str]; 2] = [&["--quiet"], &["--quiet", "--no-isolation"]];

fn laptop() -> (Laptop, String) {
    let laptop = Laptop::new(PROGRAM, &gh::newest());
    let token = laptop.token_flag();
    (laptop, token)
}

fn with<'a>(token: &'a str, flags: &[&'a str]) -> Vec<&'a str> {
    [&[token], flags].concat()
}

#[tokio::test]
async fn the_command_has_the_terminal_with_its_name_and_its_size() {
    let (laptop, token) = laptop();
    let mut terminal = laptop.terminal().await;
    for flags in BOTH {
        let look = "test -t 0 && test -t 1 && test -t 2 && test -c \"$(tty)\" && : <>/dev/tty && stty size";
        assert_eq!(terminal.run(&laptop.typed(&with(&token, flags), look)).await, "30 100\r\n", "{flags:?}");
    }
}

#[tokio::test]
async fn a_change_of_the_size_reaches_the_command() {
    let (laptop, token) = laptop();
    let mut terminal = laptop.terminal().await;
    for flags in BOTH {
        terminal.resize(30, 100);
        let wait = "trap 'stty size; exit' WINCH; echo started; while :; do sleep 0.02; done";
        terminal.enter(&laptop.typed(&with(&token, flags), wait));
        terminal.shows("started").await;
        terminal.resize(40, 120);
        terminal.shows("40 120\r\n").await;
        terminal.prompts().await;
    }
}

#[tokio::test]
async fn a_command_may_have_each_key_and_the_terminal_is_as_it_was_when_it_is_killed() {
    let (laptop, token) = laptop();
    let mut terminal = laptop.terminal().await;
    for flags in BOTH {
        let raw = "stty raw -echo; printf started; dd bs=1 count=3 2>/dev/null | od -An -tx1; kill -KILL $$";
        terminal.enter(&laptop.typed(&with(&token, flags), raw));
        terminal.shows("started").await;
        assert!(!terminal.is_cooked());
        terminal.press("\x03\x1a\r");
        assert_eq!(terminal.prompts().await.trim_start(), "03 1a 0d\nprompt> ", "{flags:?}");
        assert!(terminal.is_cooked(), "{flags:?}");
        assert_eq!(terminal.status().await, "137");
    }
}

#[tokio::test]
async fn in_a_pipeline_the_terminal_is_left_to_whom_it_shows() {
    let (laptop, token) = laptop();
    let mut terminal = laptop.terminal().await;
    for flags in BOTH {
        let go = laptop.work().join("go");
        let wait = "echo started; until test -e go; do sleep 0.02; done";
        let command = laptop.typed(&with(&token, flags), wait);
        // What a pager does to it, once there is something to show.
        let pager = format!("(read word; stty ixany </dev/tty; : >'{}')", go.display());
        terminal.run(&format!("{command} | {pager}")).await;
        assert_eq!(terminal.run("stty -a | grep -o -e '-*ixany'").await, "ixany\r\n", "{flags:?}");
        terminal.run("stty -ixany").await;
        fs::remove_file(go).unwrap();
    }
}

#[tokio::test]
async fn the_end_of_the_input_is_the_commands() {
    let (laptop, token) = laptop();
    let mut terminal = laptop.terminal().await;
    terminal.enter(&laptop.typed(&[&token, "--quiet"], "echo started; cat; echo ended"));
    terminal.shows("started").await;
    terminal.press("\x04");
    terminal.shows("ended").await;
    terminal.prompts().await;
    assert_eq!(terminal.status().await, "0");
}

#[tokio::test]
async fn nothing_is_shown_but_the_commands_own_bytes_while_it_runs() {
    let (laptop, token) = laptop();
    let mut terminal = laptop.terminal().await;
    laptop.github.when(Route::UploadPack).skip(2).then(Fault::Reset);
    let work = format!(
        "printf '\\033[?1049hbegin'
         (git clone --quiet https://github.com/acme/api && cd api && git switch --quiet -c fix && {COMMIT}
          git push origin HEAD:main; git push origin fix; git clone --quiet https://github.com/acme/none
          git fetch origin; git fetch origin; gh pr merge 42 --merge) >said 2>&1
         printf 'end\\033[?1049l'"
    );
    terminal.enter(&laptop.typed(&[&token, "--log-level=trace", "--repository=acme/api"], &work));
    assert!(terminal.shows("begin").await.contains("may push branches of acme/api, never main; log: "));
    assert_eq!(terminal.shows("end").await, "end");
    assert_eq!(terminal.prompts().await, "\x1b[?1049lprompt> ");
    let said = fs::read_to_string(laptop.work().join("said")).unwrap();
    assert!(said.contains("refused: default branch"), "{said}");
}

#[tokio::test]
async fn who_waits_at_a_terminal_is_told_for_what_and_nobody_else() {
    const WORDS: &str = "opening the door, which asks GitHub for acme/api...";
    let (laptop, token) = laptop();
    let flags = [token.as_str(), "--repository=acme/api", "--no-isolation"];
    let late = || laptop.github.when(Route::Repository).after(Duration::from_secs(3)).then(Fault::None);
    let mut terminal = laptop.terminal().await;
    late();
    let shown = terminal.run(&laptop.typed(&flags, "echo started")).await;
    assert!(shown.contains(WORDS), "{shown}");
    late();
    let quiet = laptop.typed(&with("--quiet", &flags), "echo started");
    assert_eq!(terminal.run(&quiet).await, "started\r\n");
    late();
    laptop.exec(&flags, &["true"]).await.ok().does_not_say(WORDS);
}

/// Puts a line into the input of the terminal, by each descriptor and by its name, and says what came of it.
const PUSH: &str = r#"
open my $tty, '+<', '/dev/tty'; my $line = "touch pushed\n";
for my $at (*STDIN, *STDOUT, *STDERR, $tty) {
    for my $key (split //, $line) { $said = ioctl($at, 0x5412, $key) ? 'let ' : $! + 0 . ' '; }
    my $paste = "\3"; print $said, ioctl($at, 0x541c, $paste) ? 'let' : $! + 0, "\n";
}"#;

#[tokio::test]
async fn the_shell_before_it_gets_nothing_that_the_command_puts_into_the_terminal() {
    let (laptop, token) = laptop();
    fs::write(laptop.work().join("push.pl"), PUSH).unwrap();
    let mut terminal = laptop.terminal().await;
    let shown = terminal.run(&laptop.typed(&[&token, "--quiet"], "perl push.pl")).await;
    assert_eq!(shown, "1 1\r\n".repeat(4), "EPERM");
    terminal.run("echo asked").await;
    assert!(!laptop.work().join("pushed").exists());
    // This is what it would have done, where the kernel lets anybody.
    let is_let = terminal.run("perl push.pl").await.contains("let ");
    terminal.enter("echo over; exit");
    terminal.shows("over\r\n").await;
    assert_eq!(laptop.work().join("pushed").exists(), is_let);
}
