//! Bodies: what comes in from a client, what goes up, what comes back. All of them stream; none is held whole.

mod api;
mod inbound;
mod outbound;
mod pipe;
mod relay;
mod watch;

pub use api::ApiBody;
pub use inbound::{BodyError, Coding, Drained, Inbound};
pub use outbound::{Body, Outbound};
pub use pipe::{Drink, Feed, Unwanted, pipe};
pub use relay::{Answer, RelayLimits, pass};
pub use watch::Watch;
