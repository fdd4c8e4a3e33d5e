//! What stock git reads through the door: clones of every shape, each protocol, bodies that are coded or large.

use gitdoor_proto::v1::Identity;
use gitdoor_tests::git::{self, Git};
use gitdoor_tests::github::{Canned, Fault, Github, Request, Route};
use gitdoor_tests::raw;
use gitdoor_tests::world::{Run, World};

use crate::PROGRAM;

/// Names of refs that a test gives a repository: one for each of its commits.
const MANY: usize = 600;
/// So many wants are more than git holds in memory: a body over 1 MiB.
const TOO_MANY: usize = 22_000;

#[tokio::test]
async fn every_git_clones_fetches_and_lists_what_the_upstream_has() {
    let world = World::start(PROGRAM).await;
    for (number, installed) in git::all().into_iter().enumerate() {
        let name = format!("acme/api-{number}");
        world.github.seed(&name).branch("next").create();
        let run = world.register(Identity::Read).await;
        let client = world.git(&run).program(&installed);
        let listed = client.run(&["ls-remote", &client.url(&name)]).await.ok().stdout;
        assert_eq!(listed, listing(&world.github, &name));
        let clone = client.cloned(&name).await;
        assert_eq!(Some(clone.id_of("origin/next").await), world.github.ref_of(&name, "refs/heads/next"));
        let moved = advance(&world.github, &name);
        clone.run(&["fetch"]).await.ok().says("main       -> origin/main");
        assert_eq!(clone.id_of("origin/main").await, moved);
        clone.run(&["fetch"]).await.ok().does_not_say("->");
        clone.run(&["fsck", "--strict"]).await.ok();
        assert_eq!(client.erasures(), 0);
    }
    assert_read_only(&world.github);
    world.finish().await;
}

#[tokio::test]
async fn a_shallow_clone_is_shallow_and_can_be_deepened() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    for installed in git::all() {
        let run = world.register(Identity::Read).await;
        let client = world.git(&run).program(&installed);
        client.run(&["clone", "--depth", "1", &client.url("acme/api")]).await.ok();
        let clone = client.at("api");
        assert_eq!(commits(&clone).await, "1");
        clone.run(&["fetch", "--deepen", "1"]).await.ok();
        assert_eq!(commits(&clone).await, "2");
        clone.run(&["fetch", "--unshallow"]).await.ok();
        assert_eq!(commits(&clone).await, "3");
        assert_eq!(client.erasures(), 0);
    }
    world.finish().await;
}

#[tokio::test]
async fn an_empty_repository_is_cloned_as_one() {
    let world = World::start(PROGRAM).await;
    world.github.seed("acme/api").empty().create();
    for installed in git::all() {
        let run = world.register(Identity::Read).await;
        let client = world.git(&run).program(&installed);
        let cloned = client.run(&["clone", &client.url("acme/api")]).await.ok();
        cloned.says("You appear to have cloned an empty repository.");
        assert_eq!(client.erasures(), 0);
    }
    world.finish().await;
}

#[tokio::test]
async fn a_repository_of_sha256_ids_is_cloned() {
    let world = World::start(PROGRAM).await;
    world.github.seed("acme/api").sha256().create();
    for installed in git::all() {
        let run = world.register(Identity::Read).await;
        let clone = world.git(&run).program(&installed).cloned("acme/api").await;
        clone.run(&["rev-parse", "--show-object-format"]).await.ok().says("sha256");
        assert_eq!(Some(clone.id_of("HEAD").await), world.github.ref_of("acme/api", "refs/heads/main"));
        assert_eq!(clone.erasures(), 0);
    }
    world.finish().await;
}

#[tokio::test]
async fn a_repository_named_without_git_is_the_same_one() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    let run = world.register(Identity::Read).await;
    let client = world.git(&run);
    let url = client.url("acme/api");
    client.run(&["clone", url.trim_end_matches(".git")]).await.ok();
    assert_eq!(commits(&client.at("api")).await, "3");
    let fetched = world.github.requests_for(Route::UploadPack);
    assert!(fetched.iter().all(|request| request.path == "/acme/api.git/git-upload-pack"), "{fetched:?}");
    assert_eq!(client.erasures(), 0);
    world.finish().await;
}

