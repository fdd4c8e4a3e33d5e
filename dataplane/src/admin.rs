//! The admin listener: `/livez`, `/readyz` and `/metrics`.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::time::sleep;

use crate::server::{Listener, Readiness};

/// Time for a prober to send its head.
const HEAD: Duration = Duration::from_secs(5);

/// Serves the admin listener for as long as the process lives.
pub(crate) async fn serve(listener: Listener, readiness: Arc<Readiness>, metrics: PrometheusHandle) {
    loop {
        let Ok(stream) = listener.accept().await else {
            sleep(Duration::from_millis(50)).await;
            continue;
        };
        let (readiness, metrics) = (Arc::clone(&readiness), metrics.clone());
        let service = service_fn(move |request: Request<Incoming>| {
            let response = answer(&request, &readiness, &metrics);
            async move { Ok::<_, Infallible>(response) }
        });
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(HEAD);
        // A prober that goes away is nothing to tell of.
        tokio::spawn(async move { drop(http.serve_connection(TokioIo::new(stream), service).await) });
    }
}

fn answer<B>(request: &Request<B>, readiness: &Readiness, metrics: &PrometheusHandle) -> Response<Full<Bytes>> {
    let (status, body) = match (request.method(), request.uri().path()) {
        (&Method::GET | &Method::HEAD, "/livez") => (StatusCode::OK, "alive\n".to_owned()),
        (&Method::GET | &Method::HEAD, "/readyz") if readiness.is_ready() => (StatusCode::OK, "ready\n".to_owned()),
        (&Method::GET | &Method::HEAD, "/readyz") => {
            (StatusCode::SERVICE_UNAVAILABLE, "no contact with control yet, or draining\n".to_owned())
        }
        (&Method::GET, "/metrics") => (StatusCode::OK, metrics.render()),
        _ => (StatusCode::NOT_FOUND, "GET /livez, /readyz or /metrics\n".to_owned()),
    };
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8"));
    response
}
