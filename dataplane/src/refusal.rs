//! Every way in which the data plane says no before an answer has begun, each with its status, code and words.
//!
//! What goes wrong after the head of an answer is an [`Interruption`].

use std::time::Duration;

use gitdoor_proto::repository::InvalidRepository;
use gitdoor_proto::{Denial, Reason};
use http::StatusCode;

use crate::api::ApiRefusal;
use crate::credential::NoBearer;
use crate::gate::GateError;
use crate::git::receive_pack::Malformed;
use crate::headers::BadFraming;
use crate::record::Interruption;
use crate::upstream::UpstreamError;

/// How long a client is asked to wait where nothing better is known.
const RETRY: Duration = Duration::from_secs(5);

/// Why a request is not answered by the forge.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// The message's framing is ambiguous.
    #[error("{0}")]
    Framing(#[from] BadFraming),
    /// The request is for another host.
    #[error("this is not the host of that request; use this door's own name in the URL")]
    Host,
    /// The path is nothing that the door serves.
    #[error("there is nothing here; the door serves /<owner>/<repository>.git, /api/v3 and /api/graphql")]
    NoRoute,
    /// The path hides another path.
    #[error(
        "a path holds no empty segment, dot segment, backslash or control byte, and outside the API no encoded slash"
    )]
    BadPath,
    /// The path's repository breaks the forge's rules for names.
    #[error("{0}")]
    BadRepository(#[from] InvalidRepository),
    /// The route has other methods.
    #[error("this takes {0} only")]
    Method(&'static str),
    /// No service, an unknown one, or more than one.
    #[error("smart HTTP only: name one service, git-upload-pack or git-receive-pack")]
    Service,
    /// The request carries no bearer.
    #[error("{0}")]
    NoBearer(#[from] NoBearer),
    /// LFS is not served.
    #[error("git-lfs is not served here; push the file itself, or leave it out")]
    Lfs,
    /// LFS locks are not served.
    #[error("git-lfs locks are not served here")]
    LfsLocks,
    /// The API's own rules.
    #[error("{0}")]
    Api(#[from] ApiRefusal),
    /// Control said no.
    #[error("{}", .0.message)]
    Denied(Denial),
    /// Control did not say.
    #[error("{0}")]
    Gate(#[from] GateError),
    /// The push's command section breaks a rule.
    #[error("{0}")]
    Malformed(#[from] Malformed),
    /// The push was cut after it was let through.
    #[error("{0}")]
    Cut(Interruption),
    /// A body coding that the door does not undo.
    #[error("a request body is plain or gzip, coded once")]
    Coding,
    /// A gzip body that is broken, longer than one member, or followed by other bytes.
    #[error("the gzip body is not exactly one whole member")]
    Gzip,
    /// The push is larger than the door takes.
    #[error("the push is larger than {0} bytes, the most that this door takes")]
    TooLarge(u64),
    /// The negotiation is longer than any of git's.
    #[error("the fetch's request is larger than {0} bytes, the most that this door takes")]
    NegotiationTooLarge(u64),
    /// The refused push did not end within the drain's bytes.
    #[error("the push was refused, and is too long to wait for its end")]
    DrainTooLong,
    /// The refused push did not end within the drain's time, or its bytes stopped.
    #[error("the push was refused, and its end did not come in time")]
    DrainTooSlow,
    /// The client left.
    #[error("the request's body stopped before its end")]
    ClientLeft,
    /// The client sent nothing for too long.
    #[error("the request's body did not come in time")]
    ClientIdle,
    /// The upstream failed or answered what cannot be passed on.
    #[error("{0}")]
    Upstream(#[from] UpstreamError),
    /// The upstream failed after it had the whole push: nobody here knows what it made of it.
    #[error("{0}; it had the whole push, fetch to see what became of it")]
    Unsettled(UpstreamError),
    /// The data plane is being stopped.
    #[error("this door is closing; ask again")]
    Draining,
}

impl Refusal {
    /// The HTTP status, where the answer's language is HTTP.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Framing(_)
            | Self::BadPath
            | Self::BadRepository(_)
            | Self::NoBearer(NoBearer::Repeated)
            | Self::Malformed(_)
            | Self::Gzip => StatusCode::BAD_REQUEST,
            Self::NoBearer(NoBearer::Missing | NoBearer::NotABearer) => StatusCode::UNAUTHORIZED,
            Self::Service | Self::Lfs | Self::Cut(_) => StatusCode::FORBIDDEN,
            Self::NoRoute => StatusCode::NOT_FOUND,
            Self::Method(_) => StatusCode::METHOD_NOT_ALLOWED,
            Self::ClientLeft | Self::ClientIdle | Self::DrainTooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::TooLarge(_) | Self::NegotiationTooLarge(_) | Self::DrainTooLong => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Coding => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Host => StatusCode::MISDIRECTED_REQUEST,
            Self::LfsLocks => StatusCode::NOT_IMPLEMENTED,
            Self::Gate(_) | Self::Draining => StatusCode::SERVICE_UNAVAILABLE,
            Self::Api(refusal) => refusal.status(),
            Self::Denied(denial) => status_of(denial.reason),
            Self::Upstream(error) | Self::Unsettled(error) => error.status(),
        }
    }

    /// The stable code: a metric's label and the value of `X-Gitdoor-Reason`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Framing(_) => "framing",
            Self::Host => "host",
            Self::NoRoute => "no-route",
            Self::BadPath => "bad-path",
            Self::BadRepository(_) => "bad-repository",
            Self::Method(_) => "method",
            Self::Service => "service",
            Self::NoBearer(why) => why.code(),
            Self::Lfs => "lfs",
            Self::LfsLocks => "lfs-locks",
            Self::Api(refusal) => refusal.code(),
            Self::Denied(denial) => denial.reason.as_str(),
            Self::Gate(_) => "control-unreachable",
            Self::Malformed(_) => "malformed-push",
            Self::Cut(Interruption::Revoked) => Reason::RunRevoked.as_str(),
            Self::Cut(Interruption::Expired) => Reason::RunExpired.as_str(),
            Self::Cut(why) => why.as_str(),
            Self::Coding => "content-coding",
            Self::Gzip => "gzip",
            Self::TooLarge(_) => "push-too-large",
            Self::NegotiationTooLarge(_) => "fetch-too-large",
            Self::DrainTooLong => "drain-too-long",
            Self::DrainTooSlow => "drain-too-slow",
            Self::ClientLeft => "client-left",
            Self::ClientIdle => "client-idle",
            Self::Upstream(error) | Self::Unsettled(error) => error.code(),
            Self::Draining => "draining",
        }
    }

    /// The methods that the route has.
    #[must_use]
    pub fn allowed(&self) -> Option<&'static str> {
        // What follows the method says where.
        let Self::Method(allowed) = self else { return self.api().and_then(ApiRefusal::allowed) };
        allowed.split(' ').next()
    }

    /// Whether a GraphQL request was understood, and is refused for what it asks.
    #[must_use]
    pub fn is_of_graphql(&self) -> bool {
        self.api().is_some_and(ApiRefusal::is_of_graphql)
    }

    fn api(&self) -> Option<&ApiRefusal> {
        if let Self::Api(refusal) = self { Some(refusal) } else { None }
    }

    /// When asking again may help.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Gate(_) | Self::Draining => Some(RETRY),
            Self::Denied(denial) => denial.retry_after,
            Self::Upstream(error) => error.retry_after(),
            Self::Framing(_)
            | Self::Host
            | Self::NoRoute
            | Self::BadPath
            | Self::BadRepository(_)
            | Self::Method(_)
            | Self::Service
            | Self::NoBearer(_)
            | Self::Lfs
            | Self::LfsLocks
            | Self::Api(_)
            | Self::Malformed(_)
            | Self::Cut(_)
            | Self::Coding
            | Self::Gzip
            | Self::TooLarge(_)
            | Self::NegotiationTooLarge(_)
            | Self::DrainTooLong
            | Self::DrainTooSlow
            | Self::ClientLeft
            | Self::ClientIdle
            // Not before it was looked.
            | Self::Unsettled(_) => None,
        }
    }

    /// What this leaves in the record of a push that was under way.
    #[must_use]
    pub fn interruption(&self) -> Interruption {
        match self {
            Self::Cut(why) => *why,
            Self::TooLarge(_) | Self::NegotiationTooLarge(_) | Self::DrainTooLong => Interruption::Limit,
            Self::ClientIdle | Self::DrainTooSlow => Interruption::ClientIdle,
            Self::Upstream(UpstreamError::Silent) | Self::Unsettled(UpstreamError::Silent) => {
                Interruption::UpstreamIdle
            }
            Self::Upstream(UpstreamError::NotGit | UpstreamError::Coded)
            | Self::Unsettled(UpstreamError::NotGit | UpstreamError::Coded) => Interruption::UpstreamUnreadable,
            Self::Upstream(UpstreamError::TokenInAnswer) | Self::Unsettled(UpstreamError::TokenInAnswer) => {
                Interruption::TokenInAnswer
            }
            Self::Upstream(_) | Self::Unsettled(_) => Interruption::UpstreamCut,
            Self::Denied(denial) if denial.reason == Reason::RunRevoked => Interruption::Revoked,
            Self::Denied(denial) if denial.reason == Reason::RunExpired => Interruption::Expired,
            Self::Denied(denial) if denial.reason == Reason::BearerWrong => Interruption::Replaced,
            Self::Denied(_) | Self::Gate(_) | Self::Draining => Interruption::Control,
            // The client broke its request off, or made it so that it is none.
            Self::ClientLeft
            | Self::Gzip
            | Self::Framing(_)
            | Self::Host
            | Self::NoRoute
            | Self::BadPath
            | Self::BadRepository(_)
            | Self::Method(_)
            | Self::Service
            | Self::NoBearer(_)
            | Self::Lfs
            | Self::LfsLocks
            | Self::Api(_)
            | Self::Malformed(_)
            | Self::Coding => Interruption::ClientLeft,
        }
    }

    /// What control said of each ref of a push, in order, when it judged them.
    #[must_use]
    pub fn verdicts(&self) -> Option<&[(Reason, String)]> {
        if let Self::Denied(denial) = self { Some(&denial.refs) } else { None }
    }

    /// Whether the bearer itself, or what stands before it, was refused: no language of git applies then, only
    /// the status.
    #[must_use]
    pub fn is_before_policy(&self) -> bool {
        match self {
            Self::Denied(denial) => is_dead_bearer(denial.reason),
            Self::Gate(_)
            | Self::Framing(_)
            | Self::Host
            | Self::NoRoute
            | Self::BadPath
            | Self::BadRepository(_)
            | Self::Method(_)
            | Self::Service
            | Self::NoBearer(_)
            | Self::Coding
            | Self::Draining
            | Self::ClientLeft
            | Self::ClientIdle => true,
            Self::Lfs
            | Self::LfsLocks
            | Self::Api(_)
            | Self::Malformed(_)
            | Self::Cut(_)
            | Self::Gzip
            | Self::TooLarge(_)
            | Self::NegotiationTooLarge(_)
            | Self::DrainTooLong
            | Self::DrainTooSlow
            | Self::Upstream(_)
            | Self::Unsettled(_) => false,
        }
    }
}

