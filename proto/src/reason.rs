//! Why control refuses: the stable codes, and the refusal as a value.

use std::time::Duration;

use crate::v1;

/// Makes the enum, its code and its two translations from one table, so that none can be forgotten.
macro_rules! reasons {
    ($($(#[doc = $doc:literal])* $name:ident = $code:literal,)*) => {
        /// The stable code of a refusal that control makes: a metric's label, the value of `X-Gitdoor-Reason`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Reason { $($(#[doc = $doc])* $name,)* }

        impl Reason {
            /// Every reason.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The code's text.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $code,)* }
            }
        }

        impl From<Reason> for v1::Reason {
            fn from(reason: Reason) -> Self {
                match reason { $(Reason::$name => Self::$name,)* }
            }
        }

        impl TryFrom<v1::Reason> for Reason {
            type Error = Unspecified;

            fn try_from(reason: v1::Reason) -> Result<Self, Unspecified> {
                match reason {
                    v1::Reason::Unspecified => Err(Unspecified),
                    $(v1::Reason::$name => Ok(Self::$name),)*
                }
            }
        }
    };
}

/// A message without a reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the refusal names no reason")]
pub struct Unspecified;

reasons! {
    /// No run has this id.
    RunUnknown = "run-unknown",
    /// The secret is not, or no longer, the run's.
    BearerWrong = "bearer-wrong",
    /// The run was revoked.
    RunRevoked = "run-revoked",
    /// The run's time is over.
    RunExpired = "run-expired",
    /// The run has no identity at the forge.
    IdentityNone = "identity-none",
    /// The run may only read.
    IdentityRead = "identity-read",
    /// Too many requests of the run at once.
    RequestLimit = "request-limit",
    /// Too many pushes of the run at once.
    PushLimit = "push-limit",
    /// Too many push discoveries of an unbound run.
    DiscoveryLimit = "discovery-limit",
    /// The run's API budget is spent.
    ApiLimit = "api-limit",
    /// A push before any push discovery was confirmed.
    RunUnbound = "run-unbound",
    /// The run is bound to another repository.
    BoundElsewhere = "bound-elsewhere",
    /// A ref is, or was in this run, the default branch.
    DefaultBranch = "default-branch",
    /// A command deletes a ref.
    Delete = "delete",
    /// A ref is a tag.
    Tag = "tag",
    /// A ref is neither a branch nor a tag.
    Namespace = "namespace",
    /// A ref is named twice in one push.
    RefRepeated = "ref-repeated",
    /// A ref's name breaks git's rules.
    RefInvalid = "ref-invalid",
    /// A branch is outside the run's patterns.
    BranchNotPermitted = "branch-not-permitted",
    /// More refs than the run may push at once.
    TooManyRefs = "too-many-refs",
    /// Fine by itself, refused with its push.
    OtherRef = "other-ref",
    /// The forge knows no such repository in the installation, or the App is not installed.
    RepositoryUnknown = "repository-unknown",
    /// The installation is suspended.
    InstallationSuspended = "installation-suspended",
    /// The installation lacks a permission.
    PermissionMissing = "permission-missing",
    /// The forge limits the rate of minting.
    ForgeRateLimited = "forge-rate-limited",
    /// The forge cannot be reached or fails.
    ForgeUnavailable = "forge-unavailable",
    /// The forge minted another token than was asked for; it was thrown away.
    TokenUntrusted = "token-untrusted",
    /// The repository's id or default branch cannot be read.
    RepositoryUnreadable = "repository-unreadable",
    /// The forge refuses fresh tokens too.
    TokenRejected = "token-rejected",
    /// Control cannot read or write its store.
    StoreUnavailable = "store-unavailable",
    /// The authorization is not one of this control's, or is over.
    AuthorizationUnknown = "authorization-unknown",
}

/// A refusal by control, as a value: what a data plane gets instead of a permit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// The stable code.
    pub reason: Reason,
    /// One line for the client, without control characters.
    pub message: String,
    /// When asking again may help.
    pub retry_after: Option<Duration>,
    /// For a push whose refs were judged: reason and words for each command, in order.
    pub refs: Vec<(Reason, String)>,
}

impl Denial {
    /// A refusal without a time and without refs.
    #[must_use]
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), retry_after: None, refs: Vec::new() }
    }

    /// The same, with the time after which asking again may help.
    #[must_use]
    pub fn retry_after(mut self, time: Duration) -> Self {
        self.retry_after = Some(time);
        self
    }
}

impl From<Denial> for v1::Refusal {
    fn from(denial: Denial) -> Self {
        let verdict = |(reason, message): (Reason, String)| v1::RefVerdict {
            reason: v1::Reason::from(reason).into(),
            message,
        };
        Self {
            reason: v1::Reason::from(denial.reason).into(),
            message: denial.message,
            retry_after: denial.retry_after.and_then(|time| time.try_into().ok()),
            refs: denial.refs.into_iter().map(verdict).collect(),
        }
    }
}

impl TryFrom<v1::Refusal> for Denial {
    type Error = Unspecified;

    fn try_from(refusal: v1::Refusal) -> Result<Self, Unspecified> {
        let verdict =
            |verdict: v1::RefVerdict| Ok((Reason::try_from(verdict.reason())?, printable(&verdict.message)));
        Ok(Self {
            reason: Reason::try_from(refusal.reason())?,
            message: printable(&refusal.message),
            retry_after: refusal.retry_after.and_then(|time| time.try_into().ok()),
            refs: refusal.refs.into_iter().map(verdict).collect::<Result<_, _>>()?,
        })
    }
}

/// Text in one line: git prints an escape sequence as it comes, so no control character may pass.
#[must_use]
pub fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_survives_the_wire_and_has_a_code_of_its_own() {
        let mut codes: Vec<_> = Reason::ALL.iter().map(|reason| reason.as_str()).collect();
        for reason in Reason::ALL {
            assert_eq!(Reason::try_from(v1::Reason::from(*reason)), Ok(*reason));
        }
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), Reason::ALL.len());
        assert_eq!(Reason::try_from(v1::Reason::Unspecified), Err(Unspecified));
    }

    #[test]
    fn a_denial_survives_the_wire_without_control_characters() {
        let mut denial = Denial::new(Reason::DefaultBranch, "no\n").retry_after(Duration::from_secs(3));
        denial.refs = vec![(Reason::OtherRef, "a\u{1b}b".into())];
        let read = Denial::try_from(v1::Refusal::from(denial)).unwrap();
        assert_eq!(read.message, "no ");
        assert_eq!(read.retry_after, Some(Duration::from_secs(3)));
        assert_eq!(read.refs, vec![(Reason::OtherRef, "a b".into())]);
    }
}
