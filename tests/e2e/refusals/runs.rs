//! Refusals that are about the run: what it may do at all, where it is bound, how it was narrowed.

use gitdoor_proto::v1::Identity;
use gitdoor_tests::git;
use gitdoor_tests::github::Route;
use gitdoor_tests::world::World;

use crate::PROGRAM;

#[tokio::test]
async fn an_identity_that_may_only_read_fetches_and_is_refused_at_push_discovery() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    for installed in git::all() {
        let run = world.register(Identity::Read).await;
        let git = world.git(&run).program(&installed).cloned("acme/api").await;
        git.commit("fix.txt", "fix\n").await;
        let refused = git.run(&["push", "origin", "HEAD:fix-x"]).await.code_is(128);
        refused.says("remote: gitdoor: this run may fetch and read, but not push").says("error: 403");
        assert_eq!(git.erasures(), 0);
    }
    assert!(world.github.requests_for(Route::PushDiscovery).is_empty());
    assert!(world.github.pushes().is_empty());
    world.finish().await;
}

#[tokio::test]
async fn an_identity_of_none_reaches_no_repository() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    for installed in git::all() {
        let run = world.register(Identity::None).await;
        let git = world.git(&run).program(&installed);
        git.run(&["init", "--quiet", "api"]).await.ok();
        let git = git.at("api");
        git.commit("fix.txt", "fix\n").await;
        let url = git.url("acme/api");
        for arguments in [&["ls-remote", url.as_str()][..], &["fetch", &url], &["push", &url, "HEAD:fix-x"]] {
            let refused = git.run(arguments).await.code_is(128);
            refused.says("remote: gitdoor: this run has no access to repositories").says("error: 403");
        }
        assert_eq!(git.erasures(), 0);
    }
    assert_eq!(world.github.requests().len(), 0);
    world.finish().await;
}

#[tokio::test]
async fn a_run_that_is_bound_is_refused_elsewhere_at_discovery_and_told_where_it_is_bound() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    world.github.create("acme/web");
    for installed in git::all() {
        let run = world.registration(Identity::Write).repository("acme/api").send().await.unwrap();
        let git = world.git(&run).program(&installed).cloned("acme/web").await;
        git.commit("fix.txt", "fix\n").await;
        let refused = git.run(&["push", "origin", "HEAD:fix-x"]).await.code_is(128);
        refused.says("remote: gitdoor: this run is bound to acme/api").says("error: 403");
        assert_eq!(git.erasures(), 0);
    }
    assert!(world.github.requests_for(Route::PushDiscovery).is_empty());
    assert!(world.github.pushes().is_empty());
    world.finish().await;
}

#[tokio::test]
async fn a_run_that_is_narrowed_is_told_its_patterns_and_its_most_refs() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    let narrow = world.registration(Identity::Write).options(|options| {
        options.branches = vec!["agent/*".to_owned(), "fix".to_owned(), "main".to_owned()];
        options.max_refs = 2;
    });
    let run = narrow.send().await.unwrap();
    let git = world.git(&run).cloned("acme/api").await;
    git.commit("fix.txt", "fix\n").await;
    for (refs, words) in [
        (&["HEAD:other"][..], &["HEAD -> other (refused: branch not permitted)"][..]),
        (&["HEAD:agent/a/b"], &["HEAD -> agent/a/b (refused: branch not permitted)"]),
        (&["HEAD:Agent/a"], &["HEAD -> Agent/a (refused: branch not permitted)"]),
        // No option permits the default branch.
        (&["HEAD:main"], &["HEAD -> main (refused: default branch)"]),
        (
            &["HEAD:agent/a", "HEAD:agent/b", "HEAD:fix"],
            &[
                "agent/a (refused: too many refs)",
                "agent/b (refused: too many refs)",
                "fix (refused: too many refs)",
            ],
        ),
    ] {
        let refused = git.run(&[&["push", "origin"], refs].concat()).await.code_is(1);
        let hint = "may push the branches agent/*, fix, main of acme/api other than main, at most 2 at once";
        words.iter().fold(refused.says(hint), |refused, words| refused.says(words));
    }
    assert!(world.github.pushes().is_empty());
    git.run(&["push", "origin", "HEAD:agent/a", "HEAD:fix"]).await.ok();
    world.finish().await;
}