#[tokio::test]
async fn a_partial_clone_fetches_its_blobs_when_they_are_looked_at() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    for installed in git::all() {
        let run = world.register(Identity::Read).await;
        let client = world.git(&run).program(&installed);
        let url = client.url("acme/api");
        client.run(&["clone", "--filter=blob:none", "--no-checkout", &url]).await.ok();
        assert!(last_fetch(&world.github).contains("filter blob:none"));
        let clone = client.at("api");
        let old = clone.id_of("main~2:README.md").await;
        clone.run(&["show", "main~2:README.md"]).await.ok().says("Edition 1.");
        assert!(last_fetch(&world.github).contains(&format!("want {old}")));
        clone.run(&["checkout", "main"]).await.ok();
        assert!(clone.folder().join("README.md").exists());
        assert_eq!(client.erasures(), 0);
    }
    assert_read_only(&world.github);
    world.finish().await;
}

#[tokio::test]
async fn a_submodule_is_cloned_through_the_door_however_its_url_names_the_forge() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/lib");
    for (number, url) in
        ["https://github.com/acme/lib.git", "git@github.com:acme/lib.git", "../lib.git"].into_iter().enumerate()
    {
        let name = format!("acme/app-{number}");
        let settings = format!("[submodule \"lib\"]\n\tpath = lib\n\turl = {url}\n");
        world.github.seed(&name).file(".gitmodules", settings).create();
        add_submodule(&world.github, &name, "acme/lib");
        let run = world.register(Identity::Read).await;
        let client = world.git(&run);
        let base = format!("url.{}/.insteadOf", world.url(0));
        for forge in ["https://github.com/", "git@github.com:"] {
            client.run(&["config", "--global", "--add", &base, forge]).await.ok();
        }
        let clone = format!("https://github.com/{name}.git");
        client.run(&["clone", "--recurse-submodules", &clone, "app"]).await.ok();
        let inner = client.at("app/lib").id_of("HEAD").await;
        assert_eq!(Some(inner), world.github.ref_of("acme/lib", "refs/heads/main"), "{url}");
        assert_eq!(client.erasures(), 0);
    }
    world.finish().await;
}

#[tokio::test]
async fn each_protocol_version_reaches_the_upstream_as_the_client_asked() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    for installed in git::all() {
        for (version, header) in [("0", None), ("1", Some("version=1")), ("2", Some("version=2"))] {
            let run = world.register(Identity::Read).await;
            let client = world.git(&run).program(&installed);
            let before = world.github.requests().len();
            let protocol = format!("protocol.version={version}");
            client.run(&["-c", &protocol, "clone", &client.url("acme/api")]).await.ok();
            assert_eq!(commits(&client.at("api")).await, "3");
            let asked = world.github.requests().split_off(before);
            let asked: Vec<&Request> = asked
                .iter()
                .filter(|request| matches!(request.route, Route::FetchDiscovery | Route::UploadPack))
                .collect();
            assert_eq!(asked.len(), if version == "2" { 3 } else { 2 });
            for request in asked {
                assert_eq!(request.header("git-protocol"), header, "version {version}: {}", request.path);
            }
            assert_eq!(client.erasures(), 0);
        }
    }
    world.finish().await;
}

#[tokio::test]
async fn a_fetch_whose_body_git_gzips_goes_up_as_it_came() {
    let world = World::start(PROGRAM).await;
    world.github.seed("acme/api").commits(MANY).create();
    name_every_commit(&world.github, "acme/api");
    for installed in git::all() {
        let run = world.register(Identity::Read).await;
        let client = world.git(&run).program(&installed);
        client.run(&["-c", "protocol.version=0", "clone", "--quiet", &client.url("acme/api")]).await.ok();
        let fetch = world.github.requests_for(Route::UploadPack).pop().unwrap();
        assert_eq!(fetch.header("content-encoding"), Some("gzip"));
        assert_eq!(fetch.header("content-length"), Some(fetch.body_len.to_string().as_str()));
        assert!(fetch.body.starts_with(&[0x1f, 0x8b]));
        assert_eq!(heads(&client.at("api")).await, MANY);
        assert_eq!(client.erasures(), 0);
    }
    world.finish().await;
}

#[tokio::test]
async fn a_fetch_of_more_wants_than_git_holds_is_a_probe_and_a_chunked_body() {
    let world = World::start(PROGRAM).await;
    let files = (0..TOO_MANY).map(|number| (format!("{}/{number}", number % 100), number.to_string()));
    let seed = files.fold(world.github.seed("acme/api"), |seed, (path, text)| seed.file(&path, text));
    seed.create();
    let run = world.register(Identity::Read).await;
    let client = world.git(&run).limit(std::time::Duration::from_secs(90));
    client.run(&["clone", "--quiet", "--filter=blob:none", "--no-checkout", &client.url("acme/api")]).await.ok();
    let before = world.github.requests().len();
    let clone = client.at("api");
    clone.run(&["checkout", "--quiet", "main"]).await.ok();
    let asked = world.github.requests().split_off(before);
    let [_discovery, probe, wants] = asked.as_slice() else { panic!("{} requests", asked.len()) };
    assert!(probe.is_probe());
    assert_eq!(wants.header("transfer-encoding"), Some("chunked"));
    assert_eq!(wants.header("content-length"), None);
    assert!(wants.body_len > 1 << 20, "{}", wants.body_len);
    assert_eq!(std::fs::read_to_string(clone.folder().join("99/21999")).unwrap(), "21999");
    assert_eq!(client.erasures(), 0);
    world.finish().await;
}

