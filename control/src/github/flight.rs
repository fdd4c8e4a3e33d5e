//! One flight for a key: callers that want the same at the same time wait for one and the same answer.
//!
//! A flight is a task of its own, so that it outlives the caller that began it.

use std::collections::HashMap;
use std::hash::Hash;

use tokio::sync::watch;

use super::answer::UNAVAILABLE;
use crate::forge::MintError;

type Outcome<T> = Option<Result<T, MintError>>;

/// The flights that are under way.
pub(super) struct Flights<K, T>(HashMap<K, watch::Receiver<Outcome<T>>>);

/// A seat in a flight.
pub(super) struct Flight<T>(watch::Receiver<Outcome<T>>);

/// Where a flight's task delivers. Dropped without an answer, it ends the flight as unavailable.
pub(super) struct Landing<T>(watch::Sender<Outcome<T>>);

impl<K: Eq + Hash + Clone, T> Flights<K, T> {
    pub(super) fn new() -> Self {
        Self(HashMap::new())
    }

    /// Joins the flight of this key, or begins it.
    pub(super) fn join(&mut self, key: &K, begin: impl FnOnce(Landing<T>)) -> Flight<T> {
        // A closed one is of a task that panicked: its landing never removed it.
        if let Some(flight) = self.0.get(key).filter(|flight| flight.has_changed().is_ok()) {
            return Flight(flight.clone());
        }
        let (landing, flight) = watch::channel(None);
        self.0.insert(key.clone(), flight.clone());
        begin(Landing(landing));
        Flight(flight)
    }

    /// Ends a flight: the next caller begins another. Its answer must be kept first, under the same lock.
    pub(super) fn end(&mut self, key: &K) {
        self.0.remove(key);
    }
}

impl<T: Clone> Flight<T> {
    pub(super) async fn landed(mut self) -> Result<T, MintError> {
        match self.0.wait_for(Option::is_some).await {
            Ok(outcome) => outcome.clone().unwrap_or(Err(UNAVAILABLE)),
            Err(_closed) => Err(UNAVAILABLE),
        }
    }
}

impl<T> Landing<T> {
    pub(super) fn deliver(self, outcome: Result<T, MintError>) {
        self.0.send_replace(Some(outcome));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_flight_that_breaks_off_ends_as_unavailable_and_is_begun_anew() {
        let mut flights = Flights::<_, u8>::new();
        assert_eq!(flights.join(&1, drop).landed().await, Err(UNAVAILABLE));
        assert_eq!(flights.join(&1, |landing| landing.deliver(Ok(7))).landed().await, Ok(7));
    }

    #[tokio::test]
    async fn a_second_caller_does_not_begin() {
        let mut flights = Flights::<_, u8>::new();
        let mut landing = None;
        let first = flights.join(&1, |l| landing = Some(l));
        let second = flights.join(&1, |_| panic!("began twice"));
        landing.unwrap().deliver(Err(MintError::Suspended));
        assert_eq!(first.landed().await, Err(MintError::Suspended));
        assert_eq!(second.landed().await, Err(MintError::Suspended));
    }
}
