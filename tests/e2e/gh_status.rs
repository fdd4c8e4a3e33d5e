//! What `gh auth status` says of a run, and that a run without access still gets the door's words from gh.

use gitdoor_proto::v1::Identity;
use gitdoor_tests::by_both_gh;
use gitdoor_tests::gh::{Credential, Version, newest};
use gitdoor_tests::world::World;

use crate::PROGRAM;

by_both_gh![gh_is_logged_in_with_either_form_of_the_credential_until_the_run_is_revoked];

async fn gh_is_logged_in_with_either_form_of_the_credential_until_the_run_is_revoked(version: Version) {
    let world = World::start(PROGRAM).await;
    world.github.seed("acme/api").furnished().create();
    let run = world.register(Identity::Read).await;
    let forms = [Credential::Hosts, Credential::Environment].map(|form| world.gh_with(&run, &version, form));
    let (_, secret) = run.bearer.split_once('.').unwrap();
    for gh in &forms {
        gh.run(&["auth", "status"]).await.ok().says("Logged in to git.door.test");
        let named = gh.run(&["auth", "status", "--hostname=git.door.test"]).await.ok();
        named.says("Logged in to git.door.test").says("******").does_not_say(secret.get(..8).unwrap());
    }
    world.revoke(&run).await;
    let refused = if version == newest() { "is invalid" } else { "is no longer valid" };
    let words = "gitdoor: run revoked; stop here, this bearer opens nothing any more";
    for gh in &forms {
        // Of this command gh keeps the door's words to itself.
        gh.run(&["auth", "status"]).await.code_is(1).says(refused).does_not_say("revoked");
        gh.run(&["pr", "list", "--repo=acme/api"]).await.code_is(1).says(&format!("HTTP 403: {words}"));
        gh.run(&["api", "user"]).await.code_is(1).says(&format!("gh: {words} (HTTP 403)"));
        gh.git(&["ls-remote", &gh.url("acme/api")]).await.code_is(128).says(words);
    }
    assert_eq!(world.recorder().hosts(), Vec::<String>::new());
    world.finish().await;
}
