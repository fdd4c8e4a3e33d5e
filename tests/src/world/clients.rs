//! The stock clients of a world: each with a home of its own, and a run's bearer and nothing else.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{Run, World};
use crate::authority::Leaf;
use crate::gh::{Credential, DOOR, Gh, Sandbox, Version};
use crate::git::Git;
use crate::machine::Machine;
use crate::recorder::Recorder;
use crate::workspace::Workspace;

impl World {
    /// A git client of the first data plane that holds a run's bearer.
    pub fn git(&self, run: &Run) -> Git {
        self.git_at(0, &run.bearer)
    }

    /// A git client of any data plane with any password.
    pub fn git_at(&self, number: usize, password: &str) -> Git {
        self.git_by(&self.url(number), password)
    }

    /// A git client that knows the data planes by another URL.
    pub fn git_by(&self, url: &str, password: &str) -> Git {
        Git::new(&self.new_home(), url, &self.ca_file(), password, self.transcript.clone())
    }

    /// A gh that holds a run's bearer in its `hosts.yml`. It reaches the first data plane as `git.door.test`.
    pub fn gh(&self, run: &Run, version: &Version) -> Gh {
        self.gh_with(run, version, Credential::Hosts)
    }

    /// A gh that holds it there, or in its environment.
    pub fn gh_with(&self, run: &Run, version: &Version, credential: Credential) -> Gh {
        let (home, authorities, proxy) = (self.new_home(), self.ca_file(), self.recorder.url());
        let sandbox = Sandbox { home: &home, proxy: &proxy, authorities: &authorities, bearer: &run.bearer };
        Gh::new(version, &sandbox, credential, self.transcript.clone())
    }

    /// A workspace that holds a run's bearer in a file, and is not wired to the door yet. It reaches the first data
    /// plane as `git.door.test`.
    pub fn workspace(&self, program: impl AsRef<Path>, run: &Run, version: &Version) -> Workspace {
        let network = (self.recorder.url(), self.ca_file());
        let folder = self.new_home();
        Workspace::new(program.as_ref(), version, folder, network, &run.bearer, self.transcript.clone())
    }

    /// A machine with several users, where the kernel lets somebody make one. Its root reaches GitHub, and the others the
    /// first data plane as `git.door.test`.
    pub fn machine(&self, program: impl AsRef<Path>) -> Option<Machine> {
        let machine = Machine::new(program.as_ref(), self.transcript.clone())?;
        for (name, file) in [("github", self.github.ca_file()), ("door", self.ca_file())] {
            machine.write(&format!("/mnt/{name}.pem"), &std::fs::read_to_string(file).expect("authorities"));
        }
        let github = self.github.url().trim_start_matches("https://").to_owned();
        let variable = |name, value: &str| (name, value.to_owned());
        machine.knows(
            "root",
            &[variable("GIT_SSL_CAINFO", "/mnt/github.pem"), variable("GITDOOR_FORGE_HOST", &github)],
        );
        let proxy = self.recorder.url();
        machine.knows(
            "user",
            &[
                variable("GITDOOR_CA", "/mnt/door.pem"),
                variable("HTTPS_PROXY", &proxy),
                variable("http_proxy", &proxy),
            ],
        );
        Some(machine)
    }

    /// The proxy that every gh of this world goes through, and the git beside it.
    pub fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// The certificates that clients trust, of the data planes and of the recorder: a PEM file.
    pub fn ca_file(&self) -> PathBuf {
        self.folder.path().join("dataplane/ca.pem")
    }

    /// Another certificate of the data planes' names, that clients trust.
    pub fn leaf(&self) -> Leaf {
        self.authority.leaf(&["localhost", "127.0.0.1", DOOR])
    }

    /// One that ends after this time.
    pub fn short_leaf(&self, life: Duration) -> Leaf {
        self.authority.short_leaf(&["localhost", "127.0.0.1", DOOR], life)
    }

    /// A new folder below the clients'.
    pub(crate) fn new_home(&self) -> PathBuf {
        let client = self.clients.fetch_add(1, Ordering::SeqCst);
        self.folder.path().join("clients").join(client.to_string())
    }
}
