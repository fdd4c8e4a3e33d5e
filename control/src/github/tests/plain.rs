//! One token that somebody else made: what it is handed out for, and how long what it saw is believed.

use secrecy::SecretString;
use serde_json::json;

use super::{bound, named, only};
use crate::forge::{Forge as _, MintError, OwnToken, ReadScope};
use crate::github::plain::{Config, Plain};
use crate::github::stand_in::{API, Reply, StandIn, at, now};

const TOKEN: &str = "ghs_of_a_developer";

fn plain(stand_in: &StandIn) -> Plain {
    let config = Config { api_url: stand_in.url().to_owned(), ca: None };
    Plain::new(SecretString::from(TOKEN), &config).unwrap()
}

fn described(id: u64, name: &str, branch: &str) -> Reply {
    Reply::json(&json!({ "id": id, "full_name": name, "default_branch": branch }))
}

#[tokio::test]
async fn it_is_handed_out_for_reads_and_for_the_repository_that_has_the_name() {
    let stand_in = StandIn::start().await;
    let plain = plain(&stand_in);
    let read = plain.read_token(&ReadScope::All, now()).await.unwrap();
    assert_eq!((read.expose(), read.repository_id()), (TOKEN, None));
    assert_eq!(stand_in.lines(), Vec::<String>::new());
    stand_in.reply(described(API, "acme/api", "trunk"));
    let write = plain.write_token(&named("Acme/API"), true, now()).await.unwrap();
    assert_eq!((write.expose(), write.repository_id()), (TOKEN, Some(API)));
    let facts = plain.facts(&write, false, now()).await.unwrap();
    assert_eq!((facts.id, facts.default_branch.as_str()), (API, "trunk"));
    assert_eq!(stand_in.lines(), ["GET /repos/Acme/API"]);
    assert!(!format!("{plain:?} {write:?}").contains(TOKEN));
}

#[tokio::test]
async fn what_a_repository_is_called_and_has_as_default_is_read_again_after_a_minute() {
    let stand_in = StandIn::start().await;
    let plain = plain(&stand_in);
    let write = plain.write_token(&bound(), true, now()).await.unwrap();
    assert_eq!(plain.facts(&write, false, now()).await.unwrap().default_branch, "trunk");
    stand_in.reply(described(API, "acme/new", "main"));
    assert_eq!(plain.facts(&write, false, at(59)).await.unwrap().default_branch, "trunk");
    let facts = plain.facts(&write, false, at(60)).await.unwrap();
    assert_eq!((facts.full_name.to_string().as_str(), facts.default_branch.as_str()), ("acme/new", "main"));
    stand_in.reply(described(API + 1, "acme/api", "main"));
    assert!(matches!(plain.facts(&write, false, at(180)).await, Err(MintError::Untrusted(_))));
}

#[tokio::test]
async fn what_a_narrower_token_would_be_needed_for_is_refused() {
    let stand_in = StandIn::start().await;
    let plain = plain(&stand_in);
    let narrow = MintError::OwnToken(OwnToken::Narrow);
    assert_eq!(plain.read_token(&only(&["acme/api"]), now()).await.unwrap_err(), narrow);
    assert_eq!(plain.write_token(&named("acme/api"), false, now()).await.unwrap_err(), narrow);
    assert_eq!(plain.mirror_token(&super::name("acme/api"), now()).await.unwrap_err(), narrow);
    assert_eq!(stand_in.lines(), Vec::<String>::new());
}

#[tokio::test]
async fn a_token_that_does_not_do_is_told_from_a_forge_that_does_not() {
    let stand_in = StandIn::start().await;
    let plain = plain(&stand_in);
    for (status, error) in [
        (401, MintError::OwnToken(OwnToken::Refused)),
        (404, MintError::OwnToken(OwnToken::Repository)),
        (503, crate::github::answer::UNAVAILABLE),
    ] {
        stand_in.reply(Reply::new(status, "no"));
        assert_eq!(plain.write_token(&named("acme/api"), true, now()).await.unwrap_err(), error, "{status}");
    }
    let read = plain.read_token(&ReadScope::All, now()).await.unwrap();
    assert!(!plain.reject(read.id(), now()).await);
}
