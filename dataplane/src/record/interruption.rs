//! Why an exchange that was let through ended early. The codes are explained in `docs/refusals.md`.

/// What broke an answer after its head, or a push under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Interruption {
    /// The client went away.
    #[error("the client left")]
    ClientLeft,
    /// The client sent or took nothing for too long.
    #[error("the client was idle")]
    ClientIdle,
    /// The upstream ended before its answer did.
    #[error("the upstream cut its answer")]
    UpstreamCut,
    /// The upstream sent nothing for too long.
    #[error("the upstream was idle")]
    UpstreamIdle,
    /// The upstream's answer is not what its head said.
    #[error("the upstream's answer cannot be read")]
    UpstreamUnreadable,
    /// The request's own token was in the answer.
    #[error("the answer held a credential")]
    TokenInAnswer,
    /// The run was revoked.
    #[error("run revoked")]
    Revoked,
    /// The run's time ended.
    #[error("run expired")]
    Expired,
    /// The run's bearer was replaced.
    #[error("the run's bearer was replaced")]
    Replaced,
    /// Control knows the push no more.
    #[error("the push lost its lease")]
    Lapsed,
    /// A limit of the door was reached.
    #[error("a limit was reached")]
    Limit,
    /// The lease of a push could not be kept.
    #[error("control was not reachable")]
    Control,
}

impl Interruption {
    /// Every kind.
    pub const ALL: &[Self] = &[
        Self::ClientLeft,
        Self::ClientIdle,
        Self::UpstreamCut,
        Self::UpstreamIdle,
        Self::UpstreamUnreadable,
        Self::TokenInAnswer,
        Self::Revoked,
        Self::Expired,
        Self::Replaced,
        Self::Lapsed,
        Self::Limit,
        Self::Control,
    ];

    /// The stable code: a metric's label.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ClientLeft => "client-left",
            Self::ClientIdle => "client-idle",
            Self::UpstreamCut => "upstream-cut",
            Self::UpstreamIdle => "upstream-idle",
            Self::UpstreamUnreadable => "upstream-unreadable",
            Self::TokenInAnswer => "token-in-answer",
            Self::Revoked => "revoked",
            Self::Expired => "expired",
            Self::Replaced => "replaced",
            Self::Lapsed => "lapsed",
            Self::Limit => "limit",
            Self::Control => "control",
        }
    }
}
