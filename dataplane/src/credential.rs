//! The two credentials: the run bearer that comes in, in one `Authorization` as Basic (any user name, the bearer as the
//! password), `token` or `Bearer`; and the forge's token that goes up. RFC 9110, section 11.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gitdoor_proto::{Bearer, Token};
use http::HeaderMap;
use http::header::AUTHORIZATION;

/// Why a request carries no bearer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoBearer {
    /// No `Authorization` at all.
    #[error("send the run bearer as the password, with any user name")]
    Missing,
    /// An `Authorization` that holds no bearer by its shape.
    #[error("the credential is no run bearer; send sbr_<runId>.<secret> as the password, with any user name")]
    NotABearer,
    /// More than one `Authorization`: two readers could take different ones.
    #[error("a request carries one Authorization header")]
    Repeated,
}

impl NoBearer {
    /// The stable code.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::Missing => "no-credential",
            Self::NotABearer => "not-a-bearer",
            Self::Repeated => "two-credentials",
        }
    }
}

/// Reads the bearer.
pub fn bearer(headers: &HeaderMap) -> Result<Bearer, NoBearer> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let value = values.next().ok_or(NoBearer::Missing)?;
    if values.next().is_some() {
        return Err(NoBearer::Repeated);
    }
    value.to_str().ok().and_then(parse).ok_or(NoBearer::NotABearer)
}

fn parse(value: &str) -> Option<Bearer> {
    let (scheme, rest) = value.split_once(' ')?;
    let credential = rest.trim_matches(' ');
    if scheme.eq_ignore_ascii_case("basic") {
        let decoded = String::from_utf8(STANDARD.decode(credential).ok()?).ok()?;
        let (_user, password) = decoded.split_once(':')?;
        Bearer::parse(password).ok()
    } else if scheme.eq_ignore_ascii_case("token") || scheme.eq_ignore_ascii_case("bearer") {
        Bearer::parse(credential).ok()
    } else {
        None
    }
}

/// A token as the forge's git takes it: the password of basic authentication.
#[must_use]
pub fn basic(token: &Token) -> String {
    STANDARD.encode(format!("x-access-token:{}", token.expose()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    const BEARER: &str = "sbr_run-1.AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8";

    fn read(values: &[&str]) -> Result<String, NoBearer> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(AUTHORIZATION, HeaderValue::from_str(value).unwrap());
        }
        bearer(&headers).map(|bearer| bearer.expose())
    }

    #[test]
    fn every_scheme_that_git_and_gh_use_is_read() {
        for user in ["x-access-token", "octo", ""] {
            let basic = STANDARD.encode(format!("{user}:{BEARER}"));
            for scheme in ["Basic", "basic", "BASIC"] {
                assert_eq!(read(&[&format!("{scheme} {basic}")]).unwrap(), BEARER);
            }
        }
        for scheme in ["token", "Token", "Bearer", "bearer", "Bearer "] {
            assert_eq!(read(&[&format!("{scheme} {BEARER}")]).unwrap(), BEARER);
        }
    }

    #[test]
    fn anything_else_is_no_bearer() {
        let swapped = format!("Basic {}", STANDARD.encode(format!("{BEARER}:")));
        let foreign = format!("Basic {}", STANDARD.encode("x-access-token:ghs_abc"));
        for value in ["", BEARER, "Basic", "Basic !!", "token ghs_abc", "Digest a", &swapped, &foreign] {
            assert_eq!(read(&[value]).unwrap_err(), NoBearer::NotABearer, "{value:?}");
        }
        assert_eq!(read(&[]).unwrap_err(), NoBearer::Missing);
    }

    #[test]
    fn two_credentials_are_refused_even_when_they_are_equal() {
        let value = format!("token {BEARER}");
        assert_eq!(read(&[&value, &value]).unwrap_err(), NoBearer::Repeated);
    }
}
