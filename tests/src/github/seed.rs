//! How a repository comes to be: a bare repository with what GitHub's advertise, filled by `git fast-import`.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::Github;
use super::furnished::Furnishing;
use super::repositories::Repository;

/// A repository to be.
#[expect(clippy::struct_excessive_bools, reason = "each is a choice of its own")]
pub struct Seed<'a> {
    github: &'a Github,
    name: String,
    branch: String,
    branches: Vec<String>,
    commits: usize,
    files: Vec<(String, Vec<u8>)>,
    sha256: bool,
    furnished: bool,
    private: bool,
    installed: bool,
}

impl<'a> Seed<'a> {
    pub(crate) fn new(github: &'a Github, name: &str) -> Self {
        Self {
            github,
            name: name.to_owned(),
            branch: "main".to_owned(),
            branches: Vec::new(),
            commits: 3,
            files: Vec::new(),
            sha256: false,
            furnished: false,
            private: true,
            installed: true,
        }
    }

    /// With a default branch of this name; else it is `main`.
    pub fn default_branch(mut self, branch: &str) -> Self {
        branch.clone_into(&mut self.branch);
        self
    }

    /// With one more branch, at the tip of the default one.
    pub fn branch(mut self, branch: &str) -> Self {
        self.branches.push(branch.to_owned());
        self
    }

    /// With this many commits on the default branch; else there are 3.
    pub fn commits(mut self, commits: usize) -> Self {
        self.commits = commits;
        self
    }

    /// Without a commit.
    pub fn empty(self) -> Self {
        self.commits(0)
    }

    /// With a file in the last commit.
    pub fn file(mut self, path: &str, bytes: impl Into<Vec<u8>>) -> Self {
        self.files.push((path.to_owned(), bytes.into()));
        self
    }

    /// With a file of that many random bytes, which no compression makes smaller.
    pub fn big_file(self, path: &str, bytes: usize) -> Self {
        let mut random = vec![0_u8; bytes];
        getrandom::fill(&mut random).expect("randomness");
        self.file(path, random)
    }

    /// With SHA-256 object ids.
    pub fn sha256(mut self) -> Self {
        self.sha256 = true;
        self
    }

    /// With all that the API shows of a repository in use: pull requests 41 to 43, 249 issues, runs 77 and 78, releases
    /// v0.9.0 and v1.0.0. Both the refs and the facts are the same every time.
    pub fn furnished(mut self) -> Self {
        self.furnished = true;
        self
    }

    /// Public.
    pub fn public(mut self) -> Self {
        self.private = false;
        self
    }

    /// Not in the installation: no token of the App sees it.
    pub fn outside(mut self) -> Self {
        self.installed = false;
        self
    }

    /// Makes it, and returns its id.
    pub fn create(self) -> u64 {
        let mut table = self.github.state.repositories.lock().unwrap();
        let id = table.next_id();
        let folder = self.github.state.folder.join("repositories").join(format!("{id}.git"));
        self.init(&folder);
        if self.commits > 0 {
            self.fill(&folder);
        }
        let furnishing = if self.furnished { Furnishing::of(&folder) } else { Furnishing::bare() };
        table.add(Repository {
            id,
            name: self.name,
            default_branch: self.branch,
            private: self.private,
            installed: self.installed,
            folder,
            furnishing,
        });
        id
    }

