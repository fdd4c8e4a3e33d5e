//! What follows an authorization goes to the control that gave it.

use super::*;

fn renewals(control: &Scripted) -> usize {
    control.seen().iter().filter(|question| matches!(question, Question::Renew(_))).count()
}

async fn renew(gate: &Gate, granted: &Granted) {
    gate.renew(granted, false).await.unwrap_or_else(|refusal| panic!("{refusal}"));
}

#[tokio::test]
async fn what_follows_an_authorization_goes_home_and_elsewhere_once_home_is_lost() {
    let (mut a, mut b) = (Scripted::tcp("a").await, Scripted::tcp("b").await);
    let gate = gate(&[&a, &b], LONG).await;
    let granted = push(&gate).await.unwrap_or_else(|refusal| panic!("{refusal}"));
    let at_a = granted.permit.authorization() == "a";
    let (home, other) = if at_a { (&mut a, &mut b) } else { (&mut b, &mut a) };
    for _ in 0..10 {
        renew(&gate, &granted).await;
    }
    assert_eq!((renewals(home), renewals(other)), (10, 0));
    home.stop().await;
    renew(&gate, &granted).await;
    assert_eq!((renewals(home), renewals(other)), (10, 1));
    // The other has taken it over, and it stays there.
    home.start_again().await;
    until_live(&gate, 2).await;
    for _ in 0..10 {
        renew(&gate, &granted).await;
    }
    assert_eq!((renewals(home), renewals(other)), (10, 11));
}

#[tokio::test]
async fn what_follows_an_authorization_leaves_a_home_that_is_silent() {
    let (a, b) = (Scripted::tcp("a").await, Scripted::tcp("b").await);
    let gate = gate(&[&a, &b], SHORT).await;
    let granted = push(&gate).await.unwrap_or_else(|refusal| panic!("{refusal}"));
    let (home, other) = if granted.permit.authorization() == "a" { (&a, &b) } else { (&b, &a) };
    home.be_silent();
    for _ in 0..10 {
        renew(&gate, &granted).await;
    }
    assert_eq!((renewals(home), renewals(other)), (1, 10));
}

#[tokio::test]
async fn every_question_is_asked_with_its_request_and_what_follows_with_the_authorization() {
    let a = Scripted::tcp("a").await;
    let gate = gate(&[&a], LONG).await;
    let granted = push(&gate).await.unwrap_or_else(|refusal| panic!("{refusal}"));
    renew(&gate, &granted).await;
    let token = v1::Token { value: "ghs_x".into(), id: "1".into(), age: Some(prost_types::Duration::default()) };
    let token = gitdoor_proto::Token::try_from(token).unwrap();
    gate.bind(&granted).await.unwrap_or_else(|refusal| panic!("{refusal}"));
    gate.replace_token(&granted, &token).await.unwrap_or_else(|refusal| panic!("{refusal}"));
    let report = v1::ReportPushRequest { request_bytes: 7, ..Default::default() };
    gate.report(&granted, report).await.unwrap_or_else(|refusal| panic!("{refusal}"));
    let named: Vec<_> = a
        .seen()
        .into_iter()
        .filter_map(|question| match question {
            Question::Authorize(it) => {
                assert_eq!((it.request_id.as_str(), it.trace_parent.as_str()), ("q", TRACE));
                None
            }
            Question::Bind(it) => Some(("bind", it.authorization, it.context)),
            Question::Renew(it) => Some(("renew", it.authorization, None)),
            Question::Report(it) => Some(("report", it.authorization, it.context)),
            Question::ReplaceToken(it) => Some(("replace", it.authorization, it.context)),
        })
        .collect();
    let context = v1::RequestContext { request_id: "q".into(), trace_parent: TRACE.into() };
    let expected = ["renew", "bind", "replace", "report"].map(|question| {
        // A renewal stands in no event.
        (question, "a".to_owned(), (question != "renew").then(|| context.clone()))
    });
    assert_eq!(named, expected);
}
