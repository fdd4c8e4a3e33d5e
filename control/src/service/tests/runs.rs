//! The life of a run over a connection: what is a retry, what an adoption gives, and what a list shows meanwhile.

use std::time::{Duration, SystemTime};

use gitdoor_proto::{Bearer, v1};
use tonic::{Code, Status};

use super::{Control, authorize, verify};

const HOUR: prost_types::Duration = prost_types::Duration { seconds: 3600, nanos: 0 };

fn request() -> v1::RegisterRunRequest {
    v1::RegisterRunRequest { run_id: "r".into(), identity: v1::Identity::Write.into(), ..Default::default() }
}

async fn registered(control: &mut Control, request: v1::RegisterRunRequest) -> Result<Bearer, Status> {
    let answer = control.runs.register_run(request).await?.into_inner();
    Ok(Bearer::parse(&answer.bearer).unwrap())
}

async fn adopted(
    control: &mut Control,
    run: &str,
    budget: Option<prost_types::Duration>,
) -> Result<v1::Run, Status> {
    let answer = control.runs.adopt_run(v1::AdoptRunRequest { run_id: run.into(), budget }).await?;
    Ok(answer.into_inner().run.unwrap())
}

/// Uses a bearer, if it is one.
async fn works(control: &mut Control, bearer: &Bearer) -> bool {
    let answer = control.gate.authorize(authorize(bearer, verify())).await.unwrap().into_inner();
    matches!(answer.verdict, Some(v1::authorize_response::Verdict::Permit(_)))
}

async fn is_no_retry(control: &mut Control, request: v1::RegisterRunRequest) {
    let refused = registered(control, request.clone()).await.unwrap_err();
    assert_eq!(refused.code(), Code::AlreadyExists, "{request:?}");
    assert!(refused.message().contains("RotateBearer"), "{refused}");
}

#[tokio::test]
async fn a_registration_is_retried_until_the_bearer_was_used() {
    let mut control = Control::start().await;
    let lost = registered(&mut control, request()).await.unwrap();
    let registered_at = control.run("r").await.run.unwrap().registered_at;
    let kept = registered(&mut control, request()).await.unwrap();
    // Its time counts from the first.
    assert_eq!(control.run("r").await.run.unwrap().registered_at, registered_at);
    assert!(!works(&mut control, &lost).await);
    // What was shown was no bearer of the run, and used none.
    let newest = registered(&mut control, request()).await.unwrap();
    assert!(!works(&mut control, &kept).await && works(&mut control, &newest).await);
    is_no_retry(&mut control, request()).await;
    assert!(works(&mut control, &newest).await);
}

#[tokio::test]
async fn a_registration_on_any_other_terms_is_no_retry() {
    let mut control = Control::start().await;
    let options = v1::RunOptions { branches: vec!["a/*".into()], ..Default::default() };
    let first = v1::RegisterRunRequest { budget: Some(HOUR), options: Some(options.clone()), ..request() };
    let bearer = registered(&mut control, first.clone()).await.unwrap();
    let spoil = |change: fn(&mut v1::RegisterRunRequest)| {
        let mut other = first.clone();
        change(&mut other);
        other
    };
    for other in [
        spoil(|other| other.identity = v1::Identity::Read.into()),
        spoil(|other| other.repository = "acme/api".into()),
        spoil(|other| other.budget = None),
        spoil(|other| other.options = None),
        spoil(|other| other.options.as_mut().unwrap().branches.push("b".into())),
        spoil(|other| other.options.as_mut().unwrap().max_refs = 1),
        spoil(|other| other.options.as_mut().unwrap().no_workflows = true),
        spoil(|other| other.options.as_mut().unwrap().read_repositories.push("acme/api".into())),
        spoil(|other| other.options.as_mut().unwrap().api_burst = 1),
        spoil(|other| other.options.as_mut().unwrap().api_rate = 1.0),
    ] {
        is_no_retry(&mut control, other).await;
    }
    // A default that is spelled out is the same.
    let spelled = v1::RunOptions { api_burst: 200, api_rate: 2.0, ..options };
    let again = registered(&mut control, v1::RegisterRunRequest { options: Some(spelled), ..first }).await.unwrap();
    assert!(!works(&mut control, &bearer).await && works(&mut control, &again).await);
}

