//! The rules, as pure functions: values in, a verdict out, the time an argument.

pub mod bearer;
pub mod push;
