//! HTTP/1.1 by hand, over TLS or plain: bytes in, bytes out, for what no stock client would send.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::git::Transcript;

/// How long an exchange may take.
const LIMIT: Duration = Duration::from_secs(30);
/// Bytes that are read at a time.
const READ: usize = 64 * 1024;

/// Where a server is and how to speak to it.
#[derive(Clone)]
pub struct Door {
    /// Its address.
    pub address: SocketAddr,
    /// What goes into `Host`.
    pub host: String,
    tls: Option<Arc<ClientConfig>>,
    transcript: Transcript,
}

impl Door {
    /// A server without TLS.
    pub fn plain(address: SocketAddr) -> Self {
        Self {
            address,
            host: format!("localhost:{}", address.port()),
            tls: None,
            transcript: Transcript::default(),
        }
    }

    /// A server with TLS, trusted through this authority.
    pub fn tls(address: SocketAddr, authority: &str) -> Self {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(authority.as_bytes()) {
            roots.add(certificate.expect("a certificate")).expect("an authority");
        }
        let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        Self { tls: Some(Arc::new(config)), ..Self::plain(address) }
    }

    /// Keeps every answer of [`Door::send`] and [`Door::exchange`] here.
    pub fn keeping(mut self, transcript: Transcript) -> Self {
        self.transcript = transcript;
        self
    }

    /// Opens a connection.
    pub async fn connect(&self) -> io::Result<Connection> {
        Ok(Connection { stream: self.open(b"http/1.1").await?, read: Vec::new() })
    }

    /// Opens a connection for this protocol.
    pub(crate) async fn open(&self, protocol: &[u8]) -> io::Result<Box<dyn Stream>> {
        let stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        let Some(config) = &self.tls else { return Ok(Box::new(stream)) };
        let mut config = ClientConfig::clone(config);
        config.alpn_protocols = vec![protocol.to_vec()];
        let name = ServerName::try_from("localhost").expect("a name");
        Ok(Box::new(TlsConnector::from(Arc::new(config)).connect(name, stream).await?))
    }

    /// Sends one request on a connection of its own and reads the answer.
    pub async fn send(&self, request: Request) -> Response {
        self.exchange(&request.to_bytes(&self.host)).await
    }

    /// Sends any bytes on a connection of its own and reads one answer.
    pub async fn exchange(&self, bytes: &[u8]) -> Response {
        let exchange = async { self.connect().await?.exchange(bytes).await };
        match tokio::time::timeout(LIMIT, exchange).await {
            Ok(Ok(response)) => {
                let answered = format!("{:?}\n{}", response.headers, response.text());
                self.transcript.lock().unwrap().push(("an answer".to_owned(), answered.into_bytes()));
                response
            }
            Ok(Err(error)) => panic!("no answer from {}: {error}", self.address),
            Err(_elapsed) => panic!("no answer from {} within {LIMIT:?}", self.address),
        }
    }
}

/// Both directions of a connection.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// An open connection.
pub struct Connection {
    stream: Box<dyn Stream>,
    read: Vec<u8>,
}

