//! The client's side of a push: the forge's answer, passed on in whole packets, so that a push that is cut in the
//! middle can still end in a report.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http::header::CONTENT_LENGTH;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

use crate::answer::report_body;
use crate::body::{Feed, Inbound, pipe};
use crate::git::pktline::{self, Packet};
use crate::intent::Push;
use crate::proxy::carry::Begun;
use crate::record::Record;
use crate::refusal::Refusal;

/// Longest wait for the end of the body of a push that was cut.
const DRAIN_TIME: Duration = Duration::from_mins(1);
/// The band of a side-band packet that carries the report.
const REPORT_BAND: u8 = 1;

/// Sends the head with the first whole packet, or at the end.
pub(super) struct Downlink {
    begin: Option<oneshot::Sender<Begun>>,
    head: HeaderMap,
    feed: Option<Feed>,
    held: BytesMut,
    side_band: bool,
    /// Longest wait for a client that takes nothing.
    idle: Duration,
    /// What comes is not made of packets: it is passed on as it is.
    raw: bool,
    /// The forge's own report has begun.
    reported: bool,
}

impl Downlink {
    pub(super) fn new(begin: oneshot::Sender<Begun>, side_band: bool, idle: Duration) -> Self {
        Self {
            begin: Some(begin),
            head: HeaderMap::new(),
            feed: None,
            held: BytesMut::new(),
            side_band,
            idle,
            raw: false,
            reported: false,
        }
    }

    /// The forge's head has come.
    pub(super) fn head(&mut self, head: HeaderMap) {
        self.head = head;
        // A push that is cut ends in a report of another length.
        self.head.remove(CONTENT_LENGTH);
    }

    /// Passes bytes on, as far as they are whole packets. A flush at their end stays here: to git it ends the answer,
    /// which it may not see before the push is recorded.
    pub(super) async fn send(&mut self, bytes: &[u8]) {
        self.held.extend_from_slice(bytes);
        let mut whole = 0;
        while !self.raw {
            match pktline::read(self.held.get(whole..).unwrap_or_default()) {
                Ok(None) => break,
                Err(_not_packets) => self.raw = true,
                Ok(Some((Packet::Flush, taken))) => {
                    self.reported = true;
                    if whole + taken == self.held.len() {
                        break;
                    }
                    whole += taken;
                }
                Ok(Some((Packet::Data(data), taken))) => {
                    self.reported |= !self.side_band || data.first() == Some(&REPORT_BAND);
                    whole += taken;
                }
            }
        }
        if self.raw {
            whole = self.held.len();
        }
        let whole = self.held.split_to(whole).freeze();
        if !whole.is_empty() {
            self.forward(whole).await;
        }
    }

    /// The forge's answer has ended.
    pub(super) async fn end(mut self) {
        let rest = self.held.split().freeze();
        self.forward(rest).await;
        if let Some(feed) = self.feed {
            feed.end();
        }
    }

    /// The push was cut, or the forge's answer is no answer. Where that answer has begun it ends in a report of the
    /// door's, if no report was in it yet; else it breaks off.
    pub(super) async fn refuse(
        mut self,
        refusal: Refusal,
        mut inbound: Inbound,
        push: &Push,
        record: &Record,
        most: u64,
    ) {
        if let Some(begin) = self.begin.take() {
            let _ = begin.send(Begun::Refused(refusal, Box::new(inbound)));
            return;
        }
        inbound.drain(most, Instant::now() + DRAIN_TIME).await;
        let Some(feed) = self.feed.take().filter(|_| !self.reported && !self.raw) else { return };
        let refs: Vec<Bytes> = push.section.commands.iter().map(|command| command.ref_name.clone()).collect();
        if let Some(report) = report_body(&refusal, &push.section.capabilities, &refs, record.id()) {
            // A client that has left is not told.
            let _ = timeout(self.idle, feed.send(report)).await;
            feed.end();
        }
    }

    /// A client that has left takes nothing, and one that stalls nothing more; the push goes on without it.
    async fn forward(&mut self, bytes: Bytes) {
        if let Some(begin) = self.begin.take() {
            let (feed, drink) = pipe();
            let _ = begin.send(Begun::Answer(std::mem::take(&mut self.head), drink));
            self.feed = Some(feed);
        }
        if let Some(feed) = self.feed.take()
            && (bytes.is_empty() || matches!(timeout(self.idle, feed.send(bytes)).await, Ok(Ok(()))))
        {
            self.feed = Some(feed);
        }
    }
}
