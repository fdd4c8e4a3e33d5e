//! Answers of the API on their way down: they lead to the door, hold no credential, and are otherwise as they came.

use gitdoor_proto::v1::Identity;
use gitdoor_tests::github::{Canned, Fault, Route};
use gitdoor_tests::raw::{Request, Response};
use serde_json::{Value, json};

use super::{api, body, furnished, get, send};

/// The target of the next page, as gh reads it: the URL must be the door's.
fn next(response: &Response, door: &str) -> Option<String> {
    let link = response.header("link")?;
    let entry = link.split(',').find(|entry| entry.contains("rel=\"next\""))?;
    let url = entry.split_once('<')?.1.split_once('>')?.0;
    assert!(url.starts_with(door), "{url} leads elsewhere");
    url.strip_prefix(door).map(str::to_owned)
}

#[tokio::test]
async fn three_pages_stay_at_the_door() {
    let world = furnished().await;
    let run = world.register(Identity::Read).await;
    let door = world.url(0);
    let (mut pages, mut numbers) = (0, Vec::new());
    let mut target = Some("/api/v3/repos/acme/api/issues?per_page=100".to_owned());
    while let Some(page) = target {
        let answer = send(&world, &run, Request::get(&page)).await;
        assert_eq!(answer.status, 200);
        numbers.extend(body(&answer).as_array().unwrap().iter().map(|issue| issue["number"].as_u64().unwrap()));
        target = next(&answer, &door);
        pages += 1;
    }
    assert_eq!((pages, numbers.len()), (3, 250));
    let paths: Vec<_> = api(&world).into_iter().map(|request| request.path).collect();
    let id = world.github.requests_for(Route::Rest)[1].path.clone();
    assert!(id.starts_with("/repositories/"), "{paths:?}");
    world.finish().await;
}

#[tokio::test]
async fn urls_of_the_api_in_json_lead_to_the_door_and_no_others_change() {
    let world = furnished().await;
    let run = world.register(Identity::Read).await;
    let answer = get(&world, &run, "/repos/acme/api/actions/runs/77").await;
    let shown = body(&answer);
    let door = format!("{}/api/v3/", world.url(0));
    for field in ["url", "jobs_url", "logs_url", "artifacts_url"] {
        assert!(shown[field].as_str().unwrap().starts_with(&door), "{field}: {}", shown[field]);
    }
    assert!(!answer.text().contains(&world.github.api_url()), "{}", answer.text());
    assert!(!shown["html_url"].as_str().unwrap().contains("/api/v3"));
    let jobs = shown["jobs_url"].as_str().unwrap().strip_prefix(&world.url(0)).unwrap();
    assert_eq!(body(&send(&world, &run, Request::get(jobs)).await)["jobs"][0]["id"], 88);
    world.finish().await;
}

#[tokio::test]
async fn a_renamed_repository_redirects_to_the_door() {
    let world = furnished().await;
    world.github.rename("acme/api", "acme/service");
    let run = world.register(Identity::Read).await;
    let answer = get(&world, &run, "/repos/acme/api/issues/3").await;
    assert_eq!(answer.status, 301);
    let location = answer.header("location").unwrap().strip_prefix(&world.url(0)).unwrap().to_owned();
    assert!(location.starts_with("/api/v3/repositories/"), "{location}");
    assert!(!answer.text().contains(&world.github.api_url()), "{}", answer.text());
    let followed = send(&world, &run, Request::get(&location)).await;
    assert_eq!(body(&followed)["number"], 3);
    world.finish().await;
}

#[tokio::test]
async fn no_credential_comes_back_through_the_api() {
    let world = furnished().await;
    let run = world.register(Identity::Read).await;
    let mut shown = Vec::new();
    for path in [
        "/repos/acme/api",
        "/repos/acme/api/contents/README.md",
        "/repos/acme/api/contents/docs",
        "/repos/acme/api/readme",
    ] {
        for coding in ["gzip", "identity"] {
            let request = Request::get(&format!("/api/v3{path}")).header("Accept-Encoding", coding);
            let answer = send(&world, &run, request).await;
            assert_eq!((answer.status, answer.header("content-encoding")), (200, None), "{path}");
            shown.push(answer.text());
        }
    }
    assert!(shown[0].contains("\"temp_clone_token\":\"\""), "{}", shown[0]);
    assert!(shown[2].contains("\"download_url\":\"https://raw.githubusercontent.com/"), "{}", shown[2]);
    let secrets = world.github.returned_secrets();
    assert!(secrets.len() >= 3, "{secrets:?}");
    for secret in secrets {
        assert!(!shown.iter().any(|text| text.contains(&secret)), "{secret}");
    }
    world.finish().await;
}

#[tokio::test]
async fn a_conditional_request_is_answered_as_the_api_does() {
    let world = furnished().await;
    let run = world.register(Identity::Read).await;
    let first = get(&world, &run, "/repos/acme/api/issues/3").await;
    let tag = first.header("etag").unwrap();
    let again = Request::get("/api/v3/repos/acme/api/issues/3").header("If-None-Match", tag);
    let again = send(&world, &run, again).await;
    assert_eq!((again.status, again.body.len()), (304, 0));
    let head = Request::new("HEAD", "/api/v3/repos/acme/api/issues/3").header("Connection", "close");
    let head = send(&world, &run, head).await;
    assert_eq!((head.status, head.body.len(), head.header("etag")), (200, 0, Some(tag)));
    world.finish().await;
}

