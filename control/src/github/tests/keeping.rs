//! What is kept, under which key, and for how long.

use std::collections::HashMap;

use futures_util::future::join_all;
use proptest::prelude::*;

use super::{bound, name, named, only, write};
use crate::forge::{Forge as _, MintError, ReadScope, Target};
use crate::github::stand_in::{API, Reply, StandIn, at, now};

#[tokio::test]
async fn a_hundred_first_requests_mint_once() {
    let stand_in = StandIn::start().await;
    let github = stand_in.github();
    let spellings = ["acme/api", "Acme/API"];
    let writes = join_all((0..100).map(|n| {
        let (github, target) = (&github, named(spellings[n % 2]));
        async move { github.write_token(&target, true, now()).await.unwrap().id().to_owned() }
    }));
    let reads = join_all((0..100).map(|_| github.read_token(&ReadScope::All, now())));
    let (writes, reads) = tokio::join!(writes, reads);
    assert!(writes.iter().all(|id| *id == writes[0]));
    assert!(reads.iter().all(|read| read.as_ref().unwrap().id() != writes[0]));
    assert_eq!(stand_in.seen().len(), 2);
}

#[tokio::test]
async fn a_failed_flight_fails_all_that_wait_on_it_and_is_one_request() {
    let stand_in = StandIn::start().await;
    let github = stand_in.github();
    stand_in.reply(Reply::new(503, "oops"));
    let outcomes = join_all((0..100).map(|_| write(&github))).await;
    assert!(outcomes.iter().all(|outcome| matches!(outcome, Err(MintError::Unavailable(_)))));
    assert_eq!(stand_in.seen().len(), 1);
}

#[tokio::test]
async fn a_flight_goes_on_without_the_caller_that_began_it() {
    let stand_in = StandIn::start().await;
    let github = stand_in.github();
    tokio::select! {
        biased;
        _ = write(&github) => panic!("it answers before it is asked"),
        () = std::future::ready(()) => {}
    }
    write(&github).await.unwrap();
    assert_eq!(stand_in.seen().len(), 1);
}

#[tokio::test]
async fn a_token_is_handed_out_until_25_minutes_are_left_of_it() {
    let stand_in = StandIn::start().await;
    let github = stand_in.github();
    let first = write(&github).await.unwrap();
    let last = github.write_token(&named("acme/api"), true, at(35 * 60)).await.unwrap();
    assert_eq!(first.id(), last.id());
    let next = github.write_token(&named("acme/api"), true, at(35 * 60 + 1)).await.unwrap();
    assert_ne!(first.id(), next.id());
    assert_eq!(next.minted_at(), at(35 * 60 + 1));
    assert_eq!(stand_in.seen().len(), 2);
}

#[tokio::test]
async fn a_mirrors_token_is_minted_once_kept_by_itself_and_handed_out_until_25_minutes_are_left() {
    let stand_in = StandIn::start().await;
    let github = stand_in.github();
    let [api, shouted] = ["acme/api", "ACME/Api"].map(name);
    let names = [&api, &shouted];
    let minted = join_all((0..100).map(|n| github.mirror_token(names[n % 2], now()))).await;
    let first = minted[0].as_ref().unwrap();
    assert!(minted.iter().all(|other| other.as_ref().unwrap().id() == first.id()));
    assert_eq!((first.repository_id(), first.expires_at()), (Some(API), at(3600)));
    assert_eq!(stand_in.seen().len(), 1);
    let write = write(&github).await.unwrap();
    let read = github.read_token(&only(&["acme/api"]), now()).await.unwrap();
    assert!(write.id() != first.id() && read.id() != first.id(), "other scopes have other tokens");
    assert_eq!(github.mirror_token(&api, at(35 * 60)).await.unwrap().id(), first.id());
    assert_ne!(github.mirror_token(&api, at(35 * 60 + 1)).await.unwrap().id(), first.id());
    assert_eq!(stand_in.seen().len(), 4);
}

#[tokio::test]
async fn a_mirrors_repository_that_is_unknown_is_not_asked_for_again_within_a_minute() {
    let stand_in = StandIn::start().await;
    let github = stand_in.github();
    stand_in.reply(Reply::new(422, "There is at least one repository that does not exist"));
    for seconds in [0, 30, 59] {
        let error = github.mirror_token(&name("acme/none"), at(seconds)).await.unwrap_err();
        assert_eq!(error, MintError::RepositoryUnknown);
        let error = github.write_token(&named("acme/none"), true, at(seconds)).await.unwrap_err();
        assert_eq!(error, MintError::RepositoryUnknown);
    }
    assert_eq!(stand_in.seen().len(), 1);
    github.mirror_token(&name("acme/none"), at(60)).await.unwrap();
}

#[tokio::test]
async fn a_token_minted_by_name_is_found_by_id_and_by_every_spelling() {
    let stand_in = StandIn::start().await;
    let github = stand_in.github();
    let first = write(&github).await.unwrap();
    assert_eq!(first.repository_id(), Some(API));
    for target in [bound(), named("ACME/API"), Target::Bound { id: API, name: name("acme/older-name") }] {
        assert_eq!(github.write_token(&target, true, at(60)).await.unwrap().id(), first.id());
    }
    assert_eq!(stand_in.seen().len(), 1);
}

