//! What every store promises of adoptions, and of a run that several change at once.

use std::path::PathBuf;
use std::time::Duration;

use gitdoor_proto::BearerHash;

use super::{ANY, Adopted, Opened, Registered, Rotated, Store, created, id, later, other_hash, push};
use crate::run::tests::{binding, run};
use crate::run::{GRACE, Run};

const HOUR: Duration = Duration::from_hours(1);

pub(super) async fn a_live_run_is_adopted_with_a_new_budget_and_no_other<S: Store>(store: S, _: PathBuf) {
    let first = created(&store, "r").await;
    assert_eq!(store.adopt(&id("other"), HOUR, later(1)).await.unwrap(), Adopted::Unknown);
    for seconds in [100, 101, 101] {
        let now = later(seconds);
        let adopted = Run { adopted_at: Some(now), expires_at: now + HOUR + GRACE, ..first.clone() };
        assert_eq!(store.adopt(&id("r"), HOUR, now).await.unwrap(), Adopted::Adopted(adopted.clone()));
        assert_eq!(store.run(&id("r")).await.unwrap(), Some(adopted));
    }
    // Sooner than the time that it had.
    let Adopted::Adopted(short) = store.adopt(&id("r"), Duration::from_secs(1), later(102)).await.unwrap() else {
        panic!()
    };
    let late = store.adopt(&id("r"), HOUR, short.expires_at).await.unwrap();
    assert_eq!(late, Adopted::NotLive(short));
    let revoked = store.revoke(&id("r"), later(103)).await.unwrap().unwrap();
    assert_eq!(store.adopt(&id("r"), HOUR, later(104)).await.unwrap(), Adopted::NotLive(revoked.clone()));
    assert_eq!(store.run(&id("r")).await.unwrap(), Some(revoked));
}

pub(super) async fn an_adopted_run_is_not_registered_again_and_goes_on<S: Store>(store: S, _: PathBuf) {
    created(&store, "r").await;
    store.bind(&id("r"), 1, &binding(later(1)), later(1)).await.unwrap();
    let Adopted::Adopted(adopted) = store.adopt(&id("r"), HOUR, later(2)).await.unwrap() else { panic!() };
    assert_eq!(adopted.binding, Some(binding(later(1))));
    assert_eq!(store.register(&run("r", later(3))).await.unwrap(), Registered::Exists(adopted));
    // Past the time that it was registered with.
    let now = later(3_100);
    assert_eq!(store.open_push(&push("r", 1), 1, ANY, now).await.unwrap(), Opened::Open);
    assert!(matches!(store.rotate(&id("r"), other_hash(), now).await.unwrap(), Rotated::Rotated(_)));
    assert_eq!(store.prune(now, 9).await.unwrap(), 0);
}

pub(super) async fn many_changes_of_a_run_at_once_lose_none<S: Store>(store: S, _: PathBuf) {
    created(&store, "r").await;
    let (store, run, offer) = (&store, &id("r"), &binding(later(1)));
    store.bind(run, 1, offer, later(1)).await.unwrap();
    let rounds = (0..16_u8).map(|number| async move {
        let branch = format!("b{number}");
        let (adopted, rotated, seen) = tokio::join!(
            store.adopt(run, HOUR + Duration::from_secs(number.into()), later(1)),
            store.rotate(run, BearerHash::from_bytes([number; 32]), later(1)),
            store.see_default_branch(run, &branch),
        );
        assert!(matches!(adopted.unwrap(), Adopted::Adopted(_)));
        assert!(matches!(rotated.unwrap(), Rotated::Rotated(_)));
        assert!(seen.unwrap().unwrap().binding.unwrap().default_branches.contains(&branch));
    });
    futures_util::future::join_all(rounds).await;
    let stored = store.run(run).await.unwrap().unwrap();
    let binding = stored.binding.unwrap();
    assert_eq!((stored.bearer.generation, binding.default_branches.len()), (17, 17));
    assert!(stored.expires_at >= later(1) + HOUR + GRACE && stored.adopted_at == Some(later(1)));
}
