//! The door's name, as a sandbox knows it.

use std::fmt;

/// A name, and a port where it is not 443. It is safe in a URL, in YAML, in a shell and in git's settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Door {
    name: String,
    port: Option<u16>,
    /// Of a door on this machine: where gh finds it. git finds it on its port, by plain HTTP.
    socket: Option<String>,
}

/// The name of a door on this machine. gh, which drops the port of a remote, takes it for a host of its own.
const LOOPBACK: &str = "127.0.0.1";

/// Text that is no door.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InvalidDoor {
    /// Not a name.
    #[error("a door is NAME or NAME:PORT: letters, digits, \".\" and \"-\"")]
    Shape,
    /// A bearer would go to GitHub, or by plain HTTP.
    #[error("the door's own name is needed: gh takes this one for GitHub's")]
    Forge,
}

/// Names that gh does not take for an Enterprise host: it sends their requests elsewhere.
const FORGES: [&str; 3] = ["github.com", "github.localhost", "ghe.com"];

impl Door {
    /// Parses `NAME` or `NAME:PORT`.
    pub(crate) fn parse(text: &str) -> Result<Self, InvalidDoor> {
        let (name, port) = match text.split_once(':') {
            Some((name, port)) => (name, Some(port.parse::<u16>().map_err(|_other| InvalidDoor::Shape)?)),
            None => (text, None),
        };
        let name = name.to_ascii_lowercase();
        let label = |label: &str| {
            let plain = label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
            plain && !label.is_empty() && !label.starts_with('-')
        };
        if name.len() > 253 || !name.split('.').all(label) || port == Some(0) {
            return Err(InvalidDoor::Shape);
        }
        if is_forge(&name) {
            return Err(InvalidDoor::Forge);
        }
        Ok(Self { name, port: port.filter(|port| *port != 443), socket: None })
    }

    /// A door on this machine: on this port for git, on this socket for gh.
    pub(crate) fn here(port: u16, socket: String) -> Self {
        Self { name: LOOPBACK.to_owned(), port: Some(port), socket: Some(socket) }
    }

    /// The same door, as gh finds it on this socket.
    pub(crate) fn at(self, socket: String) -> Self {
        Self { socket: Some(socket), ..self }
    }

    /// The socket on which gh finds it, if it does.
    pub(crate) fn socket(&self) -> Option<&str> {
        self.socket.as_deref()
    }

    /// Whether it is not on port 443.
    pub(crate) fn has_port(&self) -> bool {
        self.port.is_some()
    }

    /// Where git finds it: `https://git.example.com`.
    pub(crate) fn url(&self) -> String {
        let Self { name, port, socket } = self;
        match (socket, port) {
            (Some(_), Some(port)) => format!("http://{name}:{port}"),
            (Some(_), None) => format!("http://{name}"),
            (None, _) => format!("https://{self}"),
        }
    }
}

/// Whether gh takes this name, or what it is below, for GitHub's own.
pub(crate) fn is_forge(name: &str) -> bool {
    FORGES.iter().any(|forge| name.strip_suffix(forge).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')))
}

impl fmt::Display for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // To gh, which comes by the socket, a port would be another host.
        match self.port.filter(|_| self.socket.is_none()) {
            Some(port) => write!(f, "{}:{port}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_door_is_a_name_and_at_most_a_port() {
        for (text, shown) in [
            ("git.example.com", "git.example.com"),
            ("GIT.example.com:443", "git.example.com"),
            ("git.example.com:8443", "git.example.com:8443"),
            ("door", "door"),
            ("mygithub.com", "mygithub.com"),
        ] {
            assert_eq!(Door::parse(text).map(|door| door.to_string()), Ok(shown.to_owned()), "{text}");
        }
        for text in [
            "",
            ".",
            "a..b",
            "-a",
            "https://a",
            "a/b",
            "u@a",
            "a b",
            "a\nb",
            "a:",
            "a:x",
            "a:0",
            "a:1:2",
            "[::1]",
            "a'b",
        ] {
            assert_eq!(Door::parse(text), Err(InvalidDoor::Shape), "{text}");
        }
    }

    #[test]
    fn a_door_on_this_machine_has_a_port_for_git_and_none_for_gh() {
        let door = Door::here(8080, "/run/door.sock".to_owned());
        assert_eq!((door.to_string(), door.url()), ("127.0.0.1".to_owned(), "http://127.0.0.1:8080".to_owned()));
    }

    #[test]
    fn no_name_that_gh_takes_for_githubs_is_a_door() {
        for text in ["github.com", "GitHub.com:8443", "api.github.com", "github.localhost", "acme.ghe.com"] {
            assert_eq!(Door::parse(text), Err(InvalidDoor::Forge), "{text}");
        }
    }
}
