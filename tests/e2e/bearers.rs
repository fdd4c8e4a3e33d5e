//! The bearer: each way in which it is no good, on each route, in words; and how a run gets one.

use std::time::{Duration, Instant, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gitdoor_proto::v1::{Identity, RegisterRunRequest};
use gitdoor_tests::git;
use gitdoor_tests::pkt;
use gitdoor_tests::raw::{Request, Response};
use gitdoor_tests::wait::until;
use gitdoor_tests::world::{Exit, Run, World, run_to_exit};
use serde_json::Value;
use tonic::Code;

use crate::PROGRAM;

/// A secret of the right shape that no run has.
const NOBODYS: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8";

/// What a bearer that is no good is answered: status, reason, and some of the words.
struct Dead {
    what: &'static str,
    authorization: Vec<String>,
    status: u16,
    reason: &'static str,
    words: &'static str,
}

fn dead(what: &'static str, bearer: &str, status: u16, reason: &'static str, words: &'static str) -> Dead {
    Dead { what, authorization: vec![basic("x-access-token", bearer)], status, reason, words }
}

fn basic(user: &str, password: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
}

/// The four requests that git makes.
fn routes() -> [(&'static str, Request); 4] {
    let section = pkt::commands(&[(pkt::ZERO, &"1".repeat(40), "refs/heads/x")], pkt::GIT_CAPABILITIES);
    let fetch = Request::post("/acme/api.git/git-upload-pack")
        .header("Content-Type", "application/x-git-upload-pack-request")
        .body("0000");
    [
        ("fetch discovery", discovery("upload")),
        ("push discovery", discovery("receive")),
        ("fetch", fetch),
        ("push", Request::push("acme/api", [section.as_slice(), pkt::EMPTY_PACK].concat())),
    ]
}

fn discovery(direction: &str) -> Request {
    Request::get(&format!("/acme/api.git/info/refs?service=git-{direction}-pack"))
}

fn with(request: Request, authorization: &[String]) -> Request {
    authorization.iter().fold(request, |request, value| request.header("Authorization", value))
}

fn count(answer: &Response, header: &str) -> usize {
    answer.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case(header)).count()
}

/// So many seconds from now.
#[expect(clippy::disallowed_methods, reason = "a test is an edge: it reads the clock that the parts read")]
pub(crate) fn from_now(seconds: u64) -> SystemTime {
    SystemTime::now() + Duration::from_secs(seconds)
}

/// So many seconds to come, or more on a machine where a restart of control takes long: enough for another one, and for
/// something to begin.
pub(crate) async fn soon(world: &mut World, runs: &[&Run], seconds: u64) -> u64 {
    let began = Instant::now();
    end_at(world, runs, from_now(3600)).await;
    seconds + 3 * began.elapsed().as_secs()
}

/// Lets the time of runs end at another moment: control is stopped, its store changed, and control started again.
pub(crate) async fn end_at(world: &mut World, runs: &[&Run], end: SystemTime) {
    world.control().stop(Duration::from_secs(15)).await;
    let micros = end.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_micros();
    let store = rusqlite::Connection::open(world.path().join("control/store.sqlite")).unwrap();
    for run in runs {
        let changed = store
            .execute(
                "UPDATE runs SET expires_at = ?1 WHERE run_id = ?2",
                rusqlite::params![i64::try_from(micros).unwrap(), run.id],
            )
            .unwrap();
        assert_eq!(changed, 1);
    }
    drop(store);
    world.control().start_again().await;
    until_served(world, 0).await;
}

/// So many connections, and each of two runtimes has taken one, but for once in a hundred billion times.
const TO_EACH_RUNTIME: usize = 38;

/// Waits until a data plane has found its control again: each of its runtimes, of which any may take a connection.
pub(crate) async fn until_served(world: &World, number: usize) {
    let unknown = Request::get(&discovery_path("acme/api")).basic(&format!("sbr_nobody.{NOBODYS}"));
    until("the data plane has found its control", async || {
        for _ in 0..TO_EACH_RUNTIME {
            if world.door(number).send(unknown.clone()).await.status != 404 {
                return false;
            }
        }
        true
    })
    .await;
}

fn discovery_path(repository: &str) -> String {
    format!("/{repository}.git/info/refs?service=git-upload-pack")
}

/// Runs whose bearers are no good, each in its own way.
async fn graveyard(world: &mut World) -> Vec<Dead> {
    let live = world.register(Identity::Write).await;
    let rotated = world.register(Identity::Write).await;
    world.rotate(&rotated).await;
    let revoked = world.register(Identity::Write).await;
    world.revoke(&revoked).await;
    let none = world.register(Identity::None).await;
    let expired = world.register(Identity::Write).await;
    end_at(world, &[&expired], from_now(0)).await;
    let wrong = format!("sbr_{}.{NOBODYS}", live.id);
    let form = "send sbr_<runId>.<secret> as the password";
    let unwanted = "no longer, the run's";
    vec![
        Dead {
            what: "none",
            authorization: Vec::new(),
            status: 401,
            reason: "no-credential",
            words: "send the run bearer as the password",
        },
        dead("garbage", "ghs_0123456789abcdef", 401, "not-a-bearer", form),
        dead("a bearer cut short", live.bearer.split_at(live.bearer.len() - 1).0, 401, "not-a-bearer", form),
        dead("empty", "", 401, "not-a-bearer", form),
        dead("unknown run", &format!("sbr_nobody.{NOBODYS}"), 404, "run-unknown", "no run has this bearer's id"),
        dead("wrong secret", &wrong, 401, "bearer-wrong", unwanted),
        dead("rotated away", &rotated.bearer, 401, "bearer-wrong", unwanted),
        dead("revoked", &revoked.bearer, 403, "run-revoked", "run revoked"),
        dead("expired", &expired.bearer, 403, "run-expired", "run expired"),
        dead("identity none", &none.bearer, 403, "identity-none", "no access to repositories"),
        Dead {
            what: "two",
            authorization: vec![basic("x", &live.bearer), basic("x", &live.bearer)],
            status: 400,
            reason: "two-credentials",
            words: "one Authorization header",
        },
    ]
}

#[tokio::test]
async fn a_dead_bearer_has_its_status_on_every_route_and_nothing_goes_up() {
    let mut world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    for Dead { what, authorization, status, reason, words } in graveyard(&mut world).await {
        for (route, request) in routes() {
            let answer = world.door(0).send(with(request, &authorization)).await;
            let place = format!("{what}, {route}: {answer:?}");
            assert_eq!(answer.status, status, "{place}");
            assert_eq!(count(&answer, "www-authenticate"), usize::from(status == 401), "{place}");
            if status == 401 {
                assert_eq!(answer.header("www-authenticate"), Some("Basic realm=\"gitdoor\""), "{place}");
            }
            assert_eq!(answer.header("x-gitdoor-reason"), Some(reason), "{place}");
            assert!(answer.header("content-type").unwrap().starts_with("text/plain"), "{place}");
            assert!(answer.text().contains(words) && answer.header("x-request-id").is_some(), "{place}");
        }
    }
    let requests = world.github.requests();
    assert!(requests.is_empty(), "{requests:?}");
    world.finish().await;
}

#[tokio::test]
async fn git_prints_why_its_bearer_is_no_good() {
    let mut world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    for Dead { what, authorization, words, .. } in graveyard(&mut world).await {
        let [authorization] = authorization.as_slice() else { continue };
        let pair = STANDARD.decode(authorization.trim_start_matches("Basic ")).unwrap();
        let password = String::from_utf8(pair).unwrap().split_once(':').unwrap().1.to_owned();
        for installed in git::all() {
            let git = world.git_at(0, &password).program(&installed);
            let url = git.url("acme/api");
            git.run(&["init", "--quiet", "."]).await.ok();
            git.commit("a", what).await;
            for command in [&["ls-remote", &url][..], &["push", &url, "HEAD:fix-x"]] {
                let printed = git.run(command).await.code_is(128);
                let remote = printed.stderr.lines().any(|line| line.starts_with("remote: gitdoor: "));
                assert!(remote && printed.text().contains(words), "{what}: {printed}");
            }
        }
    }
    assert!(world.github.requests().is_empty());
    world.finish().await;
}

#[tokio::test]
async fn a_bearer_is_read_in_every_scheme_that_clients_send() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    let run = world.register(Identity::Write).await;
    let encoded = |user: &str| basic(user, &run.bearer).replace("Basic ", "");
    let good = [
        format!("Basic {}", encoded("x-access-token")),
        format!("basic {}", encoded("octocat")),
        format!("BASIC {}", encoded("")),
        format!("token {}", run.bearer),
        format!("Token {}", run.bearer),
        format!("Bearer {}", run.bearer),
        format!("bearer {}", run.bearer),
    ];
    for authorization in &good {
        for direction in ["upload", "receive"] {
            let answer = world.door(0).send(with(discovery(direction), std::slice::from_ref(authorization))).await;
            let scheme = authorization.split(' ').next().unwrap();
            assert_eq!(answer.status, 200, "{scheme}, {direction}: {}", answer.text());
        }
    }
    let bad =
        [format!("Digest {}", run.bearer), run.bearer.clone(), basic(&run.bearer, ""), format!("Basic{}", "=")];
    for authorization in bad {
        let answer = world.door(0).send(with(discovery("upload"), &[authorization])).await;
        assert_eq!((answer.status, count(&answer, "www-authenticate")), (401, 1));
    }
    world.finish().await;
}

