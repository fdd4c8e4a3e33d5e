//! `POST /app/installations/{id}/access_tokens`, in GitHub's published shape.

use hyper::Response;
use serde_json::{Value, json};

use super::State;
use super::answer::{Body, json, message};
use super::api::views;
use super::app::INSTALLATION_ID;
use super::furnished::Ground;
use super::record;
use super::tokens::{Permissions, Token, covers};
use crate::clock;

/// Most bytes of a mint request that are read.
const LIMIT: usize = 64 * 1024;

/// Answers a mint request.
pub(crate) async fn mint(
    state: &State,
    installation: &str,
    authorization: Option<&str>,
    body: &mut record::Body,
) -> Response<Body> {
    let asked = read(body).await;
    if let Err(why) = state.app.verify(authorization, state.now()) {
        return message(401, why);
    }
    if installation != INSTALLATION_ID {
        return message(404, "Not Found");
    }
    let Some(asked) = asked else { return message(400, "Problems parsing JSON") };
    match grant(state, &asked) {
        Ok(token) => json(201, &describe(state, &token)),
        Err((status, why)) => message(status, why),
    }
}

async fn read(body: &mut record::Body) -> Option<Value> {
    let mut bytes = Vec::new();
    while let Some(chunk) = body.chunk().await {
        bytes.extend_from_slice(&chunk.ok()?);
        if bytes.len() > LIMIT {
            return None;
        }
    }
    if bytes.is_empty() { Some(json!({})) } else { serde_json::from_slice(&bytes).ok() }
}

fn grant(state: &State, asked: &Value) -> Result<Token, (u16, &'static str)> {
    let installation = state.app.installation.lock().unwrap().clone();
    if installation.suspended {
        return Err((403, "This installation has been suspended"));
    }
    let repositories = repositories(state, asked)?;
    let permissions = permissions(&installation.permissions, &asked["permissions"])?;
    Ok(state.tokens.mint(permissions, repositories, state.now() + state.token_life()))
}

/// The ids that the request names, or nothing for all.
fn repositories(state: &State, asked: &Value) -> Result<Option<Vec<u64>>, (u16, &'static str)> {
    let unknown = "There is at least one repository that does not exist or is not accessible to the parent \
                   installation.";
    let (names, ids) = (asked["repositories"].as_array(), asked["repository_ids"].as_array());
    if names.is_none() && ids.is_none() {
        return Ok(None);
    }
    let table = state.repositories.lock().unwrap();
    let by_name = names.into_iter().flatten().map(|name| table.by_bare_name(name.as_str()?));
    let by_id = ids.into_iter().flatten().map(|id| table.by_id(id.as_u64()?));
    let mut found = Vec::new();
    for repository in by_name.chain(by_id) {
        match repository {
            Some(repository) if repository.installed => found.push(repository.id),
            Some(_) | None => return Err((422, unknown)),
        }
    }
    found.dedup();
    if found.is_empty() { Err((422, unknown)) } else { Ok(Some(found)) }
}

/// The permissions that the request names, which come with `metadata: read`, or all.
fn permissions(granted: &Permissions, asked: &Value) -> Result<Permissions, (u16, &'static str)> {
    let Some(asked) = asked.as_object() else { return Ok(granted.clone()) };
    let mut given = Permissions::from([("metadata".to_owned(), "read".to_owned())]);
    for (name, level) in asked {
        let level = level.as_str().unwrap_or_default();
        if !granted.get(name).is_some_and(|granted| covers(granted, level)) {
            return Err((422, "The permissions requested are not granted to this installation."));
        }
        given.insert(name.clone(), level.to_owned());
    }
    Ok(given)
}

fn describe(state: &State, token: &Token) -> Value {
    let mut answer = json!({
        "token": token.text,
        "expires_at": clock::to_rfc3339(token.expires_at),
        "permissions": token.permissions,
        "repository_selection": if token.repositories.is_some() { "selected" } else { "all" },
    });
    if let Some(ids) = &token.repositories {
        let table = state.repositories.lock().unwrap();
        let grounds = ids.iter().filter_map(|id| table.by_id(*id)).map(|repository| Ground::new(state, repository));
        answer["repositories"] = grounds.map(|ground| views::repository(&ground, None)).collect();
    }
    answer
}
