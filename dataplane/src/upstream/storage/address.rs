//! Public addresses: a redirect must not lead the door to what only it can reach.
//!
//! <https://www.iana.org/assignments/iana-ipv4-special-registry> and its IPv6 companion.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::vec::IntoIter;

use hyper_util::client::legacy::connect::dns::{GaiResolver, Name};
use tower::Service;

/// Resolves names as the system does, and gives public addresses alone unless told otherwise.
#[derive(Clone)]
pub(super) struct Resolver {
    system: GaiResolver,
    private: bool,
}

/// The addresses of a name are all private.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("the name has no public address; a storage of one's own is named with its port")]
struct Private;

impl Resolver {
    pub(super) fn new(private: bool) -> Self {
        Self { system: GaiResolver::new(), private }
    }
}

impl Service<Name> for Resolver {
    type Response = IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.system.poll_ready(cx)
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let private = self.private;
        let resolving = self.system.call(name);
        Box::pin(async move {
            let addresses: Vec<SocketAddr> =
                resolving.await?.filter(|address| private || is_public(address.ip())).collect();
            if addresses.is_empty() { Err(io::Error::other(Private)) } else { Ok(addresses.into_iter()) }
        })
    }
}

/// Whether an address is of the public internet.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let special = match (a, b, c) {
        (0 | 10 | 127 | 224..=255, _, _)
        | (100, 64..=127, _)
        | (169, 254, _)
        | (172, 16..=31, _)
        | (192, 168, _)
        | (192, 0, 0 | 2)
        | (192, 88, 99)
        | (198, 18..=19, _)
        | (198, 51, 100)
        | (203, 0, 113) => true,
        (_, _, _) => false,
    };
    !special
}

/// Global unicast, without what is set apart in it and what holds an IPv4 address inside.
fn is_public_v6(address: Ipv6Addr) -> bool {
    let [a, b, ..] = address.segments();
    let special = match (a, b) {
        // Protocol assignments (Teredo among them), documentation, 6to4.
        (0x2001, 0..=0x01ff | 0x0db8) | (0x2002, _) | (0x3fff, 0..=0x0fff) => true,
        (_, _) => false,
    };
    (a & 0xe000) == 0x2000 && !special
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_of_the_public_internet_is_told_apart() {
        for address in ["1.1.1.1", "20.60.0.1", "140.82.121.4", "172.32.0.1", "100.128.0.1", "2606:50c0:8000::154"]
        {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
        for address in [
            "0.0.0.0",
            "10.1.2.3",
            "127.0.0.1",
            "100.64.0.1",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.0.1",
            "192.0.0.8",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:1.1.1.1",
            "64:ff9b::a00:1",
            "fe80::1",
            "fc00::1",
            "fec0::1",
            "ff02::1",
            "2001::1",
            "2001:db8::1",
            "2002:a00:1::",
        ] {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
    }
}