#[tokio::test]
async fn every_status_and_every_body_but_json_passes_as_it_is() {
    // Of letters that no request id has, so that none reads like it.
    const PLAIN: &str = "shown-in-plain";
    let world = furnished().await;
    let run = world.register(Identity::Read).await;
    let api_url = world.github.api_url();
    let text = format!("{{\"url\":\"{api_url}/x\",\"temp_clone_token\":\"{PLAIN}\"}}");
    let other = |media: &str| Canned::status(200).body(media, text.clone()).header("x-note", "kept");
    for media in [
        "application/vnd.github.raw+json; charset=utf-8",
        "application/vnd.github.v3.raw",
        "text/plain",
        "application/octet-stream",
    ] {
        world.github.when(Route::Rest).answer(other(media));
        let answer = get(&world, &run, "/repos/acme/api/contents/x").await;
        assert_eq!((answer.status, answer.text()), (200, text.clone()), "{media}");
        assert_eq!((answer.header("content-type"), answer.header("x-note")), (Some(media), Some("kept")));
    }
    for status in [201, 202, 400, 401, 403, 404, 409, 410, 415, 422, 429, 451, 500, 502, 503] {
        world.github.when(Route::Rest).times(2).answer(Canned::status(status).message("the forge's own words"));
        let answer = get(&world, &run, "/any").await;
        assert_eq!((answer.status, &body(&answer)["message"]), (status, &json!("the forge's own words")));
        assert_eq!(answer.header("x-gitdoor-reason"), None);
        assert_eq!(answer.header("www-authenticate").is_some(), status == 401);
        world.github.heal();
    }
    // A script around JSON, and a redirect of no known kind: nothing in them could be changed.
    for canned in [other("application/javascript"), Canned::status(303).header("location", "https://evil.test/")] {
        world.github.when(Route::Rest).answer(canned);
        let answer = get(&world, &run, "/any").await;
        assert_eq!((answer.status, answer.text().contains(PLAIN)), (502, false));
    }
    world.github.when(Route::Rest).answer(Canned::status(204));
    assert_eq!(get(&world, &run, "/any").await.status, 204);
    world.finish().await;
}

#[tokio::test]
async fn a_structured_media_type_keeps_its_urls_and_loses_its_credentials() {
    let world = furnished().await;
    let run = world.register(Identity::Read).await;
    let url = format!("{}/x", world.github.api_url());
    let object = json!({ "url": url, "download_url": "https://raw.test/f?token=secret" }).to_string();
    world.github.when(Route::Rest).answer(Canned::status(200).body("application/vnd.github.object+json", object));
    let answer = body(&get(&world, &run, "/any").await);
    assert_eq!(answer, json!({ "url": url, "download_url": "https://raw.test/f" }));
    world.finish().await;
}

#[tokio::test]
async fn the_api_claims_a_version_of_enterprise_server() {
    let world = furnished().await;
    let run = world.register(Identity::Read).await;
    let meta = body(&get(&world, &run, "/meta").await);
    assert_eq!(meta["installed_version"], "99.0.0");
    assert!(meta["hooks"].is_array() || meta["verifiable_password_authentication"].is_boolean(), "{meta}");
    world.github.when(Route::Rest).then(Fault::edit(|meta| meta["installed_version"] = json!("3.18.0")));
    assert_eq!(body(&get(&world, &run, "/meta").await)["installed_version"], "3.18.0");
    let root = body(&get(&world, &run, "/").await);
    assert_eq!(root["installed_version"], Value::Null);
    world.finish().await;
}

#[tokio::test]
async fn a_young_token_that_a_replica_does_not_know_yet_is_tried_again() {
    let world = furnished().await;
    let run = world.register(Identity::Read).await;
    world.github.when(Route::Rest).answer(Canned::status(401).message("Bad credentials"));
    assert_eq!(get(&world, &run, "/repos/acme/api/issues/3").await.status, 200);
    assert_eq!(api(&world).len(), 2);
    assert_eq!(world.github.mints().len(), 1, "a 401 of the API drops no token");
    world.finish().await;
}

#[tokio::test]
async fn an_api_that_fails_is_told_in_json() {
    let world = furnished().await;
    let run = world.register(Identity::Read).await;
    get(&world, &run, "/repos/acme/api").await;
    world.github.when(Route::Rest).then(Fault::Reset);
    let answer = get(&world, &run, "/any").await;
    assert_eq!((answer.status, answer.header("x-gitdoor-reason")), (502, Some("upstream-cut")));
    assert!(body(&answer)["message"].is_string());
    // Deeper than any answer of the forge: what was sent of it is cut, and never ends as if it were whole.
    let deep = format!("{}1{}", "[".repeat(600), "]".repeat(600));
    world.github.when(Route::Rest).answer(Canned::status(200).body("application/json", deep));
    let answer = get(&world, &run, "/any").await;
    assert!(!answer.complete, "{}", answer.text());
    world.finish().await;
}