#[tokio::test]
async fn an_adopted_run_has_a_new_budget_and_the_same_bearer_and_binding() {
    let mut control = Control::start().await;
    let bearer = control.register("r", "acme/api").await.unwrap();
    let before = control.run("r").await.run.unwrap();
    assert_eq!(before.adopted_at, None);
    for (budget, minutes) in [(Some(HOUR), 65), (Some(HOUR), 65), (None, 50)] {
        let run = adopted(&mut control, "r", budget).await.unwrap();
        let time = |time: Option<prost_types::Timestamp>| SystemTime::try_from(time.unwrap()).unwrap();
        let given = time(run.expires_at).duration_since(time(run.adopted_at)).unwrap();
        assert_eq!(given, Duration::from_mins(minutes));
        let same = v1::Run { adopted_at: run.adopted_at, expires_at: run.expires_at, ..before.clone() };
        assert_eq!(run, same);
        assert_eq!(control.run("r").await.run, Some(run));
    }
    // Nobody has used it, but who began it is not who has it now.
    is_no_retry(&mut control, v1::RegisterRunRequest { repository: "acme/api".into(), ..request() }).await;
    assert!(works(&mut control, &bearer).await);
}

#[tokio::test]
async fn what_cannot_be_adopted_is_refused_in_words() {
    let mut control = Control::start().await;
    control.register("r", "").await.unwrap();
    let told = |refused: Status| (refused.code(), refused.message().to_owned());
    let unknown = adopted(&mut control, "s", None).await.unwrap_err();
    assert_eq!(told(unknown), (Code::NotFound, "no run has the id s".into()));
    let invalid = adopted(&mut control, "a b", None).await.unwrap_err();
    assert!(invalid.code() == Code::InvalidArgument && invalid.message().starts_with("run_id: "), "{invalid}");
    for (seconds, nanos) in [(0, 999_999_999), (86_400, 1_000), (-1, 0), (i64::MAX, 0)] {
        let budget = prost_types::Duration { seconds, nanos };
        let invalid = adopted(&mut control, "r", Some(budget)).await.unwrap_err();
        assert_eq!(told(invalid), (Code::InvalidArgument, "budget: 1 second to 24 hours".into()));
    }
    assert_eq!(control.run("r").await.run.unwrap().adopted_at, None);
    control.runs.revoke_run(v1::RevokeRunRequest { run_id: "r".into() }).await.unwrap();
    let ended = adopted(&mut control, "r", None).await.unwrap_err();
    assert_eq!(told(ended), (Code::FailedPrecondition, "the run r is revoked".into()));
}

#[tokio::test]
async fn a_list_shows_each_run_once_whoever_comes_meanwhile() {
    let mut control = Control::start().await;
    for run in ["b", "d", "f", "h"] {
        control.register(run, "").await.unwrap();
    }
    // Before the page that was listed, in it, and after it.
    let mut meanwhile = [["a", "c", "e"], ["a2", "d2", "g"]].into_iter();
    let (mut seen, mut page_token) = (Vec::new(), String::new());
    loop {
        let page = v1::ListRunsRequest { page_size: 2, page_token };
        let page = control.runs.list_runs(page).await.unwrap().into_inner();
        seen.extend(page.runs.into_iter().map(|run| run.run_id));
        page_token = page.next_page_token;
        if page_token.is_empty() {
            break;
        }
        for run in meanwhile.next().into_iter().flatten() {
            control.register(run, "").await.unwrap();
        }
    }
    assert_eq!(seen, ["b", "d", "e", "f", "g", "h"]);
}