    fn init(&self, folder: &Path) {
        let format = if self.sha256 { "sha256" } else { "sha1" };
        let branch = format!("--initial-branch={}", self.branch);
        let mut init = git(folder.parent().expect("a parent"));
        init.args(["init", "--quiet", "--bare", "--template=", &branch, &format!("--object-format={format}")]);
        assert!(init.arg(folder).status().expect("git init").success());
        let mut config = fs::OpenOptions::new().append(true).open(folder.join("config")).expect("its config");
        config.write_all(CONFIG.as_bytes()).expect("to be written");
        let hook = folder.join("hooks/update");
        fs::create_dir_all(folder.join("hooks")).expect("a folder");
        fs::write(&hook, UPDATE_HOOK).expect("a hook");
        fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).expect("a hook that runs");
    }

    fn fill(&self, folder: &Path) {
        let mut import = git(folder)
            .args(["fast-import", "--quiet", "--done"])
            .stdin(Stdio::piped())
            .spawn()
            .expect("git fast-import");
        import.stdin.take().expect("a pipe").write_all(&self.stream()).expect("to be read");
        assert!(import.wait().expect("git fast-import").success());
    }

    /// What `git fast-import` reads.
    fn stream(&self) -> Vec<u8> {
        let mut stream = Vec::new();
        for number in 1..=self.commits {
            let message = format!("Commit {number}\n");
            let head = format!(
                "commit refs/heads/{}\ncommitter Octo Cat <octo@acme.test> {} +0000\ndata {}\n{message}",
                self.branch,
                1_700_000_000 + number,
                message.len(),
            );
            stream.extend_from_slice(head.as_bytes());
            put_file(&mut stream, "README.md", format!("# {}\n\nEdition {number}.\n", self.name).as_bytes());
            if number == self.commits {
                self.files.iter().for_each(|(path, bytes)| put_file(&mut stream, path, bytes));
            }
        }
        for branch in &self.branches {
            let reset = format!("reset refs/heads/{branch}\nfrom refs/heads/{}\n\n", self.branch);
            stream.extend_from_slice(reset.as_bytes());
        }
        if self.furnished {
            stream.extend_from_slice(FURNISHED.replace("{branch}", &self.branch).as_bytes());
        }
        stream.extend_from_slice(b"done\n");
        stream
    }
}

fn put_file(stream: &mut Vec<u8>, path: &str, bytes: &[u8]) {
    stream.extend_from_slice(format!("M 100644 inline {path}\ndata {}\n", bytes.len()).as_bytes());
    stream.extend_from_slice(bytes);
    stream.push(b'\n');
}

/// Git on a bare repository of the stand-in, untouched by the settings of whoever runs the test.
pub(crate) fn git(folder: &Path) -> Command {
    let mut git = Command::new("git");
    git.env_clear().env("PATH", search_path()).envs(NEUTRAL).current_dir(folder).stdin(Stdio::null());
    git
}

/// No settings but the repository's own.
pub(crate) const NEUTRAL: [(&str, &str); 4] = [
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_CONFIG_SYSTEM", "/dev/null"),
    ("HOME", "/nonexistent"),
    ("LC_ALL", "C"),
];

/// Where programs are found.
#[expect(clippy::disallowed_methods, reason = "a child finds its programs where the test does")]
pub(crate) fn search_path() -> PathBuf {
    std::env::var("PATH").unwrap_or_else(|_unset| "/usr/local/bin:/usr/bin:/bin".to_owned()).into()
}

/// What a furnished repository has on top: two branches, two tags, the heads of three pull requests.
const FURNISHED: &str = include_str!("data/furnished.import");

/// Everything that git can offer is offered, so that a door has something to take away. Large files of tests are random:
/// to compress them takes long and helps nothing.
const CONFIG: &str = "\
[core]
	compression = 0
[http]
	receivepack = true
[receive]
	advertisePushOptions = true
	certNonceSeed = standin
[uploadpack]
	allowFilter = true
	allowAnySHA1InWant = true
[gc]
	auto = 0
";

/// Refuses a ref that is listed in `forbidden`, and a workflow file without the permission for it.
const UPDATE_HOOK: &str = r#"#!/bin/sh
ref=$1 old=$2 new=$3
if grep -qxF "$ref" forbidden 2>/dev/null; then
    echo "error: GH013: Repository rule violations found for $ref." >&2
    exit 1
fi
if [ "$STANDIN_WORKFLOWS" = no ] && git cat-file -e "$new^{commit}" 2>/dev/null; then
    if [ -n "$(git log --format= --name-only "$new" --not --all -- .github/workflows)" ]; then
        echo "error: refusing to allow a GitHub App to create or update workflow without 'workflows' permission" >&2
        exit 1
    fi
fi
"#;
