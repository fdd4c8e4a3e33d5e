//! Reads upstream's report as it passes.

use crate::git::pktline::{self, Packet};
use crate::git::{chomp, printable, split_once};
use bytes::Bytes;
use std::collections::HashMap;

/// Most bytes of report text that are kept: a push has some 700 commands at most, a line of them a few hundred bytes.
const REPORT_BYTES: usize = 1024 * 1024;
/// What a line costs besides its text: many short lines must not take more memory than a few long ones.
const LINE_BYTES: usize = 128;
/// Most bytes of a reason that are kept: they go to the log and the ledger.
const REASON_BYTES: usize = 1000;

/// What upstream said of a push.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// `unpack ok`, and `ok` for every command.
    Done,
    /// It answered for every command and refused these, each with its reason; the others it took.
    Refused(Vec<(Bytes, String)>),
    /// Anything else: nobody knows what upstream did.
    Unreadable,
}

/// Reads a report in chunks, and never changes it. Any doubt is [`Outcome::Unreadable`]; at most 1 MiB of the report,
/// two packets and the last chunk are held.
#[derive(Debug)]
pub struct Reader {
    framing: Framing,
    report: Lines,
}

#[derive(Debug)]
enum Framing {
    /// Band 1 carries the report, band 2 words for the user.
    SideBand(Packets),
    Bare,
}

impl Reader {
    /// A reader of a report in the framing that the push asked for.
    #[must_use]
    pub fn new(side_band: bool) -> Self {
        let framing = if side_band { Framing::SideBand(Packets::default()) } else { Framing::Bare };
        Self { framing, report: Lines::default() }
    }

    /// Takes the next bytes of the answer's body.
    pub fn push(&mut self, bytes: &[u8]) {
        match &mut self.framing {
            Framing::SideBand(packets) => packets.push(bytes, |packet| self.report.push_band(packet)),
            Framing::Bare => self.report.push(bytes),
        }
    }

    /// The body has ended. `expected` are the refs of the push's commands.
    #[must_use]
    pub fn finish<'a>(self, expected: impl IntoIterator<Item = &'a [u8]>) -> Outcome {
        let framed = match &self.framing {
            Framing::SideBand(packets) => packets.is_complete(),
            Framing::Bare => true,
        };
        let outcome = if framed { self.report.outcome(expected) } else { None };
        outcome.unwrap_or(Outcome::Unreadable)
    }
}

/// Packets up to a flush, out of chunks.
#[derive(Debug, Default)]
struct Packets {
    unread: Vec<u8>,
    ended: bool,
    /// Something was no packet, came after the end, or was not understood. Nothing is kept from then on.
    broken: bool,
}

impl Packets {
    /// Hands each payload to `take`, which says whether it was understood.
    fn push(&mut self, bytes: &[u8], mut take: impl FnMut(&[u8]) -> bool) {
        if self.broken {
            return;
        }
        self.unread.extend_from_slice(bytes);
        let mut read = 0;
        loop {
            match pktline::read(self.unread.get(read..).unwrap_or_default()) {
                Ok(None) => break,
                Ok(Some((Packet::Flush, taken))) => {
                    self.ended = true;
                    read += taken;
                }
                Ok(Some((Packet::Data(payload), taken))) if !self.ended && take(payload) => read += taken,
                Ok(Some((Packet::Data(_), _))) | Err(_) => return self.give_up(),
            }
        }
        self.unread.drain(..read);
    }

    fn give_up(&mut self) {
        self.broken = true;
        self.unread = Vec::new();
    }

    fn is_complete(&self) -> bool {
        self.ended && !self.broken && self.unread.is_empty()
    }
}

/// The report itself, without side-band.
#[derive(Debug, Default)]
struct Lines {
    packets: Packets,
    statuses: Statuses,
}

impl Lines {
    fn push(&mut self, bytes: &[u8]) {
        self.packets.push(bytes, |line| self.statuses.take(chomp(line)).is_some());
    }

    /// One side-band packet. Band 3 says that upstream gave up; another band is none.
    fn push_band(&mut self, packet: &[u8]) -> bool {
        match packet.split_first() {
            Some((1, data)) => {
                self.push(data);
                true
            }
            Some((2, _)) => true,
            Some(_) | None => false,
        }
    }

    fn outcome<'a>(self, expected: impl IntoIterator<Item = &'a [u8]>) -> Option<Outcome> {
        if self.packets.is_complete() { self.statuses.outcome(expected) } else { None }
    }
}

/// What the lines said.
#[derive(Debug, Default)]
struct Statuses {
    /// Whether the unpack line, the first, said `ok`.
    unpacked: Option<bool>,
    /// Each ref's reason, if it was refused.
    refs: HashMap<Vec<u8>, Option<String>>,
    /// The last status was `ok`, so that its options may follow.
    options_may_follow: bool,
    bytes: usize,
}

impl Statuses {
    /// None for a line that a report does not hold here.
    fn take(&mut self, line: &[u8]) -> Option<()> {
        self.bytes += line.len() + LINE_BYTES;
        if self.bytes > REPORT_BYTES {
            return None;
        }
        let (word, rest) = split_once(line, b' ')?;
        match (word, self.unpacked) {
            (b"unpack", None) => self.unpacked = Some(rest == b"ok"),
            (b"ok", Some(_)) => self.take_ok(rest)?,
            (b"ng", Some(_)) => self.take_refused(rest)?,
            (b"option", Some(_)) if self.options_may_follow => {}
            _ => return None,
        }
        Some(())
    }

    /// A second report gives a ref more than one `ok`, each with options of its own.
    fn take_ok(&mut self, rest: &[u8]) -> Option<()> {
        let ref_name = split_once(rest, b' ').map_or(rest, |(ref_name, _)| ref_name);
        self.options_may_follow = true;
        match self.refs.insert(ref_name.to_vec(), None) {
            None | Some(None) => Some(()),
            Some(Some(_)) => None,
        }
    }

    fn take_refused(&mut self, rest: &[u8]) -> Option<()> {
        let (ref_name, reason) = split_once(rest, b' ').unwrap_or((rest, b"failed"));
        let reason = printable(&String::from_utf8_lossy(reason), REASON_BYTES);
        self.options_may_follow = false;
        match self.refs.insert(ref_name.to_vec(), Some(reason)) {
            None => Some(()),
            Some(_) => None,
        }
    }

    /// None unless the report answers for the expected refs and for no other.
    fn outcome<'a>(mut self, expected: impl IntoIterator<Item = &'a [u8]>) -> Option<Outcome> {
        let mut refused = Vec::new();
        let mut taken = 0_usize;
        for ref_name in expected {
            match self.refs.remove(ref_name)? {
                Some(reason) => refused.push((Bytes::copy_from_slice(ref_name), reason)),
                None => taken += 1,
            }
        }
        match (self.unpacked?, taken, self.refs.is_empty()) {
            // An `ok` for a pack that was not unpacked contradicts itself.
            (_, _, false) | (false, 1.., true) => None,
            (_, 0, true) if refused.is_empty() => None,
            (true, _, true) if refused.is_empty() => Some(Outcome::Done),
            (_, _, true) => Some(Outcome::Refused(refused)),
        }
    }
}
