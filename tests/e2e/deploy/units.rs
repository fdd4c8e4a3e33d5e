//! The units of systemd.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use super::Start;
use super::files::{FOLDER, read, variables};

/// The planes, by the name of their units.
const PLANES: [&str; 2] = ["control", "dataplane"];
/// What `systemd-analyze security` may say of a unit at most, of 10.
const EXPOSURE: f64 = 2.0;

/// How the units start the programs.
pub(super) fn starts() -> Vec<Start> {
    PLANES.map(start).into()
}

fn start(plane: &str) -> Start {
    let unit =
        variables(read(&format!("systemd/gitdoor-{plane}.service")).lines().filter(|line| !line.starts_with('[')));
    let setting = |name: &str| unit.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
    let mut words = setting("ExecStart").unwrap().split(' ').map(credential);
    let program = words.next().unwrap().strip_prefix("/usr/local/bin/").unwrap().to_owned();
    let file = setting("EnvironmentFile").unwrap().strip_prefix("/etc/gitdoor/").unwrap();
    let grace = setting("TimeoutStopSec").unwrap().parse().unwrap();
    assert_eq!(setting("KillSignal"), Some("SIGTERM"));
    Start {
        program,
        arguments: words.collect(),
        variables: BTreeMap::from_iter(variables(read(&format!("systemd/{file}")).lines())),
        grace: Duration::from_secs(grace),
    }
}

/// Does what the units are installed with for a store in PostgreSQL.
pub(super) fn move_to_postgres(starts: &mut [Start]) {
    let control = starts.iter_mut().find(|start| start.program == "gitdoor-control").unwrap();
    let drop_in = read("systemd/gitdoor-control-postgres.conf");
    let settings = drop_in.lines().filter_map(|line| line.strip_prefix("Environment="));
    control.variables.extend(variables(settings).into_iter().map(|(name, value)| (name, credential(&value))));
    let environment = read("systemd/control.env");
    let store = environment.lines().find_map(|line| line.strip_prefix("#GITDOOR_STORE=")).unwrap();
    control.variables.insert("GITDOOR_STORE".to_owned(), store.to_owned());
}

/// A file among a unit's credentials, where it was taken from.
fn credential(text: &str) -> String {
    text.replace("%d", "/etc/gitdoor/control")
}

/// A root of a file system that the units are installed in, among systemd's own.
fn installed() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let place = |path: &str| {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    };
    let units = place("usr/lib/systemd/system");
    assert!(Command::new("cp").args(["-r", "/usr/lib/systemd/system"]).arg(units).status().unwrap().success());
    for plane in PLANES {
        let unit = format!("gitdoor-{plane}.service");
        let from = Path::new(FOLDER).join("systemd").join(&unit);
        fs::copy(from, place(&format!("etc/systemd/system/{unit}"))).unwrap();
        // Only that it is there and may be executed is looked at.
        let program = place(&format!("usr/local/bin/gitdoor-{plane}"));
        fs::write(&program, "").unwrap();
        fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let drop_in = place("etc/systemd/system/gitdoor-control.service.d/postgres.conf");
    fs::copy(format!("{FOLDER}/systemd/gitdoor-control-postgres.conf"), drop_in).unwrap();
    root
}

fn run(program: &str, arguments: &[&str]) -> (Output, String) {
    let output = Command::new(program).args(arguments).output();
    let output = output.unwrap_or_else(|error| panic!("{program}, of Debian's package systemd: {error}"));
    let said = [&output.stdout[..], &output.stderr[..]].concat();
    (output, String::from_utf8_lossy(&said).into_owned())
}

#[test]
fn the_units_are_what_systemd_takes() {
    let root = installed();
    let root = format!("--root={}", root.path().display());
    let (output, said) = run(
        "systemd-analyze",
        &["verify", "--man=no", &root, "gitdoor-control.service", "gitdoor-dataplane.service"],
    );
    assert!(output.status.success() && !said.contains("gitdoor"), "{said}");
}

#[test]
fn the_units_are_hardened() {
    for plane in PLANES {
        let unit = format!("{FOLDER}/systemd/gitdoor-{plane}.service");
        let (output, said) = run("systemd-analyze", &["security", "--offline=true", "--no-pager", &unit]);
        let (_, exposure) = said.split_once("Overall exposure level for ").unwrap_or_else(|| panic!("{said}"));
        let exposure = exposure.split(' ').nth(1).unwrap().parse::<f64>().unwrap();
        assert!(output.status.success() && exposure <= EXPOSURE, "{said}");
    }
}

#[test]
fn each_plane_has_a_user_that_reads_its_own_keys_and_no_others() {
    let root = installed();
    let at = |path: &str| root.path().join(path);
    let arguments =
        [format!("--root={}", root.path().display()), format!("{FOLDER}/systemd/gitdoor.sysusers.conf")];
    let (output, said) = run("systemd-sysusers", &arguments.each_ref().map(String::as_str));
    assert!(output.status.success() && !said.contains("not a valid"), "{said}");
    let users = fs::read_to_string(at("etc/passwd")).unwrap();
    let group = |plane: &str| {
        let line = users.lines().find(|line| line.starts_with(&format!("gitdoor-{plane}:"))).unwrap();
        line.split(':').nth(3).unwrap().parse::<u32>().unwrap()
    };
    assert_ne!(group("control"), group("dataplane"));
    for plane in PLANES {
        assert!(read(&format!("systemd/gitdoor-{plane}.service")).contains(&format!("\nUser=gitdoor-{plane}\n")));
    }
    // To give files to others is root's to do.
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        return;
    }
    let files = [
        "control/app.pem",
        "control/store-password",
        "control/control.key",
        "dataplane/dataplane.key",
        "dataplane/door.key",
    ];
    for file in files {
        let path = at("etc/gitdoor").join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }
    let arguments =
        ["--create".to_owned(), arguments[0].clone(), format!("{FOLDER}/systemd/gitdoor.tmpfiles.conf")];
    let (output, said) = run("systemd-tmpfiles", &arguments.each_ref().map(String::as_str));
    assert!(output.status.success(), "{said}");
    let [app, password, control, dataplane, door] = files.map(|file| {
        let facts = fs::metadata(at("etc/gitdoor").join(file)).unwrap();
        (facts.mode() & 0o7777, facts.uid(), facts.gid())
    });
    assert_eq!([app, password], [(0o600, 0, 0); 2]);
    assert_eq!(control, (0o640, 0, group("control")));
    assert_eq!([dataplane, door], [(0o640, 0, group("dataplane")); 2]);
}