#[tokio::test]
async fn a_bearer_is_taken_in_every_way_that_git_can_send_one() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    for installed in git::all() {
        for scheme in ["Bearer", "bearer", "token"] {
            let run = world.register(Identity::Read).await;
            let client = with_header(&world, &run, scheme).program(&installed);
            let before = unauthorized(&world).await;
            client.run(&["clone", "--quiet", &client.url("acme/api")]).await.ok();
            assert_eq!(unauthorized(&world).await, before, "{scheme}: git had to ask twice");
            assert_eq!(client.erasures(), 0);
        }
        let run = world.register(Identity::Read).await;
        let client = world.git(&run).program(&installed);
        let before = unauthorized(&world).await;
        client.run(&["-c", "http.proactiveAuth=basic", "clone", "--quiet", &client.url("acme/api")]).await.ok();
        // Git before 2.46 does not know the setting, and asks first.
        let asked = u64::from(is_before(&installed.version, 46));
        assert_eq!(unauthorized(&world).await - before, asked, "git {}", installed.version);
        assert_eq!(client.erasures(), 0);
    }
    world.finish().await;
}

#[tokio::test]
async fn a_long_answer_is_relayed_byte_for_byte() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    let run = world.register(Identity::Read).await;
    let mut sent = vec![0_u8; 16 << 20];
    getrandom::fill(&mut sent).unwrap();
    let media = "application/x-git-upload-pack-result";
    world.github.when(Route::UploadPack).answer(Canned::status(200).body(media, sent.clone()));
    let answer = world.door(0).send(fetch_request(&run)).await;
    assert_eq!((answer.status, answer.complete), (200, true));
    assert!(answer.body == sent, "{} of {} bytes", answer.body.len(), sent.len());
    world.finish().await;
}

#[tokio::test]
async fn an_answer_that_the_upstream_breaks_off_never_ends_cleanly() {
    let world = World::start(PROGRAM).await;
    world.github.seed("acme/api").big_file("big", 1 << 20).create();
    for installed in git::all() {
        let run = world.register(Identity::Read).await;
        let client = world.git(&run).program(&installed);
        world.github.when(Route::UploadPack).skip(1).then(Fault::Cut(300_000));
        client.run(&["clone", &client.url("acme/api")]).await.code_is(128).says("early EOF");
        world.github.heal();
        client.run(&["clone", "--quiet", &client.url("acme/api")]).await.ok();
        assert_eq!(client.erasures(), 0);
    }
    let run = world.register(Identity::Read).await;
    world.github.when(Route::FetchDiscovery).then(Fault::Cut(100));
    let request = raw::Request::get("/acme/api.git/info/refs?service=git-upload-pack").basic(&run.bearer);
    let answer = world.door(0).send(request).await;
    assert_eq!((answer.status, answer.complete), (200, false));
    world.finish().await;
}

#[tokio::test]
async fn the_first_bytes_of_an_answer_do_not_wait_for_the_next() {
    let world = World::builder(PROGRAM).plain().start().await;
    world.github.create("acme/api");
    let run = world.register(Identity::Read).await;
    let door = world.door(0);
    world.github.when(Route::FetchDiscovery).then(Fault::Stall(100));
    let request = raw::Request::get("/acme/api.git/info/refs?service=git-upload-pack").basic(&run.bearer);
    let mut connection = door.connect().await.unwrap();
    connection.write(&request.to_bytes(&door.host)).await.unwrap();
    let mut came = String::new();
    while !came.contains("# service=git-upload-pack") {
        let bytes = connection.read().await.unwrap();
        assert!(!bytes.is_empty(), "it ended after {came:?}");
        came.push_str(&String::from_utf8_lossy(&bytes));
    }
    assert!(came.starts_with("HTTP/1.1 200"), "{came}");
    drop(connection);
    world.finish().await;
}

