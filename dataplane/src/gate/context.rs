//! Which request a question is part of: so that control's log, its ledger and this door's log name it alike.

use gitdoor_proto::{TraceParent, v1};

/// A request, as control is told of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Context {
    /// The id that it was given here.
    pub request_id: String,
    /// The trace that it is part of.
    pub trace_parent: Option<TraceParent>,
}

impl Context {
    /// As it stands in a question; empty where there is no trace.
    pub(super) fn trace_parent(&self) -> String {
        self.trace_parent.map(|trace| trace.to_string()).unwrap_or_default()
    }
}

impl From<&Context> for v1::RequestContext {
    fn from(context: &Context) -> Self {
        Self { request_id: context.request_id.clone(), trace_parent: context.trace_parent() }
    }
}
