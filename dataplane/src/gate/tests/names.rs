//! A name, and the addresses that it stands for from time to time.

use super::*;

#[tokio::test]
async fn every_address_of_a_name_is_asked() {
    let (a, b) = (Scripted::tcp("a").await, Scripted::tcp("b").await);
    let name = Name::of(&[&a]);
    let gate = over(vec![name.clone()], LONG, OFTEN);
    until_live(&gate, 1).await;
    name.set(&[&a, &b]);
    until_live(&gate, 2).await;
    ask_many(&gate, 1, 20).await;
    assert_eq!((a.seen().len(), b.seen().len()), (10, 10));
}

#[tokio::test]
async fn an_address_that_two_names_stand_for_is_asked_over_one_session() {
    let a = Scripted::tcp("a").await;
    let (one, two) = (Name::of(&[&a]), Name::of(&[&a]));
    let gate = over(vec![one.clone(), two.clone()], LONG, OFTEN);
    until_live(&gate, 1).await;
    two.fail();
    two.until_looked_up(3).await;
    until_live(&gate, 1).await;
}

#[tokio::test]
async fn an_address_that_is_gone_is_let_go_when_its_questions_are_answered() {
    let (a, b) = (Scripted::tcp("a").await, Scripted::tcp("b").await);
    let name = Name::of(&[&a]);
    let gate = over(vec![name.clone()], LONG, OFTEN);
    until_live(&gate, 1).await;
    a.be_silent();
    let asking = gate.clone();
    let question = tokio::spawn(async move { push(&asking).await });
    a.until_seen(1).await;
    name.set(&[&a, &b]);
    until_live(&gate, 2).await;
    name.set(&[&b]);
    until_live(&gate, 1).await;
    ask_many(&gate, 1, 10).await;
    a.speak();
    let granted = question.await.unwrap().unwrap_or_else(|refusal| panic!("{refusal}"));
    assert_eq!(granted.permit.authorization(), "a");
    assert_eq!((a.seen().len(), b.seen().len()), (1, 10));
}

#[tokio::test]
async fn a_look_up_that_fails_or_finds_nothing_changes_nothing() {
    let (a, b) = (Scripted::tcp("a").await, Scripted::tcp("b").await);
    let name = Name::of(&[&a, &b]);
    let gate = over(vec![name.clone()], LONG, OFTEN);
    until_live(&gate, 2).await;
    name.fail();
    name.until_looked_up(3).await;
    name.set(&[]);
    name.until_looked_up(3).await;
    ask_many(&gate, 1, 20).await;
    assert_eq!((a.seen().len(), b.seen().len()), (10, 10));
}

#[tokio::test]
async fn names_are_looked_up_at_once_when_every_control_is_lost() {
    let (mut a, b) = (Scripted::tcp("a").await, Scripted::tcp("b").await);
    let name = Name::of(&[&a]);
    let gate = over(vec![name.clone()], LONG, NEVER);
    until_live(&gate, 1).await;
    name.set(&[&b]);
    a.stop().await;
    let granted = verify(&gate).await.unwrap_or_else(|refusal| panic!("{refusal}"));
    assert_eq!(granted.permit.authorization(), "b");
}

#[tokio::test]
async fn a_gate_that_nobody_holds_ends_its_sessions() {
    let a = Scripted::tcp("a").await;
    let gate = gate(&[&a], LONG).await;
    let live = Arc::clone(&gate.pool.live);
    drop(gate);
    tokio::time::timeout(LONG, live.until(|sessions| sessions == 0)).await.unwrap();
}

#[tokio::test]
async fn a_data_plane_is_the_same_holder_to_every_control_and_another_one_is_another() {
    let (mut a, b) = (Scripted::tcp("a").await, Scripted::tcp("b").await);
    let (one, _other) = (gate(&[&a, &b], LONG).await, gate(&[&a, &b], LONG).await);
    let (at_a, at_b) = (a.holders(), b.holders());
    let [first, second] = at_a.as_slice() else { panic!("{} sessions", at_a.len()) };
    assert_eq!((first.len(), second.len()), (32, 32));
    assert_ne!(first, second);
    assert!(at_b.len() == 2 && at_b.contains(first) && at_b.contains(second));
    a.stop().await;
    until_live(&one, 1).await;
    a.start_again().await;
    until_live(&one, 2).await;
    assert!(a.holders().iter().skip(2).all(|holder| at_a.contains(holder)), "it came back as another");
}
