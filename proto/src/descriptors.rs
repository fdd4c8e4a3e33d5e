//! What the `.proto` files describe, encoded as a `FileDescriptorSet` for each of control's listeners: its services
//! alone, with every message that they name.

/// Of the listener that serves `Runs` and `Tokens`.
pub const RUNS_LISTENER: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/runs_listener.binpb"));

/// Of the listener that serves `Gate`.
pub const GATE_LISTENER: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/gate_listener.binpb"));
