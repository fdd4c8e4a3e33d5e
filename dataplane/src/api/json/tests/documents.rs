//! Documents at random, against a reference that has the whole document and knows nothing of bytes that come later.

use super::*;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::Value;

/// A document as it is written: escapes, whitespace and keys that come twice.
#[derive(Debug, Clone)]
enum Document {
    Scalar(&'static str),
    Text(Written),
    Array(Vec<Document>),
    Object(Vec<(Written, Document)>),
}

/// The characters of a string, each with how it is written.
type Written = Vec<(char, String)>;

const KEYS: [&str; 10] = [
    "temp_clone_token",
    "download_url",
    "installed_version",
    "temp_clone_tokem",
    "download_url?",
    "nstalled_version",
    "\"",
    "",
    "url",
    "https://api.github.com/a",
];
const BEGINNINGS: [&str; 12] = [
    "",
    "https://api.github.com",
    "https://uploads.github.com",
    "https://ghes.corp/api/v3",
    "https://ghes.corp/api/uploads",
    "https://localhost:4443",
    "https://localhost:4443/api/uploads",
    "https://localhost:4443/api/upload",
    "https://git.door.test/api/v3",
    "https://api.github.co",
    " https://api.github.com",
    "temp_clone_token",
];
const ENDS: [&str; 10] =
    ["", "/", "/repos/o/r", "?token=x", "/f?a#b?c", "#a", ".evil/", "x", "\\\"\u{1}", "/\u{1f600}ü"];

/// A string whose every character may be an escape.
fn written(text: impl Strategy<Value = String>) -> impl Strategy<Value = Written> {
    let plain = prop::bool::weighted(0.5);
    (text, plain, prop::collection::vec(0..8_u8, 1..20)).prop_map(|(text, plain, ways)| {
        let ways = ways.into_iter().cycle().map(|way| if plain { 7 } else { way });
        text.chars().zip(ways).map(|(character, way)| (character, write(character, way))).collect()
    })
}

fn write(character: char, way: u8) -> String {
    let code = |upper: bool| {
        let unit = |unit: &u16| if upper { format!("\\u{unit:04X}") } else { format!("\\u{unit:04x}") };
        character.encode_utf16(&mut [0; 2]).iter().map(unit).collect()
    };
    match (character, way) {
        (_, 0) => code(false),
        (_, 1) => code(true),
        ('/', 2..=4) | ('"' | '\\', _) => format!("\\{character}"),
        ('\n', _) => "\\n".to_owned(),
        ('\0'..=' ', _) if character != ' ' => code(false),
        (_, _) => character.to_string(),
    }
}

fn document() -> impl Strategy<Value = Document> {
    let url = (select(&BEGINNINGS[..]), select(&ENDS[..])).prop_map(|(beginning, end)| format!("{beginning}{end}"));
    let key = prop_oneof![3 => select(&KEYS[..]).prop_map(str::to_owned), 1 => ".{0,5}"];
    let scalar = select(&["null", "true", "-1.5e3", "0"][..]).prop_map(Document::Scalar);
    let text = written(prop_oneof![4 => url, 1 => ".{0,12}"]).prop_map(Document::Text);
    prop_oneof![1 => scalar, 3 => text].prop_recursive(5, 60, 6, move |inner| {
        let members = prop::collection::vec((written(key.clone()), inner.clone()), 0..6);
        prop_oneof![
            1 => prop::collection::vec(inner, 0..6).prop_map(Document::Array),
            3 => members.prop_map(Document::Object),
        ]
    })
}

fn text(written: &Written) -> String {
    written.iter().map(|(character, _)| character).collect()
}

/// How many characters of a text go, what takes their place, and how many are left after that.
fn change(text: &str, treatment: Treatment, forge: Option<Forge>) -> (usize, &'static str, usize) {
    if treatment == Treatment::Empty {
        return (0, "", 0);
    }
    let leads = |base: &str| {
        text.strip_prefix(base).is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '?', '#']))
    };
    let longest = forge.into_iter().flatten().filter(|(base, _)| leads(base)).max_by_key(|(base, _)| base.len());
    let (base, door) = longest.unwrap_or_default();
    let kept = text.chars().skip(base.len());
    let kept = if treatment == Treatment::CutQuery { kept.take_while(|c| *c != '?').count() } else { kept.count() };
    (base.len(), door, kept)
}

fn inside(key: &str, treatment: Treatment) -> Treatment {
    match key {
        "temp_clone_token" => Treatment::Empty,
        "download_url" if treatment == Treatment::Keep => Treatment::CutQuery,
        _ => treatment,
    }
}

/// Writes documents: as they come, or as they are to go on.
struct Writer<G> {
    gaps: G,
    forge: Option<Forge>,
    changed: bool,
    out: String,
}

