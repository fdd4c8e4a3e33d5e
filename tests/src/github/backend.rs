//! `git http-backend` as a CGI program, streaming both ways at once.

use std::io;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::{Bytes, BytesMut};
use futures_util::stream;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use hyper::header::{HeaderName, HeaderValue};
use hyper::http::request;
use hyper::{Response, StatusCode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio_util::sync::CancellationToken;

use super::State;
use super::answer::Body;
use super::record;
use super::seed::{NEUTRAL, search_path};

/// Bytes that are read from git at a time.
const READ: usize = 64 * 1024;

/// What git is called with.
pub(crate) struct Call<'a> {
    pub(crate) head: &'a request::Parts,
    pub(crate) folder: &'a Path,
    /// The path after the repository.
    pub(crate) rest: &'a str,
    /// Whether workflow files may be pushed.
    pub(crate) workflows: bool,
}

/// Runs it, and answers as soon as it has a head.
pub(crate) async fn run(state: &State, call: Call<'_>, body: Option<record::Body>) -> io::Result<Response<Body>> {
    let mut child = command(&call).spawn()?;
    let running = Running::new(&state.backends);
    let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(io::Error::other("no pipes"));
    };
    let cut = CancellationToken::new();
    tokio::spawn(feed(body, stdin, cut.clone()));
    let mut output = Output { stdout, child, cut, _running: running };
    let (head, rest) = output.head().await?;
    let mut response = Response::new(output.into_body(rest));
    set_head(&mut response, &head)?;
    Ok(response)
}

fn command(call: &Call<'_>) -> Command {
    let header = |name: &str| call.head.headers.get(name).and_then(|value| value.to_str().ok());
    let mut git = Command::new("git");
    git.arg("http-backend").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    git.env_clear().env("PATH", search_path()).envs(NEUTRAL).kill_on_drop(true);
    git.env("GIT_PROJECT_ROOT", call.folder).env("GIT_HTTP_EXPORT_ALL", "1").env("PATH_INFO", call.rest);
    git.env("REQUEST_METHOD", call.head.method.as_str());
    git.env("QUERY_STRING", call.head.uri.query().unwrap_or_default());
    git.env("REMOTE_USER", "x-access-token").env("REMOTE_ADDR", "127.0.0.1");
    git.env("STANDIN_WORKFLOWS", if call.workflows { "yes" } else { "no" });
    for (variable, name) in [
        ("CONTENT_TYPE", "content-type"),
        ("CONTENT_LENGTH", "content-length"),
        ("HTTP_CONTENT_ENCODING", "content-encoding"),
        ("GIT_PROTOCOL", "git-protocol"),
    ] {
        if let Some(value) = header(name) {
            git.env(variable, value);
        }
    }
    git
}

/// Sends the body in. Git may stop reading early; the rest of the body is read all the same, as a server does.
async fn feed(body: Option<record::Body>, stdin: ChildStdin, cut: CancellationToken) {
    let Some(mut body) = body else { return };
    let mut stdin = Some(stdin);
    while let Some(chunk) = body.chunk().await {
        let Ok(chunk) = chunk else {
            // Git that was promised a length waits for it for ever, so it is ended rather than told of the end.
            return cut.cancel();
        };
        if let Some(pipe) = &mut stdin
            && pipe.write_all(&chunk).await.is_err()
        {
            stdin = None;
        }
    }
}

/// Git's standard output; ends git when it is dropped, as it is when the client goes away.
struct Output {
    stdout: ChildStdout,
    child: Child,
    /// The request's body was cut.
    cut: CancellationToken,
    _running: Running,
}

impl Output {
    /// The CGI header block, and what was read after it.
    async fn head(&mut self) -> io::Result<(String, Bytes)> {
        let mut bytes = BytesMut::new();
        loop {
            if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
                let head = bytes.split_to(end + 4);
                let head = std::str::from_utf8(&head).map_err(io::Error::other)?;
                return Ok((head.to_owned(), bytes.freeze()));
            }
            if self.read(&mut bytes).await? == 0 || bytes.len() > READ {
                return Err(io::Error::other("no header block"));
            }
        }
    }

    async fn read(&mut self, bytes: &mut BytesMut) -> io::Result<usize> {
        tokio::select! {
            () = self.cut.cancelled() => Err(io::Error::other("the request was cut")),
            read = self.stdout.read_buf(bytes) => read,
        }
    }

    fn into_body(self, first: Bytes) -> Body {
        let chunks = stream::try_unfold((self, Some(first)), |(mut output, first)| async move {
            if let Some(first) = first.filter(|first| !first.is_empty()) {
                return Ok(Some((Frame::data(first), (output, None))));
            }
            let mut bytes = BytesMut::with_capacity(READ);
            if output.read(&mut bytes).await? > 0 {
                return Ok(Some((Frame::data(bytes.freeze()), (output, None))));
            }
            let status = output.child.wait().await?;
            if status.success() { Ok(None) } else { Err(io::Error::other("git http-backend failed")) }
        });
        BodyExt::boxed_unsync(StreamBody::new(chunks))
    }
}

fn set_head(response: &mut Response<Body>, head: &str) -> io::Result<()> {
    for line in head.lines().filter(|line| !line.is_empty()) {
        let (name, value) = line.split_once(':').ok_or_else(|| io::Error::other("no header"))?;
        let value = value.trim();
        if name.eq_ignore_ascii_case("status") {
            let code = value.split(' ').next().unwrap_or_default();
            *response.status_mut() = StatusCode::from_bytes(code.as_bytes()).map_err(io::Error::other)?;
        } else {
            let name = HeaderName::try_from(name).map_err(io::Error::other)?;
            response.headers_mut().append(name, HeaderValue::try_from(value).map_err(io::Error::other)?);
        }
    }
    Ok(())
}

/// Counts the gits that run.
struct Running(Arc<AtomicUsize>);

impl Running {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(count))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}
