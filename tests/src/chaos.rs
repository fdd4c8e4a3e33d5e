//! A wire between two parts that can be cut without a word, mended, or broken; and a balancer in front of several.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

/// Bytes that are carried at once.
const PIECE: usize = 16 * 1024;

/// Where a part listens.
#[derive(Debug, Clone)]
pub enum Place {
    /// `IP:PORT`.
    Tcp(String),
    /// A Unix socket.
    Unix(PathBuf),
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tcp(address) => f.write_str(address),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// A wire. It carries from the start.
pub struct Link {
    place: Place,
    wire: Arc<watch::Sender<Wire>>,
    _accept: AbortOnDropHandle<()>,
}

/// How a wire is. A connection of an earlier generation is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Wire {
    carries: bool,
    generation: u64,
}

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Link {
    /// A wire to a part, whose near end listens on a port of its own.
    pub async fn tcp(to: Place) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let place = Place::Tcp(listener.local_addr().expect("its address").to_string());
        Self::start(place, Listener::Tcp(listener), to)
    }

    /// A wire to a part, whose near end is this socket.
    pub fn unix(near: PathBuf, to: Place) -> Self {
        let listener = UnixListener::bind(&near).expect("a socket");
        Self::start(Place::Unix(near), Listener::Unix(listener), to)
    }

    fn start(place: Place, listener: Listener, to: Place) -> Self {
        let wire = Arc::new(watch::channel(Wire { carries: true, generation: 0 }).0);
        let accept = tokio::spawn(accept(listener, to, Arc::clone(&wire)));
        Self { place, wire, _accept: AbortOnDropHandle::new(accept) }
    }

    /// Where its near end listens.
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Carries nothing more, in either direction: what is sent is neither delivered nor refused. Connections stay,
    /// and new ones are taken.
    pub fn cut(&self) {
        self.wire.send_modify(|wire| wire.carries = false);
    }

    /// Carries again, what waited first.
    pub fn mend(&self) {
        self.wire.send_modify(|wire| wire.carries = true);
    }

    /// Breaks every connection; new ones are carried as before.
    pub fn break_connections(&self) {
        self.wire.send_modify(|wire| wire.generation += 1);
    }
}

async fn accept(listener: Listener, to: Place, wire: Arc<watch::Sender<Wire>>) {
    loop {
        let near: Box<dyn Stream> = match &listener {
            Listener::Tcp(listener) => Box::new(listener.accept().await.expect("a connection").0),
            Listener::Unix(listener) => Box::new(listener.accept().await.expect("a connection").0),
        };
        tokio::spawn(connection(near, to.clone(), wire.subscribe()));
    }
}

async fn connection(near: Box<dyn Stream>, to: Place, mut wire: watch::Receiver<Wire>) {
    let generation = wire.borrow().generation;
    let carried = carry(near, to, wire.clone());
    tokio::select! {
        () = carried => {}
        _ = wire.wait_for(|wire| wire.generation != generation) => {}
    }
}

async fn carry(near: Box<dyn Stream>, to: Place, wire: watch::Receiver<Wire>) {
    // A far end that is gone is a near end that is closed.
    let Some(far) = connect(&to).await else { return };
    let ((near_in, near_out), (far_in, far_out)) = (tokio::io::split(near), tokio::io::split(far));
    tokio::join!(pump(near_in, far_out, wire.clone()), pump(far_in, near_out, wire));
}

async fn connect(to: &Place) -> Option<Box<dyn Stream>> {
    match to {
        Place::Tcp(address) => Some(Box::new(TcpStream::connect(address).await.ok()?)),
        Place::Unix(path) => Some(Box::new(UnixStream::connect(path).await.ok()?)),
    }
}

async fn pump(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin, mut wire: watch::Receiver<Wire>) {
    let mut piece = vec![0; PIECE];
    loop {
        let read = from.read(&mut piece).await.unwrap_or(0);
        if wire.wait_for(|wire| wire.carries).await.is_err() {
            return;
        }
        if read == 0 || to.write_all(&piece[..read]).await.is_err() {
            break;
        }
    }
    let _closed_already = to.shutdown().await;
}

/// A balancer of connections in front of several servers: each goes to the next that takes it.
pub struct Balancer {
    port: u16,
    servers: Arc<watch::Sender<Vec<SocketAddr>>>,
    _accept: AbortOnDropHandle<()>,
}

impl Balancer {
    /// One with no servers yet.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("its address").port();
        let servers = Arc::new(watch::channel(Vec::new()).0);
        let accept = tokio::spawn(balance(listener, servers.subscribe()));
        Self { port, servers, _accept: AbortOnDropHandle::new(accept) }
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// From now on it leads to these.
    pub fn lead_to(&self, servers: Vec<SocketAddr>) {
        self.servers.send_replace(servers);
    }
}

async fn balance(listener: TcpListener, servers: watch::Receiver<Vec<SocketAddr>>) {
    for turn in 0.. {
        let (mut near, _) = listener.accept().await.expect("a connection");
        let mut servers = servers.borrow().clone();
        tokio::spawn(async move {
            let first = turn % servers.len().max(1);
            servers.rotate_left(first);
            for server in servers {
                if let Ok(mut far) = TcpStream::connect(server).await {
                    let _either_left = tokio::io::copy_bidirectional(&mut near, &mut far).await;
                    return;
                }
            }
        });
    }
}
