//! The ticket: the opaque `authorization` of a permit. It says what was authorized, signed with the hash of the
//! bearer that it was authorized for, to the data plane that asked.
//!
//! So it needs no memory, any control can check it, a bearer that is replaced takes its tickets with it, and another
//! data plane can do nothing with one that it got hold of. One that was made for nobody in particular, as a control of
//! before holders makes them all, is good to whoever presents it: to say no holder is in anybody's power.

mod holder;

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use gitdoor_proto::{BearerHash, RepositoryName, RunId};
use hmac::{Hmac, Mac};
use sha2::Sha256;

use crate::push::{PushId, TicketHash};

pub use holder::{Holder, Shown};

/// Keeps these signatures apart from any other use of the key.
const LABEL: &[u8] = b"gitdoor ticket 1\0";
/// The same, for a ticket of a holder.
const HELD_LABEL: &[u8] = b"gitdoor ticket 2\0";
/// Bytes of the signature.
const MAC_BYTES: usize = 32;
/// Longer than the longest ticket: a run id of 64 and a repository of 140 characters, in base64.
const TICKET_CHARS: usize = 400;

/// What was authorized.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Purpose {
    /// A fetch of a repository.
    Fetch(RepositoryName),
    /// The discovery for a push to a repository.
    Discovery(RepositoryName),
    /// A probe ahead of a push to a repository.
    Probe(RepositoryName),
    /// A push.
    Push(PushId),
}

/// Text that is no ticket of this program, or one whose signature does not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an authorization of this control")]
pub struct InvalidTicket;

/// Makes the ticket of an authorization for who holds it.
#[must_use]
pub fn issue(run: &RunId, purpose: &Purpose, key: &BearerHash, holder: Option<Holder>) -> String {
    let mut bytes = body(run, purpose);
    let mac = mac(key, holder, &bytes).finalize().into_bytes();
    bytes.extend_from_slice(&mac);
    URL_SAFE_NO_PAD.encode(bytes)
}

/// A well-formed ticket, as it was presented: what it says is not proven before [`Presented::verify`].
pub struct Presented<'a> {
    shown: Shown<'a>,
    run: RunId,
    purpose: Purpose,
    signature: Vec<u8>,
}

impl<'a> Presented<'a> {
    /// Reads a ticket.
    pub fn parse(shown: Shown<'a>) -> Result<Self, InvalidTicket> {
        if shown.text.len() > TICKET_CHARS {
            return Err(InvalidTicket);
        }
        let bytes = URL_SAFE_NO_PAD.decode(shown.text).map_err(|_encoding| InvalidTicket)?;
        let (body, signature) = bytes.split_last_chunk::<MAC_BYTES>().ok_or(InvalidTicket)?;
        let (run, purpose) = read_body(body).ok_or(InvalidTicket)?;
        Ok(Self { shown, run, purpose, signature: signature.to_vec() })
    }

    /// The run that it claims to be of: whose key to verify it with.
    #[must_use]
    pub fn run(&self) -> &RunId {
        &self.run
    }

    /// What it authorizes, if the run's present bearer signed it for who presents it, or for nobody in particular.
    /// Compared in constant time.
    pub fn verify(&self, key: &BearerHash) -> Result<&Purpose, InvalidTicket> {
        let body = body(&self.run, &self.purpose);
        let signed = |holder| mac(key, holder, &body).verify_slice(&self.signature).is_ok();
        if signed(self.shown.holder) || signed(None) { Ok(&self.purpose) } else { Err(InvalidTicket) }
    }

    /// The push that it claims to be of, to look its row up; the row's ticket hash is then the proof.
    #[must_use]
    pub fn claimed_push(&self) -> Option<PushId> {
        match self.purpose {
            Purpose::Push(id) => Some(id),
            Purpose::Fetch(_) | Purpose::Discovery(_) | Purpose::Probe(_) => None,
        }
    }

    /// Whether it is the ticket that has this hash, and its presenter's or nobody's in particular.
    #[must_use]
    pub fn has_hash(&self, hash: TicketHash) -> bool {
        let Shown { text, holder } = self.shown;
        [holder, None].into_iter().any(|holder| TicketHash::of(Shown { text, holder }) == hash)
    }
}

impl fmt::Debug for Presented<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Presented").field("run", &self.run).field("purpose", &self.purpose).finish_non_exhaustive()
    }
}

fn mac(key: &BearerHash, holder: Option<Holder>, body: &[u8]) -> Hmac<Sha256> {
    // The block size of SHA-256 is 64 bytes; a shorter key is padded with zeros, which is what HMAC does with it.
    let mut block = [0_u8; 64];
    block.iter_mut().zip(key.as_bytes()).for_each(|(to, from)| *to = *from);
    let mut mac = Hmac::<Sha256>::new(&block.into());
    match holder {
        None => mac.update(LABEL),
        Some(holder) => {
            mac.update(HELD_LABEL);
            mac.update(holder.as_bytes());
        }
    }
    mac.update(body);
    mac
}

