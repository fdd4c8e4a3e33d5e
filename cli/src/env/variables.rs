//! The variables of a sandbox, in the order in which they are printed.
//!
//! git's settings come as variables too (`GIT_CONFIG_COUNT`), which win over every file of settings:
//! <https://git-scm.com/docs/git-config#ENVIRONMENT>.

use gitdoor_proto::{Bearer, RepositoryName};

use super::{Door, settings::GitFiles};

/// Variables that hold a credential of GitHub's, or did somewhere.
pub(crate) const CREDENTIALS: [&str; 7] = [
    "GH_TOKEN",
    "GITHUB_TOKEN",
    "GH_ENTERPRISE_TOKEN",
    "GITHUB_ENTERPRISE_TOKEN",
    "GITHUB_API_TOKEN",
    "GITHUB_PAT",
    "HOMEBREW_GITHUB_API_TOKEN",
];

/// Variables that lead to one. Each does nothing where it is empty.
pub(crate) const WAYS: [&str; 6] =
    ["SSH_AUTH_SOCK", EDITOR, "GIT_ASKPASS", "SSH_ASKPASS", "GIT_CONFIG_PARAMETERS", "GH_REPO"];

/// The socket by which the terminal of VS Code, and of what is made of it, gets its user's token.
pub(crate) const EDITOR: &str = "VSCODE_GIT_IPC_HANDLE";

/// What our own flags are called as variables: they name keys, and are nobody's business in a sandbox.
pub(crate) const OURS: &str = "GITDOOR_";

/// git's authorities for every host, which win over those that its settings have for one.
const GIT_AUTHORITIES: &str = "GIT_SSL_CAINFO";

/// Where GitHub's repositories are, as a clone, a submodule or a remote names them.
pub(crate) const FORGE: [&str; 3] = ["https://github.com/", "git@github.com:", "ssh://git@github.com/"];

/// Reads gh's file, by the shell alone: the bearer is in no argument and in no variable. No backslash is in it, which
/// systemd's `EnvironmentFile` would take away.
const FROM_FILE: &str = "!f() { test \"$1\" = get || exit 0; while read -r key value; do \
     test \"$key\" = oauth_token: && echo username=x-access-token && echo \"password=$value\"; \
     done <\"$GH_CONFIG_DIR/hosts.yml\"; }; f";

/// Takes it from where it is already.
const FROM_VARIABLE: &str = "!f() { test \"$1\" = get || exit 0; \
     echo username=x-access-token && echo \"password=$GH_ENTERPRISE_TOKEN\"; }; f";

/// What is set and what must not be.
#[derive(Default)]
pub(crate) struct Variables {
    set: Vec<(String, String)>,
    unset: Vec<&'static str>,
}

impl Variables {
    /// What is the same for every run.
    pub(super) fn creation(&mut self, door: &Door, ca: Option<&str>, variables_only: bool) {
        let url = door.url();
        let helper = if variables_only { FROM_VARIABLE } else { FROM_FILE };
        let mut settings = vec![(format!("credential.{url}.helper"), helper.to_owned())];
        if let Some(ca) = ca {
            settings.push((format!("http.{url}/.sslCAInfo"), ca.to_owned()));
            self.add("SSL_CERT_FILE", ca);
            self.add(GIT_AUTHORITIES, ca);
        }
        self.lead_to(door, settings);
    }

    /// All of it for a door on this machine: gh's files are in `folder`, and `git` has the others.
    pub(crate) fn here(&mut self, door: &Door, folder: &str, git: GitFiles) {
        let url = door.url();
        self.lead_to(
            door,
            vec![
                ("include.path".to_owned(), git.door),
                // Where gh thinks that the door is, for `gh repo clone`.
                (format!("url.{url}/.insteadOf"), format!("https://{door}/")),
                // The way to the internet does not lead back to this machine.
                (format!("http.{url}/.proxy"), String::new()),
            ],
        );
        // A rewrite of GitHub's URLs to ssh, as many have one, would win over these.
        self.add("GIT_CONFIG_GLOBAL", git.global);
        self.config_dir(folder);
        self.unset_others();
    }

    /// What leads git and gh to the door, and away from every other credential; `more` of git's settings.
    fn lead_to(&mut self, door: &Door, more: Vec<(String, String)>) {
        self.add("GH_HOST", door.to_string());
        self.add("GH_PROMPT_DISABLED", "1");
        self.add("GH_NO_UPDATE_NOTIFIER", "1");
        self.add("GIT_TERMINAL_PROMPT", "0");
        // The door refuses LFS: a pointer is more use than a checkout that failed.
        self.add("GIT_LFS_SKIP_SMUDGE", "1");
        let url = door.url();
        let mut settings = vec![
            // The empty one first: no helper that is configured elsewhere is asked, or told.
            ("credential.helper".to_owned(), String::new()),
            // A program that asks somebody, where only its variables were unset.
            ("core.askPass".to_owned(), String::new()),
        ];
        settings.extend(FORGE.map(|forge| (format!("url.{url}/.insteadOf"), forge.to_owned())));
        settings.extend(more);
        self.add("GIT_CONFIG_COUNT", settings.len().to_string());
        for (number, (key, value)) in settings.into_iter().enumerate() {
            self.add(&format!("GIT_CONFIG_KEY_{number}"), key);
            self.add(&format!("GIT_CONFIG_VALUE_{number}"), value);
        }
    }

    /// Where a run's files are.
    pub(super) fn config_dir(&mut self, folder: &str) {
        self.add("GH_CONFIG_DIR", folder);
    }

    /// A run's bearer, where there are no files.
    pub(super) fn bearer(&mut self, bearer: &Bearer) {
        self.add(TOKEN, bearer.expose());
    }

    /// The repository of a gh that is in no clone.
    pub(super) fn repository(&mut self, door: &Door, repository: &RepositoryName) {
        self.add("GH_REPO", format!("{door}/{repository}"));
    }

    /// What is not set here and leads to a credential must not be set at all.
    pub(super) fn unset_others(&mut self) {
        let is_set = |name: &&str| self.set.iter().any(|(known, _)| known == name);
        self.unset = CREDENTIALS.into_iter().chain(WAYS).filter(|name| !is_set(name)).collect();
    }

    /// Where what is to be unset can be, git has the door's authorities by its settings, and for the door alone.
    pub(super) fn unset_authorities(&mut self) {
        let before = self.set.len();
        self.set.retain(|(name, _)| name != GIT_AUTHORITIES);
        if self.set.len() < before {
            self.unset.push(GIT_AUTHORITIES);
        }
    }

    fn add(&mut self, name: &str, value: impl Into<String>) {
        self.set.push((name.to_owned(), value.into()));
    }

    /// What is set, in order.
    pub(crate) fn set(&self) -> &[(String, String)] {
        &self.set
    }

    /// What must not be.
    pub(crate) fn unset(&self) -> &[&'static str] {
        &self.unset
    }

    /// Whether this variable holds the bearer.
    pub(super) fn is_secret(name: &str) -> bool {
        name == TOKEN
    }
}

/// What gh takes for every host but GitHub's.
const TOKEN: &str = "GH_ENTERPRISE_TOKEN";