/// The status of a refusal by control. Statuses of the bearer are the ones that git understands.
fn status_of(reason: Reason) -> StatusCode {
    match reason {
        Reason::BearerWrong => StatusCode::UNAUTHORIZED,
        Reason::RunUnknown | Reason::RepositoryUnknown => StatusCode::NOT_FOUND,
        Reason::RunRevoked
        | Reason::RunExpired
        | Reason::IdentityNone
        | Reason::IdentityRead
        | Reason::RunUnbound
        | Reason::BoundElsewhere
        | Reason::DefaultBranch
        | Reason::Delete
        | Reason::Tag
        | Reason::Namespace
        | Reason::RefRepeated
        | Reason::RefInvalid
        | Reason::BranchNotPermitted
        | Reason::TooManyRefs
        | Reason::OtherRef
        | Reason::InstallationSuspended
        | Reason::PermissionMissing => StatusCode::FORBIDDEN,
        Reason::RequestLimit
        | Reason::PushLimit
        | Reason::DiscoveryLimit
        | Reason::ApiLimit
        | Reason::ForgeRateLimited => StatusCode::TOO_MANY_REQUESTS,
        Reason::TokenUntrusted | Reason::TokenRejected => StatusCode::BAD_GATEWAY,
        Reason::ForgeUnavailable
        | Reason::RepositoryUnreadable
        | Reason::StoreUnavailable
        | Reason::AuthorizationUnknown => StatusCode::SERVICE_UNAVAILABLE,
    }
}

