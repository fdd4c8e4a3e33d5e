//! Installation tokens: what each may do, and whether a request may.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Mutex;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

/// Names of permissions with their level: `read` or `write`.
pub type Permissions = BTreeMap<String, String>;

/// A token that was minted.
#[derive(Clone)]
pub struct Token {
    /// The token itself.
    pub text: String,
    /// What it may do.
    pub permissions: Permissions,
    /// Ids of the repositories it works on; nothing: all of the installation.
    pub repositories: Option<Vec<u64>>,
    /// When it ends, in seconds since 1970.
    pub expires_at: i64,
    /// True once it was revoked.
    pub revoked: bool,
}

impl Token {
    /// True if it was given this level of a permission, or a higher one.
    pub fn may(&self, permission: &str, level: &str) -> bool {
        self.permissions.get(permission).is_some_and(|given| covers(given, level))
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { text: _, permissions, repositories, expires_at, revoked } = self;
        write!(f, "Token({permissions:?} on {repositories:?} until {expires_at}, revoked: {revoked})")
    }
}

/// True if a level of a permission includes another.
pub(crate) fn covers(given: &str, asked: &str) -> bool {
    let rank = |level: &str| ["read", "write", "admin"].iter().position(|known| *known == level);
    rank(asked).is_some_and(|asked| rank(given) >= Some(asked))
}

/// All tokens ever minted, in order.
#[derive(Debug, Default)]
pub(crate) struct Tokens(Mutex<Vec<Token>>);

impl Tokens {
    /// Makes a token.
    pub(crate) fn mint(&self, permissions: Permissions, repositories: Option<Vec<u64>>, expires_at: i64) -> Token {
        let token = Token { text: new_text(), permissions, repositories, expires_at, revoked: false };
        self.0.lock().unwrap().push(token.clone());
        token
    }

    /// A live token and its index, by the value of an `Authorization` header.
    pub(crate) fn find(&self, authorization: Option<&str>, now: i64) -> Option<(usize, Token)> {
        let text = credential(authorization?)?;
        let tokens = self.0.lock().unwrap();
        let index = tokens.iter().position(|token| token.text == text)?;
        let token = &tokens[index];
        (!token.revoked && now < token.expires_at).then(|| (index, token.clone()))
    }

    /// Changes one for good.
    pub(crate) fn change(&self, index: usize, change: impl FnOnce(&mut Token)) {
        change(&mut self.0.lock().unwrap()[index]);
    }

    /// A copy of all.
    pub(crate) fn all(&self) -> Vec<Token> {
        self.0.lock().unwrap().clone()
    }
}

/// The secret of an `Authorization` value: `Basic` with any user name, `Bearer` or `token`.
pub(crate) fn credential(authorization: &str) -> Option<String> {
    let (scheme, value) = authorization.split_once(' ')?;
    match scheme.to_ascii_lowercase().as_str() {
        "bearer" | "token" => Some(value.trim().to_owned()),
        "basic" => {
            let pair = String::from_utf8(STANDARD.decode(value.trim()).ok()?).ok()?;
            pair.split_once(':').map(|(_user, password)| password.to_owned())
        }
        _ => None,
    }
}

/// As GitHub's newer ones look: long, with dots and dashes, of no length to rely on.
fn new_text() -> String {
    let random = |bytes: usize| {
        let mut buffer = vec![0_u8; bytes];
        getrandom::fill(&mut buffer).expect("randomness");
        URL_SAFE_NO_PAD.encode(buffer)
    };
    format!("ghs_{}.{}.{}-{}", random(12), random(90), random(186), random(64))
}
