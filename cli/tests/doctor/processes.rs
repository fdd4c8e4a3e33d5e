//! Other processes.

use std::process::{Command, Stdio};

use super::{PASSWORD, TOKEN, Workspace, text};

#[test]
fn a_token_in_another_process_is_found() {
    let workspace = Workspace::new();
    workspace.write("proc/42/comm", "node\n");
    workspace.write("proc/42/cmdline", "node\0x.js\0");
    workspace.write("proc/42/environ", format!("A=b\0GH_TOKEN={PASSWORD}\0PATH=/bin\0"));
    workspace.write("proc/self/environ", format!("GH_TOKEN={PASSWORD}\0"));
    workspace.finds("variable", "process 42 (node): GH_TOKEN");
}

#[test]
fn a_token_on_a_command_line_is_found() {
    let workspace = Workspace::new();
    workspace.write("proc/42/comm", "curl\n");
    workspace.write("proc/42/environ", "");
    workspace.write("proc/42/cmdline", format!("curl\0-H\0Authorization: token {TOKEN}\0"));
    workspace.finds("personal_token", "process 42 (curl): command line");
}

#[test]
fn processes_of_this_machine_are_looked_at_where_no_other_are_named() {
    let workspace = Workspace::new();
    let mut other = Command::new("sleep").arg("60").env("GH_TOKEN", PASSWORD).stdin(Stdio::null()).spawn().unwrap();
    let output = workspace.command(env!("CARGO_BIN_EXE_gitdoor")).arg("doctor").output().unwrap();
    other.kill().unwrap();
    other.wait().unwrap();
    let place = format!("process {} (sleep): GH_TOKEN", other.id());
    assert!(text(&output.stdout).contains(&place), "{}", text(&output.stdout));
}

#[test]
fn processes_that_cannot_be_listed_are_said() {
    let workspace = Workspace::new();
    std::fs::remove_dir(workspace.path("proc")).unwrap();
    let value = workspace.json(&[]);
    assert_eq!((&value["clean"], &value["complete"]), (&true.into(), &false.into()), "{value}");
}
