//! Stock git in an environment of its own: it knows the door's certificate and one bearer's file, and nothing of whoever
//! runs this.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::process::Command;

use crate::client::kill_group;
use crate::github::search_path;

/// The bearer is read when git asks for it, and stands in no argument.
const SETTINGS: &str = r#"[user]
	name = gitdoor load
	email = load@gitdoor.invalid
[gc]
	auto = 0
[maintenance]
	auto = false
[credential]
	helper = "!f() { test \"$1\" = get && echo username=x-access-token && echo \"password=$(cat \"$BEARER_FILE\")\"; }; f"
"#;

/// The file that a push brings.
const FILE: &str = "gitdoor-load.bin";

/// A git with a run's bearer.
pub(super) struct Git {
    environment: Vec<(&'static str, PathBuf)>,
}

impl Git {
    /// With a home of its own.
    pub(super) fn new(home: PathBuf, bearer: &Path, ca: Option<&Path>) -> io::Result<Self> {
        fs::create_dir_all(&home)?;
        let settings = home.join("gitconfig");
        fs::write(&settings, SETTINGS)?;
        let mut environment = vec![
            ("PATH", search_path()),
            ("GIT_CONFIG_GLOBAL", settings),
            ("GIT_CONFIG_SYSTEM", "/dev/null".into()),
            ("GIT_TERMINAL_PROMPT", "0".into()),
            ("LC_ALL", "C".into()),
            ("BEARER_FILE", bearer.to_owned()),
            ("HOME", home),
        ];
        if let Some(ca) = ca {
            environment.push(("GIT_SSL_CAINFO", fs::canonicalize(ca)?));
        }
        Ok(Self { environment })
    }

    /// Clones into a folder that is removed again; the bytes of the pack.
    pub(super) async fn clone_bare(&self, url: &str, folder: &Path) -> Result<u64, String> {
        // What was cut before has left some of it.
        drop(fs::remove_dir_all(folder));
        let place = folder.as_os_str();
        let end = self.run(Path::new("/"), &["clone", "--quiet", "--bare", url].map(OsStr::new), Some(place)).await;
        let bytes = size_of(&folder.join("objects/pack"));
        drop(fs::remove_dir_all(folder));
        end.map(|()| bytes)
    }

    /// Runs a command to its end; what is left of it is ended where nobody waits any more.
    async fn run(&self, folder: &Path, arguments: &[&OsStr], last: Option<&OsStr>) -> Result<(), String> {
        let mut command = Command::new("git");
        command.args(arguments).args(last).current_dir(folder).env_clear().envs(self.environment.iter().cloned());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).process_group(0);
        let child = command.spawn().map_err(|why| format!("git cannot be run: {why}"))?;
        let mut group = Group(child.id());
        let output = child.wait_with_output().await.map_err(|why| format!("git cannot be run: {why}"))?;
        group.0 = None;
        if output.status.success() { Ok(()) } else { Err(reason(&String::from_utf8_lossy(&output.stderr))) }
    }
}

/// The processes of a command that has not ended.
struct Group(Option<u32>);

impl Drop for Group {
    fn drop(&mut self) {
        self.0.into_iter().for_each(kill_group);
    }
}

/// A clone whose commits go to one branch.
pub(super) struct Pusher<'a> {
    git: &'a Git,
    folder: PathBuf,
    branch: String,
    is_cloned: bool,
}

impl<'a> Pusher<'a> {
    /// It clones when it is first asked to push.
    pub(super) fn new(git: &'a Git, folder: PathBuf, branch: String) -> Self {
        Self { git, folder, branch, is_cloned: false }
    }

    /// Makes the next commit.
    pub(super) async fn prepare(&mut self, url: &str, bytes: u32) -> Result<(), String> {
        if !self.is_cloned {
            drop(fs::remove_dir_all(&self.folder));
            let clone = ["clone", "--quiet", "--depth=1", "--no-checkout", url].map(OsStr::new);
            self.git.run(Path::new("/"), &clone, Some(self.folder.as_os_str())).await?;
            // The commits keep what the branch that they begin at has, none of which is written to the disk.
            self.here(&["read-tree", "HEAD"]).await?;
            self.is_cloned = true;
        }
        let mut content = vec![0; bytes as usize];
        getrandom::fill(&mut content).map_err(|why| format!("no random bytes: {why}"))?;
        fs::write(self.folder.join(FILE), content).map_err(|why| format!("no file can be written: {why}"))?;
        self.here(&["add", FILE]).await?;
        self.here(&["commit", "--quiet", "--message=Load"]).await
    }

    /// Pushes it; the bytes of its file.
    pub(super) async fn push(&self, bytes: u32) -> Result<u64, String> {
        let to = format!("HEAD:refs/heads/{}", self.branch);
        self.here(&["push", "--quiet", "origin", &to]).await.map(|()| u64::from(bytes))
    }

    async fn here(&self, arguments: &[&str]) -> Result<(), String> {
        let arguments: Vec<&OsStr> = arguments.iter().map(OsStr::new).collect();
        self.git.run(&self.folder, &arguments, None).await
    }
}

/// Why git failed, in the door's words where there are any.
fn reason(printed: &str) -> String {
    let lines = || printed.lines().map(str::trim);
    let rejected =
        lines().find_map(|line| line.split_once("[remote rejected]")?.1.rsplit_once('(')?.1.strip_suffix(')'));
    let said = || {
        lines().filter_map(|line| line.strip_prefix("remote: gitdoor: ")).find(|said| !said.starts_with("request "))
    };
    let last = || lines().rev().find(|line| line.starts_with("fatal: ") || line.starts_with("error: "));
    rejected.or_else(said).or_else(last).unwrap_or("git failed, and did not say why").to_owned()
}

fn size_of(folder: &Path) -> u64 {
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    files.filter_map(|file| file.metadata().ok()).map(|about| about.len()).sum()
}
