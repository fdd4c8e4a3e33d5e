//! `POST /graphql`: a document is read by apollo-parser, held against an excerpt of GitHub's schema, and executed over
//! JSON nodes.

mod connection;
mod document;
mod execute;
mod introspection;
mod nodes;
mod resolve;
mod schema;
mod validate;

use serde_json::{Map, Value, json};

use super::State;
use super::api::{Limit, Refusal, Reply};
use super::record;
use super::tokens::Token;
use document::{Document, Kind};
use execute::Execution;

/// Most bytes of a request that are read.
const LIMIT: usize = 2 << 20;

/// Answers a request.
pub(crate) async fn serve(state: &State, token: &Token, limit: Limit, body: &mut Option<record::Body>) -> Reply {
    let Some(asked) = read(body).await else { return Refusal::new(400, "Problems parsing JSON").into() };
    let Some(document) = parse(&asked) else {
        return Refusal::new(400, "A query attribute must be specified and must be a string.").into();
    };
    let answer = match document {
        Ok(document) => tokio::task::block_in_place(|| answer(state, token, limit, &document)),
        Err(why) => json!({ "errors": [{ "message": why }] }),
    };
    Reply::json(&answer)
}

/// What a request's document is: `query`, or `query Name`.
pub(crate) fn title(asked: &Value) -> Option<String> {
    Some(parse(asked)?.ok()?.title)
}

fn parse(asked: &Value) -> Option<Result<Document, String>> {
    let variables = asked["variables"].as_object().cloned().unwrap_or_default();
    Some(Document::parse(asked["query"].as_str()?, asked["operationName"].as_str(), &variables))
}

async fn read(body: &mut Option<record::Body>) -> Option<Value> {
    let mut bytes = Vec::new();
    let body = body.as_mut()?;
    while let Some(chunk) = body.chunk().await {
        bytes.extend_from_slice(&chunk.ok()?);
        if bytes.len() > LIMIT {
            return None;
        }
    }
    serde_json::from_slice(&bytes).ok()
}

fn answer(state: &State, token: &Token, limit: Limit, document: &Document) -> Value {
    match document.kind {
        Kind::Query => {}
        Kind::Mutation => return refuse_changes(token, document),
        Kind::Subscription => {
            return json!({ "errors": [{ "message": "Schema is not configured for subscriptions" }] });
        }
    }
    let errors = validate::check(document);
    if !errors.is_empty() {
        return json!({ "errors": errors });
    }
    let (data, errors) = Execution::new(state, token, limit).run(&document.selections);
    if errors.is_empty() { json!({ "data": data }) } else { json!({ "data": data, "errors": errors }) }
}

/// No mutation changes anything here; a token without the permission hears what GitHub says to it.
fn refuse_changes(token: &Token, document: &Document) -> Value {
    let mut data = Map::new();
    let mut errors = Vec::new();
    for field in document.fields() {
        let permission = match field.name.as_str() {
            name if name.contains("PullRequest") => "pull_requests",
            name if name.contains("Ref") || name.contains("Commit") || name.contains("Branch") => "contents",
            name if name.contains("Repository") => "administration",
            _ => "issues",
        };
        let error = if token.may(permission, "write") {
            json!({ "message": "The stand-in changes nothing over its API", "path": [field.key] })
        } else {
            forbidden(&[field.key.as_str().into()], field.location)
        };
        data.insert(field.key.clone(), Value::Null);
        errors.push(error);
    }
    json!({ "data": data, "errors": errors })
}

/// The token lacks the permission for what is at this path.
fn forbidden(path: &[Value], (line, column): (usize, usize)) -> Value {
    json!({
        "type": "FORBIDDEN",
        "path": path,
        "extensions": { "saml_failure": false },
        "locations": [{ "line": line, "column": column }],
        "message": "Resource not accessible by integration",
    })
}
