//! A stream of answers that has its place as long as it lasts, and may have a time.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http::HeaderMap;
use hyper::body::{Bytes, Frame};
use tokio::time::{Sleep, sleep};
use tonic::Status;
use tonic::body::Body;

use super::admission::Place;

/// The body of a stream, with its place.
pub(super) struct Held {
    /// None once it is over.
    body: Option<Body>,
    _place: Option<Place>,
    until: Option<Pin<Box<Sleep>>>,
}

impl Held {
    pub(super) fn new(body: Body, place: Option<Place>, time: Option<Duration>) -> Self {
        Self { body: Some(body), _place: place, until: time.map(|time| Box::pin(sleep(time))) }
    }
}

impl hyper::body::Body for Held {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        // Looked at first: whoever asks on and on would never see it else.
        if self.until.as_mut().is_some_and(|until| until.as_mut().poll(context).is_ready()) {
            self.until = None;
            return Poll::Ready(self.body.take().map(|_cut| trailers()));
        }
        match &mut self.body {
            Some(body) => Pin::new(body).poll_frame(context),
            None => Poll::Ready(None),
        }
    }
}

fn trailers() -> Result<Frame<Bytes>, Status> {
    let mut headers = HeaderMap::new();
    let late = Status::deadline_exceeded("control ends a stream of this kind after a while; ask again");
    late.add_header(&mut headers)?;
    Ok(Frame::trailers(headers))
}
