//! Configuration that is no good: the exit status, the flag's name, and that nothing was served or changed.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use gitdoor_tests::github::Github;
use gitdoor_tests::world::{Exit, World, run_to_exit};
use socket2::{Domain, Socket, Type};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

use crate::PROGRAM;

/// Longest time for a program that has nothing to do but to fail.
const LIMIT: Duration = Duration::from_secs(30);

/// A folder with good files, and flags that name them.
struct Place {
    folder: TempDir,
    github: Github,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("letter"), "dear friend").unwrap();
        Self { folder, github: Github::start() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn named(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    fn control(&self) -> Vec<String> {
        vec![
            format!("--runs-listen=unix:{}", self.named("runs.sock")),
            format!("--gate-listen=unix:{}", self.named("gate.sock")),
            "--admin-listen=127.0.0.1:0".into(),
            format!("--store=sqlite:{}", self.named("store")),
            "--github-app-id=1".into(),
            format!("--github-app-key={}", self.github.app_key_file().display()),
            "--github-installation-id=2".into(),
            format!("--github-api-url={}", self.github.api_url()),
            format!("--github-ca={}", self.github.ca_file().display()),
        ]
    }

    fn dataplane(&self) -> Vec<String> {
        vec![
            "--listen=127.0.0.1:0".into(),
            "--admin-listen=127.0.0.1:0".into(),
            "--public-host=localhost".into(),
            format!("--control=unix:{}", self.named("gate.sock")),
            format!("--github-url={}", self.github.url()),
            format!("--github-api-url={}", self.github.api_url()),
            format!("--github-ca={}", self.github.ca_file().display()),
        ]
    }

    /// Asserts how a program ends that has these flags in place of its good ones.
    async fn assert_refused(&self, role: &str, changed: &[(&str, String)], code: i32, words: &str) {
        let mut flags = if role == "__control" { self.control() } else { self.dataplane() };
        for (flag, value) in changed {
            flags.retain(|kept| !kept.starts_with(&format!("{flag}=")));
            flags.push(format!("{flag}={value}"));
        }
        let Exit { code: ended, stdout, stderr } = run_to_exit(PROGRAM.as_ref(), role, &flags).await;
        assert_eq!(ended, Some(code), "{role} {changed:?}: {stderr}");
        assert_eq!(stdout, "", "{role} {changed:?}: it served");
        let flag = changed[0].0;
        assert!(stderr.contains(flag) && stderr.contains(words), "{role} {changed:?}: {stderr}");
        assert!(!stderr.contains("hush"), "{role} {changed:?}: a password is shown: {stderr}");
        assert!(!stderr.contains("panicked"), "{role} {changed:?}: {stderr}");
    }
}

#[tokio::test]
async fn control_exits_by_what_is_wrong_with_its_flags_and_names_them() {
    let place = Place::new();
    let (none, letter, folder) = (place.named("none"), place.named("letter"), place.named(""));
    let table = [
        ("--github-app-key", none.clone(), 64),
        ("--github-app-key", letter.clone(), 64),
        ("--github-app-key", folder.clone(), 64),
        ("--github-ca", none.clone(), 64),
        ("--github-ca", letter.clone(), 64),
        ("--github-api-url", "http://192.0.2.1".into(), 64),
        ("--github-api-url", "https://user:hush@api.github.com".into(), 64),
        ("--github-api-url", "nonsense".into(), 64),
        ("--store", format!("sqlite:{none}/store"), 64),
        ("--store", format!("sqlite:{letter}"), 64),
        ("--store", format!("sqlite:{folder}"), 64),
        ("--store", "postgres://db/gitdoor".into(), 64),
        ("--store", "postgres://gitdoor:hush@db/gitdoor".into(), 64),
        ("--runs-listen", "0.0.0.0:0".into(), 64),
        ("--gate-listen", "192.0.2.1:7000".into(), 64),
        ("--gate-listen", "[::]:0".into(), 64),
        ("--runs-listen", format!("unix:{none}/runs"), 64),
        ("--gate-listen", format!("unix:{letter}"), 64),
        ("--runs-listen", "nowhere".into(), 2),
        ("--admin-listen", "localhost".into(), 2),
        ("--gate-listen", "unix:".into(), 2),
        ("--store", "mysql:db".into(), 2),
        ("--keep", "soon".into(), 2),
        ("--github-installation-id", "acme".into(), 2),
        ("--log-format", "yaml".into(), 2),
        ("--log-level", "a=b=c".into(), 2),
        ("--no-such-flag", "1".into(), 2),
    ];
    for (flag, value, code) in table {
        place.assert_refused("__control", &[(flag, value)], code, "").await;
    }
    assert_eq!(fs::read_to_string(place.path("letter")).unwrap(), "dear friend");
    let missing =
        place.control().into_iter().filter(|flag| !flag.starts_with("--github-app-id")).collect::<Vec<_>>();
    let exit = run_to_exit(PROGRAM.as_ref(), "__control", &missing).await;
    assert_eq!((exit.code, exit.stderr.contains("--github-app-id")), (Some(2), true), "{}", exit.stderr);
}

#[tokio::test]
async fn a_data_plane_exits_by_what_is_wrong_with_its_flags_and_names_them() {
    let place = Place::new();
    let (none, letter) = (place.named("none"), place.named("letter"));
    let table = [
        ("--github-ca", none.clone(), 64),
        ("--github-ca", letter.clone(), 64),
        ("--github-url", "http://github.com".into(), 64),
        ("--github-url", "https://user:hush@github.com".into(), 64),
        ("--github-url", "https://github.com/acme".into(), 64),
        ("--github-api-url", "ftp://api.github.com".into(), 64),
        ("--github-api-url", "https://user:hush@api.github.com".into(), 64),
        ("--control", "http://192.0.2.1:7000".into(), 64),
        ("--control", "http://user:hush@127.0.0.1:7000".into(), 64),
        ("--control", "http://127.0.0.1:7000/x".into(), 64),
        ("--control", "unix:".into(), 2),
        ("--control", "nowhere".into(), 2),
        ("--listen", format!("unix:{none}/door"), 64),
        ("--listen", format!("unix:{letter}"), 64),
        ("--admin-listen", format!("unix:{letter}"), 64),
        ("--max-push-bytes", "0".into(), 2),
        ("--listen", "nowhere".into(), 2),
        ("--admin-listen", "1.2.3.4".into(), 2),
        ("--public-host", "a b".into(), 2),
        ("--max-push-bytes", "many".into(), 2),
        ("--idle-timeout", "soon".into(), 2),
        ("--log-format", "yaml".into(), 2),
        ("--no-such-flag", "1".into(), 2),
    ];
    for (flag, value, code) in table {
        place.assert_refused("__dataplane", &[(flag, value)], code, "").await;
    }
    for file in [none, letter.clone()] {
        let pair = [("--tls-cert", file.clone()), ("--tls-key", file)];
        place.assert_refused("__dataplane", &pair, 64, "").await;
    }
    place.assert_refused("__dataplane", &[("--tls-cert", letter.clone())], 2, "--tls-key").await;
    let secure = ("--control", "https://localhost:7002".to_owned());
    let missing = ["--control-tls-ca", "--control-tls-cert", "--control-tls-key"];
    for (at, flag) in missing.iter().enumerate() {
        let given = missing[..at].iter().map(|flag| (*flag, letter.clone()));
        let changed: Vec<_> = std::iter::once(secure.clone()).chain(given).collect();
        place.assert_refused("__dataplane", &changed, 64, &format!("{flag}: https:// needs it")).await;
    }
    let given = missing.iter().map(|flag| (*flag, letter.clone()));
    let changed: Vec<_> = std::iter::once(secure).chain(given).collect();
    place.assert_refused("__dataplane", &changed, 64, "holds no certificate in PEM").await;
    assert_eq!(fs::read_to_string(place.path("letter")).unwrap(), "dear friend");
    let quiet = [("--github-ca", place.named("none")), ("--log-level", "off".into())];
    place.assert_refused("__dataplane", &quiet, 64, "").await;
}

#[tokio::test]
async fn an_occupied_port_is_noticed_even_where_its_owner_would_share_it() {
    let place = Place::new();
    let alone = TcpListener::bind("127.0.0.1:0").unwrap();
    let shared = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    shared.set_reuse_port(true).unwrap();
    shared.set_reuse_address(true).unwrap();
    shared.bind(&"127.0.0.1:0".parse::<std::net::SocketAddr>().unwrap().into()).unwrap();
    shared.listen(8).unwrap();
    let shared: TcpListener = shared.into();
    for held in [&alone, &shared] {
        let address = held.local_addr().unwrap().to_string();
        for flag in ["--runs-listen", "--gate-listen", "--admin-listen"] {
            place.assert_refused("__control", &[(flag, address.clone())], 64, &address).await;
        }
        for flag in ["--listen", "--admin-listen"] {
            place.assert_refused("__dataplane", &[(flag, address.clone())], 64, &address).await;
        }
    }
}

#[tokio::test]
async fn the_port_of_a_data_plane_is_not_taken_by_a_second_one() {
    let mut world = World::start(PROGRAM).await;
    let place = Place::new();
    let address = world.address(0).to_string();
    place.assert_refused("__dataplane", &[("--listen", address.clone())], 64, &address).await;
    assert!(world.dataplane(0).is_running());
    world.finish().await;
}

/// The files of a store that was used, with nothing running on it.
async fn used_store() -> (World, PathBuf) {
    let mut world = World::start(PROGRAM).await;
    world.register(gitdoor_proto::v1::Identity::Read).await;
    world.control().stop(LIMIT).await;
    let path = world.path().join("control/store.sqlite");
    (world, path)
}

async fn assert_store_refused(path: &Path, words: &str) {
    let before = fs::read(path).unwrap();
    let place = Place::new();
    let store = format!("sqlite:{}", path.display());
    place.assert_refused("__control", &[("--store", store)], 64, &path.display().to_string()).await;
    let store = format!("sqlite:{}", path.display());
    place.assert_refused("__control", &[("--store", store)], 64, words).await;
    assert!(fs::read(path).unwrap() == before, "{words}: the file was changed");
}

#[tokio::test]
async fn a_broken_store_is_named_and_left_as_it_is() {
    let (mut world, path) = used_store().await;
    let good = fs::read(&path).unwrap();

    let store = rusqlite::Connection::open(&path).unwrap();
    store.pragma_update(None, "user_version", 99).unwrap();
    store.close().unwrap();
    assert_store_refused(&path, "newer than this program's").await;

    let mut broken = good.clone();
    let middle = broken.len() / 2;
    broken[middle..].fill(0xa5);
    fs::write(&path, &broken).unwrap();
    assert_store_refused(&path, "").await;

    fs::write(&path, &good[..good.len() / 3]).unwrap();
    assert_store_refused(&path, "").await;

    fs::write(&path, "SQLite format 3\0 and then a letter").unwrap();
    assert_store_refused(&path, "").await;

    fs::write(&path, "dear friend").unwrap();
    assert_store_refused(&path, "not a database").await;

    fs::remove_file(&path).unwrap();
    let foreign = rusqlite::Connection::open(&path).unwrap();
    foreign.execute_batch("CREATE TABLE songs (title TEXT)").unwrap();
    foreign.close().unwrap();
    assert_store_refused(&path, "another program").await;

    fs::write(&path, &good).unwrap();
    world.control().start_again().await;
    let listed = world.runs().await.list_runs(gitdoor_proto::v1::ListRunsRequest::default()).await.unwrap();
    assert_eq!(listed.into_inner().runs.len(), 1, "the good file is a store as before");
    world.finish().await;
}

#[tokio::test]
async fn help_and_version_exit_0_and_every_flag_is_a_variable() {
    for role in ["__control", "__dataplane", "__gitdoor"] {
        for flag in ["--help", "--version", "-h", "-V"] {
            let exit = run_to_exit(PROGRAM.as_ref(), role, &[flag.to_owned()]).await;
            assert_eq!((exit.code, exit.stderr.as_str()), (Some(0), ""), "{role} {flag}");
            assert!(!exit.stdout.is_empty(), "{role} {flag}");
        }
    }
    for role in ["__control", "__dataplane"] {
        let help = run_to_exit(PROGRAM.as_ref(), role, &["--help".to_owned()]).await.stdout;
        let first_words = help.lines().filter_map(|line| line.split_whitespace().next());
        let flags: Vec<&str> = first_words.filter(|word| word.starts_with("--")).collect();
        assert!(flags.len() > 8, "{flags:?}");
        for flag in flags {
            let flag = flag.trim_end_matches(',');
            let variable = format!("[env: {}=", variable(flag));
            assert!(help.contains(&variable), "{role} {flag} has no {variable}");
        }
    }
}

/// The variable of a flag: `GITDOOR_ADMIN_LISTEN` of `--admin-listen`.
fn variable(flag: &str) -> String {
    format!("GITDOOR_{}", flag.trim_start_matches("--").to_uppercase().replace('-', "_"))
}

/// Flags as variables: `--admin-listen=x` is `GITDOOR_ADMIN_LISTEN=x`.
fn variables(flags: &[String]) -> Vec<(String, String)> {
    let split = flags.iter().map(|flag| flag.split_once('=').unwrap());
    split.map(|(flag, value)| (variable(flag), value.into())).collect()
}

#[tokio::test]
async fn both_servers_start_from_variables_alone_and_a_bad_one_is_named_by_its_flag() {
    let place = Place::new();
    for (role, flags, bad) in [
        ("__control", place.control(), ("GITDOOR_STORE", "--store")),
        ("__dataplane", place.dataplane(), ("GITDOOR_GITHUB_CA", "--github-ca")),
    ] {
        let command = |environment: Vec<(String, String)>| {
            let mut command = Command::new(PROGRAM);
            command.arg(role).env_clear().envs(environment).stdin(Stdio::null()).kill_on_drop(true);
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            command
        };
        let mut flags = flags;
        if role == "__dataplane" {
            // A switch is on by any usual word; the API of an Enterprise Server has a path.
            flags.retain(|flag| !flag.starts_with("--github-api-url="));
            flags.extend(["--http2=1".into(), "--github-api-url=https://ghe.test/api/v3".into()]);
        }
        let mut child = command(variables(&flags)).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let ready = tokio::time::timeout(LIMIT, lines.next_line()).await.unwrap().unwrap().unwrap();
        assert!(ready.starts_with("ready "), "{role}: {ready}");
        let kill = format!("kill -TERM {}", child.id().unwrap());
        assert!(std::process::Command::new("sh").args(["-c", &kill]).status().unwrap().success());
        assert_eq!(tokio::time::timeout(LIMIT, child.wait()).await.unwrap().unwrap().code(), Some(0), "{role}");

        let mut environment = variables(&flags);
        let (variable, flag) = bad;
        environment.retain(|(name, _)| name != variable);
        let value = if role == "__control" { "sqlite:/nonexistent/store" } else { "/nonexistent" };
        environment.push((variable.to_owned(), value.to_owned()));
        let output = tokio::time::timeout(LIMIT, command(environment).output()).await.unwrap().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(64), 0), "{role}: {stderr}");
        assert!(stderr.contains(flag), "{role}: {stderr}");
    }
}
