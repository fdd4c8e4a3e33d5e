//! The connection of one push. It is never pooled: its body is the attacker's, and an upstream that misread its end
//! would give one run's bytes to another's request.

use std::sync::Arc;
use std::time::Duration;

use http::uri::Scheme;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls_pki_types::ServerName;
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::socket::{Lease, LeasedSocket};
use super::{BUFFER, Config, SOCKET_BUFFER, UpstreamError, cause};
use crate::body::Outbound;

/// A connection for one request. Dropped, it is cut.
pub struct PushConnection {
    sender: http1::SendRequest<Outbound>,
    driver: JoinHandle<()>,
}

impl PushConnection {
    pub(super) async fn open(config: &Config, lease: Arc<Lease>) -> Result<Self, UpstreamError> {
        let host = config.authority.host();
        let default = if config.scheme == Scheme::HTTP { 80 } else { 443 };
        let port = config.authority.port_u16().unwrap_or(default);
        let stream = dial(host.trim_matches(['[', ']']), port, config.connect_timeout)
            .await
            .ok_or(UpstreamError::Connect)?;
        let socket = LeasedSocket::new(stream, lease);
        if config.scheme == Scheme::HTTP {
            return Self::over(socket).await;
        }
        let name = ServerName::try_from(host.trim_matches(['[', ']']).to_owned());
        let name = name.map_err(|_not_a_name| UpstreamError::Connect)?;
        let tls = TlsConnector::from(Arc::clone(&config.tls)).connect(name, socket).await;
        match tls {
            Ok(stream) => Self::over(stream).await,
            Err(error) => {
                tracing::warn!(cause = cause(&error), "the forge cannot be reached");
                Err(UpstreamError::Connect)
            }
        }
    }

    async fn over(io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> Result<Self, UpstreamError> {
        let handshake = http1::Builder::new().max_buf_size(BUFFER).handshake(TokioIo::new(io)).await;
        let (sender, connection) = handshake.map_err(|_closed| UpstreamError::Connect)?;
        // What breaks the connection breaks the request or the body too, and is told there.
        let driver = tokio::spawn(async move { drop(connection.await) });
        Ok(Self { sender, driver })
    }

    /// Sends the push and waits for the head of the answer, however long that takes.
    pub async fn send(&mut self, request: Request<Outbound>) -> Result<Response<Incoming>, UpstreamError> {
        self.sender.send_request(request).await.map_err(|_broken| UpstreamError::Cut)
    }
}

impl Drop for PushConnection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// Connects to the first address that answers; one that does not gets its share of the time and no more.
async fn dial(host: &str, port: u16, most: Duration) -> Option<TcpStream> {
    let addresses: Vec<_> = lookup_host((host, port)).await.ok()?.collect();
    let share = most / u32::try_from(addresses.len()).unwrap_or(u32::MAX).max(1);
    for address in addresses {
        if let Ok(Ok(stream)) = timeout(share, TcpStream::connect(address)).await {
            let socket = SockRef::from(&stream);
            // A connection with other buffers still works; the figures of a stalled one are then others.
            let _ = socket.set_send_buffer_size(SOCKET_BUFFER);
            let _ = socket.set_recv_buffer_size(SOCKET_BUFFER);
            let _ = stream.set_nodelay(true);
            return Some(stream);
        }
    }
    None
}
