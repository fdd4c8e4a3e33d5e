//! A client's request body: counted, decoded where it is gzip, and never waited for longer than the idle limit.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_ENCODING;
use http::{HeaderMap, Version};
use http_body::Body as _;
use hyper::body::Incoming;
use tokio::time::{Instant, Sleep, sleep, timeout_at};

use crate::gunzip::{BadGzip, Gunzip};
use crate::record::Record;
use crate::refusal::Refusal;

/// Why a request body stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// The client left before the end.
    #[error("the client left")]
    Left,
    /// The client sent nothing for too long.
    #[error("the client sent nothing for too long")]
    Idle,
    /// The gzip coding is broken.
    #[error("the gzip body is not exactly one whole member")]
    Gzip,
}

impl From<BadGzip> for BodyError {
    fn from(BadGzip: BadGzip) -> Self {
        Self::Gzip
    }
}

impl From<BodyError> for Refusal {
    fn from(error: BodyError) -> Self {
        match error {
            BodyError::Left => Self::ClientLeft,
            BodyError::Idle => Self::ClientIdle,
            BodyError::Gzip => Self::Gzip,
        }
    }
}

/// How a request body is coded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coding {
    /// Not at all.
    Identity,
    /// `gzip`, once; `x-gzip` is the same (RFC 9110, section 8.4.1.3).
    Gzip,
}

impl Coding {
    /// Reads a head. Anything but one known coding is refused.
    pub fn of(headers: &HeaderMap) -> Result<Self, Refusal> {
        let mut codings = headers.get_all(CONTENT_ENCODING).iter();
        let Some(coding) = codings.next() else { return Ok(Self::Identity) };
        let is = |name: &[u8]| coding.as_bytes().eq_ignore_ascii_case(name);
        match codings.next() {
            None if is(b"identity") => Ok(Self::Identity),
            None if is(b"gzip") || is(b"x-gzip") => Ok(Self::Gzip),
            Some(_) | None => Err(Refusal::Coding),
        }
    }
}

/// A request body on its way in.
pub struct Inbound {
    /// None once it was taken elsewhere.
    incoming: Option<Incoming>,
    gunzip: Option<Gunzip>,
    /// The last decoded bytes stay here until more come or the member proves whole: a broken one is never completed.
    held: Option<Bytes>,
    ended: bool,
    /// On HTTP/2 a stream that is reset without an error looks like one that has ended.
    resettable: bool,
    /// Reading has begun: a client that waits for `100 Continue` has had it.
    begun: bool,
    idle: Duration,
    timer: Pin<Box<Sleep>>,
    record: Record,
}

impl Inbound {
    /// Takes a body as it comes.
    #[must_use]
    pub fn new(incoming: Incoming, version: Version, idle: Duration, record: Record) -> Self {
        Self {
            incoming: Some(incoming),
            gunzip: None,
            held: None,
            ended: false,
            resettable: version == Version::HTTP_2,
            begun: false,
            idle,
            timer: Box::pin(sleep(idle)),
            record,
        }
    }

    /// From here on the body is decoded by what its head says: nothing, or gzip once.
    pub fn decode(&mut self, headers: &HeaderMap) -> Result<(), Refusal> {
        if Coding::of(headers)? == Coding::Gzip {
            self.gunzip = Some(Gunzip::default());
        }
        Ok(())
    }

    /// Whether any of the body was asked for.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        self.begun
    }

    /// Moves the body out; what stays has ended.
    #[must_use]
    pub fn take(&mut self) -> Self {
        let stays = Self {
            incoming: None,
            gunzip: None,
            held: None,
            ended: true,
            resettable: false,
            begun: true,
            idle: self.idle,
            timer: Box::pin(sleep(self.idle)),
            record: self.record.clone(),
        };
        std::mem::replace(self, stays)
    }

    /// Whether the body is decoded here: its length upstream is then another.
    #[must_use]
    pub fn is_decoded(&self) -> bool {
        self.gunzip.is_some()
    }

    /// The next bytes; none: the body has ended.
    pub async fn next(&mut self) -> Result<Option<Bytes>, BodyError> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// The poll behind [`Inbound::next`].
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, BodyError>> {
        loop {
            if let Some(decoded) = self.gunzip.as_mut().map(Gunzip::step).transpose()?.flatten() {
                self.record.received(decoded.len());
                match self.held.replace(decoded) {
                    Some(before) => return Poll::Ready(Ok(Some(before))),
                    None => continue,
                }
            }
            if self.ended {
                return Poll::Ready(Ok(self.held.take()));
            }
            match (ready!(self.poll_raw(cx))?, &mut self.gunzip) {
                (Some(raw), Some(gunzip)) => gunzip.feed(raw),
                (Some(raw), None) => {
                    self.record.received(raw.len());
                    return Poll::Ready(Ok(Some(raw)));
                }
                (None, gunzip) => {
                    self.ended = true;
                    let rest = gunzip.as_mut().map(Gunzip::finish).transpose()?.flatten();
                    self.record.received(rest.as_ref().map_or(0, Bytes::len));
                    let before = std::mem::replace(&mut self.held, rest);
                    if before.is_some() {
                        return Poll::Ready(Ok(before));
                    }
                }
            }
        }
    }

    /// Reads and throws away what is left, raw. True: the end was reached within the bounds.
    pub async fn drain(&mut self, most: u64, until: Instant) -> Drained {
        let mut drained = 0;
        while !self.ended {
            match timeout_at(until, poll_fn(|cx| self.poll_raw(cx))).await {
                Err(_) | Ok(Err(BodyError::Idle)) => return Drained::TooSlow,
                Ok(Err(BodyError::Left | BodyError::Gzip)) => return Drained::Left,
                Ok(Ok(None)) => self.ended = true,
                Ok(Ok(Some(raw))) => {
                    drained += raw.len() as u64;
                    self.record.drained(raw.len() as u64);
                    if drained > most {
                        return Drained::TooLong;
                    }
                }
            }
        }
        Drained::Whole
    }

    fn poll_raw(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, BodyError>> {
        self.begun = true;
        let Some(incoming) = &mut self.incoming else { return Poll::Ready(Ok(None)) };
        loop {
            match Pin::new(&mut *incoming).poll_frame(cx) {
                Poll::Ready(None) if self.resettable && !incoming.is_end_stream() => {
                    return Poll::Ready(Err(BodyError::Left));
                }
                Poll::Ready(None) => return Poll::Ready(Ok(None)),
                Poll::Ready(Some(Err(_))) => return Poll::Ready(Err(BodyError::Left)),
                Poll::Ready(Some(Ok(frame))) => {
                    self.timer.as_mut().reset(Instant::now() + self.idle);
                    // Trailers are of no meaning here and end with this hop.
                    if let Ok(data) = frame.into_data() {
                        return Poll::Ready(Ok(Some(data)));
                    }
                }
                Poll::Pending => {
                    ready!(self.timer.as_mut().poll(cx));
                    return Poll::Ready(Err(BodyError::Idle));
                }
            }
        }
    }
}

/// How a drain ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drained {
    /// The body's end was reached.
    Whole,
    /// More bytes than the bound.
    TooLong,
    /// More time than the bound.
    TooSlow,
    /// The client left.
    Left,
}
