//! Which request of a sandbox a question is part of, as control's events name it. Nothing is decided by it.

use gitdoor_proto::{TraceParent, v1};

use crate::gate::question::is_request_id;

/// The request that a question is part of. What cannot be read of it is not there: the events are the poorer for it,
/// and the answer is the same.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Context {
    /// The data plane's id of it.
    pub(super) request_id: Option<String>,
    /// The trace that it is part of.
    pub(super) trace: Trace,
}

/// A trace in the fields of an event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Trace {
    /// The trace's id.
    pub(super) trace_id: Option<String>,
    /// The span's.
    pub(super) parent_id: Option<String>,
}

impl Context {
    /// Reads what a question says of its request.
    pub(super) fn read(message: Option<v1::RequestContext>) -> Self {
        let v1::RequestContext { request_id, trace_parent } = message.unwrap_or_default();
        Self { trace: Trace::read(&trace_parent), request_id: Some(request_id).filter(|id| is_request_id(id)) }
    }
}

impl Trace {
    /// Reads a `traceparent`; empty is none.
    pub(super) fn read(text: &str) -> Self {
        let trace = TraceParent::parse(text);
        Self { trace_id: trace.map(|it| it.trace_id()), parent_id: trace.map(|it| it.parent_id()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_of_a_context_stands_in_no_event() {
        let read = |request_id: &str, trace_parent: &str| {
            Context::read(Some(v1::RequestContext {
                request_id: request_id.into(),
                trace_parent: trace_parent.into(),
            }))
        };
        let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let good = read("q-1", trace);
        assert_eq!(good.request_id.as_deref(), Some("q-1"));
        assert_eq!(good.trace.trace_id.as_deref(), Some("4bf92f3577b34da6a3ce929d0e0e4736"));
        assert_eq!(good.trace.parent_id.as_deref(), Some("00f067aa0ba902b7"));
        for request_id in ["", "a b", "a\nb", "\u{e9}", &"q".repeat(129)] {
            assert_eq!(read(request_id, "none"), Context::default(), "{request_id}");
        }
        assert_eq!(Context::read(None), Context::default());
    }
}
