//! GitHub's own CLI, `gh`, with a home of its own: it takes the door for a GitHub Enterprise host, and reaches it and
//! everything else through the [recorder](crate::recorder).
//!
//! `tests/run machine` fetches an old and a new one; a promise about gh is tested by both, with [`by_both_gh!`].
//!
//! [`by_both_gh!`]: crate::by_both_gh

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::client::Client;
use crate::git::settle;
use crate::github::search_path;

pub use crate::client::{Output, Transcript};

/// The name that clients know the door by. A name under `localhost` is one that no Go program asks a proxy for.
pub const DOOR: &str = "git.door.test";

/// The file that holds gh's credential, and may.
pub const HOSTS_FILE: &str = "hosts.yml";

/// A gh that is here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// The program.
    pub program: PathBuf,
    /// Its version: `2.102.0`.
    pub number: String,
}

/// Every gh that is here, the oldest first; there must be one.
pub fn versions() -> Vec<Version> {
    let found = found();
    assert!(!found.is_empty(), "there is no gh below {}: `tests/run machine` fetches it", folder().display());
    found
}

/// Every gh that is here, the oldest first.
pub fn found() -> Vec<Version> {
    // By the shortest way there: behind a fence, what else is on the way may not be seen.
    let folder = folder().canonicalize().unwrap_or_else(|_missing| folder());
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<Version> = entries
        .map(|entry| Version {
            program: entry.path().join("gh"),
            number: entry.file_name().to_string_lossy().into_owned(),
        })
        .filter(|version| version.program.is_file())
        .collect();
    found.sort_by_key(|version| {
        version.number.split('.').map(|part| part.parse().ok()).collect::<Vec<Option<u32>>>()
    });
    found
}

/// Where `tests/run` puts them, each in a folder of its version.
fn folder() -> PathBuf {
    std::env::var_os("GITDOOR_TEST_GH_DIR")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/gh"), PathBuf::from)
}

/// The oldest gh that is here.
pub fn oldest() -> Version {
    versions().remove(0)
}

/// The newest gh that is here.
pub fn newest() -> Version {
    versions().pop().expect("there is one")
}

/// Makes two tests of each function named: `old::NAME` calls it with the oldest gh that is here, `new::NAME` with the
/// newest.
#[macro_export]
macro_rules! by_both_gh {
    ($($test:ident),+ $(,)?) => {
        mod old {
            $(#[tokio::test]
            async fn $test() {
                super::$test($crate::gh::oldest()).await;
            })+
        }
        mod new {
            $(#[tokio::test]
            async fn $test() {
                super::$test($crate::gh::newest()).await;
            })+
        }
    };
}

/// How gh holds its bearer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Credential {
    /// In its `hosts.yml`, for the door alone.
    Hosts,
    /// In `GH_ENTERPRISE_TOKEN`, which gh takes for any host that is not GitHub's.
    Environment,
}

/// What a gh needs to know of where it is.
pub(crate) struct Sandbox<'a> {
    /// A folder of its own.
    pub(crate) home: &'a Path,
    /// The proxy that everything goes through.
    pub(crate) proxy: &'a str,
    /// The certificates of the door and of the proxy: a PEM file.
    pub(crate) authorities: &'a Path,
    /// The run's bearer.
    pub(crate) bearer: &'a str,
}

/// A gh and a git that share a home, a folder to work in and a bearer.
#[derive(Clone)]
pub struct Gh {
    version: Version,
    home: PathBuf,
    bearer: String,
    client: Client,
}

impl Gh {
    pub(crate) fn new(
        version: &Version,
        sandbox: &Sandbox<'_>,
        credential: Credential,
        transcript: Transcript,
    ) -> Self {
        let home = sandbox.home;
        let authorities = sandbox.authorities.display().to_string();
        let temporary = home.join(TEMPORARY);
        let client = Client::new(home.join("work"), transcript);
        fs::create_dir(&temporary).expect("a folder");
        let client = settle(client, home, "", sandbox.authorities)
            .env("PATH", path_with(&version.program))
            .env("GH_HOST", DOOR)
            .env("GH_CONFIG_DIR", home.join(CONFIG_FOLDER).display().to_string())
            .env("GH_PROMPT_DISABLED", "1")
            .env("GH_NO_UPDATE_NOTIFIER", "1")
            .env("NO_COLOR", "1")
            .env("TZ", "UTC")
            .env("TMPDIR", temporary.display().to_string())
            .env("SSL_CERT_FILE", authorities)
            // Go and libcurl both know these spellings.
            .env("HTTPS_PROXY", sandbox.proxy)
            .env("http_proxy", sandbox.proxy)
            .env("GIT_CONFIG_COUNT", "1")
            .env("GIT_CONFIG_KEY_0", format!("credential.https://{DOOR}.helper"))
            .env("GIT_CONFIG_VALUE_0", format!("!'{}' auth git-credential", version.program.display()));
        let client = match credential {
            Credential::Hosts => {
                write_hosts(&home.join(CONFIG_FOLDER), DOOR, sandbox.bearer);
                client
            }
            Credential::Environment => client.env("GH_ENTERPRISE_TOKEN", sandbox.bearer),
        };
        Self { version: version.clone(), home: home.to_owned(), bearer: sandbox.bearer.to_owned(), client }
    }

