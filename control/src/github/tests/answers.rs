//! Every way in which an answer can be other than what was asked for.

use serde_json::{Value, json};

use super::{bound, name, named, only, write};
use crate::forge::Mismatch::{
    Expiry, NarrowerPermissions, Repositories, RepositoryId, Selection, WiderPermissions,
};
use crate::forge::{Forge as _, MintError, Mismatch, ReadScope};
use crate::github::stand_in::{Reply, StandIn, at, now};

type Case = (fn(&mut Value), Mismatch);

/// What is wrong for every scope.
const ANY: &[Case] = &[
    (|a| a["repository_selection"] = Value::Null, Selection),
    (|a| a["repository_selection"] = "some".into(), Selection),
    (|a| a["permissions"] = Value::Null, NarrowerPermissions),
    (|a| a["permissions"] = json!({ "metadata": 1 }), NarrowerPermissions),
    (|a| remove(a, "permissions", "contents"), NarrowerPermissions),
    (|a| a["permissions"]["administration"] = "read".into(), WiderPermissions),
    (|a| a["permissions"]["contents"] = "admin".into(), WiderPermissions),
    (|a| a["permissions"]["metadata"] = "write".into(), WiderPermissions),
    (|a| a["expires_at"] = Value::Null, Expiry),
    (|a| a["expires_at"] = "soon".into(), Expiry),
    (|a| a["expires_at"] = 1_800_003_600.into(), Expiry),
    (|a| expires(a, 25 * 60 - 1), Expiry),
    (|a| expires(a, 70 * 60 + 1), Expiry),
    (|a| a["expires_at"] = "2001-01-01T00:00:00Z".into(), Expiry),
];

/// What is wrong for one that names its repositories.
const PINNED: &[Case] = &[
    (|a| a["repository_selection"] = "all".into(), Selection),
    (|a| a["repositories"] = Value::Null, Repositories),
    (|a| a["repositories"] = json!([]), Repositories),
    (|a| a["repositories"] = json!(["acme/api"]), Repositories),
    (|a| a["repositories"].as_array_mut().unwrap().push(json!({ "id": 9, "full_name": "acme/web" })), Repositories),
    (|a| a["repositories"][0]["full_name"] = Value::Null, Repositories),
    (|a| a["repositories"][0]["full_name"] = "acme".into(), Repositories),
    (|a| remove(a, "repositories", "id"), Repositories),
];

fn remove(answer: &mut Value, field: &str, name: &str) {
    let object = if answer[field].is_array() { &mut answer[field][0] } else { &mut answer[field] };
    object.as_object_mut().unwrap().remove(name);
}

fn expires(answer: &mut Value, seconds: u64) {
    answer["expires_at"] = humantime::format_rfc3339_seconds(at(seconds)).to_string().into();
}

enum Ask {
    All,
    Listed,
    Named,
    Bound,
    Mirror,
}

async fn is_refused_and_revoked(ask: &Ask, spoil: fn(&mut Value), error: MintError, case: &str) {
    let stand_in = StandIn::start().await;
    stand_in.spoil(spoil);
    let github = stand_in.github();
    let outcome = match ask {
        Ask::All => github.read_token(&ReadScope::All, now()).await,
        Ask::Listed => github.read_token(&only(&["acme/api"]), now()).await,
        Ask::Named => github.write_token(&named("acme/api"), true, now()).await,
        Ask::Bound => github.write_token(&bound(), true, now()).await,
        Ask::Mirror => github.mirror_token(&name("acme/api"), now()).await,
    };
    assert_eq!(outcome.unwrap_err(), error, "{case}");
    assert_eq!(stand_in.lines()[1..], ["DELETE /installation/token"], "{case}");
    let revoked = &stand_in.seen()[1].headers["authorization"];
    assert!(revoked.to_str().unwrap().starts_with("Bearer ghs_1_"), "{case}");
}

