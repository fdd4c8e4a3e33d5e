//! gitdoor's control plane: runs, bearers, bindings, policy, the push ledger and minting. It decides.

pub mod forge;
