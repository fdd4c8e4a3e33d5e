//! What holds for the controls that share a store, or that have it one after the other.

use super::{ANY, binding, closing, control, created, id, later, push, run};
use crate::push::{Outcome, Push, PushId};
use crate::run::Identity;
use crate::store::{Claimed, Closed, Limit, Opened, Store};

pub(super) async fn a_run_has_so_many_pushes_open_and_no_more<S: Store>(store: S, _: std::path::PathBuf) {
    created(&store, "r").await;
    created(&store, "s").await;
    let open = async |number, limit| store.open_push(&push("r", number), 1, limit, later(1)).await.unwrap();
    let three = Limit { most: 3, lapsed: &[] };
    let (others, own) = ([push("s", 9).id], [push("r", 2).id]);
    store.open_push(&push("s", 9), 1, ANY, later(1)).await.unwrap();
    for number in 1..=3 {
        assert_eq!(open(number, three).await, Opened::Open);
    }
    assert_eq!(open(4, three).await, Opened::TooMany);
    assert_eq!(store.push(push("r", 4).id).await.unwrap(), None);
    assert_eq!(open(4, Limit { lapsed: &others, ..three }).await, Opened::TooMany);
    assert_eq!(open(4, Limit { lapsed: &own, ..three }).await, Opened::Open);
    assert_eq!(open(5, three).await, Opened::TooMany);
    for number in [1, 2] {
        store.close_push(push("r", number).id, &closing(Outcome::Done)).await.unwrap();
    }
    assert_eq!(open(5, three).await, Opened::Open);
    // An ended run is told that it ended, however many pushes it has.
    store.revoke(&id("r"), later(2)).await.unwrap();
    assert!(matches!(open(6, three).await, Opened::Stale(Some(_))));
}

pub(super) async fn a_push_is_without_report_until_its_data_plane_says_what_became_of_it<S: Store>(
    store: S,
    _: std::path::PathBuf,
) {
    created(&store, "r").await;
    created(&store, "s").await;
    let opened = push("r", 1);
    store.open_push(&opened, 1, ANY, later(1)).await.unwrap();
    store.open_push(&push("s", 2), 1, ANY, later(1)).await.unwrap();
    store
        .record_refused(&Push { outcome: Outcome::Refused, closed_at: Some(later(1)), ..push("r", 3) })
        .await
        .unwrap();
    assert_eq!(store.unreported(&id("r")).await.unwrap(), [opened.id]);
    assert!(store.lose_push(opened.id, control(1), later(2)).await.unwrap());
    assert_eq!(store.unreported(&id("r")).await.unwrap(), [opened.id]);
    store.close_push(opened.id, &closing(Outcome::Interrupted)).await.unwrap();
    assert_eq!(store.unreported(&id("r")).await.unwrap(), []);
}

pub(super) async fn a_push_without_report_is_taken_over_and_no_other<S: Store>(store: S, _: std::path::PathBuf) {
    created(&store, "r").await;
    let opened = push("r", 1);
    store.open_push(&opened, 1, ANY, later(1)).await.unwrap();
    let owner = async || store.push(opened.id).await.unwrap().unwrap().control;
    assert!(!store.take_push(opened.id, &id("s"), control(2)).await.unwrap());
    assert!(!store.take_push(PushId::from_bytes([9; 16]), &id("r"), control(2)).await.unwrap());
    assert_eq!(owner().await, Some(control(1)));
    for _ in 0..2 {
        assert!(store.take_push(opened.id, &id("r"), control(2)).await.unwrap());
        assert_eq!(owner().await, Some(control(2)));
    }
    // Its data plane was not lost after all.
    store.lose_push(opened.id, control(2), later(2)).await.unwrap();
    assert!(store.take_push(opened.id, &id("r"), control(3)).await.unwrap());
    let again = store.push(opened.id).await.unwrap().unwrap();
    assert_eq!((again.outcome, again.closed_at, again.control), (Outcome::Open, None, Some(control(3))));
    store.close_push(opened.id, &closing(Outcome::Done)).await.unwrap();
    assert!(!store.take_push(opened.id, &id("r"), control(2)).await.unwrap());
    assert_eq!(owner().await, Some(control(3)));
}

