//! A port that is one test's alone, also while nobody listens there.

use std::net::{Ipv4Addr, SocketAddr};

use socket2::{Domain, Socket, Type};

/// A port on loopback that a program is to listen on.
pub struct Port {
    /// Bound and never listened on, so that nobody else gets the port and the program still may.
    _held: Socket,
    address: SocketAddr,
}

impl Port {
    /// Takes one. As long as nobody listens there, it refuses connections.
    pub fn take() -> Self {
        let held = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        held.set_reuse_address(true).expect("an option");
        held.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).expect("a port");
        let address = held.local_addr().ok().and_then(|address| address.as_socket()).expect("its address");
        Self { _held: held, address }
    }

    /// Where that is.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}
