//! Sockets to listen on, and the socket of a client, which may not stall for ever.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use socket2::{Domain, Protocol, SockAddr, SockRef, Type};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::time::{Sleep, sleep};

use crate::config::Listen;
use crate::origin::PeerAddress;
use crate::upstream::SOCKET_BUFFER;

/// Connections that wait to be accepted.
const BACKLOG: i32 = 1024;
/// Bytes that may wait unsent in the kernel before a socket stops being writable: a stalled client then holds what
/// the program may know of.
const NOTSENT: u32 = 128 * 1024;

/// The sockets of one listener, one for each runtime.
pub(super) struct Sockets {
    each: Vec<Socket>,
    /// Where they listen, as the ready line says it.
    pub(super) address: String,
    /// The TCP port.
    pub(super) port: Option<u16>,
}

/// The file of a Unix socket, removed when the process has drained.
pub(super) struct SocketFile(Option<PathBuf>);

impl Drop for SocketFile {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            // Gone already, or not ours to remove: either way there is nothing to be done.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// A bound socket that no runtime has yet.
pub(super) enum Socket {
    Tcp(std::net::TcpListener),
    Unix(std::os::unix::net::UnixListener),
}

impl Sockets {
    pub(super) fn bind(listen: &Listen, count: usize) -> io::Result<Self> {
        match listen {
            Listen::Tcp(address) => Self::tcp(*address, count),
            Listen::Unix(path) => Self::unix(path, count),
        }
    }

    fn tcp(address: SocketAddr, count: usize) -> io::Result<Self> {
        // A socket with SO_REUSEPORT binds beside another process's with it; one without does not.
        let address = tcp_socket(address, false)?.local_addr()?.as_socket().unwrap_or(address);
        let mut each = Vec::with_capacity(count);
        for _ in 0..count {
            let socket = tcp_socket(address, true)?;
            socket.listen(BACKLOG)?;
            socket.set_nonblocking(true)?;
            each.push(Socket::Tcp(socket.into()));
        }
        Ok(Self { each, address: address.to_string(), port: Some(address.port()) })
    }

    fn unix(path: &Path, count: usize) -> io::Result<Self> {
        let listener = match std::os::unix::net::UnixListener::bind(path) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && is_abandoned(path) => {
                std::fs::remove_file(path)?;
                std::os::unix::net::UnixListener::bind(path)?
            }
            other => other?,
        };
        listener.set_nonblocking(true)?;
        let mut each = Vec::with_capacity(count);
        for _ in 0..count {
            each.push(Socket::Unix(listener.try_clone()?));
        }
        Ok(Self { each, address: format!("unix:{}", path.display()), port: None })
    }
}

impl Sockets {
    /// What is to be removed at the end.
    pub(super) fn file(&self) -> SocketFile {
        SocketFile(self.address.strip_prefix("unix:").map(PathBuf::from))
    }
}

impl IntoIterator for Sockets {
    type Item = Socket;
    type IntoIter = std::vec::IntoIter<Socket>;

    fn into_iter(self) -> Self::IntoIter {
        self.each.into_iter()
    }
}

/// Whether a socket file's listener is gone.
fn is_abandoned(path: &Path) -> bool {
    // A connection to any other file is refused too, and that file is somebody's.
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
    let refused = |error: &io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
    is_socket && std::os::unix::net::UnixStream::connect(path).is_err_and(|error| refused(&error))
}

fn tcp_socket(address: SocketAddr, shared: bool) -> io::Result<socket2::Socket> {
    let socket = socket2::Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(shared)?;
    // Accepted connections inherit these.
    socket.set_send_buffer_size(SOCKET_BUFFER)?;
    socket.set_recv_buffer_size(SOCKET_BUFFER)?;
    socket.bind(&SockAddr::from(address))?;
    Ok(socket)
}

impl Socket {
    /// Gives the socket to the runtime that this is called on.
    pub(super) fn listener(self) -> io::Result<Listener> {
        match self {
            Self::Tcp(listener) => TcpListener::from_std(listener).map(Listener::Tcp),
            Self::Unix(listener) => UnixListener::from_std(listener).map(Listener::Unix),
        }
    }
}

/// A listener of one runtime.
pub(crate) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Listener {
    /// Accepts a connection.
    pub(crate) async fn accept(&self) -> io::Result<Stream> {
        match self {
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                stream.set_nodelay(true)?;
                SockRef::from(&stream).set_tcp_notsent_lowat(NOTSENT)?;
                Ok(Stream::Tcp(stream))
            }
            Self::Unix(listener) => Ok(Stream::Unix(listener.accept().await?.0)),
        }
    }
}

/// A client's connection.
pub(crate) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    /// Where it comes from.
    pub(super) fn peer(&self) -> PeerAddress {
        match self {
            Self::Tcp(stream) => stream.peer_addr().map_or(PeerAddress::Gone, PeerAddress::from),
            Self::Unix(_) => PeerAddress::Unix,
        }
    }
}

/// A client's connection that is given up when it takes nothing for too long: otherwise a client that stopped reading
/// would hold its stream, and the forge's, for ever.
pub(super) struct Patient {
    stream: Stream,
    patience: Duration,
    waiting: Option<Pin<Box<Sleep>>>,
}

impl Patient {
    pub(super) fn new(stream: Stream, patience: Duration) -> Self {
        Self { stream, patience, waiting: None }
    }

    fn wait<T>(&mut self, cx: &mut Context<'_>, progress: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if progress.is_ready() {
            self.waiting = None;
            return progress;
        }
        let patience = self.patience;
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(sleep(patience)));
        ready!(waiting.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Patient {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Patient {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let progress = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.wait(cx, progress)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let progress = Pin::new(&mut self.stream).poll_write_vectored(cx, bytes);
        self.wait(cx, progress)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_read(cx, buf),
            Self::Unix(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Unix(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write_vectored(cx, bytes),
            Self::Unix(stream) => Pin::new(stream).poll_write_vectored(cx, bytes),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Tcp(stream) => stream.is_write_vectored(),
            Self::Unix(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_flush(cx),
            Self::Unix(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
