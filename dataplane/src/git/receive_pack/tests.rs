//! Every rule of the section, the recorded requests of six clients, any chunking, and git itself.

mod against_git;
mod recorded;
mod section;

use super::*;
use proptest::prelude::*;

const A: &str = "91eeac66400945bc371c3f4cb24fee9084fef656";
const ZERO: &str = "0000000000000000000000000000000000000000";

/// A section of these lines, with its flush.
fn section(lines: &[impl AsRef<[u8]>]) -> Vec<u8> {
    let mut out = Vec::new();
    for line in lines {
        pktline::encode(&mut out, line.as_ref());
    }
    out.extend_from_slice(pktline::FLUSH);
    out
}

/// The answer for a body in these chunks, and everything that the reader holds for upstream.
fn read_chunks<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> (Result<Section, Malformed>, Bytes) {
    let mut reader = SectionReader::new();
    let mut answer = Ok(None);
    for chunk in chunks {
        if !matches!(answer, Ok(None)) {
            break;
        }
        answer = reader.push(chunk);
    }
    let held = reader.pushed.clone().into();
    match answer {
        Ok(Some(section)) => (Ok(section), held),
        Ok(None) => (reader.finish(), held),
        Err(malformed) => (Err(malformed), held),
    }
}

fn read(body: &[u8]) -> Result<Section, Malformed> {
    read_chunks([body]).0
}

fn refs(section: &Section) -> Vec<&[u8]> {
    section.commands.iter().map(|command| &*command.ref_name).collect()
}

/// What breaks a section, at a place that is taken modulo its length.
#[derive(Debug, Clone)]
enum Damage {
    Replace(prop::sample::Index, u8),
    Remove(prop::sample::Index),
    Insert(prop::sample::Index, Vec<u8>),
    Cut(prop::sample::Index),
}

impl Damage {
    fn apply(&self, body: &mut Vec<u8>) {
        match self {
            Self::Replace(at, byte) => {
                let at = at.index(body.len());
                body[at] = *byte;
            }
            Self::Remove(at) => drop(body.remove(at.index(body.len()))),
            Self::Insert(at, bytes) => {
                let at = at.index(body.len() + 1);
                body.splice(at..at, bytes.iter().copied());
            }
            Self::Cut(at) => body.truncate(at.index(body.len()).max(1)),
        }
    }
}

fn damage() -> impl Strategy<Value = Damage> {
    let byte = || prop_oneof![Just(0), Just(b'\n'), Just(b' '), Just(b'0'), Just(b'\t'), any::<u8>()];
    let packet = prop_oneof![
        Just(b"0000".to_vec()),
        Just(b"0001".to_vec()),
        Just(b"0002".to_vec()),
        Just(b"0003".to_vec()),
        Just(b"0004".to_vec()),
        Just(b"0005\n".to_vec()),
        Just(b"000dpush-cert".to_vec()),
        prop::collection::vec(any::<u8>(), 1..6),
    ];
    prop_oneof![
        (any::<prop::sample::Index>(), byte()).prop_map(|(at, byte)| Damage::Replace(at, byte)),
        any::<prop::sample::Index>().prop_map(Damage::Remove),
        (any::<prop::sample::Index>(), packet).prop_map(|(at, bytes)| Damage::Insert(at, bytes)),
        any::<prop::sample::Index>().prop_map(Damage::Cut),
    ]
}

/// The lines of a push: most as a client would send them, some with names, blanks and capabilities that none would.
fn lines(ids: &'static [&'static str]) -> impl Strategy<Value = Vec<Vec<u8>>> {
    let id = || {
        let id = prop::sample::select(ids);
        (id, prop::bool::weighted(0.1))
            .prop_map(|(id, upper)| if upper { id.to_uppercase() } else { id.to_owned() })
    };
    let name = || {
        prop_oneof![
            30 => "refs/heads/[a-z]{1,4}",
            1 => Just(String::new()),
            2 => "refs/(heads|tags|pull)/[ -~]{0,6}",
            1 => "[ \\n\\r\\t\\x00a-c/]{1,6}",
            1 => Just("refs/heads/caf\u{e9}".to_owned()),
        ]
    };
    let end = || {
        let odd = prop::sample::select(&["\n\n", "\0", "\0 report-status\n", " ", "\r\n"][..]);
        prop_oneof![8 => Just(""), 8 => Just("\n"), 1 => odd]
    };
    let shallow = (id(), end()).prop_map(|(id, end)| format!("shallow {id}{end}"));
    let command = (id(), id(), name(), end()).prop_map(|(old, new, name, end)| format!("{old} {new} {name}{end}"));
    let first = (id(), id(), name(), prop::collection::vec(capability(), 0..4), end()).prop_map(
        |(old, new, name, words, end)| format!("{old} {new} {name}\0 report-status {}{end}", words.join(" ")),
    );
    let rest = prop::collection::vec(prop_oneof![16 => command, 1 => shallow.clone()], 0..4);
    (prop::collection::vec(shallow, 0..2), first, rest)
        .prop_map(|(shallow, first, rest)| shallow.into_iter().chain([first]).chain(rest).map(Into::into).collect())
}

fn capability() -> impl Strategy<Value = &'static str> {
    let usual =
        &["quiet", "atomic", "agent=x/1", "side-band", "unknown=1", "report-status-v2", "report-status=no", ""];
    let odd = &["\t", "\n", "\u{a0}", "object-format=sha256", "object-format", "push-options", "push-cert=nonce"];
    prop_oneof![16 => prop::sample::select(&usual[..]), 1 => prop::sample::select(&odd[..])]
}

/// A body: a section of such lines, sometimes damaged.
fn body(ids: &'static [&'static str]) -> impl Strategy<Value = Vec<u8>> {
    let damages = prop_oneof![2 => Just(Vec::new()), 1 => prop::collection::vec(damage(), 1..3)];
    (lines(ids), damages).prop_map(|(lines, damages)| {
        let mut body = section(&lines);
        for damage in &damages {
            damage.apply(&mut body);
        }
        body
    })
}
