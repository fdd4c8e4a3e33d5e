//! The term of a request: its streams last until their run ends. When that is can change, since a run that is adopted has
//! another time from then on.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use gitdoor_proto::v1::authorize_request::Intent;
use gitdoor_proto::{Bearer, v1};
use tokio::time::{Instant, sleep_until};

use super::{Context, Gate, Granted, Guard};
use crate::record::Interruption;

/// Least time between two questions whether a run has more time: the first may come to control a moment before the end.
const AGAIN: Duration = Duration::from_secs(1);

/// How long the streams of one request may go on.
pub struct Term {
    gate: Gate,
    bearer: Bearer,
    context: Context,
    guard: Guard,
    /// When the run's time is over, as control said last.
    expires: Mutex<Instant>,
}

impl Term {
    /// The term of a request that was granted. Its run's entry among the streams was made before control was asked, so
    /// that a revocation finds it.
    #[must_use]
    pub fn new(gate: &Gate, bearer: &Bearer, guard: Guard, granted: &Granted) -> Self {
        Self {
            gate: gate.clone(),
            bearer: bearer.clone(),
            context: granted.context.clone(),
            guard,
            expires: Mutex::new(granted.expires()),
        }
    }

    /// Waits until the run has ended. Once the time that is known is over control is asked whether there is more; where
    /// that is not said, there is none.
    pub async fn ended(&self) -> Interruption {
        tokio::select! {
            why = self.cut() => why,
            why = self.expired() => why,
        }
    }

    /// Waits until control tells that the run has ended.
    pub async fn cut(&self) -> Interruption {
        self.guard.watch().cut().await.into()
    }

    async fn expired(&self) -> Interruption {
        loop {
            let expires = *self.expires.lock().unwrap_or_else(PoisonError::into_inner);
            sleep_until(expires).await;
            let verify = Intent::Verify(v1::Verify {});
            match self.gate.authorize(&self.bearer, &self.context, verify).await {
                Ok(granted) => {
                    let expires = granted.expires().max(Instant::now() + AGAIN);
                    *self.expires.lock().unwrap_or_else(PoisonError::into_inner) = expires;
                }
                Err(refusal) => return refusal.interruption(),
            }
        }
    }
}
