//! End to end: every part a process of its own, real clients, the stand-in GitHub behind them.
#![expect(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test's own steps fail by a panic")]

mod api;
mod atonce;
mod bearers;
mod binding;
mod closed;
mod config;
mod demo;
mod deploy;
mod display;
mod documents;
mod door;
mod drain;
mod early;
mod exec;
mod fetch;
mod fleet;
mod framing;
mod gh_and_git;
mod gh_harness;
mod gh_hosts;
mod gh_reads;
mod gh_socket;
mod gh_status;
mod gh_writes;
mod harness;
mod hygiene;
mod load;
mod memory;
mod mint;
mod mirror;
mod own_token;
mod prometheus;
mod push;
mod raw_push;
mod refusals;
mod resident;
mod restart;
mod revocation;
mod shim;
mod standin;
mod standin_api;
mod streams;
mod surface;
mod traces;
mod trust;
mod upstream;
mod wire;
mod workspace;

/// The program that has all parts of gitdoor in it.
const PROGRAM: &str = env!("CARGO_BIN_EXE_demo");
