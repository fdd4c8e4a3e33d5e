//! Pkt-lines: four hex digits of length, which count themselves, then the payload.
//!
//! Format: <https://git-scm.com/docs/gitprotocol-common#_pkt_line_format>.

use bytes::BufMut;

/// Most bytes of a packet, its length included: git's `LARGE_PACKET_MAX`.
pub const PACKET_BYTES: usize = 65_520;
/// Most bytes of a packet's payload.
pub const PAYLOAD_BYTES: usize = PACKET_BYTES - HEADER_BYTES;
/// The packet without a payload that ends a section.
pub const FLUSH: &[u8] = b"0000";

const HEADER_BYTES: usize = 4;

/// One packet, borrowed from the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packet<'a> {
    /// `0000`.
    Flush,
    /// A payload; `0004` is an empty one, as git reads it.
    Data(&'a [u8]),
}

/// Why four bytes are no packet's length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidLength {
    /// Not four hex digits. A sign or a space is none, whatever an integer parser makes of it.
    #[error("a pkt-line's length is not four hex digits")]
    Digits,
    /// `0001` and `0002`, which protocol version 2 gives a meaning and no format here has, or `0003`.
    #[error("a pkt-line has a reserved length")]
    Reserved,
    /// Above [`PACKET_BYTES`].
    #[error("a pkt-line is longer than 65520 bytes")]
    TooLong,
}

/// Reads the first packet of `input`, and how many bytes it took; `None` while it is incomplete.
pub fn read(input: &[u8]) -> Result<Option<(Packet<'_>, usize)>, InvalidLength> {
    match length(input)? {
        None => Ok(None),
        Some(0) => Ok(Some((Packet::Flush, HEADER_BYTES))),
        Some(length) => Ok(input.get(HEADER_BYTES..length).map(|payload| (Packet::Data(payload), length))),
    }
}

/// The bytes that the first packet of `input` takes, as soon as its length is there: a limit is checked before the
/// payload is waited for.
pub fn size(input: &[u8]) -> Result<Option<usize>, InvalidLength> {
    Ok(length(input)?.map(|length| length.max(HEADER_BYTES)))
}

/// Appends one packet. The payload is not split: the caller keeps it within [`PAYLOAD_BYTES`].
pub fn encode(out: &mut impl BufMut, payload: &[u8]) {
    debug_assert!(payload.len() <= PAYLOAD_BYTES, "a payload that no packet can hold");
    out.put_slice(format!("{:04x}", payload.len() + HEADER_BYTES).as_bytes());
    out.put_slice(payload);
}

/// The number that the first four bytes say: 0 for a flush, else 4 and more.
fn length(input: &[u8]) -> Result<Option<usize>, InvalidLength> {
    let Some((digits, _)) = input.split_first_chunk::<HEADER_BYTES>() else {
        return Ok(None);
    };
    let mut length = 0;
    for digit in digits {
        length = length * 16 + hex(*digit).ok_or(InvalidLength::Digits)?;
    }
    match length {
        1..=3 => Err(InvalidLength::Reserved),
        0..=PACKET_BYTES => Ok(Some(length)),
        _ => Err(InvalidLength::TooLong),
    }
}

fn hex(digit: u8) -> Option<usize> {
    match digit {
        b'0'..=b'9' => Some(usize::from(digit - b'0')),
        b'a'..=b'f' => Some(usize::from(digit - b'a') + 10),
        b'A'..=b'F' => Some(usize::from(digit - b'A') + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_its_payload_and_what_it_took() {
        assert_eq!(read(b"0006ab0000"), Ok(Some((Packet::Data(b"ab"), 6))));
        assert_eq!(read(b"000Aabcdef"), Ok(Some((Packet::Data(b"abcdef"), 10))));
        assert_eq!(read(b"0004x"), Ok(Some((Packet::Data(b""), 4))));
        assert_eq!(read(b"0000PACK"), Ok(Some((Packet::Flush, 4))));
    }

    #[test]
    fn an_incomplete_packet_asks_for_more() {
        for input in [&b""[..], b"0", b"000", b"0006", b"0006a"] {
            assert_eq!(read(input), Ok(None), "{input:?}");
        }
        assert_eq!(size(b"0006"), Ok(Some(6)));
        assert_eq!(size(b"0000"), Ok(Some(4)));
    }

    #[test]
    fn only_four_hex_digits_are_a_length() {
        for input in [b"+0a4", b"-001", b" 0a4", b"0x1f", b"0_10", b"00g0", b"\x1f\x8b\x08\x00", b"<htm"] {
            assert_eq!(read(input), Err(InvalidLength::Digits), "{input:?}");
        }
    }

    #[test]
    fn a_reserved_length_and_one_above_gits_most_are_refused() {
        for input in [b"0001", b"0002", b"0003"] {
            assert_eq!(read(input), Err(InvalidLength::Reserved));
        }
        assert_eq!(size(b"fff0"), Ok(Some(PACKET_BYTES)));
        assert_eq!(size(b"fff1"), Err(InvalidLength::TooLong));
        assert_eq!(size(b"ffff"), Err(InvalidLength::TooLong));
    }

    #[test]
    fn what_is_encoded_is_read_back() {
        for payload in [vec![], vec![b'x'; 1], vec![0; PAYLOAD_BYTES]] {
            let mut out = Vec::new();
            encode(&mut out, &payload);
            assert_eq!(read(&out), Ok(Some((Packet::Data(&payload), out.len()))));
        }
    }
}
