//! gh over a Unix socket: all that it asks of anybody goes to a data plane that listens there.

use gitdoor_proto::v1::Identity;
use gitdoor_tests::by_both_gh;
use gitdoor_tests::gh::Version;
use gitdoor_tests::world::World;

use crate::PROGRAM;

by_both_gh![everything_that_gh_asks_goes_to_the_socket_and_foreign_hosts_are_refused_there];

async fn everything_that_gh_asks_goes_to_the_socket_and_foreign_hosts_are_refused_there(version: Version) {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("door.sock");
    let listen = format!("--listen=unix:{}", socket.display());
    let world = World::builder(PROGRAM).plain().dataplane_flag(&listen).start().await;
    world.github.seed("acme/api").furnished().create();
    let run = world.register(Identity::Read).await;
    // No proxy: what does not take the socket fails.
    let gh = world.gh(&run, &version).unix_socket(&socket).env("GH_REPO", "git.door.test/acme/api");
    let gh = gh.env("HTTPS_PROXY", "http://127.0.0.1:9").env("http_proxy", "http://127.0.0.1:9");

    gh.run(&["repo", "view", "acme/api"]).await.ok().says("An API that greets");
    gh.run(&["pr", "view", "42", "--json=title"]).await.ok().says("Greet by name");
    gh.run(&["pr", "diff", "42"]).await.ok().says("diff --git");
    gh.run(&["issue", "list", "--limit=1"]).await.ok().says("Issue 252");
    gh.run(&["run", "view", "77", "--log"]).await.ok().says("test greets_by_name ... ok");
    gh.run(&["release", "download", "v1.0.0"]).await.ok();
    assert_eq!(std::fs::read(gh.folder().join("tool.tar.gz")).unwrap(), gitdoor_tests::github::ASSET);
    gh.run(&["api", "user"]).await.code_is(1).says("Resource not accessible by integration (HTTP 403)");
    let url = gh.run(&["api", "repos/acme/api", "--jq=.url"]).await.ok().stdout;
    assert_eq!(url.trim(), "https://git.door.test/api/v3/repos/acme/api");
    assert_eq!(gh.run(&["api", url.trim(), "--jq=.full_name"]).await.ok().stdout, "acme/api\n");
    let pages = ["api", "--paginate", "repos/acme/api/issues?per_page=100", "--jq=length"];
    assert_eq!(gh.run(&pages).await.ok().stdout, "100\n100\n50\n");
    gh.run(&["issue", "close", "3"]).await.code_is(1).says("gitdoor: the mutation IssueClose is not let through");

    let words = "HTTP 421: gitdoor: this is not the host of that request";
    gh.run(&["pr", "view", "https://github.com/acme/api/pull/42"]).await.code_is(1).says(words);
    gh.run(&["pr", "list", "--repo=evil.example/acme/api"]).await.code_is(1).says(words);
    gh.run(&["api", "https://evil.example/x"]).await.code_is(1).says("421");
    gh.run(&["api", "https://git.door.test:8443/api/v3/user"]).await.code_is(1).says("421");
    assert_eq!(world.recorder().hosts(), Vec::<String>::new());
    world.finish().await;
}
