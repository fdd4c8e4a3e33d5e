//! What the gate promises to whoever reads the forge's API, or asks what its run may do.

use gitdoor_proto::permit::{Grant, Permit};

use super::*;

fn api() -> Intent {
    Intent::ApiRead(v1::ApiRead {})
}

fn describe() -> Intent {
    Intent::Describe(v1::DescribeRun {})
}

fn budget(api_burst: u32, api_rate: f64) -> v1::RunOptions {
    v1::RunOptions { api_burst, api_rate, ..Default::default() }
}

fn narrow(repository: &str) -> v1::RunOptions {
    v1::RunOptions { read_repositories: vec![repository.into()], ..Default::default() }
}

/// How many API requests are permitted until one is refused, and that refusal.
async fn spend(door: &Door, bearer: &Bearer) -> (usize, Denial) {
    let mut permitted = 0;
    loop {
        match door.ask(bearer, api()).await {
            Ok(_) => permitted += 1,
            Err(denial) => return (permitted, denial),
        }
    }
}

#[tokio::test]
async fn an_api_request_gets_the_runs_read_token_whatever_it_may_push() {
    let door = Door::new();
    let (reader, writer) =
        (door.run_of("s", v1::Identity::Read, v1::RunOptions::default()).await, door.bound().await);
    for bearer in [reader, writer] {
        let permit = door.ask(&bearer, api()).await.unwrap();
        assert_eq!((permit.authorization.as_str(), permit.repository.as_str()), ("", ""));
        assert!(permit.lease.is_none() && !permit.bind && permit.run.is_none());
        assert_eq!(permit.remaining.unwrap().seconds, 50 * 60);
        assert_eq!(door.forge.asked(), ["read-all"]);
        let answer = v1::AuthorizeResponse { verdict: Some(v1::authorize_response::Verdict::Permit(permit)) };
        let permit = Permit::from_answer(answer).unwrap().unwrap();
        assert!(matches!(permit.grant(), Grant::Api { token } if token.expose() == "ghs_read-all_0"));
    }
}

#[tokio::test]
async fn an_api_request_of_a_narrowed_run_gets_a_token_for_what_it_may_read() {
    let door = Door::new();
    let bearer = door.run(v1::Identity::Write, narrow("acme/web")).await;
    door.ask(&bearer, api()).await.unwrap();
    assert_eq!(door.forge.asked(), ["read-[acme/web]"]);
}

#[tokio::test]
async fn a_repository_that_a_run_cannot_read_is_told_of_whatever_was_asked_for() {
    let door = Door::new();
    let bearer = door.run(v1::Identity::Read, narrow("acme/gone")).await;
    door.forge.fail(Some(MintError::RepositoryUnknown));
    for intent in [api(), fetch("acme/api")] {
        let denial = door.ask(&bearer, intent).await.unwrap_err();
        assert_eq!(denial.reason, Reason::RepositoryUnknown);
        assert!(denial.message.contains("this run was registered to read"), "{}", denial.message);
        assert!(!denial.message.contains("acme/api"), "{}", denial.message);
    }
}