#[tokio::test]
async fn a_push_with_a_dead_bearer_is_answered_before_its_body_has_come() {
    let world = World::start(PROGRAM).await;
    let run = world.register(Identity::Write).await;
    world.revoke(&run).await;
    let section = pkt::commands(&[(pkt::ZERO, &"1".repeat(40), "refs/heads/x")], pkt::GIT_CAPABILITIES);
    let request = Request::push("acme/api", [section.as_slice(), b"PACK"].concat()).basic(&run.bearer);
    let whole = String::from_utf8(request.to_bytes(&world.door(0).host)).unwrap();
    let length = format!("Content-Length: {}", section.len() + 4);
    let promised = whole.replace(&length, "Content-Length: 1000000");
    assert_ne!(promised, whole);
    let answer = world.door(0).exchange(promised.as_bytes()).await;
    assert_eq!((answer.status, answer.header("x-gitdoor-reason")), (403, Some("run-revoked")));
    world.finish().await;
}

#[tokio::test]
async fn a_registration_may_be_repeated_until_its_bearer_is_used() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    let register = || world.registration(Identity::Write).id("r").options(|options| options.max_refs = 3).send();
    let status = async |run: &Run| world.door(0).send(discovery("upload").basic(&run.bearer)).await.status;
    let first = register().await.unwrap();
    let second = register().await.unwrap();
    assert_ne!(first.bearer, second.bearer);
    assert_eq!(status(&first).await, 401);
    let third = register().await.unwrap();
    assert_eq!((status(&second).await, status(&third).await), (401, 200));

    let used = register().await.unwrap_err();
    assert_eq!(used.code(), Code::AlreadyExists);
    assert!(used.message().contains("RotateBearer"), "{used}");
    assert_eq!(status(&third).await, 200);
    let rotated = world.rotate(&third).await;
    assert_eq!((status(&third).await, status(&rotated).await), (401, 200));
    world.finish().await;
}

