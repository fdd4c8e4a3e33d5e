//! The admin listener: `/livez`, `/readyz`, `/metrics`. Nothing on it is a secret.

use std::convert::Infallible;
use std::time::Duration;

use http::{Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// A client that sends no request head in this time is cut.
const HEAD: Duration = Duration::from_secs(10);
/// Connections at once: a few probes and scrapers.
const CONNECTIONS: usize = 64;
/// When accepting fails the process is out of descriptors: others must end first.
const BREATH: Duration = Duration::from_millis(100);

/// Serves until `over`; not ready once `drain` is cancelled.
pub async fn serve(
    listener: TcpListener,
    metrics: PrometheusHandle,
    drain: CancellationToken,
    over: CancellationToken,
) {
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = connections.join_next() => continue,
            () = over.cancelled() => return,
        };
        match accepted {
            Ok((stream, _)) if connections.len() < CONNECTIONS => {
                connections.spawn(connection(stream, metrics.clone(), drain.clone()));
            }
            // Closed at once: too many.
            Ok(_) => {}
            Err(_) => tokio::time::sleep(BREATH).await,
        }
    }
}

async fn connection(stream: TcpStream, metrics: PrometheusHandle, drain: CancellationToken) {
    let answer = service_fn(move |request: Request<Incoming>| {
        let answer = answer(request.method(), request.uri().path(), &metrics, drain.is_cancelled());
        async move { Ok::<_, Infallible>(answer) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .serve_connection(TokioIo::new(stream), answer)
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "an admin connection broke");
    }
}

fn answer(method: &Method, path: &str, metrics: &PrometheusHandle, draining: bool) -> Response<Full<Bytes>> {
    let (status, body) = match (method, path) {
        (&Method::GET | &Method::HEAD, "/livez") => (StatusCode::OK, "live\n".to_owned()),
        (&Method::GET | &Method::HEAD, "/readyz") if draining => {
            (StatusCode::SERVICE_UNAVAILABLE, "draining\n".to_owned())
        }
        (&Method::GET | &Method::HEAD, "/readyz") => (StatusCode::OK, "ready\n".to_owned()),
        (&Method::GET | &Method::HEAD, "/metrics") => (StatusCode::OK, metrics.render()),
        (_, "/livez" | "/readyz" | "/metrics") => {
            (StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD\n".to_owned())
        }
        (_, _) => (StatusCode::NOT_FOUND, "/livez, /readyz or /metrics\n".to_owned()),
    };
    let mut response = Response::new(Full::from(body));
    *response.status_mut() = status;
    let text = http::HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, text);
    if status == StatusCode::METHOD_NOT_ALLOWED {
        response.headers_mut().insert(header::ALLOW, http::HeaderValue::from_static("GET, HEAD"));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use metrics_exporter_prometheus::PrometheusBuilder;

    #[test]
    fn each_path_says_what_it_is_for() {
        let handle = PrometheusBuilder::new().build_recorder().handle();
        let status = |method, path, draining| answer(&method, path, &handle, draining).status().as_u16();
        assert_eq!(status(Method::GET, "/livez", true), 200);
        assert_eq!(status(Method::GET, "/readyz", false), 200);
        assert_eq!(status(Method::HEAD, "/readyz", true), 503);
        assert_eq!(status(Method::GET, "/metrics", false), 200);
        assert_eq!(status(Method::POST, "/metrics", false), 405);
        assert_eq!(status(Method::GET, "/", false), 404);
    }
}
