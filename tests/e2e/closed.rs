//! Each program, to others of its own user: its environment and its memory are not to be read.
//!
//! Root may read everything, so where these tests are root's, what is read and who reads have no capability.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

use crate::PROGRAM;

/// As an ordinary user would start it.
fn plainly(program: &str) -> Command {
    let is_root = fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
    if !is_root {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set=-all", "--inh-caps=-all", program]);
    command
}

fn can_be_read(child: &Child, name: &str) -> bool {
    let file = format!("/proc/{}/{name}", child.id());
    let mut reader = plainly("sh");
    // To be opened is enough: of memory, no byte is at the start.
    reader.args(["-c", "exec <\"$1\"", "sh", &file]).stderr(Stdio::null());
    reader.status().unwrap().success()
}

/// Whether who has not started a process may look into its memory: where there is Yama, that is a setting.
fn neighbours_may_look() -> bool {
    fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").map_or(true, |scope| scope.trim() == "0")
}

fn first_line(child: &mut Child) -> String {
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    line
}

#[track_caller]
fn assert_closed(mut child: Child) {
    for name in ["environ", "mem"] {
        assert!(!can_be_read(&child, name), "{name}");
    }
    let limits = fs::read_to_string(format!("/proc/{}/limits", child.id())).unwrap();
    let core = limits.lines().find_map(|line| line.strip_prefix("Max core file size")).unwrap();
    assert_eq!(core.split_ascii_whitespace().next(), Some("0"), "{limits}");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn another_program_can_be_read_by_its_user() {
    let mut child =
        plainly("sh").args(["-c", "echo ready; exec sleep 3600"]).stdout(Stdio::piped()).spawn().unwrap();
    assert_eq!(first_line(&mut child), "ready\n");
    assert!(can_be_read(&child, "environ"));
    assert_eq!(can_be_read(&child, "mem"), neighbours_may_look());
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_control_cannot_be_read_by_its_user() {
    let github = gitdoor_tests::github::Github::start();
    let folder = tempfile::tempdir().unwrap();
    let socket = |name: &str| format!("unix:{}", folder.path().join(name).display());
    let mut control = plainly(PROGRAM);
    control.args(["__control", "--admin-listen=127.0.0.1:0", "--github-app-id=1", "--github-installation-id=2"]);
    control.arg(format!("--runs-listen={}", socket("runs"))).arg(format!("--gate-listen={}", socket("gate")));
    control.arg(format!("--store=sqlite:{}", folder.path().join("store").display()));
    control.arg(format!("--github-app-key={}", github.app_key_file().display()));
    control.arg(format!("--github-api-url={}", github.api_url()));
    control.arg(format!("--github-ca={}", github.ca_file().display()));
    let mut child = control.stdout(Stdio::piped()).spawn().unwrap();
    assert!(first_line(&mut child).starts_with("ready "));
    assert_closed(child);
}

#[test]
fn a_data_plane_cannot_be_read_by_its_user() {
    let mut dataplane = plainly(PROGRAM);
    dataplane.args([
        "__dataplane",
        "--listen=127.0.0.1:0",
        "--admin-listen=127.0.0.1:0",
        "--public-host=localhost",
    ]);
    dataplane.arg("--control=unix:/nonexistent/gate");
    let mut child = dataplane.stdout(Stdio::piped()).spawn().unwrap();
    assert!(first_line(&mut child).starts_with("ready "));
    assert_closed(child);
}

#[test]
fn the_command_line_cannot_be_read_by_its_user() {
    // It asks a control that takes its connection, and never answers.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut gitdoor = plainly(PROGRAM);
    gitdoor.args(["__gitdoor", "run", "list"]);
    gitdoor.arg(format!("--control=http://{}", listener.local_addr().unwrap()));
    let child = gitdoor.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let _asking = listener.accept().unwrap();
    assert_closed(child);
}
