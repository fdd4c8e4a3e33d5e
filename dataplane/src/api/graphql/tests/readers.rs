//! Readers other than ours: whatever is let through has the same tokens for all of them.

use super::*;
use proptest::collection::vec;
use proptest::prelude::*;

/// How lexers in use differ, or have differed, from the grammar.
#[derive(Debug, Clone, Copy)]
enum Quirk {
    /// Only a line feed ends a comment.
    LongComments,
    /// A Unicode line separator ends one too.
    ShortComments,
    /// A block string takes up to two quotation marks more at its end.
    GreedyBlocks,
    /// A backslash escapes nothing in a block string.
    PlainBlocks,
    /// There are no block strings.
    NoBlocks,
    /// `\\"` does not end a string.
    EscapedEnds,
    /// A line end ends a string.
    ShortStrings,
    /// Line ends between quotation marks are mended before anything is read.
    MendedLines,
}

/// A reader with some of the quirks, as bits.
#[derive(Debug, Clone, Copy)]
struct Reader(u8);

impl Reader {
    const PLAIN: Self = Self(0);

    fn with(quirk: Quirk) -> Self {
        Self(1 << quirk as u8)
    }

    /// Any combination but one: a reader that has neither block strings nor strings over lines gives up on a block
    /// string over lines.
    fn any() -> impl Strategy<Value = Self> {
        let known = |reader: &Self| !(reader.has(Quirk::NoBlocks) && reader.has(Quirk::ShortStrings));
        any::<u8>().prop_map(Self).prop_filter("a reader that reads on", known)
    }

    fn has(self, quirk: Quirk) -> bool {
        self.0 & Self::with(quirk).0 != 0
    }

    /// The tokens of a document, its blanks, comments and strings aside.
    fn tokens(self, document: &str) -> Vec<String> {
        let document = if self.has(Quirk::MendedLines) { mended(document) } else { document.to_owned() };
        let (mut rest, mut tokens) = (document.as_str(), Vec::new());
        while let Some(first) = rest.chars().next() {
            let length = match first {
                '#' => rest.find(|c| self.ends_comment(c)).unwrap_or(rest.len()),
                '"' => self.string(rest),
                c if is_word(c) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
                c => c.len_utf8(),
            };
            let (token, after) = rest.split_at(length);
            if !matches!(first, '#' | '"' | ' ' | ',' | '\t' | '\r' | '\n' | '\u{feff}' | '\u{2028}') {
                tokens.push(token.to_owned());
            }
            rest = after;
        }
        tokens
    }

    fn ends_comment(self, c: char) -> bool {
        c == '\n'
            || (c == '\r' && !self.has(Quirk::LongComments))
            || (c == '\u{2028}' && self.has(Quirk::ShortComments))
    }

    /// The length of the string that `text` begins with.
    fn string(self, text: &str) -> usize {
        let quote = if text.starts_with("\"\"\"") && !self.has(Quirk::NoBlocks) { "\"\"\"" } else { "\"" };
        let mut rest = text.split_at(quote.len()).1;
        while !rest.is_empty() {
            if let Some(after) = rest.strip_prefix(quote) {
                let more = after.chars().take(2).take_while(|c| *c == '"').count();
                let greedy = self.has(Quirk::GreedyBlocks) && quote.len() == 3;
                return text.len() - after.len() + if greedy { more } else { 0 };
            }
            if self.has(Quirk::ShortStrings) && quote.len() == 1 && rest.starts_with(['\n', '\r']) {
                break;
            }
            rest = self.past_one(rest, quote.len() == 3);
        }
        text.len() - rest.len()
    }

    /// What follows one character of a string, or one escape.
    fn past_one(self, rest: &str, is_block: bool) -> &str {
        let mut chars = rest.chars();
        if chars.next() != Some('\\') {
            return chars.as_str();
        }
        if is_block {
            let escaped = chars.as_str().strip_prefix("\"\"\"").filter(|_| !self.has(Quirk::PlainBlocks));
            return escaped.unwrap_or(chars.as_str());
        }
        if !self.has(Quirk::EscapedEnds) || chars.as_str().starts_with('"') {
            chars.next();
        }
        chars.as_str()
    }

