//! The client's side of a push: the forge's answer, passed on in whole packets, so that a push that is cut in the
//! middle can still end in a report.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::answer::report_body;
use crate::body::Inbound;
use crate::git::pktline::{self, Packet};
use crate::intent::Push;
use crate::record::Interruption;
use crate::refusal::Refusal;

/// Longest wait for the end of the body of a push that was cut.
const DRAIN_TIME: Duration = Duration::from_mins(1);
/// The band of a side-band packet that carries the report.
const REPORT_BAND: u8 = 1;

/// How an answer begins.
pub(super) enum Begun {
    /// With the forge's head, and then these bytes.
    Answer(HeaderMap, mpsc::Receiver<Result<Bytes, Interruption>>),
    /// With a refusal; the rest of the request's body is given back.
    Refused(Refusal, Box<Inbound>),
}

/// Sends the head with the first whole packet, or at the end.
pub(super) struct Downlink {
    responder: Option<oneshot::Sender<Begun>>,
    head: HeaderMap,
    frames: Option<mpsc::Sender<Result<Bytes, Interruption>>>,
    held: BytesMut,
    side_band: bool,
    /// What comes is not made of packets: it is passed on as it is.
    raw: bool,
    /// The forge's own report has begun.
    reported: bool,
}

impl Downlink {
    pub(super) fn new(responder: oneshot::Sender<Begun>, side_band: bool) -> Self {
        Self {
            responder: Some(responder),
            head: HeaderMap::new(),
            frames: None,
            held: BytesMut::new(),
            side_band,
            raw: false,
            reported: false,
        }
    }

    /// The forge's head has come.
    pub(super) fn head(&mut self, head: HeaderMap) {
        self.head = head;
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
    }

    /// The push was cut, or the forge's answer is no answer.
    pub(super) async fn refuse(mut self, refusal: Refusal, mut inbound: Inbound, push: &Push, most: u64) {
        if let Some(responder) = self.responder.take() {
            let _ = responder.send(Begun::Refused(refusal, Box::new(inbound)));
            return;
        }
        inbound.drain(most, Instant::now() + DRAIN_TIME).await;
        let refs: Vec<Bytes> = push.section.commands.iter().map(|command| command.ref_name.clone()).collect();
        let report = report_body(&refusal, &push.section.capabilities, &refs);
        let Some(frames) = self.frames.take() else { return };
        let last = match report {
            Some(report) if !self.reported && !self.raw => Ok(report),
            Some(_) | None => Err(interruption(&refusal)),
        };
        // A client that has left is not told.
        let _ = frames.send(last).await;
    }

    /// A client that has left takes nothing; the push goes on without it.
    async fn forward(&mut self, bytes: Bytes) {
        if let Some(responder) = self.responder.take() {
            let (frames, answer) = mpsc::channel(1);
            let _ = responder.send(Begun::Answer(std::mem::take(&mut self.head), answer));
            self.frames = Some(frames);
        }
        if let Some(frames) = self.frames.take()
            && (bytes.is_empty() || frames.send(Ok(bytes)).await.is_ok())
        {
            self.frames = Some(frames);
        }
    }
}

/// What a push that is cut in the middle of the forge's own report leaves in the record.
fn interruption(refusal: &Refusal) -> Interruption {
    if let Refusal::Cut(why) = refusal { *why } else { Interruption::UpstreamCut }
}
