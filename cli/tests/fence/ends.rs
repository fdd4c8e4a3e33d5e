//! How a command ends, and what ends with it.

use std::io::{BufRead as _, BufReader, Read as _};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use crate::{Place, text};

#[test]
fn its_exit_status_is_passed_on() {
    let place = Place::new();
    for status in [0, 7, 255] {
        let output = place.command(&place.plan(&format!("exit {status}"))).output().unwrap();
        assert_eq!(output.status.code(), Some(status), "{}", text(&output.stderr));
    }
}

#[test]
fn a_command_that_is_not_there_or_cannot_be_run_is_told_as_a_shell_does() {
    let place = Place::new();
    place.write("work/text", "no program");
    for (command, status) in [("./not-there", 127), ("./text", 126)] {
        let plan = gitdoor::fence::Plan { command: vec![command.into()], ..place.plan("") };
        let output = place.command(&plan).output().unwrap();
        assert_eq!(output.status.code(), Some(status), "{}", text(&output.stderr));
        assert!(text(&output.stderr).contains(command), "{}", text(&output.stderr));
    }
}

#[test]
fn what_it_leaves_behind_ends_with_it() {
    let place = Place::new();
    // What is left holds the output open: this returns when it is gone.
    let output = place.command(&place.plan("setsid sleep 3600 & echo done")).output().unwrap();
    assert_eq!(text(&output.stdout), "done\n");
}

#[test]
fn it_ends_when_who_started_it_is_killed() {
    let place = Place::new();
    let command = place.command(&place.plan("echo ready; setsid sleep 3600 & sleep 3600"));
    let mut starter = Command::new("sh");
    starter.args(["-c", "\"$@\" & wait", "sh"]).arg(command.get_program()).args(command.get_args());
    starter.env_clear().envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let mut starter = starter.stdout(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(starter.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    starter.kill().unwrap();
    starter.wait().unwrap();
    // All that had it is gone.
    assert_eq!(output.read_to_string(&mut line).unwrap(), 0);
}

#[test]
fn what_the_command_signals_to_its_group_reaches_nobody_outside() {
    let place = Place::new();
    let name = format!("gitdoor-signals-{}", std::process::id());
    let _listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    // Where the kernel keeps no abstract socket out, and says so, it keeps no signal in.
    if !place.fence().notes().is_empty() {
        return;
    }
    let command = place.command(&place.plan("kill -KILL 0; kill -KILL -1; echo not killed"));
    let mut starter = Command::new("sh");
    starter.args(["-c", "\"$@\"; echo \"outlived $?\"", "sh"]).arg(command.get_program()).args(command.get_args());
    starter.env_clear().envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = starter.process_group(0).output().unwrap();
    assert_eq!(text(&output.stdout), "outlived 137\n");
}

#[test]
fn what_a_whole_group_hears_is_the_commands_to_answer() {
    for signal in ["INT", "QUIT", "TERM", "HUP"] {
        hears(signal);
    }
}

fn hears(signal: &str) {
    let place = Place::new();
    let line = format!("trap 'echo heard; exit 42' {signal}; echo ready; while :; do sleep 0.1; done");
    let mut child = place.command(&place.plan(&line)).process_group(0).stdout(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut said = String::new();
    output.read_line(&mut said).unwrap();
    assert_eq!(said, "ready\n");
    // As a terminal does: to each of the group.
    let group = format!("-{}", child.id());
    assert!(Command::new("kill").args(["-s", signal, "--", &group]).status().unwrap().success());
    output.read_to_string(&mut said).unwrap();
    assert_eq!((said.as_str(), child.wait().unwrap().code()), ("ready\nheard\n", Some(42)));
}
