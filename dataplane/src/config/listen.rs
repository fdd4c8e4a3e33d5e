//! An address to listen on.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;
use std::str::FromStr;

/// `ADDRESS:PORT` or `unix:PATH`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listen {
    /// TCP; port 0 lets the system choose.
    Tcp(SocketAddr),
    /// A Unix socket.
    Unix(PathBuf),
}

/// Text that is no address to listen on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an address is ADDRESS:PORT, such as 127.0.0.1:8443 or [::]:8443, or unix:PATH")]
pub struct InvalidListen;

impl FromStr for Listen {
    type Err = InvalidListen;

    fn from_str(text: &str) -> Result<Self, InvalidListen> {
        match text.strip_prefix("unix:") {
            Some("") => Err(InvalidListen),
            Some(path) => Ok(Self::Unix(path.into())),
            None => {
                let mut addresses = text.to_socket_addrs().map_err(|_not_an_address| InvalidListen)?;
                addresses.next().map(Self::Tcp).ok_or(InvalidListen)
            }
        }
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => write!(f, "{address}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}
