//! The files of home and workspace.

use std::os::unix::fs::symlink;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::{BEARER, KEY, PASSWORD, TOKEN, Workspace, shown};

#[test]
fn a_password_that_git_stored_is_found() {
    for name in ["home/.git-credentials", "home/.config/git/credentials"] {
        let workspace = Workspace::new();
        let file = workspace.write(name, format!("https://octo:{PASSWORD}@github.com\n"));
        workspace.finds("stored_password", &format!("{}: github.com", shown(&file)));
        workspace.write(name, format!("https://x-access-token:{BEARER}@git.example.com\n"));
        workspace.is_clean();
    }
    let workspace = Workspace::new();
    let file = workspace.write("elsewhere/store", format!("https://octo:{PASSWORD}@ghe.example\n"));
    workspace.write("home/.gitconfig", format!("[credential]\n\thelper = store --file={}\n", shown(&file)));
    workspace.finds("stored_password", &format!("{}: ghe.example", shown(&file)));
}

#[test]
fn a_password_in_a_netrc_is_found() {
    for name in ["home/.netrc", "home/_netrc"] {
        let workspace = Workspace::new();
        let file = workspace.write(name, format!("machine github.com login octo password {PASSWORD}\n"));
        workspace.finds("netrc", &format!("{}: github.com", shown(&file)));
        workspace.write(name, format!("machine pypi.example login octo password {PASSWORD}\n"));
        workspace.is_clean();
    }
}

#[test]
fn a_token_of_gh_is_found_and_the_doors_bearer_is_none() {
    let door = format!("git.example.com:\n    user: x-access-token\n    oauth_token: {BEARER}\n");
    let mine = format!("github.com:\n    user: octo\n    oauth_token: {PASSWORD}\n");
    let workspace = Workspace::new();
    let file = workspace.write("home/.config/gh/hosts.yml", mine);
    workspace.finds("gh_token", &format!("{}: github.com", shown(&file)));
    let settings = workspace.path("settings").display().to_string();
    let workspace = workspace.env("GH_CONFIG_DIR", settings);
    std::fs::remove_file(file).unwrap();
    let file = workspace.write("settings/hosts.yml", format!("ghe.example:\n    oauth_token: {PASSWORD}\n"));
    workspace.finds("gh_token", &format!("{}: ghe.example", shown(&file)));
    workspace.write("settings/hosts.yml", door.replace("git.example.com", "127.0.0.1:1"));
    assert!(workspace.json(&[])["clean"] == true);
}

#[test]
fn what_the_variables_name_in_place_of_the_usual_files_is_looked_into() {
    let password = format!("https://octo:{PASSWORD}@github.com\n");
    let token = format!("github.com:\n    oauth_token: {PASSWORD}\n");
    let netrc = format!("machine github.com password {PASSWORD}\n");
    for (variable, value, name, text, kind) in [
        ("XDG_CONFIG_HOME", "elsewhere", "elsewhere/git/credentials", password, "stored_password"),
        ("XDG_CONFIG_HOME", "elsewhere", "elsewhere/gh/hosts.yml", token.clone(), "gh_token"),
        ("XDG_CONFIG_HOME", "elsewhere", "elsewhere/hub", token.clone(), "gh_token"),
        ("HUB_CONFIG", "elsewhere/hub", "elsewhere/hub", token, "gh_token"),
        ("NETRC", "elsewhere/netrc", "elsewhere/netrc", netrc, "netrc"),
    ] {
        let workspace = Workspace::new();
        let file = workspace.write(name, text);
        let value = shown(&workspace.path(value));
        workspace.env(variable, value).finds(kind, &format!("{}: github.com", shown(&file)));
    }
}

#[test]
fn a_key_of_ssh_is_found() {
    let workspace = Workspace::new();
    let file = workspace.write("home/.ssh/work", KEY);
    workspace.write("home/.ssh/work.pub", "ssh-ed25519 AAAA octo\n");
    workspace.finds("ssh_key", &shown(&file));
}

#[test]
fn what_has_a_credentials_shape_is_found_in_any_file() {
    for (text, kind) in [
        (TOKEN.to_owned(), "personal_token"),
        (TOKEN.replace("ghp_", "gho_"), "oauth_token"),
        (TOKEN.replace("ghp_", "ghu_"), "user_token"),
        (TOKEN.replace("ghp_", "ghs_"), "installation_token"),
        (TOKEN.replace("ghp_", "ghr_"), "refresh_token"),
        (TOKEN.replace("ghp_", "github_pat_"), "fine_grained_token"),
        (KEY.to_owned(), "private_key"),
        (format!("git clone https://octo:{PASSWORD}@github.com/a/b"), "url_password"),
    ] {
        for name in ["home/.bash_history", "work/deep/er/.env"] {
            let workspace = Workspace::new();
            let file = workspace.write(name, format!("\x7fELF\0\nA='{text}'\n"));
            workspace.finds(kind, &shown(&file));
            workspace.write(name, format!("A='{BEARER}' {PASSWORD}\n"));
            workspace.is_clean();
        }
    }
}

#[test]
fn a_token_in_base64_is_found_where_a_registry_or_a_header_has_it() {
    for user in ["octo", "x-access-token", "x"] {
        let encoded = STANDARD.encode(format!("{user}:{TOKEN}"));
        for (name, text) in [
            ("home/.docker/config.json", format!("{{\"auths\":{{\"ghcr.io\":{{\"auth\":\"{encoded}\"}}}}}}")),
            ("home/.npmrc", format!("//npm.pkg.github.com/:_auth={encoded}\n")),
            ("work/.curlrc", format!("header = \"Authorization: Basic {encoded}\"\n")),
        ] {
            let workspace = Workspace::new();
            let file = workspace.write(name, text);
            workspace.finds("personal_token", &shown(&file));
            workspace.write(name, STANDARD.encode(format!("{user}:{BEARER}")));
            workspace.is_clean();
        }
    }
}

#[test]
fn no_link_leads_out_of_home_and_workspace() {
    let workspace = Workspace::new();
    let file = workspace.write("elsewhere/token", TOKEN);
    symlink(&file, workspace.path("work/file")).unwrap();
    symlink(workspace.path("elsewhere"), workspace.path("work/folder")).unwrap();
    symlink(workspace.path("work"), workspace.path("work/itself")).unwrap();
    workspace.is_clean();
}