#[tokio::test]
async fn a_token_that_is_not_what_was_asked_for_is_revoked_and_refused() {
    for (number, (spoil, mismatch)) in ANY.iter().enumerate() {
        for ask in [Ask::All, Ask::Listed, Ask::Named, Ask::Bound, Ask::Mirror] {
            is_refused_and_revoked(&ask, *spoil, MintError::Untrusted(*mismatch), &format!("any {number}")).await;
        }
    }
    for (number, (spoil, mismatch)) in PINNED.iter().enumerate() {
        for ask in [Ask::Listed, Ask::Named, Ask::Bound, Ask::Mirror] {
            is_refused_and_revoked(&ask, *spoil, MintError::Untrusted(*mismatch), &format!("pinned {number}"))
                .await;
        }
    }
}

#[tokio::test]
async fn a_write_token_that_cannot_write_is_refused() {
    for permission in ["contents", "workflows"] {
        let spoil: fn(&mut Value) = match permission {
            "contents" => |a| a["permissions"]["contents"] = "read".into(),
            _ => |a| a["permissions"]["workflows"] = "read".into(),
        };
        is_refused_and_revoked(&Ask::Named, spoil, MintError::Untrusted(NarrowerPermissions), permission).await;
    }
}

#[tokio::test]
async fn a_read_token_that_can_write_is_refused() {
    let spoil: fn(&mut Value) = |a| a["permissions"]["issues"] = "write".into();
    is_refused_and_revoked(&Ask::All, spoil, MintError::Untrusted(WiderPermissions), "issues").await;
}

#[tokio::test]
async fn a_mirrors_token_that_does_more_or_less_than_read_is_refused() {
    let wider: [fn(&mut Value); 4] = [
        |a| a["permissions"]["contents"] = "write".into(),
        |a| a["permissions"]["pull_requests"] = "write".into(),
        |a| a["permissions"]["issues"] = "read".into(),
        |a| a["permissions"]["workflows"] = "write".into(),
    ];
    for (number, spoil) in wider.into_iter().enumerate() {
        let error = MintError::Untrusted(WiderPermissions);
        is_refused_and_revoked(&Ask::Mirror, spoil, error, &format!("wider {number}")).await;
    }
    let narrower: fn(&mut Value) = |a| remove(a, "permissions", "pull_requests");
    is_refused_and_revoked(&Ask::Mirror, narrower, MintError::Untrusted(NarrowerPermissions), "narrower").await;
}

#[tokio::test]
async fn another_repository_is_refused_by_name_and_by_id() {
    let web: fn(&mut Value) = |a| a["repositories"][0]["full_name"] = "acme/web".into();
    let other: fn(&mut Value) = |a| a["repositories"][0]["id"] = 9.into();
    let zero: fn(&mut Value) = |a| a["repositories"][0]["id"] = 0.into();
    is_refused_and_revoked(&Ask::Named, web, MintError::Untrusted(Repositories), "name").await;
    is_refused_and_revoked(&Ask::Listed, web, MintError::Untrusted(Repositories), "listed").await;
    is_refused_and_revoked(&Ask::Mirror, web, MintError::Untrusted(Repositories), "mirror").await;
    is_refused_and_revoked(&Ask::Mirror, zero, MintError::Untrusted(RepositoryId), "mirror's id").await;
    is_refused_and_revoked(&Ask::Bound, other, MintError::Untrusted(RepositoryId), "id").await;
    is_refused_and_revoked(&Ask::Named, zero, MintError::Untrusted(RepositoryId), "no id").await;
}

#[tokio::test]
async fn a_read_token_that_lacks_one_of_its_repositories_is_refused() {
    let stand_in = StandIn::start().await;
    let github = stand_in.github();
    let scope = only(&["acme/web", "acme/api"]);
    stand_in.spoil(|a| {
        a["repositories"].as_array_mut().unwrap().pop();
    });
    assert_eq!(github.read_token(&scope, now()).await.unwrap_err(), MintError::Untrusted(Repositories));
    assert_eq!(stand_in.lines()[1..], ["DELETE /installation/token"]);
    stand_in.spoil(|a| a["repositories"].as_array_mut().unwrap().reverse());
    github.read_token(&scope, now()).await.unwrap();
}

