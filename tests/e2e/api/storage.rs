//! Redirects of the API: to itself, to the forge's storage, and elsewhere.

use std::time::Duration;

use gitdoor_proto::v1::Identity;
use gitdoor_tests::github::{ASSET, Canned, Fault, Route};
use gitdoor_tests::raw::Request;
use gitdoor_tests::wait::until;

use super::{body, furnished, furnished_with, get, send};

const ASSET_PATH: &str = "/repos/acme/api/releases/assets/5";

#[tokio::test]
async fn a_file_of_the_storage_is_fetched_by_the_door_without_any_credential() {
    let world = furnished().await;
    let run = world.register(Identity::Read).await;
    let request = Request::get(&format!("/api/v3{ASSET_PATH}"))
        .header("Accept", "application/octet-stream")
        .header("Cookie", "a=b")
        .header("X-GitHub-Api-Version", "2022-11-28");
    let answer = send(&world, &run, request.clone()).await;
    assert_eq!((answer.status, answer.body.as_slice()), (200, ASSET));
    assert_eq!(answer.header("location"), None);
    let length = ASSET.len().to_string();
    assert_eq!(answer.header("content-length"), Some(length.as_str()));
    let part = send(&world, &run, request.clone().header("Range", "bytes=2-5")).await;
    assert_eq!((part.status, part.body.as_slice()), (206, &ASSET[2..6]));
    let stored = world.github.requests_for(Route::Storage);
    assert_eq!(stored.len(), 2);
    for request in &stored {
        assert!(
            request.headers.keys().all(|name| ["accept", "host", "range"].contains(&name.as_str())),
            "{request:?}"
        );
    }
    for secret in world.github.returned_secrets() {
        assert!(!answer.text().contains(&secret) && !format!("{:?}", answer.headers).contains(&secret));
    }
    world.finish().await;
}

#[tokio::test]
async fn a_redirect_elsewhere_is_not_followed_and_says_where_it_led() {
    let world = furnished().await;
    let run = world.register(Identity::Read).await;
    let storage = world.github.storage_address().port();
    for (location, named) in [
        ("https://evil.test/x?sig=secret".to_owned(), "evil.test"),
        ("https://169.254.169.254/latest".to_owned(), "169.254.169.254"),
        (format!("http://localhost:{storage}/blob/1"), "localhost"),
        (format!("https://u:p@localhost:{storage}/blob/1"), "localhost"),
        ("https://localhost/blob/1".to_owned(), "localhost"),
        ("//evil.test/x".to_owned(), "evil.test"),
    ] {
        world.github.when(Route::Rest).answer(Canned::status(302).header("location", &location));
        let answer = get(&world, &run, "/any").await;
        assert_eq!((answer.status, answer.header("x-gitdoor-reason")), (502, Some("api-redirect")), "{location}");
        let message = body(&answer)["message"].as_str().unwrap().to_owned();
        assert!(message.contains(named) && message.contains("--storage-hosts"), "{message}");
        assert!(!message.contains("secret") && answer.header("location").is_none(), "{message}");
    }
    assert!(world.github.requests_for(Route::Storage).is_empty());
    world.finish().await;
}

#[tokio::test]
async fn a_name_of_the_storage_must_have_a_public_address() {
    let world =
        furnished_with(|builder| builder.dataplane_flag("--storage-hosts=localhost,*.blob.core.windows.net")).await;
    let run = world.register(Identity::Read).await;
    world.github.when(Route::Rest).answer(Canned::status(302).header("location", "https://localhost/blob/1"));
    let answer = get(&world, &run, "/any").await;
    assert_eq!((answer.status, answer.header("x-gitdoor-reason")), (502, Some("storage-unreachable")));
    until("the operator is told", async || world.lines().iter().any(|line| line.contains("no public address")))
        .await;
    world.finish().await;
}

#[tokio::test]
async fn the_storage_may_redirect_within_itself_three_requests_long() {
    let world = furnished().await;
    let run = world.register(Identity::Read).await;
    let hop = format!("{}/blob/1?sig=x", world.github.storage_url());
    world.github.when(Route::Storage).times(2).answer(Canned::status(307).header("location", &hop));
    world.github.when(Route::Storage).answer(Canned::status(200).body("text/plain", "there"));
    world.github.when(Route::Rest).answer(Canned::status(302).header("location", &hop));
    assert_eq!(get(&world, &run, "/any").await.text(), "there");
    world.github.heal();
    world.github.when(Route::Storage).always().answer(Canned::status(302).header("location", &hop));
    world.github.when(Route::Rest).answer(Canned::status(302).header("location", &hop));
    let answer = get(&world, &run, "/any").await;
    assert_eq!((answer.status, answer.header("x-gitdoor-reason")), (502, Some("storage-redirects")));
    assert_eq!(world.github.requests_for(Route::Storage).len(), 6);
    world.github.heal();
    world.github.when(Route::Storage).answer(Canned::status(302).header("location", "https://evil.test/"));
    world.github.when(Route::Rest).answer(Canned::status(302).header("location", &hop));
    assert_eq!(get(&world, &run, "/any").await.header("x-gitdoor-reason"), Some("api-redirect"));
    world.finish().await;
}

#[tokio::test]
async fn redirects_are_passed_on_where_the_operator_said_so() {
    let world = furnished_with(|builder| builder.dataplane_flag("--storage-redirects=pass")).await;
    let run = world.register(Identity::Read).await;
    let request = Request::get(&format!("/api/v3{ASSET_PATH}")).header("Accept", "application/octet-stream");
    let answer = send(&world, &run, request).await;
    assert_eq!(answer.status, 302);
    assert!(answer.header("location").unwrap().starts_with(&world.github.storage_url()));
    assert!(world.github.requests_for(Route::Storage).is_empty());
    world.finish().await;
}

#[tokio::test]
async fn a_large_file_streams_and_ends_with_its_run() {
    let mut world = furnished().await;
    let run = world.register(Identity::Read).await;
    let id = world.github.add_artifact("acme/api", 77, "large", 64 << 20);
    let path = format!("/api/v3/repos/acme/api/actions/artifacts/{id}/zip");
    let request = Request::get(&path).header("Authorization", &format!("token {}", run.bearer));
    let host = world.door(0).host;
    let before = world.dataplane(0).memory_now();
    world.dataplane(0).forget_peak();
    let mut connection = world.door(0).connect().await.unwrap();
    connection.write(&request.clone().header("Connection", "close").to_bytes(&host)).await.unwrap();
    let mut came = 0;
    loop {
        match connection.read().await.unwrap_or_default().len() {
            0 => break,
            bytes => came += bytes,
        }
    }
    assert!(came > 64 << 20, "{came} bytes came");
    let grown = world.dataplane(0).peak_memory().saturating_sub(before);
    assert!(grown < 16 << 20, "{grown} bytes more");
    world.github.when(Route::Storage).then(Fault::Stall(1 << 20));
    let mut connection = world.door(0).connect().await.unwrap();
    connection.write(&request.to_bytes(&host)).await.unwrap();
    connection.until(b"\r\n\r\n").await.unwrap();
    world.revoke(&run).await;
    tokio::time::timeout(Duration::from_secs(10), connection.rest()).await.expect("an end");
    until("the request is recorded", async || world.metric(0, "gitdoor_dataplane_interruptions_total").await > 0.5)
        .await;
    world.finish().await;
}
