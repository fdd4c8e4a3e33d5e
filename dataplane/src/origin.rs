//! Where a request comes from: the address of its client, and the trace that it is part of. Both are for the log, and
//! nothing is decided by them.
//!
//! What stands in front of the door, a shim or a balancer, knows them. It is believed by its address alone; what
//! anybody else writes into such a header is not looked at.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use gitdoor_proto::TraceParent;
use http::{HeaderMap, HeaderName};

/// `traceparent` of the W3C.
const TRACE_PARENT: HeaderName = HeaderName::from_static("traceparent");
/// Each hop appends the address that it was asked from.
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Bits of an address of IPv4.
const MOST_V4: u8 = 32;

/// Peers that stand in front of the door.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shim {
    /// Every peer on a Unix socket.
    Unix,
    /// Those whose addresses begin like this one, in so many bits.
    Network(IpAddr, u8),
}

/// Text that names no shim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a shim is ADDRESS or ADDRESS/PREFIX, such as 10.0.0.7, 10.0.0.0/24 or fd00::/8, or unix")]
pub struct InvalidShim;

impl FromStr for Shim {
    type Err = InvalidShim;

    fn from_str(text: &str) -> Result<Self, InvalidShim> {
        if text == "unix" {
            return Ok(Self::Unix);
        }
        let (address, prefix) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let address: IpAddr = address.parse().map_err(|_no_address| InvalidShim)?;
        let most = if address.is_ipv4() { MOST_V4 } else { 128 };
        let prefix = match prefix {
            None => most,
            Some(bits) if bits.bytes().all(|digit| digit.is_ascii_digit()) => {
                bits.parse().map_err(|_too_large| InvalidShim)?
            }
            Some(_) => return Err(InvalidShim),
        };
        if prefix > most {
            return Err(InvalidShim);
        }
        // A peer of IPv4 is one, however it is written.
        match (address.to_canonical(), prefix.checked_sub(most - MOST_V4)) {
            (mapped @ IpAddr::V4(_), Some(prefix)) => Ok(Self::Network(mapped, prefix)),
            (IpAddr::V4(_), None) => Err(InvalidShim),
            (IpAddr::V6(_), _) => Ok(Self::Network(address, prefix)),
        }
    }
}

impl Shim {
    fn is(self, peer: PeerAddress) -> bool {
        match (self, peer) {
            (Self::Unix, PeerAddress::Unix) => true,
            (Self::Network(IpAddr::V4(network), prefix), PeerAddress::Ip(IpAddr::V4(address))) => {
                let differ = network.to_bits() ^ address.to_bits();
                differ.leading_zeros() >= prefix.into()
            }
            (Self::Network(IpAddr::V6(network), prefix), PeerAddress::Ip(IpAddr::V6(address))) => {
                let differ = network.to_bits() ^ address.to_bits();
                differ.leading_zeros() >= prefix.into()
            }
            (Self::Unix | Self::Network(..), PeerAddress::Unix | PeerAddress::Ip(_) | PeerAddress::Gone) => false,
        }
    }
}

/// Where a connection comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeerAddress {
    /// Through a Unix socket.
    Unix,
    /// From an address. One of IPv4 is one, whatever the listener is.
    Ip(IpAddr),
    /// It is gone already.
    Gone,
}

impl From<SocketAddr> for PeerAddress {
    fn from(address: SocketAddr) -> Self {
        Self::Ip(address.ip().to_canonical())
    }
}

/// Who a connection is with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    address: PeerAddress,
    is_shim: bool,
}

impl Peer {
    /// The peer at an address, where these stand in front of the door.
    #[must_use]
    pub fn at(address: PeerAddress, shims: &[Shim]) -> Self {
        Self { address, is_shim: shims.iter().any(|shim| shim.is(address)) }
    }
}

/// Where a request comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Origin {
    /// The client's address: what the shim says, or else that of the connection.
    pub client: Option<IpAddr>,
    /// The trace that the shim has made the request part of.
    pub trace_parent: Option<TraceParent>,
}

impl Origin {
    /// Where a request with these headers comes from, on a connection with this peer.
    #[must_use]
    pub fn of(peer: Peer, headers: &HeaderMap) -> Self {
        match (peer.is_shim, peer.address) {
            (true, _) => Self { client: forwarded_for(headers), trace_parent: trace_parent(headers) },
            (false, PeerAddress::Ip(client)) => Self { client: Some(client), trace_parent: None },
            (false, PeerAddress::Unix | PeerAddress::Gone) => Self::default(),
        }
    }
}

/// The one `traceparent`; of two, neither.
fn trace_parent(headers: &HeaderMap) -> Option<TraceParent> {
    let mut values = headers.get_all(TRACE_PARENT).iter();
    let value = values.next().filter(|_| values.next().is_none())?;
    TraceParent::parse(value.to_str().ok()?)
}

