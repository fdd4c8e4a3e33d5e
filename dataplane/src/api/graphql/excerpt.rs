//! What a client sent, where a refusal's words repeat a bit of it.

use std::fmt;

/// Most characters of an excerpt.
const MOST_CHARS: usize = 80;

/// The beginning of a text, in printable ASCII: safe to show on a terminal, in a log and in a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excerpt(String);

impl Excerpt {
    /// What may be shown of `text`.
    #[must_use]
    pub fn of(text: &str) -> Self {
        let shown = |c: char| if c.is_ascii_graphic() || c == ' ' { c } else { '?' };
        Self(text.chars().take(MOST_CHARS).map(shown).collect())
    }
}

impl fmt::Display for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
