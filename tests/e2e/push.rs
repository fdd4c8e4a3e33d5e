//! What stock git pushes through the door: every shape and size of a push that is allowed, over both versions of HTTP.

use std::collections::BTreeMap;
use std::time::Duration;

use gitdoor_proto::v1::{Identity, Push, PushOutcome};
use gitdoor_tests::git::{self, Git};
use gitdoor_tests::github::{BodyEnd, Request, Route};
use gitdoor_tests::pkt;
use gitdoor_tests::raw;
use gitdoor_tests::world::{Run, World};

use crate::PROGRAM;

/// Above this git sends a probe, and then the push in chunks.
const POST_BUFFER: usize = 1 << 20;
/// Sizes of whole bodies at which a buffer or a window is just full.
const EDGES: [usize; 4] = [16 << 10, 64 << 10, 128 << 10, 1 << 20];

#[tokio::test]
async fn every_shape_of_a_push_lands_and_is_in_the_ledger() {
    let world = World::start(PROGRAM).await;
    for (number, installed) in git::all().into_iter().enumerate() {
        let name = format!("acme/api-{number}");
        world.github.create(&name);
        let run = world.register(Identity::Write).await;
        let git = world.git(&run).program(&installed).cloned(&name).await;
        let first = git.commit("fix.txt", "fix\n").await;
        let landed = Landed { world: &world, run: &run, git: &git, repository: &name };
        git.run(&["push", "origin", "HEAD:fix-x"]).await.ok().says("[new branch]");
        landed.assert(&[("fix-x", &first)]).await;

        git.run(&["push", "origin", "HEAD:a", "HEAD:b/c", "HEAD~1:refs/heads/d"]).await.ok();
        let base = git.id_of("HEAD~1").await;
        landed.assert(&[("a", &first), ("b/c", &first), ("d", &base)]).await;

        git.run(&["push", "--atomic", "origin", "HEAD:e", "HEAD:f"]).await.ok();
        landed.assert(&[("e", &first), ("f", &first)]).await;
        assert!(section(&world.github.pushes()).contains(" atomic"));

        git.run(&["commit", "--quiet", "--amend", "--message", "Another"]).await.ok();
        let second = git.id_of("HEAD").await;
        git.run(&["push", "origin", "HEAD:fix-x"]).await.code_is(1).says("[rejected]");
        git.run(&["push", "--force", "origin", "HEAD:fix-x"]).await.ok().says("(forced update)");
        landed.assert(&[("fix-x", &second)]).await;

        let (one, other) = ("f\u{fc}r-\u{65e5}\u{672c}", "\u{1f6aa}/x");
        git.run(&["push", "origin", &format!("HEAD:{one}"), &format!("HEAD:{other}")]).await.ok();
        landed.assert(&[(one, &second), (other, &second)]).await;
        assert!(world.github.pushes().iter().all(|push| push.body_end == BodyEnd::Clean));
    }
    world.finish().await;
}

#[tokio::test]
async fn a_porcelain_push_prints_what_it_prints_at_the_forge() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    for (number, installed) in git::all().into_iter().enumerate() {
        let run = world.register(Identity::Write).await;
        let git = world.git(&run).program(&installed).cloned("acme/api").await;
        git.commit("fix.txt", "fix\n").await;
        let to = format!("To {}", git.url("acme/api"));
        let branch = format!("porcelain-{number}");
        let target = format!("HEAD:{branch}");
        let pushed = git.run(&["push", "--porcelain", "origin", &target]).await.ok();
        assert_eq!(pushed.stdout, format!("{to}\n*\tHEAD:refs/heads/{branch}\t[new branch]\nDone\n"));
        let before = world.github.pushes().len();
        let pushed = git.run(&["push", "--porcelain", "origin", &target]).await.ok();
        assert_eq!(pushed.stdout, format!("{to}\n=\tHEAD:refs/heads/{branch}\t[up to date]\nDone\n"));
        git.run(&["push", "origin", &target]).await.ok().says("Everything up-to-date");
        assert_eq!(world.github.pushes().len(), before, "a push with nothing to say is no request");
        assert_eq!(world.show(&run).await.pushes.len(), 1);
        assert_eq!(git.erasures(), 0);
    }
    world.finish().await;
}

