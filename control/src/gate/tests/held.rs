//! What was authorized is its holder's alone.

use super::*;

/// Those who did not ask.
fn others() -> [Option<Holder>; 2] {
    [None, Some(Holder::of(b"b"))]
}

impl Door {
    /// Whether nobody but the holder gets anything for this ticket.
    async fn is_of_no_use_to_others(&self, text: &str) {
        for holder in others() {
            let ticket = Shown { text, holder };
            assert_eq!(reason(self.gate.bind(ticket, start()).await), Reason::AuthorizationUnknown);
            for sent in [false, true] {
                assert_eq!(reason(self.gate.renew(ticket, sent, start()).await), Reason::AuthorizationUnknown);
            }
            let replaced = self.gate.replace_token(ticket, "x", start()).await;
            assert_eq!(reason(replaced), Reason::AuthorizationUnknown);
            let reported = Report { holder, ..report(text, Outcome::Done) };
            assert_eq!(reason(self.gate.report(reported, start()).await), Reason::AuthorizationUnknown);
        }
    }
}

#[tokio::test]
async fn an_authorization_is_of_no_use_to_another_data_plane() {
    let door = Door::new();
    let bearer = door.writer().await;
    let found = door.ask(&bearer, discovery("acme/api")).await.unwrap().authorization;
    let fetched = door.ask(&bearer, fetch("acme/api")).await.unwrap().authorization;
    door.is_of_no_use_to_others(&found).await;
    door.is_of_no_use_to_others(&fetched).await;
    assert_eq!(door.stored().await.binding, None);
    door.gate.bind(shown(&found), start()).await.unwrap();
    let probed = door.ask(&bearer, probe("acme/api")).await.unwrap().authorization;
    door.is_of_no_use_to_others(&probed).await;
    let pushed = door.ask(&bearer, push("acme/api", &["refs/heads/x"])).await.unwrap().authorization;
    door.is_of_no_use_to_others(&pushed).await;
    assert_eq!(door.pushes().await[0].outcome, Outcome::Open);
    door.gate.renew(shown(&pushed), false, start()).await.unwrap();
    door.gate.report(report(&pushed, Outcome::Done), start()).await.unwrap();
    assert_eq!(door.pushes().await[0].outcome, Outcome::Done);
}

#[tokio::test]
async fn a_push_stays_its_holders_when_the_bearer_was_replaced() {
    let door = Door::new();
    let bearer = door.bound().await;
    let pushed = door.ask(&bearer, push("acme/api", &["refs/heads/x"])).await.unwrap().authorization;
    door.rotate().await;
    door.is_of_no_use_to_others(&pushed).await;
    assert_eq!(reason(door.gate.renew(shown(&pushed), false, start()).await), Reason::BearerWrong);
    door.gate.report(report(&pushed, Outcome::Interrupted), start()).await.unwrap();
}

#[tokio::test]
async fn a_push_cannot_be_opened_again_by_another_data_plane_that_knows_its_key() {
    let door = Door::new();
    let bearer = door.bound().await;
    let Intent::Push(named) = push("acme/api", &["refs/heads/x"]) else { unreachable!() };
    let message = v1::AuthorizeRequest {
        run_id: bearer.run_id().to_string(),
        secret: bearer.expose_secret().into(),
        request_id: "q-1".into(),
        intent: Some(Intent::Push(v1::PushIntent { key: vec![7; 16], ..named })),
        ..Default::default()
    };
    let ask = async |holder| door.gate.authorize(Question::read(message.clone(), holder).unwrap(), start()).await;
    let first = ask(Some(holder())).await.unwrap().permit.authorization;
    for other in others() {
        assert_eq!(reason(ask(other).await), Reason::AuthorizationUnknown);
    }
    assert_eq!(ask(Some(holder())).await.unwrap().permit.authorization, first);
}

#[tokio::test]
async fn what_a_control_of_before_holders_authorized_is_good_to_a_data_plane_that_says_who_it_is() {
    let door = Door::new();
    let bearer = door.writer().await;
    let ask = async |intent| {
        let message = v1::AuthorizeRequest {
            run_id: bearer.run_id().to_string(),
            secret: bearer.expose_secret().into(),
            request_id: "q-1".into(),
            intent: Some(intent),
            ..Default::default()
        };
        let permitted = door.gate.authorize(Question::read(message, None).unwrap(), start()).await;
        permitted.unwrap().permit.authorization
    };
    let found = ask(discovery("acme/api")).await;
    door.gate.bind(shown(&found), start()).await.unwrap();
    let pushed = ask(push("acme/api", &["refs/heads/x"])).await;
    door.gate.renew(shown(&pushed), false, start()).await.unwrap();
    door.rotate().await;
    door.gate.renew(shown(&pushed), true, start()).await.unwrap();
    door.gate.report(report(&pushed, Outcome::Done), start()).await.unwrap();
    assert_eq!(door.pushes().await[0].outcome, Outcome::Done);
}
