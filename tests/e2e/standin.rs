//! The stand-in GitHub refuses what GitHub refuses. Stock git and requests by hand go straight to it.

use std::fs;
use std::time::{Duration, Instant};

use gitdoor_tests::git::{self, Git, Transcript};
use gitdoor_tests::github::{APP_ID, BodyEnd, Canned, Fault, Github, INSTALLATION_ID, Rest, Route};
use gitdoor_tests::pkt;
use gitdoor_tests::raw::{Door, Request, Response};
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::{Value, json};
use tempfile::TempDir;

const READ: &[(&str, &str)] = &[("contents", "read"), ("metadata", "read")];
const WRITE: &[(&str, &str)] = &[("contents", "write"), ("metadata", "read"), ("workflows", "write")];

/// A stand-in and a folder for its clients.
struct Ground {
    github: Github,
    folder: TempDir,
}

impl Ground {
    fn new() -> Self {
        Self { github: Github::start(), folder: tempfile::tempdir().unwrap() }
    }

    /// Stock git with a token, straight to the stand-in.
    fn git(&self, token: &str) -> Git {
        let number = fs::read_dir(self.folder.path()).unwrap().count();
        let home = self.folder.path().join(number.to_string());
        Git::new(&home, &self.github.url(), &self.github.ca_file(), token, Transcript::default())
    }

    /// Stock git with a token of these permissions for all repositories.
    fn git_that_may(&self, permissions: &[(&str, &str)]) -> Git {
        self.git(&self.github.token(permissions, None).text)
    }

    fn ca(&self) -> String {
        fs::read_to_string(self.github.ca_file()).unwrap()
    }

    async fn api(&self, request: Request) -> Response {
        let request = request.header("User-Agent", "standin-tests");
        Door::tls(self.github.api_address(), &self.ca()).send(request).await
    }

    async fn raw_git(&self, request: Request) -> Response {
        Door::tls(self.github.address(), &self.ca()).send(request).await
    }

    /// Asks for a token.
    async fn mint(&self, asked: &Value) -> (u16, Value) {
        self.mint_as(&self.jwt(&claims(0, 540)), INSTALLATION_ID, asked).await
    }

    async fn mint_as(&self, jwt: &str, installation: &str, asked: &Value) -> (u16, Value) {
        let path = format!("/app/installations/{installation}/access_tokens");
        let request = Request::post(&path).header("Authorization", &format!("Bearer {jwt}"));
        let answer = self.api(request.body(asked.to_string())).await;
        (answer.status, serde_json::from_slice(&answer.body).unwrap())
    }

    fn jwt(&self, claims: &Value) -> String {
        let key = EncodingKey::from_rsa_pem(&fs::read(self.github.app_key_file()).unwrap()).unwrap();
        encode(&Header::new(Algorithm::RS256), claims, &key).unwrap()
    }
}

/// Claims with `iat` and `exp` so many seconds from now.
fn claims(issued: i64, expires: i64) -> Value {
    let now = i64::try_from(jsonwebtoken::get_current_timestamp()).unwrap();
    json!({ "iss": APP_ID, "iat": now + issued, "exp": now + expires })
}

#[tokio::test]
async fn every_git_clones_fetches_and_pushes() {
    for installed in git::all() {
        let ground = Ground::new();
        ground.github.create("acme/api");
        let git = ground.git_that_may(WRITE).program(&installed).cloned("ACME/api").await;
        let id = git.commit("new.txt", "new\n").await;
        git.run(&["push", "origin", "HEAD:fix-x"]).await.ok().says("[new branch]");
        assert_eq!(ground.github.ref_of("acme/api", "refs/heads/fix-x"), Some(id));
        git.run(&["fetch"]).await.ok();
        assert_eq!(git.erasures(), 0);
    }
}

#[tokio::test]
async fn a_repository_may_be_empty_or_of_sha256_or_have_another_default_branch() {
    let ground = Ground::new();
    ground.github.seed("acme/empty").empty().create();
    ground.github.seed("acme/new").sha256().default_branch("trunk").branch("dev").create();
    let git = ground.git_that_may(READ);
    git.run(&["clone", &git.url("acme/empty")]).await.ok().says("empty repository");
    let clone = git.cloned("acme/new").await;
    assert_eq!(clone.id_of("origin/dev").await.len(), 64);
    clone.run(&["branch", "--show-current"]).await.ok().says("trunk");
}

