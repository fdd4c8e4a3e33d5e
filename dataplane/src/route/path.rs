//! Paths that two readers could take for different ones.

use percent_encoding::percent_decode_str;

/// How often a path may be percent-encoded before it is refused for that alone.
const DECODING_DEPTH: usize = 4;

/// What an encoded slash is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slashes {
    /// A trap: the path names an owner, a repository and words.
    Refused,
    /// Part of a name, as in the API's paths of refs and files.
    Legal,
}

/// Whether some reader, at some depth of decoding, could see another path in this one.
pub(super) fn hides_a_path(path: &str, slashes: Slashes) -> bool {
    let mut text = path.to_owned();
    for depth in 0..DECODING_DEPTH {
        let traps = |segment: &str| segment == "." || segment == ".." || (segment.is_empty() && depth == 0);
        let count = |text: &str| text.matches('/').count();
        if text.contains(['\\', '\u{fffd}'])
            || text.contains(|c: char| c.is_control())
            || (slashes == Slashes::Refused && count(&text) != count(path))
            || (path != "/" && text.split('/').skip(1).any(traps))
        {
            return true;
        }
        let decoded = percent_decode_str(&text).decode_utf8_lossy().into_owned();
        if decoded == text {
            return false;
        }
        text = decoded;
    }
    true
}
