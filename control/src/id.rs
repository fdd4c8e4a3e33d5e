//! Names that control draws: 16 random bytes, shown in hex.

/// The system has no randomness to give.
#[derive(Debug, thiserror::Error)]
#[error("the system's random source failed")]
pub struct NoRandomness(#[from] getrandom::Error);

/// A name of a kind of its own.
macro_rules! id {
    ($(#[$about:meta])* $name:ident) => {
        $(#[$about])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash)]
        pub struct $name([u8; 16]);

        impl $name {
            /// Makes a new one from the system's randomness.
            pub fn generate() -> Result<Self, $crate::id::NoRandomness> {
                let mut bytes = [0; 16];
                getrandom::fill(&mut bytes)?;
                Ok(Self(bytes))
            }

            /// An id as it was stored.
            #[must_use]
            pub fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(bytes)
            }

            /// The id, to store it.
            #[must_use]
            pub fn as_bytes(&self) -> &[u8; 16] {
                &self.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(self, f)
            }
        }
    };
}

pub(crate) use id;