#[tokio::test(start_paused = true)]
async fn a_budget_is_spent_and_refills() {
    let door = Door::new();
    let bearer = door.writer().await;
    let (permitted, denial) = spend(&door, &bearer).await;
    assert_eq!((permitted, denial.reason), (200, Reason::ApiLimit));
    assert_eq!(denial.retry_after, Some(Duration::from_secs(1)));
    assert!(denial.message.contains("it may make 200 at once and 2 a second; wait, "), "{}", denial.message);
    for way in ["per_page=100", "one GraphQL query", "work from the clone"] {
        assert!(denial.message.contains(way), "{}", denial.message);
    }
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(spend(&door, &bearer).await.0, 2);
    tokio::time::advance(Duration::from_hours(1)).await;
    assert_eq!(spend(&door, &bearer).await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn a_budget_is_the_one_that_the_run_was_registered_with() {
    for (burst, rate, wait, words) in
        [(1, 0.3, 4, "1 at once and 0.3 a second"), (7, 10_000.0, 1, "7 at once and 10000 a second")]
    {
        let door = Door::new();
        let bearer = door.run(v1::Identity::Read, budget(burst, rate)).await;
        let (permitted, denial) = spend(&door, &bearer).await;
        assert_eq!(permitted, burst as usize);
        assert_eq!(denial.retry_after, Some(Duration::from_secs(wait)), "whole seconds, upwards");
        assert!(denial.message.contains(words), "{}", denial.message);
        tokio::time::advance(Duration::from_secs(wait)).await;
        door.ask(&bearer, api()).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_spent_budget_costs_no_mint_and_stops_nothing_else() {
    let door = Door::new();
    let bearer = door.run(v1::Identity::Write, budget(2, 1.0)).await;
    let other = door.run_of("s", v1::Identity::Read, budget(3, 1.0)).await;
    assert_eq!(spend(&door, &bearer).await.0, 2);
    assert_eq!(door.forge.asked(), ["read-all", "read-all"]);
    assert_eq!(spend(&door, &other).await.0, 3, "a budget is a run's own");
    door.forge.asked();
    for intent in [Intent::Verify(v1::Verify {}), describe(), fetch("acme/api"), discovery("acme/api")] {
        door.ask(&bearer, intent).await.unwrap();
    }
    door.forge.asked();
    assert_eq!(reason(door.ask(&bearer, api()).await), Reason::ApiLimit);
    assert!(door.forge.asked().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_mint_that_fails_costs_its_token_of_the_budget() {
    let door = Door::new();
    let bearer = door.run(v1::Identity::Read, budget(2, 1.0)).await;
    door.forge.fail(Some(MintError::Unavailable(Duration::from_secs(3))));
    for _ in 0..2 {
        assert_eq!(reason(door.ask(&bearer, api()).await), Reason::ForgeUnavailable);
    }
    assert_eq!(reason(door.ask(&bearer, api()).await), Reason::ApiLimit);
}

#[tokio::test(start_paused = true)]
async fn a_dead_bearer_is_told_before_a_spent_budget_and_spends_none() {
    let door = Door::new();
    let bearer = door.run(v1::Identity::Read, budget(2, 1.0)).await;
    let forged = Bearer::generate(RunId::parse("r").unwrap()).unwrap();
    for _ in 0..9 {
        assert_eq!(reason(door.ask(&forged, api()).await), Reason::BearerWrong);
    }
    assert_eq!(spend(&door, &bearer).await.0, 2);
    let late = start() + Duration::from_mins(50);
    assert_eq!(reason(door.ask(&forged, api()).await), Reason::BearerWrong);
    assert_eq!(reason(door.ask_at(&bearer, api(), late).await), Reason::RunExpired);
    let next = Bearer::generate(RunId::parse("r").unwrap()).unwrap();
    door.store.rotate(next.run_id(), next.hash(), start()).await.unwrap();
    assert_eq!(reason(door.ask(&bearer, api()).await), Reason::BearerWrong);
    assert_eq!(reason(door.ask(&next, api()).await), Reason::ApiLimit, "a new bearer brings no new budget");
    door.revoke().await;
    assert_eq!(reason(door.ask(&next, api()).await), Reason::RunRevoked);
}

#[tokio::test]
async fn a_run_without_identity_neither_reads_the_api_nor_is_described() {
    let door = Door::new();
    let bearer = door.run(v1::Identity::None, v1::RunOptions::default()).await;
    for intent in [api(), describe()] {
        assert_eq!(reason(door.ask(&bearer, intent).await), Reason::IdentityNone);
    }
    assert!(door.forge.asked().is_empty());
}

#[tokio::test]
async fn a_description_shows_the_run_as_it_stands_and_mints_nothing() {
    let door = Door::new();
    let bearer = door.bound().await;
    let permit = door.ask(&bearer, describe()).await.unwrap();
    assert!(door.forge.asked().is_empty());
    assert_eq!((permit.token, permit.authorization.as_str(), permit.repository.as_str()), (None, "", ""));
    let run = *permit.run.unwrap();
    assert_eq!(run, door.stored().await.to_message(start()));
    assert_eq!((run.state(), run.identity()), (v1::RunState::Live, v1::Identity::Write));
    assert_eq!(run.expires_at, Some((start() + Duration::from_mins(50)).into()));
    let binding = run.binding.unwrap();
    assert_eq!((binding.repository.as_str(), binding.default_branch.as_str()), ("acme/api", "main"));
    let options = run.options.unwrap();
    assert_eq!((options.api_burst, options.api_rate.to_string().as_str()), (200, "2"));
}

#[tokio::test]
async fn a_description_holds_nothing_of_the_bearer() {
    use prost::Message as _;
    let door = Door::new();
    let bearer = door.run(v1::Identity::Read, narrow("acme/web")).await;
    let permit = door.ask(&bearer, describe()).await.unwrap();
    let (sent, secret, hash) = (permit.encode_to_vec(), bearer.expose_secret().to_owned(), bearer.hash());
    for kept in [secret.as_bytes(), hash.as_bytes()] {
        assert!(!sent.windows(kept.len()).any(|part| part == kept));
    }
    assert_eq!(permit.run.unwrap().binding, None);
}