#[tokio::test]
async fn a_push_that_negotiates_fetches_in_between_and_lands() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    for (number, installed) in git::all().into_iter().enumerate() {
        let run = world.register(Identity::Write).await;
        let git = world.git(&run).program(&installed).cloned("acme/api").await;
        let id = git.commit("fix.txt", "fix\n").await;
        let before = world.github.requests().len();
        let branch = format!("fix-{number}");
        git.run(&["-c", "push.negotiate=true", "push", "origin", &format!("HEAD:{branch}")]).await.ok();
        let asked = world.github.requests().split_off(before);
        let asked = asked.iter().map(|request| request.route).filter(|route| {
            matches!(route, Route::PushDiscovery | Route::FetchDiscovery | Route::UploadPack | Route::ReceivePack)
        });
        let order = [Route::PushDiscovery, Route::FetchDiscovery, Route::UploadPack, Route::ReceivePack];
        assert_eq!(asked.collect::<Vec<_>>(), order);
        let landed = Landed { world: &world, run: &run, git: &git, repository: "acme/api" };
        landed.assert(&[(&branch, &id)]).await;
    }
    world.finish().await;
}

#[tokio::test]
async fn a_push_over_the_post_buffer_is_a_probe_that_passes_unchanged_and_one_push() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    for (number, installed) in git::all().into_iter().enumerate() {
        let run = world.register(Identity::Write).await;
        let git = world.git(&run).program(&installed).cloned("acme/api").await;
        let id = git.commit("big", random(3 * POST_BUFFER)).await;
        let before = world.github.pushes().len();
        let branch = format!("big-{number}");
        git.run(&["push", "origin", &format!("HEAD:{branch}")]).await.ok();
        let pushes = world.github.pushes().split_off(before);
        let [probe, push] = pushes.as_slice() else { panic!("{} requests", pushes.len()) };
        assert!(probe.is_probe());
        assert_eq!((probe.header("content-length"), probe.status), (Some("4"), Some(200)));
        assert_eq!(push.header("transfer-encoding"), Some("chunked"));
        assert_eq!(push.header("content-length"), None);
        assert!(push.body_len > 3 * POST_BUFFER as u64);
        let landed = Landed { world: &world, run: &run, git: &git, repository: "acme/api" };
        let row = landed.assert(&[(&branch, &id)]).await;
        assert_eq!(row.request_bytes, push.body_len);
        assert_eq!(world.show(&run).await.pushes.len(), 1, "a probe is no push");
    }
    world.finish().await;
}

#[tokio::test]
async fn a_push_from_a_shallow_clone_keeps_its_shallow_lines() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    for (number, installed) in git::all().into_iter().enumerate() {
        let run = world.register(Identity::Write).await;
        let client = world.git(&run).program(&installed);
        client.run(&["clone", "--quiet", "--depth", "1", &client.url("acme/api")]).await.ok();
        let git = client.at("api");
        let tip = git.id_of("HEAD").await;
        let id = git.commit("fix.txt", "fix\n").await;
        let branch = format!("fix-{number}");
        git.run(&["push", "origin", &format!("HEAD:{branch}")]).await.ok();
        assert!(section(&world.github.pushes()).contains(&format!("0035shallow {tip}\n")));
        let landed = Landed { world: &world, run: &run, git: &git, repository: "acme/api" };
        landed.assert(&[(&branch, &id)]).await;
        let before = world.github.pushes().len();
        git.run(&["push", "origin", &format!("HEAD:{branch}")]).await.ok().says("Everything up-to-date");
        assert_eq!(world.github.pushes().len(), before);
    }
    world.finish().await;
}

