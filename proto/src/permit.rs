//! The permit: the proof that control let one request through. Only an answer of the Gate makes one.

use std::fmt;
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};

use crate::reason::{Denial, Unspecified};
use crate::repository::RepositoryName;
use crate::v1;

/// An installation token of the forge, on its way to the one header that carries it.
#[derive(Clone)]
pub struct Token {
    value: SecretString,
    /// Names the token without showing it.
    pub id: String,
    /// Time since it was minted, when the answer was made.
    pub age: Duration,
}

impl Token {
    /// The token's text, for the `Authorization` header and for nothing else.
    #[must_use]
    pub fn expose(&self) -> &str {
        self.value.expose_secret()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({})", self.id)
    }
}

/// What control grants beside the permission itself.
#[derive(Debug)]
pub struct Permit {
    authorization: String,
    grant: Grant,
    remaining: Duration,
}

/// The kinds of a permit.
#[derive(Debug)]
pub enum Grant {
    /// The bearer is good; nothing can be forwarded with this.
    Verified,
    /// What the run may do, for its own sandbox; nothing can be forwarded with this.
    Described(Box<v1::Run>),
    /// Read the forge's API with this token.
    Api {
        /// What to forward with.
        token: Token,
    },
    /// Forward to this repository with this token.
    Forward {
        /// The repository's present name.
        repository: RepositoryName,
        /// What to forward with.
        token: Token,
        /// Push: how long it may write upstream, from the sending of the question.
        lease: Option<Duration>,
        /// Push discovery of an unbound run: bind before a ref reaches the client.
        bind: bool,
    },
}

/// An answer that this data plane cannot act on: a field is missing or out of its range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("control's answer is incomplete")]
pub struct Incomplete;

impl From<Unspecified> for Incomplete {
    fn from(Unspecified: Unspecified) -> Self {
        Self
    }
}

impl Permit {
    /// Reads the Gate's answer: a permit, a denial, or neither.
    pub fn from_answer(answer: v1::AuthorizeResponse) -> Result<Result<Self, Denial>, Incomplete> {
        use v1::authorize_response::Verdict;
        match answer.verdict.ok_or(Incomplete)? {
            Verdict::Refusal(refusal) => Ok(Err(Denial::try_from(refusal)?)),
            Verdict::Permit(permit) => Self::from_message(permit).map(Ok),
        }
    }

    fn from_message(message: v1::Permit) -> Result<Self, Incomplete> {
        let v1::Permit { authorization, token, repository, remaining, lease, bind, run } = message;
        let grant = match (token, run) {
            (None, None) => Grant::Verified,
            (None, Some(run)) => Grant::Described(run),
            (Some(_), Some(_)) => return Err(Incomplete),
            (Some(token), None) if repository.is_empty() => Grant::Api { token: Token::try_from(token)? },
            (Some(token), None) => Grant::Forward {
                repository: RepositoryName::parse(&repository).map_err(|_invalid| Incomplete)?,
                token: Token::try_from(token)?,
                lease: lease.map(duration).transpose()?,
                bind,
            },
        };
        Ok(Self { authorization, grant, remaining: duration(remaining.ok_or(Incomplete)?)? })
    }

    /// Names this authorization towards control.
    #[must_use]
    pub fn authorization(&self) -> &str {
        &self.authorization
    }

    /// What it grants.
    #[must_use]
    pub fn grant(&self) -> &Grant {
        &self.grant
    }

    /// Time until the run expires, when the answer was made.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.remaining
    }
}

impl TryFrom<v1::Token> for Token {
    type Error = Incomplete;

    fn try_from(token: v1::Token) -> Result<Self, Incomplete> {
        let v1::Token { value, id, age } = token;
        // What cannot stand in a header would fail later, where the reason is harder to see.
        if value.is_empty() || !value.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(Incomplete);
        }
        Ok(Self { value: value.into(), id, age: duration(age.ok_or(Incomplete)?)? })
    }
}

fn duration(message: prost_types::Duration) -> Result<Duration, Incomplete> {
    Duration::try_from(message).map_err(|_negative| Incomplete)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn permit() -> v1::Permit {
        let second = prost_types::Duration { seconds: 1, nanos: 0 };
        v1::Permit {
            authorization: "a".into(),
            token: Some(v1::Token { value: "ghs_x".into(), id: "1".into(), age: Some(second) }),
            repository: "o/r".into(),
            remaining: Some(second),
            lease: None,
            bind: false,
            run: None,
        }
    }

    fn read(permit: v1::Permit) -> Result<Result<Permit, Denial>, Incomplete> {
        Permit::from_answer(v1::AuthorizeResponse {
            verdict: Some(v1::authorize_response::Verdict::Permit(permit)),
        })
    }

    #[test]
    fn a_complete_answer_is_a_permit_that_shows_no_token() {
        let permit = read(permit()).unwrap().unwrap();
        assert!(!format!("{permit:?}").contains("ghs_x"));
    }

    #[test]
    fn a_permit_grants_by_what_it_carries() {
        let api = v1::Permit { repository: String::new(), ..permit() };
        assert!(matches!(read(api).unwrap().unwrap().grant(), Grant::Api { .. }));
        let described = v1::Permit { token: None, run: Some(Box::default()), ..permit() };
        assert!(matches!(read(described).unwrap().unwrap().grant(), Grant::Described(_)));
    }

    #[test]
    fn an_incomplete_answer_is_never_a_permit() {
        let empty = v1::AuthorizeResponse { verdict: None };
        assert_eq!(Permit::from_answer(empty).unwrap_err(), Incomplete);
        let broken: [fn(&mut v1::Permit); 5] = [
            |p| p.repository = "o".into(),
            |p| p.run = Some(Box::default()),
            |p| p.remaining = None,
            |p| p.token.as_mut().unwrap().value = "a b".into(),
            |p| p.remaining = Some(prost_types::Duration { seconds: -1, nanos: 0 }),
        ];
        for spoil in broken {
            let mut permit = permit();
            spoil(&mut permit);
            assert_eq!(read(permit).unwrap_err(), Incomplete);
        }
    }
}
