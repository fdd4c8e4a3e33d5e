//! Lists, a page at a time.

use crate::run::Invalid;

/// Rows on a page when a request does not say.
const DEFAULT: u32 = 100;
/// Most rows on a page.
const MOST: u32 = 1000;
/// Bytes of rows in one answer: below what clients take, with room for the rest of it.
const BYTES: usize = 3 << 20;

/// How many rows a request asks for.
pub(super) fn size(asked: u32) -> Result<u32, Invalid> {
    match asked {
        0 => Ok(DEFAULT),
        1..=MOST => Ok(asked),
        _ => Err(Invalid::PageSize),
    }
}

/// The first messages that fit an answer; the first of all fits any.
pub(super) fn as_fit<M: prost::Message>(messages: impl Iterator<Item = M>) -> Vec<M> {
    let mut room = Room::default();
    messages.take_while(|message| room.takes(message)).collect()
}

/// What is in an answer.
#[derive(Debug, Default)]
pub(super) struct Room(usize);

impl Room {
    /// Whether one more message fits.
    pub(super) fn takes(&mut self, message: &impl prost::Message) -> bool {
        self.0 = self.0.saturating_add(message.encoded_len() + 8);
        self.0 <= BYTES
    }
}
