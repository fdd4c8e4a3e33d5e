//! Controls whose store does not answer.

use gitdoor_proto::Reason;

use super::*;

fn is_outage(refusal: Option<&Refusal>) -> bool {
    matches!(refusal, Some(Refusal::Denied(denial)) if denial.reason == Reason::StoreUnavailable)
}

#[tokio::test]
async fn a_control_without_its_store_costs_no_question_and_is_passed_over() {
    let (a, b) = (Scripted::tcp("a").await, Scripted::tcp("b").await);
    let gate = gate(&[&a, &b], LONG).await;
    a.lose_store(true);
    ask_many(&gate, 8, 1).await;
    let before = a.seen().len();
    assert!(before > 0, "nobody has asked it");
    ask_many(&gate, 4, 25).await;
    assert_eq!(a.seen().len(), before, "it was not passed over");
}

#[tokio::test]
async fn a_control_without_its_store_is_asked_again_once_it_answers_something_else() {
    let (a, b) = (Scripted::tcp("a").await, Scripted::tcp("b").await);
    let gate = gate(&[&a, &b], LONG).await;
    let mut granted = Vec::new();
    for _ in 0..2 {
        granted.push(push(&gate).await.unwrap_or_else(|refusal| panic!("{refusal}")));
    }
    a.lose_store(true);
    ask_many(&gate, 8, 1).await;
    let before = a.seen().len();
    a.lose_store(false);
    ask_many(&gate, 2, 5).await;
    assert_eq!(a.seen().len(), before, "it was not passed over");
    // When the others are no better, it has another chance.
    b.lose_store(true);
    verify(&gate).await.unwrap_or_else(|refusal| panic!("{refusal}"));
    assert!(a.seen().len() > before);
    let (a_before, b_before) = (a.seen().len(), b.seen().len());
    ask_many(&gate, 2, 5).await;
    assert_eq!((a.seen().len(), b.seen().len()), (a_before + 10, b_before), "the one that answers is passed over");
}

#[tokio::test]
async fn that_no_store_answers_is_said_when_every_control_has_said_so() {
    let names = ["a", "b", "c", "d", "e"];
    let mut controls = Vec::new();
    for name in names {
        controls.push(Scripted::tcp(name).await);
    }
    let gate = gate(&controls.iter().collect::<Vec<_>>(), LONG).await;
    for control in &controls {
        control.lose_store(true);
    }
    let refusal = verify(&gate).await.err();
    assert!(is_outage(refusal.as_ref()), "{refusal:?}");
    assert!(controls.iter().all(|control| control.seen().len() == 1), "one was not asked, or twice");
    controls[4].lose_store(false);
    let granted = verify(&gate).await.unwrap_or_else(|refusal| panic!("{refusal}"));
    assert_eq!(granted.permit.authorization(), "e");
}

#[tokio::test]
async fn that_a_store_does_not_answer_is_said_where_the_other_control_says_nothing() {
    let (a, b) = (Scripted::tcp("a").await, Scripted::tcp("b").await);
    let gate = gate(&[&a, &b], SHORT).await;
    a.lose_store(true);
    b.be_silent();
    let refusal = verify(&gate).await.err();
    assert!(is_outage(refusal.as_ref()), "{refusal:?}");
}

#[tokio::test]
async fn a_push_is_put_to_a_control_without_its_store_once_and_the_next_to_another() {
    let (a, b) = (Scripted::tcp("a").await, Scripted::tcp("b").await);
    let gate = gate(&[&a, &b], LONG).await;
    a.lose_store(true);
    b.lose_store(true);
    let refusal = push(&gate).await.err();
    assert!(is_outage(refusal.as_ref()), "{refusal:?}");
    assert_eq!(pushes(&a) + pushes(&b), 1);
    let (storeless, other) = if pushes(&a) == 1 { (&a, &b) } else { (&b, &a) };
    other.lose_store(false);
    for _ in 0..10 {
        push(&gate).await.unwrap_or_else(|refusal| panic!("{refusal}"));
    }
    assert_eq!((pushes(storeless), pushes(other)), (1, 10));
}

#[tokio::test]
async fn what_follows_an_authorization_leaves_a_home_without_its_store() {
    let (a, b) = (Scripted::tcp("a").await, Scripted::tcp("b").await);
    let gate = gate(&[&a, &b], LONG).await;
    let granted = push(&gate).await.unwrap_or_else(|refusal| panic!("{refusal}"));
    let home = if granted.permit.authorization() == "a" { &a } else { &b };
    home.lose_store(true);
    let token = v1::Token { value: "ghs_x".into(), id: "1".into(), age: Some(prost_types::Duration::default()) };
    let token = gitdoor_proto::Token::try_from(token).unwrap();
    for _ in 0..2 {
        gate.bind(&granted).await.unwrap_or_else(|refusal| panic!("{refusal}"));
        gate.renew(&granted, false).await.unwrap_or_else(|refusal| panic!("{refusal}"));
        gate.replace_token(&granted, &token).await.unwrap_or_else(|refusal| panic!("{refusal}"));
        let report = v1::ReportPushRequest::default();
        gate.report(&granted, report).await.unwrap_or_else(|refusal| panic!("{refusal}"));
    }
    assert_eq!(home.seen().len(), 2, "the push, and the one question that showed it");
}