#[tokio::test]
async fn a_push_of_sha256_ids_lands() {
    let world = World::start(PROGRAM).await;
    world.github.seed("acme/api").sha256().create();
    for (number, installed) in git::all().into_iter().enumerate() {
        let run = world.register(Identity::Write).await;
        let git = world.git(&run).program(&installed).cloned("acme/api").await;
        let landed = Landed { world: &world, run: &run, git: &git, repository: "acme/api" };
        for (size, kind) in [(10, "small"), (2 * POST_BUFFER, "big")] {
            let id = git.commit(kind, random(size)).await;
            let branch = format!("{kind}-{number}");
            git.run(&["push", "origin", &format!("HEAD:{branch}")]).await.ok();
            landed.assert(&[(&branch, &id)]).await;
            assert_eq!(id.len(), 64);
        }
    }
    world.finish().await;
}

#[tokio::test]
async fn the_first_branch_of_an_empty_repository_lands() {
    let world = World::start(PROGRAM).await;
    world.github.seed("acme/api").empty().create();
    let run = world.register(Identity::Write).await;
    let git = world.git(&run).cloned("acme/api").await;
    let id = git.commit("fix.txt", "fix\n").await;
    git.run(&["push", "origin", "HEAD:main"]).await.code_is(1).says("refused: default branch");
    git.run(&["push", "origin", "HEAD:fix-x"]).await.ok();
    let landed = Landed { world: &world, run: &run, git: &git, repository: "acme/api" };
    landed.assert(&[("fix-x", &id)]).await;
    world.finish().await;
}

#[tokio::test]
async fn a_report_comes_in_the_framing_that_the_client_asked_for() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    let tip = world.github.ref_of("acme/api", "refs/heads/main").unwrap();
    let rows = [
        ("bare", "report-status agent=x", None),
        ("bare-v2", "report-status-v2 object-format=sha1 agent=x", None),
        ("banded", "report-status side-band-64k agent=x", Some(1)),
        ("banded-v2", "report-status-v2 side-band-64k object-format=sha1 agent=x", Some(1)),
    ];
    for (branch, capabilities, band) in rows {
        for (ref_name, good) in [(format!("refs/heads/{branch}"), true), ("refs/heads/main".to_owned(), false)] {
            let run = world.registration(Identity::Write).repository("acme/api").send().await.unwrap();
            let old = if good { pkt::ZERO } else { &tip };
            let commands = pkt::commands(&[(old, &tip, &ref_name)], capabilities);
            let push = raw::Request::push("acme/api", [&commands, pkt::EMPTY_PACK].concat()).basic(&run.bearer);
            let answer = world.door(0).send(push).await;
            assert_eq!((answer.status, answer.complete), (200, true), "{capabilities}");
            assert_eq!(answer.header("content-type"), Some("application/x-git-receive-pack-result"));
            let first = pkt::split(&answer.body).remove(0).unwrap();
            match band {
                None => assert_eq!(first, b"unpack ok\n", "{capabilities}"),
                Some(_) => assert!([1, 2].contains(&first[0]), "{capabilities}: {first:?}"),
            }
            let report = pkt::report(&answer.body);
            let line =
                if good { format!("ok {ref_name}") } else { format!("ng {ref_name} refused: default branch") };
            assert_eq!(report[0], "unpack ok", "{capabilities}");
            assert!(report[1].starts_with(&line), "{capabilities}: {report:?}");
            let outcome = if good { PushOutcome::Done } else { PushOutcome::Refused };
            assert_eq!(newest(&world, &run).await.outcome(), outcome, "{capabilities}");
        }
        assert_eq!(world.github.ref_of("acme/api", &format!("refs/heads/{branch}")), Some(tip.clone()));
    }
    assert_eq!(world.github.pushes().len(), rows.len());
    world.finish().await;
}