#[tokio::test]
async fn a_large_push_is_probed_and_chunked_and_recorded_whole() {
    let ground = Ground::new();
    ground.github.create("acme/api");
    let git = ground.git_that_may(WRITE).cloned("acme/api").await;
    let mut random = vec![0_u8; 3 << 20];
    getrandom::fill(&mut random).unwrap();
    git.commit("big", &random).await;
    git.run(&["push", "origin", "HEAD:big"]).await.ok();
    let pushes = ground.github.pushes();
    assert!(pushes[0].is_probe());
    assert_eq!(pushes[1].header("transfer-encoding"), Some("chunked"));
    assert!(pushes[1].body_len > 3 << 20);
    assert_eq!((pushes[1].body_end, pushes[1].status), (BodyEnd::Clean, Some(200)));
}

#[tokio::test]
async fn a_gzipped_fetch_is_understood() {
    let ground = Ground::new();
    ground.github.seed("acme/many").commits(60).create();
    let git = ground.git_that_may(WRITE);
    let clone = git.cloned("acme/many").await;
    for number in 0..40 {
        let name = format!("refs/tags/t{number}");
        ground.github.git("acme/many", &["update-ref", &name, &format!("main~{number}")]);
    }
    clone.run(&["fetch", "--tags"]).await.ok();
    git.run(&["clone", "--mirror", "-c", "protocol.version=0", &git.url("acme/many"), "m"]).await.ok();
    let coded = ground.github.requests_for(Route::UploadPack);
    assert!(coded.iter().any(|request| request.header("content-encoding") == Some("gzip")), "{coded:?}");
}

#[tokio::test]
async fn a_read_token_cannot_push() {
    let ground = Ground::new();
    ground.github.create("acme/api");
    let git = ground.git_that_may(READ).cloned("acme/api").await;
    git.commit("new.txt", "new\n").await;
    let push = git.run(&["push", "origin", "HEAD:fix-x"]).await.code_is(128);
    push.says("Write access to repository not granted");
    assert_eq!(ground.github.pushes().len(), 0);
}

#[tokio::test]
async fn a_pinned_token_works_on_its_repository_alone() {
    let ground = Ground::new();
    let api = ground.github.create("acme/api");
    ground.github.create("acme/web");
    ground.github.seed("acme/secret").outside().create();
    let git = ground.git(&ground.github.token(READ, Some(&[api])).text);
    git.run(&["ls-remote", &git.url("acme/api")]).await.ok().says("refs/heads/main");
    for repository in ["acme/web", "acme/secret", "acme/none"] {
        git.run(&["ls-remote", &git.url(repository)]).await.code_is(128).says("not found");
    }
}

#[tokio::test]
async fn without_a_live_token_the_answer_is_401_with_a_challenge() {
    let ground = Ground::new();
    ground.github.create("acme/api");
    let path = "/acme/api.git/info/refs?service=git-upload-pack";
    let token = ground.github.token(READ, None).text;
    let answer = ground.raw_git(Request::get(path)).await;
    assert_eq!((answer.status, answer.header("www-authenticate")), (401, Some("Basic realm=\"GitHub\"")));
    assert_eq!(ground.raw_git(Request::get(path).basic(&token)).await.status, 200);
    let bearer = Request::get(path).header("Authorization", &format!("Bearer {token}"));
    assert_eq!(ground.raw_git(bearer.clone()).await.status, 200);
    let revoke = Request::new("DELETE", "/installation/token").header("Authorization", &format!("token {token}"));
    assert_eq!(ground.api(revoke).await.status, 204);
    assert_eq!(ground.raw_git(bearer).await.status, 401);
    let other = ground.github.token(READ, None).text;
    ground.github.expire_tokens();
    assert_eq!(ground.raw_git(Request::get(path).basic(&other)).await.status, 401);
}

