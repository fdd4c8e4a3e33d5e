//! A handshake: within a time, and why it was refused.

use std::io;
use std::time::Duration;

use rustls::{CertificateError, Error, InvalidMessage};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::trust::layer::Peer;

/// Time for a handshake: three flights of a few kilobytes.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// Time and bytes that a refused client has to read why.
const PARTING: Duration = Duration::from_secs(1);
const PARTING_BYTES: u64 = 64 << 10;

/// Why a client was not let in, and what is left of its connection to tell it by.
pub(super) struct Refused {
    pub(super) kind: Kind,
    pub(super) stream: Option<TcpStream>,
}

impl From<Kind> for Refused {
    fn from(kind: Kind) -> Self {
        Self { kind, stream: None }
    }
}

pub(super) async fn handshake(
    acceptor: &TlsAcceptor,
    stream: TcpStream,
) -> Result<(Box<TlsStream<TcpStream>>, Peer), Refused> {
    let stream = match timeout(HANDSHAKE, acceptor.accept(stream).into_fallible()).await {
        Ok(Ok(stream)) => stream,
        Ok(Err((error, stream))) => return Err(Refused { kind: Kind::of(&error), stream: Some(stream) }),
        Err(_elapsed) => return Err(Kind::Timeout.into()),
    };
    let (_, session) = stream.get_ref();
    if session.alpn_protocol().is_none() {
        return Err(Kind::Protocol.into());
    }
    let certificate = session.peer_certificates().and_then(<[_]>::first);
    let peer = certificate.map(Peer::certified).ok_or(Kind::NoCertificate)?;
    Ok((Box::new(stream), peer))
}

/// Closes so that the alert arrives: what a client has sent by then and nobody read would reset the connection.
pub(super) async fn part(mut stream: TcpStream) {
    let parting = async {
        stream.shutdown().await?;
        tokio::io::copy(&mut stream.take(PARTING_BYTES), &mut tokio::io::sink()).await
    };
    drop(timeout(PARTING, parting).await);
}

/// Why a handshake was refused: a label of metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
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
    Crowded,
}

impl Kind {
    pub(super) const fn as_str(self) -> &'static str {
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
            Self::Crowded => "crowded",
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