    /// Whether a definition of this reader's document is something else than a query or a fragment.
    fn sees_more_than_queries(self, document: &str) -> bool {
        let (mut depth, mut starts) = (0_i32, true);
        self.tokens(document).iter().any(|token| {
            let hidden = starts && depth == 0 && !matches!(token.as_str(), "{" | "query" | "fragment");
            depth += match token.as_str() {
                "{" | "(" | "[" => 1,
                "}" | ")" | "]" => -1,
                _ => 0,
            };
            starts = token == "}" && depth == 0;
            hidden
        })
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn mended(document: &str) -> String {
    let (mut rest, mut inside, mut mended) = (document, false, String::new());
    while let Some(c) = rest.chars().next() {
        let whole = ["\\\"", "\"\"\""].into_iter().find(|whole| rest.starts_with(whole));
        let (taken, after) = rest.split_at(whole.map_or(c.len_utf8(), str::len));
        inside ^= taken == "\"";
        mended.push_str(match taken {
            "\n" if inside => "\\n",
            "\r" if inside => "\\r",
            taken => taken,
        });
        rest = after;
    }
    mended
}

#[test]
fn a_mutation_that_only_another_reader_sees_is_refused() {
    let cases = [
        ("{a #\r(b:\"\"\"\n} mutation{x} #\r\"\"\")\r}", Quirk::LongComments, Ambiguity::CarriageReturn),
        ("{a}#\u{2028}mutation{x}", Quirk::ShortComments, Ambiguity::Character('\u{2028}')),
        ("{a(b:[\"\"\"c\"\"\"\"\"\" \"])} mutation{x} #\"\"\"])}", Quirk::GreedyBlocks, Ambiguity::TouchingStrings),
        ("{a(b:\"\"\"\\\"\"\")} mutation{x} #\"\"\")}", Quirk::PlainBlocks, Ambiguity::BlockString),
        ("{a(b:\"\"\" \" )} mutation{x} #\"\"\")}", Quirk::NoBlocks, Ambiguity::BlockString),
        ("{a(b:\"\\\\\" c:\")} mutation{x} #\")}", Quirk::EscapedEnds, Ambiguity::StringBackslash),
        ("{a(b:\"\n)} mutation{x} #\")}", Quirk::ShortStrings, Ambiguity::StringLines),
        ("{a #\"\n{b #\"\n} mutation{x} #\"\n} #\"", Quirk::MendedLines, Ambiguity::QuotedComment),
    ];
    for (document, quirk, why) in cases {
        assert!(!Reader::PLAIN.sees_more_than_queries(document), "{document:?}");
        assert!(Reader::with(quirk).sees_more_than_queries(document), "{document:?} {quirk:?}");
        assert_eq!(judge(&asking(document)), Err(why.into()), "{document:?}");
    }
}

#[test]
fn what_lexers_do_not_agree_on_is_refused_by_name() {
    for (document, why) in [
        ("\u{feff}{a}", Ambiguity::Character('\u{feff}')),
        ("{a}#\u{feff}", Ambiguity::Character('\u{feff}')),
        ("{a(b:\"\u{2029}\")}", Ambiguity::Character('\u{2029}')),
        ("{a\0}", Ambiguity::Character('\0')),
        ("{a}\0mutation{b}", Ambiguity::Character('\0')),
        ("{a}#\u{b}", Ambiguity::Character('\u{b}')),
        ("{a}\u{c}", Ambiguity::Character('\u{c}')),
        ("{a}#\u{85}mutation{b}", Ambiguity::Character('\u{85}')),
        ("{a(b:\"\u{7f}\")}", Ambiguity::Character('\u{7f}')),
        ("query{a}#\rmutation{b}", Ambiguity::CarriageReturn),
        ("{a\r}", Ambiguity::CarriageReturn),
        ("{a}\r", Ambiguity::CarriageReturn),
        ("{a}\r\r\n", Ambiguity::CarriageReturn),
        ("{a} # the \"first\" one", Ambiguity::QuotedComment),
        ("{a(b:\"\n\")}", Ambiguity::StringLines),
        ("{a(b:\"\n} mutation{x} #\")}", Ambiguity::StringLines),
        ("{a(b:\"c\\\\\")}", Ambiguity::StringBackslash),
        ("{a(b:\"\"\"c\\\"\"\"d\"\"\")}", Ambiguity::BlockString),
        ("{a(b:\"\"\"c\"d\"\"\")}", Ambiguity::BlockString),
        ("{a(b:[\"c\"\"d\"])}", Ambiguity::TouchingStrings),
        ("{a(b:[\"\"\"c\"\"\"\"d\"])}", Ambiguity::TouchingStrings),
        ("{a(b:[\"c\"\"\"\"d\"\"\"])}", Ambiguity::TouchingStrings),
    ] {
        assert_eq!(judge(&asking(document)), Err(why.into()), "{document:?}");
    }
}

/// Strings, comments and line ends in any disorder, where a list of values is expected and behind it.
fn disorder() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(
        &[
            "\"",
            "\"",
            "\"",
            "\"\"\"",
            "\"\"\"",
            "\\",
            "\\\"",
            "\\\\",
            " ",
            "c",
            "#",
            "#",
            "\n",
            "\n",
            "\r",
            "\r\n",
            "\u{2028}",
            "])}",
            "{a(b:[",
            " mutation{x} ",
        ][..],
    );
    (vec(pieces.clone(), 0..9), vec(pieces, 0..5))
        .prop_map(|(list, after)| format!("{{a(b:[{}])}}{}", list.concat(), after.concat()))
}

/// What a document is made of, in any order.
fn soup() -> impl Strategy<Value = String> {
    let pieces = &[
        "{a}",
        "{",
        "}",
        "{ ...A",
        "... on B {c}",
        "query",
        "query",
        "fragment A on B",
        "mutation",
        "subscription",
        "A",
        "($a:Int=1)",
        "($a: mutation",
        "(a:[1 {b:$c}])",
        "(",
        ")",
        "[",
        "]",
        "@d",
        ":",
        ",",
        "\"mutation{x}\"",
        "#}\n",
        "type A",
        "{a:B}",
        "extend",
        "schema",
    ];
    vec(prop::sample::select(&pieces[..]), 1..8).prop_map(|pieces| pieces.join(" "))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn what_passes_has_the_same_tokens_for_every_reader(document in disorder(), reader in Reader::any()) {
        if judge(&asking(&document)).is_ok() {
            prop_assert_eq!(reader.tokens(&document), Reader::PLAIN.tokens(&document));
            prop_assert!(!reader.sees_more_than_queries(&document));
        }
    }

    #[test]
    fn what_passes_defines_queries_and_fragments_only(document in soup()) {
        if judge(&asking(&document)).is_ok() {
            prop_assert!(!Reader::PLAIN.sees_more_than_queries(&document));
        }
    }
}
