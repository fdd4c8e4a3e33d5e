//! The text of a JSON string from behind its opening quote: what it says, however that is escaped (RFC 8259, section 7).

/// The bytes end before they can be judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Torn;

/// What a text is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    /// An ASCII character, or one byte of another that is not escaped.
    Character(u8),
    /// Any other escape, or a backslash that begins none.
    Other,
    /// The closing quote.
    End,
}

/// The first unit, and how many bytes it takes.
#[inline]
pub(super) fn unit(text: &[u8]) -> Result<(Unit, usize), Torn> {
    match text {
        [] | [b'\\'] => Err(Torn),
        [b'"', ..] => Ok((Unit::End, 1)),
        [b'\\', b'u', digits @ ..] => code(digits),
        [b'\\', character @ (b'"' | b'\\' | b'/'), ..] => Ok((Unit::Character(*character), 2)),
        [b'\\', _, ..] => Ok((Unit::Other, 2)),
        [byte, ..] => Ok((Unit::Character(*byte), 1)),
    }
}

/// What `\u` and these digits stand for.
fn code(digits: &[u8]) -> Result<(Unit, usize), Torn> {
    let mut code = 0;
    for n in 0..4 {
        let digit = char::from(*digits.get(n).ok_or(Torn)?);
        // It may be the closing quote, which must not pass for a digit.
        let Some(digit) = digit.to_digit(16) else { return Ok((Unit::Other, 2)) };
        code = code * 16 + digit;
    }
    let character = u8::try_from(code).ok().filter(u8::is_ascii);
    Ok((character.map_or(Unit::Other, Unit::Character), 6))
}

/// Whether a text begins with this and then ends, or goes on with a character for which `follows` holds: how many
/// bytes the beginning takes.
#[inline]
pub(super) fn prefix(text: &[u8], expected: &str, follows: fn(u8) -> bool) -> Result<Option<usize>, Torn> {
    let (mut taken, mut expected) = (0, expected.bytes());
    loop {
        let (unit, length) = unit(text.get(taken..).unwrap_or_default())?;
        match (expected.next(), unit) {
            (Some(byte), Unit::Character(found)) if found == byte => taken += length,
            (None, Unit::End) => return Ok(Some(taken)),
            (None, Unit::Character(next)) if follows(next) => return Ok(Some(taken)),
            (Some(_) | None, Unit::Character(_) | Unit::Other) | (Some(_), Unit::End) => return Ok(None),
        }
    }
}
