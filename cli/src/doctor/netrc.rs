//! netrc, from which curl, and so git, takes passwords: <https://everything.curl.dev/usingcurl/netrc.html>.

use std::ops::Range;
use std::path::PathBuf;

use super::shapes::{find, is_bearer};
use super::surroundings::{Surroundings, text_of};
use super::{Findings, Kind};
use crate::env::is_forge;

/// Looks into each.
pub(super) fn look(surroundings: &Surroundings, findings: &mut Findings) {
    for file in files(surroundings) {
        let Some(text) = text_of(&file) else { continue };
        for entry in parse(&text).iter().filter(|entry| entry.is_credential()) {
            findings.add_in(Kind::Netrc, &file, entry.machine.unwrap_or("default"));
        }
    }
}

/// Where they are.
pub(super) fn files(surroundings: &Surroundings) -> Vec<PathBuf> {
    let named = surroundings.variable("NETRC").map(PathBuf::from);
    let homes = [".netrc", "_netrc"].into_iter().flat_map(|name| surroundings.in_homes(name));
    named.into_iter().chain(homes).collect()
}

/// A machine and its password.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entry<'a> {
    /// None is for every machine.
    machine: Option<&'a str>,
    password: Option<&'a str>,
    /// Where it stands, in bytes.
    pub(super) span: Range<usize>,
}

impl Entry<'_> {
    /// Whether GitHub would be given its password, or it is a token of GitHub's.
    pub(super) fn is_credential(&self) -> bool {
        let is_forges = self.machine.is_none_or(|machine| is_forge(&machine.to_ascii_lowercase()));
        self.password.is_some_and(|password| {
            !password.is_empty() && !is_bearer(password) && (is_forges || !find(password.as_bytes()).is_empty())
        })
    }
}

/// Reads the entries. What is in a macro is a macro's.
pub(super) fn parse(text: &str) -> Vec<Entry<'_>> {
    let mut entries: Vec<Entry<'_>> = Vec::new();
    let mut words = words(text);
    while let Some((at, word)) = words.next() {
        if let Some(entry) = entries.last_mut().filter(|entry| entry.span.end == text.len())
            && ["machine", "default", "macdef"].contains(&word)
        {
            entry.span.end = at;
        }
        match word {
            "machine" => {
                let machine = words.next().map(|(_, name)| name);
                entries.push(Entry { machine: machine.or(Some("")), password: None, span: at..text.len() });
            }
            "default" => entries.push(Entry { machine: None, password: None, span: at..text.len() }),
            "password" => {
                if let (Some(entry), Some((_, password))) = (entries.last_mut(), words.next()) {
                    entry.password = Some(password);
                }
            }
            "login" | "account" => {
                words.next();
            }
            _ => {}
        }
    }
    entries
}

/// The words of a text without its comments, and where they are; quotes around one go.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.split_inclusive('\n').scan(0_usize, |next, line| {
        let at = *next;
        *next += line.len();
        Some((at, line))
    });
    lines.filter(|(_, line)| !line.trim_start().starts_with('#')).flat_map(|(start, line)| {
        line.split_ascii_whitespace().map(move |word| {
            let at = start + (word.as_ptr() as usize - line.as_ptr() as usize);
            (at, word.trim_matches('"'))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEARER: &str = "sbr_r1.AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8";

    fn found(text: &str) -> Vec<&str> {
        let entries = parse(text);
        entries.into_iter().filter(Entry::is_credential).map(|entry| text.get(entry.span).unwrap()).collect()
    }

    #[test]
    fn an_entry_for_github_or_for_everybody_is_a_credential() {
        for text in [
            "machine github.com login x password y",
            "machine API.github.com\n  password \"y\"\n  login x\n",
            "default login x password y\n",
            "machine other.example password ghp_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789",
        ] {
            assert_eq!(found(text), [text]);
        }
        for text in [
            "",
            "machine",
            "machine github.com login x",
            "machine github.com password",
            "# machine github.com password y\n",
            "machine pypi.example login password password y",
            &format!("machine github.com password {BEARER}"),
        ] {
            assert!(found(text).is_empty(), "{text}");
        }
    }

    #[test]
    fn an_entry_ends_where_the_next_begins() {
        let text = "machine a.example password 1\nmachine github.com password 2\nmacdef init\n  cd /\n\ndefault password 3";
        assert_eq!(found(text), ["machine github.com password 2\n", "default password 3"]);
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read(text in "(machine|default|password|macdef|#|\"|[a-z ]|\n|é){0,60}") {
            for entry in parse(&text) {
                proptest::prop_assert!(text.get(entry.span).is_some());
            }
        }
    }
}
