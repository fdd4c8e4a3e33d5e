//! The upstream answers a push before it has read it, and then reads on, stops, or closes: git is told the outcome all
//! the same, nothing hangs, and nothing of that connection is used again.

use std::collections::BTreeMap;

use futures_util::{StreamExt as _, stream};
use gitdoor_proto::v1::{Identity, PushOutcome};
use gitdoor_tests::git::Git;
use gitdoor_tests::github::{Canned, Fault, Rest, Route};
use gitdoor_tests::pkt::{self, FLUSH, line};
use gitdoor_tests::world::World;

use crate::PROGRAM;

/// More than all buffers on the way hold.
const LARGE: usize = 30 << 20;

/// An early answer, and what git shows of it.
#[derive(Clone)]
struct Early {
    answer: Canned,
    rest: Rest,
    shown: &'static str,
    outcome: PushOutcome,
}

fn report(text: &str) -> Canned {
    let report = [line("unpack ok\n"), line(text), FLUSH.to_vec()].concat();
    let body = [line("\u{2}looking\n"), line([b"\x01", report.as_slice()].concat()), FLUSH.to_vec()].concat();
    Canned::status(200).body("application/x-git-receive-pack-result", body)
}

fn earlies() -> Vec<Early> {
    let text = |status: u16| Canned::status(status).body("text/plain", "no");
    let challenge = text(401).header("WWW-Authenticate", "Basic realm=\"GitHub\"");
    let refused = "HEAD -> early (refused: the forge ";
    let rows = [
        (report("ng refs/heads/early no room\n"), "HEAD -> early (no room)", PushOutcome::RefusedUpstream),
        (challenge, refused, PushOutcome::Interrupted),
        (text(403), refused, PushOutcome::Interrupted),
        (text(413), "HEAD -> early (refused: the forge answered with status 413", PushOutcome::Interrupted),
        (text(500), "HEAD -> early (refused: the forge answered with status 500", PushOutcome::Interrupted),
    ];
    let each = |(answer, shown, outcome): (Canned, &'static str, PushOutcome)| {
        [Rest::Read, Rest::Stall, Rest::Close].map(|rest| Early { answer: answer.clone(), rest, shown, outcome })
    };
    rows.into_iter().flat_map(each).collect()
}

/// Pushes with these options of git's into a repository of its own each, whose upstream answers early.
async fn push_all(world: &World, git: &Git, options: &[&str], earlies: Vec<Early>) {
    let start = world.github.requests().len();
    let pushes = earlies.into_iter().enumerate().map(async |(number, early)| {
        let name = format!("acme/e{start}-{number}");
        world.github.create(&name);
        let run = world.registration(Identity::Write).id(&format!("r{start}-{number}")).repository(&name);
        let run = run.send().await.unwrap();
        let fault = Fault::Early(early.answer, early.rest);
        // A probe is asked for the real answer.
        let probes = usize::from(!options.iter().any(|option| option.starts_with("http.postBuffer=")));
        world.github.when(Route::ReceivePack).repository(&name).skip(probes).then(fault);
        let client = world.git(&run).at(git.folder().to_str().unwrap());
        let url = client.url(&name);
        let arguments = [options, &["push", &url, "HEAD:early"]].concat();
        let pushed = client.run(&arguments).await.code_is(1);
        let pushed = pushed.says(early.shown).says("[remote rejected]").does_not_say("Everything up-to-date");
        pushed.does_not_say("RPC failed").does_not_say("Authentication failed");
        assert_eq!(client.erasures(), 0);
        let shown = world.show(&run).await;
        assert_eq!(shown.pushes[0].outcome(), early.outcome, "{:?}", early.rest);
        assert_eq!(world.github.ref_of(&name, "refs/heads/early"), None);
        client.run(&["ls-remote", &url]).await.ok().says("refs/heads/main");
    });
    stream::iter(pushes).buffer_unordered(3).collect::<Vec<()>>().await;
}

/// Each push had a connection that nothing else had.
fn assert_own_connections(world: &World) {
    let mut uses = BTreeMap::new();
    for request in world.github.requests() {
        uses.entry(request.connection).or_insert_with(Vec::new).push(request);
    }
    for requests in uses.values() {
        let pushes = requests.iter().filter(|request| request.route == Route::ReceivePack && !request.is_probe());
        assert!(pushes.count() == 0 || requests.len() == 1, "a push shared a connection: {requests:?}");
    }
}

