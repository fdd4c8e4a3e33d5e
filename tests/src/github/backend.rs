//! `git http-backend` as a CGI program, streaming both ways at once.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

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
use crate::git::kill_group;

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
    let mut git = Backend::start(state, &call)?;
    let (Some(stdin), Some(stdout)) = (git.child.stdin.take(), git.child.stdout.take()) else {
        return Err(io::Error::other("no pipes"));
    };
    let cut = CancellationToken::new();
    tokio::spawn(feed(body, stdin, cut.clone(), git.ended.clone()));
    let mut output = Output { stdout, git, cut };
    let (head, rest) = output.head().await?;
    let mut response = Response::new(output.into_body(rest));
    set_head(&mut response, &head)?;
    Ok(response)
}

/// The program itself: what the `git` in front of it starts would outlive a kill.
static PROGRAM: LazyLock<PathBuf> = LazyLock::new(|| {
    let asked = std::process::Command::new("git").arg("--exec-path").env("PATH", search_path()).output();
    let folder = asked.expect("git").stdout;
    PathBuf::from(String::from_utf8_lossy(&folder).trim()).join("git-http-backend")
});

fn command(call: &Call<'_>) -> Command {
    let header = |name: &str| call.head.headers.get(name).and_then(|value| value.to_str().ok());
    let mut git = Command::new(&*PROGRAM);
    git.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    git.env_clear().env("PATH", search_path()).envs(NEUTRAL).process_group(0).kill_on_drop(true);
    git.env("GIT_PROJECT_ROOT", call.folder).env("GIT_HTTP_EXPORT_ALL", "1").env("PATH_INFO", call.rest);
    git.env("REQUEST_METHOD", call.head.method.as_str());
    git.env("QUERY_STRING", call.head.uri.query().unwrap_or_default());
    git.env("REMOTE_USER", "x-access-token").env("REMOTE_ADDR", "127.0.0.1");
    git.env("STANDIN_WORKFLOWS", if call.workflows { "yes" } else { "no" });
    // Without a CONTENT_LENGTH git reads to the end; with one it waits, at full speed, for bytes that were cut.
    for (variable, name) in [
        ("CONTENT_TYPE", "content-type"),
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
async fn feed(body: Option<record::Body>, stdin: ChildStdin, cut: CancellationToken, ended: CancellationToken) {
    let Some(mut body) = body else { return };
    let mut stdin = Some(stdin);
    while let Some(chunk) = body.chunk().await {
        let Ok(chunk) = chunk else {
            // To git the end of its input is the end of the request, so it is ended before it can see that.
            cut.cancel();
            return ended.cancelled().await;
        };
        if let Some(pipe) = &mut stdin
            && pipe.write_all(&chunk).await.is_err()
        {
            stdin = None;
        }
    }
}

/// A git with all that it started: none of them outlives it.
struct Backend {
    child: Child,
    /// It ended by itself, and so its children did.
    waited: bool,
    ended: CancellationToken,
    running: Arc<AtomicUsize>,
}

impl Backend {
    fn start(state: &State, call: &Call<'_>) -> io::Result<Self> {
        let child = command(call).spawn()?;
        state.backends.fetch_add(1, Ordering::SeqCst);
        let running = Arc::clone(&state.backends);
        Ok(Self { child, waited: false, ended: CancellationToken::new(), running })
    }

    async fn wait(&mut self) -> io::Result<()> {
        let status = self.child.wait().await?;
        self.waited = true;
        if status.success() { Ok(()) } else { Err(io::Error::other("git http-backend failed")) }
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        if let Some(group) = self.child.id().filter(|_| !self.waited) {
            kill_group(group);
        }
        self.ended.cancel();
        self.running.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Git's standard output; ends git when it is dropped, as it is when the client goes away.
struct Output {
    stdout: ChildStdout,
    git: Backend,
    /// The request's body was cut.
    cut: CancellationToken,
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
            output.git.wait().await?;
            Ok(None)
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
