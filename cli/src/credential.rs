//! git's credential-helper protocol: what git asks, and whether a mirror's token answers it.
//!
//! <https://git-scm.com/docs/git-credential#IOFMT>. Git asks for whatever server it talks to, also for one that a
//! repository names as a submodule: the token is for one repository of one host, over https, and for nothing else.

use std::fmt;

use gitdoor_proto::{RepositoryName, token_id};

/// Most bytes that are read of git's question.
pub(crate) const QUESTION_BYTES: u64 = 64 << 10;

/// The host of the forge, as git asks for it: a name, and a port where it has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Host(String);

/// Text that is no host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a host is NAME or NAME:PORT")]
pub(crate) struct InvalidHost;

impl Host {
    /// Parses `NAME` or `NAME:PORT`.
    pub(crate) fn parse(text: &str) -> Result<Self, InvalidHost> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b".-:[]".contains(&byte);
        let plain = !text.is_empty() && text.bytes().all(allowed);
        if plain { Ok(Self(text.to_ascii_lowercase())) } else { Err(InvalidHost) }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What git asks for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Question {
    protocol: String,
    host: String,
    /// The repository's, where git was told to send it.
    path: Option<String>,
    /// Names the password that git gives up, where it does.
    token_id: Option<String>,
}

/// What is no question of git's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "standard input is not what git writes to a credential helper: lines of key=value in UTF-8, each key once, \
     without a carriage return or a NUL"
)]
pub(crate) struct Malformed;

impl Question {
    /// Reads the lines up to an empty one.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, Malformed> {
        let text = std::str::from_utf8(bytes).map_err(|_other| Malformed)?;
        // Git ends a line with \n alone: where a host has another end of line in it, somebody means to be misread.
        if text.contains(['\r', '\0']) {
            return Err(Malformed);
        }
        let (mut protocol, mut host, mut path, mut token) = (None, None, None, None);
        for line in text.split('\n').take_while(|line| !line.is_empty()) {
            let (key, value) = line.split_once('=').ok_or(Malformed)?;
            // A password is not kept: its name does.
            let value = if key == "password" { token_id(value) } else { value.to_owned() };
            let place = match key {
                "protocol" => &mut protocol,
                "host" => &mut host,
                "path" => &mut path,
                "password" => &mut token,
                // Git adds keys, and means those that are not known to be passed over.
                _ => continue,
            };
            if place.replace(value).is_some() {
                return Err(Malformed);
            }
        }
        Ok(Self { protocol: protocol.unwrap_or_default(), host: host.unwrap_or_default(), path, token_id: token })
    }

    /// Names the token that it gives up.
    pub(crate) fn into_token_id(self) -> Option<String> {
        self.token_id
    }

    /// Whether the token of a repository answers it.
    pub(crate) fn is_for(&self, host: &Host, repository: &RepositoryName) -> bool {
        let named = |path: &String| {
            let path = path.trim_start_matches('/').trim_end_matches('/');
            RepositoryName::parse(path.strip_suffix(".git").unwrap_or(path)).as_ref() == Ok(repository)
        };
        self.protocol == "https" && self.host.eq_ignore_ascii_case(&host.0) && self.path.as_ref().is_none_or(named)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(question: &str) -> bool {
        let (host, repository) = (Host::parse("GitHub.com").unwrap(), RepositoryName::parse("acme/api").unwrap());
        Question::read(question.as_bytes()).unwrap().is_for(&host, &repository)
    }

    #[test]
    fn the_token_is_for_https_to_its_host_and_for_its_repository_alone() {
        for question in [
            "protocol=https\nhost=github.com\n",
            "protocol=https\nhost=GITHUB.com\n\nhost=after.example\n",
            "capability[]=authtype\nprotocol=https\nhost=github.com\nwwwauth[]=Basic realm=\"GitHub\"\nx=y\n\n",
            "protocol=https\nhost=github.com\npath=Acme/API.git\n",
            "protocol=https\nhost=github.com\npath=acme/api\nusername=x-access-token\n",
        ] {
            assert!(answers(question), "{question}");
        }
        for question in [
            "",
            "\nprotocol=https\nhost=github.com\n",
            "host=github.com\n",
            "protocol=https\n",
            "protocol=http\nhost=github.com\n",
            "protocol=HTTPS\nhost=github.com\n",
            "protocol=https\nhost=github.com:8443\n",
            "protocol=https\nhost=github.com.evil.example\n",
            "protocol=https\nhost=evil.example\n",
            "protocol=https\nhost=github.com\npath=acme/web.git\n",
            "protocol=https\nhost=github.com\npath=\n",
            "protocol=https\nhost=github.com\npath=acme/api/info/lfs\n",
        ] {
            assert!(!answers(question), "{question}");
        }
    }

    #[test]
    fn what_git_would_not_write_is_refused() {
        for question in [
            &b"protocol"[..],
            b"host=a\nhost=b\n",
            b"host=\xff\n",
            b"protocol=https\r\nhost=github.com\r\n",
            b"protocol=https\nhost=github.com\r\n\n",
            b"protocol=https\nhost=github.com\n\n\r",
            b"protocol=https\nhost=github.com\0.evil.example\n",
            b"protocol=https\nhost=github.com\nx=\0\n",
        ] {
            assert_eq!(Question::read(question), Err(Malformed));
        }
    }

    #[test]
    fn a_host_is_a_name_and_at_most_a_port() {
        for text in ["github.com", "localhost:8443", "[::1]:443", "ghe.example"] {
            assert!(Host::parse(text).is_ok(), "{text}");
        }
        for text in ["", "https://github.com", "github.com/acme", "user@github.com", "a b", "a\nb"] {
            assert_eq!(Host::parse(text), Err(InvalidHost), "{text}");
        }
    }
}
