//! The gRPC services: messages in, the domain asked, messages out, one log event each.

pub mod gate;
pub mod runs;
mod session;
#[cfg(test)]
mod tests;
