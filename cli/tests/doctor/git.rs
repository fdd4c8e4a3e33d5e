//! git's settings, at every level.

use super::{BEARER, PASSWORD, TOKEN, Workspace, shown};

fn url() -> String {
    format!("https://octo:{PASSWORD}@github.com/acme/api")
}

fn header() -> String {
    format!("[http \"https://github.com/\"]\n\textraheader = Authorization: token {PASSWORD}\n")
}

#[test]
fn a_credential_in_the_global_settings_is_found() {
    let workspace = Workspace::new();
    let file = workspace.write("home/.gitconfig", header());
    workspace.finds("header", &format!("{}: http.https://github.com/.extraheader", shown(&file)));
}

#[test]
fn a_credential_in_what_the_settings_include_is_found() {
    let workspace = Workspace::new();
    let file = workspace.write("elsewhere/more", header());
    workspace.write("home/.gitconfig", format!("[include]\n\tpath = {}\n", shown(&file)));
    workspace.finds("header", &format!("{}: http.https://github.com/.extraheader", shown(&file)));
}

#[test]
fn a_credential_in_what_a_repositorys_settings_include_is_found() {
    let workspace = Workspace::new();
    let file = workspace.write("elsewhere/more", header());
    workspace.git("work", &["init", "--quiet", "api"]);
    workspace.git("work/api", &["config", "include.path", &shown(&file)]);
    workspace.finds("header", &format!("{}: http.https://github.com/.extraheader", shown(&file)));
}

#[test]
fn a_credential_in_the_system_settings_is_found() {
    let workspace = Workspace::new();
    let file = workspace.write("etc/gitconfig", header());
    let workspace = workspace.env("GIT_CONFIG_NOSYSTEM", "0").env("GIT_CONFIG_SYSTEM", shown(&file));
    workspace.finds("header", &format!("{}: http.https://github.com/.extraheader", shown(&file)));
}

#[test]
fn a_credential_in_a_repository_of_the_workspace_is_found() {
    let workspace = Workspace::new();
    workspace.git("work", &["init", "--quiet", "deep/api"]);
    workspace.is_clean();
    workspace.git("work/deep/api", &["remote", "add", "origin", &url()]);
    let file = workspace.path("work/deep/api/.git/config");
    workspace.finds("url_password", &format!("{}: remote.origin.url", shown(&file)));
}

#[test]
fn a_header_in_a_repository_of_the_workspace_is_found() {
    let workspace = Workspace::new();
    workspace.git("work", &["init", "--quiet", "api"]);
    let header = format!("AUTHORIZATION: basic {PASSWORD}");
    workspace.git("work/api", &["config", "http.https://github.com/.extraheader", &header]);
    let file = workspace.path("work/api/.git/config");
    workspace.finds("header", &format!("{}: http.https://github.com/.extraheader", shown(&file)));
}

#[test]
fn a_credential_in_a_submodule_and_in_what_names_it_is_found() {
    let workspace = Workspace::new();
    workspace.git("work", &["init", "--quiet", "api"]);
    let file =
        workspace.write("work/api/.gitmodules", format!("[submodule \"lib\"]\n\tpath = lib\n\turl = {}\n", url()));
    workspace.finds("url_password", &format!("{}: submodule.lib.url", shown(&file)));
    std::fs::remove_file(file).unwrap();
    let folder = "work/api/.git/modules/lib";
    std::fs::create_dir_all(workspace.path(folder)).unwrap();
    workspace.git(folder, &["init", "--quiet", "--bare", "."]);
    workspace.git(folder, &["remote", "add", "origin", &url()]);
    let file = workspace.path(&format!("{folder}/config"));
    workspace.finds("url_password", &format!("{}: remote.origin.url", shown(&file)));
}

#[test]
fn a_credential_in_the_settings_of_a_worktree_is_found() {
    let workspace = Workspace::new();
    workspace.git("work", &["init", "--quiet", "api"]);
    workspace.git("work/api", &["config", "extensions.worktreeConfig", "true"]);
    workspace.git("work/api", &["config", "--worktree", "remote.origin.pushurl", &url()]);
    let file = workspace.path("work/api/.git/config.worktree");
    workspace.finds("url_password", &format!("{}: remote.origin.pushurl", shown(&file)));
}

