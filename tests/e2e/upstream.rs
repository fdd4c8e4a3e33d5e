//! The upstream goes wrong, and the door does not: wrong tokens are thrown away, git sees no 401, a refusal of the
//! upstream's own reaches git and the ledger.

use gitdoor_proto::v1::{Identity, PushOutcome};
use gitdoor_tests::github::{Canned, Fault, Route};
use gitdoor_tests::world::World;
use serde_json::{Value, json};

use crate::PROGRAM;

/// A way for a mint answer to be wrong.
type Spoil = (&'static str, fn(&mut Value));

/// What is wrong with any token.
const WRONG: [Spoil; 4] = [
    ("wider", |answer| answer["permissions"]["administration"] = json!("write")),
    ("narrower", |answer| answer["permissions"]["contents"] = Value::Null),
    ("no permissions", |answer| answer["permissions"] = Value::Null),
    ("expired", |answer| answer["expires_at"] = json!("2020-01-01T00:00:00Z")),
];

/// What is wrong with a token that was to be pinned.
const WRONGLY_PINNED: [Spoil; 5] = [
    ("all", |answer| answer["repository_selection"] = json!("all")),
    ("another repository", |answer| answer["repositories"][0]["full_name"] = json!("acme/web")),
    ("none named", |answer| answer["repositories"] = Value::Null),
    ("none", |answer| answer["repositories"] = json!([])),
    ("two", |answer| {
        let second = answer["repositories"][0].clone();
        answer["repositories"].as_array_mut().unwrap().push(second);
    }),
];

#[tokio::test]
async fn a_write_token_other_than_asked_is_revoked_and_never_used() {
    for (what, spoil) in WRONG.into_iter().chain(WRONGLY_PINNED) {
        let world = World::start(PROGRAM).await;
        world.github.create("acme/api");
        let run = world.register(Identity::Write).await;
        let git = world.git(&run).cloned("acme/api").await;
        git.commit("fix.txt", "fix\n").await;
        let before = world.github.tokens().len();
        world.github.when(Route::Mint).then(Fault::edit(spoil));
        git.run(&["push", "origin", "HEAD:fix-x"]).await.code_is(128);
        let spoiled = &world.github.tokens()[before];
        assert!(spoiled.revoked, "{what}: it lives on");
        let used = world.github.requests().into_iter().filter(|request| request.token == Some(before));
        let routes: Vec<Route> = used.map(|request| request.route).collect();
        assert_eq!(routes, [Route::RevokeToken], "{what}");
        assert!(world.show(&run).await.run.unwrap().binding.is_none(), "{what}: it is bound");
        world.finish().await;
    }
}

#[tokio::test]
async fn a_read_token_other_than_asked_is_revoked_and_never_used() {
    for (what, spoil) in WRONG {
        let world = World::start(PROGRAM).await;
        world.github.create("acme/api");
        let run = world.register(Identity::Read).await;
        let git = world.git(&run);
        world.github.when(Route::Mint).then(Fault::edit(spoil));
        git.run(&["ls-remote", &git.url("acme/api")]).await.code_is(128);
        assert!(world.github.tokens()[0].revoked, "{what}: it lives on");
        assert!(world.github.requests_for(Route::FetchDiscovery).is_empty(), "{what}: it was used");
        world.finish().await;
    }
}

#[tokio::test]
async fn a_401_at_discovery_is_tried_once_more_and_never_seen_by_git() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    let run = world.register(Identity::Read).await;
    let git = world.git(&run);
    let list = ["ls-remote", &git.url("acme/api")];
    world.github.when(Route::FetchDiscovery).answer(Canned::status(401).body("text/plain", "no"));
    git.run(&list).await.ok().says("refs/heads/main");
    world.github.when(Route::FetchDiscovery).always().answer(Canned::status(401).body("text/plain", "no"));
    git.run(&list).await.code_is(128).says("502").does_not_say("Authentication failed");
    assert_eq!(git.erasures(), 0);
    world.finish().await;
}

#[tokio::test]
async fn a_ref_that_the_upstream_refuses_is_told_to_git_and_recorded() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    world.github.forbid_ref("acme/api", "refs/heads/locked");
    let run = world.register(Identity::Write).await;
    let git = world.git(&run).cloned("acme/api").await;
    git.commit("fix.txt", "fix\n").await;
    let push = git.run(&["push", "origin", "HEAD:locked", "HEAD:open"]).await.code_is(1);
    push.says("[remote rejected] HEAD -> locked (hook declined)").says("GH013").says("HEAD -> open");
    let pushes = world.show(&run).await.pushes;
    assert_eq!(pushes[0].outcome(), PushOutcome::RefusedUpstream);
    assert!(world.github.ref_of("acme/api", "refs/heads/open").is_some());
    world.finish().await;
}
