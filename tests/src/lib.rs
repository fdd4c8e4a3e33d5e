//! What the end-to-end tests and the demo are made of: a stand-in GitHub, the `World` that starts every part as a
//! process of its own, stock git and stock gh in an environment that knows nothing but its bearer, a proxy that sees
//! whom else they ask, and raw HTTP for the rest.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::match_wild_err_arm,
    clippy::missing_panics_doc,
    clippy::must_use_candidate,
    clippy::panic,
    clippy::return_self_not_must_use,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "a harness fails by a panic that says what was expected"
)]

pub mod authority;
pub mod chaos;
mod client;
mod clock;
pub mod demo;
pub mod flags;
pub mod gh;
pub mod git;
pub mod github;
pub mod h2;
pub mod laptop;
pub mod load;
pub mod machine;
pub mod pkt;
pub mod port;
pub mod prometheus;
pub mod raw;
pub mod recorder;
pub mod shim;
pub mod terminal;
pub mod wait;
pub mod workspace;
pub mod world;
