//! gitdoor's control plane: runs, bearers, bindings, policy, the push ledger and minting. It decides.

pub mod clock;
pub mod forge;
pub mod gate;
pub mod lease;
pub mod metrics;
pub mod policy;
pub mod push;
pub mod run;
pub mod service;
pub mod status;
pub mod store;
pub mod ticket;
