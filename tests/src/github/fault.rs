//! What the stand-in can be told to do wrong, and when.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::{StreamExt as _, stream};
use http_body_util::{BodyExt, BodyStream, StreamBody};
use hyper::Response;
use hyper::body::Frame;
use hyper::header::{CONTENT_ENCODING, CONTENT_LENGTH, HeaderValue};
use serde_json::Value;

use super::Github;
use super::answer::{Body, Canned, full};
use super::route::Route;
use crate::pkt;

/// What goes wrong with one request.
#[derive(Clone)]
pub enum Fault {
    /// Nothing: the real answer, late if [`When::after`] says so.
    None,
    /// The request is read and never answered.
    Silent,
    /// The connection is reset in place of an answer.
    Reset,
    /// This answer in place of the real one, after the request was read.
    Answer(Canned),
    /// This answer before a byte of the request's body was read.
    Early(Canned, Rest),
    /// The real answer, whose body is cut after this many bytes.
    Cut(usize),
    /// The real answer, whose body goes silent after this many bytes.
    Stall(usize),
    /// The real answer to a push, with this text on band 2 before it and at once.
    Progress(String),
    /// The real answer, gzip-coded although nobody asked for that.
    Gzip,
    /// The real answer with its JSON changed.
    Edit(Edit),
}

/// A change of a JSON answer.
pub type Edit = Arc<dyn Fn(&mut Value) + Send + Sync>;

/// What becomes of a request's body after an early answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rest {
    /// It is read to its end.
    Read,
    /// It is neither read nor is the connection closed.
    Stall,
    /// The connection is closed.
    Close,
}

impl Fault {
    /// A changed JSON answer.
    pub fn edit(edit: impl Fn(&mut Value) + Send + Sync + 'static) -> Self {
        Self::Edit(Arc::new(edit))
    }
}

impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::Silent => "Silent",
            Self::Reset => "Reset",
            Self::Answer(_) => "Answer",
            Self::Early(..) => "Early",
            Self::Cut(_) => "Cut",
            Self::Stall(_) => "Stall",
            Self::Progress(_) => "Progress",
            Self::Gzip => "Gzip",
            Self::Edit(_) => "Edit",
        })
    }
}

/// Which requests a fault is for: by default the next one of the route.
#[must_use = "nothing goes wrong until `then`"]
pub struct When<'a> {
    github: &'a Github,
    plan: Plan,
}

#[derive(Debug, Clone)]
struct Plan {
    route: Route,
    repository: Option<String>,
    path: Option<String>,
    skip: usize,
    times: usize,
    delay: Duration,
    fault: Fault,
}

impl<'a> When<'a> {
    pub(crate) fn new(github: &'a Github, route: Route) -> Self {
        let plan = Plan {
            route,
            repository: None,
            path: None,
            skip: 0,
            times: 1,
            delay: Duration::ZERO,
            fault: Fault::None,
        };
        Self { github, plan }
    }

    /// Only requests whose path names this repository.
    pub fn repository(mut self, name: &str) -> Self {
        self.plan.repository = Some(name.to_ascii_lowercase());
        self
    }

    /// Only requests for this path, as it is sent: `/repos/acme/api/issues`.
    pub fn path(mut self, path: &str) -> Self {
        self.plan.path = Some(path.to_owned());
        self
    }

    /// Not the next this many, but those after them.
    pub fn skip(mut self, requests: usize) -> Self {
        self.plan.skip = requests;
        self
    }

    /// This many requests.
    pub fn times(mut self, times: usize) -> Self {
        self.plan.times = times;
        self
    }

    /// All requests, until [`Github::heal`].
    pub fn always(self) -> Self {
        self.times(usize::MAX)
    }

    /// Waits this long first.
    pub fn after(mut self, delay: Duration) -> Self {
        self.plan.delay = delay;
        self
    }

    /// Sets it up.
    pub fn then(mut self, fault: Fault) {
        self.plan.fault = fault;
        self.github.state.faults.0.lock().unwrap().push(self.plan);
    }

    /// Sets up an answer in place of the real one.
    pub fn answer(self, canned: Canned) {
        self.then(Fault::Answer(canned));
    }
}

