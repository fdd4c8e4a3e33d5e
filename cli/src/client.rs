//! How control is reached: a Unix socket, or plain HTTP/2 to this machine; one call at a time.
//!
//! Controls are asked in the order they were given. Another is asked only when one could not be connected to or
//! answered that it is unavailable: after a silence it is not known what was done, and a late rotation would kill
//! the bearer that another control had just given out.

use std::error::Error;
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use gitdoor_proto::v1::runs_client::RunsClient;
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tonic::transport::{Channel, Uri};
use tonic::{Code, Response, Status};

use crate::failure::{Attempt, Failure};

/// Where a control is, as far as its text parses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Endpoint {
    /// A Unix socket.
    Unix(PathBuf),
    /// A URL; whether it can be used is not known yet.
    Url(Uri),
}

/// Text that names no control.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a control is unix:PATH or http://HOST:PORT")]
pub(crate) struct InvalidEndpoint;

/// Why a control that parses cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unusable {
    /// Plain text beyond this machine.
    #[error("plain http:// is for this machine alone: a loopback address, or unix:PATH")]
    PlainText,
    /// TLS, which this version cannot speak to control.
    #[error("https:// cannot be used by this version: http:// to a loopback address, or unix:PATH")]
    Tls,
    /// Another scheme.
    #[error("the scheme is http:// or unix:")]
    Scheme,
    /// A user name or a password.
    #[error("a URL with a user name or a password is refused")]
    Credential,
    /// More than host and port.
    #[error("the URL ends after its port: control has no paths")]
    Path,
}

impl Endpoint {
    /// Parses `unix:PATH` or a URL.
    pub(crate) fn parse(text: &str) -> Result<Self, InvalidEndpoint> {
        if let Some(path) = text.strip_prefix("unix:") {
            return if path.is_empty() { Err(InvalidEndpoint) } else { Ok(Self::Unix(path.into())) };
        }
        match text.parse::<Uri>() {
            Ok(uri) if uri.scheme().is_some() && uri.host().is_some_and(|host| !host.is_empty()) => {
                Ok(Self::Url(uri))
            }
            Ok(_) | Err(_) => Err(InvalidEndpoint),
        }
    }

    /// Whether it can be used at all.
    fn check(&self) -> Result<(), Unusable> {
        let Self::Url(uri) = self else {
            return Ok(());
        };
        if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
            return Err(Unusable::Credential);
        }
        match uri.scheme_str() {
            Some("http") => {}
            Some("https") => return Err(Unusable::Tls),
            Some(_) | None => return Err(Unusable::Scheme),
        }
        if uri.path_and_query().is_some_and(|path| path.as_str() != "/") {
            return Err(Unusable::Path);
        }
        if uri.host().is_some_and(is_loopback) { Ok(()) } else { Err(Unusable::PlainText) }
    }

    async fn connect(&self) -> Result<Channel, tonic::transport::Error> {
        match self {
            Self::Url(uri) => Channel::builder(uri.clone()).connect().await,
            Self::Unix(path) => {
                let path = path.clone();
                // The URI is only what HTTP/2 needs as an authority; the connector goes to the socket.
                let connector = tower::service_fn(move |_: Uri| {
                    let path = path.clone();
                    async move { UnixStream::connect(path).await.map(TokioIo::new) }
                });
                Channel::builder(Uri::from_static("http://localhost")).connect_with_connector(connector).await
            }
        }
    }
}

fn is_loopback(host: &str) -> bool {
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    host.eq_ignore_ascii_case("localhost") || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Url(uri) => {
                write!(f, "{}://{}", uri.scheme_str().unwrap_or_default(), uri.host().unwrap_or_default())
                    .and_then(|()| uri.port().map_or(Ok(()), |port| write!(f, ":{port}")))
            }
        }
    }
}

/// The controls, and how long each is waited for.
#[derive(Debug)]
pub(crate) struct Client {
    controls: Vec<Endpoint>,
    patience: Duration,
}

impl Client {
    /// A client of these controls, all of which must be usable.
    pub(crate) fn new(controls: Vec<Endpoint>, patience: Duration) -> Result<Self, Unusable> {
        controls.iter().try_for_each(Endpoint::check)?;
        Ok(Self { controls, patience })
    }

