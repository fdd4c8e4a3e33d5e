//! Targets that two readers could take for different ones.

use percent_encoding::percent_decode_str;

/// How often a text is decoded. One that could be decoded once more is refused for that alone: every round costs the
/// whole length, and a client can make it as many rounds as it sends bytes.
const DEPTH: usize = 4;

/// What a text reads as at each depth of percent-decoding, itself first.
pub(crate) struct Readings {
    texts: Vec<String>,
    /// It could be decoded once more.
    deeper: bool,
}

/// What an encoded slash is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slashes {
    /// A trap: the path names an owner, a repository and words.
    Refused,
    /// Part of a name, as in the API's paths of refs and files.
    Legal,
}

impl Readings {
    pub(crate) fn of(text: &str) -> Self {
        let decode = |text: &String| {
            let decoded = percent_decode_str(text).decode_utf8_lossy().into_owned();
            (decoded != *text).then_some(decoded)
        };
        let mut readings = std::iter::successors(Some(text.to_owned()), decode);
        let texts = readings.by_ref().take(DEPTH).collect();
        Self { texts, deeper: readings.next().is_some() }
    }

    /// Whether a reader, at some depth or deeper than is looked, could see this.
    pub(crate) fn may_show(&self, seen: impl Fn(&str) -> bool) -> bool {
        self.deeper || self.texts.iter().any(|text| seen(text))
    }

    /// Whether some reader could see another path in this one.
    pub(super) fn hides_a_path(&self, slashes: Slashes) -> bool {
        let path = self.texts.first().map_or("", String::as_str);
        let count = |text: &str| text.matches('/').count();
        let trap = |segment: &str| segment == "." || segment == "..";
        let is_root = path == "/";
        let empty = !is_root && path.split('/').skip(1).any(str::is_empty);
        empty
            || self.may_show(|text| {
                text.contains(['\\', '\u{fffd}'])
                    || text.contains(|c: char| c.is_control())
                    || (slashes == Slashes::Refused && count(text) != count(path))
                    || (!is_root && text.split('/').skip(1).any(trap))
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_read_at_every_depth_and_no_deeper_than_is_worth_it() {
        let readings = Readings::of("a%2562");
        assert_eq!(readings.texts, ["a%2562", "a%62", "ab"]);
        assert!(!readings.deeper);
        let deep = Readings::of(&format!("%{}41", "25".repeat(30_000)));
        assert_eq!((deep.texts.len(), deep.deeper), (DEPTH, true));
        assert!(deep.may_show(|_| false));
        assert!(!Readings::of("%2525").may_show(|text| text == "25"));
    }
}
