//! What older set-ups left is removed, and nothing else.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;

use super::{BEARER, KEY, PASSWORD, TOKEN, Workspace, shown, text};

#[test]
fn what_older_set_ups_left_goes_and_the_rest_stays() {
    let workspace = Workspace::new();
    let door = format!("git.example.com:\n    user: x-access-token\n    oauth_token: {BEARER}\n");
    let store = workspace.write("home/.git-credentials", format!("https://octo:{PASSWORD}@github.com\n"));
    let netrc = workspace.write(
        "home/.netrc",
        format!("machine pypi.example password keep\nmachine github.com password {PASSWORD}\n"),
    );
    let hosts =
        workspace.write("home/.config/gh/hosts.yml", format!("github.com:\n    oauth_token: {PASSWORD}\n{door}"));
    let global = workspace.write(
        "home/.gitconfig",
        format!("[user]\n\tname = Octo\n[http]\n\textraheader = Authorization: token {PASSWORD}\n"),
    );
    fs::set_permissions(&global, fs::Permissions::from_mode(0o644)).unwrap();
    workspace.git("work", &["init", "--quiet", "api"]);
    workspace.git("work/api", &["remote", "add", "origin", &format!("https://o:{PASSWORD}@github.com/acme/api")]);
    let value = workspace.json(&["--scrub", "--host", "127.0.0.1:1", "--bearer-file", &bearer(&workspace)]);
    assert_eq!(value["clean"], true, "{value}");
    assert_eq!(value["scrubbed"].as_array().unwrap().len(), 5, "{value}");

    assert!(!store.exists());
    assert_eq!(fs::read_to_string(netrc).unwrap(), "machine pypi.example password keep\n");
    assert_eq!(fs::read_to_string(hosts).unwrap(), door);
    assert_eq!(fs::read_to_string(&global).unwrap(), "[user]\n\tname = Octo\n[http]\n");
    assert_eq!(fs::metadata(&global).unwrap().permissions().mode() & 0o777, 0o644);
    let config = fs::read_to_string(workspace.path("work/api/.git/config")).unwrap();
    assert!(config.contains("url = https://github.com/acme/api\n"), "{config}");
    assert_eq!(workspace.json(&["--scrub"])["scrubbed"].as_array().unwrap().len(), 0);
}

fn bearer(workspace: &Workspace) -> String {
    shown(&workspace.write("bearer", BEARER))
}

#[test]
fn keys_and_files_of_others_are_left_and_named() {
    let workspace = Workspace::new();
    let key = workspace.write("home/.ssh/id_ed25519", KEY);
    let notes = workspace.write("work/notes.txt", TOKEN);
    let output = workspace.doctor(&["--scrub"]);
    assert_eq!(output.status.code(), Some(1));
    for (file, content) in [(key, KEY), (notes, TOKEN)] {
        assert!(text(&output.stdout).contains(&format!("in {}", shown(&file))), "{}", text(&output.stdout));
        assert_eq!(fs::read_to_string(file).unwrap(), content);
    }
    assert!(text(&output.stdout).contains("left  "), "{}", text(&output.stdout));
}

#[test]
fn nothing_is_removed_unless_it_is_asked_for() {
    let workspace = Workspace::new();
    let content = format!("https://octo:{PASSWORD}@github.com\n");
    let store = workspace.write("home/.git-credentials", &content);
    workspace.finds("stored_password", &format!("{}: github.com", shown(&store)));
    assert_eq!(fs::read_to_string(store).unwrap(), content);
}

#[test]
fn the_credential_cache_is_told_to_exit() {
    let workspace = Workspace::new();
    let mut approve = workspace.command("git");
    approve.args(["-c", "credential.helper=cache", "credential", "approve"]).stdin(Stdio::piped());
    let mut approve = approve.spawn().unwrap();
    let question = format!("protocol=https\nhost=github.com\nusername=octo\npassword={PASSWORD}\n\n");
    std::io::Write::write_all(&mut approve.stdin.take().unwrap(), question.as_bytes()).unwrap();
    assert!(approve.wait().unwrap().success());
    let socket = workspace.path("home/.cache/git/credential/socket");
    workspace.finds("credential_cache", &shown(&socket));
    let value = workspace.json(&["--scrub"]);
    assert_eq!(value["clean"], true, "{value}");
    workspace.is_clean();
}