/// A client whose bearer is in a header of its own and not in a helper.
fn with_header(world: &World, run: &Run, scheme: &str) -> Git {
    let header = format!("Authorization: {scheme} {}", run.bearer);
    let client = world.git(run).without_helper();
    client
        .env("GIT_CONFIG_COUNT", "1")
        .env("GIT_CONFIG_KEY_0", "http.extraHeader")
        .env("GIT_CONFIG_VALUE_0", header)
}

/// How often the door said 401 so far.
async fn unauthorized(world: &World) -> u64 {
    world.quiet(0).await;
    let metrics = world.dataplane_admin(0, "/metrics").await.text();
    let lines = metrics.lines().filter(|line| line.starts_with("gitdoor_dataplane_requests_total{"));
    let counts = lines.filter(|line| line.contains("status=\"401\"")).filter_map(|line| line.rsplit(' ').next());
    counts.map(|count| count.parse::<u64>().unwrap()).sum()
}

fn is_before(version: &str, minor: u32) -> bool {
    version.split('.').nth(1).and_then(|minor| minor.parse::<u32>().ok()).unwrap() < minor
}

/// A fetch of anything.
fn fetch_request(run: &Run) -> raw::Request {
    let body =
        [gitdoor_tests::pkt::line(format!("want {}\n", "1".repeat(40))), b"00000009done\n".to_vec()].concat();
    raw::Request::post("/acme/api.git/git-upload-pack")
        .header("Content-Type", "application/x-git-upload-pack-request")
        .basic(&run.bearer)
        .body(body)
}

async fn commits(clone: &Git) -> String {
    clone.run(&["rev-list", "--count", "origin/main"]).await.ok().stdout.trim().to_owned()
}

async fn heads(clone: &Git) -> usize {
    let listed = clone.run(&["for-each-ref", "--format=x", "refs/remotes/origin/c"]).await.ok();
    listed.stdout.lines().count()
}

/// What the last fetch asked for.
fn last_fetch(github: &Github) -> String {
    let fetch = github.requests_for(Route::UploadPack).pop().unwrap();
    let mut body = String::new();
    match fetch.header("content-encoding") {
        None => body.push_str(std::str::from_utf8(&fetch.body).unwrap()),
        Some(_gzip) => {
            std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(fetch.body.as_slice()), &mut body)
                .unwrap();
        }
    }
    body
}

/// What `git ls-remote` prints of a repository.
fn listing(github: &Github, name: &str) -> String {
    let refs = github.refs(name);
    let head = format!("{}\tHEAD\n", refs["refs/heads/main"]);
    refs.iter().fold(head, |text, (name, id)| format!("{text}{id}\t{name}\n"))
}

/// No token that could write went up.
fn assert_read_only(github: &Github) {
    let writing = |token: &gitdoor_tests::github::Token| token.may("contents", "write");
    assert!(!github.tokens().iter().any(writing));
    assert!(github.requests().iter().all(|request| request.header("authorization").is_some()));
}

/// One more commit on `main`; returns its id.
pub(crate) fn advance(github: &Github, name: &str) -> String {
    commit_tree(github, name, "refs/heads/main^{tree}")
}

fn commit_tree(github: &Github, name: &str, tree: &str) -> String {
    let who = ["-c", "user.name=Octo Cat", "-c", "user.email=octo@acme.test"];
    let commit = ["commit-tree", "-m", "More", "-p", "refs/heads/main", tree];
    let id = github.git(name, &[who.as_slice(), &commit].concat()).trim().to_owned();
    github.git(name, &["update-ref", "refs/heads/main", &id]);
    id
}

/// Puts another repository's tip into a repository as the submodule `lib`.
pub(crate) fn add_submodule(github: &Github, name: &str, other: &str) {
    let tip = github.ref_of(other, "refs/heads/main").unwrap();
    github.git(name, &["read-tree", "refs/heads/main"]);
    github.git(name, &["update-index", "--add", "--cacheinfo", &format!("160000,{tip},lib")]);
    let tree = github.git(name, &["write-tree"]).trim().to_owned();
    commit_tree(github, name, &tree);
}

/// Gives every commit of `main` a branch of its own.
fn name_every_commit(github: &Github, name: &str) {
    let commits = github.git(name, &["rev-list", "refs/heads/main"]);
    let mut lines: Vec<String> = commits.lines().map(|id| format!("{id} refs/heads/c/{id}\n")).collect();
    lines.sort_by(|a, b| a.split(' ').nth(1).cmp(&b.split(' ').nth(1)));
    let packed = format!("# pack-refs with: sorted \n{}", lines.concat());
    std::fs::write(github.folder(name).join("packed-refs"), packed).unwrap();
}
