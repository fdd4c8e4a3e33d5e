//! The API: who may ask, what is answered, and the dress that GitHub gives to every answer.
#![expect(clippy::unnecessary_wraps, reason = "a handler that cannot fail has the type of those that can")]

mod accounts;
mod actions;
mod contents;
mod issues;
mod limits;
mod page;
mod pulls;
mod releases;
mod reply;
mod rest;
pub(super) mod search;
pub(super) mod views;

use hyper::Response;
use hyper::http::request;

use serde_json::json;

use super::State;
use super::answer::{Body, Canned, message};
use super::record::{self, Record};
use super::repositories::Repository;
use super::route::Target;
use super::tokens::Token;
use super::{graphql, record::Request};

pub(crate) use limits::{Limit, Limits};
pub(crate) use reply::{Good, Query, Refusal, Reply, takes_gzip};

/// The one version of the API that there is.
const VERSION: &str = "2022-11-28";

/// `DELETE /installation/token`.
pub(crate) fn revoke(state: &State, head: &request::Parts, record: &Record) -> Response<Body> {
    match admitted(state, head, record) {
        Ok((index, _token)) => {
            state.tokens.change(index, |token| token.revoked = true);
            Canned::status(204).to_response()
        }
        Err(refusal) => message(refusal.status, &refusal.message),
    }
}

/// Any request with an installation token.
pub(crate) async fn serve(
    state: &State,
    target: &Target,
    head: &request::Parts,
    body: &mut Option<record::Body>,
    record: &Record,
) -> Reply {
    let (_, token) = match admitted(state, head, record) {
        Ok(admitted) => admitted,
        Err(refusal) => return refusal.into(),
    };
    let resource = limits::resource(head);
    let (limit, within) = state.limits.spend(resource, state.now());
    let reply = if !within {
        too_many(resource)
    } else if *target == Target::Graphql {
        graphql::serve(state, &token, limit, body).await
    } else {
        tokio::task::block_in_place(|| rest::answer(state, &token, head, record))
    };
    let reply = reply.conditional(head);
    let limit = if reply.status == 304 { state.limits.give_back(resource) } else { limit };
    limit.headers().into_iter().fold(reply, |reply, (name, value)| reply.header(name, value))
}

/// What every request to the API must have, whatever it asks.
pub(crate) fn precondition(head: &request::Parts) -> Result<(), Refusal> {
    let header = |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok());
    if header("user-agent").is_none_or(str::is_empty) {
        return Err(Refusal::new(
            403,
            "Request forbidden by administrative rules. Please make sure your request has a User-Agent header.",
        ));
    }
    match header("x-github-api-version") {
        None | Some(VERSION) => Ok(()),
        Some(other) => Err(Refusal::new(
            400,
            &format!("The \"{other}\" version of the API is not supported. Supported: \"{VERSION}\"."),
        )),
    }
}

/// The token of a request and its number, if it is good for anything.
fn admitted(state: &State, head: &request::Parts, record: &Record) -> Result<(usize, Token), Refusal> {
    let authorization = head.headers.get("authorization").and_then(|value| value.to_str().ok());
    let missing = if authorization.is_none() { "Requires authentication" } else { "Bad credentials" };
    let found = state.tokens.find(authorization, state.now());
    let (index, token) = found.ok_or_else(|| Refusal::new(401, missing))?;
    record.note(|request: &mut Request| request.token = Some(index));
    Ok((index, token))
}

fn too_many(resource: &str) -> Reply {
    let why = format!("API rate limit exceeded for installation ID {}.", super::INSTALLATION_ID);
    match resource {
        "graphql" => Reply::json(&json!({ "errors": [{ "type": "RATE_LIMIT", "message": why }] })),
        _ => Refusal::new(403, &why).into(),
    }
}

impl Repository {
    /// True if a token may see that it is there.
    pub(crate) fn is_shown_to(&self, token: &Token) -> bool {
        self.is_seen_by(token) && token.may("metadata", "read")
    }
}
