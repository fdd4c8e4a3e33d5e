//! `gitdoor env`, the program itself: what it writes and prints, and that git does with it what it should.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

const SECRET: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8";

/// A folder with a bearer's file in it.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        fs::write(place.path("bearer"), format!("{}\n", bearer())).unwrap();
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn env(&self, more: &[&str]) -> Output {
        let bearer = self.path("bearer");
        let given = ["env", "--host", "git.example.com", "--bearer-file", bearer.to_str().unwrap()];
        gitdoor(&[&given, more].concat())
    }

    /// Runs a line of a shell that took the environment, with as little else as there is.
    fn shell(&self, script: &str, line: &str) -> Output {
        let line = format!("{script}\n{line}");
        let path = std::env::var_os("PATH").unwrap();
        let mut shell = Command::new("sh");
        shell.env_clear().env("PATH", path).env("HOME", self.0.path()).env("GIT_CONFIG_NOSYSTEM", "1");
        shell.args(["-euc", &line]).current_dir(self.0.path()).output().unwrap()
    }
}

fn bearer() -> String {
    format!("sbr_fix-1.{SECRET}")
}

fn gitdoor(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_gitdoor")).env_clear().args(arguments).output().unwrap()
}

fn printed(output: &Output) -> String {
    let (out, said) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(!said.contains(SECRET), "{said}");
    out
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn the_bearer_is_in_a_file_of_its_owners_and_in_no_variable() {
    let place = Place::new();
    for format in ["sh", "json", "docker", "kubernetes"] {
        let script = printed(&place.env(&["--format", format]));
        assert!(!script.contains(SECRET), "{script}");
        assert!(script.contains("GH_CONFIG_DIR") && script.contains("bearer.gh"), "{script}");
    }
    let folder = place.path("bearer.gh");
    assert_eq!(mode(&folder), 0o700);
    for (file, content) in [
        ("hosts.yml", format!("git.example.com:\n    user: x-access-token\n    oauth_token: {}\n", bearer())),
        ("config.yml", "version: \"1\"\n".to_owned()),
    ] {
        assert_eq!(mode(&folder.join(file)), 0o600);
        assert_eq!(fs::read_to_string(folder.join(file)).unwrap(), content);
    }
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 2);
}

#[test]
fn a_shell_takes_it_whatever_the_folders_name_is_and_git_has_the_bearer_for_the_door_alone() {
    let place = Place::new();
    let folder = place.path("it's $HOME `x`\" \\");
    let script = printed(&place.env(&["--config-dir", folder.to_str().unwrap()]));
    let ask = |host: &str| {
        place.shell(&script, &format!("printf 'protocol=https\\nhost={host}\\n\\n' | git credential fill"))
    };
    let answer = ask("git.example.com");
    assert!(text(&answer.stdout).contains(&format!("password={}\n", bearer())), "{}", text(&answer.stderr));
    for other in ["github.com", "other.example", "git.example.com:8443", "git.example.com.other.example"] {
        assert_eq!((ask(other).status.success(), text(&ask(other).stdout)), (false, String::new()), "{other}");
    }
    for url in ["https://github.com/acme/api", "git@github.com:acme/api", "ssh://git@github.com/acme/api"] {
        let output = place.shell(&script, &format!("git ls-remote --get-url {url}"));
        assert_eq!(text(&output.stdout), "https://git.example.com/acme/api\n", "{url}");
    }
}

#[test]
fn no_other_helper_and_no_other_credential_is_left() {
    let place = Place::new();
    let helper = "[credential]\n\thelper = \"!f() { echo username=u; echo password=p; }; f\"\n";
    let askpass = place.path("askpass");
    fs::write(&askpass, "#!/bin/sh\necho p\n").unwrap();
    fs::set_permissions(&askpass, fs::Permissions::from_mode(0o755)).unwrap();
    let config = format!("{helper}[core]\n\taskPass = {}\n", askpass.display());
    fs::write(place.path(".gitconfig"), config).unwrap();
    let fill = "printf 'protocol=https\\nhost=github.com\\n\\n' | git credential fill";
    let before = place.shell("", fill);
    assert!(text(&before.stdout).contains("password=p"), "{}", text(&before.stderr));

    let given = format!("export GH_TOKEN=x GITHUB_TOKEN=x SSH_AUTH_SOCK=x GIT_ASKPASS={}", askpass.display());
    let script = printed(&place.env(&[]));
    let after = place.shell(&format!("{given}\n{script}"), fill);
    assert_eq!((after.status.success(), text(&after.stdout)), (false, String::new()));
    let names = place.shell(&format!("{given}\n{script}"), "env");
    for name in ["GH_TOKEN=", "GITHUB_TOKEN=", "SSH_AUTH_SOCK=", "GIT_ASKPASS="] {
        assert!(!text(&names.stdout).lines().any(|line| line.starts_with(name)), "{name}");
    }
}