/// The purpose's letter, the length of the run's id, the id, and the rest.
fn body(run: &RunId, purpose: &Purpose) -> Vec<u8> {
    let (letter, rest) = match purpose {
        Purpose::Fetch(repository) => (b'f', repository.to_string().into_bytes()),
        Purpose::Discovery(repository) => (b'd', repository.to_string().into_bytes()),
        Purpose::Probe(repository) => (b'p', repository.to_string().into_bytes()),
        Purpose::Push(id) => (b'P', id.as_bytes().to_vec()),
    };
    let length = u8::try_from(run.as_str().len()).unwrap_or(u8::MAX);
    [&[letter, length], run.as_str().as_bytes(), &rest].concat()
}

fn read_body(body: &[u8]) -> Option<(RunId, Purpose)> {
    let (&[letter, length], rest) = body.split_first_chunk::<2>()?;
    let (run, rest) = rest.split_at_checked(length.into())?;
    let run = RunId::parse(std::str::from_utf8(run).ok()?).ok()?;
    let repository = || RepositoryName::parse(std::str::from_utf8(rest).ok()?).ok();
    let purpose = match letter {
        b'f' => Purpose::Fetch(repository()?),
        b'd' => Purpose::Discovery(repository()?),
        b'p' => Purpose::Probe(repository()?),
        b'P' => Purpose::Push(PushId::from_bytes(rest.try_into().ok()?)),
        _ => return None,
    };
    Some((run, purpose))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KEY: [u8; 32] = [7; 32];

    fn issued(run: &RunId, purpose: &Purpose) -> String {
        issue(run, purpose, &BearerHash::from_bytes(KEY), Some(Holder::of(b"a")))
    }

    fn presented(text: &str) -> Result<Presented<'_>, InvalidTicket> {
        Presented::parse(Shown { text, holder: Some(Holder::of(b"a")) })
    }

    fn purposes() -> [Purpose; 4] {
        let repository = RepositoryName::parse("Acme/api").unwrap();
        [
            Purpose::Fetch(repository.clone()),
            Purpose::Discovery(repository.clone()),
            Purpose::Probe(repository),
            Purpose::Push(PushId::from_bytes([9; 16])),
        ]
    }

    #[test]
    fn a_ticket_says_what_was_authorized_to_the_holder_of_the_key_alone() {
        let run = RunId::parse(&"r".repeat(64)).unwrap();
        for purpose in purposes() {
            let text = issued(&run, &purpose);
            let ticket = presented(&text).unwrap();
            assert_eq!(ticket.run(), &run);
            assert_eq!(ticket.verify(&BearerHash::from_bytes(KEY)), Ok(&purpose));
            assert_eq!(ticket.verify(&BearerHash::from_bytes([8; 32])), Err(InvalidTicket));
        }
    }

    #[test]
    fn a_ticket_is_good_to_nobody_but_its_holder_and_one_of_no_holder_to_anybody() {
        let (run, key) = (RunId::parse("run-1").unwrap(), BearerHash::from_bytes(KEY));
        let holders = [None, Some(Holder::of(b"a")), Some(Holder::of(b"b"))];
        for purpose in purposes() {
            for held in holders {
                let text = issue(&run, &purpose, &key, held);
                for holder in holders {
                    let ticket = Presented::parse(Shown { text: &text, holder }).unwrap();
                    let expected = held.is_none() || held == holder;
                    assert_eq!(ticket.verify(&key).is_ok(), expected, "{held:?} {holder:?}");
                    let hash = TicketHash::of(Shown { text: &text, holder: held });
                    assert_eq!(ticket.has_hash(hash), expected, "{held:?} {holder:?}");
                }
            }
        }
    }

    #[test]
    fn a_ticket_with_any_bit_turned_is_refused() {
        let run = RunId::parse("run-1").unwrap();
        for purpose in purposes() {
            let good = URL_SAFE_NO_PAD.decode(issued(&run, &purpose)).unwrap();
            for bit in 0..good.len() * 8 {
                let mut bytes = good.clone();
                bytes[bit / 8] ^= 1 << (bit % 8);
                let text = URL_SAFE_NO_PAD.encode(bytes);
                let ticket = presented(&text);
                assert!(ticket.is_err() || ticket.unwrap().verify(&BearerHash::from_bytes(KEY)).is_err(), "{bit}");
            }
        }
    }

    #[test]
    fn the_longest_names_fit_a_ticket() {
        let run = RunId::parse(&"r".repeat(64)).unwrap();
        let name = RepositoryName::parse(&format!("{}/{}", "o".repeat(39), "n".repeat(100))).unwrap();
        let text = issued(&run, &Purpose::Discovery(name.clone()));
        assert_eq!(presented(&text).unwrap().verify(&BearerHash::from_bytes(KEY)), Ok(&Purpose::Discovery(name)));
        assert_eq!(presented(&"A".repeat(TICKET_CHARS + 4)).unwrap_err(), InvalidTicket);
    }

    proptest! {
        #[test]
        fn any_text_is_refused_without_a_panic(text in "[A-Za-z0-9_=-]{0,120}") {
            if let Ok(ticket) = presented(&text) {
                prop_assert!(ticket.verify(&BearerHash::from_bytes(KEY)).is_err());
            }
        }
    }
}
