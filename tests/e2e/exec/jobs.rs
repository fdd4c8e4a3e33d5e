//! Job control: keys that send signals reach the command, and what becomes of it the shell sees.

use std::fs;

use gitdoor_tests::gh;
use gitdoor_tests::laptop::Laptop;
use gitdoor_tests::terminal::Terminal;
use gitdoor_tests::wait::until;

use crate::PROGRAM;

/// Stays until there is a file of this name; then the door is asked for something.
const STAY: &str = "echo started; until test -e go; do sleep 0.02; done
    git ls-remote --exit-code https://github.com/acme/api main >/dev/null && echo asked";

fn laptop() -> (Laptop, String) {
    let laptop = Laptop::new(PROGRAM, &gh::newest());
    let token = laptop.token_flag();
    (laptop, token)
}

/// Asserts that each run is over.
fn assert_over(laptop: &Laptop, runs: usize) {
    let states: Vec<_> = laptop.places().iter().map(|place| Laptop::record(place)["state"].clone()).collect();
    assert_eq!(states, vec!["revoked"; runs]);
}

/// Waits until the shell has seen that its job is stopped.
async fn is_stopped(terminal: &mut Terminal) {
    terminal.shows("Stopped").await;
    terminal.prompts().await;
    assert!(terminal.is_the_shells());
}

#[tokio::test]
async fn an_interrupt_is_the_commands_to_answer_and_comes_once() {
    let (laptop, token) = laptop();
    let mut terminal = laptop.terminal().await;
    for flags in [&[token.as_str(), "--quiet"][..], &[&token, "--quiet", "--no-isolation"]] {
        let answer = format!("trap 'echo heard' INT; {STAY}; exit 5");
        terminal.enter(&laptop.typed(flags, &answer));
        terminal.shows("started").await;
        terminal.press("\x03");
        terminal.shows("heard").await;
        fs::write(laptop.work().join("go"), "").unwrap();
        assert_eq!(terminal.prompts().await.matches("heard").count(), 0);
        assert_eq!(terminal.status().await, "5");
        fs::remove_file(laptop.work().join("go")).unwrap();
    }
    assert_over(&laptop, 2);
}

#[tokio::test]
async fn an_interrupt_or_a_quit_that_the_command_does_not_answer_ends_it_and_the_run() {
    let (laptop, token) = laptop();
    let mut terminal = laptop.terminal().await;
    for (key, status) in [("\x03", "130"), ("\x1c", "131")] {
        for flags in [&[token.as_str(), "--quiet"][..], &[&token, "--quiet", "--no-isolation"]] {
            terminal.enter(&laptop.typed(flags, "echo started; exec sleep 3600"));
            terminal.shows("started").await;
            terminal.press(key);
            terminal.prompts().await;
            assert_eq!(terminal.status().await, status, "{flags:?}");
        }
    }
    assert_over(&laptop, 4);
}

#[tokio::test]
async fn a_stop_gives_the_shell_its_prompt_back_and_then_all_goes_on() {
    let (laptop, token) = laptop();
    let mut terminal = laptop.terminal().await;
    for flags in [&[token.as_str(), "--quiet"][..], &[&token, "--quiet", "--no-isolation"]] {
        terminal.enter(&laptop.typed(flags, STAY));
        terminal.shows("started").await;
        terminal.press("\x1a");
        is_stopped(&mut terminal).await;
        terminal.enter("fg");
        fs::write(laptop.work().join("go"), "").unwrap();
        terminal.shows("asked").await;
        terminal.prompts().await;
        assert_eq!(terminal.status().await, "0");
        fs::remove_file(laptop.work().join("go")).unwrap();
    }
    assert_over(&laptop, 2);
}

/// Clears the screen before it stops, which takes its time.
const CLEAR: &str = r#"exec perl -e '
    $| = 1;
    $SIG{TSTP} = sub { select(undef, undef, undef, 0.3); print "cleared\n"; kill STOP => $$; print "on\n"; exit 3 };
    print "started\n";
    sleep 1 while 1'"#;

