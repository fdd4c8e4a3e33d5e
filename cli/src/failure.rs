//! Why a command did not do what it should: the words for standard error, what to do, and the exit code.

use std::error::Error as _;
use std::fmt;
use std::io;
use std::time::Duration;

use gitdoor_proto::endpoint::Unusable;
use tonic::{Code, Status};

use crate::answer::Incomplete;
use crate::certs::CertsError;
use crate::client::root_cause;
use crate::credential::Malformed;
use crate::doctor::Ailment;
use crate::env::EnvError;
use crate::exec::ExecError;
use crate::fence::FenceError;

/// Why a command did not do what it should.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// A `--control` cannot be used.
    #[error("{flag}: {0}", flag = .0.flag())]
    Control(#[from] Unusable),
    /// Certificates could not be made.
    #[error(transparent)]
    Certs(#[from] CertsError),
    /// A sandbox could not be wired.
    #[error(transparent)]
    Env(#[from] EnvError),
    /// A command was not run.
    #[error(transparent)]
    Exec(#[from] ExecError),
    /// There is no fence, or the command behind it did not start.
    #[error(transparent)]
    Fence(#[from] FenceError),
    /// A workspace is not as it should be; what is wrong was printed.
    #[error("this workspace is not what it should be: {0}")]
    Workspace(#[from] Ailment),
    /// A repository was given to a run that cannot push.
    #[error("--repository: only a run with --identity write is bound to a repository")]
    RepositoryWithoutWrite,
    /// A credential helper without a question, or a question to what is none.
    #[error("{}", if *.credential {
        "--credential: git names what it wants after the command: get, store or erase"
    } else {
        "get, store and erase are for a credential helper: --credential"
    })]
    CredentialAction {
        /// Whether it is a credential helper.
        credential: bool,
    },
    /// What git asked is no question.
    #[error(transparent)]
    Question(#[from] Malformed),
    /// Standard input cannot be read.
    #[error("standard input: {0}")]
    Input(#[source] io::Error),
    /// No control could be asked.
    #[error("no control could be asked{}", Attempts(.0))]
    Unreachable(Vec<Attempt>),
    /// Control said no.
    #[error("{}", said(.0))]
    Refused(Box<Status>),
    /// No answer in time.
    #[error("no answer from {control} within {}", humantime::format_duration(*.patience))]
    Silent {
        /// Who was asked.
        control: String,
        /// How long an answer was waited for.
        patience: Duration,
    },
    /// The answer lacks what it must have.
    #[error(transparent)]
    Incomplete(#[from] Incomplete),
    /// This program's own runtime could not start.
    #[error("the program could not start: {0}")]
    Runtime(#[source] io::Error),
    /// The answer could not be written.
    #[error("standard output: {0}")]
    Output(#[source] io::Error),
}

/// A control that could not be asked.
#[derive(Debug)]
pub(crate) struct Attempt {
    /// Who.
    pub(crate) control: String,
    /// Why not, in words.
    pub(crate) cause: String,
}

struct Attempts<'a>(&'a [Attempt]);

impl fmt::Display for Attempts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().enumerate().try_for_each(|(at, Attempt { control, cause })| {
            write!(f, "{} {control} ({cause})", if at == 0 { ":" } else { "," })
        })
    }
}

/// What control said; a status without words is named by its code. One with a cause is of this side: the connection broke,
/// as it does on the first call where control does not take the certificate.
fn said(status: &Status) -> String {
    if let Some(cause) = status.source() {
        return root_cause(cause);
    }
    match status.message() {
        "" => format!("control answered: {}", status.code().description()),
        message => message.to_owned(),
    }
}

impl Failure {
    /// The exit code: 1 refused or failed, 2 usage, 64 configuration that cannot be used.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Control(_) => 64,
            Self::Env(error) => error.exit_code(),
            Self::Fence(error) => error.exit_code(),
            Self::RepositoryWithoutWrite | Self::CredentialAction { .. } => 2,
            Self::Certs(error) => error.exit_code(),
            Self::Exec(error) => error.exit_code(),
            Self::Question(_)
            | Self::Workspace(_)
            | Self::Input(_)
            | Self::Unreachable(_)
            | Self::Refused(_)
            | Self::Silent { .. }
            | Self::Incomplete(_)
            | Self::Runtime(_)
            | Self::Output(_) => 1,
        }
    }

    /// What to do about it, where that is known.
    pub(crate) fn advice(&self) -> Option<&'static str> {
        match self {
            Self::Control(Unusable::Missing(_) | Unusable::Tls(_)) => {
                Some("`gitdoor certs` makes certificates; with unix:PATH none is needed")
            }
            Self::Control(_) => Some("give --control the address of control's --runs-listen"),
            Self::Certs(error) => error.advice(),
            Self::Exec(error) => error.advice(),
            Self::Fence(error) => error.advice(),
            Self::RepositoryWithoutWrite => Some("leave --repository out, or register with --identity write"),
            Self::Unreachable(_) => {
                Some("is gitdoor-control running, and is --control the address of its --runs-listen?")
            }
            Self::Refused(status) => advice_for(status.code()),
            Self::Silent { .. } => Some(
                "it may have been done all the same: `gitdoor run show` or `gitdoor token list` tells; ask again",
            ),
            Self::Incomplete(_) => Some("are this program and gitdoor-control of the same version?"),
            Self::Workspace(ailment) => Some(ailment.advice()),
            Self::CredentialAction { .. }
            | Self::Env(_)
            | Self::Question(_)
            | Self::Input(_)
            | Self::Runtime(_)
            | Self::Output(_) => None,
        }
    }
}

fn advice_for(code: Code) -> Option<&'static str> {
    match code {
        Code::AlreadyExists => {
            Some("for a new bearer of that run: `gitdoor run rotate`; for another run: another --run-id")
        }
        Code::NotFound => Some("`gitdoor run list` shows the runs that there are"),
        Code::Unavailable | Code::ResourceExhausted => Some("ask again in a moment"),
        Code::PermissionDenied => {
            Some("ask with a certificate of that role: --control-tls-cert, --control-tls-key")
        }
        Code::Unimplemented => Some("is --control the address of --runs-listen, and not of --gate-listen?"),
        Code::Ok
        | Code::Cancelled
        | Code::Unknown
        | Code::InvalidArgument
        | Code::DeadlineExceeded
        | Code::FailedPrecondition
        | Code::Aborted
        | Code::OutOfRange
        | Code::Internal
        | Code::DataLoss
        | Code::Unauthenticated => None,
    }
}
