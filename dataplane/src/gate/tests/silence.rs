//! Controls that say nothing.

use std::net::TcpListener;

use super::*;
use crate::gate::GateError;

#[tokio::test]
async fn a_silent_control_costs_no_question_and_is_passed_over_until_it_answers() {
    let (a, b) = (Scripted::tcp("a").await, Scripted::tcp("b").await);
    let gate = gate(&[&a, &b], SHORT).await;
    a.be_silent();
    ask_many(&gate, 8, 1).await;
    let before = a.seen().len();
    assert!(before > 0, "nobody has asked it");
    ask_many(&gate, 4, 25).await;
    assert_eq!(a.seen().len(), before, "it was not passed over");
    // What it says now is late, and shows that it is back.
    a.speak();
    while a.seen().len() == before {
        verify(&gate).await.unwrap_or_else(|refusal| panic!("{refusal}"));
    }
}

#[tokio::test]
async fn a_push_is_put_to_a_silent_control_once_and_to_nobody_else() {
    let (a, b) = (Scripted::tcp("a").await, Scripted::tcp("b").await);
    let gate = gate(&[&a, &b], SHORT).await;
    a.be_silent();
    b.be_silent();
    let refusal = push(&gate).await.err();
    assert!(matches!(refusal, Some(Refusal::Gate(GateError::Timeout))), "{refusal:?}");
    assert_eq!(pushes(&a) + pushes(&b), 1);
    // That one is known to be silent: the next go to the other.
    let (silent, other) = if pushes(&a) == 1 { (&a, &b) } else { (&b, &a) };
    other.speak();
    for _ in 0..10 {
        push(&gate).await.unwrap_or_else(|refusal| panic!("{refusal}"));
    }
    assert_eq!((pushes(silent), pushes(other)), (1, 10));
}

#[tokio::test]
async fn the_only_control_is_asked_although_it_is_silent() {
    let a = Scripted::tcp("a").await;
    let gate = gate(&[&a], SHORT).await;
    a.be_silent();
    let refusal = verify(&gate).await.err();
    assert!(matches!(refusal, Some(Refusal::Gate(GateError::Timeout))), "{refusal:?}");
    assert_eq!(a.seen().len(), 1, "it was asked the same again");
    let asking = gate.clone();
    let question = tokio::spawn(async move { verify(&asking).await.is_ok() });
    a.until_seen(2).await;
    a.speak();
    assert!(question.await.unwrap());
}

#[tokio::test]
async fn a_listener_that_serves_nobody_costs_nothing() {
    let frozen = TcpListener::bind("127.0.0.1:0").unwrap();
    let a = Scripted::tcp("a").await;
    let name = Name::of(&[&a]);
    let addresses = Some(vec![Place::Tcp(frozen.local_addr().unwrap()).address(), a.place.address()]);
    name.0.send_modify(|found| found.addresses = addresses);
    let gate = over(vec![name], SHORT, NEVER);
    gate.connected().await;
    ask_many(&gate, 4, 25).await;
    assert_eq!(a.seen().len(), 100);
}

#[tokio::test]
async fn a_late_answer_reaches_nobody_else() {
    let a = Scripted::tcp("a").await;
    let gate = gate(&[&a], LONG).await;
    a.be_silent();
    let asking = gate.clone();
    let left = tokio::spawn(async move { verify(&asking).await.is_ok() });
    a.until_seen(1).await;
    left.abort();
    assert!(left.await.unwrap_err().is_cancelled());
    let asking = gate.clone();
    let granted = tokio::spawn(async move { verify(&asking).await.map(drop) });
    a.until_seen(2).await;
    a.speak();
    granted.await.unwrap().unwrap_or_else(|refusal| panic!("{refusal}"));
}
