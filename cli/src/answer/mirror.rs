//! Tokens for mirrors, as this program shows them.

use gitdoor_proto::{RepositoryName, v1};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Serialize;

use super::{Incomplete, Time};

/// A token, with what the ledger says of it. `Debug` does not show the token.
#[derive(Debug)]
pub(crate) struct Minted {
    token: SecretString,
    pub(crate) row: MirrorToken,
    /// When it ends, in seconds since 1970.
    pub(crate) expires_at: u64,
}

impl Minted {
    /// Reads the message; the repository must be the one that was asked for, and the token one line of plain text:
    /// whoever reads it takes the next line for something else.
    pub(crate) fn read(message: v1::MintMirrorTokenResponse, asked: &RepositoryName) -> Result<Self, Incomplete> {
        let v1::MintMirrorTokenResponse { token, mirror_token } = message;
        let token = SecretString::from(token);
        let text = token.expose_secret();
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(Incomplete);
        }
        let message = mirror_token.ok_or(Incomplete)?;
        let expires_at = message.expires_at.ok_or(Incomplete)?;
        let row = MirrorToken::read(message)?;
        if RepositoryName::parse(&row.repository).as_ref() != Ok(asked) {
            return Err(Incomplete);
        }
        Ok(Self { token, row, expires_at: expires_at.seconds.try_into().map_err(|_before_1970| Incomplete)? })
    }

    /// The token, for standard output and for nothing else.
    pub(crate) fn expose(&self) -> &str {
        self.token.expose_secret()
    }
}

/// A row of the ledger.
#[derive(Debug, Serialize)]
#[expect(clippy::struct_field_names, reason = "the names are those of the JSON")]
pub(crate) struct MirrorToken {
    pub(crate) mirror_token_id: String,
    pub(crate) repository: String,
    pub(crate) repository_id: u64,
    pub(crate) token_id: String,
    pub(crate) asked_by: Option<String>,
    pub(crate) minted_at: Time,
    pub(crate) handed_out_at: Time,
    pub(crate) expires_at: Time,
}

impl MirrorToken {
    /// Reads the message.
    pub(crate) fn read(message: v1::MirrorToken) -> Result<Self, Incomplete> {
        let v1::MirrorToken {
            mirror_token_id,
            repository,
            repository_id,
            token_id,
            asked_by,
            minted_at,
            handed_out_at,
            expires_at,
        } = message;
        if repository.is_empty() || repository_id == 0 {
            return Err(Incomplete);
        }
        Ok(Self {
            mirror_token_id,
            repository,
            repository_id,
            token_id,
            asked_by: Some(asked_by).filter(|subject| !subject.is_empty()),
            minted_at: Time::read(minted_at)?,
            handed_out_at: Time::read(handed_out_at)?,
            expires_at: Time::read(expires_at)?,
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::answer::tests::at;

    pub(crate) fn row() -> v1::MirrorToken {
        v1::MirrorToken {
            mirror_token_id: "m1".into(),
            repository: "acme/api".into(),
            repository_id: 42,
            token_id: "0123456789abcdef".into(),
            asked_by: String::new(),
            minted_at: at(1_800_000_000),
            handed_out_at: at(1_800_000_100),
            expires_at: at(1_800_003_600),
        }
    }

    pub(crate) fn minted() -> v1::MintMirrorTokenResponse {
        v1::MintMirrorTokenResponse { token: "ghs_hush".into(), mirror_token: Some(row()) }
    }

    fn read(message: v1::MintMirrorTokenResponse) -> Result<Minted, Incomplete> {
        Minted::read(message, &RepositoryName::parse("Acme/API").unwrap())
    }

    #[test]
    fn a_token_is_not_shown_where_it_is_debugged() {
        let minted = read(minted()).unwrap();
        assert_eq!((minted.expose(), minted.expires_at), ("ghs_hush", 1_800_003_600));
        assert!(!format!("{minted:?}").contains("hush"));
    }

    #[test]
    fn a_token_of_another_repository_or_of_more_than_one_line_is_not_handed_on() {
        let spoilers: [fn(&mut v1::MintMirrorTokenResponse); 8] = [
            |answer| answer.token = String::new(),
            |answer| answer.token = "ghs_x\npassword=y".into(),
            |answer| answer.token = "ghs_x y".into(),
            |answer| answer.mirror_token = None,
            |answer| answer.mirror_token.as_mut().unwrap().repository = "acme/web".into(),
            |answer| answer.mirror_token.as_mut().unwrap().repository = String::new(),
            |answer| answer.mirror_token.as_mut().unwrap().repository_id = 0,
            |answer| answer.mirror_token.as_mut().unwrap().expires_at = None,
        ];
        for (number, spoil) in spoilers.iter().enumerate() {
            let mut message = minted();
            spoil(&mut message);
            assert_eq!(read(message).unwrap_err(), Incomplete, "spoiler {number}");
        }
    }
}