#[tokio::test]
async fn a_registration_with_other_parameters_is_another_run() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    let first = world.registration(Identity::Write).id("r").send().await.unwrap();
    let others = [
        world.registration(Identity::Read).id("r"),
        world.registration(Identity::Write).id("r").budget(Duration::from_mins(1)),
        world.registration(Identity::Write).id("r").repository("acme/api"),
        world.registration(Identity::Write).id("r").options(|options| options.no_workflows = true),
        world.registration(Identity::Write).id("r").options(|options| options.branches.push("a/*".into())),
    ];
    for other in others {
        let refused = other.send().await.unwrap_err();
        assert_eq!(refused.code(), Code::AlreadyExists);
        assert!(refused.message().contains("other parameters"), "{refused}");
    }
    let answer = world.door(0).send(discovery("upload").basic(&first.bearer)).await;
    assert_eq!(answer.status, 200, "the run is as it was");
    world.finish().await;
}

#[tokio::test]
async fn a_registration_that_breaks_a_rule_is_refused_in_words() {
    let world = World::start(PROGRAM).await;
    let good = || RegisterRunRequest { run_id: "r".into(), identity: Identity::Write.into(), ..Default::default() };
    let budget = |seconds| Some(prost_types::Duration { seconds, nanos: 0 });
    let bad = [
        ("empty id", RegisterRunRequest { run_id: String::new(), ..good() }),
        ("id with a slash", RegisterRunRequest { run_id: "a/b".into(), ..good() }),
        ("long id", RegisterRunRequest { run_id: "a".repeat(65), ..good() }),
        ("no identity", RegisterRunRequest { identity: 0, ..good() }),
        ("unheard of identity", RegisterRunRequest { identity: 9, ..good() }),
        ("broken repository", RegisterRunRequest { repository: "acme".into(), ..good() }),
        ("no time", RegisterRunRequest { budget: budget(0), ..good() }),
        ("negative time", RegisterRunRequest { budget: budget(-5), ..good() }),
        ("endless", RegisterRunRequest { budget: budget(i64::MAX), ..good() }),
    ];
    for (what, message) in bad {
        let refused = world.runs().await.register_run(message).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{what}: {refused}");
        assert!(refused.message().len() > 10, "{what}: {refused}");
    }
    world.finish().await;
}