#[tokio::test]
async fn a_token_is_minted_in_githubs_shape() {
    let ground = Ground::new();
    let id = ground.github.create("acme/api");
    let asked = json!({ "repositories": ["api"], "permissions": { "contents": "write" } });
    let (status, answer) = ground.mint(&asked).await;
    assert_eq!(status, 201);
    assert_eq!(answer["repository_selection"], "selected");
    assert_eq!(answer["permissions"], json!({ "contents": "write", "metadata": "read" }));
    assert_eq!(answer["repositories"][0]["id"], id);
    assert_eq!(answer["repositories"][0]["full_name"], "acme/api");
    assert!(answer["expires_at"].as_str().unwrap().ends_with('Z'));
    let token = answer["token"].as_str().unwrap();
    assert!(token.starts_with("ghs_") && token.len() > 450, "{}", token.len());
    let by_id = json!({ "repository_ids": [id], "permissions": { "contents": "read" } });
    assert_eq!(ground.mint(&by_id).await.1["repositories"][0]["full_name"], "acme/api");
    let (_, all) = ground.mint(&json!({ "permissions": { "contents": "read" } })).await;
    assert_eq!((all["repository_selection"].clone(), all["repositories"].clone()), (json!("all"), Value::Null));
}

#[tokio::test]
async fn a_mint_that_github_would_refuse_is_refused() {
    let ground = Ground::new();
    ground.github.create("acme/api");
    ground.github.seed("other/secret").outside().create();
    let named = |name: &str| json!({ "repositories": [name] });
    for asked in [named("none"), named("secret"), named("acme/api"), json!({ "repository_ids": [1] })] {
        assert_eq!(ground.mint(&asked).await.0, 422, "{asked}");
    }
    let wide = json!({ "permissions": { "administration": "write" } });
    assert_eq!(ground.mint(&wide).await.0, 422);
    assert_eq!(ground.mint(&json!({ "permissions": { "issues": "write" } })).await.0, 422);
    assert_eq!(ground.mint_as(&ground.jwt(&claims(0, 540)), "1", &json!({})).await.0, 404);
    ground.github.set_suspended(true);
    assert_eq!(ground.mint(&json!({})).await.0, 403);
    assert_eq!(ground.github.tokens().len(), 0);
}

#[tokio::test]
async fn a_jwt_that_github_would_refuse_is_refused() {
    let ground = Ground::new();
    for (claims, why) in [
        (claims(120, 540), "'Issued at'"),
        (claims(0, 900), "too far in the future"),
        (claims(-700, -100), "in the past"),
        (json!({ "iss": "1", "iat": claims(0, 540)["iat"], "exp": claims(0, 540)["exp"] }), "Integration"),
        (json!({ "iss": APP_ID, "exp": claims(0, 540)["exp"] }), "'Issued at'"),
    ] {
        let (status, answer) = ground.mint_as(&ground.jwt(&claims), INSTALLATION_ID, &json!({})).await;
        assert_eq!(status, 401, "{claims}");
        assert!(answer["message"].as_str().unwrap().contains(why), "{answer}");
    }
    let good = ground.jwt(&claims(-60, 540));
    let (signed, _signature) = good.rsplit_once('.').unwrap();
    let forged = format!("{signed}.{}", "A".repeat(342));
    assert_eq!(ground.mint_as(&forged, INSTALLATION_ID, &json!({})).await.0, 401);
    assert_eq!(ground.mint_as(&good, INSTALLATION_ID, &json!({})).await.0, 201);
}

#[tokio::test]
async fn a_renamed_repository_redirects_on_both_servers() {
    let ground = Ground::new();
    let id = ground.github.create("acme/api");
    ground.github.rename("acme/api", "acme/core");
    let token = ground.github.token(READ, None).text;
    let old = ground.api(Request::get("/repos/Acme/API").basic(&token)).await;
    let location = format!("{}/repositories/{id}", ground.github.api_url());
    assert_eq!((old.status, old.header("location")), (301, Some(location.as_str())));
    let there = ground.api(Request::get(&format!("/repositories/{id}")).basic(&token)).await;
    let there: Value = serde_json::from_slice(&there.body).unwrap();
    assert_eq!((there["full_name"].clone(), there["default_branch"].clone()), (json!("acme/core"), json!("main")));
    let discovery = "/acme/api/info/refs?service=git-upload-pack";
    let old = ground.raw_git(Request::get(discovery).basic(&token)).await;
    let location = format!("{}/acme/core.git/info/refs?service=git-upload-pack", ground.github.url());
    assert_eq!((old.status, old.header("location")), (301, Some(location.as_str())));
    // Git goes on under the new name only if its very first request was redirected.
    let git = ground.git(&token).env("GIT_CONFIG_COUNT", "1").env("GIT_CONFIG_KEY_0", "http.extraHeader");
    let git = git.env("GIT_CONFIG_VALUE_0", format!("Authorization: Bearer {token}"));
    git.run(&["ls-remote", &git.url("acme/api")]).await.ok().says("redirecting to");
}