#[test]
fn what_a_workspace_is_made_with_is_the_same_for_every_run_and_both_parts_are_the_whole() {
    let place = Place::new();
    let creation = printed(&gitdoor(&["env", "--host", "git.example.com", "--part", "creation"]));
    assert!(!creation.contains("fix-1") && !creation.contains("bearer"), "{creation}");
    let lines = |part: &[&str]| -> Vec<String> {
        let all = printed(&place.env(part));
        let mut lines: Vec<String> =
            all.lines().filter(|line| line.starts_with("export")).map(str::to_owned).collect();
        lines.sort();
        lines
    };
    for more in [&["--repository", "acme/api"][..], &["--variables-only"]] {
        let part = |name| lines(&[more, &["--part", name]].concat());
        let mut both = [part("creation"), part("command")].concat();
        both.sort();
        assert_eq!(both, lines(more));
        assert!(!part("creation").join("\n").contains(SECRET));
    }
    assert!(lines(&["--repository", "acme/api"]).contains(&"export GH_REPO='git.example.com/acme/api'".to_owned()));
}

#[test]
fn without_files_the_bearer_is_in_a_variable_and_that_is_said() {
    let place = Place::new();
    let output = place.env(&["--variables-only"]);
    let script = printed(&output);
    assert!(script.contains(&format!("export GH_ENTERPRISE_TOKEN='{}'\n", bearer())), "{script}");
    assert!(!script.contains("GH_CONFIG_DIR") && !place.path("bearer.gh").exists(), "{script}");
    assert!(text(&output.stderr).contains("every host but GitHub's"), "{}", text(&output.stderr));
    let fill = "printf 'protocol=https\\nhost=git.example.com\\n\\n' | git credential fill";
    assert!(text(&place.shell(&script, fill).stdout).contains(&bearer()));
    let pod = printed(&place.env(&["--variables-only", "--format", "kubernetes"]));
    assert!(!pod.contains(SECRET) && pod.contains("secretKeyRef"), "{pod}");
}

#[test]
fn a_program_gets_one_object_with_what_to_set_what_to_unset_and_which_files() {
    let place = Place::new();
    fs::write(place.path("ca.pem"), "").unwrap();
    let ca = place.path("ca.pem").canonicalize().unwrap().display().to_string();
    let all = printed(&place.env(&["--format", "json", "--ca", &ca]));
    let value: Value = serde_json::from_str(&all).unwrap();
    assert_eq!(value.as_object().unwrap().keys().collect::<Vec<_>>(), ["files", "set", "unset"]);
    let set = &value["set"];
    let folder = place.path("bearer.gh").canonicalize().unwrap().display().to_string();
    assert_eq!((&set["GH_HOST"], &set["SSL_CERT_FILE"]), (&"git.example.com".into(), &Value::from(ca.clone())));
    assert_eq!(set["GH_CONFIG_DIR"], folder);
    let count: usize = set["GIT_CONFIG_COUNT"].as_str().unwrap().parse().unwrap();
    let settings: Vec<_> = (0..count)
        .map(|at| [&set[format!("GIT_CONFIG_KEY_{at}")], &set[format!("GIT_CONFIG_VALUE_{at}")]])
        .map(|pair| pair.map(|value| value.as_str().unwrap().to_owned()))
        .collect();
    assert_eq!(settings[0], ["credential.helper", ""]);
    assert!(settings.contains(&["http.https://git.example.com/.sslCAInfo".to_owned(), ca]));
    let unset = value["unset"].as_array().unwrap();
    for name in ["GH_TOKEN", "GITHUB_TOKEN", "GH_ENTERPRISE_TOKEN", "SSH_AUTH_SOCK", "GIT_ASKPASS", "SSH_ASKPASS"] {
        assert!(unset.contains(&name.into()), "{name}");
    }
    assert_eq!(value["files"][1]["path"], format!("{folder}/hosts.yml"));
    assert_eq!(value["files"][1]["mode"], "0600");
}

