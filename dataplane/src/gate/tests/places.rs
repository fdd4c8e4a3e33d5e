//! The places of permits, each given back once.

use super::*;

/// What a control was told, in order, after so many.
async fn told(control: &Scripted, count: usize) -> Vec<u64> {
    control.until_ended(count).await;
    let mut ended = control.ended();
    ended.sort_unstable();
    ended
}

#[tokio::test]
async fn the_place_of_each_permit_is_given_back_once_and_not_before_it_is_dropped() {
    let a = Scripted::tcp("a").await;
    let gate = gate(&[&a], LONG).await;
    let mut granted = Vec::new();
    for _ in 0..40 {
        granted.push(verify(&gate).await.unwrap_or_else(|refusal| panic!("{refusal}")));
    }
    let kept = granted.split_off(20);
    assert!(a.ended().is_empty());
    drop(granted);
    assert_eq!(told(&a, 20).await, (1..=20).collect::<Vec<_>>());
    // What was given back twice would be said with these.
    drop(kept);
    drop(verify(&gate).await);
    assert_eq!(told(&a, 41).await, (1..=41).collect::<Vec<_>>());
    drop(verify(&gate).await);
    assert_eq!(told(&a, 42).await, (1..=42).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_permit_that_nobody_waits_for_any_more_is_given_back() {
    let a = Scripted::tcp("a").await;
    let gate = gate(&[&a], SHORT).await;
    a.be_silent();
    let asking = gate.clone();
    let left = tokio::spawn(async move { verify(&asking).await.map(drop) });
    a.until_seen(1).await;
    left.abort();
    assert!(left.await.unwrap_err().is_cancelled());
    let refusal = verify(&gate).await.err();
    assert!(matches!(refusal, Some(Refusal::Gate(crate::gate::GateError::Timeout))), "{refusal:?}");
    assert!(a.ended().is_empty());
    a.speak();
    assert_eq!(told(&a, 2).await, [1, 2]);
}

#[tokio::test]
async fn a_question_that_two_controls_answer_has_its_place_back_from_the_later() {
    let (a, b) = (Scripted::tcp("a").await, Scripted::tcp("b").await);
    let gate = gate(&[&a, &b], SHORT).await;
    a.be_silent();
    let mut granted = Vec::new();
    while a.seen().is_empty() {
        granted.push(verify(&gate).await.unwrap_or_else(|refusal| panic!("{refusal}")));
    }
    assert!(granted.iter().all(|granted| granted.permit.authorization() == "b"));
    a.speak();
    assert_eq!((told(&a, 1).await, b.ended()), (vec![1], vec![]));
    let count = granted.len();
    drop(granted);
    assert_eq!(told(&b, count).await.len(), count);
}

#[tokio::test]
async fn what_is_refused_has_no_place() {
    let a = Scripted::tcp("a").await;
    let gate = gate(&[&a], LONG).await;
    a.lose_store(true);
    assert!(verify(&gate).await.is_err());
    a.lose_store(false);
    drop(verify(&gate).await);
    assert_eq!(told(&a, 1).await, [2]);
}