#[tokio::test]
async fn the_upstream_itself_refuses_a_ref_and_a_workflow_without_its_permission() {
    let ground = Ground::new();
    ground.github.create("acme/api");
    ground.github.forbid_ref("acme/api", "refs/heads/locked");
    let git = ground.git_that_may(&[("contents", "write")]).cloned("acme/api").await;
    git.commit("a", "a").await;
    let push = git.run(&["push", "origin", "HEAD:locked", "HEAD:open"]).await.code_is(1);
    push.says("[remote rejected] HEAD -> locked (hook declined)").says("GH013");
    assert_eq!(ground.github.ref_of("acme/api", "refs/heads/locked"), None);
    assert!(ground.github.ref_of("acme/api", "refs/heads/open").is_some());
    git.commit(".github/workflows/ci.yml", "on: push\n").await;
    git.run(&["push", "origin", "HEAD:ci"]).await.code_is(1).says("without 'workflows' permission");
    let git = ground.git_that_may(WRITE).cloned("acme/api").await;
    git.commit(".github/workflows/ci.yml", "on: push\n").await;
    git.run(&["push", "origin", "HEAD:ci"]).await.ok();
}

#[tokio::test]
async fn what_a_door_must_take_away_is_advertised() {
    let ground = Ground::new();
    ground.github.create("acme/api");
    let token = ground.github.token(WRITE, None).text;
    let path = "/acme/api.git/info/refs?service=git-receive-pack";
    let answer = ground.raw_git(Request::get(path).basic(&token)).await;
    assert_eq!(answer.header("content-type"), Some("application/x-git-receive-pack-advertisement"));
    assert!(answer.text().contains(" push-options"), "{}", answer.text());
    assert!(answer.text().contains(" push-cert="), "{}", answer.text());
    assert!(answer.header("set-cookie").is_some());
}

#[tokio::test]
async fn it_goes_wrong_as_it_was_told_and_only_that_often() {
    let ground = Ground::new();
    ground.github.create("acme/api");
    let token = ground.github.token(WRITE, None).text;
    let get = || Request::get("/acme/api.git/info/refs?service=git-receive-pack").basic(&token);
    let when = || ground.github.when(Route::PushDiscovery);
    when().times(2).answer(Canned::status(429).header("Retry-After", "7").message("slow down"));
    let limited = ground.raw_git(get()).await;
    assert_eq!((limited.status, limited.header("retry-after")), (429, Some("7")));
    assert_eq!(ground.raw_git(get()).await.status, 429);
    let whole = ground.raw_git(get()).await;
    assert!(whole.status == 200 && whole.complete);
    when().then(Fault::Cut(20));
    let cut = ground.raw_git(get()).await;
    assert_eq!((cut.complete, cut.body.as_slice()), (false, &whole.body[..20]));
    when().then(Fault::Gzip);
    assert_eq!(ground.raw_git(get()).await.header("content-encoding"), Some("gzip"));
    let began = Instant::now();
    when().after(Duration::from_millis(300)).then(Fault::None);
    assert_eq!(ground.raw_git(get()).await.status, 200);
    assert!(began.elapsed() >= Duration::from_millis(300));
    when().repository("acme/web").always().answer(Canned::status(500));
    assert_eq!(ground.raw_git(get()).await.status, 200);
}