async fn committed(world: &World, bytes: usize) -> Git {
    world.github.create("acme/api");
    let run = world.register(Identity::Write).await;
    let git = world.git(&run).cloned("acme/api").await;
    git.run(&["config", "core.compression", "0"]).await.ok();
    let mut random = vec![0; bytes];
    getrandom::fill(&mut random).unwrap();
    git.commit("data", random).await;
    git
}

#[tokio::test]
async fn an_early_answer_to_a_small_push_reaches_git() {
    let world = World::start(PROGRAM).await;
    let git = committed(&world, 1000).await;
    push_all(&world, &git, &["-c", "http.postBuffer=1048576"], earlies()).await;
    assert_own_connections(&world);
    world.quiet(0).await;
    world.finish().await;
}

#[tokio::test]
async fn an_early_answer_to_a_large_push_reaches_git() {
    let world = World::start(PROGRAM).await;
    let git = committed(&world, LARGE).await;
    push_all(&world, &git, &[], earlies()).await;
    assert_own_connections(&world);
    world.quiet(0).await;
    world.finish().await;
}

#[tokio::test]
async fn an_early_answer_to_a_large_push_of_known_length_reaches_git() {
    let world = World::start(PROGRAM).await;
    let git = committed(&world, LARGE).await;
    let some = earlies().into_iter().filter(|early| early.shown.contains("no room") || early.shown.contains("413"));
    push_all(&world, &git, &["-c", "http.postBuffer=67108864"], some.collect()).await;
    let lengths = world.github.pushes().iter().filter(|push| push.header("content-length").is_some()).count();
    assert_eq!(lengths, 6);
    assert_own_connections(&world);
    world.quiet(0).await;
    world.finish().await;
}

#[tokio::test]
async fn an_early_answer_reaches_git_over_http2() {
    let world = World::builder(PROGRAM).http2().start().await;
    let git = committed(&world, LARGE).await;
    let some = earlies().into_iter().filter(|early| early.rest != Rest::Close);
    let some = some.filter(|early| early.shown.contains("no room") || early.shown.contains("413"));
    push_all(&world, &git, &[], some.collect()).await;
    world.quiet(0).await;
    world.finish().await;
}

#[tokio::test]
async fn an_early_success_is_recorded_as_the_upstream_reported_it() {
    let world = World::start(PROGRAM).await;
    let git = committed(&world, LARGE).await;
    let run = world.registration(Identity::Write).repository("acme/api").send().await.unwrap();
    let early = Fault::Early(report("ok refs/heads/early\n"), Rest::Read);
    world.github.when(Route::ReceivePack).skip(1).then(early);
    let client = world.git(&run).at(git.folder().to_str().unwrap());
    client.run(&["push", &client.url("acme/api"), "HEAD:early"]).await.ok().says("[new branch]");
    assert_eq!(world.show(&run).await.pushes[0].outcome(), PushOutcome::Done);
    world.quiet(0).await;
    world.finish().await;
}

#[tokio::test]
async fn a_raw_client_gets_an_early_refusal_after_its_own_last_byte() {
    use gitdoor_tests::raw::{Request, chunk};

    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    let run = world.registration(Identity::Write).repository("acme/api").send().await.unwrap();
    world.github.when(Route::ReceivePack).then(Fault::Early(Canned::status(413), Rest::Stall));
    let section = pkt::commands(&[(pkt::ZERO, &"1".repeat(40), "refs/heads/x")], pkt::GIT_CAPABILITIES);
    let door = world.door(0);
    let mut connection = door.connect().await.unwrap();
    let head = Request::post("/acme/api.git/git-receive-pack").basic(&run.bearer);
    let head = head.header("Transfer-Encoding", "chunked").to_bytes(&door.host);
    connection.write(&[head, chunk(&section), chunk(b"PACK")].concat()).await.unwrap();
    gitdoor_tests::wait::until("the upstream has answered", async || {
        world.github.pushes().first().is_some_and(|push| push.status == Some(413))
    })
    .await;
    for _ in 0..64 {
        connection.write(&chunk(&vec![b'x'; 64 * 1024])).await.unwrap();
    }
    assert!(connection.read_so_far().is_empty());
    connection.write(b"0\r\n\r\n").await.unwrap();
    let answer = connection.response().await.unwrap();
    assert_eq!(answer.status, 200);
    assert!(pkt::report(&answer.body)[1].starts_with("ng refs/heads/x refused: "), "{}", answer.text());
    // The connection goes on.
    let list = Request::get("/acme/api.git/info/refs?service=git-upload-pack").basic(&run.bearer);
    connection.write(&list.to_bytes(&door.host)).await.unwrap();
    assert_eq!(connection.response().await.unwrap().status, 200);
    world.finish().await;
}
