//! What the first command of a push asks for.

use super::{Malformed, ObjectFormat};
use crate::git::split_once;

/// Most bytes of the agent that are kept, for the log.
const AGENT_BYTES: usize = 128;

/// The capabilities of a push. Unknown ones are tolerated: they go upstream with the section.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Capabilities {
    /// How the client wants to be told each ref's outcome.
    pub report: Report,
    /// The answer is multiplexed: data on band 1, words on band 2.
    pub side_band_64k: bool,
    /// Either every command takes effect or none.
    pub atomic: bool,
    /// No progress is wanted.
    pub quiet: bool,
    /// The object format it named; none means sha1.
    pub object_format: Option<ObjectFormat>,
    /// The client's own name, printable ASCII, at most 128 bytes.
    pub agent: Option<String>,
}

/// The form of the report that ends a push.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Report {
    /// The client did not ask, and cannot be told in one.
    #[default]
    None,
    /// `report-status`.
    V1,
    /// `report-status-v2`.
    V2,
}

impl Capabilities {
    /// Parses what followed the NUL, without the final LF.
    ///
    /// Git looks for words between blanks of four kinds, other servers split at spaces alone. Only printable ASCII
    /// reads the same to all of them.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        if !bytes.iter().all(|byte| matches!(byte, b' '..=b'~')) {
            return Err(Malformed::CapabilityBytes);
        }
        let mut parsed = Self::default();
        for word in bytes.split(|byte| *byte == b' ') {
            parsed.take(word)?;
        }
        Ok(parsed)
    }

    /// A value does not hide a word from git: `push-options=no` asks for push options.
    fn take(&mut self, word: &[u8]) -> Result<(), Malformed> {
        let (name, value) = split_once(word, b'=').map_or((word, None), |(name, value)| (name, Some(value)));
        match name {
            b"report-status-v2" => self.report = Report::V2,
            b"report-status" if self.report == Report::None => self.report = Report::V1,
            b"side-band-64k" => self.side_band_64k = true,
            b"atomic" => self.atomic = true,
            b"quiet" => self.quiet = true,
            b"push-options" => return Err(Malformed::PushOptions),
            b"push-cert" => return Err(Malformed::PushCertificate),
            b"object-format" => self.take_object_format(value)?,
            b"agent" => self.agent = Some(agent(value.unwrap_or_default())),
            _ => {}
        }
        Ok(())
    }

    /// Git takes the first of two; another server might take the last.
    fn take_object_format(&mut self, value: Option<&[u8]>) -> Result<(), Malformed> {
        let format = match value {
            Some(b"sha1") => ObjectFormat::Sha1,
            Some(b"sha256") => ObjectFormat::Sha256,
            Some(_) | None => return Err(Malformed::ObjectFormat),
        };
        if self.object_format.replace(format).is_some() { Err(Malformed::ObjectFormat) } else { Ok(()) }
    }
}

fn agent(value: &[u8]) -> String {
    value.iter().take(AGENT_BYTES).map(|byte| char::from(*byte)).collect()
}
