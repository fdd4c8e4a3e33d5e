//! The report that ends a push, in both directions: the door's refusal, and upstream's report as it passes.
//!
//! Format: <https://git-scm.com/docs/gitprotocol-pack#_report_status>.

mod reader;

use super::pktline::{self, FLUSH, PAYLOAD_BYTES};
use super::printable;
use super::receive_pack::{Capabilities, Report};
use bytes::Bytes;

pub use reader::{Outcome, Reader};

/// Every reason begins so: some bare words of a reason change what git does with the ref.
pub const REFUSED: &str = "refused: ";

/// Most bytes of a reason and of a hint: a few lines of a terminal.
const TEXT_BYTES: usize = 500;
/// Data of one band-1 packet: the band takes a byte.
const BAND_BYTES: usize = PAYLOAD_BYTES - 1;

/// The whole body that refuses a push in the framing that its capabilities asked for: one `ng` line for each of
/// `lines`, a ref's name as it came and the reason without [`REFUSED`]. The `hints` are shown as `remote:` lines where
/// side-band was asked for, else not at all.
///
/// None when the client did not ask for a report, or when a ref's name leaves its line no room for a reason. Never
/// answer such a client with a bare flush: git would believe that the push worked.
#[must_use]
pub fn refusal(capabilities: &Capabilities, lines: &[(&[u8], &str)], hints: &[&str]) -> Option<Bytes> {
    match capabilities.report {
        Report::None => return None,
        // They differ only in what may follow an `ok`.
        Report::V1 | Report::V2 => {}
    }
    let report = report(lines)?;
    if !capabilities.side_band_64k {
        return Some(report.into());
    }
    let mut out = Vec::new();
    for hint in hints {
        pktline::encode(&mut out, format!("\u{2}{}\n", printable(hint, TEXT_BYTES)).as_bytes());
    }
    for chunk in report.chunks(BAND_BYTES) {
        pktline::encode(&mut out, &[b"\x01", chunk].concat());
    }
    // Without this flush and the report's own git waits for ever.
    out.extend_from_slice(FLUSH);
    Some(out.into())
}

fn report(lines: &[(&[u8], &str)]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    pktline::encode(&mut out, b"unpack ok\n");
    for (ref_name, reason) in lines {
        pktline::encode(&mut out, &refused_line(ref_name, reason)?);
    }
    out.extend_from_slice(FLUSH);
    Some(out)
}

/// `ng <ref> refused: <reason>`; the longest name that a push can hold leaves some 60 bytes for the reason.
fn refused_line(ref_name: &[u8], reason: &str) -> Option<Vec<u8>> {
    let before = [b"ng ", ref_name, b" ", REFUSED.as_bytes()].concat();
    let room = PAYLOAD_BYTES.checked_sub(before.len() + b"\n".len())?;
    let reason = printable(reason, TEXT_BYTES.min(room));
    let reason = if reason.trim().is_empty() { "no reason was given" } else { &reason };
    (reason.len() <= room).then(|| [&before, reason.as_bytes(), b"\n"].concat())
}

#[cfg(test)]
mod tests;
