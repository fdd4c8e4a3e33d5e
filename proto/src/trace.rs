//! `traceparent` of the W3C: the trace that a request is part of. It is written into logs, and nothing is decided by it.
//!
//! <https://www.w3.org/TR/trace-context/#traceparent-header>

use std::fmt;

/// Length of a `traceparent` of version 00. One of a later version may go on behind it.
const LENGTH: usize = 55;

/// A trace, and the span in it that a request belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceParent {
    trace_id: u128,
    parent_id: u64,
    sampled: bool,
}

impl TraceParent {
    /// Reads a `traceparent`. Of a later version than 00 it takes what version 00 has; what is none is no error, but
    /// nothing.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (head, rest) = text.split_at_checked(LENGTH)?;
        let mut parts = head.split('-');
        let version = u8::try_from(hex(parts.next()?, 2)?).ok()?;
        let trace_id = hex(parts.next()?, 32)?;
        let parent_id = u64::try_from(hex(parts.next()?, 16)?).ok()?;
        let flags = hex(parts.next()?, 2)?;
        let ends = match version {
            0 => rest.is_empty(),
            u8::MAX => false,
            _ => rest.is_empty() || rest.starts_with('-'),
        };
        let whole = ends && parts.next().is_none() && trace_id != 0 && parent_id != 0;
        whole.then_some(Self { trace_id, parent_id, sampled: flags & 1 == 1 })
    }

    /// The trace's id: 32 hex digits.
    #[must_use]
    pub fn trace_id(&self) -> String {
        format!("{:032x}", self.trace_id)
    }

    /// The span's: 16 hex digits.
    #[must_use]
    pub fn parent_id(&self) -> String {
        format!("{:016x}", self.parent_id)
    }
}

impl fmt::Display for TraceParent {
    /// As version 00 has it, whatever version was read.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{:032x}-{:016x}-{:02x}", self.trace_id, self.parent_id, u8::from(self.sampled))
    }
}

/// A number of so many hex digits, in lower case.
fn hex(text: &str, digits: usize) -> Option<u128> {
    let legal = text.len() == digits && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    u128::from_str_radix(text, 16).ok().filter(|_| legal)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
    const SPAN: &str = "00f067aa0ba902b7";

    #[test]
    fn a_trace_is_read_and_written_as_it_came() {
        for flags in ["00", "01"] {
            let text = format!("00-{TRACE}-{SPAN}-{flags}");
            let trace = TraceParent::parse(&text).unwrap();
            assert_eq!((trace.trace_id().as_str(), trace.parent_id().as_str()), (TRACE, SPAN));
            assert_eq!(trace.to_string(), text);
        }
    }

    #[test]
    fn of_a_later_version_only_what_version_00_has_is_taken() {
        for (text, expected) in [
            (format!("01-{TRACE}-{SPAN}-01"), "01"),
            (format!("fe-{TRACE}-{SPAN}-ff-what-comes-then"), "01"),
            (format!("00-{TRACE}-{SPAN}-fe"), "00"),
        ] {
            let trace = TraceParent::parse(&text).unwrap();
            assert_eq!(trace.to_string(), format!("00-{TRACE}-{SPAN}-{expected}"), "{text}");
        }
    }

    #[test]
    fn what_is_no_traceparent_is_nothing() {
        let zeros = "0".repeat(32);
        for text in [
            String::new(),
            format!("00-{TRACE}-{SPAN}"),
            format!("00-{TRACE}-{SPAN}-0"),
            format!("00-{TRACE}-{SPAN}-01-"),
            format!("00-{TRACE}-{SPAN}-01-x"),
            format!("01-{TRACE}-{SPAN}-01x"),
            format!("ff-{TRACE}-{SPAN}-01"),
            format!("0-{TRACE}0-{SPAN}-01"),
            format!("00-{zeros}-{SPAN}-01"),
            format!("00-{TRACE}-{}-01", "0".repeat(16)),
            format!("00-{}-{SPAN}-01", TRACE.to_uppercase()),
            format!("00-{}-{SPAN}-01", TRACE.replacen('4', "+", 1)),
            format!("00-{}-{SPAN}-01", TRACE.replacen('4', "g", 1)),
            format!("00-{TRACE}-{SPAN}-0g"),
            format!("00-{TRACE}_{SPAN}-01"),
            format!(" 00-{TRACE}-{SPAN}-01"),
            format!("00-{}-{SPAN}-01", TRACE.replacen("4b", "\u{e9}", 1)),
        ] {
            assert_eq!(TraceParent::parse(&text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_and_what_is_taken_reads_as_itself(text in "[0-9a-f]{2}-[0-9a-fA-F]{31,33}-[0-9a-f]{16}-[0-9a-f]{2}.{0,3}", other: String) {
            prop_assert_eq!(TraceParent::parse(&other), None);
            if let Some(trace) = TraceParent::parse(&text) {
                prop_assert_eq!(TraceParent::parse(&trace.to_string()), Some(trace));
                prop_assert!(text.contains(&trace.trace_id()) && text.contains(&trace.parent_id()));
            }
        }
    }
}
