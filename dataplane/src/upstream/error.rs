//! What can go wrong with the forge before its answer is passed on.

use std::time::Duration;

use http::header::RETRY_AFTER;
use http::{HeaderMap, StatusCode};

/// How long a client is asked to wait where the forge names no time.
const RETRY: Duration = Duration::from_secs(30);

/// Why the forge's answer is not passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UpstreamError {
    /// No connection.
    #[error("the forge cannot be reached")]
    Connect,
    /// No answer in time.
    #[error("the forge did not answer in time")]
    Silent,
    /// The connection ended before the answer was whole.
    #[error("the forge cut the connection before its answer was whole")]
    Cut,
    /// The forge knows no such repository, or not for this door.
    #[error("the forge knows no such repository, or this door's GitHub App may not reach it; check owner and name")]
    NotFound,
    /// The forge refused a token that was fresh.
    #[error("the forge refused the door's token; ask again in a minute")]
    Unauthorized,
    /// The forge refused.
    #[error("the forge refused this request (403); the door's GitHub App may lack a permission on this repository")]
    Forbidden,
    /// Too many requests.
    #[error("the forge limits the rate of requests; ask again later")]
    RateLimited(Duration),
    /// Any other status.
    #[error("the forge answered with status {0}")]
    Status(StatusCode),
    /// A redirect that does not lead to a repository of the same forge.
    #[error("the forge answered with a redirect that this door does not follow")]
    Redirect,
    /// The repository was renamed under the request.
    #[error("the repository was renamed; set the remote's URL to its new name")]
    Renamed,
    /// A 200 that is not what the request asked for.
    #[error("the forge's answer is not git's")]
    NotGit,
    /// An answer in a coding that was not asked for.
    #[error("the forge's answer is in a coding that was not asked for")]
    Coded,
    /// The answer holds the token that the request went up with.
    #[error("the forge's answer held a credential")]
    TokenInAnswer,
    /// The request cannot be put into HTTP.
    #[error("the request cannot be sent to the forge")]
    Unsendable,
}

impl UpstreamError {
    /// The error that an answer's status stands for; none for success.
    #[must_use]
    pub fn of(status: StatusCode, headers: &HeaderMap) -> Option<Self> {
        let number = |name: &str| headers.get(name)?.to_str().ok()?.parse::<u64>().ok();
        let after = number(RETRY_AFTER.as_str());
        // A secondary limit is told with 403.
        let limited = after.is_some() || number("x-ratelimit-remaining") == Some(0);
        match status.as_u16() {
            403 if limited => Some(Self::RateLimited(after.map_or(RETRY, Duration::from_secs))),
            200 => None,
            300..=399 => Some(Self::Redirect),
            401 => Some(Self::Unauthorized),
            403 => Some(Self::Forbidden),
            404 => Some(Self::NotFound),
            429 => Some(Self::RateLimited(after.map_or(RETRY, Duration::from_secs))),
            _ => Some(Self::Status(status)),
        }
    }

    /// Whether this, after the whole of a push, leaves open what became of it.
    #[must_use]
    pub fn is_unsettling(self) -> bool {
        match self {
            Self::Cut | Self::Silent | Self::NotGit | Self::Coded | Self::TokenInAnswer => true,
            Self::Status(status) => status.is_server_error(),
            Self::Connect
            | Self::NotFound
            | Self::Unauthorized
            | Self::Forbidden
            | Self::RateLimited(_)
            | Self::Redirect
            | Self::Renamed
            | Self::Unsendable => false,
        }
    }

    /// What the client's status is, where the language is HTTP. Never a 401: git would erase its bearer.
    #[must_use]
    pub fn status(self) -> StatusCode {
        match self {
            Self::NotFound => StatusCode::NOT_FOUND,
            Self::Forbidden => StatusCode::FORBIDDEN,
            Self::RateLimited(_) => StatusCode::TOO_MANY_REQUESTS,
            Self::Silent => StatusCode::GATEWAY_TIMEOUT,
            Self::Connect
            | Self::Cut
            | Self::Unauthorized
            | Self::Status(_)
            | Self::Redirect
            | Self::Renamed
            | Self::NotGit
            | Self::Coded
            | Self::TokenInAnswer
            | Self::Unsendable => StatusCode::BAD_GATEWAY,
        }
    }

    /// The stable code.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::Connect => "upstream-unreachable",
            Self::Silent => "upstream-silent",
            Self::Cut => "upstream-cut",
            Self::NotFound => "upstream-not-found",
            Self::Unauthorized => "upstream-unauthorized",
            Self::Forbidden => "upstream-forbidden",
            Self::RateLimited(_) => "upstream-rate-limited",
            Self::Status(_) => "upstream-status",
            Self::Redirect => "upstream-redirect",
            Self::Renamed => "upstream-renamed",
            Self::NotGit => "upstream-not-git",
            Self::Coded => "upstream-coded",
            Self::TokenInAnswer => "token-in-answer",
            Self::Unsendable => "upstream-unsendable",
        }
    }

    /// When asking again may help.
    #[must_use]
    pub fn retry_after(self) -> Option<Duration> {
        match self {
            Self::RateLimited(time) => Some(time),
            Self::Connect | Self::Silent | Self::Cut | Self::Unauthorized => Some(RETRY),
            Self::NotFound
            | Self::Forbidden
            | Self::Status(_)
            | Self::Redirect
            | Self::Renamed
            | Self::NotGit
            | Self::Coded
            | Self::TokenInAnswer
            | Self::Unsendable => None,
        }
    }
}
