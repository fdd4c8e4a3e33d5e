//! What the API's routes refuse beyond what every route does.

use http::StatusCode;

use super::graphql::Unaskable;

/// What a run may do in place of what changes something.
pub(super) const READ_ONLY: &str = "the API is read-only for a run: change code by pushing a branch, and leave the rest \
    (pull requests, comments, reviews, releases) to whoever started the run";

/// Why a request to the API is not answered by the forge.
#[derive(Debug, thiserror::Error)]
pub enum ApiRefusal {
    /// A method that could write.
    #[error("GET and HEAD read here, and GraphQL queries; {READ_ONLY}")]
    ReadOnly,
    /// Uploads of release assets.
    #[error("nothing is uploaded through this door; {READ_ONLY}")]
    Uploads,
    /// The bearer in the target or in another header: what stands there goes up, and ends in logs.
    #[error(
        "the bearer belongs into the Authorization header, and into nothing else of a request; \
         a URL is percent-encoded three times at most"
    )]
    BearerAstray,
    /// An answer wrapped into a script, in which nothing could be changed.
    #[error("the API answers in JSON here; leave the parameter callback out")]
    Callback,
    /// A GraphQL request that is not JSON.
    #[error("a GraphQL request is Content-Type: application/json, in UTF-8")]
    MediaType,
    /// A GraphQL request that is longer than the door reads.
    #[error("a GraphQL request is at most {0} bytes")]
    QueryTooLarge(usize),
    /// A GraphQL request that may not be asked, or that is none.
    #[error("{0}")]
    Query(#[from] Unaskable),
    /// A redirect that leads to a host which the door does not know for a storage of the forge.
    #[error(
        "the forge redirects to {0}, which this door does not follow; its operator can name that host in \
         --storage-hosts, or set --storage-redirects=pass"
    )]
    Redirect(String),
    /// Redirects within the storage that go on and on.
    #[error("the forge's storage redirected {0} times in a row; ask again in a minute")]
    Hops(usize),
    /// No connection to the storage.
    #[error("the forge's storage {0} cannot be reached; ask again in a minute, or tell this door's operator")]
    Storage(String),
}

impl ApiRefusal {
    /// The HTTP status.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        match self {
            Self::ReadOnly => StatusCode::METHOD_NOT_ALLOWED,
            Self::Uploads => StatusCode::FORBIDDEN,
            Self::Query(query) if query.is_policy() => StatusCode::OK,
            Self::Query(_) | Self::BearerAstray | Self::Callback => StatusCode::BAD_REQUEST,
            Self::MediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::QueryTooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Redirect(_) | Self::Hops(_) | Self::Storage(_) => StatusCode::BAD_GATEWAY,
        }
    }

    /// The methods that the route has.
    #[must_use]
    pub fn allowed(&self) -> Option<&'static str> {
        if let Self::ReadOnly = self { Some("GET, HEAD") } else { None }
    }

    /// Whether a GraphQL request was understood, and is refused for what it asks.
    #[must_use]
    pub fn is_of_graphql(&self) -> bool {
        if let Self::Query(query) = self { query.is_policy() } else { false }
    }

    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::ReadOnly => "api-read-only",
            Self::Uploads => "api-uploads",
            Self::BearerAstray => "bearer-astray",
            Self::Callback => "api-callback",
            Self::MediaType => "media-type",
            Self::QueryTooLarge(_) => "graphql-too-large",
            Self::Query(query) => query.code(),
            Self::Redirect(_) => "api-redirect",
            Self::Hops(_) => "storage-redirects",
            Self::Storage(_) => "storage-unreachable",
        }
    }
}