#[tokio::test]
async fn a_command_that_answers_a_stop_has_its_time_before_the_shell_has_the_terminal() {
    let (laptop, token) = laptop();
    let mut terminal = laptop.terminal().await;
    for flags in [&[token.as_str(), "--quiet"][..], &[&token, "--quiet", "--no-isolation"]] {
        terminal.enter(&laptop.typed(flags, CLEAR));
        terminal.shows("started").await;
        terminal.press("\x1a");
        let shown = terminal.shows("Stopped").await;
        assert!(shown.contains("cleared"), "{shown}");
        terminal.prompts().await;
        terminal.enter("fg");
        terminal.shows("on\r\n").await;
        terminal.prompts().await;
        assert_eq!(terminal.status().await, "3");
    }
}

#[tokio::test]
async fn a_command_that_stops_itself_alone_is_seen_by_the_shell_and_goes_on_with_the_door() {
    let (laptop, token) = laptop();
    let mut terminal = laptop.terminal().await;
    for flags in [&[token.as_str(), "--quiet"][..], &[&token, "--quiet", "--no-isolation"]] {
        terminal.enter(&laptop.typed(flags, &format!("kill -STOP $$; {STAY}; exit 3")));
        is_stopped(&mut terminal).await;
        terminal.enter("fg");
        terminal.shows("started").await;
        fs::write(laptop.work().join("go"), "").unwrap();
        terminal.shows("asked").await;
        terminal.prompts().await;
        assert_eq!(terminal.status().await, "3");
        fs::remove_file(laptop.work().join("go")).unwrap();
    }
}

#[tokio::test]
async fn a_shell_inside_that_suspends_itself_has_the_terminal_again() {
    let (laptop, token) = laptop();
    let mut terminal = laptop.terminal().await;
    for flags in [&[token.as_str(), "--quiet"][..], &[&token, "--quiet", "--no-isolation"]] {
        let shell = "PS1='inside> ' exec bash --norc --noprofile --noediting -i";
        terminal.enter(&laptop.typed(flags, shell));
        terminal.shows("inside> ").await;
        terminal.enter("suspend -f");
        is_stopped(&mut terminal).await;
        terminal.enter("fg");
        until("the job has the terminal", async || !terminal.is_the_shells()).await;
        terminal.enter("echo $((6 * 7)) is read");
        terminal.shows("42 is read").await;
        terminal.enter("exit 4");
        terminal.prompts().await;
        assert_eq!(terminal.status().await, "4");
    }
}

#[tokio::test]
async fn in_the_background_it_leaves_the_terminal_alone_and_stops_when_the_command_reads() {
    let (laptop, token) = laptop();
    let mut terminal = laptop.terminal().await;
    let read = "echo started; until test -e go; do sleep 0.02; done; read word; echo \"got $word\"";
    let said = terminal.run(&format!("{} &", laptop.typed(&[&token, "--quiet"], read))).await;
    // The shell's prompt comes before it, or after.
    if !said.contains("started\r\n") {
        terminal.shows("started\r\n").await;
    }
    assert!(terminal.is_the_shells());
    assert_eq!(terminal.run("echo mine").await, "mine\r\n");
    fs::write(laptop.work().join("go"), "").unwrap();
    let said = terminal.run("until jobs %1 | grep Stopped; do sleep 0.02; done").await;
    assert!(said.contains("Stopped"), "{said}");
    terminal.enter("fg");
    until("the job has the terminal", async || !terminal.is_the_shells()).await;
    terminal.enter("this");
    terminal.shows("got this").await;
    terminal.prompts().await;
    assert_over(&laptop, 1);
}

#[tokio::test]
async fn when_the_terminal_is_closed_the_command_is_told_and_the_run_is_over() {
    for flag in ["--quiet", "--no-isolation"] {
        let (laptop, token) = laptop();
        let mut terminal = laptop.terminal().await;
        let hear = "trap 'echo heard >heard; exit' HUP; echo started; while :; do sleep 0.02; done";
        terminal.enter(&laptop.typed(&[&token, flag], hear));
        terminal.shows("started").await;
        terminal.close();
        until("the run is over", async || laptop.places().iter().all(|place| place.join("run.json").exists()))
            .await;
        assert_eq!(fs::read_to_string(laptop.work().join("heard")).unwrap(), "heard\n", "{flag}");
        until("nothing else is left", async || gitdoor_tests::laptop::names(&laptop.places()[0]).len() == 2).await;
        assert_over(&laptop, 1);
    }
}
