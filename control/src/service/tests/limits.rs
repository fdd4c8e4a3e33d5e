//! How much is taken at once, how large, and for how long.

use std::time::Duration;

use futures_util::future::join_all;
use gitdoor_proto::v1::gate_client::GateClient;
use gitdoor_proto::v1::runs_client::RunsClient;
use gitdoor_proto::v1::session_request::Question;
use gitdoor_proto::v1::session_response::Answer;
use gitdoor_proto::v1::tokens_client::TokensClient;
use gitdoor_proto::{Bearer, v1};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_stream::wrappers::ReceiverStream;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::{Code, Request, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

use super::listeners::{get, reader, short, stalling};
use crate::frozen::Frozen;
use crate::limit::{
    CALLS, GATE_MESSAGE_BYTES, QUESTIONS, QUESTIONS_PER_SESSION, READS, REVOCATIONS, RUNS_MESSAGE_BYTES, SESSIONS,
    TOKENS,
};
use crate::service::admission::Times;

/// Far longer than anything here takes.
const HANGS: Duration = Duration::from_mins(1);
/// Below the streams that a connection may have, so that its client holds none back.
const PER_CONNECTION: usize = 100;

#[tokio::test]
async fn a_thousand_calls_at_once_are_answered_or_refused_in_words_and_none_hangs() {
    const ALL: usize = 1000;
    let patient = Times { call: HANGS, revocation: HANGS };
    let (control, _folder) = stalling(patient).await;
    let mut runs = RunsClient::new(control.runs().await);
    runs.register_run(reader("r")).await.unwrap();
    control.store.stall(true);
    let (ends, mut ended) = mpsc::channel::<Result<(), Status>>(ALL);
    for _ in 0..ALL / PER_CONNECTION {
        let connection = RunsClient::new(control.runs().await);
        for _ in 0..PER_CONNECTION {
            let (mut runs, ends) = (connection.clone(), ends.clone());
            let rotate = v1::RotateBearerRequest { run_id: "r".into() };
            tokio::spawn(async move { ends.send(runs.rotate_bearer(rotate).await.map(drop)).await.unwrap() });
        }
    }
    drop(ends);
    for _ in CALLS..ALL {
        let refused = timeout(HANGS, ended.recv()).await.expect("at once").unwrap().unwrap_err();
        assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
        assert!(refused.message().contains("calls at once") && refused.message().contains("again"), "{refused}");
    }
    assert!(ended.is_empty(), "those that have a place wait");
    let mut health = HealthClient::new(control.runs().await);
    health.check(HealthCheckRequest::default()).await.expect("it is alive, and says so");
    assert_eq!(runs.list_runs(v1::ListRunsRequest::default()).await.unwrap_err().code(), Code::ResourceExhausted);
    let mut revoking = runs.clone();
    let revoked =
        tokio::spawn(async move { revoking.revoke_run(v1::RevokeRunRequest { run_id: "r".into() }).await });
    control.store.stall(false);
    for _ in 0..CALLS {
        timeout(HANGS, ended.recv()).await.expect("no call hangs").unwrap().expect("what has a place is answered");
    }
    assert!(ended.recv().await.is_none());
    revoked.await.unwrap().expect("an end of a run is not kept out by other calls");
    runs.get_run(get("r")).await.expect("and then there is place again");
}

#[tokio::test]
async fn lists_and_shows_keep_nothing_else_from_the_store_and_a_mirror_no_run_from_being_registered() {
    let patient = Times { call: HANGS, revocation: HANGS };
    let (control, _folder) = stalling(patient).await;
    let mut runs = RunsClient::new(control.runs().await);
    runs.register_run(reader("r")).await.unwrap();
    control.store.stall(true);
    let (ends, mut ended) = mpsc::channel::<Result<(), Status>>(READS + 1);
    for _ in 0..=READS {
        let (mut runs, ends) = (runs.clone(), ends.clone());
        tokio::spawn(async move { ends.send(runs.get_run(get("r")).await.map(drop)).await.unwrap() });
    }
    let refused = timeout(HANGS, ended.recv()).await.expect("after a moment").unwrap().unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
    assert!(refused.message().contains("lists and shows") && refused.message().contains("again"), "{refused}");
    let mut tokens = TokensClient::new(control.runs().await);
    let listed = tokens.list_mirror_tokens(v1::ListMirrorTokensRequest::default()).await;
    assert_eq!(listed.unwrap_err().code(), Code::ResourceExhausted, "its places are the same");

    let mut minting = Vec::new();
    for number in 0..TOKENS {
        if number % PER_CONNECTION == 0 {
            tokens = TokensClient::new(control.runs().await);
        }
        let mut tokens = tokens.clone();
        let mint = v1::MintMirrorTokenRequest { repository: "acme/api".into(), ..Default::default() };
        minting.push(tokio::spawn(async move { tokens.mint_mirror_token(mint).await }));
    }
    let full = async {
        let mint = v1::MintMirrorTokenRequest { repository: "acme".into(), ..Default::default() };
        loop {
            let refused = tokens.mint_mirror_token(mint.clone()).await.unwrap_err();
            if refused.code() == Code::ResourceExhausted {
                return refused;
            }
        }
    };
    let refused = timeout(HANGS, full).await.expect("all places are taken");
    assert!(refused.message().contains("token-calls at once"), "{refused}");
    timeout(HANGS, runs.register_run(reader("s"))).await.expect("it waits for none of them").unwrap();
    control.store.stall(false);
    for minted in join_all(minting).await {
        minted.unwrap().expect("what has a place is answered");
    }
    runs.get_run(get("r")).await.expect("and then there is place again");
}

#[tokio::test]
async fn a_message_that_is_too_large_is_refused_in_words_and_the_next_is_answered() {
    let (control, _folder) = stalling(Times::default()).await;
    let mut runs = RunsClient::new(control.runs().await);
    let large = runs.get_run(get(&"r".repeat(RUNS_MESSAGE_BYTES))).await.unwrap_err();
    assert_eq!(large.code(), Code::OutOfRange);
    assert!(large.message().contains(&RUNS_MESSAGE_BYTES.to_string()), "{large}");
    let invalid = runs.get_run(get(&"r".repeat(RUNS_MESSAGE_BYTES - 100))).await.unwrap_err();
    assert_eq!(invalid.code(), Code::InvalidArgument, "it was read");

    let mut gate = GateClient::new(control.gate().await);
    let question = |bytes| v1::AuthorizeRequest { run_id: "r".repeat(bytes), ..Default::default() };
    let large = gate.authorize(question(GATE_MESSAGE_BYTES)).await.unwrap_err();
    assert_eq!(large.code(), Code::OutOfRange);
    let invalid = gate.authorize(question(GATE_MESSAGE_BYTES - 100)).await.unwrap_err();
    assert_eq!(invalid.code(), Code::InvalidArgument, "it was read");
}

#[tokio::test]
async fn a_call_that_takes_too_long_ends_in_words_and_a_revocation_goes_on_without_its_caller() {
    let (control, _folder) = stalling(Times::default()).await;
    let hasty = control.beside(short()).await;
    let (mut runs, mut hasty) = (RunsClient::new(control.runs().await), RunsClient::new(hasty.runs().await));
    runs.register_run(reader("r")).await.unwrap();
    control.store.stall(true);
    let late = hasty.get_run(get("r")).await.unwrap_err();
    assert_eq!(late.code(), Code::DeadlineExceeded);
    assert!(late.message().contains("within 100ms"), "{late}");
    let late = hasty.revoke_run(v1::RevokeRunRequest { run_id: "r".into() }).await.unwrap_err();
    assert_eq!(late.code(), Code::DeadlineExceeded);
    control.store.stall(false);
    let ends = async {
        while runs.get_run(get("r")).await.unwrap().into_inner().run.unwrap().state() != v1::RunState::Revoked {
            tokio::task::yield_now().await;
        }
    };
    timeout(HANGS, ends).await.expect("the run is revoked all the same");
}

#[tokio::test]
async fn a_revocation_that_goes_on_without_its_caller_keeps_its_place() {
    let (control, _folder) = stalling(Times { call: HANGS, revocation: HANGS }).await;
    let mut runs = RunsClient::new(control.runs().await);
    runs.register_run(reader("r")).await.unwrap();
    control.store.stall(true);
    let revoke = || {
        let mut request = Request::new(v1::RevokeRunRequest { run_id: "r".into() });
        request.set_timeout(Duration::from_millis(500));
        request
    };
    let mut impatient = Vec::new();
    for number in 0..REVOCATIONS {
        if number % PER_CONNECTION == 0 {
            runs = RunsClient::new(control.runs().await);
        }
        let mut runs = runs.clone();
        impatient.push(tokio::spawn(async move { runs.revoke_run(revoke()).await.unwrap_err() }));
    }
    for given_up in join_all(impatient).await {
        assert_ne!(given_up.unwrap().code(), Code::ResourceExhausted, "each had a place");
    }
    // One that was cut before it was read has left its place: it is taken here.
    let full = async {
        loop {
            let refused = runs.revoke_run(revoke()).await.unwrap_err();
            if refused.code() == Code::ResourceExhausted {
                return refused;
            }
        }
    };
    let refused = timeout(HANGS, full).await.expect("all places are taken");
    assert!(refused.message().contains("revocations at once"), "{refused}");
    control.store.stall(false);
    let again = async {
        while runs.revoke_run(v1::RevokeRunRequest { run_id: "r".into() }).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    timeout(HANGS, again).await.expect("there is place again");
}

#[tokio::test]
async fn a_client_that_never_sends_its_question_is_given_up() {
    let (control, _folder) = stalling(short()).await;
    let mut client = tonic::client::Grpc::new(control.runs().await);
    client.ready().await.unwrap();
    let path = PathAndQuery::from_static("/gitdoor.v1.Runs/GetRun");
    let silent = Request::new(tokio_stream::pending::<v1::GetRunRequest>());
    let codec = tonic_prost::ProstCodec::<v1::GetRunRequest, v1::GetRunResponse>::default();
    let given_up = timeout(HANGS, client.client_streaming(silent, path, codec)).await.expect("it does not hang");
    assert_eq!(given_up.unwrap_err().code(), Code::DeadlineExceeded);
}

#[tokio::test]
async fn a_session_too_many_is_refused_in_words_until_another_ends() {
    let (control, _folder) = stalling(Times::default()).await;
    let mut sessions = Vec::new();
    let mut gate = GateClient::new(control.gate().await);
    for number in 0..SESSIONS {
        if number % PER_CONNECTION == 0 {
            gate = GateClient::new(control.gate().await);
        }
        let (questions, receiver) = mpsc::channel::<v1::SessionRequest>(1);
        let answers = gate.session(ReceiverStream::new(receiver)).await.unwrap();
        sessions.push((questions, answers));
    }
    let questions = tokio_stream::pending::<v1::SessionRequest>;
    let refused = gate.session(questions()).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted);
    assert!(refused.message().contains("sessions at once"), "{refused}");
    drop(sessions.pop());
    let again = async {
        while gate.session(questions()).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    timeout(HANGS, again).await.expect("there is place again");
}

#[tokio::test]
async fn a_question_too_many_is_answered_at_once_and_the_others_when_the_store_moves() {
    let (control, _folder) = stalling(Times { call: HANGS, revocation: HANGS }).await;
    let answer = RunsClient::new(control.runs().await).register_run(reader("r")).await.unwrap().into_inner();
    let bearer = Bearer::parse(&answer.bearer).unwrap();
    let question = v1::AuthorizeRequest {
        run_id: bearer.run_id().to_string(),
        secret: bearer.expose_secret().into(),
        request_id: "q".into(),
        intent: Some(v1::authorize_request::Intent::Verify(v1::Verify {})),
        ..Default::default()
    };
    // Each has ten seconds, in which a busy machine may not have asked them all.
    let frozen = Frozen::new();
    control.store.stall(true);
    let mut sessions = Vec::new();
    for _ in 0..=QUESTIONS / QUESTIONS_PER_SESSION {
        let (questions, receiver) = mpsc::channel(QUESTIONS_PER_SESSION);
        for id in 0..QUESTIONS_PER_SESSION as u64 {
            let question = Some(Question::Authorize(question.clone()));
            questions.send(v1::SessionRequest { id, question, ended: Vec::new() }).await.unwrap();
        }
        let gate = control.gate().await;
        let answers = GateClient::new(gate).session(ReceiverStream::new(receiver)).await.unwrap().into_inner();
        sessions.push((questions, answers));
    }
    let (busy, mut busies) = mpsc::channel(QUESTIONS);
    let reading = sessions.into_iter().map(|(questions, mut answers)| {
        let busy = busy.clone();
        tokio::spawn(async move {
            let mut permitted = 0;
            for _ in 0..QUESTIONS_PER_SESSION {
                match verdict(answers.message().await.unwrap().unwrap()) {
                    v1::authorize_response::Verdict::Permit(_) => permitted += 1,
                    v1::authorize_response::Verdict::Refusal(refusal) => busy.send(refusal).await.unwrap(),
                }
            }
            drop(questions);
            permitted
        })
    });
    let reading: Vec<_> = reading.collect();
    for _ in 0..QUESTIONS_PER_SESSION {
        let refusal = frozen.at_once(busies.recv()).await.unwrap();
        assert_eq!(refusal.reason(), v1::Reason::StoreUnavailable);
        assert!(refusal.message.contains("questions at once"), "{refusal:?}");
    }
    control.store.stall(false);
    let permitted = frozen.at_once(join_all(reading)).await;
    assert_eq!(permitted.into_iter().map(Result::unwrap).sum::<usize>(), QUESTIONS);
}

fn verdict(response: v1::SessionResponse) -> v1::authorize_response::Verdict {
    let Some(Answer::Authorize(v1::AuthorizeResponse { verdict: Some(verdict) })) = response.answer else {
        panic!()
    };
    verdict
}
