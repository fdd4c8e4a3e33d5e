//! The door, where nothing of it answers; with a door, the end-to-end tests ask.

use super::{BEARER, TOKEN, Workspace, text};

#[test]
fn a_door_that_cannot_be_reached_is_a_failure_in_words() {
    let workspace = Workspace::new();
    let file = workspace.write("bearer", BEARER).display().to_string();
    // No port that others are given, as one would be that was bound here and let go.
    let flags = ["--host", "127.0.0.1:1", "--bearer-file", &file];
    let output = workspace.doctor(&flags);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stdout));
    assert!(text(&output.stdout).contains("cannot be reached: "), "{}", text(&output.stdout));
    assert!(text(&output.stderr).contains("the door cannot be reached from it"), "{}", text(&output.stderr));
    let value = workspace.json(&flags);
    assert_eq!((&value["clean"], &value["door"]["standing"]), (&true.into(), &"unreachable".into()));
}

#[test]
fn the_door_is_the_one_that_the_environment_names_where_no_flag_does() {
    let workspace = Workspace::new();
    assert_eq!(workspace.json(&[])["door"]["standing"], "unknown");
    let workspace = workspace.env("GH_HOST", "127.0.0.1:1").env("GH_ENTERPRISE_TOKEN", BEARER);
    let door = &workspace.json(&[])["door"];
    assert_eq!((&door["host"], &door["standing"]), (&"127.0.0.1:1".into(), &"unreachable".into()));
    let workspace = Workspace::new();
    workspace.write("home/.config/gh/hosts.yml", format!("127.0.0.1:2:\n    oauth_token: {BEARER}\n"));
    assert_eq!(workspace.json(&[])["door"]["host"], "127.0.0.1:2");
}

#[test]
fn what_cannot_be_used_exits_by_its_kind_and_prints_nothing() {
    let workspace = Workspace::new();
    let token = workspace.write("token", TOKEN).display().to_string();
    for (flags, code) in [
        (vec!["--host", "a"], 2),
        (vec!["--bearer-file", &token], 2),
        (vec!["--host", "github.com", "--bearer-file", &token], 2),
        (vec!["--host", "a", "--bearer-file", &token], 64),
        (vec!["--host", "a", "--bearer-file", "/no/such/file"], 64),
        (vec!["--ca", &token], 64),
    ] {
        let output = workspace.doctor(&flags);
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(code), String::new()), "{flags:?}");
    }
}