pub(super) async fn a_push_is_lost_by_the_control_that_answers_for_it_alone<S: Store>(
    store: S,
    _: std::path::PathBuf,
) {
    created(&store, "r").await;
    let opened = push("r", 1);
    store.open_push(&opened, 1, ANY, later(1)).await.unwrap();
    store.open_push(&Push { control: None, ..push("r", 2) }, 1, ANY, later(1)).await.unwrap();
    assert!(!store.lose_push(opened.id, control(2), later(2)).await.unwrap());
    assert!(!store.lose_push(push("r", 2).id, control(2), later(2)).await.unwrap());
    assert_eq!(store.push(opened.id).await.unwrap().unwrap().outcome, Outcome::Open);
    assert!(store.lose_push(opened.id, control(1), later(2)).await.unwrap());
    assert!(!store.lose_push(opened.id, control(1), later(3)).await.unwrap());
    let lost = store.push(opened.id).await.unwrap().unwrap();
    assert_eq!((lost.outcome, lost.closed_at), (Outcome::Unknown, Some(later(2))));
    assert_eq!(store.close_push(opened.id, &closing(Outcome::Done)).await.unwrap(), Closed::Now);
    assert!(!store.lose_push(opened.id, control(1), later(3)).await.unwrap());
    assert_eq!(store.push(opened.id).await.unwrap().unwrap().outcome, Outcome::Done);
}

pub(super) async fn pushes_of_no_control_are_claimed_and_stay_with_their_claimant<S: Store>(
    store: S,
    _: std::path::PathBuf,
) {
    let expires_at = created(&store, "r").await.expires_at;
    store.beat(control(1)).await.unwrap();
    assert_eq!(store.claim_pushes(control(1)).await.unwrap(), []);
    store.open_push(&Push { control: None, ..push("r", 1) }, 1, ANY, later(1)).await.unwrap();
    store.open_push(&push("r", 2), 1, ANY, later(1)).await.unwrap();
    store.open_push(&Push { control: None, ..push("r", 3) }, 1, ANY, later(1)).await.unwrap();
    store.close_push(push("r", 3).id, &closing(Outcome::Done)).await.unwrap();
    let claimed = |number| Claimed { push: push("r", number).id, run: id("r"), expires_at };
    for _ in 0..2 {
        let mut own = store.claim_pushes(control(1)).await.unwrap();
        own.sort_by_key(|claimed| *claimed.push.as_bytes());
        assert_eq!(own, [claimed(1), claimed(2)]);
    }
    assert_eq!(store.push(push("r", 1).id).await.unwrap().unwrap().control, Some(control(1)));
    assert_eq!(store.push(push("r", 3).id).await.unwrap().unwrap().control, None);
}

pub(super) async fn runs_are_found_by_when_they_were_revoked<S: Store>(store: S, _: std::path::PathBuf) {
    for (name, seconds) in [("a", 1), ("b", 2), ("c", 3)] {
        created(&store, name).await;
        store.revoke(&id(name), later(seconds)).await.unwrap();
    }
    created(&store, "live").await;
    let mut ended = store.ended_since(later(1)).await.unwrap();
    ended.sort_by_key(ToString::to_string);
    assert_eq!(ended, [id("b"), id("c")]);
    assert_eq!(store.ended_since(later(3)).await.unwrap(), []);
}

pub(super) async fn runs_that_live_are_counted_by_what_they_may_be<S: Store>(store: S, _: std::path::PathBuf) {
    assert_eq!(store.live_runs(later(0)).await.unwrap(), []);
    for name in ["a", "b", "bound", "revoked"] {
        created(&store, name).await;
    }
    let mut reader = run("reader", later(60));
    reader.terms.identity = Identity::Read;
    store.register(&reader).await.unwrap();
    store.bind(&id("bound"), 1, &binding(later(1)), later(1)).await.unwrap();
    store.revoke(&id("revoked"), later(2)).await.unwrap();
    let counted = async |now| {
        let mut live = store.live_runs(now).await.unwrap();
        live.sort_by_key(|kind| (kind.identity.as_str(), kind.bound));
        live.iter().map(|kind| (kind.identity, kind.bound, kind.count)).collect::<Vec<_>>()
    };
    let (read, write) = (Identity::Read, Identity::Write);
    assert_eq!(counted(later(3)).await, [(read, false, 1), (write, false, 2), (write, true, 1)]);
    assert_eq!(counted(run("a", later(0)).expires_at).await, [(read, false, 1)], "the others have expired");
}
