//! Sessions of several data planes.

use super::*;

fn is_unknown(refusal: Option<v1::Refusal>) -> bool {
    refusal.is_some_and(|refusal| refusal.reason() == v1::Reason::AuthorizationUnknown)
}

#[tokio::test]
async fn what_one_data_plane_was_permitted_another_cannot_renew_report_or_replace() {
    let mut control = Control::start().await;
    let bearer = control.register("r", "acme/api").await.unwrap();
    let mut own = control.session().await;
    let ticket = own.permit(&bearer, push("x")).await.authorization;
    let mut other = control.session_of([&[2; 32][..]]).await.unwrap();
    for sent in [false, true] {
        let v1::renew_lease_response::Verdict::Refusal(refusal) = other.renew(&ticket, sent).await else {
            panic!()
        };
        assert!(is_unknown(Some(refusal)));
    }
    let Answer::Report(reported) = other.ask(report(&ticket)).await else { panic!() };
    assert!(is_unknown(reported.refusal));
    let question = v1::ReplaceTokenRequest { authorization: ticket.clone(), token_id: "x".into(), context: None };
    let Answer::ReplaceToken(replaced) = other.ask(Question::ReplaceToken(question)).await else { panic!() };
    let Some(v1::replace_token_response::Verdict::Refusal(refusal)) = replaced.verdict else { panic!() };
    assert!(is_unknown(Some(refusal)));
    assert_eq!(control.run("r").await.pushes[0].outcome(), v1::PushOutcome::Open);
    // One that comes back is who it was.
    drop(own);
    let mut own = control.session().await;
    assert!(matches!(own.renew(&ticket, false).await, v1::renew_lease_response::Verdict::Lease(_)));
    assert!(matches!(own.ask(report(&ticket)).await, Answer::Report(v1::ReportPushResponse { refusal: None })));
}

#[tokio::test]
async fn a_session_of_a_holder_that_cannot_be_read_is_refused_in_words() {
    let control = Control::start().await;
    let (short, whole, long) = (&[1; 31][..], &[1; 32][..], &[1; 33][..]);
    for shown in [&[&[][..]][..], &[short], &[long], &[whole, whole], &[whole, short], &[short, whole]] {
        let Err(status) = control.session_of(shown.iter().copied()).await else { panic!("{shown:?}") };
        assert_eq!(status.code(), Code::InvalidArgument);
        assert!(status.message().contains("32 bytes"), "{status}");
    }
}
