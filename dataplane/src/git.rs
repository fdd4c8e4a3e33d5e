//! Git's wire formats as the door needs them: pure readers and writers of bytes, no I/O.
//!
//! A reader here is never more lenient than git's own: what git would act on, it has read equally or refused. Any
//! chunking of the input gives the same answer.

pub mod advertisement;
pub mod pktline;
pub mod receive_pack;
pub mod report_status;

#[cfg(test)]
mod real_git;

/// What comes before and after the first `byte`.
fn split_once(bytes: &[u8], byte: u8) -> Option<(&[u8], &[u8])> {
    let at = bytes.iter().position(|b| *b == byte)?;
    let (before, rest) = bytes.split_at_checked(at)?;
    Some((before, rest.split_first()?.1))
}

/// The line without the one LF that may end it.
fn chomp(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\n").unwrap_or(line)
}

/// `text` without control characters and at most `bytes` long; safe to show on a terminal.
fn printable(text: &str, bytes: usize) -> String {
    let mut kept: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    kept.truncate(kept.floor_char_boundary(bytes));
    kept
}