#[test]
fn gits_authorities_of_before_give_way_to_the_doors_in_every_format() {
    let place = Place::new();
    fs::write(place.path("ca.pem"), "").unwrap();
    let ca = place.path("ca.pem").canonicalize().unwrap().display().to_string();
    let with_ca = |format: &str| printed(&place.env(&["--ca", &ca, "--format", format]));
    let script = with_ca("sh");
    let shell = place.shell(&format!("export GIT_SSL_CAINFO=/other.pem\n{script}"), "env");
    assert!(shell.status.success() && !text(&shell.stdout).contains("GIT_SSL_CAINFO"), "{script}");
    // Who reads these may not be able to unset anything, and by one that is nothing git trusts nobody.
    let object: Value = serde_json::from_str(&with_ca("json")).unwrap();
    assert_eq!(object["set"]["GIT_SSL_CAINFO"], ca);
    assert!(!object["unset"].as_array().unwrap().contains(&"GIT_SSL_CAINFO".into()), "{object}");
    assert!(with_ca("docker").contains(&format!("\nGIT_SSL_CAINFO={ca}\n")));
    assert!(with_ca("kubernetes").contains(&format!("- name: GIT_SSL_CAINFO\n          value: \"{ca}\"\n")));
    for format in ["sh", "json", "docker", "kubernetes"] {
        let without = printed(&place.env(&["--format", format]));
        assert!(!without.contains("GIT_SSL_CAINFO"), "{without}");
    }
}

#[test]
fn a_container_gets_lines_and_nothing_for_what_it_cannot_unset() {
    let place = Place::new();
    let output = place.env(&["--format", "docker"]);
    let lines = printed(&output);
    assert!(lines.contains("\nGH_TOKEN=\n") && lines.contains("\nGIT_TERMINAL_PROMPT=0\n"), "{lines}");
    assert!(lines.lines().all(|line| line.contains('=') && !line.starts_with("export")), "{lines}");
    assert!(text(&output.stderr).contains("--volume"), "{}", text(&output.stderr));
}

#[test]
fn the_lines_of_a_container_are_the_same_to_systemd() {
    let place = Place::new();
    for flags in [&["--format=docker"][..], &["--format=docker", "--variables-only"]] {
        for line in printed(&place.env(flags)).lines() {
            let (_name, value) = line.split_once('=').unwrap();
            // What it reads otherwise: escapes anywhere, quotes and white space at the ends.
            assert!(!value.contains('\\') && value.trim() == value && !value.starts_with(['"', '\'']), "{line}");
        }
    }
}

#[test]
fn a_pod_gets_its_variables_and_the_mount_of_a_secret() {
    let place = Place::new();
    let output = place.env(&["--format", "kubernetes"]);
    let pod = printed(&output);
    let folder = place.path("bearer.gh").canonicalize().unwrap();
    for part in [
        "        - name: GH_HOST\n          value: \"git.example.com\"\n".to_owned(),
        "        - name: GH_TOKEN\n          value: \"\"\n".to_owned(),
        "        - name: GH_ENTERPRISE_TOKEN\n          value: \"\"\n".to_owned(),
        format!("        - {{ name: gitdoor, mountPath: \"{}\", readOnly: true }}\n", folder.display()),
        "secretName: gitdoor-run, defaultMode: 0400".to_owned(),
    ] {
        assert!(pod.contains(&part), "{part}\n{pod}");
    }
    assert!(text(&output.stderr).contains("kubectl create secret generic gitdoor-run"));
}

