//! What of the machine's files is seen: a list of places, of which the deeper one wins.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What is at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// An empty folder, to be written, gone with the command.
    Empty,
    /// A file without anything in it.
    Nothing,
    /// What is there, to be read.
    Shown,
    /// What is there, to be read and written.
    Shared,
}

/// The places, over a whole that can be read.
#[derive(Debug, Default)]
pub(super) struct Mounts {
    places: Vec<(PathBuf, What)>,
}

impl Mounts {
    /// Puts something at a place; the last one there wins.
    pub(super) fn add(&mut self, place: PathBuf, what: What) {
        self.places.retain(|(known, _)| *known != place);
        self.places.push((place, what));
    }

    /// Puts something at a place that stays there: a folder that is a place of its own cannot be moved away, with what is
    /// in it, and made anew.
    pub(super) fn pin(&mut self, place: PathBuf, what: What) {
        for above in place.ancestors().skip(1) {
            if self.at(above) == Some(What::Shared) && !self.places.iter().any(|(known, _)| known == above) {
                self.places.push((above.to_owned(), What::Shared));
            }
        }
        self.add(place, what);
    }

    /// The same at several.
    pub(super) fn extend(&mut self, places: &[PathBuf], what: What) {
        for place in places {
            self.add(place.clone(), what);
        }
    }

    /// Hides what is there, if anything is.
    pub(super) fn hide(&mut self, place: &Path) {
        if place.exists() {
            let what = if place.is_dir() { What::Empty } else { What::Nothing };
            self.add(place.to_owned(), what);
        }
    }

    /// Hides what would be seen only because the whole is.
    pub(super) fn hide_bare(&mut self, place: &Path) {
        if self.at(place).is_none() {
            self.hide(place);
        }
    }

    /// What is at a place, of what was put there or above.
    pub(super) fn at(&self, place: &Path) -> Option<What> {
        let above = self.places.iter().filter(|(known, _)| place.starts_with(known));
        above.max_by_key(|(known, _)| depth(known)).map(|(_, what)| *what)
    }

    /// Whether what is really there is seen.
    pub(super) fn shows(&self, place: &Path) -> bool {
        !matches!(self.at(place), Some(What::Empty | What::Nothing))
    }

    /// As bubblewrap takes them: in order, the outer ones first.
    pub(super) fn arguments(mut self) -> Vec<OsString> {
        self.places.sort_by_key(|(place, _)| depth(place));
        let mut arguments = Vec::new();
        for (place, what) in &self.places {
            let in_empty = place.parent().and_then(|parent| self.at(parent)) == Some(What::Empty);
            match what {
                // Nothing is there to be hidden.
                What::Empty | What::Nothing if in_empty => {}
                What::Empty => arguments.extend(["--tmpfs".into(), place.into()]),
                What::Nothing => arguments.extend(["--ro-bind".into(), "/dev/null".into(), place.into()]),
                What::Shown => arguments.extend(["--ro-bind".into(), place.into(), place.into()]),
                What::Shared => arguments.extend(["--bind".into(), place.into(), place.into()]),
            }
        }
        arguments
    }
}

fn depth(place: &Path) -> usize {
    place.components().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deeper_place_wins_and_the_outer_one_comes_first() {
        let mut mounts = Mounts::default();
        mounts.add("/h/work/.git/config".into(), What::Shown);
        mounts.add("/h/work".into(), What::Shared);
        mounts.add("/h".into(), What::Empty);
        mounts.add("/h/work/key".into(), What::Nothing);
        mounts.add("/h/other/key".into(), What::Nothing);
        assert_eq!(mounts.at(Path::new("/h/work/src")), Some(What::Shared));
        assert_eq!(mounts.at(Path::new("/h/.ssh")), Some(What::Empty));
        assert_eq!(mounts.at(Path::new("/usr")), None);
        assert!(!mounts.shows(Path::new("/h/work/key")) && mounts.shows(Path::new("/h/work/a")));
        let expected = "--tmpfs /h --bind /h/work /h/work --ro-bind /dev/null /h/work/key \
            --ro-bind /h/work/.git/config /h/work/.git/config";
        assert_eq!(mounts.arguments().join(" ".as_ref()), expected);
    }
}
