//! A request's head, line by line: the framing that it gives, or why it gives none for sure.

use crate::headers::BadFraming;

/// How a request's body is framed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// There is no body.
    Empty,
    /// This many bytes.
    Length(u64),
    /// Chunks.
    Chunked,
}

/// A head as far as it was read.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Head {
    version: Option<Version>,
    framing: Option<Framing>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    Http10,
    Http11,
}

impl Head {
    /// Takes a line without its end. Something: the head is over.
    pub(super) fn line(&mut self, line: &[u8]) -> Result<Option<Framing>, BadFraming> {
        let Some(version) = self.version else {
            // Empty lines before a request are skipped (RFC 9112, section 2.2).
            if !line.is_empty() {
                self.version = Some(request_line(line).ok_or(BadFraming::Line)?);
            }
            return Ok(None);
        };
        if line.is_empty() {
            return Ok(Some(self.framing.unwrap_or(Framing::Empty)));
        }
        let (name, value) = field(line).ok_or(BadFraming::Line)?;
        if name.eq_ignore_ascii_case(b"content-length") {
            self.framing = match self.framing {
                None => Some(Framing::Length(decimal(value).ok_or(BadFraming::Length)?)),
                Some(Framing::Chunked) => return Err(BadFraming::Coding),
                Some(Framing::Empty | Framing::Length(_)) => return Err(BadFraming::Length),
            };
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            let chunked = value.eq_ignore_ascii_case(b"chunked");
            if self.framing.is_some() || !chunked || version == Version::Http10 {
                return Err(BadFraming::Coding);
            }
            self.framing = Some(Framing::Chunked);
        }
        Ok(None)
    }
}

/// Whether this may be a trailer: a field, and none that frames a message.
pub(super) fn is_trailer(line: &[u8]) -> bool {
    let frames = |name: &[u8]| {
        let names: [&[u8]; 2] = [b"content-length", b"transfer-encoding"];
        names.iter().any(|known| name.eq_ignore_ascii_case(known))
    };
    field(line).is_some_and(|(name, _)| !frames(name))
}

/// Tabs, and all that is neither a control character nor the end of a line.
pub(super) fn is_text(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == b'\t' || !byte.is_ascii_control())
}

fn request_line(line: &[u8]) -> Option<Version> {
    let mut words = line.split(|byte| *byte == b' ');
    let (method, target, version) = (words.next()?, words.next()?, words.next()?);
    let fits = is_token(method) && !target.is_empty() && !target.iter().any(u8::is_ascii_control);
    match version {
        b"HTTP/1.1" if fits && words.next().is_none() => Some(Version::Http11),
        b"HTTP/1.0" if fits && words.next().is_none() => Some(Version::Http10),
        _ => None,
    }
}

/// A field's name and value. A folded line, or a space before the colon, gives a name that is no token.
fn field(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = line.iter().position(|byte| *byte == b':')?;
    let (name, rest) = line.split_at_checked(colon)?;
    let value = rest.strip_prefix(b":")?;
    (is_token(name) && is_text(value)).then_some((name, value.trim_ascii()))
}

fn is_token(bytes: &[u8]) -> bool {
    let legal = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    !bytes.is_empty() && bytes.iter().all(legal)
}

fn decimal(digits: &[u8]) -> Option<u64> {
    let plain = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(digits).ok().filter(|_| plain)?.parse().ok()
}
