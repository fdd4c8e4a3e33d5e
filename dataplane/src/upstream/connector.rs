//! Connections of the pool: TCP and TLS together within one time limit, since a forge that accepts and does not greet is
//! no more there than one that does not accept.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::HttpConnector;
use tokio::time::timeout;
use tower::Service;

use super::UpstreamError;

type Https = HttpsConnector<HttpConnector>;

/// Connects, or gives up in time.
#[derive(Clone)]
pub(super) struct Connector {
    https: Https,
    limit: Duration,
}

impl Connector {
    pub(super) fn new(https: Https, limit: Duration) -> Self {
        Self { https, limit }
    }
}

impl Service<Uri> for Connector {
    type Response = <Https as Service<Uri>>::Response;
    type Error = UpstreamError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, UpstreamError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), UpstreamError>> {
        self.https.poll_ready(cx).map_err(|_not_ready| UpstreamError::Connect)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connected = timeout(self.limit, self.https.call(uri));
        Box::pin(async move {
            match connected.await {
                Ok(Ok(stream)) => Ok(stream),
                Ok(Err(_)) | Err(_) => Err(UpstreamError::Connect),
            }
        })
    }
}
