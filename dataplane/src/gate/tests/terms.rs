//! How long a request may go on.

use tokio::time::{Instant, timeout};

use super::*;
use crate::gate::Term;
use crate::record::Interruption;

/// A time that is over before a test has looked twice.
const BRIEF: Duration = Duration::from_millis(50);

async fn term(gate: &Gate) -> Term {
    let guard = gate.streams().enter(bearer().run_id());
    let granted = verify(gate).await.unwrap_or_else(|refusal| panic!("{refusal}"));
    Term::new(gate, &bearer(), guard, &granted)
}

#[tokio::test]
async fn a_request_whose_time_is_over_goes_on_while_control_says_that_its_run_has_more() {
    let a = Scripted::tcp("a").await;
    let gate = gate(&[&a], LONG).await;
    a.leave(BRIEF);
    // From before the first question on, so that whoever is late only makes the time longer.
    let start = Instant::now();
    let term = term(&gate).await;
    tokio::select! { why = term.ended() => panic!("{why:?}"), () = a.until_seen(4) => {} }
    // The second may come as soon as the time is over, and those after it a second apart.
    let took = start.elapsed();
    assert!(took >= Duration::from_secs(2), "control is asked all the time: {took:?}");
}

#[tokio::test]
async fn a_request_ends_with_its_time_for_what_control_says_then() {
    let a = Scripted::tcp("a").await;
    let gate = gate(&[&a], SHORT).await;
    a.leave(BRIEF);
    let table = [
        (v1::Reason::RunExpired, Interruption::Expired),
        (v1::Reason::RunRevoked, Interruption::Revoked),
        (v1::Reason::BearerWrong, Interruption::Replaced),
        (v1::Reason::StoreUnavailable, Interruption::Control),
    ];
    for (reason, interruption) in table {
        a.refuse(None);
        let term = term(&gate).await;
        a.refuse(Some(reason));
        assert_eq!(timeout(LONG, term.ended()).await, Ok(interruption));
    }
    a.refuse(None);
    let term = term(&gate).await;
    a.be_silent();
    assert_eq!(timeout(LONG, term.ended()).await, Ok(Interruption::Control));
}

#[tokio::test]
async fn a_request_ends_at_once_when_control_tells_of_the_end() {
    let a = Scripted::tcp("a").await;
    let gate = gate(&[&a], LONG).await;
    let term = term(&gate).await;
    a.revoke("run");
    assert_eq!(timeout(LONG / 2, term.ended()).await, Ok(Interruption::Revoked));
    assert_eq!(a.seen().len(), 1);
}
