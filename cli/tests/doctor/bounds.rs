//! Where it stops, and that it says so.

use std::time::{Duration, Instant};

use super::{PASSWORD, TOKEN, Workspace, text};

#[test]
fn a_helper_that_hangs_is_ended_with_what_it_started_and_said() {
    let workspace = Workspace::new();
    let id = workspace.path("id").display().to_string();
    let helper = format!("[credential]\n\thelper = \"!f() {{ sh -c 'echo $$ >{id}; exec sleep 600'; }}; f\"\n");
    workspace.write("home/.gitconfig", helper);
    let started = Instant::now();
    let output = workspace.doctor(&[]);
    assert!(started.elapsed() < Duration::from_mins(2));
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));
    assert!(text(&output.stdout).contains("gave no answer in time"), "{}", text(&output.stdout));
    assert!(text(&output.stdout).contains("as far as was looked"), "{}", text(&output.stdout));
    let process = format!("/proc/{}/comm", std::fs::read_to_string(id).unwrap().trim());
    let is_over = || std::fs::read_to_string(&process).map_or(true, |name| name != "sleep\n");
    let ended = Instant::now();
    while !is_over() {
        assert!(ended.elapsed() < Duration::from_secs(20), "it still runs");
        std::thread::yield_now();
    }
}

#[test]
fn of_a_long_file_only_the_beginning_is_looked_through_and_that_is_said() {
    let workspace = Workspace::new();
    let long = vec![b'.'; 5 << 20];
    workspace.write("work/long", [long.as_slice(), TOKEN.as_bytes()].concat());
    let value = workspace.json(&[]);
    assert_eq!((&value["clean"], &value["complete"]), (&true.into(), &false.into()), "{value}");
    assert!(value["notes"][0].as_str().unwrap().contains("first 4 MiB"), "{value}");
    workspace.write("work/long", [b"\n", TOKEN.as_bytes(), b"\n", long.as_slice()].concat());
    assert_eq!(workspace.json(&[])["findings"][0]["kind"], "personal_token");
}

#[test]
fn a_folder_that_is_not_there_is_said() {
    let workspace = Workspace::new();
    let value = workspace.json(&["--workspace", "/no/such/folder"]);
    assert_eq!(value["complete"], false, "{value}");
}

#[test]
fn a_pipe_in_the_place_of_a_file_is_not_waited_for() {
    let workspace = Workspace::new();
    for name in ["home/.netrc", "home/.git-credentials", "work/pipe"] {
        let made = workspace.command("mkfifo").arg(workspace.path(name)).status().unwrap();
        assert!(made.success());
    }
    workspace.is_clean();
    assert_eq!(workspace.json(&["--scrub"])["clean"], true);
}

#[test]
fn what_is_no_text_hides_nothing_beside_it() {
    let workspace = Workspace::new();
    let line = format!("\nmachine github.com password {PASSWORD}\n");
    let file = workspace.write("home/.netrc", [b"# \xff".as_slice(), line.as_bytes()].concat());
    workspace.finds("netrc", &format!("{}: github.com", file.display()));
}

#[test]
fn without_git_what_only_git_knows_is_said_to_be_missing() {
    let workspace = Workspace::new().env("PATH", "/no/such/folder");
    let value = workspace.json(&[]);
    assert_eq!((&value["clean"], &value["complete"]), (&true.into(), &false.into()), "{value}");
    assert!(value["notes"][0].as_str().unwrap().contains("git cannot be run"), "{value}");
}