/// Reasons that are about the bearer or the run as a whole: they keep their status on every route.
fn is_dead_bearer(reason: Reason) -> bool {
    match reason {
        Reason::RunUnknown
        | Reason::BearerWrong
        | Reason::RunRevoked
        | Reason::RunExpired
        | Reason::IdentityNone
        | Reason::StoreUnavailable => true,
        Reason::IdentityRead
        | Reason::RequestLimit
        | Reason::PushLimit
        | Reason::DiscoveryLimit
        | Reason::ApiLimit
        | Reason::RunUnbound
        | Reason::BoundElsewhere
        | Reason::DefaultBranch
        | Reason::Delete
        | Reason::Tag
        | Reason::Namespace
        | Reason::RefRepeated
        | Reason::RefInvalid
        | Reason::BranchNotPermitted
        | Reason::TooManyRefs
        | Reason::OtherRef
        | Reason::RepositoryUnknown
        | Reason::InstallationSuspended
        | Reason::PermissionMissing
        | Reason::ForgeRateLimited
        | Reason::ForgeUnavailable
        | Reason::TokenUntrusted
        | Reason::RepositoryUnreadable
        | Reason::TokenRejected
        | Reason::AuthorizationUnknown => false,
    }
}

#[cfg(test)]
mod tests;
