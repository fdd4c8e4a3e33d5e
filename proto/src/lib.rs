//! The contract between the planes: the messages of `gitdoor.v1` and the domain words that both planes need.
//!
//! A word is parsed once, where it comes in, by a total parser; after that its type is the proof.

pub mod bearer;
pub mod descriptors;
#[cfg(feature = "connect")]
pub mod endpoint;
pub mod permit;
pub mod process;
pub mod reason;
pub mod refname;
pub mod repository;
mod secret;
mod shape;
#[cfg(feature = "tls")]
pub mod tls;
mod token;
mod trace;

/// The generated messages, clients and servers of `gitdoor.v1`.
#[expect(
    clippy::allow_attributes_without_reason,
    clippy::pedantic,
    reason = "generated; the comments are in the .proto files"
)]
pub mod v1 {
    tonic::include_proto!("gitdoor.v1");
}

/// The metadata of a session that says who holds what is authorized over it.
pub const HOLDER_METADATA: &str = "gitdoor-holder-bin";
/// Its length.
pub const HOLDER_BYTES: usize = 32;

pub use bearer::{Bearer, BearerHash, RunId};
pub use permit::{Permit, Token};
pub use reason::{Denial, Reason};
pub use refname::{Pattern, RefName};
pub use repository::RepositoryName;
pub use shape::{TOKEN_PREFIXES, token_prefix};
pub use token::{is_token_id, token_id};
pub use trace::TraceParent;