#[tokio::test]
async fn a_push_ends_whatever_its_size_is_on_either_version_of_http() {
    for builder in [World::builder(PROGRAM), World::builder(PROGRAM).http2()] {
        let world = builder.start().await;
        world.github.create("acme/api");
        let run = world.register(Identity::Write).await;
        let git = stored(world.git(&run)).await.cloned("acme/api").await;
        let landed = Landed { world: &world, run: &run, git: &git, repository: "acme/api" };
        for edge in EDGES {
            // With nothing compressed, a body is as much larger than its file as any other of about that size.
            let mut size = edge - edge / 1000 - 600;
            let mut body = sized(&landed, size).await;
            for _ in 0..3 {
                size = size + edge - 1 - body;
                body = sized(&landed, size).await;
            }
            assert_eq!(body, edge - 1);
            assert_eq!(sized(&landed, size + 1).await, edge);
            assert_eq!(sized(&landed, size + 2).await, edge + 1);
        }
        world.finish().await;
    }
}

#[tokio::test]
async fn a_large_push_and_clone_pass_every_limit_that_frameworks_set_by_default() {
    let [plain, http2] = [World::builder(PROGRAM), World::builder(PROGRAM).http2()];
    for (builder, version, sizes) in [(plain, "1.1", [1, 2, 10, 30].as_slice()), (http2, "2", &[1, 30])] {
        let world = builder.start().await;
        world.github.seed("acme/api").big_file("seed", 30 << 20).create();
        let run = world.register(Identity::Write).await;
        let client = stored(world.git(&run)).await.limit(Duration::from_secs(90));
        let url = client.url("acme/api");
        let traced = client.clone().env("GIT_TRACE_CURL", "1").env("GIT_TRACE_CURL_NO_DATA", "1");
        traced.run(&["ls-remote", &url]).await.ok().says(&format!("HTTP/{version} 200"));
        let git = client.cloned("acme/api").await;
        let seed = std::fs::metadata(git.folder().join("seed")).unwrap();
        assert_eq!(seed.len(), 30 << 20);
        let landed = Landed { world: &world, run: &run, git: &git, repository: "acme/api" };
        for mebibytes in sizes {
            let id = git.commit("big", random((*mebibytes << 20) + 1)).await;
            let branch = format!("big-{mebibytes}");
            git.run(&["push", "origin", &format!("HEAD:{branch}")]).await.ok().does_not_say("error:");
            landed.assert(&[(&branch, &id)]).await;
        }
        world.finish().await;
    }
}

#[tokio::test]
async fn a_refused_push_of_any_size_is_told_so_on_either_version_of_http() {
    for builder in [World::builder(PROGRAM), World::builder(PROGRAM).http2()] {
        let world = builder.start().await;
        world.github.create("acme/api");
        for (number, installed) in git::all().into_iter().enumerate() {
            let run = world.register(Identity::Write).await;
            let client = stored(world.git(&run)).await.program(&installed);
            let git = client.limit(Duration::from_secs(90)).cloned("acme/api").await;
            let before = world.github.refs("acme/api");
            let sizes = [10, 500 << 10, if number == 0 { 30 << 20 } else { 5 << 20 }];
            for size in sizes {
                git.commit("big", random(size)).await;
                let push = git.run(&["push", "origin", "HEAD:main"]).await.code_is(1);
                push.says("! [remote rejected] HEAD -> main (refused: default branch").does_not_say("RPC failed");
                let row = newest(&world, &run).await;
                assert_eq!(row.outcome(), PushOutcome::Refused);
            }
            assert_eq!(world.github.refs("acme/api"), before);
            assert_eq!(git.erasures(), 0);
        }
        assert!(world.github.pushes().iter().all(Request::is_probe));
        world.finish().await;
    }
}

