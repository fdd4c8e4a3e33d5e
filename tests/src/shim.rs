//! What stands in front of data planes, started from the very files of `deploy/`: the Worker in the runtime that
//! Cloudflare runs, nginx, `HAProxy`. Only addresses and names are put in their place.

mod programs;

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use tokio::net::TcpStream;
use tokio::process::Child;

use crate::authority::Leaf;
use crate::port::Port;
use crate::raw::Door;
use crate::wait::until;
use crate::world::{Builder, World};

/// Most bytes of a body that the Worker lets through, unless a test says otherwise.
const CEILING: u64 = 200_000_000;

/// Runs tests behind every shim, in a module for each.
#[macro_export]
macro_rules! behind_every_shim {
    ($($test:ident),+ $(,)?) => {
        $crate::behind_shims_that_read!($($test),+);
        $crate::behind_shims!(passthrough Passthrough: $($test),+);
    };
}

/// Runs tests behind every shim that reads requests.
#[macro_export]
macro_rules! behind_shims_that_read {
    ($($test:ident),+ $(,)?) => {
        $crate::behind_shims!(worker Worker: $($test),+);
        $crate::behind_shims!(nginx Nginx: $($test),+);
        $crate::behind_shims!(haproxy Haproxy: $($test),+);
    };
}

/// Runs tests behind one shim, in a module of this name.
#[macro_export]
macro_rules! behind_shims {
    ($module:ident $kind:ident: $($test:ident),+) => {
        mod $module {
            $(#[tokio::test]
            async fn $test() {
                super::$test($crate::shim::Kind::$kind).await;
            })+
        }
    };
}

/// Which one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `deploy/cloudflare`, in workerd.
    Worker,
    /// `deploy/nginx/gitdoor.conf`.
    Nginx,
    /// `deploy/haproxy/haproxy.cfg`.
    Haproxy,
    /// `deploy/haproxy/passthrough.cfg`.
    Passthrough,
}

impl Kind {
    /// Whether it speaks TLS with data planes, and to its clients. Cloudflare's edge does that before the Worker.
    fn has_tls(self) -> bool {
        self != Self::Worker
    }
}

/// A shim's to be: its data planes have to know it, and it has to know them.
impl Port {
    /// A world of two data planes that are known by this port.
    pub fn world(&self, program: &str, kind: Kind) -> Builder {
        let hosts = format!("--public-host=localhost,localhost:{}", self.address().port());
        let builder = World::builder(program).dataplanes(2).dataplane_flag(&hosts);
        let builder = builder.dataplane_flag("--log-format=json").dataplane_flag("--threads=1");
        if kind.has_tls() { builder } else { builder.plain() }
    }
}

/// A server behind a shim.
pub struct Backend {
    /// Where it takes requests.
    pub address: SocketAddr,
    /// Where it says whether it is ready.
    pub admin: SocketAddr,
}

/// A running shim.
pub struct Shim {
    kind: Kind,
    port: Port,
    authority: PathBuf,
    _process: Child,
}

impl Shim {
    /// In front of a world's two data planes.
    pub async fn start(kind: Kind, port: Port, world: &mut World) -> Self {
        Self::with_ceiling(kind, port, world, CEILING).await
    }

    /// Likewise; the Worker's ceiling is this many bytes.
    pub async fn with_ceiling(kind: Kind, port: Port, world: &mut World, ceiling: u64) -> Self {
        let backends = [0, 1].map(|number| Backend {
            address: world.address(number),
            admin: world.dataplane(number).address("admin").parse().expect("an address"),
        });
        let folder = world.path().join("shim");
        Self::before(kind, port, &backends, &folder, (&world.leaf(), &world.ca_file()), ceiling).await
    }

    /// In front of any two servers. It has a certificate, and trusts what this authority signed.
    pub async fn before(
        kind: Kind,
        port: Port,
        backends: &[Backend; 2],
        folder: &Path,
        (leaf, authority): (&Leaf, &Path),
        ceiling: u64,
    ) -> Self {
        let files = folder.join("gitdoor");
        fs::create_dir_all(&files).expect("a folder");
        let pem = [leaf.certificate.as_str(), &leaf.key].concat();
        for (name, text) in [("door.crt", &leaf.certificate), ("door.key", &leaf.key), ("door.pem", &pem)] {
            fs::write(files.join(name), text).expect("a file");
        }
        fs::copy(authority, files.join("ca.pem")).expect("a file");
        let mut command = match kind {
            Kind::Worker => programs::workerd(port.address(), backends, ceiling),
            Kind::Nginx => programs::nginx(port.address(), backends, folder).await,
            Kind::Haproxy => programs::haproxy("haproxy.cfg", port.address(), backends, folder).await,
            Kind::Passthrough => programs::haproxy("passthrough.cfg", port.address(), backends, folder).await,
        };
        let mut process = command.spawn().expect("a shim: `tests/run machine` installs it");
        let listens = until("the shim listens", async || TcpStream::connect(port.address()).await.is_ok());
        tokio::select! {
            () = listens => {}
            status = process.wait() => panic!("the shim ended with {status:?}"),
        }
        Self { kind, port, authority: authority.to_owned(), _process: process }
    }

    /// The URL that clients know.
    pub fn url(&self) -> String {
        let scheme = if self.kind.has_tls() { "https" } else { "http" };
        format!("{scheme}://localhost:{}", self.port.address().port())
    }

    /// For requests by hand.
    pub fn door(&self) -> Door {
        if !self.kind.has_tls() {
            return Door::plain(self.port.address());
        }
        Door::tls(self.port.address(), &fs::read_to_string(&self.authority).expect("certificates"))
    }
}
