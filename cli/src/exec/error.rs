//! Why a command was not run.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use gitdoor_control::embed::EmbedError;
use gitdoor_control::github::ConfigError;
use gitdoor_dataplane::config::Unusable;

/// Why a command was not run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExecError {
    /// The command would have credentials.
    #[error("the command is not started: it would have {0} of GitHub's credentials, or what looks like one")]
    Found(usize),
    /// The folder that the command would work in.
    #[error("the working folder: {0}")]
    Folder(#[source] io::Error),
    /// A file that cannot be read.
    #[error("{flag} {}: {why}", .path.display())]
    Unreadable {
        flag: &'static str,
        path: PathBuf,
        #[source]
        why: io::Error,
    },
    /// A token's file with something else in it.
    #[error("{0}: one token is needed: printable, without spaces, at most {most} bytes", most = super::upstream::TOKEN_BYTES)]
    NoToken(&'static str),
    /// gh cannot be asked.
    #[error("--from-gh: gh cannot be asked: {0}")]
    Gh(#[source] io::Error),
    /// gh has none.
    #[error("--from-gh: gh has no token for {0}")]
    NoneOfGh(String),
    /// A URL without a host.
    #[error("--github-url: a URL is https://HOST[:PORT], without a path")]
    Url,
    /// A setting of the forge's client.
    #[error("{flag}: {0}", flag = .0.flag())]
    Forge(#[from] ConfigError),
    /// A setting of the data plane.
    #[error(transparent)]
    Dataplane(#[from] Unusable),
    /// A flag that the data plane does not read.
    #[error("{0}")]
    Flag(String),
    /// No folder for the state.
    #[error("--state-dir: neither it nor XDG_STATE_HOME nor HOME names a folder by its full name")]
    NoState,
    /// A folder that others may look into.
    #[error("--state-dir {}: others may look into it; a folder of mode 0700, or none yet, is needed", .0.display())]
    Open(PathBuf),
    /// A folder whose name no flag and no socket takes.
    #[error("--state-dir {}: a path of at most {most} bytes in UTF-8, without a comma, is needed", .path.display())]
    Path { path: PathBuf, most: usize },
    /// A file or folder of the state.
    #[error("--state-dir {}: {why}", .path.display())]
    State {
        path: PathBuf,
        #[source]
        why: io::Error,
    },
    /// Control did not start.
    #[error("the door does not start: {}", gitdoor_control::gate::cause(.0))]
    Control(#[source] Box<EmbedError>),
    /// A part of this process does not start.
    #[error("the door does not start: {0}")]
    Start(#[source] io::Error),
    /// The data plane does not reach control.
    #[error("the door does not start: its two parts do not find each other")]
    Apart,
    /// The command does not start.
    #[error("the command does not start: {} cannot be run: {why}", .program.display())]
    Command {
        program: OsString,
        #[source]
        why: io::Error,
    },
    /// No randomness for a name.
    #[error("the system gives no randomness: {0}")]
    Randomness(#[from] getrandom::Error),
    /// No name for a run.
    #[error("the run cannot be named")]
    Name,
}

impl ExecError {
    /// 64 for what cannot be used, 1 for the rest.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Folder(_)
            | Self::Unreadable { .. }
            | Self::NoToken(_)
            | Self::Gh(_)
            | Self::NoneOfGh(_)
            | Self::Url
            | Self::Forge(_)
            | Self::Dataplane(_)
            | Self::Flag(_)
            | Self::NoState
            | Self::Open(_)
            | Self::Path { .. }
            | Self::State { .. } => 64,
            Self::Found(_)
            | Self::Control(_)
            | Self::Start(_)
            | Self::Apart
            | Self::Command { .. }
            | Self::Randomness(_)
            | Self::Name => 1,
        }
    }

    /// What to do about it, where that is known.
    pub(crate) fn advice(&self) -> Option<&'static str> {
        match self {
            Self::Found(_) => Some("remove them, or start it all the same with --allow-findings"),
            Self::Gh(why) if why.kind() == io::ErrorKind::NotFound => {
                Some("no gh is on PATH; use --token-file, or a GitHub App")
            }
            Self::NoneOfGh(_) => Some("`gh auth login` gives it one; or use --token-file, or a GitHub App"),
            Self::Folder(_)
            | Self::Unreadable { .. }
            | Self::NoToken(_)
            | Self::Gh(_)
            | Self::Url
            | Self::Forge(_)
            | Self::Dataplane(_)
            | Self::Flag(_)
            | Self::NoState
            | Self::Open(_)
            | Self::Path { .. }
            | Self::State { .. }
            | Self::Control(_)
            | Self::Start(_)
            | Self::Apart
            | Self::Command { .. }
            | Self::Randomness(_)
            | Self::Name => None,
        }
    }
}
