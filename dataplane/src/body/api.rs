//! A JSON answer on its way down: decoded where it is coded, and changed, a bounded step at a time.

use bytes::{Bytes, BytesMut};

use crate::api::json::{Changes, Rewriter, Stopped, TooDeep};
use crate::gunzip::{BadGzip, Gunzip};

/// A body that is not what its head says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unreadable;

impl From<BadGzip> for Unreadable {
    fn from(BadGzip: BadGzip) -> Self {
        Self
    }
}

impl From<TooDeep> for Unreadable {
    fn from(TooDeep: TooDeep) -> Self {
        Self
    }
}

/// What is changed in one body.
pub struct JsonBody {
    gunzip: Option<Box<Gunzip>>,
    plain: Option<Bytes>,
    rewriter: Rewriter,
    /// Whether any byte came: a body of none is none in any coding.
    begun: bool,
}

impl JsonBody {
    /// The changes of a body that comes plain, or in gzip.
    #[must_use]
    pub fn new(changes: Changes, gzip: bool) -> Self {
        Self { gunzip: gzip.then(Box::default), plain: None, rewriter: Rewriter::new(changes), begun: false }
    }

    /// Takes bytes; those before must have been used up.
    pub fn feed(&mut self, bytes: Bytes) {
        self.begun |= !bytes.is_empty();
        match &mut self.gunzip {
            Some(gunzip) => gunzip.feed(bytes),
            None => self.plain = Some(bytes),
        }
    }

    /// The next bytes that go on; none: more are needed.
    pub fn step(&mut self) -> Result<Option<Bytes>, Unreadable> {
        let decoded = match &mut self.gunzip {
            Some(gunzip) => gunzip.step()?,
            None => self.plain.take(),
        };
        Ok(decoded.map(|bytes| self.rewriter.push(&bytes)).transpose()?)
    }

    /// The credentials that did not pass so far.
    #[must_use]
    pub fn stopped(&self) -> Stopped {
        self.rewriter.stopped()
    }

    /// The body has ended: what was still held back.
    pub fn finish(&mut self) -> Result<Bytes, Unreadable> {
        let coded = self.gunzip.as_mut().filter(|_| self.begun);
        let rest = coded.map(|gunzip| gunzip.finish()).transpose()?.flatten();
        let mut out = BytesMut::from(self.rewriter.push(&rest.unwrap_or_default())?.as_ref());
        out.extend_from_slice(&self.rewriter.finish()?);
        Ok(out.freeze())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn changed(body: &[u8], chunk: usize, gzip: bool) -> Result<Vec<u8>, Unreadable> {
        let mut json = JsonBody::new(Changes { links: None, version: None }, gzip);
        let mut out = Vec::new();
        for chunk in body.chunks(chunk) {
            json.feed(Bytes::copy_from_slice(chunk));
            while let Some(bytes) = json.step()? {
                out.extend_from_slice(&bytes);
            }
        }
        out.extend_from_slice(&json.finish()?);
        Ok(out)
    }

    #[test]
    fn a_coded_body_is_changed_as_a_plain_one_is_at_any_chunking() {
        let plain = br#"{"a":[1,{"temp_clone_token":"secret"}],"b":"c"}"#;
        let expected = br#"{"a":[1,{"temp_clone_token":""}],"b":"c"}"#;
        let mut coder = GzEncoder::new(Vec::new(), Compression::default());
        coder.write_all(plain).unwrap();
        let zipped = coder.finish().unwrap();
        for chunk in [1, 7, 1000] {
            assert_eq!(changed(plain, chunk, false).unwrap(), expected);
            assert_eq!(changed(&zipped, chunk, true).unwrap(), expected);
            assert_eq!(changed(&zipped[..zipped.len() - 1], chunk, true), Err(Unreadable));
            assert_eq!(changed(plain, chunk, true), Err(Unreadable));
            assert_eq!(changed(b"", chunk, true).unwrap(), b"");
        }
    }
}
