//! Requests of a run at once: counted from their permit until their data plane says that they have ended.

use gitdoor_proto::v1::authorize_request::Intent;
use gitdoor_proto::v1::authorize_response::Verdict;

use super::*;
use crate::gate::REQUESTS;

fn fetch() -> Intent {
    Intent::Fetch(v1::Fetch { repository: "acme/api".into() })
}

impl Session {
    /// Asks for a fetch, and says of `ended` that they have ended. The question's id, or why it was refused.
    async fn fetch_after(&mut self, bearer: &Bearer, ended: Vec<u64>) -> Result<u64, v1::Refusal> {
        self.id += 1;
        let question = Some(Question::Authorize(authorize(bearer, fetch())));
        self.questions.send(v1::SessionRequest { id: self.id, question, ended }).await.unwrap();
        let answer = self.next().await;
        assert_eq!(answer.id, self.id);
        let Some(Answer::Authorize(v1::AuthorizeResponse { verdict: Some(verdict) })) = answer.answer else {
            panic!()
        };
        match verdict {
            Verdict::Permit(_) => Ok(self.id),
            Verdict::Refusal(refusal) => Err(refusal),
        }
    }

    async fn fetch(&mut self, bearer: &Bearer) -> Result<u64, v1::Refusal> {
        self.fetch_after(bearer, Vec::new()).await
    }

    /// Fetches until there is no place left; the ids of those that were permitted.
    async fn fill(&mut self, bearer: &Bearer) -> Vec<u64> {
        let mut ids = Vec::new();
        loop {
            match self.fetch(bearer).await {
                Ok(id) => ids.push(id),
                Err(refusal) => {
                    assert_eq!(refusal.reason(), v1::Reason::RequestLimit, "{refusal:?}");
                    assert_eq!(refusal.retry_after.unwrap().seconds, 1);
                    assert!(refusal.message.contains("32 requests in progress; wait"), "{}", refusal.message);
                    return ids;
                }
            }
        }
    }
}

#[tokio::test]
async fn a_run_has_so_many_requests_at_once_whichever_session_asks() {
    let mut control = Control::start().await;
    let (bearer, other) = (control.register("r", "").await.unwrap(), control.register("s", "").await.unwrap());
    let (mut one, mut two) = (control.session().await, control.session().await);
    let places = one.fill(&bearer).await;
    assert_eq!(places.len(), REQUESTS as usize);
    two.fetch(&bearer).await.unwrap_err();
    two.fetch(&other).await.unwrap();
    // Each session speaks of its own questions alone, and of each once.
    two.end(places.clone()).await;
    two.fetch(&bearer).await.unwrap_err();
    one.end(vec![places[0], places[0], places[1], 9999]).await;
    assert_eq!(one.fill(&bearer).await.len(), 2);
    // To know whether a bearer is good takes no place.
    one.permit(&bearer, verify()).await;
}

#[tokio::test]
async fn what_ends_with_a_question_makes_a_place_for_it() {
    let mut control = Control::start().await;
    let bearer = control.register("r", "").await.unwrap();
    let mut session = control.session().await;
    let places = session.fill(&bearer).await;
    for id in places {
        session.fetch_after(&bearer, vec![id]).await.unwrap();
    }
    session.fetch(&bearer).await.unwrap_err();
}

#[tokio::test]
async fn what_asks_nothing_has_no_answer() {
    let mut control = Control::start().await;
    let bearer = control.register("r", "").await.unwrap();
    let mut session = control.session().await;
    session.end(vec![1, 2, 3]).await;
    session.end(Vec::new()).await;
    // The next answer is to this, and of its id.
    session.permit(&bearer, verify()).await;
}

#[tokio::test]
async fn the_places_of_a_session_go_with_it() {
    let mut control = Control::start().await;
    let bearer = control.register("r", "").await.unwrap();
    let mut lost = control.session().await;
    lost.fill(&bearer).await;
    let mut session = control.session().await;
    session.fetch(&bearer).await.unwrap_err();
    drop(lost);
    let start = Instant::now();
    while session.fetch(&bearer).await.is_err() {
        assert!(start.elapsed() < Duration::from_mins(1), "the places of a lost session stay taken");
    }
    assert_eq!(session.fill(&bearer).await.len(), REQUESTS as usize - 1);
}

#[tokio::test]
async fn who_does_not_hold_the_secret_takes_no_place() {
    let mut control = Control::start().await;
    let bearer = control.register("r", "").await.unwrap();
    let stranger = Bearer::generate(bearer.run_id().clone()).unwrap();
    let mut session = control.session().await;
    for _ in 0..2 * REQUESTS {
        assert_eq!(session.fetch(&stranger).await.unwrap_err().reason(), v1::Reason::BearerWrong);
    }
    assert_eq!(session.fill(&bearer).await.len(), REQUESTS as usize);
}

#[tokio::test]
async fn what_is_refused_and_what_is_asked_outside_a_session_takes_no_place() {
    let mut control = Control::start().await;
    let bearer = control.register("r", "").await.unwrap();
    let mut session = control.session().await;
    control.forge.fail(Some(MintError::Unavailable(Duration::from_secs(3))));
    for _ in 0..2 * REQUESTS {
        assert_eq!(session.fetch(&bearer).await.unwrap_err().reason(), v1::Reason::ForgeUnavailable);
    }
    control.forge.fail(None);
    for _ in 0..2 * REQUESTS {
        let answer = control.gate.authorize(authorize(&bearer, fetch())).await.unwrap().into_inner();
        assert!(matches!(answer.verdict, Some(Verdict::Permit(_))));
    }
    assert_eq!(session.fill(&bearer).await.len(), REQUESTS as usize);
}
