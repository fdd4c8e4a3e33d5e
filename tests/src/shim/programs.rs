//! The programs, each with its example as it stands but for addresses and names.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::process::Command;

use super::Backend;
use crate::github::search_path;

/// Where the examples are.
const DEPLOY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy");
/// What nginx needs around a file of `conf.d`: what Debian's own has, and one process, which ends with its test.
const NGINX: &str = "daemon off; master_process off; pid nginx.pid; error_log stderr;
events {}
http {
    access_log off;
    client_body_temp_path temp-body;
    proxy_temp_path temp-proxy;
    fastcgi_temp_path temp-fastcgi;
    uwsgi_temp_path temp-uwsgi;
    scgi_temp_path temp-scgi;
    include gitdoor.conf;
}
";

pub(super) fn workerd(listen: SocketAddr, backends: &[Backend; 2], ceiling: u64) -> Command {
    let worker = Path::new(DEPLOY).join("cloudflare");
    let mut command = command(runtime(&worker));
    command.arg("serve").arg(worker.join("test/workerd.capnp")).arg(format!("--socket-addr=door={listen}"));
    for (number, backend) in backends.iter().enumerate() {
        command.arg(format!("--external-addr=dataplane-{number}={}", backend.address));
    }
    command.env("MAX_BODY_BYTES", ceiling.to_string());
    command
}

/// The binary itself, of whatever machine this is: npm's wrapper of it would outlive a test.
fn runtime(worker: &Path) -> PathBuf {
    let folder = worker.join("node_modules/@cloudflare");
    let entries = fs::read_dir(folder).expect("the Worker's packages: `tests/run machine` fetches them");
    let mut binaries = entries.filter_map(Result::ok).map(|entry| entry.path().join("bin/workerd"));
    binaries.find(|binary| binary.exists()).expect("workerd, which npm has for this machine")
}

pub(super) async fn nginx(listen: SocketAddr, backends: &[Backend; 2], folder: &Path) -> Command {
    let example = example("nginx/gitdoor.conf", backends, &[("listen 443 ssl", format!("listen {listen} ssl"))]);
    fs::write(folder.join("gitdoor.conf"), example).expect("a file");
    fs::write(folder.join("nginx.conf"), NGINX).expect("a file");
    let nginx = || {
        let mut command = command("nginx");
        command.arg("-p").arg(folder).arg("-c").arg(folder.join("nginx.conf")).args(["-e", "stderr"]);
        command
    };
    check(nginx().arg("-t")).await;
    nginx()
}

pub(super) async fn haproxy(name: &str, listen: SocketAddr, backends: &[Backend; 2], folder: &Path) -> Command {
    let ports = [("port 9102", 0), ("port 9103", 1)].map(|(text, of)| (text, backends[of].admin.port()));
    let ports = ports.map(|(text, port)| (text, format!("port {port}")));
    let [first, second] = ports;
    let bind = ("bind :443", format!("bind {listen}"));
    fs::write(folder.join(name), example(&format!("haproxy/{name}"), backends, &[bind, first, second]))
        .expect("a file");
    let haproxy = || {
        let mut command = command("haproxy");
        command.arg("-C").arg(folder).args(["-f", name]);
        command
    };
    check(haproxy().arg("-c")).await;
    let mut command = haproxy();
    command.arg("-db");
    command
}

/// An example with these places in place of its own, each of which it must have.
fn example(name: &str, backends: &[Backend; 2], more: &[(&str, String)]) -> String {
    let mut text = fs::read_to_string(Path::new(DEPLOY).join(name)).expect("an example");
    let [first, second] = backends.each_ref().map(|backend| backend.address.to_string());
    let mut places = vec![("10.0.0.11:8443", first), ("10.0.0.12:8443", second)];
    places.extend_from_slice(more);
    for (place, instead) in places {
        assert!(text.contains(place), "{name} has no {place}");
        text = text.replace(place, &instead);
    }
    // The name that the certificates of tests are for.
    text.replace("git.example.com", "localhost")
}

/// Runs a check of a configuration, which must pass without a warning.
async fn check(command: &mut Command) {
    let output = command.output().await.expect("a shim: `tests/run machine` installs it");
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert!(output.status.success() && !said.to_lowercase().contains("warn"), "{command:?}: {said}");
}

fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null()).stdout(Stdio::null()).kill_on_drop(true);
    // Debian has both where only an administrator's shell looks.
    command.env_clear().env("PATH", format!("{}:/usr/sbin", search_path().display()));
    command
}