impl Connection {
    /// Writes bytes as they are.
    pub async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await?;
        self.stream.flush().await
    }

    /// Reads one whole answer, or as much of it as there is before the connection ends.
    pub async fn response(&mut self) -> io::Result<Response> {
        loop {
            if let Some((response, used)) = Response::parse(&self.read, false) {
                self.read.drain(..used);
                return Ok(response);
            }
            self.read.reserve(READ);
            let read = match self.stream.read_buf(&mut self.read).await {
                // TLS that ends without a good-bye is an end like any other: the framing says whether it was cut.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => 0,
                read => read?,
            };
            if read == 0 {
                let whole = Response::parse(&self.read, true);
                return whole.map(|(response, _)| response).ok_or_else(|| io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// Reads until these bytes were among those read, and leaves all there for an answer.
    pub async fn until(&mut self, bytes: &[u8]) -> io::Result<()> {
        while !self.read.windows(bytes.len()).any(|window| window == bytes) {
            self.more().await?;
        }
        Ok(())
    }

    /// Reads some more bytes; returns how many were read and not yet taken by an answer.
    pub async fn more(&mut self) -> io::Result<usize> {
        if self.stream.read_buf(&mut self.read).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(self.read.len())
    }

    /// What was read and not taken by an answer.
    pub fn read_so_far(&self) -> &[u8] {
        &self.read
    }

    /// Writes and reads at once, so that an early answer is seen; a failed write is no failure.
    pub async fn exchange(self, bytes: &[u8]) -> io::Result<Response> {
        let (reader, mut writer) = tokio::io::split(self.stream);
        let write = async {
            let _peer_may_have_closed = writer.write_all(bytes).await;
            let _peer_may_have_closed = writer.flush().await;
            std::future::pending::<()>().await;
        };
        // The reading half answers alone; nothing more is written through it.
        let mut connection =
            Connection { stream: Box::new(tokio::io::join(reader, tokio::io::sink())), read: self.read };
        tokio::select! {
            response = connection.response() => response,
            () = write => Err(io::ErrorKind::Other.into()),
        }
    }

    /// What has come by now, or what comes next; nothing at the end.
    pub async fn read(&mut self) -> io::Result<Vec<u8>> {
        if self.read.is_empty() {
            self.read.reserve(READ);
            let read = tokio::time::timeout(LIMIT, self.stream.read_buf(&mut self.read)).await;
            read.map_err(|_elapsed| io::Error::from(io::ErrorKind::TimedOut))??;
        }
        Ok(std::mem::take(&mut self.read))
    }

    /// Every byte until the connection ends.
    pub async fn rest(mut self) -> Vec<u8> {
        let mut bytes = std::mem::take(&mut self.read);
        let _end_or_error = self.stream.read_to_end(&mut bytes).await;
        bytes
    }
}

/// A request to be.
#[derive(Clone)]
pub struct Request {
    line: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Request {
    /// `GET`.
    pub fn get(target: &str) -> Self {
        Self::new("GET", target)
    }

    /// `POST`.
    pub fn post(target: &str) -> Self {
        Self::new("POST", target)
    }

    /// Any method.
    pub fn new(method: &str, target: &str) -> Self {
        Self { line: format!("{method} {target} HTTP/1.1"), headers: Vec::new(), body: Vec::new() }
    }

    /// `POST git-receive-pack` with this body.
    pub fn push(repository: &str, body: impl Into<Vec<u8>>) -> Self {
        Self::post(&format!("/{repository}.git/git-receive-pack"))
            .header("Content-Type", "application/x-git-receive-pack-request")
            .header("Accept", "application/x-git-receive-pack-result")
            .body(body)
    }

    /// With a header.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// With a password as git sends it.
    pub fn basic(self, password: &str) -> Self {
        let pair = STANDARD.encode(format!("x-access-token:{password}"));
        self.header("Authorization", &format!("Basic {pair}"))
    }

    /// With a body and its length.
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        let length = self.body.len().to_string();
        self.header("Content-Length", &length)
    }

    /// With a body in these chunks.
    pub fn chunked<'a>(mut self, chunks: impl IntoIterator<Item = &'a [u8]>) -> Self {
        self.body = chunks.into_iter().flat_map(chunk).collect();
        self.body.extend_from_slice(b"0\r\n\r\n");
        self.header("Transfer-Encoding", "chunked")
    }

    /// The bytes to send; with `Host` unless it was set.
    pub fn to_bytes(&self, host: &str) -> Vec<u8> {
        let mut lines = vec![self.line.clone()];
        if !self.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            lines.push(format!("Host: {host}"));
        }
        lines.extend(self.headers.iter().map(|(name, value)| format!("{name}: {value}")));
        let head = format!("{}\r\n\r\n", lines.join("\r\n"));
        [head.as_bytes(), &self.body].concat()
    }
}

/// One chunk of a chunked body.
pub fn chunk(bytes: &[u8]) -> Vec<u8> {
    [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

/// An answer as it came.
#[derive(Debug, Clone)]
pub struct Response {
    /// Its status.
    pub status: u16,
    /// Its headers, in order.
    pub headers: Vec<(String, String)>,
    /// Its body, without the framing.
    pub body: Vec<u8>,
    /// Whether the body ended as its framing said.
    pub complete: bool,
}

impl Response {
    /// The first header of this name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The answer at the beginning of these bytes and its length, once it is there. Interim answers are skipped.
    fn parse(bytes: &[u8], ended: bool) -> Option<(Self, usize)> {
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
        let head = String::from_utf8_lossy(&bytes[..end]);
        let mut lines = head.lines();
        let status: u16 = lines.next()?.split(' ').nth(1)?.parse().ok()?;
        if (100..200).contains(&status) {
            return Self::parse(&bytes[end..], ended).map(|(response, used)| (response, end + used));
        }
        let headers = lines.filter_map(|line| line.split_once(':'));
        let headers = headers.map(|(name, value)| (name.to_owned(), value.trim().to_owned())).collect();
        let mut response = Self { status, headers, body: Vec::new(), complete: true };
        let used = end + response.take_body(&bytes[end..], ended)?;
        Some((response, used))
    }

    fn take_body(&mut self, bytes: &[u8], ended: bool) -> Option<usize> {
        if self.header("transfer-encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("chunked")) {
            return self.take_chunks(bytes, ended);
        }
        let length = self.header("content-length").and_then(|length| length.parse::<usize>().ok());
        let length = if [204, 304].contains(&self.status) { Some(0) } else { length };
        let there = bytes.len().min(length.unwrap_or(usize::MAX));
        if !ended && length != Some(there) {
            return None;
        }
        self.complete = length.is_none_or(|length| length == there);
        self.body = bytes[..there].to_vec();
        Some(there)
    }

    fn take_chunks(&mut self, bytes: &[u8], ended: bool) -> Option<usize> {
        let mut used = 0;
        while let Some((length, data)) = next_chunk(&bytes[used..]) {
            self.body.extend_from_slice(data);
            used += length;
            if data.is_empty() {
                return Some(used);
            }
        }
        self.complete = false;
        ended.then_some(bytes.len())
    }
}

/// The length of the first chunk with its framing, and its data; empty for the last.
fn next_chunk(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let line = bytes.windows(2).position(|window| window == b"\r\n")?;
    let size = std::str::from_utf8(&bytes[..line]).ok()?.split(';').next()?.trim();
    let size = usize::from_str_radix(size, 16).ok()?;
    let data = bytes.get(line + 2..line + 2 + size)?;
    bytes.get(line + 2 + size..line + 4 + size).map(|_end| (line + 4 + size, data))
}
