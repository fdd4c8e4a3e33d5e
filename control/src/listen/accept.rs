//! Connections as the services get them: accepted, by TLS where the listener has it, and with who is at their other end.
//!
//! Every connection is accepted at once. Handshakes run side by side, each within a time and so many at once; one more
//! ends the oldest, so that a stranger can hold up nobody but strangers. Who was let in has a place among so many.

mod connection;
mod handshake;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::either::Either;
use tokio_util::sync::CancellationToken;

use self::connection::Stream;
use self::handshake::{Kind, handshake, part};
use super::Listener;
use super::tls::Identities;
use crate::limit::{self, Limit};
use crate::metrics;
use crate::trust::Side;
use crate::trust::layer::Peer;

pub use self::connection::Connection;

/// When accepting fails the process is out of descriptors: others must end first.
const BREATH: Duration = Duration::from_millis(50);
/// Accepted connections that wait to be served.
const QUEUE: usize = 16;

/// What a listener takes.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    /// Handshakes at once.
    handshakes: usize,
    /// Connections at once that are past theirs.
    connections: usize,
    /// Time for HTTP/2 to begin.
    silence: Duration,
}

const BOUNDS: Bounds =
    Bounds { handshakes: limit::HANDSHAKES, connections: limit::CONNECTIONS, silence: limit::SILENCE };

/// Accepts for as long as the stream is held.
pub fn accept(side: Side, listener: Listener, tls: Option<Identities>) -> ReceiverStream<io::Result<Connection>> {
    accept_within(BOUNDS, side, listener, tls)
}

fn accept_within(
    bounds: Bounds,
    side: Side,
    listener: Listener,
    tls: Option<Identities>,
) -> ReceiverStream<io::Result<Connection>> {
    let (accepted, connections) = mpsc::channel(QUEUE);
    tokio::spawn(async move {
        let gone = accepted.clone();
        let door = Door { side, bounds, places: Arc::new(Semaphore::new(bounds.connections)), accepted };
        tokio::select! {
            () = run(&door, listener, tls) => {}
            () = gone.closed() => {}
        }
    });
    ReceiverStream::new(connections)
}

/// Where connections go in.
#[derive(Clone)]
struct Door {
    side: Side,
    bounds: Bounds,
    places: Arc<Semaphore>,
    accepted: mpsc::Sender<io::Result<Connection>>,
}

impl Door {
    /// Lets a connection in, if there is a place; else it is closed.
    async fn enter(&self, stream: Stream, peer: Peer) {
        let listener = self.side.as_str();
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
            metrics::limited(listener, Limit::Connections);
            tracing::warn!(listener, "a connection was closed: there are as many as this listener takes");
            return;
        };
        let connection = Connection::new(self.side, (stream, peer), place, self.bounds.silence);
        // Nobody is left to serve it once control has drained.
        drop(self.accepted.send(Ok(connection)).await);
    }
}

async fn run(door: &Door, listener: Listener, tls: Option<Identities>) {
    match (listener, tls) {
        (Listener::Tcp(listener), None) => loop {
            if let Some(stream) = tcp(&listener).await {
                door.enter(Either::Right(Either::Left(stream)), Peer::Local).await;
            }
        },
        (Listener::Tcp(listener), Some(tls)) => secure(door, &listener, &tls).await,
        (Listener::Unix(listener, _file), _) => loop {
            if let Some(stream) = unix(&listener).await {
                door.enter(Either::Right(Either::Right(stream)), Peer::Local).await;
            }
        },
        (Listener::Own(listener, _file), _) => loop {
            match unix(&listener).await {
                Some(stream) if is_own(&stream) => {
                    door.enter(Either::Right(Either::Right(stream)), Peer::Local).await;
                }
                Some(_strangers) => tracing::warn!("a connection of another process was turned away"),
                None => {}
            }
        },
    }
}

/// Whether this very process is at the other end: the kernel says who connected.
fn is_own(stream: &UnixStream) -> bool {
    let peer = stream.peer_cred().ok().and_then(|peer| peer.pid());
    peer.is_some_and(|pid| u32::try_from(pid) == Ok(std::process::id()))
}

async fn secure(door: &Door, listener: &TcpListener, tls: &Identities) {
    let mut handshakes = JoinSet::new();
    // Those under way, the oldest first.
    let mut open = BTreeMap::<u64, CancellationToken>::new();
    for number in 0_u64.. {
        let stream = loop {
            if let Some(stream) = tcp(listener).await {
                break stream;
            }
        };
        while let Some(ended) = handshakes.try_join_next() {
            // One that panicked makes way when it is the oldest.
            ended.ok().and_then(|number| open.remove(&number));
        }
        if open.len() >= door.bounds.handshakes
            && let Some((_, oldest)) = open.pop_first()
        {
            oldest.cancel();
        }
        let crowded = CancellationToken::new();
        open.insert(number, crowded.clone());
        let (acceptor, door) = (TlsAcceptor::from(Arc::clone(&tls.current().config)), door.clone());
        handshakes.spawn(async move {
            greet(&door, &acceptor, stream, &crowded).await;
            number
        });
    }
}

/// A handshake, which makes way once it is the oldest of too many.
async fn greet(door: &Door, acceptor: &TlsAcceptor, stream: TcpStream, crowded: &CancellationToken) {
    let peer = stream.peer_addr().map(|address| address.to_string()).unwrap_or_default();
    let done = tokio::select! {
        done = handshake(acceptor, stream) => done,
        () = crowded.cancelled() => Err(Kind::Crowded.into()),
    };
    match done {
        Ok((stream, peer)) => door.enter(Either::Left(stream), peer).await,
        Err(refused) => {
            let (listener, kind) = (door.side.as_str(), refused.kind.as_str());
            metrics::handshake_refused(listener, kind);
            tracing::warn!(listener, kind, peer, "TLS handshake refused");
            if let Some(stream) = refused.stream {
                tokio::select! {
                    () = part(stream) => {}
                    () = crowded.cancelled() => {}
                }
            }
        }
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
