//! What the files of `deploy/` expect around them, in a temporary folder: the keys and certificates, PostgreSQL, GitHub.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use gitdoor_tests::authority::Authority;
use gitdoor_tests::git::{Git, Transcript};
use gitdoor_tests::github::{APP_ID, Github, INSTALLATION_ID};
use tempfile::TempDir;

use super::process::{Process, program};
use super::{Start, files};

/// A server of the distribution's: the same file that control's own tests start it with.
#[expect(dead_code, reason = "control's own tests use the rest")]
#[path = "../../../control/src/store/postgres/server.rs"]
mod server;

/// The machine, cluster or network that a deployment is in.
pub(super) struct Ground {
    folder: TempDir,
    github: Github,
    postgres: server::Server,
}

impl Ground {
    /// With a file in each place that a deployment has one in.
    pub(super) fn new() -> Self {
        let ground = Self {
            folder: tempfile::tempdir().unwrap(),
            github: Github::start(),
            postgres: server::Server::start(),
        };
        ground.postgres.create("gitdoor");
        ground.github.create("acme/api");
        let certs = ground.certs();
        for folder in ["etc/control", "etc/dataplane", "etc/door", "run/secrets", "var"] {
            fs::create_dir_all(ground.path(folder)).unwrap();
        }
        for plane in ["control", "dataplane"] {
            for file in ["ca.pem", &format!("{plane}.pem"), &format!("{plane}.key")] {
                fs::copy(certs.join(file), ground.path("etc").join(plane).join(file)).unwrap();
            }
        }
        let authority = Authority::new("deployment");
        fs::write(ground.path("authority.pem"), authority.pem()).unwrap();
        let leaf = authority.leaf(&["localhost"]);
        for (certificate, key) in [("dataplane/door.pem", "dataplane/door.key"), ("door/tls.crt", "door/tls.key")] {
            fs::write(ground.path("etc").join(certificate), &leaf.certificate).unwrap();
            fs::write(ground.path("etc").join(key), &leaf.key).unwrap();
        }
        for folder in ["etc/control", "run/secrets"] {
            fs::copy(ground.github.app_key_file(), ground.path(folder).join("app.pem")).unwrap();
            fs::write(
                ground.path(folder).join("store-password"),
                "not looked at, since the server trusts its socket\n",
            )
            .unwrap();
        }
        ground
    }

    /// Made as the README says, for the names that it says.
    fn certs(&self) -> PathBuf {
        let readme = files::read("README.md");
        let named = readme.split("--control-host ").skip(1).map(|rest| rest.split_whitespace().next().unwrap());
        let out = self.path("certs");
        let mut command = Command::new(program("gitdoor"));
        command.env_clear().args(["certs", "--out"]).arg(&out);
        let done = command.args(named.flat_map(|name| ["--control-host", name])).output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        out
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The same start, here: other folders, other ports, this GitHub.
    fn here(&self, mut start: Start, gates: &[String]) -> Start {
        let folder = |name: &str| self.path(name).display().to_string();
        let database = self.postgres.folder().display().to_string();
        let swaps = [
            ("/etc/gitdoor", folder("etc")),
            ("/run/secrets", folder("run/secrets")),
            ("/var/lib/gitdoor", folder("var")),
            ("gitdoor@db.example.com/gitdoor", format!("gitdoor@/gitdoor?host={database}")),
            ("host=/run/postgresql", format!("host={database}")),
            ("git.example.com", "localhost".to_owned()),
        ];
        let moved =
            |text: &str| swaps.iter().fold(text.to_owned(), |text, (there, here)| text.replace(there, here));
        start.arguments = start.arguments.iter().map(|argument| moved(argument)).collect();
        for (name, value) in &mut start.variables {
            *value = match name.as_str() {
                listen if listen.ends_with("LISTEN") => "127.0.0.1:0".to_owned(),
                "GITDOOR_CONTROL" => gates.join(","),
                "GITDOOR_GITHUB_APP_ID" => APP_ID.to_owned(),
                "GITDOOR_GITHUB_INSTALLATION_ID" => INSTALLATION_ID.to_owned(),
                _ => moved(value),
            };
        }
        let ca = self.github.ca_file().display().to_string();
        start.variables.extend([
            ("GITDOOR_GITHUB_API_URL".to_owned(), self.github.api_url()),
            ("GITDOOR_GITHUB_CA".to_owned(), ca),
        ]);
        if start.program == "gitdoor-dataplane" {
            start.variables.insert("GITDOOR_GITHUB_URL".to_owned(), self.github.url());
        }
        start
    }

    /// Starts them all, controls first, clones through each data plane, and ends them.
    pub(super) async fn serve(&self, starts: Vec<Start>) {
        let (controls, dataplanes): (Vec<_>, Vec<_>) =
            starts.into_iter().partition(|start| start.program == "gitdoor-control");
        let mut running = Vec::new();
        let mut gates = Vec::new();
        for (number, start) in controls.into_iter().enumerate() {
            let log = self.path(&format!("control-{number}.log"));
            let control = Process::start(self.here(start, &[]), log).await;
            control.probe().await;
            gates.push(format!("https://{}", control.address("gate")));
            running.push(control);
        }
        for (number, start) in dataplanes.into_iter().enumerate() {
            let log = self.path(&format!("dataplane-{number}.log"));
            let dataplane = Process::start(self.here(start, &gates), log).await;
            dataplane.probe().await;
            self.clone_by(&dataplane, &running[0], number).await;
            running.push(dataplane);
        }
        for process in &running {
            let strangers: Vec<_> =
                process.files().into_iter().filter(|file| !file.starts_with(self.path("var"))).collect();
            assert!(strangers.is_empty(), "open, and on what is read-only there: {strangers:?}");
        }
        // Data planes first, as when a machine goes down.
        for process in running.into_iter().rev() {
            process.stop().await;
        }
    }

    async fn clone_by(&self, dataplane: &Process, control: &Process, number: usize) {
        let mut command = Command::new(program("gitdoor"));
        command.env_clear().args(["run", "register", "--identity=read", &format!("--run-id=run-{number}")]);
        command.arg(format!("--control=https://{}", control.address("runs")));
        for (flag, file) in [("ca", "ca.pem"), ("cert", "bot.pem"), ("key", "bot.key")] {
            command.arg(format!("--control-tls-{flag}={}", self.path("certs").join(file).display()));
        }
        let registered = command.output().unwrap();
        assert!(registered.status.success(), "{}", String::from_utf8_lossy(&registered.stderr));
        let bearer = String::from_utf8(registered.stdout).unwrap();
        let url = format!("https://localhost:{}", dataplane.address("listen").port());
        let home = self.path(&format!("client-{number}"));
        let git = Git::new(&home, &url, &self.path("authority.pem"), bearer.trim(), Transcript::default());
        git.run(&["clone", &git.url("acme/api"), "clone"]).await.ok();
        assert!(home.join("work/clone/.git/HEAD").exists());
    }
}