/// What the shim itself has appended: all before it is its client's word.
fn forwarded_for(headers: &HeaderMap) -> Option<IpAddr> {
    let last = headers.get_all(FORWARDED_FOR).iter().next_back()?.to_str().ok()?;
    let entry = last.rsplit(',').next()?.trim();
    let bare = entry.strip_prefix('[').and_then(|entry| entry.strip_suffix(']')).unwrap_or(entry);
    let address = bare.parse().or_else(|_no_address| entry.parse().map(|address: SocketAddr| address.ip()));
    address.ok().map(|address: IpAddr| address.to_canonical())
}

impl fmt::Display for Shim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix => f.write_str("unix"),
            Self::Network(address, prefix) => write!(f, "{address}/{prefix}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn peer(address: &str) -> PeerAddress {
        match address {
            "unix" => PeerAddress::Unix,
            "gone" => PeerAddress::Gone,
            ip => SocketAddr::new(ip.parse().unwrap(), 9).into(),
        }
    }

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        let mut all = HeaderMap::new();
        pairs.iter().map(pair).for_each(|(name, value)| {
            all.append(name, value);
        });
        all
    }

    #[test]
    fn a_shim_is_known_by_its_address_alone() {
        for (shim, address, expected) in [
            ("10.0.0.7", "10.0.0.7", true),
            ("10.0.0.7", "10.0.0.8", false),
            ("10.0.0.7", "::ffff:10.0.0.7", true),
            ("10.0.0.0/24", "10.0.0.255", true),
            ("10.0.0.0/24", "10.0.1.0", false),
            ("10.0.0.9/24", "10.0.0.1", true),
            ("0.0.0.0/0", "203.0.113.9", true),
            ("0.0.0.0/0", "fd00::1", false),
            ("::ffff:10.0.0.7", "10.0.0.7", true),
            ("::ffff:10.0.0.7", "10.0.0.8", false),
            ("::ffff:10.0.0.0/120", "10.0.0.255", true),
            ("::ffff:10.0.0.0/120", "10.0.1.0", false),
            ("::ffff:0.0.0.0/96", "203.0.113.9", true),
            ("fd00::/8", "fd12::1", true),
            ("fd00::/8", "fe80::1", false),
            ("::/0", "fe80::1", true),
            ("::/0", "10.0.0.1", false),
            ("::/0", "unix", false),
            ("unix", "unix", true),
            ("unix", "127.0.0.1", false),
            ("unix", "gone", false),
            ("0.0.0.0/0", "gone", false),
        ] {
            let shim: Shim = shim.parse().unwrap();
            assert_eq!(shim.is(peer(address)), expected, "{shim} {address}");
        }
        for text in [
            "",
            "unix:",
            "localhost",
            "10.0.0.0/",
            "10.0.0.0/33",
            "10.0.0.0/+8",
            "10.0.0.0/8/8",
            "::/129",
            "::ffff:10.0.0.7/95",
        ] {
            assert_eq!(text.parse::<Shim>(), Err(InvalidShim), "{text}");
        }
    }

    #[test]
    fn only_a_shim_says_where_a_request_comes_from() {
        let said = headers(&[("traceparent", TRACE), ("x-forwarded-for", "192.0.2.1, 198.51.100.2")]);
        let shims = ["10.0.0.7".parse().unwrap(), Shim::Unix];
        let of = |address| Origin::of(Peer::at(peer(address), &shims), &said);
        for shim in ["10.0.0.7", "unix"] {
            let Origin { client, trace_parent } = of(shim);
            assert_eq!(client, Some("198.51.100.2".parse().unwrap()), "{shim}");
            assert_eq!(trace_parent.unwrap().to_string(), TRACE, "{shim}");
        }
        let client = Some("10.0.0.8".parse().unwrap());
        assert_eq!(of("10.0.0.8"), Origin { client, trace_parent: None });
        assert_eq!(of("gone"), Origin::default());
    }

    #[test]
    fn what_a_shim_says_that_cannot_be_read_is_nothing() {
        let of = |pairs: &[(&'static str, &'static str)]| {
            Origin::of(Peer::at(PeerAddress::Unix, &[Shim::Unix]), &headers(pairs))
        };
        for pairs in [
            &[][..],
            &[("traceparent", TRACE), ("traceparent", TRACE)],
            &[("traceparent", "00-x"), ("tracestate", "a=b")],
            &[("x-forwarded-for", "")],
            &[("x-forwarded-for", "10.0.0.1, unknown")],
            &[("x-forwarded-for", "10.0.0.1,")],
            &[("x-forwarded-for", "[10.0.0.1")],
            &[("x-forwarded-for", "10.0.0.1"), ("x-forwarded-for", "_hidden")],
        ] {
            assert_eq!(of(pairs), Origin::default(), "{pairs:?}");
        }
        for (entry, client) in [
            ("192.0.2.1:4711", "192.0.2.1"),
            ("[2001:db8::1]:4711", "2001:db8::1"),
            ("a,2001:db8::1", "2001:db8::1"),
            ("a, [2001:db8::1] ", "2001:db8::1"),
            ("::ffff:192.0.2.1", "192.0.2.1"),
        ] {
            assert_eq!(of(&[("x-forwarded-for", entry)]).client, Some(client.parse().unwrap()), "{entry}");
        }
    }
}