impl<G: Iterator<Item = &'static str>> Writer<G> {
    fn put(&mut self, token: &str) {
        self.out.push_str(token);
        self.out.extend(self.gaps.next());
    }

    fn string(&mut self, written: &Written, (skipped, door, kept): (usize, &str, usize)) {
        let rest: String = written.iter().skip(skipped).take(kept).map(|(_, raw)| raw.as_str()).collect();
        self.put(&format!("\"{door}{rest}\""));
    }

    fn document(&mut self, document: &Document, treatment: Treatment, version: Option<&str>) {
        match document {
            Document::Scalar(scalar) => self.put(scalar),
            Document::Text(written) if self.changed => {
                self.string(written, change(&text(written), treatment, self.forge));
            }
            Document::Text(written) => self.string(written, (0, "", written.len())),
            Document::Array(elements) => {
                self.put("[");
                for (n, element) in elements.iter().enumerate() {
                    if n > 0 {
                        self.put(",");
                    }
                    self.document(element, treatment, None);
                }
                self.put("]");
            }
            Document::Object(members) => {
                self.put("{");
                for (n, (key, value)) in members.iter().enumerate() {
                    if n > 0 {
                        self.put(",");
                    }
                    self.string(key, (0, "", key.len()));
                    self.put(":");
                    self.document(value, inside(&text(key), treatment), None);
                }
                let has_version = members.iter().any(|(key, _)| text(key) == "installed_version");
                if let Some(version) = version.filter(|_| self.changed && !has_version) {
                    let comma = if members.is_empty() { "" } else { "," };
                    self.out.extend([comma, "\"installed_version\":\"", version, "\""]);
                }
                self.put("}");
            }
        }
    }
}

/// The parsed document as it is to go on.
fn changed(value: Value, treatment: Treatment, forge: Option<Forge>) -> Value {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => value,
        Value::String(text) => {
            let (skipped, door, kept) = change(&text, treatment, forge);
            Value::String(door.chars().chain(text.chars().skip(skipped).take(kept)).collect())
        }
        Value::Array(elements) => elements.into_iter().map(|element| changed(element, treatment, forge)).collect(),
        Value::Object(members) => {
            let member = |(key, value): (String, _)| {
                let treatment = inside(&key, treatment);
                (key, changed(value, treatment, forge))
            };
            members.into_iter().map(member).collect()
        }
    }
}

/// The pieces of an input, of these sizes in turn.
fn pieces<'a>(mut input: &'a [u8], sizes: &[usize]) -> Vec<&'a [u8]> {
    let mut pieces = Vec::new();
    for size in sizes.iter().cycle() {
        if input.is_empty() {
            break;
        }
        let (piece, rest) = input.split_at((*size).min(input.len()));
        pieces.push(piece);
        input = rest;
    }
    pieces
}

fn sizes() -> impl Strategy<Value = Vec<usize>> {
    prop_oneof![prop::collection::vec(1..12_usize, 1..6), prop::collection::vec(1..400_usize, 1..6)]
}

fn forge() -> impl Strategy<Value = Option<Forge>> {
    prop::option::weighted(0.9, select(&[GITHUB, ENTERPRISE, LOCAL][..]))
}

fn version() -> impl Strategy<Value = Option<&'static str>> {
    prop::option::of(Just("99.0.0"))
}

fn fragments(special: bool) -> impl Strategy<Value = Vec<u8>> {
    let plain = [
        r"\u0068",
        r"\u00",
        r"\",
        "\"",
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "?",
        " ",
        "https:",
        "//api.github.c",
        "\u{fffd}",
    ];
    let named =
        ["\"temp_clone_token\"", "\"download_url\"", "https://api.github.com", "\"installed_version\"", "om"];
    let mut all = plain.to_vec();
    all.extend(named.iter().filter(|_| special));
    let fragment = prop_oneof![5 => select(all).prop_map(|text| text.as_bytes().to_vec()), 1 => prop::collection::vec(any::<u8>(), 1..4)];
    prop::collection::vec(fragment, 0..80).prop_map(|fragments| fragments.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn every_byte_that_is_not_to_change_comes_out_in_its_place(
        document in document(),
        gaps in prop::collection::vec(select(&["", "", " ", "\n\t", "\r\n  "][..]), 1..9),
        sizes in sizes(),
        forge in forge(),
        version in version(),
    ) {
        let write = |changed| {
            let mut writer = Writer { gaps: gaps.iter().copied().cycle(), forge, changed, out: String::new() };
            writer.document(&document, Treatment::Keep, version);
            writer.out
        };
        let given = write(false);
        let changes = Changes { links: forge.map(links), version };
        let passed = rewrite_chunks(&changes, pieces(given.as_bytes(), &sizes)).unwrap();
        prop_assert_eq!(String::from_utf8(passed).unwrap(), write(true), "{}", given);
    }

    #[test]
    fn a_parser_reads_the_document_that_was_meant(
        document in document(),
        pretty in any::<bool>(),
        sizes in sizes(),
        forge in forge(),
        version in version(),
    ) {
        let mut writer = Writer { gaps: std::iter::empty(), forge, changed: false, out: String::new() };
        writer.document(&document, Treatment::Keep, None);
        let value: Value = serde_json::from_str(&writer.out).unwrap();
        let given = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }.unwrap();
        let changes = Changes { links: forge.map(links), version };
        let passed = rewrite_chunks(&changes, pieces(given.as_bytes(), &sizes)).unwrap();
        let mut meant = changed(value, Treatment::Keep, forge);
        if let (Some(version), Some(members)) = (version, meant.as_object_mut()) {
            members.entry("installed_version").or_insert_with(|| version.into());
        }
        prop_assert_eq!(serde_json::from_slice::<Value>(&passed).unwrap(), meant, "{}", given);
    }

    #[test]
    fn nothing_is_lost_of_what_is_no_json(input in fragments(false), sizes in sizes()) {
        prop_assert_eq!(rewrite_chunks(&linked(GITHUB), pieces(&input, &sizes)), Ok(input));
    }

    #[test]
    fn what_is_no_json_comes_out_alike_at_any_chunking(input in fragments(true), sizes in sizes(), version in version()) {
        let changes = Changes { links: Some(links(GITHUB)), version };
        let whole = rewrite_chunks(&changes, [&input[..]]);
        prop_assert_eq!(rewrite_chunks(&changes, pieces(&input, &sizes)), whole);
    }
}