#[tokio::test]
async fn what_a_command_costs_in_requests_questions_and_mints_is_known() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    let run = world.register(Identity::Write).await;
    let client = stored(world.git(&run)).await;
    let mut costs = Costs::start(&world).await;

    let git = client.cloned("acme/api").await;
    let clone = [("door", 4), ("fetch", 3), ("mints", 1), ("upstream", 3)];
    costs.assert("a clone", &clone).await;
    client.run(&["clone", "--quiet", &client.url("acme/api"), "again"]).await.ok();
    costs.assert("another clone", &[("door", 4), ("fetch", 3), ("upstream", 3)]).await;

    git.commit("fix.txt", "fix\n").await;
    git.run(&["push", "origin", "HEAD:fix-x"]).await.ok();
    newest(&world, &run).await;
    let first = [("door", 3), ("push_discovery", 1), ("bind", 1), ("push", 1), ("report", 1)];
    costs.assert("a first push", &[&first[..], &[("mints", 1), ("api", 1), ("upstream", 2)]].concat()).await;

    git.commit("fix.txt", "fix again\n").await;
    git.run(&["push", "origin", "HEAD:fix-x"]).await.ok();
    newest(&world, &run).await;
    let push = [("door", 3), ("push_discovery", 1), ("push", 1), ("report", 1), ("upstream", 2)];
    costs.assert("a push", &push).await;

    git.commit("big", random(2 * POST_BUFFER)).await;
    git.run(&["push", "origin", "HEAD:fix-x"]).await.ok();
    newest(&world, &run).await;
    let large = [("door", 4), ("push_discovery", 1), ("probe", 1), ("push", 1), ("report", 1), ("upstream", 3)];
    costs.assert("a push with a probe", &large).await;

    git.run(&["push", "origin", "HEAD:main"]).await.code_is(1);
    newest(&world, &run).await;
    costs.assert("a refused push", &[("door", 3), ("push_discovery", 1), ("push", 1), ("upstream", 1)]).await;

    git.run(&["push", "origin", "HEAD:fix-x"]).await.ok().says("Everything up-to-date");
    costs.assert("a push of nothing", &[("door", 2), ("push_discovery", 1), ("upstream", 1)]).await;
    assert_eq!(git.erasures(), 0);
    world.finish().await;
}

#[tokio::test]
async fn stock_git_is_sent_to_http11_for_a_push_and_any_other_client_may_push_over_http2() {
    let world = World::builder(PROGRAM).http2().start().await;
    world.github.create("acme/api");
    let run = world.register(Identity::Write).await;
    let git = stored(world.git(&run)).await.cloned("acme/api").await;
    let id = git.commit("big", random(3 << 20)).await;
    let traced = git.clone().env("GIT_TRACE_CURL", "1").env("GIT_TRACE_CURL_NO_DATA", "1");
    traced.run(&["fetch"]).await.ok().says("HTTP/2 200");
    traced.run(&["push", "origin", "HEAD:git"]).await.ok().says("HTTP/1.1 200").does_not_say("HTTP/2 200");
    let landed = Landed { world: &world, run: &run, git: &git, repository: "acme/api" };
    landed.assert(&[("git", &id)]).await;

    let request = world.github.pushes().pop().unwrap();
    let tip = world.github.ref_of("acme/api", "refs/heads/main").unwrap();
    for (branch, length, good) in [("curl", true, true), ("stream", false, true), ("main", true, false)] {
        let ref_name = format!("refs/heads/{branch}");
        let old = if good { pkt::ZERO } else { &tip };
        let pack = request_pack(&git).await;
        let body = [pkt::commands(&[(old, &id, &ref_name)], pkt::GIT_CAPABILITIES), pack].concat();
        assert!(body.len() as u64 + 200 > request.body_len, "it fills a window");
        std::fs::write(git.folder().join("body"), &body).unwrap();
        let answer = over_http2(&git, &world.url(0), length).await;
        let said = if good { format!("ok {ref_name}") } else { format!("ng {ref_name} refused: default branch") };
        assert!(answer.contains(&said), "{answer}");
        let outcome = if good { PushOutcome::Done } else { PushOutcome::Refused };
        assert_eq!(newest(&world, &run).await.outcome(), outcome);
        assert_eq!(world.github.ref_of("acme/api", &ref_name).unwrap(), if good { &id } else { &tip }.as_str());
    }
    world.finish().await;
}

