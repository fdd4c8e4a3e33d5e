//! However a command or its `gitdoor exec` ends, the run is over, and nothing of the door answers.

use std::collections::BTreeSet;
use std::fs;

use gitdoor_tests::gh;
use gitdoor_tests::laptop::{Laptop, names, signal};
use gitdoor_tests::wait::until;

use super::COMMIT;
use crate::PROGRAM;

/// Says where git finds the door, and stays until there is a file of this name.
const STAY: &str =
    "echo \"$$ $(git config --get-regexp '^http[.].*[.]proxy$')\"; while ! test -e go; do sleep 0.02; done";

fn laptop() -> Laptop {
    Laptop::new(PROGRAM, &gh::newest())
}

/// The process and the port that `STAY` says.
fn read(line: &str) -> (u32, u16) {
    let (id, key) = line.split_once(' ').unwrap();
    let port = key.rsplit(':').next().unwrap().split('/').next().unwrap();
    (id.parse().unwrap(), port.parse().unwrap())
}

fn is_running(id: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{id}/stat"));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

/// What listens at a port: the numbers of its sockets, which no others have. The port may be somebody else's soon.
fn listeners(port: u16) -> BTreeSet<String> {
    let (end, listens) = (format!(":{port:04X}"), "0A");
    let table = fs::read_to_string("/proc/net/tcp").unwrap();
    let sockets = table.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
    let here = sockets.filter(|socket| socket[1].ends_with(&end) && socket[3] == listens);
    here.map(|socket| socket[9].to_owned()).collect()
}

/// What listens at a port where something does.
fn door(port: u16) -> BTreeSet<String> {
    let door = listeners(port);
    assert!(!door.is_empty(), "nobody listens at {port}");
    door
}

fn is_closed(port: u16, door: &BTreeSet<String>) -> bool {
    listeners(port).is_disjoint(door)
}

#[tokio::test]
async fn signals_reach_the_command_and_how_it_ends_is_told() {
    let laptop = laptop();
    let token = laptop.token_flag();
    for name in ["TERM", "INT", "HUP", "QUIT"] {
        let line = format!("trap 'exit 9' {name}; echo started; while :; do sleep 0.02; done");
        let mut running = laptop.start(&[&token, "--no-isolation"], &line);
        assert_eq!(running.line().await, "started");
        running.signal(name);
        assert_eq!(running.wait().await, Some(9), "{name}");
    }
    for place in laptop.places() {
        assert_eq!(Laptop::record(&place)["state"], "revoked");
    }
}

#[tokio::test]
async fn what_the_command_leaves_running_finds_nobody() {
    let laptop = laptop();
    let token = laptop.token_flag();
    let script = format!(
        "git clone --quiet https://github.com/acme/api
         cd api && git switch --quiet -c early && {COMMIT} && git push --quiet origin early
         (setsid sh -c 'while ! test -e ../go; do sleep 0.02; done
             git push origin early:late >../late 2>&1; echo $? >../status.part; mv ../status.part ../status' \
             >/dev/null 2>&1 &)
         {STAY}"
    );
    let mut running = laptop.start(&[&token, "--no-isolation"], &script);
    let (_, port) = read(&running.line().await);
    let door = door(port);
    fs::write(laptop.work().join("api/go"), "").unwrap();
    assert_eq!(running.wait().await, Some(0));
    assert!(is_closed(port, &door));
    fs::write(laptop.work().join("go"), "").unwrap();
    until("the push that was left has ended", async || laptop.work().join("status").exists()).await;
    assert_eq!(fs::read_to_string(laptop.work().join("status")).unwrap(), "128\n");
    assert!(laptop.github.ref_of("acme/api", "refs/heads/early").is_some());
    assert_eq!(laptop.github.ref_of("acme/api", "refs/heads/late"), None);
}

#[tokio::test]
async fn what_a_killed_one_left_is_ended_by_the_next() {
    let laptop = laptop();
    let token = laptop.token_flag();
    let flags = [token.as_str(), "--repository=acme/api", "--no-isolation"];
    let script = format!(
        "git clone --quiet https://github.com/acme/api
         (cd api && git switch --quiet -c fix && {COMMIT} && git push --quiet origin fix)
         {STAY}"
    );
    let mut running = laptop.start(&flags, &script);
    let (command, port) = read(&running.line().await);
    let door = door(port);
    running.signal("KILL");
    assert_eq!(running.wait().await, None);
    until("the command has ended, too", async || !is_running(command)).await;
    assert!(is_closed(port, &door));
    let [place] = laptop.places().try_into().unwrap();
    assert!(names(&place).contains(&"store.sqlite".to_owned()));

    laptop.exec(&flags, &["true"]).await.ok();
    let record = Laptop::record(&place);
    assert_eq!((&record["state"], &record["pushes"][0]["outcome"]), (&"revoked".into(), &"done".into()));
    assert_eq!(laptop.places().len(), 2);
}

#[tokio::test]
async fn two_at_once_leave_each_other_alone() {
    let laptop = laptop();
    let token = laptop.token_flag();
    let script = format!(
        "git clone --quiet https://github.com/acme/api
         {STAY}
         cd api && git switch --quiet -c fix && {COMMIT} && git push --quiet origin fix"
    );
    let mut first = laptop.start(&[&token, "--no-isolation"], &script);
    let (_, port) = read(&first.line().await);
    let door = door(port);
    laptop.shell(&[&token, "--no-isolation"], "git ls-remote --quiet https://github.com/acme/api").await.ok();
    assert_eq!(listeners(port), door);
    fs::write(laptop.work().join("go"), "").unwrap();
    assert_eq!(first.wait().await, Some(0));
    assert!(laptop.github.ref_of("acme/api", "refs/heads/fix").is_some());
    assert_eq!(
        laptop.places().iter().map(|place| Laptop::record(place)).filter(|run| run["state"] == "revoked").count(),
        2
    );
}

#[tokio::test]
async fn when_the_program_that_started_it_is_killed_it_ends_and_so_does_the_command() {
    let laptop = laptop();
    let token = laptop.token_flag();
    let mut shell = laptop.start_below_a_shell(&[&token, "--no-isolation"], STAY);
    let (command, port) = read(&shell.line().await);
    let door = door(port);
    signal(shell.id(), "KILL");
    until("the command has ended", async || !is_running(command)).await;
    until("the run is over", async || laptop.places().iter().all(|place| place.join("run.json").exists())).await;
    until("its door is closed", async || is_closed(port, &door)).await;
}
