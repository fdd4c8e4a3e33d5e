//! The steps of the README that need nothing but a shell, done.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use super::files::read;
use super::{compose, process};

/// The first commands that a part of the README gives.
fn steps(part: &str) -> String {
    let readme = read("README.md");
    let (_, text) = readme.split_once(&format!("\n## {part}\n")).unwrap();
    let (_, text) = text.split_once("\n```sh\n").unwrap();
    let (steps, _) = text.split_once("\n```\n").unwrap();
    // There is no Docker here.
    steps.lines().filter(|line| !line.starts_with("docker ")).collect::<Vec<_>>().join("\n")
}

/// Does them in a folder, with our programs on the path.
fn run(folder: &Path, steps: &str) {
    let ours = process::program("gitdoor");
    let path = std::env::join_paths(
        [ours.parent().unwrap().to_owned()]
            .into_iter()
            .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
    );
    let mut command = Command::new("bash");
    command.args(["-euo", "pipefail", "-c", steps]).env_clear().env("PATH", path.unwrap()).current_dir(folder);
    let done = command.output().unwrap();
    assert!(done.status.success(), "{steps}{}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn the_steps_for_compose_make_every_file_that_it_mounts_readable_for_its_service_and_nobody_else() {
    let folder = tempfile::tempdir().unwrap();
    let at = |path: &str| folder.path().join(path);
    fs::create_dir(at("compose")).unwrap();
    for given in ["app.pem", "door.pem", "door.key"] {
        fs::write(at(given), given).unwrap();
        fs::set_permissions(at(given), fs::Permissions::from_mode(0o600)).unwrap();
    }
    run(folder.path(), &steps("Certificates"));
    run(folder.path(), &steps("Compose"));
    let mode = |path: &Path| {
        fs::metadata(path).unwrap_or_else(|error| panic!("{}: {error}", path.display())).permissions().mode()
    };
    assert_eq!(mode(&at("compose/secrets")) & 0o777, 0o700);
    let starts = compose::starts();
    let values = starts.iter().flat_map(|start| start.variables.values());
    let files: Vec<_> = values
        .filter_map(|value| value.strip_prefix("/etc/gitdoor/").or_else(|| value.strip_prefix("/run/secrets/")))
        .chain(["grafana-password"])
        .collect();
    assert!(files.len() > 10, "{files:?}");
    for file in files {
        let path = at("compose/secrets").join(file);
        assert_eq!(mode(&path) & 0o044, 0o044, "{file}");
        assert!(fs::metadata(&path).unwrap().len() > 0, "{file}");
    }
    let given = fs::read_to_string(at(".env")).unwrap();
    for name in ["GITDOOR_GITHUB_APP_ID", "GITDOOR_GITHUB_INSTALLATION_ID", "GITDOOR_PUBLIC_HOST"] {
        assert!(given.contains(&format!("{name}=")), "{name}");
    }
}