#[tokio::test]
async fn a_run_that_names_its_repository_is_bound_at_once_or_not_registered() {
    let world = World::start(PROGRAM).await;
    let id = world.github.create("Acme/API");
    world.github.seed("acme/outside").create();
    world.github.set_installed("acme/outside", false);
    let run = world.registration(Identity::Write).repository("acme/api").send().await.unwrap();
    let binding = world.show(&run).await.run.unwrap().binding.unwrap();
    assert_eq!((binding.repository.as_str(), binding.repository_id), ("Acme/API", id));
    assert_eq!(binding.default_branch, "main");

    for (number, repository) in ["acme/none", "acme/outside", "other/api"].into_iter().enumerate() {
        let asked = world.registration(Identity::Write).id(&format!("no-{number}")).repository(repository);
        let refused = asked.send().await.unwrap_err();
        assert_eq!(refused.code(), Code::FailedPrecondition, "{repository}: {refused}");
        assert!(refused.message().contains("cannot be confirmed"), "{refused}");
    }
    let listed = world.runs().await.list_runs(gitdoor_proto::v1::ListRunsRequest::default()).await.unwrap();
    assert_eq!(listed.into_inner().runs.len(), 1, "what was refused is no run");
    world.finish().await;
}

/// The command line as an operator calls it.
async fn gitdoor(world: &World, arguments: &[&str]) -> Exit {
    let control = format!("--control={}", world.runs_address());
    let arguments = arguments.iter().map(|argument| (*argument).to_owned()).chain([control]);
    run_to_exit(PROGRAM.as_ref(), "__gitdoor", &arguments.collect::<Vec<_>>()).await
}

fn object(exit: &Exit) -> Value {
    assert_eq!(exit.code, Some(0), "{}", exit.stderr);
    assert_eq!(exit.stdout.lines().count(), 1);
    serde_json::from_str(&exit.stdout).unwrap()
}

fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    keys.sort_unstable();
    keys
}

