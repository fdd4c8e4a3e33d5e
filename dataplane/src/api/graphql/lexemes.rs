//! The lexemes of a document, where parsers have been seen to part.
//!
//! All of it is about one attack: text that one lexer takes for a string or a comment, and another for an operation.
//! The rules leave only documents in which a quotation mark, a `#` and the end of a line mean the same to all.

use apollo_parser::{Lexer, TokenKind};

use super::Unaskable;
use super::document::{MOST_TOKENS, unparseable};

/// What parsers do not read alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Ambiguity {
    /// A control character, a byte order mark or a Unicode line separator: a blank or a line end to some only.
    #[error("the query holds the character U+{:04X}; leave it out, or escape it in a string", u32::from(*.0))]
    Character(char),
    /// Some end a comment at it, some do not.
    #[error("the query holds a carriage return without a line feed; end lines with one line feed")]
    CarriageReturn,
    /// Servers that mend strings over several lines take one in a comment for the start of such a string.
    #[error("the query has a quotation mark in a comment; leave the mark or the comment out")]
    QuotedComment,
    /// No string to most.
    #[error("the query has a string over several lines; write \\n in it, or pass it as a variable")]
    StringLines,
    /// The second of two backslashes has been read as escaping the quotation mark behind it.
    #[error("the query has a string that ends with a backslash; pass it as a variable")]
    StringBackslash,
    /// Which quotation marks end a block string differs, and which a backslash escapes.
    #[error("the query has a block string with a quotation mark in it; pass it as a variable")]
    BlockString,
    /// Quotation marks in a row are divided differently.
    #[error("the query has two strings without a blank between them; write one")]
    TouchingStrings,
}

/// Checks that a document's characters and tokens are the same to every parser.
pub(super) fn check(document: &str) -> Result<(), Unaskable> {
    check_characters(document)?;
    let mut after_string = false;
    for token in Lexer::new(document).with_limit(MOST_TOKENS) {
        let token = token.map_err(|error| unparseable(document, &error))?;
        let is_string = token.kind() == TokenKind::StringValue;
        if is_string && after_string {
            return Err(Ambiguity::TouchingStrings.into());
        }
        if is_string {
            check_string(token.data())?;
        } else if token.kind() == TokenKind::Comment && token.data().contains('"') {
            return Err(Ambiguity::QuotedComment.into());
        }
        after_string = is_string;
    }
    Ok(())
}

fn check_characters(document: &str) -> Result<(), Ambiguity> {
    let refused = |c: char| match c {
        '\t' | '\n' | '\r' => false,
        '\u{feff}' | '\u{2028}' | '\u{2029}' => true,
        c => c.is_control(),
    };
    if let Some(character) = document.chars().find(|c| refused(*c)) {
        return Err(Ambiguity::Character(character));
    }
    let alone = |rest: &str| !rest.starts_with('\n');
    if document.split('\r').skip(1).any(alone) { Err(Ambiguity::CarriageReturn) } else { Ok(()) }
}

fn check_string(lexeme: &str) -> Result<(), Ambiguity> {
    let block = lexeme.strip_prefix(r#"""""#).and_then(|rest| rest.strip_suffix(r#"""""#));
    let ambiguity = match block {
        Some(text) => text.contains('"').then_some(Ambiguity::BlockString),
        // The lexer takes a line end for the first character of a string.
        None if lexeme.contains(['\n', '\r']) => Some(Ambiguity::StringLines),
        None => lexeme.ends_with(r#"\""#).then_some(Ambiguity::StringBackslash),
    };
    ambiguity.map_or(Ok(()), Err)
}
