//! The table of roles in front of the services: no call reaches one that its caller may not make.

use std::future::{Ready, ready};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use futures_util::future::Either;
use gitdoor_proto::reason::printable;
use gitdoor_proto::tls;
use http::{Request, Response};
use rustls_pki_types::CertificateDer;
use tonic::Status;
use tower::{Layer, Service};

use super::{Roles, Side, judge};
use crate::{clock, metrics, status};

/// Most characters of a certificate's subject that are kept.
const SUBJECT: usize = 200;
/// Stands for the roles of a certificate that has ended.
const ENDED: &str = "ended";

/// Who is at the other end of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Peer {
    /// Whoever reaches a listener without TLS: loopback, or a Unix socket.
    Local,
    /// Who showed a certificate, which was verified.
    Certified {
        /// What it may be.
        roles: Roles,
        /// Whose it is; none: it does not say.
        subject: Option<Arc<str>>,
        /// When it ends, which the connection may outlive.
        ends: SystemTime,
    },
}

impl Peer {
    /// Who showed this certificate, which was verified.
    #[must_use]
    pub fn certified(certificate: &CertificateDer<'_>) -> Self {
        // It goes into the ledger and to a terminal.
        let subject = tls::subject(certificate).map(|subject| printable(&subject).chars().take(SUBJECT).collect());
        // One whose end cannot be read has ended.
        let ends = tls::ends(certificate).ok().and_then(|ends| SystemTime::UNIX_EPOCH.checked_add(ends));
        Self::Certified {
            roles: Roles::in_certificate(certificate),
            subject: subject.map(|kept: String| kept.into()),
            ends: ends.unwrap_or(SystemTime::UNIX_EPOCH),
        }
    }

    /// Time until its certificate ends, if it showed one.
    #[must_use]
    pub fn remaining(&self, now: SystemTime) -> Option<Duration> {
        match self {
            Self::Local => None,
            Self::Certified { ends, .. } => Some(ends.duration_since(now).unwrap_or_default()),
        }
    }

    /// Whose certificate it showed, if it did.
    #[must_use]
    pub fn subject(&self) -> Option<&str> {
        match self {
            Self::Local => None,
            Self::Certified { subject, .. } => subject.as_deref(),
        }
    }
}

/// Puts the table in front of a listener's services.
#[derive(Debug, Clone, Copy)]
pub struct ByRole(pub Side);

impl<S> Layer<S> for ByRole {
    type Service = Judged<S>;

    fn layer(&self, inner: S) -> Judged<S> {
        Judged { inner, side: self.0 }
    }
}

/// Services behind the table.
#[derive(Debug, Clone)]
pub struct Judged<S> {
    inner: S,
    side: Side,
}

impl<S, B, R> Service<Request<B>> for Judged<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    R: Default,
{
    type Response = Response<R>;
    type Error = S::Error;
    type Future = Either<Ready<Result<Response<R>, S::Error>>, S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        match admitted(self.side, &request, clock::now()) {
            Ok(()) => Either::Right(self.inner.call(request)),
            Err(status) => Either::Left(ready(Ok(status.into_http()))),
        }
    }
}

fn admitted<B>(side: Side, request: &Request<B>, now: SystemTime) -> Result<(), Box<Status>> {
    let path = request.uri().path();
    let has = match request.extensions().get::<Peer>() {
        Some(Peer::Local) => return Ok(()),
        Some(Peer::Certified { ends, .. }) if *ends <= now => {
            metrics::call_refused(side.as_str(), ENDED);
            tracing::warn!(listener = side.as_str(), role = ENDED, call = status::shown(path), "call refused");
            let words = "the certificate of this connection has ended: connect again with one that has not";
            return Err(Box::new(Status::unauthenticated(words)));
        }
        Some(Peer::Certified { roles, .. }) => *roles,
        // A connection that nobody vouched for.
        None => Roles::default(),
    };
    judge(side, path, has).map_err(|denied| {
        metrics::call_refused(side.as_str(), has.as_str());
        tracing::warn!(listener = side.as_str(), role = has.as_str(), call = status::shown(path), %denied, "call refused");
        Box::new(Status::permission_denied(denied.to_string()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_of_an_unknown_connection_is_refused() {
        let request = Request::get("/gitdoor.v1.Runs/GetRun").body(()).unwrap();
        let status = admitted(Side::Runs, &request, clock::now()).unwrap_err();
        assert_eq!(status.code(), tonic::Code::PermissionDenied);
    }

    #[test]
    fn a_certificate_may_make_its_calls_until_it_ends() {
        let ends = clock::now();
        let peer = Peer::Certified { roles: Side::Runs.roles(), subject: None, ends };
        let mut request = Request::get("/gitdoor.v1.Runs/GetRun").body(()).unwrap();
        request.extensions_mut().insert(peer);
        let second = Duration::from_secs(1);
        assert!(admitted(Side::Runs, &request, ends - second).is_ok());
        let status = admitted(Side::Runs, &request, ends).unwrap_err();
        assert_eq!(status.code(), tonic::Code::Unauthenticated);
        assert!(status.message().contains("has ended"), "{status}");
    }

    #[test]
    fn who_reaches_a_listener_without_tls_may_make_every_call() {
        let mut request = Request::get("/gitdoor.v1.Runs/RegisterRun").body(()).unwrap();
        request.extensions_mut().insert(Peer::Local);
        assert!(admitted(Side::Runs, &request, clock::now()).is_ok());
    }
}
