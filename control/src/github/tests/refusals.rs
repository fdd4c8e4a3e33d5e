//! What GitHub's refusals mean, and how long each stands.

use std::time::Duration;

use tokio::net::TcpListener;

use super::{bound, named, only, write};
use crate::forge::Permission::{Contents, Metadata, Workflows};
use crate::forge::{Forge as _, MintError, ReadScope};
use crate::github::stand_in::{NOW, Reply, StandIn, at, config, now};
use crate::github::{Config, GitHub};

const UNAVAILABLE: MintError = MintError::Unavailable(Duration::from_secs(10));
const NOT_GRANTED: &str = "The permissions requested are not granted to this installation.";
const NOT_ACCESSIBLE: &str =
    "There is at least one repository that does not exist or is not accessible to the parent installation.";

fn limited(seconds: u64) -> MintError {
    MintError::RateLimited(Duration::from_secs(seconds))
}

/// Refusals of a write mint, what each means, and the seconds for which it stands.
fn refusals() -> Vec<(Reply, MintError, u64)> {
    let reply = Reply::new;
    vec![
        (reply(404, "Not Found"), MintError::NotInstalled, 60),
        (reply(422, NOT_ACCESSIBLE), MintError::RepositoryUnknown, 60),
        (reply(422, "Validation Failed"), MintError::RepositoryUnknown, 60),
        (reply(422, NOT_GRANTED), MintError::PermissionMissing(Workflows), 10),
        (reply(422, "The permission 'contents' is not granted"), MintError::PermissionMissing(Contents), 10),
        (reply(403, "Resource not accessible by integration"), MintError::PermissionMissing(Workflows), 10),
        (reply(403, "This installation has been suspended"), MintError::Suspended, 10),
        (reply(403, "Blocked"), UNAVAILABLE, 10),
        (reply(403, "API rate limit exceeded for installation ID 77."), limited(60), 60),
        (reply(403, "Slow down").with("retry-after", "90"), limited(90), 90),
        (reply(429, "Too many"), limited(60), 60),
        (
            reply(403, "x").with("x-ratelimit-remaining", "0").with("x-ratelimit-reset", &(NOW + 300).to_string()),
            limited(300),
            300,
        ),
        (reply(429, "x").with("retry-after", "2"), limited(30), 30),
        (reply(401, "'Expiration time' claim ('exp') is too far in the future"), MintError::Clock, 10),
        (reply(401, "'Issued at' claim ('iat') must be an Integer"), MintError::Clock, 10),
        (reply(401, "A JSON web token could not be decoded"), MintError::Key, 10),
        (reply(500, "oops"), UNAVAILABLE, 10),
        (reply(503, "x").with("retry-after", "90"), UNAVAILABLE, 10),
        (Reply { body: "{".into(), ..reply(201, "") }, UNAVAILABLE, 10),
        (reply(201, "no token"), UNAVAILABLE, 10),
        (Reply { body: r#"{"token":""}"#.into(), ..reply(201, "") }, UNAVAILABLE, 10),
        (Reply { body: r#"{"token":"a\r\nb"}"#.into(), ..reply(201, "") }, UNAVAILABLE, 10),
        (Reply { body: " ".repeat((1 << 20) + 1), ..reply(201, "") }, UNAVAILABLE, 10),
    ]
}

#[tokio::test]
async fn each_refusal_has_its_meaning_and_stands_for_its_time() {
    for (reply, error, seconds) in refusals() {
        let case = format!("{} {:.60}", reply.status, reply.body);
        let stand_in = StandIn::start().await;
        let github = stand_in.github();
        stand_in.reply(reply);
        assert_eq!(write(&github).await.unwrap_err(), error, "{case}");
        let held = github.write_token(&named("ACME/api"), true, at(seconds - 1)).await.unwrap_err();
        assert_eq!(std::mem::discriminant(&held), std::mem::discriminant(&error), "{case}");
        assert_eq!(stand_in.seen().len(), 1, "{case}");
        github.write_token(&named("acme/api"), true, at(seconds)).await.expect(&case);
        assert_eq!(stand_in.seen().len(), 2, "{case}");
    }
}

#[tokio::test]
async fn a_missing_permission_of_a_read_token_is_named_contents_unless_github_names_one() {
    for (message, permission) in [(NOT_GRANTED, Contents), ("permission metadata: read is missing", Metadata)] {
        let stand_in = StandIn::start().await;
        stand_in.reply(Reply::new(422, message));
        let error = stand_in.github().read_token(&ReadScope::All, now()).await.unwrap_err();
        assert_eq!(error, MintError::PermissionMissing(permission));
    }
    let stand_in = StandIn::start().await;
    stand_in.reply(Reply::new(422, NOT_GRANTED));
    let error = stand_in.github().write_token(&bound(), false, now()).await.unwrap_err();
    assert_eq!(error, MintError::PermissionMissing(Contents));
}

#[tokio::test]
async fn a_422_to_an_ask_that_names_no_repository_is_no_unknown_repository() {
    let stand_in = StandIn::start().await;
    stand_in.reply(Reply::new(422, "Validation Failed"));
    assert_eq!(stand_in.github().read_token(&ReadScope::All, now()).await.unwrap_err(), UNAVAILABLE);
}

#[tokio::test]
async fn an_unknown_repository_is_unknown_to_every_scope_and_to_no_other_repository() {
    let stand_in = StandIn::start().await;
    let github = stand_in.github();
    stand_in.reply(Reply::new(422, NOT_ACCESSIBLE));
    write(&github).await.unwrap_err();
    let others = [
        github.write_token(&named("acme/API"), false, at(59)).await,
        github.read_token(&only(&["acme/api"]), at(59)).await,
    ];
    for other in others {
        assert_eq!(other.unwrap_err(), MintError::RepositoryUnknown);
    }
    assert_eq!(stand_in.seen().len(), 1);
    github.write_token(&named("acme/web"), true, now()).await.unwrap();
    github.read_token(&ReadScope::All, now()).await.unwrap();
}

#[tokio::test]
async fn a_refused_scope_does_not_refuse_another() {
    let stand_in = StandIn::start().await;
    let github = stand_in.github();
    stand_in.reply(Reply::new(422, NOT_GRANTED));
    write(&github).await.unwrap_err();
    github.write_token(&named("acme/api"), false, now()).await.unwrap();
}

#[tokio::test]
async fn a_standing_rate_limit_names_the_time_that_is_left_and_never_under_thirty_seconds() {
    let stand_in = StandIn::start().await;
    let github = stand_in.github();
    stand_in.reply(Reply::new(429, "x").with("retry-after", "100"));
    write(&github).await.unwrap_err();
    for (after, left) in [(20, 80), (95, 30)] {
        assert_eq!(github.write_token(&named("acme/api"), true, at(after)).await.unwrap_err(), limited(left));
    }
}

#[tokio::test]
async fn a_forge_that_cannot_be_reached_or_does_not_answer_in_time_is_unavailable() {
    let stand_in = StandIn::start().await;
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let keys = crate::github::stand_in::Keys::generate();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), keys.pkcs8()).unwrap();
    for address in [silent.local_addr().unwrap(), closed] {
        let github = GitHub::new(&Config {
            app_key: file.path().to_owned(),
            overall_timeout: Duration::from_millis(200),
            ..config(&format!("http://{address}"))
        });
        assert_eq!(write(&github.unwrap()).await.unwrap_err(), UNAVAILABLE);
    }
    // Another App's key.
    let github = GitHub::new(&Config { app_key: file.path().to_owned(), ..config(stand_in.url()) }).unwrap();
    assert_eq!(write(&github).await.unwrap_err(), MintError::Key);
}

#[tokio::test]
async fn a_refused_look_up_has_its_meaning_and_is_not_remembered() {
    let stand_in = StandIn::start().await;
    let github = stand_in.github();
    let minted = write(&github).await.unwrap();
    let cases = [
        (Reply::new(404, "Not Found"), MintError::RepositoryUnknown),
        (Reply::new(403, "This installation has been suspended"), MintError::Suspended),
        (Reply::new(403, "Resource not accessible by integration"), MintError::PermissionMissing(Metadata)),
        (Reply::new(403, "secondary rate limit"), limited(60)),
        (Reply::new(429, "x").with("retry-after", "45"), limited(45)),
        (Reply::new(401, "Bad credentials"), UNAVAILABLE),
        (Reply::new(502, "oops"), UNAVAILABLE),
    ];
    // Asked by name too where there is nothing by the id.
    stand_in.reply(Reply::new(404, "Not Found"));
    for (reply, error) in cases {
        stand_in.reply(reply);
        // No longer young: a refusal is final.
        assert_eq!(github.facts(&minted, false, at(30)).await.unwrap_err(), error);
    }
    github.facts(&minted, false, at(30)).await.unwrap();
}