#[test]
fn what_cannot_be_used_is_said_and_nothing_is_printed_or_written() {
    let place = Place::new();
    let path = |name: &str| place.path(name).display().to_string();
    let token = "ghp_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789";
    fs::write(place.path("token"), token).unwrap();
    fs::write(place.path("two"), format!("{}\n{}\n", bearer(), bearer())).unwrap();
    fs::write(place.path("bytes"), b"\xff\xfe").unwrap();
    for folder in ["open", "mine", "old"] {
        fs::create_dir(place.path(folder)).unwrap();
        fs::set_permissions(place.path(folder), fs::Permissions::from_mode(0o700)).unwrap();
    }
    fs::set_permissions(place.path("open"), fs::Permissions::from_mode(0o750)).unwrap();
    fs::write(place.path("mine/hosts.yml"), format!("github.com:\n    oauth_token: {token}\n")).unwrap();
    fs::write(place.path("old/config.yml"), "git_protocol: ssh\n").unwrap();
    let file = |name: &str| vec!["--bearer-file".to_owned(), path(name)];
    let with = |more: [&str; 2]| [file("bearer"), more.map(str::to_owned).to_vec()].concat();
    for (flags, code, words) in [
        (vec![], 2, "--bearer-file: the file with the run's bearer is needed"),
        (file("none"), 64, "No such file"),
        (file("open"), 64, "--bearer-file"),
        (file("token"), 64, "a run bearer is sbr_<runId>.<secret>"),
        (file("two"), 64, "a run bearer is sbr_<runId>.<secret>"),
        (file("bytes"), 64, "a run bearer is sbr_<runId>.<secret>"),
        (with(["--ca", &path("none")]), 64, "--ca"),
        (with(["--config-dir", &path("open")]), 64, "a folder of mode 0700"),
        (with(["--config-dir", &path("mine")]), 64, "hosts.yml there is not of `gitdoor env`"),
        (with(["--config-dir", &path("old")]), 64, "config.yml there is not of `gitdoor env`"),
        (with(["--config-dir", &path("token")]), 1, "--config-dir"),
        (with(["--host", "github.com"]), 2, "the door's own name"),
        (with(["--host", "https://a"]), 2, "a door is NAME or NAME:PORT"),
    ] {
        let host =
            if flags.iter().any(|flag| flag == "--host") { vec![] } else { vec!["--host", "git.example.com"] };
        let flags: Vec<&str> = host.into_iter().chain(flags.iter().map(String::as_str)).collect();
        let output = gitdoor(&[&["env"], flags.as_slice()].concat());
        let said = text(&output.stderr);
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(code), String::new()), "{flags:?}: {said}");
        assert!(said.contains(words), "{flags:?}: {said}");
        assert!(!said.contains(SECRET) && !said.contains(token), "{said}");
    }
    assert!(!place.path("bearer.gh").exists());
    assert!(!place.path("open/hosts.yml").exists() && !place.path("old/hosts.yml").exists());
}

#[test]
fn a_new_bearer_takes_the_place_of_the_old_one() {
    let place = Place::new();
    printed(&place.env(&[]));
    let next = format!("sbr_fix-1.{}", SECRET.replace("AAEC", "BBEC"));
    fs::write(place.path("bearer"), &next).unwrap();
    printed(&place.env(&[]));
    assert!(fs::read_to_string(place.path("bearer.gh/hosts.yml")).unwrap().contains(&next));
}

#[test]
fn a_door_on_another_port_is_good_for_git_and_what_gh_makes_of_it_is_said() {
    let place = Place::new();
    let output = place.env(&["--host", "git.example.com:8443"]);
    assert_eq!(output.status.code(), Some(2), "a flag once");
    let file = place.path("bearer").display().to_string();
    let output = gitdoor(&["env", "--host", "git.example.com:8443", "--bearer-file", &file]);
    assert!(text(&output.stderr).contains("gh drops the port"), "{}", text(&output.stderr));
    let question = "printf 'protocol=https\\nhost=git.example.com:8443\\n\\n' | git credential fill";
    assert!(text(&place.shell(&printed(&output), question).stdout).contains(&bearer()));
}

/// The line of the document that starts in a workspace what comes after it.
fn documented_line() -> &'static str {
    let (_, block) = include_str!("../../docs/workspaces.md").split_once("```sh\n").unwrap();
    block.lines().next().unwrap()
}

#[test]
fn nothing_is_started_without_a_bearer_or_a_door_that_takes_it() {
    let place = Place::new();
    let program = format!("'{}'", env!("CARGO_BIN_EXE_gitdoor"));
    // Nothing answers at this port.
    let line =
        documented_line().replace("git.example.com", "127.0.0.1:1").replace("gitdoor ", &format!("{program} "));
    let started = |line: &str| {
        let output = place.shell("set +e; export GH_TOKEN=ghp_left", &format!("{line} && echo started"));
        (text(&output.stdout).contains("started"), text(&output.stdout) + &text(&output.stderr))
    };
    let (is_started, said) = started(&line);
    assert!(!is_started && said.contains("127.0.0.1:1 cannot be reached"), "{said}");
    let (is_started, said) = started(&line.replace("doctor", "--version"));
    assert!(is_started, "{said}");
    fs::remove_file(place.path("bearer")).unwrap();
    let (is_started, said) = started(&line);
    assert!(!is_started && said.contains("--bearer-file") && !said.contains("clean  "), "{said}");
}
