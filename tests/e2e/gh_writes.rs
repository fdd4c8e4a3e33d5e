//! What stock gh would write through the door is refused in words that it prints, with an exit status that is not 0,
//! and nothing of it goes up.

mod graphql;

use gitdoor_proto::v1::Identity;
use gitdoor_tests::by_both_gh;
use gitdoor_tests::gh::{self, Gh, Version};
use gitdoor_tests::github::{BodyEnd, Host, Request, Route};
use gitdoor_tests::wait::until;
use gitdoor_tests::world::World;

use crate::PROGRAM;

by_both_gh![every_command_that_writes_is_refused_in_words_and_nothing_of_it_goes_up];

/// A command, and the code that its refusal has.
type Row = (&'static [&'static str], &'static str);

const REST: &str = "api-read-only";
const MUTATION: &str = "graphql-mutation";

/// What a run may do in place of any of these.
const INSTEAD: &str = "the API is read-only for a run: change code by pushing a branch, and leave the rest (pull requests, \
    comments, reviews, releases) to whoever started the run";

/// Commands that change something, each with all that it asks for, so that it gets as far as the change.
const WRITES: &[Row] = &[
    (&["pr", "create", "--title", "T", "--body", "B", "--head", "fix-41", "--base", "main"], MUTATION),
    (&["pr", "comment", "42", "--body", "B"], MUTATION),
    (&["pr", "merge", "42", "--merge"], MUTATION),
    (&["pr", "close", "42"], MUTATION),
    (&["pr", "edit", "42", "--title", "T"], MUTATION),
    (&["pr", "review", "42", "--approve"], MUTATION),
    (&["pr", "ready", "42", "--undo"], MUTATION),
    (&["issue", "create", "--title", "T", "--body", "B"], MUTATION),
    (&["issue", "comment", "3", "--body", "B"], MUTATION),
    (&["issue", "close", "3"], MUTATION),
    (&["release", "create", "v2.0.0", "--title", "T", "--notes", "N"], REST),
    (&["release", "upload", "v1.0.0", "notes.txt"], "api-uploads"),
    (&["release", "delete", "v1.0.0", "--yes"], REST),
    (&["run", "rerun", "78"], REST),
    (&["run", "cancel", "77"], REST),
    (&["workflow", "run", "ci.yml"], REST),
    (&["label", "create", "new", "--color", "aaaaaa"], REST),
    (&["repo", "fork", "acme/api", "--clone=false"], REST),
    (&["repo", "delete", "acme/api", "--yes"], REST),
    (&["gist", "create", "notes.txt"], REST),
    (&["api", "--method=POST", "repos/acme/api/issues", "--raw-field=title=T"], REST),
    (&["api", "repos/acme/api/issues", "--raw-field=title=T"], REST),
    (&["api", "--method=PATCH", "repos/acme/api", "--raw-field=description=D"], REST),
    (&["api", "--method=PUT", "repos/acme/api/topics", "--raw-field=names=x"], REST),
    (&["api", "--method=DELETE", "repos/acme/api"], REST),
];

/// What only a new gh can.
const NEW_WRITES: &[Row] = &[
    (&["variable", "set", "NAME", "--body", "V"], REST),
    (&["run", "delete", "77"], REST),
    (&["cache", "delete", "31"], REST),
];

async fn every_command_that_writes_is_refused_in_words_and_nothing_of_it_goes_up(version: Version) {
    let (world, gh) = furnished(&version).await;
    // Without these, an old gh does not get as far as its change: it asks for them first.
    world.github.set_classic_projects(true);
    std::fs::write(gh.folder().join("notes.txt"), "notes").unwrap();
    let more = if version == gh::newest() { NEW_WRITES } else { &[] };
    let rows = WRITES.iter().chain(more);
    for (before, (arguments, _)) in rows.clone().enumerate() {
        let said = gh.run(arguments).await.code_is(1);
        said.says("gitdoor: ").says(INSTEAD);
        // In order: the event of a request comes after its answer.
        reasons(&world, before + 1).await;
    }
    assert_eq!(reasons(&world, rows.clone().count()).await, rows.map(|(_, reason)| *reason).collect::<Vec<_>>());
    // What this one reads before its change, GitHub itself keeps from the token.
    let said = gh.run(&["secret", "set", "NAME", "--body", "V"]).await.code_is(1);
    said.says("HTTP 403: Resource not accessible by integration").says("/actions/secrets/public-key");
    assert_nothing_was_written(&world);
    world.finish().await;
}

/// A world with a furnished `acme/api`, and a gh beside an empty clone of it that may write as much as any run.
async fn furnished(version: &Version) -> (World, Gh) {
    let world = World::builder(PROGRAM).dataplane_flag("--log-format=json").start().await;
    world.github.seed("acme/api").furnished().create();
    let run = world.register(Identity::Write).await;
    let gh = world.gh(&run, version);
    gh.git(&["init", "--quiet", "."]).await.ok();
    gh.git(&["remote", "add", "origin", &gh.url("acme/api")]).await.ok();
    (world, gh)
}

/// The code of every refusal, in order, once there are so many.
async fn reasons(world: &World, count: usize) -> Vec<String> {
    let all = || {
        let events = world.events().into_iter();
        events.filter_map(|event| event["reason"].as_str().map(str::to_owned)).collect::<Vec<_>>()
    };
    until(&format!("{count} refusals"), async || all().len() >= count).await;
    all()
}

/// The API was only read, nothing was pushed, and nobody else was asked.
#[track_caller]
fn assert_nothing_was_written(world: &World) {
    let wrote: Vec<Request> = world.github.requests().into_iter().filter(writes).collect();
    assert!(wrote.is_empty(), "{wrote:?}");
    assert_eq!(world.github.pushes().len(), 0);
    assert_eq!(world.recorder().hosts(), Vec::<String>::new());
}

fn writes(request: &Request) -> bool {
    if request.route == Route::Graphql {
        // gh gives up what it does not need any more: what was not sent whole asked nothing, and what was can be read.
        let Some(asked) = request.json() else { return request.body_end == BodyEnd::Clean };
        let document = asked["query"].as_str().unwrap();
        return ["mutation", "subscription"].iter().any(|operation| document.contains(operation));
    }
    // Tokens are control's own business.
    let is_minting = [Route::Mint, Route::RevokeToken].contains(&request.route);
    request.server == Host::Api && !is_minting && !["GET", "HEAD"].contains(&request.method.as_str())
}