/// What is to go wrong.
#[derive(Debug, Default)]
pub(crate) struct Faults(Mutex<Vec<Plan>>);

impl Faults {
    /// What goes wrong with this request, and how long to wait before that. The first plan that fits is used up.
    pub(crate) fn take(&self, route: Route, repository: Option<&str>, path: &str) -> (Duration, Fault) {
        let mut plans = self.0.lock().unwrap();
        let repository = repository.map(str::to_ascii_lowercase);
        let fits = |plan: &&mut Plan| {
            plan.route == route
                && (plan.repository.is_none() || plan.repository == repository)
                && plan.path.as_deref().is_none_or(|wanted| wanted == path)
                && plan.times > 0
        };
        let Some(plan) = plans.iter_mut().find(fits) else { return (Duration::ZERO, Fault::None) };
        if plan.skip > 0 {
            plan.skip -= 1;
            return (Duration::ZERO, Fault::None);
        }
        plan.times -= 1;
        (plan.delay, plan.fault.clone())
    }

    /// Forgets what is for one repository alone.
    pub(crate) fn clear_for(&self, repository: &str) {
        let name = Some(repository.to_ascii_lowercase());
        self.0.lock().unwrap().retain(|plan| plan.repository != name);
    }

    /// Forgets all.
    pub(crate) fn clear(&self) {
        self.0.lock().unwrap().clear();
    }
}

/// What follows the bytes of a spoiled body.
#[derive(Clone, Copy)]
pub(crate) enum Ending {
    Cut,
    Stall,
}

/// Lets only so many bytes of an answer's body through.
pub(crate) fn spoil(response: Response<Body>, bytes: usize, ending: Ending) -> Response<Body> {
    response.map(|body| {
        let frames = stream::try_unfold((body, bytes), move |(mut body, left)| async move {
            if left == 0 {
                return match ending {
                    Ending::Cut => {
                        // Lets the server send what it has; an error throws that away.
                        tokio::task::yield_now().await;
                        Err(io::Error::other("cut"))
                    }
                    Ending::Stall => std::future::pending().await,
                };
            }
            match body.frame().await {
                None => Ok(None),
                Some(Err(error)) => Err(error),
                Some(Ok(frame)) => {
                    let mut data = frame.into_data().unwrap_or_default();
                    data.truncate(left);
                    let left = left - data.len();
                    Ok(Some((Frame::data(data), (body, left))))
                }
            }
        });
        BodyExt::boxed_unsync(StreamBody::new(frames))
    })
}

/// Sends text on band 2 before the rest of an answer.
pub(crate) fn progress(response: Response<Body>, text: &str) -> Response<Body> {
    let first = Bytes::from(pkt::line(format!("\u{2}{text}")));
    let (mut head, body) = response.into_parts();
    head.headers.remove(CONTENT_LENGTH);
    let first = stream::iter([Ok(Frame::data(first))]);
    let body = BodyExt::boxed_unsync(StreamBody::new(first.chain(BodyStream::new(body))));
    Response::from_parts(head, body)
}

/// Gzips an answer.
pub(crate) async fn gzip(response: Response<Body>) -> Response<Body> {
    let (mut head, body) = response.into_parts();
    let mut coder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    io::Write::write_all(&mut coder, &whole(body).await).expect("memory");
    head.headers.remove(CONTENT_LENGTH);
    head.headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    Response::from_parts(head, full(coder.finish().expect("memory")))
}

/// Changes a JSON answer.
pub(crate) async fn edit(response: Response<Body>, edit: &Edit) -> Response<Body> {
    let (head, body) = response.into_parts();
    let mut value: Value = serde_json::from_slice(&whole(body).await).expect("a JSON answer");
    edit(&mut value);
    Response::from_parts(head, full(value.to_string()))
}

async fn whole(mut body: Body) -> Bytes {
    let mut bytes = BytesMut::new();
    while let Some(Ok(frame)) = body.frame().await {
        bytes.extend_from_slice(frame.data_ref().map_or(&[], Bytes::as_ref));
    }
    bytes.freeze()
}
