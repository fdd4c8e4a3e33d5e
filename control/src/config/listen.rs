//! An address to listen on.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

/// Where a service listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listen {
    /// On an address.
    Tcp(SocketAddr),
    /// On a Unix socket.
    Unix(PathBuf),
}

/// Text that is no listening address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an address is IP:PORT or unix:PATH")]
pub struct InvalidListen;

impl FromStr for Listen {
    type Err = InvalidListen;

    fn from_str(text: &str) -> Result<Self, InvalidListen> {
        match text.strip_prefix("unix:") {
            Some("") => Err(InvalidListen),
            Some(path) => Ok(Self::Unix(path.into())),
            None => text.parse().map(Self::Tcp).map_err(|_address| InvalidListen),
        }
    }
}

impl std::fmt::Display for Listen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tcp(address) => write!(f, "{address}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}
