//! What is hidden, and what is there.

use std::path::PathBuf;

use gitdoor::fence::{Finding, Plan};

use crate::{Place, SECRET, quoted, text};

/// Where a user's credentials are by habit.
const HOME: [&str; 14] = [
    ".config/gh/hosts.yml",
    ".config/git/credentials",
    ".config/gcloud/credentials.db",
    ".ssh/id_ed25519",
    ".netrc",
    ".git-credentials",
    ".gnupg/private-keys-v1.d/a.key",
    ".docker/config.json",
    ".npmrc",
    ".aws/credentials",
    ".kube/config",
    ".cargo/credentials.toml",
    ".local/share/keyrings/login.keyring",
    ".local/state/gitdoor/store",
];

/// Where they are if a variable says so.
const NAMED: [(&str, &str, &str); 9] = [
    ("GH_CONFIG_DIR", "elsewhere/gh", "hosts.yml"),
    ("GNUPGHOME", "elsewhere/gnupg", "a.key"),
    ("NETRC", "elsewhere/netrc", ""),
    ("DOCKER_CONFIG", "elsewhere/docker", "config.json"),
    ("AWS_SHARED_CREDENTIALS_FILE", "elsewhere/aws", ""),
    ("KUBECONFIG", "elsewhere/kube", ""),
    ("GIT_CONFIG_GLOBAL", "elsewhere/gitconfig", ""),
    ("CARGO_HOME", "elsewhere/cargo", "credentials.toml"),
    ("XDG_RUNTIME_DIR", "run/user/1000", "token"),
];

fn seeded() -> (Place, Vec<PathBuf>) {
    let mut place = Place::new();
    let mut files: Vec<_> = HOME.iter().map(|name| place.write(&format!("home/{name}"), SECRET)).collect();
    for (variable, named, file) in NAMED {
        let path = place.path(named);
        files.push(place.write(path.join(file).strip_prefix(place.path("")).unwrap().to_str().unwrap(), SECRET));
        place = place.variable(variable, path);
    }
    files.push(place.write("state/store", SECRET));
    files.push(place.write("app.pem", SECRET));
    files.push(place.write("home/bin/app.pem", SECRET));
    (place, files)
}

fn hidden(place: &Place) -> Vec<PathBuf> {
    ["state", "app.pem", "home/bin/app.pem"].map(|name| place.path(name)).into()
}

#[test]
fn no_credential_of_the_callers_can_be_read() {
    let (place, files) = seeded();
    let place = place.first_on_path("home/bin");
    for file in files {
        let line = format!("cat {} 2>/dev/null || true", quoted(&file));
        assert_eq!(place.outside(&line), SECRET, "{}: it is there", file.display());
        let plan = Plan { hide: hidden(&place), ..place.plan(&line) };
        assert_eq!(place.inside(&plan), "", "{}", file.display());
    }
}

#[test]
fn what_leads_to_a_credential_is_in_no_variable() {
    let (place, _) = seeded();
    let place =
        place.variable("GH_TOKEN", SECRET).variable("GITDOOR_GITHUB_APP_KEY", "/a").variable("OTHER", "kept");
    let mut plan = Plan { unset: vec!["GONE".into()], ..place.plan("env") };
    plan.set.push(("GH_HOST".into(), "git.example.com".into()));
    let place = place.variable("GONE", "x");
    let environment = place.inside(&plan);
    for absent in [SECRET, "GITDOOR_", "GONE=", "elsewhere/gh", "XDG_RUNTIME_DIR"] {
        assert!(!environment.contains(absent), "{absent}: {environment}");
    }
    assert!(
        environment.contains("OTHER=kept\n") && environment.contains("GH_HOST=git.example.com\n"),
        "{environment}"
    );
}

#[test]
fn home_is_empty_and_private_and_can_be_written() {
    let place = Place::new();
    place.write("home/.ssh/id_ed25519", SECRET);
    let line = "ls -A $HOME; mkdir -p ~/.config/x && echo a >~/.config/x/y && cat ~/.config/x/y";
    assert_eq!(place.inside(&place.plan(line)), ".gitconfig\na\n");
    assert!(!place.path("home/.config/x").exists());
}

#[test]
fn the_common_places_are_empty_and_the_machine_can_only_be_read() {
    let place = Place::new();
    place.write("tmp/a", "x");
    place.write("other/b", "x");
    let line = format!(
        "ls {tmp}; touch {tmp}/c; cat {other}/b; touch {other}/c 2>/dev/null || echo read-only",
        tmp = quoted(&place.path("tmp")),
        other = quoted(&place.path("other"))
    );
    assert_eq!(place.inside(&place.plan(&line)), "xread-only\n");
    assert!(!place.path("tmp/c").exists());
}

#[test]
fn the_folder_of_work_is_written_at_its_own_path() {
    let place = Place::new();
    let line = "pwd; echo a >made";
    let pwd = place.inside(&place.plan(line));
    assert_eq!(pwd.trim_end(), place.path("work").display().to_string());
    assert_eq!(std::fs::read_to_string(place.path("work/made")).unwrap(), "a\n");
}

