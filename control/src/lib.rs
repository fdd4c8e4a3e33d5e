//! gitdoor's control plane: it decides what a run may do and mints what the data plane forwards with.

pub mod forge;
pub mod github;