#[tokio::test]
async fn it_resets_and_goes_silent_as_it_was_told() {
    let ground = Ground::new();
    ground.github.create("acme/api");
    let token = ground.github.token(WRITE, None).text;
    let get = Request::get("/acme/api.git/info/refs?service=git-receive-pack").basic(&token);
    let door = Door::tls(ground.github.address(), &ground.ca());
    let bytes = get.to_bytes(&door.host);
    ground.github.when(Route::PushDiscovery).then(Fault::Reset);
    let error = door.connect().await.unwrap().exchange(&bytes).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    ground.github.when(Route::PushDiscovery).then(Fault::Silent);
    let silent = door.connect().await.unwrap();
    let waited = tokio::time::timeout(Duration::from_millis(300), silent.exchange(&bytes)).await;
    assert!(waited.is_err());
    ground.github.when(Route::PushDiscovery).then(Fault::Stall(20));
    let stalled = door.connect().await.unwrap();
    let waited = tokio::time::timeout(Duration::from_millis(300), stalled.exchange(&bytes)).await;
    assert!(waited.is_err());
}

#[tokio::test]
async fn it_answers_early_and_reads_on_or_stops_or_closes() {
    let ground = Ground::new();
    ground.github.create("acme/api");
    let door = Door::tls(ground.github.address(), &ground.ca());
    let push = Request::push("acme/api", vec![b'x'; 8 << 20]).to_bytes(&door.host);
    for rest in [Rest::Read, Rest::Stall, Rest::Close] {
        let early = Fault::Early(Canned::status(413).body("text/plain", "too large"), rest);
        ground.github.when(Route::ReceivePack).times(2).then(early);
        let answer = door.exchange(&push).await;
        assert_eq!((answer.status, answer.text().as_str()), (413, "too large"), "{rest:?}");
        let mut connection = door.connect().await.unwrap();
        // What is never read is waited for in vain.
        let patience = if rest == Rest::Stall { Duration::from_millis(500) } else { Duration::from_secs(30) };
        let written = tokio::time::timeout(patience, connection.write(&push)).await;
        match rest {
            Rest::Read => {
                written.unwrap().unwrap();
                until(|| ground.github.pushes().pop().unwrap().body_end == BodyEnd::Clean).await;
                assert_eq!(ground.github.pushes().pop().unwrap().body_len, 8 << 20);
            }
            Rest::Stall => assert!(written.is_err()),
            Rest::Close => assert!(written.unwrap().is_err()),
        }
    }
}

#[tokio::test]
async fn a_mint_answer_is_spoiled_in_any_way() {
    let ground = Ground::new();
    ground.github.create("acme/api");
    let spoil = Fault::edit(|answer| answer["repository_selection"] = json!("all"));
    ground.github.when(Route::Mint).then(spoil);
    let asked = json!({ "repositories": ["api"] });
    assert_eq!(ground.mint(&asked).await.1["repository_selection"], "all");
    assert_eq!(ground.mint(&asked).await.1["repository_selection"], "selected");
}

#[tokio::test]
async fn a_client_that_goes_away_ends_its_git() {
    let ground = Ground::new();
    ground.github.create("acme/api");
    let token = ground.github.token(WRITE, None).text;
    let door = Door::tls(ground.github.address(), &ground.ca());
    let mut connection = door.connect().await.unwrap();
    let section = pkt::commands(&[(pkt::ZERO, &"1".repeat(40), "refs/heads/x")], pkt::GIT_CAPABILITIES);
    let head = Request::post("/acme/api.git/git-receive-pack")
        .basic(&token)
        .header("Content-Type", "application/x-git-receive-pack-request")
        .header("Content-Length", "100000");
    connection.write(&[head.to_bytes(&door.host), section].concat()).await.unwrap();
    until(|| ground.github.running_backends() == 1).await;
    assert!(!programs_in(ground.github.path()).is_empty());
    drop(connection);
    until(|| ground.github.running_backends() == 0).await;
    let push = ground.github.pushes().pop().unwrap();
    assert_eq!((push.body_end, push.token), (BodyEnd::Cut, Some(0)));
    until(|| programs_in(ground.github.path()).is_empty()).await;
}

/// The processes that were started for something in a folder.
fn programs_in(folder: &std::path::Path) -> Vec<String> {
    let folder = folder.display().to_string();
    let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let of = |name: &str, process: &fs::DirEntry| {
        String::from_utf8_lossy(&fs::read(process.path().join(name)).unwrap_or_default()).replace('\0', " ")
    };
    let ours = processes.filter(|process| of("environ", process).contains(&folder));
    ours.map(|process| of("cmdline", &process)).collect()
}

/// Waits for what will be so in a moment.
async fn until(holds: impl Fn() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(10), "it is still not so");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