/// A pack of all that a push of `HEAD` needs.
async fn request_pack(git: &Git) -> Vec<u8> {
    git.run(&["-c", "pack.compression=0", "pack-objects", "--quiet", "--all", "pack"]).await.ok();
    let packs = std::fs::read_dir(git.folder()).unwrap().map(|entry| entry.unwrap().path());
    let pack = packs.into_iter().find(|path| path.extension().is_some_and(|kind| kind == "pack")).unwrap();
    std::fs::read(pack).unwrap()
}

/// What curl gets for the file `body` over HTTP/2, with or without a length.
async fn over_http2(git: &Git, url: &str, length: bool) -> String {
    let credential = std::fs::read_to_string(git.home().join("credential")).unwrap();
    let settings = format!("user = \"x:{credential}\"\n");
    std::fs::write(git.home().join("credential"), settings).unwrap();
    let authority = git.environment().iter().find(|(name, _)| name == "GIT_SSL_CAINFO").unwrap().1.clone();
    let config = git.home().join("credential").display().to_string();
    let target = format!("{url}/acme/api.git/git-receive-pack");
    let mut arguments =
        vec!["--http2", "--silent", "--show-error", "--fail", "--max-time", "25", "--cacert", &authority];
    arguments.extend(["--config", &config, "--write-out", "over %{http_version}", &target]);
    arguments.extend(["--header", "Content-Type: application/x-git-receive-pack-request", "--request", "POST"]);
    arguments.extend(if length { ["--data-binary", "@body"] } else { ["--upload-file", "-"] });
    let shown = arguments.iter().map(|argument| format!("'{argument}'")).collect::<Vec<_>>().join(" ");
    let output = git.run_program(std::path::Path::new("/bin/sh"), &["-c", &format!("curl {shown} <body")]).await;
    std::fs::write(git.home().join("credential"), credential).unwrap();
    output.ok().says("over 2").stdout
}

/// Counts what came to the door, what it asked control and what went up.
struct Costs<'a> {
    world: &'a World,
    so_far: BTreeMap<String, u64>,
}

impl<'a> Costs<'a> {
    async fn start(world: &'a World) -> Self {
        Self { world, so_far: Self::count(world).await }
    }

    /// Asserts what has been counted since the last time. A lease is renewed as often as a push is slow.
    async fn assert(&mut self, what: &str, expected: &[(&str, u64)]) {
        // A request is counted when it has ended, a moment after its client has all of it.
        self.world.quiet(0).await;
        let now = Self::count(self.world).await;
        let more = now.iter().map(|(kind, count)| (kind.as_str(), count - self.so_far.get(kind).unwrap_or(&0)));
        let more: BTreeMap<&str, u64> = more.filter(|(kind, count)| *count > 0 && *kind != "renew").collect();
        assert_eq!(more, expected.iter().copied().collect(), "{what}");
        self.so_far = now;
    }

    async fn count(world: &World) -> BTreeMap<String, u64> {
        let mut counts = BTreeMap::new();
        for line in world.control_admin("/metrics").await.text().lines() {
            if let Some(("gitdoor_control_questions_total", kind, count)) = sample(line, "question") {
                *counts.entry(kind).or_default() += count;
            }
        }
        for line in world.dataplane_admin(0, "/metrics").await.text().lines() {
            if let Some(("gitdoor_dataplane_requests_total", _, count)) = sample(line, "route") {
                *counts.entry("door".to_owned()).or_default() += count;
            }
        }
        for request in world.github.requests() {
            let kind = match request.route {
                Route::Mint => "mints",
                Route::RevokeToken
                | Route::Repository
                | Route::Rest
                | Route::Graphql
                | Route::Storage
                | Route::Other => "api",
                Route::FetchDiscovery | Route::PushDiscovery | Route::UploadPack | Route::ReceivePack => "upstream",
            };
            *counts.entry(kind.to_owned()).or_default() += 1;
        }
        counts
    }
}

