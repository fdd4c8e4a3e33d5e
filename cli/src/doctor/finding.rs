//! What was found: a kind and a place, and never the credential itself.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What kind of credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// `ghp_`
    PersonalToken,
    /// `github_pat_`
    FineGrainedToken,
    /// `gho_`
    OauthToken,
    /// `ghu_`
    UserToken,
    /// `ghs_`
    InstallationToken,
    /// `ghr_`
    RefreshToken,
    /// A private key in PEM.
    PrivateKey,
    /// A variable that is for a token, whatever its value looks like.
    Variable,
    /// A user and password in a URL.
    UrlPassword,
    /// A header with a credential, in git's settings.
    Header,
    /// A password in one of git's credential files.
    StoredPassword,
    /// git's credential cache runs.
    Cache,
    /// A password in a netrc.
    Netrc,
    /// A token in gh's file.
    GhToken,
    /// A private key of ssh.
    SshKey,
    /// An agent of ssh answers.
    SshAgent,
    /// An editor answers with its user's credentials.
    Editor,
    /// git's helpers have something for github.com.
    Helper,
}

impl Kind {
    /// Its name in JSON.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::PersonalToken => "personal_token",
            Self::FineGrainedToken => "fine_grained_token",
            Self::OauthToken => "oauth_token",
            Self::UserToken => "user_token",
            Self::InstallationToken => "installation_token",
            Self::RefreshToken => "refresh_token",
            Self::PrivateKey => "private_key",
            Self::Variable => "variable",
            Self::UrlPassword => "url_password",
            Self::Header => "header",
            Self::StoredPassword => "stored_password",
            Self::Cache => "credential_cache",
            Self::Netrc => "netrc",
            Self::GhToken => "gh_token",
            Self::SshKey => "ssh_key",
            Self::SshAgent => "ssh_agent",
            Self::Editor => "editor",
            Self::Helper => "credential_helper",
        }
    }

    /// The same for people.
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::PersonalToken => "personal access token (ghp_)",
            Self::FineGrainedToken => "fine-grained token (github_pat_)",
            Self::OauthToken => "OAuth token (gho_)",
            Self::UserToken => "user token of an App (ghu_)",
            Self::InstallationToken => "installation token (ghs_)",
            Self::RefreshToken => "refresh token (ghr_)",
            Self::PrivateKey => "private key (PEM)",
            Self::Variable => "variable for a token",
            Self::UrlPassword => "credential in a URL",
            Self::Header => "header with a credential",
            Self::StoredPassword => "stored password",
            Self::Cache => "credential cache",
            Self::Netrc => "password in a netrc",
            Self::GhToken => "token of gh",
            Self::SshKey => "ssh private key",
            Self::SshAgent => "ssh agent",
            Self::Editor => "editor that answers with its user's credentials",
            Self::Helper => "credential for github.com",
        }
    }
}

/// One credential, or what leads to one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    /// Where, in words.
    pub(crate) place: String,
    pub(crate) kind: Kind,
}

/// What was found, each once, and what should be known beside it.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    found: BTreeSet<Finding>,
    /// The files that something was found in.
    files: BTreeSet<PathBuf>,
    /// What leads past the door.
    astray: BTreeSet<String>,
    notes: Vec<String>,
    incomplete: bool,
}

impl Findings {
    /// Found somewhere.
    pub(super) fn add(&mut self, kind: Kind, place: impl Into<String>) {
        self.found.insert(Finding { place: place.into(), kind });
    }

    /// Found in a file, at this place of it where there is one to name.
    pub(super) fn add_in(&mut self, kind: Kind, file: &Path, detail: &str) {
        let place = file.display().to_string();
        self.add(kind, if detail.is_empty() { place } else { format!("{place}: {detail}") });
        self.files.insert(file.to_owned());
    }

    /// Whether something was found in this file.
    pub(super) fn is_named(&self, file: &Path) -> bool {
        self.files.contains(file)
    }

    /// Says what leads past the door.
    pub(super) fn lead_astray(&mut self, words: impl Into<String>) {
        self.astray.insert(words.into());
    }

    /// Says something that is no finding.
    pub(super) fn note(&mut self, words: impl Into<String>) {
        self.notes.push(words.into());
    }

    /// Says what was not looked at.
    pub(super) fn stopped_short(&mut self, words: impl Into<String>) {
        self.incomplete = true;
        self.note(words);
    }

    /// Nothing was found.
    pub(crate) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Everything that should be was looked at.
    pub(crate) fn is_complete(&self) -> bool {
        !self.incomplete
    }

    /// What was found, by place.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Finding> {
        self.found.iter()
    }

    /// What leads past the door, in words.
    pub(crate) fn astray(&self) -> &BTreeSet<String> {
        &self.astray
    }

    /// What should be known beside it.
    pub(crate) fn notes(&self) -> &[String] {
        &self.notes
    }
}