    /// Runs a command of gh to its end.
    pub async fn run<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Output {
        self.run_with_input(arguments, b"").await
    }

    /// Likewise, with a standard input.
    pub async fn run_with_input<A: AsRef<OsStr>>(&self, arguments: &[A], input: &[u8]) -> Output {
        self.client.run(&self.version.program, arguments, input).await
    }

    /// Runs a command of git in the same environment: for the door it asks this gh for the credential.
    pub async fn git<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Output {
        self.client.run(Path::new("git"), arguments, b"").await
    }

    /// Runs a line of a shell, in which `gh` and `git` are these.
    pub async fn shell(&self, line: &str) -> Output {
        self.client.run(Path::new("sh"), &["-c", line], b"").await
    }

    /// Takes away the answers and downloads that gh has kept, so that it asks for all of them again.
    pub fn forget(&self) {
        for kept in KEPT.map(|kept| self.home.join(kept)).iter().filter(|kept| kept.exists()) {
            fs::remove_dir_all(kept).expect("to be removed");
        }
    }

    /// The password that gh, as git's credential helper, has for a host.
    pub async fn password_for(&self, host: &str) -> Option<String> {
        let input = format!("protocol=https\nhost={host}\n\n");
        let arguments = ["auth", "git-credential", "get"];
        let mut output = self.client.ask(&self.version.program, &arguments, input.as_bytes()).await;
        let password = output.stdout.lines().find_map(|line| line.strip_prefix("password=")).map(str::to_owned);
        assert_eq!(output.code, Some(i32::from(password.is_none())), "{output}");
        // Here, and only here, the bearer is what was asked for.
        output.stdout = output.stdout.replace(&self.bearer, "BEARER");
        self.client.keep(&output);
        password
    }

    /// With all of gh's requests, to any host, on this Unix socket and without TLS.
    pub fn unix_socket(self, path: &Path) -> Self {
        let settings = format!("{SETTINGS}http_unix_socket: {}\n", path.display());
        fs::create_dir_all(self.settings()).expect("a folder");
        fs::write(self.settings().join("config.yml"), settings).expect("a file");
        self
    }

    /// With an environment variable.
    pub fn env(self, name: &str, value: impl Into<String>) -> Self {
        Self { client: self.client.env(name, value), ..self }
    }

    /// With more or less time for a command than 30 seconds.
    pub fn limit(self, limit: Duration) -> Self {
        Self { client: self.client.limit(limit), ..self }
    }

    /// In another folder, below the one it works in.
    pub fn at(&self, folder: &str) -> Self {
        Self { client: self.client.at(folder), ..self.clone() }
    }

    /// The folder it works in.
    pub fn folder(&self) -> &Path {
        self.client.folder()
    }

    /// Its home.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// The folder of its settings.
    pub fn settings(&self) -> PathBuf {
        self.home.join(CONFIG_FOLDER)
    }

    /// The environment of its commands.
    pub fn environment(&self) -> &[(String, String)] {
        self.client.environment()
    }

    /// The gh that it is.
    pub fn version(&self) -> &Version {
        &self.version
    }

    /// A repository's URL: `https://git.door.test/owner/name`.
    pub fn url(&self, repository: &str) -> String {
        format!("https://{DOOR}/{repository}")
    }
}

/// The folder of gh's settings, in its home.
const CONFIG_FOLDER: &str = "gh";

/// The folder for what is temporary, in its home: an old gh would else find there what it kept of another world.
const TEMPORARY: &str = "tmp";

/// Where a gh keeps answers and downloads, in its home: an old one, and a new one.
const KEPT: [&str; 2] = ["tmp/gh-cli-cache", ".cache/gh"];

/// Without this, a gh between the two takes its settings for old ones, asks the host whose token that is to rewrite
/// them, and does nothing else until it was told.
const SETTINGS: &str = "version: \"1\"\n";

/// Writes the settings of a gh that has a bearer for this host and for no other, in the form that every version takes
/// as it is.
pub(crate) fn write_hosts(folder: &Path, host: &str, bearer: &str) {
    fs::create_dir_all(folder).expect("a folder");
    let hosts = format!("{host}:\n    user: x-access-token\n    oauth_token: {bearer}\n");
    fs::write(folder.join(HOSTS_FILE), hosts).expect("a file");
    fs::write(folder.join("config.yml"), SETTINGS).expect("a file");
}

/// This gh before any other, and git.
pub(crate) fn path_with(program: &Path) -> String {
    let mut path = program.parent().expect("a folder").as_os_str().to_owned();
    path.push(":");
    path.push(search_path());
    path.into_string().expect("text")
}
