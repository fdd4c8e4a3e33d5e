//! Mutual TLS on control's listeners, at the program itself: who is let in, what each role may call, and certificates
//! that change while it serves.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a helper that cannot do its part fails the test")]

mod authority;
mod control;
mod handshakes;
mod reload;
mod roles;
