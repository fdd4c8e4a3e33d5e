//! Credentials in URLs of git's settings.

use super::shapes::{find, is_bearer};

/// The user and password of a URL that has a credential in it which is no run's bearer: what stands between the scheme
/// and the host. A user by itself is a name, unless it has a token's shape.
pub(super) fn credential_of(url: &str) -> Option<&str> {
    let (_scheme, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let (user_info, _host) = authority.rsplit_once('@')?;
    let is_credential = match user_info.split_once(':') {
        Some((_user, password)) if !password.is_empty() => !is_bearer(password),
        Some((user, _)) => !find(user.as_bytes()).is_empty(),
        None => !find(user_info.as_bytes()).is_empty(),
    };
    is_credential.then_some(user_info)
}

/// The host of a URL that has a credential in it.
pub(super) fn host_of(url: &str) -> Option<&str> {
    let (_scheme, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    authority.rsplit_once('@').map(|(_, host)| host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_a_credential_and_so_is_a_token_for_a_user() {
        let token = "ghp_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789";
        assert_eq!(credential_of("https://u:p@github.com/a/b"), Some("u:p"));
        assert_eq!(credential_of("https://:p@h"), Some(":p"));
        assert_eq!(credential_of("https://a@b:c@h/x@y"), Some("a@b:c"));
        assert_eq!(credential_of(&format!("https://{token}@github.com/")), Some(token));
        assert_eq!(credential_of(&format!("https://{token}:@github.com/")), Some(&*format!("{token}:")));
        for url in [
            "",
            "https://github.com/a/b",
            "https://octo@github.com/",
            "ssh://git@github.com/a/b",
            "git@github.com:a/b",
            "https://h/u:p@x",
            "https://x:sbr_r1.AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8@git.example.com/",
        ] {
            assert_eq!(credential_of(url), None, "{url}");
        }
    }
}