    /// The same client, waiting longer.
    pub(crate) fn with_patience(self, more: Duration) -> Self {
        Self { patience: self.patience.saturating_add(more), ..self }
    }

    /// Puts one question, to the first control that can be asked.
    pub(crate) async fn ask<T>(
        &self,
        question: impl AsyncFn(RunsClient<Channel>) -> Result<Response<T>, Status>,
    ) -> Result<T, Failure> {
        let mut attempts = Vec::new();
        let mut unavailable = None;
        for control in &self.controls {
            match tokio::time::timeout(self.patience, ask_one(control, &question)).await {
                Ok(Answer::Given(answer)) => return Ok(answer),
                Ok(Answer::Refused(status)) => return Err(Failure::Refused(status)),
                Ok(Answer::Unreachable(cause)) => attempts.push(Attempt { control: control.to_string(), cause }),
                Ok(Answer::Unavailable(status)) => unavailable = Some(status),
                Err(_elapsed) => {
                    return Err(Failure::Silent { control: control.to_string(), patience: self.patience });
                }
            }
        }
        // What a control said tells more than that others were not there.
        Err(unavailable.map_or(Failure::Unreachable(attempts), Failure::Refused))
    }
}

enum Answer<T> {
    Given(T),
    Refused(Box<Status>),
    /// It was not asked.
    Unreachable(String),
    /// It says that it cannot now; another may.
    Unavailable(Box<Status>),
}

async fn ask_one<T>(
    control: &Endpoint,
    question: &impl AsyncFn(RunsClient<Channel>) -> Result<Response<T>, Status>,
) -> Answer<T> {
    let channel = match control.connect().await {
        Ok(channel) => channel,
        Err(error) => return Answer::Unreachable(root_cause(&error)),
    };
    match question(RunsClient::new(channel)).await {
        Ok(answer) => Answer::Given(answer.into_inner()),
        Err(status) if status.code() == Code::Unavailable => Answer::Unavailable(Box::new(status)),
        Err(status) => Answer::Refused(Box::new(status)),
    }
}

/// The innermost cause: "connection refused" says more than "transport error".
fn root_cause(error: &dyn Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_reached_in_plain_text() {
        for (text, verdict) in [
            ("unix:/run/gitdoor/runs.sock", Ok(())),
            ("unix:relative.sock", Ok(())),
            ("http://127.0.0.1:7000", Ok(())),
            ("http://127.9.9.9:7000/", Ok(())),
            ("http://[::1]:7000", Ok(())),
            ("http://LOCALHOST:7000", Ok(())),
            ("http://10.0.0.1:7000", Err(Unusable::PlainText)),
            ("http://localhost.example.com:7000", Err(Unusable::PlainText)),
            ("http://[::ffff:10.0.0.1]:7000", Err(Unusable::PlainText)),
            ("http://0.0.0.0:7000", Err(Unusable::PlainText)),
            ("https://127.0.0.1:7000", Err(Unusable::Tls)),
            ("ftp://127.0.0.1:7000", Err(Unusable::Scheme)),
            ("http://user:pass@127.0.0.1:7000", Err(Unusable::Credential)),
            ("http://127.0.0.1:7000/x", Err(Unusable::Path)),
            ("http://127.0.0.1:7000/?x", Err(Unusable::Path)),
        ] {
            assert_eq!(Endpoint::parse(text).unwrap().check(), verdict, "{text}");
        }
    }

    #[test]
    fn text_that_names_no_control_does_not_parse() {
        for text in ["", "unix:", "127.0.0.1:7000", "/run/x.sock", "http://", "http:///x", "a b"] {
            assert_eq!(Endpoint::parse(text), Err(InvalidEndpoint), "{text}");
        }
    }

    #[test]
    fn an_endpoint_is_shown_without_a_password() {
        let shown = Endpoint::parse("http://user:hush@127.0.0.1:7000/x").unwrap().to_string();
        assert_eq!(shown, "http://127.0.0.1:7000");
    }
}
