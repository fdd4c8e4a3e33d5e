//! Controls that die, drain, and come back.

use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::gate::GateError;
use crate::gate::pool::{Choice, Wish};

#[tokio::test]
async fn a_control_that_dies_under_load_costs_no_question_that_may_be_asked_twice() {
    let (mut a, b) = (Scripted::tcp("a").await, Scripted::tcp("b").await);
    let gate = gate(&[&a, &b], LONG).await;
    // They ask until it is dead, however long one of the two is left without a processor.
    let over = Arc::new(AtomicBool::new(false));
    let load: Vec<_> = (0..16)
        .map(|_| {
            let (gate, over) = (gate.clone(), over.clone());
            tokio::spawn(async move {
                while !over.load(Ordering::Relaxed) {
                    ask_many(&gate, 1, 1).await;
                }
            })
        })
        .collect();
    a.until_seen(100).await;
    // From here on it has questions that it does not answer.
    a.be_silent();
    a.until_seen(a.seen().len() + 1).await;
    a.stop().await;
    over.store(true, Ordering::Relaxed);
    for asked in join_all(load).await {
        asked.unwrap();
    }
    let asked = b.seen().len();
    a.speak();
    a.start_again().await;
    until_live(&gate, 2).await;
    ask_many(&gate, 1, 20).await;
    assert_eq!(b.seen().len(), asked + 10, "who came back has its share again");
}

#[tokio::test]
async fn a_control_that_drains_and_comes_back_is_asked_again() {
    let (a, b) = (Scripted::tcp("a").await, Scripted::tcp("b").await);
    let gate = gate(&[&a, &b], LONG).await;
    a.drain();
    until_live(&gate, 1).await;
    ask_many(&gate, 4, 10).await;
    let (drained, other) = (a.seen().len(), b.seen().len());
    assert_eq!((drained, other), (0, 40));
    a.come_back();
    until_live(&gate, 2).await;
    ask_many(&gate, 1, 20).await;
    assert_eq!((a.seen().len(), b.seen().len()), (10, 50));
}

#[tokio::test]
async fn a_question_waits_for_the_only_control_to_come_back() {
    let mut a = Scripted::tcp("a").await;
    let gate = gate(&[&a], LONG).await;
    a.be_silent();
    let asking = gate.clone();
    let question = tokio::spawn(async move { verify(&asking).await.is_ok() });
    a.until_seen(1).await;
    a.stop().await;
    a.speak();
    a.start_again().await;
    assert!(question.await.unwrap());
    assert_eq!(a.seen().len(), 2);
}

#[tokio::test]
async fn a_push_that_control_may_have_seen_is_put_to_nobody_else() {
    let (mut a, mut b) = (Scripted::tcp("a").await, Scripted::tcp("b").await);
    let gate = gate(&[&a, &b], LONG).await;
    a.be_silent();
    b.be_silent();
    let asking = gate.clone();
    let question = tokio::spawn(async move { push(&asking).await.err() });
    let (asked, other) = tokio::select! {
        () = a.until_seen(1) => (&mut a, &b),
        () = b.until_seen(1) => (&mut b, &a),
    };
    asked.stop().await;
    let refusal = question.await.unwrap();
    assert!(matches!(refusal, Some(Refusal::Gate(GateError::Lost))), "{refusal:?}");
    ask_after(&gate, other).await;
    assert_eq!((pushes(&a), pushes(&b)), if pushes(&a) == 1 { (1, 0) } else { (0, 1) });
}

/// Asks a question that shows that all before it have come.
async fn ask_after(gate: &Gate, control: &Scripted) {
    control.speak();
    until_live(gate, 1).await;
    verify(gate).await.unwrap_or_else(|refusal| panic!("{refusal}"));
}

/// Waits until the connection of the only session has taken a question.
async fn until_taken(gate: &Gate) {
    let wish = Wish { home: None, repeatable: true };
    let Choice::Session(session) = gate.pool.choose(wish, |_| false) else { panic!("there is no session") };
    while session.taken() == 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_push_that_was_not_sent_is_put_to_another_control() {
    let (mut deaf, b) = (Scripted::deaf("deaf").await, Scripted::tcp("b").await);
    let name = Name::of(&[&deaf]);
    let gate = over(vec![name.clone()], LONG, OFTEN);
    until_live(&gate, 1).await;
    // The connection takes one question while it does not know yet that the window is shut.
    let asking = gate.clone();
    let first = tokio::spawn(async move { verify(&asking).await.is_ok() });
    until_taken(&gate).await;
    let asking = gate.clone();
    let question = tokio::spawn(async move { push(&asking).await });
    name.set(&[&deaf, &b]);
    until_live(&gate, 2).await;
    assert_eq!(pushes(&b), 0);
    deaf.stop().await;
    let granted = question.await.unwrap().unwrap_or_else(|refusal| panic!("{refusal}"));
    assert_eq!(granted.permit.authorization(), "b");
    assert!(first.await.unwrap());
    assert_eq!((deaf.seen().len(), pushes(&b)), (0, 1));
}