#[tokio::test]
async fn a_token_minted_by_id_is_found_by_the_name_in_its_answer() {
    let stand_in = StandIn::start().await;
    let github = stand_in.github();
    let first = github.write_token(&bound(), true, now()).await.unwrap();
    assert_eq!(write(&github).await.unwrap().id(), first.id());
    assert_eq!(stand_in.seen().len(), 1);
}

#[tokio::test]
async fn a_name_that_a_rename_gave_up_no_longer_finds_the_token() {
    let stand_in = StandIn::start().await;
    let github = stand_in.github();
    let first = write(&github).await.unwrap();
    stand_in.spoil(|a| a["full_name"] = "acme/renamed".into());
    github.facts(&first, false, now()).await.unwrap();
    let renamed = github.write_token(&named("acme/renamed"), true, now()).await.unwrap();
    assert_eq!(renamed.id(), first.id());
    assert_ne!(write(&github).await.unwrap().id(), first.id(), "another may have the old name by now");
}

#[tokio::test]
async fn facts_are_read_once_for_a_token_and_again_when_they_must_be_fresh() {
    let stand_in = StandIn::start().await;
    let github = stand_in.github();
    let minted = write(&github).await.unwrap();
    let reads = || stand_in.lines().iter().filter(|line| line.starts_with("GET")).count();
    for facts in join_all((0..20).map(|_| github.facts(&minted, true, now()))).await {
        facts.unwrap();
    }
    assert_eq!(reads(), 1);
    stand_in.spoil(|a| a["default_branch"] = "next".into());
    for (fresh, after, branch, count) in
        [(false, 1800, "trunk", 1), (true, 60, "trunk", 1), (true, 61, "next", 2), (true, 121, "next", 2)]
    {
        assert_eq!(github.facts(&minted, fresh, at(after)).await.unwrap().default_branch, branch);
        assert_eq!(reads(), count, "{fresh} {after}");
    }
    // A new token reads for itself.
    let next = github.write_token(&bound(), true, at(2400)).await.unwrap();
    github.facts(&next, false, at(2400)).await.unwrap();
    assert_eq!(reads(), 3);
}

#[tokio::test]
async fn a_refused_token_is_dropped_once_a_minute_and_only_while_it_is_handed_out() {
    let stand_in = StandIn::start().await;
    let github = stand_in.github();
    let first = write(&github).await.unwrap();
    assert!(!github.reject("0123456789abcdef", now()).await);
    assert!(github.reject(first.id(), now()).await);
    assert!(!github.reject(first.id(), now()).await, "it is not handed out any more");
    let second = github.write_token(&bound(), true, at(1)).await.unwrap();
    assert_ne!(second.id(), first.id());
    assert!(!github.reject(second.id(), at(59)).await, "its key lost one within a minute");
    assert_eq!(github.write_token(&bound(), true, at(59)).await.unwrap().id(), second.id());
    // Another key is none of its concern.
    let read = github.read_token(&ReadScope::All, at(2)).await.unwrap();
    assert!(github.reject(read.id(), at(2)).await);
    assert!(github.reject(second.id(), at(60)).await);
    let third = github.write_token(&bound(), true, at(60)).await.unwrap();
    assert!(!github.reject(third.id(), at(60 + 35 * 60 + 1)).await, "too little is left of it to be handed out");
}

#[tokio::test]
async fn a_token_is_opaque_and_never_shown() {
    let stand_in = StandIn::start().await;
    let github = stand_in.github();
    let minted = write(&github).await.unwrap();
    assert!(minted.expose().len() > 2048);
    assert_eq!(minted.id().len(), 16);
    let shown = format!("{minted:?} {github:?}");
    assert!(!shown.contains("ghs_") && !shown.contains("x.Y-") && !shown.contains("PRIVATE"), "{shown}");
    assert!(shown.contains(minted.id()));
}

/// What may be asked for, as a value that tells asks apart.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Wanted {
    ReadAll,
    Read(Vec<&'static str>),
    Write(u64, bool),
}

fn wanted() -> impl Strategy<Value = Wanted> {
    let names = proptest::sample::subsequence(vec!["acme/api", "acme/docs", "acme/web"], 1..=3);
    prop_oneof![
        Just(Wanted::ReadAll),
        names.prop_map(Wanted::Read),
        (1_u64..4, any::<bool>()).prop_map(|(id, workflows)| Wanted::Write(id, workflows)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn two_asks_share_a_token_exactly_when_they_are_the_same(asks in proptest::collection::vec(wanted(), 1..12)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let stand_in = StandIn::start().await;
            let github = stand_in.github();
            let mut tokens = HashMap::new();
            for ask in asks {
                let token = match &ask {
                    Wanted::ReadAll => github.read_token(&ReadScope::All, now()).await,
                    Wanted::Read(names) => github.read_token(&only(names), now()).await,
                    Wanted::Write(id, workflows) => {
                        let target = Target::Bound { id: *id, name: name("acme/api") };
                        github.write_token(&target, *workflows, now()).await
                    }
                };
                let id = token.unwrap().id().to_owned();
                assert_eq!(*tokens.entry(ask).or_insert_with(|| id.clone()), id);
            }
            let distinct: std::collections::HashSet<_> = tokens.values().collect();
            assert_eq!(distinct.len(), tokens.len());
        });
    }
}