#[test]
fn a_credential_in_a_repository_above_the_workspace_is_found() {
    let workspace = Workspace::new();
    workspace.git("work", &["init", "--quiet", "api"]);
    workspace.git("work/api", &["remote", "add", "origin", &url()]);
    std::fs::create_dir(workspace.path("work/api/src")).unwrap();
    let inner = shown(&workspace.path("work/api/src"));
    let value = workspace.json(&["--workspace", &inner]);
    let file = shown(&workspace.path("work/api/.git/config"));
    assert_eq!(value["findings"][0]["place"], format!("{file}: remote.origin.url"), "{value}");
}

#[test]
fn a_credential_in_the_settings_of_the_command_is_found() {
    let workspace = Workspace::new().env("GIT_CONFIG_COUNT", "1");
    let workspace = workspace
        .env("GIT_CONFIG_KEY_0", "remote.origin.url")
        .env("GIT_CONFIG_VALUE_0", format!("https://x:{PASSWORD}@ghe.example/"));
    workspace.finds("url_password", "git configuration of the command: remote.origin.url");
}

#[test]
fn a_credential_in_what_a_git_hands_to_its_programs_is_found() {
    let parameters = format!("'remote.origin.url'='https://x:{PASSWORD}@ghe.example/'");
    let workspace = Workspace::new().env("GIT_CONFIG_PARAMETERS", parameters);
    workspace.finds("url_password", "git configuration of the command: remote.origin.url");
}

#[test]
fn a_credential_that_urls_are_rewritten_with_is_found_and_not_shown() {
    let workspace = Workspace::new();
    let file = workspace.write(
        "home/.gitconfig",
        format!("[url \"https://octo:{PASSWORD}@github.com/\"]\n\tinsteadOf = https://github.com/\n"),
    );
    workspace.finds("url_password", &format!("{}: url.***.insteadof", shown(&file)));
    workspace.write("home/.gitconfig", format!("[url \"https://{TOKEN}@github.com/\"]\n\tinsteadOf = gh:\n"));
    workspace.finds("url_password", &format!("{}: url.***.insteadof", shown(&file)));
}

#[test]
fn a_rewrite_that_leads_past_the_door_is_told_and_is_no_success() {
    let none = Workspace::new();
    let empty = shown(&none.write("none", ""));
    let variables = [
        ("GIT_CONFIG_COUNT", "1"),
        ("GIT_CONFIG_KEY_0", "url.https://git.example.com/.insteadOf"),
        ("GIT_CONFIG_VALUE_0", "https://github.com/"),
    ];
    let workspace = variables.into_iter().fold(Workspace::new(), |made, (name, value)| made.env(name, value));
    workspace.is_clean();
    for name in ["insteadof", "pushinsteadof"] {
        let text = format!("[url \"git@github.com:\"]\n\t{name} = https://github.com/\n");
        let file = shown(&workspace.write("home/.gitconfig", text));
        let output = workspace.doctor(&[]);
        let words =
            format!("led past the door with https://github.com/..., by url.git@github.com:.{name}, in {file}");
        assert!(text_of(&output).contains(&words), "{}", text_of(&output));
        assert_eq!(output.status.code(), Some(1));
        let value = workspace.json(&[]);
        assert_eq!((&value["clean"], value["astray"].as_array().unwrap().len()), (&true.into(), 1), "{value}");
    }
    // What git does not read leads it nowhere.
    workspace.env("GIT_CONFIG_GLOBAL", empty).is_clean();
}

fn text_of(output: &std::process::Output) -> String {
    super::text(&output.stdout)
}

#[test]
fn the_doors_own_settings_are_no_finding() {
    let workspace = Workspace::new();
    workspace.write(
        "home/.gitconfig",
        format!(
            "[url \"https://git.example.com/\"]\n\tinsteadOf = https://github.com/\n[http]\n\textraheader = \
             Authorization: Bearer {BEARER}\n[remote \"x\"]\n\turl = https://x-access-token:{BEARER}@git.example.com/a/b\n"
        ),
    );
    workspace.is_clean();
}
