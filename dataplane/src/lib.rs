//! gitdoor's data plane.

pub mod git;
