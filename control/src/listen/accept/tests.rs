//! Connections over real sockets, with bounds that are soon reached.

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_stream::StreamExt as _;

use super::*;
use crate::config::Listen;
use crate::listen;

/// Far longer than anything here takes.
const HANGS: Duration = Duration::from_mins(1);
const FEW: Bounds = Bounds { handshakes: 2, connections: 2, silence: HANGS };

async fn listening(bounds: Bounds) -> (ReceiverStream<io::Result<Connection>>, String) {
    let listener = listen::bind(Side::Runs, &"127.0.0.1:0".parse().unwrap(), None).await.unwrap();
    let Listen::Tcp(address) = listener.address().unwrap() else { panic!() };
    (accept_within(bounds, Side::Runs, listener, None), address.to_string())
}

#[tokio::test]
async fn a_connection_too_many_is_closed_until_another_ends() {
    let (mut connections, address) = listening(FEW).await;
    let one = TcpStream::connect(&address).await.unwrap();
    let first = connections.next().await.unwrap().unwrap();
    let two = TcpStream::connect(&address).await.unwrap();
    let second = connections.next().await.unwrap().unwrap();
    let mut third = TcpStream::connect(&address).await.unwrap();
    let closed = timeout(HANGS, third.read(&mut [0; 1])).await.expect("it is closed at once");
    assert_eq!(closed.unwrap_or(0), 0);
    drop(first);
    let _fourth = TcpStream::connect(&address).await.unwrap();
    let served = timeout(HANGS, connections.next()).await.expect("there is place again");
    served.unwrap().unwrap();
    drop((one, two, second));
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_does_not_begin_http_2_is_cut_and_one_that_did_may_be_silent() {
    let silence = Duration::from_secs(5);
    let (mut connections, address) = listening(Bounds { silence, ..FEW }).await;
    let mut slow = TcpStream::connect(&address).await.unwrap();
    slow.write_all(b"PRI").await.unwrap();
    let mut begun = connections.next().await.unwrap().unwrap();
    let mut read = [0; 3];
    begun.read_exact(&mut read).await.unwrap();
    let cut = timeout(HANGS, begun.read(&mut read)).await.expect("it is not waited for").unwrap_err();
    assert_eq!(cut.kind(), io::ErrorKind::TimedOut);
    drop(begun);

    let mut quick = TcpStream::connect(&address).await.unwrap();
    quick.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
    let mut begun = connections.next().await.unwrap().unwrap();
    begun.read_exact(&mut [0; 24]).await.unwrap();
    assert!(timeout(HANGS, begun.read(&mut read)).await.is_err(), "it waits for more");
}
