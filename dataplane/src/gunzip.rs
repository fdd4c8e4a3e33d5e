//! Undoes `Content-Encoding: gzip`, a bounded step at a time: of a push, and of an answer that is changed here.
//!
//! Exactly one member and nothing after it (RFC 1952): two readers of a second member could see two pushes.

use std::io::Write as _;

use bytes::{Buf, Bytes};
use flate2::write::GzDecoder;

/// Input bytes a step. Deflate grows at most 1032 times, so a step gives at most about half a mebibyte.
const STEP: usize = 512;

/// A body that is not exactly one whole gzip member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadGzip;

/// The decoder of one body.
pub struct Gunzip {
    decoder: GzDecoder<Vec<u8>>,
    input: Bytes,
}

impl Default for Gunzip {
    fn default() -> Self {
        Self { decoder: GzDecoder::new(Vec::new()), input: Bytes::new() }
    }
}

impl Gunzip {
    /// Takes input; the input before it must have been used up.
    pub fn feed(&mut self, input: Bytes) {
        debug_assert!(self.input.is_empty());
        self.input = input;
    }

    /// The next decoded bytes; none: more input is needed.
    pub fn step(&mut self) -> Result<Option<Bytes>, BadGzip> {
        while !self.input.is_empty() {
            let step = self.input.slice(..self.input.len().min(STEP));
            let taken = self.decoder.write(&step).map_err(|_broken| BadGzip)?;
            // After the member's end nothing is taken any more.
            if taken == 0 {
                return Err(BadGzip);
            }
            self.input.advance(taken);
            let decoded = self.decoded();
            if decoded.is_some() {
                return Ok(decoded);
            }
        }
        Ok(None)
    }

    /// The input has ended: checks the member's length and checksum, and gives what was still inside.
    pub fn finish(&mut self) -> Result<Option<Bytes>, BadGzip> {
        self.decoder.try_finish().map_err(|_broken| BadGzip)?;
        Ok(self.decoded())
    }

    fn decoded(&mut self) -> Option<Bytes> {
        let decoded = std::mem::take(self.decoder.get_mut());
        (!decoded.is_empty()).then(|| decoded.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;

    fn gzip(data: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(data).unwrap();
        encoder.finish().unwrap()
    }

    fn gunzip(input: &[u8], chunk: usize) -> Result<(Vec<u8>, usize), BadGzip> {
        let (mut gunzip, mut out, mut largest) = (Gunzip::default(), Vec::new(), 0);
        for chunk in input.chunks(chunk) {
            gunzip.feed(Bytes::copy_from_slice(chunk));
            while let Some(bytes) = gunzip.step()? {
                largest = largest.max(bytes.len());
                out.extend_from_slice(&bytes);
            }
        }
        out.extend_from_slice(&gunzip.finish()?.unwrap_or_default());
        Ok((out, largest))
    }

    #[test]
    fn one_member_is_decoded_at_any_chunking() {
        let data: Vec<u8> = (0..5000_u32).flat_map(u32::to_le_bytes).collect();
        for chunk in [1, 7, 512, 513, 1 << 20] {
            assert_eq!(gunzip(&gzip(&data), chunk).unwrap().0, data);
        }
        assert_eq!(gunzip(&gzip(b""), 3).unwrap().0, b"");
    }

    #[test]
    fn anything_but_one_whole_member_is_refused() {
        let good = gzip(b"hello");
        let two = [good.clone(), good.clone()].concat();
        let trailing = [good.clone(), b"x".to_vec()].concat();
        let mut checksum = good.clone();
        *checksum.get_mut(good.len() - 8).unwrap() ^= 1;
        for broken in [two, trailing, checksum, good[..good.len() - 1].to_vec(), b"plain".to_vec(), Vec::new()] {
            for chunk in [1, 1 << 20] {
                assert_eq!(gunzip(&broken, chunk).unwrap_err(), BadGzip);
            }
        }
    }

    #[test]
    fn a_bomb_comes_out_in_bounded_steps() {
        let (out, largest) = gunzip(&gzip(&vec![0; 32 << 20]), 1 << 20).unwrap();
        assert_eq!(out.len(), 32 << 20);
        assert!(largest <= STEP * 1032 + 64 * 1024, "{largest}");
    }
}