/// Name, value of a label, and value of a line of metrics.
fn sample<'a>(line: &'a str, label: &str) -> Option<(&'a str, String, u64)> {
    let (name, rest) = line.split_once('{')?;
    let (labels, value) = rest.split_once("} ")?;
    let label =
        labels.split(',').find_map(|pair| pair.strip_prefix(label)?.strip_prefix("=\"")?.strip_suffix('"'))?;
    Some((name, label.to_owned(), value.parse().ok()?))
}

/// Where a push was to land.
pub(crate) struct Landed<'a> {
    pub(crate) world: &'a World,
    pub(crate) run: &'a Run,
    pub(crate) git: &'a Git,
    pub(crate) repository: &'a str,
}

impl Landed<'_> {
    /// Asserts that the newest push is done, in the ledger and upstream, with these branches and no others, and that
    /// git kept its credential; returns its row.
    pub(crate) async fn assert(&self, branches: &[(&str, &str)]) -> Push {
        let push = newest(self.world, self.run).await;
        assert_eq!(push.outcome(), PushOutcome::Done, "{push:?}");
        assert_eq!(push.repository, self.repository);
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let row = push.refs.iter().map(|pushed| (text(&pushed.ref_name), pushed.new_oid.clone()));
        let asked = branches.iter().map(|(branch, id)| (format!("refs/heads/{branch}"), (*id).to_owned()));
        let asked: BTreeMap<String, String> = asked.collect();
        assert_eq!(row.collect::<BTreeMap<_, _>>(), asked);
        let upstream = self.world.github.refs(self.repository);
        for (name, id) in &asked {
            assert_eq!(upstream.get(name), Some(id), "{name}");
        }
        assert_eq!(self.git.erasures(), 0);
        push
    }
}

/// The newest push of a run, once its end is known.
#[expect(clippy::panic, reason = "a test's own steps fail by a panic")]
pub(crate) async fn newest(world: &World, run: &Run) -> Push {
    for _ in 0..400 {
        let newest = world.show(run).await.pushes.into_iter().next();
        if let Some(push) = newest.filter(|push| push.outcome() != PushOutcome::Open) {
            return push;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("no push of {run:?} has ended");
}

/// A client that compresses nothing: fast, and the size of what it sends is the size of its files and a constant.
pub(crate) async fn stored(client: Git) -> Git {
    client.run(&["config", "--global", "core.compression", "0"]).await.ok();
    client.run(&["config", "--global", "core.looseCompression", "0"]).await.ok();
    client.run(&["config", "--global", "pack.compression", "0"]).await.ok();
    client
}

/// So many bytes that no compression makes smaller.
pub(crate) fn random(bytes: usize) -> Vec<u8> {
    let mut random = vec![0_u8; bytes];
    getrandom::fill(&mut random).unwrap();
    random
}

/// Pushes a branch of one commit with one file of this size; returns the size of the request's body.
async fn sized(landed: &Landed<'_>, size: usize) -> usize {
    let git = landed.git;
    git.run(&["checkout", "--quiet", "--detach", "origin/main"]).await.ok();
    let id = git.commit("file", random(size)).await;
    let branch = "sized";
    git.run(&["push", "--force", "origin", &format!("HEAD:refs/heads/{branch}")]).await.ok();
    landed.assert(&[(branch, &id)]).await;
    let push = landed.world.github.pushes().pop().unwrap();
    usize::try_from(push.body_len).unwrap()
}

/// The command section of the last push.
fn section(pushes: &[Request]) -> String {
    let body = &pushes.last().unwrap().body;
    let end = body.windows(8).position(|window| window == b"0000PACK").unwrap();
    String::from_utf8(body[..end].to_vec()).unwrap()
}
