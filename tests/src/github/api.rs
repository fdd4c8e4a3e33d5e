//! The API's repositories, and the end of a token.

use hyper::Response;
use hyper::header::{HeaderValue, LOCATION};

use super::State;
use super::answer::{Body, Canned, json, message};
use super::record::Record;
use super::repositories::{Found, Repository};

/// `DELETE /installation/token`.
pub(crate) fn revoke(state: &State, authorization: Option<&str>, record: &Record) -> Response<Body> {
    let Some((index, _token)) = state.tokens.find(authorization, state.now()) else {
        return message(401, "Bad credentials");
    };
    record.note(|request| request.token = Some(index));
    state.tokens.change(index, |token| token.revoked = true);
    Canned::status(204).to_response()
}

/// `GET /repos/{owner}/{name}`.
pub(crate) fn named(state: &State, name: &str, authorization: Option<&str>, record: &Record) -> Response<Body> {
    let found = state.repositories.lock().unwrap().find(name);
    match found {
        None => show(state, None, authorization, record),
        Some(Found::Here(repository)) => show(state, Some(&repository), authorization, record),
        Some(Found::Moved(repository)) => {
            let answer = show(state, Some(&repository), authorization, record);
            if answer.status().is_success() { moved(state, &repository) } else { answer }
        }
    }
}

/// `GET /repositories/{id}`.
pub(crate) fn numbered(state: &State, id: u64, authorization: Option<&str>, record: &Record) -> Response<Body> {
    let repository = state.repositories.lock().unwrap().by_id(id).cloned();
    show(state, repository.as_ref(), authorization, record)
}

fn show(
    state: &State,
    repository: Option<&Repository>,
    authorization: Option<&str>,
    record: &Record,
) -> Response<Body> {
    let Some((index, token)) = state.tokens.find(authorization, state.now()) else {
        return message(401, "Bad credentials");
    };
    record.note(|request| request.token = Some(index));
    match repository {
        Some(repository) if repository.is_seen_by(&token) && token.may("metadata", "read") => {
            record.note(|request| request.repository = Some(repository.name.clone()));
            json(200, &repository.to_json(&state.urls()))
        }
        Some(_) | None => message(404, "Not Found"),
    }
}

fn moved(state: &State, repository: &Repository) -> Response<Body> {
    let url = format!("{}/repositories/{}", state.urls().api, repository.id);
    let body = serde_json::json!({ "message": "Moved Permanently", "url": url });
    let mut answer = json(301, &body);
    answer.headers_mut().insert(LOCATION, HeaderValue::try_from(url).expect("a URL"));
    answer
}
