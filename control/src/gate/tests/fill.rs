//! A run that would fill the ledger.

use super::*;

/// A push of so many refs.
fn many(refs: usize) -> Intent {
    let names: Vec<String> = (0..refs).map(|number| format!("refs/heads/x{number}")).collect();
    push("acme/api", &names.iter().map(String::as_str).collect::<Vec<_>>())
}

#[tokio::test(start_paused = true)]
async fn a_run_cannot_fill_the_ledger_with_pushes_that_it_never_sends() {
    let door = Door::new();
    let bearer = door.bound().await;
    let hang_up = async |refs| {
        let permit = door.ask(&bearer, many(refs)).await?;
        door.gate.report(report(&permit.authorization, Outcome::Interrupted), start()).await
    };
    hang_up(600).await.unwrap();
    let denial = hang_up(405).await.unwrap_err();
    assert_eq!((denial.reason, denial.retry_after), (Reason::PushLimit, Some(Duration::from_secs(1))));
    assert!(denial.message.contains("1000 at once and 10 a second"), "{}", denial.message);
    hang_up(400).await.unwrap();
    tokio::time::advance(Duration::from_secs(1)).await;
    hang_up(10).await.unwrap();
    assert_eq!(reason(hang_up(1).await), Reason::PushLimit);
    assert_eq!(door.pushes().await.len(), 3, "what is refused for this is no row either");
}

#[tokio::test(start_paused = true)]
async fn a_push_that_is_asked_about_again_counts_once() {
    let door = Door::new();
    let bearer = door.bound().await;
    let mut asked = many(600);
    let Intent::Push(push) = &mut asked else { unreachable!() };
    push.key = vec![7; 16];
    for _ in 0..3 {
        door.ask(&bearer, asked.clone()).await.unwrap();
    }
    door.ask(&bearer, many(400)).await.unwrap();
    assert_eq!(door.pushes().await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn what_opens_no_push_costs_nothing() {
    let door = Door::new();
    let bearer = door.bound().await;
    let mut open = Vec::new();
    for _ in 0..4 {
        open.push(door.ask(&bearer, many(1)).await.unwrap().authorization);
    }
    for _ in 0..3 {
        let denial = door.ask(&bearer, many(600)).await.unwrap_err();
        assert!(denial.message.contains("4 pushes in progress"), "{}", denial.message);
    }
    door.gate.report(report(&open[0], Outcome::Done), start()).await.unwrap();
    door.ask(&bearer, many(996)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_run_cannot_fill_the_ledger_with_pushes_that_are_refused() {
    let door = Door::new();
    let bearer = door.bound().await;
    for expected in [20, 40] {
        for _ in 0..25 {
            let denied = door.ask(&bearer, push("acme/api", &["refs/heads/main"])).await;
            assert_eq!(reason(denied), Reason::DefaultBranch);
        }
        assert_eq!(door.pushes().await.len(), expected);
        tokio::time::advance(Duration::from_mins(1)).await;
    }
}