#[test]
fn what_is_shown_is_read_and_what_is_shared_is_written() {
    let (place, _) = seeded();
    place.write("home/.agent/settings", "s");
    place.write("home/.cache/agent/a", "c");
    let line =
        "cat ~/.agent/settings ~/.cache/agent/a; touch ~/.agent/b 2>/dev/null || echo no; touch ~/.cache/agent/b";
    let (show, share) = (vec![place.path("home/.agent")], vec![place.path("home/.cache/agent")]);
    assert_eq!(place.inside(&Plan { show, share, ..place.plan(line) }), "scno\n");
    assert!(place.path("home/.cache/agent/b").exists());
}

#[test]
fn a_folder_that_is_shown_inside_of_a_hidden_one_is_all_that_is_seen_of_it() {
    let (place, _) = seeded();
    place.write("state/run/gh/hosts.yml", "bearer");
    let line = format!("cd {} && cat run/gh/hosts.yml && ls -A", quoted(&place.path("state")));
    let plan = Plan { show: vec![place.path("state/run/gh")], hide: hidden(&place), ..place.plan(&line) };
    assert_eq!(place.inside(&plan), "bearerrun\n");
}

#[test]
fn none_of_the_callers_processes_is_seen() {
    let place = Place::new();
    let mark = format!("{}.5", 86_400 + std::process::id());
    let mut other = std::process::Command::new("sleep").arg(&mark).spawn().unwrap();
    // Listed first, since who looks for it has it in its own line.
    let line =
        format!("cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n' >list; grep -cxF {mark} list || true");
    let (outside, inside) = (place.outside(&line), place.inside(&place.plan(&line)));
    other.kill().unwrap();
    other.wait().unwrap();
    assert_eq!((outside.as_str(), inside.as_str()), ("1\n", "0\n"));
}

#[test]
fn a_command_that_a_home_has_on_its_path_is_there_with_what_it_is_a_link_to() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let place = Place::new();
    let script = place.write("home/.local/share/agent/1.0", "#!/bin/sh\necho agent\n");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    place.write("home/.local/bin/other", "");
    symlink(script, place.path("home/.local/bin/agent")).unwrap();
    place.write("home/.local/share/keyrings/a", SECRET);
    let place = place.first_on_path("home/.local/bin");
    assert_eq!(place.inside(&Plan { command: vec!["agent".into()], ..place.plan("") }), "agent\n");
    assert_eq!(place.inside(&place.plan("ls ~/.local/share; ls ~/.local/bin")), "agent\nother\n");
}

#[test]
fn doctor_looks_from_inside_and_names_what_is_seen() {
    let (place, _) = seeded();
    let plan = Plan { hide: hidden(&place), ..place.plan("true") };
    let examined = place.fence().examine(&plan).unwrap();
    assert_eq!(examined.findings, [], "{:?}", examined.notes);
    let token = place.write("home/.config/gh/hosts.yml", "github.com:\n    oauth_token: gho_abc\n");
    let examined = place.fence().examine(&Plan { show: vec![token.clone()], ..plan }).unwrap();
    let Finding { kind, place: found, words } = examined.findings.first().unwrap();
    assert!(found.starts_with(token.to_str().unwrap()), "{found}");
    assert!(kind == "gh_token" && words.contains("token"), "{kind}: {words}");
}

#[test]
fn the_input_of_the_terminal_cannot_be_written() {
    let place = Place::new();
    let push = "my $c = 'x'; print ioctl(STDIN, 0x5412, $c) ? 'written' : $! + 0";
    let plan = Plan { command: ["perl", "-e", push].map(Into::into).into(), ..place.plan("") };
    let command = place.command(&plan);
    // On a terminal of its own, which is the one that controls it.
    let words = [command.get_program()].into_iter().chain(command.get_args());
    let line: Vec<_> = words.map(|word| format!("'{}'", word.to_str().unwrap().replace('\'', "'\\''"))).collect();
    let mut script = std::process::Command::new("script");
    script.args(["-qec", &line.join(" "), "/dev/null"]).stdin(std::process::Stdio::null());
    script
        .env_clear()
        .env("SHELL", "/bin/sh")
        .envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = script.output().unwrap();
    assert_eq!(text(&output.stdout).trim(), "1", "EPERM: {}", text(&output.stderr));
}

#[test]
fn a_variable_that_names_no_file_leaves_the_devices_as_they_are() {
    let place = Place::new().variable("GIT_CONFIG_GLOBAL", "/dev/null").variable("NETRC", "/dev/null");
    let plan =
        Plan { hide: vec!["/dev/stdin".into()], ..place.plan("echo lost >/dev/null && cat /dev/null && echo ok") };
    assert_eq!(place.inside(&plan), "ok\n");
}

#[test]
fn the_settings_of_the_kernel_are_only_read_by_root_too() {
    let place = Place::new();
    let line = "for file in vm/swappiness kernel/core_pattern; do
            now=$(cat /proc/sys/$file)
            (echo \"$now\" >/proc/sys/$file) 2>/dev/null && echo written: $file
        done
        grep -c ' /proc/sys ro' /proc/self/mountinfo";
    assert_eq!(place.inside(&place.plan(line)), "1\n");
}
