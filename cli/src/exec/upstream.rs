//! The credential that opens GitHub, from where it is. It stays in this process.

use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::Path;
use std::process::{Command, Stdio};

use gitdoor_control::github;
use gitdoor_control::github::plain;
use secrecy::SecretString;
use secrecy::zeroize::Zeroizing;

use super::ExecError;
use crate::args::{AppFlags, ExecArgs};
use crate::fence::Caller;

/// Most bytes of a token; GitHub's have up to some hundreds.
pub(super) const TOKEN_BYTES: usize = 4096;

/// What opens GitHub.
pub(super) enum Upstream {
    /// An App, whose tokens are minted one by one.
    App(github::Config),
    /// A token that somebody else made.
    Token(SecretString, plain::Config),
}

impl Upstream {
    /// Reads what the flags name.
    pub(super) fn of(args: &ExecArgs) -> Result<Self, ExecError> {
        let (api_url, ca) = (args.github_api_url.clone(), args.github_ca.clone());
        let AppFlags { github_app_id, github_app_key, github_installation_id, read_statuses } = &args.app;
        if let (Some(id), Some(key), Some(installation)) = (github_app_id, github_app_key, github_installation_id) {
            return Ok(Self::App(github::Config {
                api_url,
                ca,
                app_id: id.clone(),
                app_key: key.clone(),
                installation_id: *installation,
                statuses: *read_statuses,
                connect_timeout: github::CONNECT_TIMEOUT,
                overall_timeout: github::OVERALL_TIMEOUT,
            }));
        }
        let token = match &args.token_file {
            Some(path) => read_file(path)?,
            None => ask_gh(&host_of(&args.github_url)?)?,
        };
        Ok(Self::Token(token, plain::Config { api_url, ca }))
    }

    /// Whether nothing but the door's rules narrows it.
    pub(super) fn is_own_token(&self) -> bool {
        matches!(self, Self::Token(..))
    }
}

fn read_file(path: &Path) -> Result<SecretString, ExecError> {
    const FLAG: &str = "--token-file";
    let mut bytes = Zeroizing::new(Vec::with_capacity(TOKEN_BYTES));
    let read = File::open(path).and_then(|file| file.take(TOKEN_BYTES as u64 + 1).read_to_end(&mut bytes));
    read.map_err(|why| ExecError::Unreadable { flag: FLAG, path: path.to_owned(), why })?;
    token_of(FLAG, &bytes)
}

/// What the user's own gh has. It may come from its keyring: gh is asked, and no file of its.
fn ask_gh(host: &str) -> Result<SecretString, ExecError> {
    // Not by a name that is relative: the working folder may be the command's of before.
    let gh = Caller::of_this_process().find("gh".as_ref());
    let gh = gh.ok_or_else(|| ExecError::Gh(ErrorKind::NotFound.into()))?;
    let mut gh = Command::new(gh);
    gh.args(["auth", "token", "--hostname", host]).stdin(Stdio::null()).stderr(Stdio::null());
    let mut gh = gh.stdout(Stdio::piped()).spawn().map_err(ExecError::Gh)?;
    let mut printed = Zeroizing::new(Vec::with_capacity(TOKEN_BYTES + 1));
    let read = gh.stdout.take().map(|output| output.take(TOKEN_BYTES as u64 + 1).read_to_end(&mut printed));
    // Its output is closed: whatever else it would say, it ends.
    let status = gh.wait().map_err(ExecError::Gh)?;
    read.transpose().map_err(ExecError::Gh)?;
    if printed.len() <= TOKEN_BYTES && !status.success() {
        return Err(ExecError::NoneOfGh(host.to_owned()));
    }
    token_of("--from-gh", &printed)
}

/// One token, and at most white space around it.
fn token_of(flag: &'static str, bytes: &[u8]) -> Result<SecretString, ExecError> {
    let text = str::from_utf8(bytes).unwrap_or_default().trim();
    let printable = text.bytes().all(|byte| byte.is_ascii_graphic());
    if text.is_empty() || bytes.len() > TOKEN_BYTES || !printable {
        return Err(ExecError::NoToken(flag));
    }
    Ok(SecretString::from(text))
}

/// The host that the token is to be for: a token of another must not be sent there.
fn host_of(url: &str) -> Result<String, ExecError> {
    let uri = url.parse::<tonic::codegen::http::Uri>().map_err(|_invalid| ExecError::Url)?;
    uri.host().map(str::to_owned).ok_or(ExecError::Url)
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::*;

    #[test]
    fn a_token_stands_alone_on_its_line() {
        let token =
            |bytes: &[u8]| token_of("--token-file", bytes).map(|token| token.expose_secret().to_owned()).ok();
        assert_eq!(token(b"ghp_abc\n").as_deref(), Some("ghp_abc"));
        assert_eq!(token(b" ghp_abc\r\n").as_deref(), Some("ghp_abc"));
        for none in [&b""[..], b"\n", b"a b", b"a\nb", b"\xff", b"a\x00b", &[b'a'; TOKEN_BYTES + 1]] {
            assert_eq!(token(none), None, "{none:?}");
        }
    }

    #[test]
    fn gh_is_asked_for_the_token_of_the_host_that_it_is_sent_to() {
        assert_eq!(host_of("https://github.com").ok().as_deref(), Some("github.com"));
        assert_eq!(host_of("https://ghe.example:8443").ok().as_deref(), Some("ghe.example"));
        assert!(host_of("/x").is_err() && host_of("").is_err());
    }
}
