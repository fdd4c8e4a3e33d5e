//! What is sent.

use std::time::UNIX_EPOCH;

use serde_json::json;

use super::{bound, name, named, only, write};
use crate::forge::{Facts, Forge as _, MintError, Mismatch, ReadScope};
use crate::github::stand_in::{API, Reply, StandIn, now};

const READ: &str = r#"{"actions":"read","checks":"read","contents":"read","issues":"read","metadata":"read","pull_requests":"read"}"#;
const WRITE: &str = r#"{"contents":"write","metadata":"read","workflows":"write"}"#;
const PLAIN: &str = r#"{"contents":"write","metadata":"read"}"#;
const MIRROR: &str = r#"{"contents":"read","metadata":"read","pull_requests":"read"}"#;
const MINT: &str = "POST /app/installations/77/access_tokens";

#[tokio::test]
async fn each_scope_asks_for_exactly_its_permissions_and_repositories() {
    let stand_in = StandIn::start().await;
    let github = stand_in.github();
    github.read_token(&ReadScope::All, now()).await.unwrap();
    github.read_token(&only(&["acme/Web", "acme/api", "acme/web"]), now()).await.unwrap();
    github.write_token(&named("Acme/API"), true, now()).await.unwrap();
    github.write_token(&bound(), false, now()).await.unwrap();
    github.mirror_token(&name("Acme/API"), now()).await.unwrap();
    let bodies: Vec<_> = stand_in.seen().into_iter().map(|seen| (seen.line, seen.body)).collect();
    let expected = [
        format!(r#"{{"permissions":{READ}}}"#),
        format!(r#"{{"permissions":{READ},"repositories":["api","Web"]}}"#),
        format!(r#"{{"permissions":{WRITE},"repositories":["API"]}}"#),
        format!(r#"{{"permissions":{PLAIN},"repository_ids":[42]}}"#),
        format!(r#"{{"permissions":{MIRROR},"repositories":["API"]}}"#),
    ];
    assert_eq!(bodies, expected.map(|body| (MINT.to_owned(), body)));
}

#[tokio::test]
async fn commit_statuses_are_asked_for_where_the_operator_said_so() {
    let stand_in = StandIn::start().await;
    stand_in.github_with_statuses().read_token(&ReadScope::All, now()).await.unwrap();
    stand_in.github().read_token(&ReadScope::All, now()).await.unwrap();
    let [with, without] = [0, 1].map(|index| stand_in.seen()[index].body.clone());
    let statuses = r#""pull_requests":"read","statuses":"read""#;
    assert_eq!(with, format!(r#"{{"permissions":{READ}}}"#).replace(r#""pull_requests":"read""#, statuses));
    assert_eq!(without, format!(r#"{{"permissions":{READ}}}"#));
}

#[tokio::test]
async fn every_request_names_its_agent_and_the_api_version() {
    let stand_in = StandIn::start().await;
    stand_in.spoil(|answer| answer["permissions"] = serde_json::json!({}));
    let github = stand_in.github();
    write(&github).await.unwrap_err();
    stand_in.spoil(|_| ());
    let minted = write(&github).await.unwrap();
    github.facts(&minted, false, now()).await.unwrap();
    let seen = stand_in.seen();
    assert_eq!(stand_in.lines(), [MINT, "DELETE /installation/token", MINT, "GET /repositories/42"]);
    for seen in seen {
        assert_eq!(seen.headers["user-agent"], concat!("gitdoor/", env!("CARGO_PKG_VERSION")), "{}", seen.line);
        assert_eq!(seen.headers["accept"], "application/vnd.github+json", "{}", seen.line);
        assert_eq!(seen.headers["x-github-api-version"], "2022-11-28", "{}", seen.line);
        assert_eq!(seen.headers.get_all("authorization").iter().count(), 1, "{}", seen.line);
    }
}

#[tokio::test]
async fn what_no_installation_can_have_is_not_asked_for() {
    let stand_in = StandIn::start().await;
    let github = stand_in.github();
    // An empty list would mean every repository to GitHub.
    for scope in [only(&[]), only(&["acme/api", "other/api"])] {
        assert_eq!(github.read_token(&scope, now()).await.unwrap_err(), MintError::RepositoryUnknown);
    }
    assert!(stand_in.seen().is_empty());
}

#[tokio::test]
async fn a_clock_before_the_epoch_mints_nothing() {
    let stand_in = StandIn::start().await;
    let error = stand_in.github().read_token(&ReadScope::All, UNIX_EPOCH).await.unwrap_err();
    assert_eq!(error, MintError::Clock);
    assert!(stand_in.seen().is_empty());
}

#[tokio::test]
async fn facts_are_read_by_id_with_the_pinned_token() {
    let stand_in = StandIn::start().await;
    let github = stand_in.github();
    let minted = write(&github).await.unwrap();
    let facts = github.facts(&minted, false, now()).await.unwrap();
    let expected = Facts { id: API, full_name: name("acme/api"), default_branch: "trunk".into() };
    assert_eq!(facts, expected);
    let seen = stand_in.seen();
    assert_eq!(seen.last().unwrap().headers["authorization"], format!("Bearer {}", minted.expose()));
}

#[tokio::test]
async fn facts_are_read_by_name_where_the_forge_knows_no_path_by_id() {
    let stand_in = StandIn::start().await;
    let github = stand_in.github();
    let minted = write(&github).await.unwrap();
    let described = |id: u64| {
        let body = json!({ "id": id, "full_name": "acme/api", "default_branch": "trunk" });
        Reply::json(&body)
    };
    stand_in.reply(Reply::new(404, "Not Found"));
    stand_in.reply(described(API + 1));
    let error = github.facts(&minted, false, now()).await.unwrap_err();
    assert_eq!(error, MintError::Untrusted(Mismatch::RepositoryId), "the id decides");
    stand_in.reply(Reply::new(404, "Not Found"));
    stand_in.reply(described(API));
    assert_eq!(github.facts(&minted, false, now()).await.unwrap().id, API);
    assert_eq!(stand_in.lines().last().unwrap(), "GET /repos/acme/api");
}

#[tokio::test]
async fn a_look_up_follows_one_move_within_the_authority_and_no_other() {
    let stand_in = StandIn::start().await;
    let other = StandIn::start().await;
    let github = stand_in.github();
    let minted = write(&github).await.unwrap();
    let moved = |to: String| Reply::new(301, "Moved Permanently").with("location", &to);

    stand_in.reply(moved("/elsewhere".into()));
    stand_in.reply(moved("/repositories/42".into()));
    let twice = github.facts(&minted, false, now()).await.unwrap_err();
    assert!(matches!(twice, MintError::Unavailable(_)));

    stand_in.reply(moved(format!("{}/repositories/42", other.url())));
    let away = github.facts(&minted, false, now()).await.unwrap_err();
    assert!(matches!(away, MintError::Unavailable(_)));
    assert!(other.seen().is_empty());

    stand_in.reply(moved("/repositories/42".into()));
    github.facts(&minted, false, now()).await.unwrap();
}

#[tokio::test]
async fn a_mint_that_is_redirected_is_not_followed() {
    let stand_in = StandIn::start().await;
    for status in [301, 302, 307, 308] {
        stand_in.reply(Reply::new(status, "Moved").with("location", "/app/installations/77/access_tokens"));
        let error = write(&stand_in.github()).await.unwrap_err();
        assert!(matches!(error, MintError::Unavailable(_)), "{status}");
    }
    assert_eq!(stand_in.seen().len(), 4);
}

#[tokio::test]
async fn a_young_token_that_a_replica_does_not_know_is_tried_once_more() {
    let stand_in = StandIn::start().await;
    let github = stand_in.github();
    let minted = write(&github).await.unwrap();
    stand_in.reply(Reply::new(401, "Bad credentials"));
    github.facts(&minted, false, now()).await.unwrap();
    assert_eq!(stand_in.lines()[1..], ["GET /repositories/42", "GET /repositories/42"]);
}
