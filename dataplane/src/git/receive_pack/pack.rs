//! What may follow a command section.

use super::{Malformed, Section};

const MAGIC: &[u8; 4] = b"PACK";

/// Judges the bytes after a section: a pack when a command needs one, else nothing.
///
/// Git ignores what follows a probe or deletes; nothing that it ignores is passed on. Without a pack it fails every
/// command, so that is refused here already.
#[derive(Debug)]
pub struct PackStart {
    /// What of the magic has not come yet; none when no pack may come.
    missing: Option<&'static [u8]>,
}

impl PackStart {
    /// Bytes after which a pack is known for one.
    pub const MAGIC_BYTES: usize = MAGIC.len();

    /// What may follow `section`.
    #[must_use]
    pub fn after(section: &Section) -> Self {
        let needs_pack = !section.is_probe() && !section.deletes_only();
        Self { missing: needs_pack.then_some(MAGIC) }
    }

    /// Takes the next bytes after the section, in any chunking. Nothing that it refuses may go upstream.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), Malformed> {
        let Some(missing) = self.missing else {
            return if bytes.is_empty() { Ok(()) } else { Err(Malformed::UnexpectedPack) };
        };
        if missing.iter().zip(bytes).any(|(wanted, byte)| wanted != byte) {
            return Err(Malformed::NotAPack);
        }
        self.missing = Some(missing.get(bytes.len()..).unwrap_or_default());
        Ok(())
    }

    /// The body has ended.
    pub fn finish(self) -> Result<(), Malformed> {
        match self.missing {
            None | Some([]) => Ok(()),
            Some(_) => Err(Malformed::PackMissing),
        }
    }
}