#[tokio::test]
async fn a_repository_of_another_owner_is_unknown_and_its_namesake_is_not_used() {
    let other: fn(&mut Value) = |a| a["repositories"][0]["full_name"] = "other/api".into();
    is_refused_and_revoked(&Ask::Named, other, MintError::RepositoryUnknown, "owner").await;
    is_refused_and_revoked(&Ask::Mirror, other, MintError::RepositoryUnknown, "mirror's owner").await;
}

#[tokio::test]
async fn a_bound_repository_is_known_by_its_id_after_a_rename() {
    let stand_in = StandIn::start().await;
    stand_in.spoil(|a| a["repositories"][0]["full_name"] = "acme/renamed".into());
    assert!(stand_in.github().write_token(&bound(), true, now()).await.is_ok());
}

#[tokio::test]
async fn what_github_leaves_out_or_spells_otherwise_is_taken() {
    let stand_in = StandIn::start().await;
    stand_in.spoil(|a| {
        remove(a, "permissions", "metadata");
        expires(a, 25 * 60);
        if a["repository_selection"] == "all" {
            a["repository_selection"] = "selected".into();
        } else {
            a["repositories"][0]["full_name"] = "ACME/Api".into();
        }
    });
    let github = stand_in.github();
    github.read_token(&ReadScope::All, now()).await.unwrap();
    assert_eq!(write(&github).await.unwrap().repository_id(), Some(42));
    assert_eq!(stand_in.seen().len(), 2);
}

#[tokio::test]
async fn an_untrusted_answer_is_not_remembered() {
    let stand_in = StandIn::start().await;
    stand_in.spoil(|a| expires(a, 1));
    let github = stand_in.github();
    write(&github).await.unwrap_err();
    stand_in.spoil(|_| ());
    write(&github).await.unwrap();
}

#[tokio::test]
async fn a_failed_revocation_refuses_all_the_same() {
    let stand_in = StandIn::start().await;
    stand_in.reply(Reply {
        status: 201,
        headers: Vec::new(),
        body: json!({ "token": "ghs_x", "repository_selection": "all" }).to_string(),
    });
    stand_in.reply(Reply::new(500, "oops"));
    assert_eq!(write(&stand_in.github()).await.unwrap_err(), MintError::Untrusted(Selection));
    assert_eq!(stand_in.seen()[1].headers["authorization"], "Bearer ghs_x");
}

#[tokio::test]
async fn facts_of_another_repository_or_without_a_usable_branch_are_refused() {
    let stand_in = StandIn::start().await;
    let github = stand_in.github();
    let minted = write(&github).await.unwrap();
    stand_in.spoil(|a| a["id"] = 9.into());
    let error = github.facts(&minted, false, now()).await.unwrap_err();
    assert_eq!(error, MintError::Untrusted(RepositoryId));
    let broken: [fn(&mut Value); 6] = [
        |a| a["default_branch"] = "".into(),
        |a| a["default_branch"] = "a..b".into(),
        |a| a["default_branch"] = Value::Null,
        |a| a["full_name"] = "acme".into(),
        |a| a["id"] = "42".into(),
        |a| *a = json!([]),
    ];
    for spoil in broken {
        stand_in.spoil(spoil);
        let error = github.facts(&minted, false, now()).await.unwrap_err();
        assert!(matches!(error, MintError::Unavailable(_)), "{error}");
    }
    let read = github.read_token(&ReadScope::All, now()).await;
    stand_in.spoil(|_| ());
    assert!(read.is_err(), "the last spoil breaks every answer");
    let read = github.read_token(&ReadScope::All, at(11)).await.unwrap();
    let error = github.facts(&read, false, now()).await.unwrap_err();
    assert_eq!(error, MintError::Untrusted(RepositoryId), "a token of all repositories has no facts");
}
