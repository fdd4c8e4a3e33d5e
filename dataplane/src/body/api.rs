//! An answer of the API on its way down: decoded where it is coded, and changed where it is JSON, a bounded step at a
//! time.

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
pub struct ApiBody {
    gunzip: Option<Box<Gunzip>>,
    plain: Option<Bytes>,
    /// None: it is no JSON of the API's own.
    rewriter: Option<Rewriter>,
    /// Whether any byte came: a body of none is none in any coding.
    begun: bool,
}

impl ApiBody {
    /// JSON that comes plain, or in gzip, with these changes.
    #[must_use]
    pub fn json(changes: Changes, gzip: bool) -> Self {
        let rewriter = Some(Rewriter::new(changes));
        Self { gunzip: gzip.then(Box::default), plain: None, rewriter, begun: false }
    }

    /// Anything that comes in gzip, and is decoded alone.
    #[must_use]
    pub fn coded() -> Self {
        Self { gunzip: Some(Box::default()), plain: None, rewriter: None, begun: false }
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
        Ok(decoded.map(|bytes| self.rewrite(bytes)).transpose()?)
    }

    fn rewrite(&mut self, bytes: Bytes) -> Result<Bytes, TooDeep> {
        match &mut self.rewriter {
            Some(rewriter) => rewriter.push(&bytes),
            None => Ok(bytes),
        }
    }

    /// The credentials that did not pass so far.
    #[must_use]
    pub fn stopped(&self) -> Stopped {
        self.rewriter.as_ref().map(Rewriter::stopped).unwrap_or_default()
    }

    /// The body has ended: what was still held back.
    pub fn finish(&mut self) -> Result<Bytes, Unreadable> {
        let coded = self.gunzip.as_mut().filter(|_| self.begun);
        let rest = coded.map(|gunzip| gunzip.finish()).transpose()?.flatten();
        let mut out = BytesMut::from(self.rewrite(rest.unwrap_or_default())?);
        if let Some(rewriter) = &mut self.rewriter {
            out.extend_from_slice(&rewriter.finish()?);
        }
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
        passed(ApiBody::json(Changes { links: None, version: None }, gzip), body, chunk)
    }

    fn passed(mut answer: ApiBody, body: &[u8], chunk: usize) -> Result<Vec<u8>, Unreadable> {
        let mut out = Vec::new();
        for chunk in body.chunks(chunk) {
            answer.feed(Bytes::copy_from_slice(chunk));
            while let Some(bytes) = answer.step()? {
                out.extend_from_slice(&bytes);
            }
        }
        out.extend_from_slice(&answer.finish()?);
        Ok(out)
    }

    fn zipped(plain: &[u8]) -> Vec<u8> {
        let mut coder = GzEncoder::new(Vec::new(), Compression::default());
        coder.write_all(plain).unwrap();
        coder.finish().unwrap()
    }

    #[test]
    fn a_coded_body_is_changed_as_a_plain_one_is_at_any_chunking() {
        let plain = br#"{"a":[1,{"temp_clone_token":"secret"}],"b":"c"}"#;
        let expected = br#"{"a":[1,{"temp_clone_token":""}],"b":"c"}"#;
        let zipped = zipped(plain);
        for chunk in [1, 7, 1000] {
            assert_eq!(changed(plain, chunk, false).unwrap(), expected);
            assert_eq!(changed(&zipped, chunk, true).unwrap(), expected);
            assert_eq!(changed(&zipped[..zipped.len() - 1], chunk, true), Err(Unreadable));
            assert_eq!(changed(plain, chunk, true), Err(Unreadable));
            assert_eq!(changed(b"", chunk, true).unwrap(), b"");
        }
    }

    #[test]
    fn what_is_no_json_of_the_apis_own_is_decoded_and_not_changed() {
        let plain = br#"[{"temp_clone_token":"a file's", "b": "#.repeat(1000);
        let zipped = zipped(&plain);
        for chunk in [1, 7, 1000] {
            assert_eq!(passed(ApiBody::coded(), &zipped, chunk).unwrap(), plain);
            assert_eq!(passed(ApiBody::coded(), &plain, chunk), Err(Unreadable));
            assert_eq!(passed(ApiBody::coded(), b"", chunk).unwrap(), b"");
        }
    }
}
