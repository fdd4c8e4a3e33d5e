//! What answers when it is asked: the credential cache, an ssh agent, git's helpers.

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;

use super::{BEARER, PASSWORD, Workspace, shown};

#[test]
fn a_credential_cache_that_answers_is_found() {
    for name in ["home/.git-credential-cache/socket", "home/.cache/git/credential/socket"] {
        let workspace = Workspace::new();
        let socket = workspace.write(name, "");
        workspace.is_clean();
        std::fs::remove_file(&socket).unwrap();
        let listener = UnixListener::bind(&socket).unwrap();
        workspace.finds("credential_cache", &shown(&socket));
        drop(listener);
        workspace.is_clean();
    }
}

#[test]
fn a_credential_cache_at_another_socket_is_found() {
    let workspace = Workspace::new();
    let socket = workspace.path("elsewhere");
    let helper = format!("[credential \"https://ghe.example\"]\n\thelper = cache --socket {}\n", shown(&socket));
    workspace.write("home/.gitconfig", helper);
    workspace.is_clean();
    let _cache = UnixListener::bind(&socket).unwrap();
    workspace.finds("credential_cache", &shown(&socket));
}

#[test]
fn an_ssh_agent_that_answers_is_found() {
    let workspace = Workspace::new();
    let socket = workspace.path("agent");
    let workspace = workspace.env("SSH_AUTH_SOCK", shown(&socket));
    workspace.is_clean();
    let _agent = UnixListener::bind(&socket).unwrap();
    workspace.finds("ssh_agent", &format!("SSH_AUTH_SOCK: {}", shown(&socket)));
}

#[test]
fn an_editor_that_answers_with_credentials_is_found() {
    let workspace = Workspace::new();
    let socket = workspace.path("editor");
    let workspace = workspace.env("VSCODE_GIT_IPC_HANDLE", shown(&socket));
    workspace.is_clean();
    let _editor = UnixListener::bind(&socket).unwrap();
    workspace.finds("editor", &format!("VSCODE_GIT_IPC_HANDLE: {}", shown(&socket)));
}

#[test]
fn what_a_helper_of_git_answers_for_github_is_found() {
    let workspace = Workspace::new();
    let helper =
        workspace.write("bin/helper", format!("#!/bin/sh\necho username=octo\necho password=$(echo {PASSWORD})\n"));
    std::fs::set_permissions(&helper, std::fs::Permissions::from_mode(0o755)).unwrap();
    workspace.write("home/.gitconfig", format!("[credential]\n\thelper = {}\n", shown(&helper)));
    let place = format!("git credential fill, in {}", shown(&workspace.path("work")));
    workspace.finds("credential_helper", &place);
    workspace.write("bin/helper", format!("#!/bin/sh\necho username=x\necho password={BEARER}\n"));
    workspace.is_clean();
}

/// The variables that `gitdoor env` and `gitdoor exec` keep helpers and files of the user's out with.
fn wired(workspace: Workspace) -> Workspace {
    let none = workspace.write("none", "");
    let variables =
        [("GIT_CONFIG_COUNT", "1"), ("GIT_CONFIG_KEY_0", "credential.helper"), ("GIT_CONFIG_VALUE_0", "")];
    let workspace = variables.into_iter().fold(workspace, |workspace, (name, value)| workspace.env(name, value));
    workspace.env("GIT_CONFIG_GLOBAL", shown(&none))
}

#[test]
fn a_helper_that_only_the_workspaces_variables_keep_out_is_found() {
    let helper = format!("!echo username=octo; echo password={PASSWORD};:");
    for settings in ["home/.gitconfig", "work/.git/config"] {
        let workspace = wired(Workspace::new());
        workspace.git("work", &["init", "--quiet"]);
        workspace.is_clean();
        let file = workspace.path(settings);
        workspace.git("work", &["config", "--file", &shown(&file), "credential.helper", &helper]);
        workspace
            .finds("credential_helper", &format!("git credential fill, in {}", shown(&workspace.path("work"))));
    }
}

#[test]
fn settings_that_only_the_workspaces_variables_keep_out_are_looked_at() {
    let workspace = wired(Workspace::new());
    let file = workspace.write("home/.gitconfig", "[http]\n\textraHeader = \"Authorization: token x\"\n");
    workspace.finds("header", &format!("{}: http.extraheader", shown(&file)));
}

#[test]
fn what_a_program_that_asks_for_passwords_answers_is_found() {
    let workspace = Workspace::new();
    let askpass = workspace.write("bin/askpass", format!("#!/bin/sh\necho {PASSWORD}\n"));
    std::fs::set_permissions(&askpass, std::fs::Permissions::from_mode(0o755)).unwrap();
    let place = format!("git credential fill, in {}", shown(&workspace.path("work")));
    workspace.env("GIT_ASKPASS", shown(&askpass)).finds("credential_helper", &place);
}
