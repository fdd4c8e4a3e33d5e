//! Who a data plane is, to control.

use gitdoor_proto::{HOLDER_BYTES, HOLDER_METADATA};
use tonic::Request;
use tonic::metadata::{Binary, MetadataValue};

/// Drawn once and shown with every session, whichever control it is with: what was authorized over one of them is good
/// over the others, and over nobody else's.
#[derive(Clone)]
pub(super) struct Holder(MetadataValue<Binary>);

impl Holder {
    /// A new one. None: the system's random source failed.
    pub(super) fn draw() -> Option<Self> {
        let mut bytes = [0; HOLDER_BYTES];
        getrandom::fill(&mut bytes).ok()?;
        let mut value = MetadataValue::from_bytes(&bytes);
        value.set_sensitive(true);
        Some(Self(value))
    }

    /// Opens something as this holder.
    pub(super) fn open<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        request.metadata_mut().insert_bin(HOLDER_METADATA, self.0.clone());
        request
    }
}