#[tokio::test]
async fn the_command_line_takes_a_run_through_its_life() {
    let world = World::start(PROGRAM).await;
    let id = world.github.create("acme/api");
    let register =
        ["run", "register", "--run-id", "cli", "--identity", "write", "--repository", "acme/api", "--json"];
    let registered = object(&gitdoor(&world, &register).await);
    assert_eq!(keys(&registered), ["bearer", "expires_at", "repository", "run_id"]);
    assert_eq!((&registered["run_id"], &registered["repository"]), (&"cli".into(), &"acme/api".into()));
    humantime::parse_rfc3339(registered["expires_at"].as_str().unwrap()).unwrap();
    let bearer = registered["bearer"].as_str().unwrap();
    let git = world.git_at(0, bearer).cloned("acme/api").await;
    git.commit("a", "a").await;
    git.run(&["push", "origin", "HEAD:fix-x"]).await.ok();

    let again = gitdoor(&world, &register).await;
    assert_eq!((again.code, again.stdout.as_str()), (Some(1), ""));
    assert!(again.stderr.contains("RotateBearer"), "{}", again.stderr);
    let rotated = object(&gitdoor(&world, &["run", "rotate", "cli", "--json"]).await);
    assert_eq!(keys(&rotated), ["bearer", "expires_at", "repository", "run_id"]);
    assert_ne!(rotated["bearer"], registered["bearer"]);
    git.run(&["fetch"]).await.code_is(128).says("no longer, the run's");

    let adopted = object(&gitdoor(&world, &["run", "adopt", "cli", "--budget", "1h", "--json"]).await);
    assert_eq!((&adopted["state"], &adopted["repository"]), (&"live".into(), &"acme/api".into()));
    let time = |name: &str| humantime::parse_rfc3339(adopted[name].as_str().unwrap()).unwrap();
    assert_eq!(time("expires_at").duration_since(time("adopted_at")).unwrap(), Duration::from_mins(65));

    let shown = object(&gitdoor(&world, &["run", "show", "cli", "--json"]).await);
    for key in
        ["run_id", "identity", "state", "repository", "repository_id", "default_branch", "expires_at", "pushes"]
    {
        assert!(shown.get(key).is_some(), "{key} is missing: {shown}");
    }
    assert_eq!((&shown["expires_at"], &shown["adopted_at"]), (&adopted["expires_at"], &adopted["adopted_at"]));
    assert_eq!((&shown["identity"], &shown["state"]), (&"write".into(), &"live".into()));
    assert_eq!((&shown["repository_id"], &shown["default_branch"]), (&id.into(), &"main".into()));
    assert_eq!(shown["pushes"].as_array().unwrap().len(), 1);

    assert_eq!(gitdoor(&world, &["run", "revoke", "cli"]).await.code, Some(0));
    assert_eq!(object(&gitdoor(&world, &["run", "show", "cli", "--json"]).await)["state"], "revoked");
    let dead = world.door(0).send(discovery("upload").basic(rotated["bearer"].as_str().unwrap())).await;
    assert_eq!(dead.status, 403);
    world.finish().await;
}

#[tokio::test]
async fn the_command_line_exits_by_what_went_wrong() {
    let world = World::start(PROGRAM).await;
    let nowhere = ["run", "register", "--run-id", "a", "--identity", "write", "--repository", "acme/none"];
    let table: [(&[&str], i32, &str); 7] = [
        (&nowhere, 1, "cannot be confirmed"),
        (&["run", "show", "nobody"], 1, "no run has the id nobody"),
        (&["run", "revoke", "nobody"], 1, "no run has the id nobody"),
        (&["run", "show", "a/b"], 2, "a/b"),
        (&["run", "register", "--run-id", "a", "--identity", "admin"], 2, "admin"),
        (&["run", "show", "a", "--loud"], 2, "--loud"),
        (&["run", "list", "--control", "http://192.0.2.1:1"], 64, "--control"),
    ];
    for (arguments, code, words) in table {
        let exit = gitdoor(&world, arguments).await;
        assert_eq!(exit.code, Some(code), "{arguments:?}: {}", exit.stderr);
        assert!(exit.stdout.is_empty() && exit.stderr.contains(words), "{arguments:?}: {}", exit.stderr);
    }
    let absent = [String::from("run"), "list".into(), "--control=unix:/nonexistent/runs".into()];
    let exit = run_to_exit(PROGRAM.as_ref(), "__gitdoor", &absent).await;
    assert_eq!(exit.code, Some(1), "{}", exit.stderr);
    world.finish().await;
}
