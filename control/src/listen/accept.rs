//! Connections as the services get them: accepted, by TLS where the listener has it, and with who is at their other end.
//!
//! Handshakes run side by side, so many at once, each within a time: a stranger can hold up nobody but strangers.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use rustls::{CertificateError, Error, InvalidMessage};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::either::Either;
use tonic::transport::server::Connected;

use super::Listener;
use super::tls::Identities;
use crate::metrics;
use crate::trust::Side;
use crate::trust::layer::Peer;

/// Handshakes at once; more connections wait in the system's queue.
const HANDSHAKES: usize = 256;
/// Time for a handshake: three flights of a few kilobytes.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// Time and bytes that a refused client has to read why.
const PARTING: Duration = Duration::from_secs(1);
const PARTING_BYTES: u64 = 64 << 10;
/// When accepting fails the process is out of descriptors: others must end first.
const BREATH: Duration = Duration::from_millis(50);
/// Accepted connections that wait to be served.
const QUEUE: usize = 16;

type Stream = Either<Box<TlsStream<TcpStream>>, Either<TcpStream, UnixStream>>;

/// A connection, and who is at its other end.
pub struct Connection {
    stream: Stream,
    peer: Peer,
}

/// Accepts for as long as the stream is held.
pub fn accept(side: Side, listener: Listener, tls: Option<Identities>) -> ReceiverStream<io::Result<Connection>> {
    let (accepted, connections) = mpsc::channel(QUEUE);
    tokio::spawn(async move {
        let gone = accepted.clone();
        tokio::select! {
            () = run(side, listener, tls, accepted) => {}
            () = gone.closed() => {}
        }
    });
    ReceiverStream::new(connections)
}

type Accepted = mpsc::Sender<io::Result<Connection>>;

async fn run(side: Side, listener: Listener, tls: Option<Identities>, accepted: Accepted) {
    match (listener, tls) {
        (Listener::Tcp(listener), None) => loop {
            if let Some(stream) = tcp(&listener).await {
                let stream = Either::Right(Either::Left(stream));
                drop(accepted.send(Ok(Connection { stream, peer: Peer::Local })).await);
            }
        },
        (Listener::Tcp(listener), Some(tls)) => secure(side, &listener, &tls, accepted).await,
        (Listener::Unix(listener, _file), _) => loop {
            if let Some(stream) = unix(&listener).await {
                let stream = Either::Right(Either::Right(stream));
                drop(accepted.send(Ok(Connection { stream, peer: Peer::Local })).await);
            }
        },
    }
}

async fn secure(side: Side, listener: &TcpListener, tls: &Identities, accepted: Accepted) {
    let places = Arc::new(Semaphore::new(HANDSHAKES));
    let mut handshakes = JoinSet::new();
    loop {
        while handshakes.try_join_next().is_some() {}
        // Closed by nobody.
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        let Some(stream) = tcp(listener).await else { continue };
        let (acceptor, accepted) = (TlsAcceptor::from(Arc::clone(&tls.current().config)), accepted.clone());
        handshakes.spawn(async move {
            match handshake(&acceptor, stream).await {
                Ok(connection) => {
                    drop(place);
                    drop(accepted.send(Ok(connection)).await);
                }
                Err(refused) => {
                    metrics::handshake_refused(side.as_str(), refused.kind.as_str());
                    let (listener, kind) = (side.as_str(), refused.kind.as_str());
                    tracing::warn!(listener, kind, peer = refused.peer, "TLS handshake refused");
                }
            }
        });
    }
}

async fn tcp(listener: &TcpListener) -> Option<TcpStream> {
    taken(listener.accept().await.and_then(|(stream, _)| stream.set_nodelay(true).map(|()| stream))).await
}

async fn unix(listener: &UnixListener) -> Option<UnixStream> {
    taken(listener.accept().await.map(|(stream, _)| stream)).await
}

async fn taken<T>(accepted: io::Result<T>) -> Option<T> {
    match accepted {
        Ok(stream) => Some(stream),
        Err(error) => {
            tracing::warn!(%error, "cannot accept");
            tokio::time::sleep(BREATH).await;
            None
        }
    }
}

struct Refused {
    kind: Kind,
    peer: String,
}

async fn handshake(acceptor: &TlsAcceptor, stream: TcpStream) -> Result<Connection, Refused> {
    let peer = stream.peer_addr().map(|address| address.to_string()).unwrap_or_default();
    let refused = |kind| Refused { kind, peer: peer.clone() };
    let stream = match timeout(HANDSHAKE, acceptor.accept(stream).into_fallible()).await {
        Ok(Ok(stream)) => stream,
        Ok(Err((error, stream))) => {
            part(stream).await;
            return Err(refused(Kind::of(&error)));
        }
        Err(_elapsed) => return Err(refused(Kind::Timeout)),
    };
    let (_, session) = stream.get_ref();
    if session.alpn_protocol().is_none() {
        return Err(refused(Kind::Protocol));
    }
    let certificate = session.peer_certificates().and_then(<[_]>::first);
    let peer = certificate.map(Peer::certified).ok_or_else(|| refused(Kind::NoCertificate))?;
    Ok(Connection { stream: Either::Left(Box::new(stream)), peer })
}

/// Closes so that the alert arrives: what a client has sent by then and nobody read would reset the connection.
async fn part(mut stream: TcpStream) {
    let parting = async {
        stream.shutdown().await?;
        tokio::io::copy(&mut stream.take(PARTING_BYTES), &mut tokio::io::sink()).await
    };
    drop(timeout(PARTING, parting).await);
}

/// Why a handshake was refused: a label of metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    NoCertificate,
    Untrusted,
    Expired,
    Purpose,
    Certificate,
    PlainText,
    Protocol,
    Alert,
    Broken,
    Timeout,
}

impl Kind {
    const fn as_str(self) -> &'static str {
        match self {
            Self::NoCertificate => "no-certificate",
            Self::Untrusted => "untrusted",
            Self::Expired => "expired",
            Self::Purpose => "purpose",
            Self::Certificate => "certificate",
            Self::PlainText => "plain-text",
            Self::Protocol => "protocol",
            Self::Alert => "alert",
            Self::Broken => "broken",
            Self::Timeout => "timeout",
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "the TLS library may add errors; all of them refuse")]
    fn of(error: &io::Error) -> Self {
        let Some(error) = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) else {
            return Self::Broken;
        };
        match error {
            Error::NoCertificatesPresented => Self::NoCertificate,
            Error::InvalidCertificate(error) => Self::of_certificate(error),
            Error::InvalidMessage(InvalidMessage::InvalidContentType) => Self::PlainText,
            Error::PeerIncompatible(_) | Error::NoApplicationProtocol => Self::Protocol,
            Error::AlertReceived(_) => Self::Alert,
            _ => Self::Broken,
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "the TLS library may add errors; all of them refuse")]
    const fn of_certificate(error: &CertificateError) -> Self {
        match error {
            CertificateError::UnknownIssuer | CertificateError::BadSignature => Self::Untrusted,
            CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. } => Self::Expired,
            CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => Self::Purpose,
            _ => Self::Certificate,
        }
    }
}

impl Connected for Connection {
    type ConnectInfo = Peer;

    fn connect_info(&self) -> Peer {
        self.peer.clone()
    }
}

impl AsyncRead for Connection {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bytes)
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
