//! The gRPC services: messages in, the domain asked, messages out, one log event each.

pub mod admission;
mod context;
pub mod gate;
pub mod health;
mod held;
pub mod listener;
mod page;
pub mod reads;
pub mod runs;
mod session;
pub(crate) mod shown;
#[cfg(test)]
mod tests;
pub mod tokens;
