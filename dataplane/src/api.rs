//! The forge's API, without I/O: what a GraphQL request may ask, and what is changed in an answer on its way down.

pub mod graphql;
pub mod json;
pub mod links;
mod refusal;

pub use refusal::ApiRefusal;
