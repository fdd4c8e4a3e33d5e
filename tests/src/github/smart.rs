//! Repositories over git's protocol: who may, under which name, and then `git http-backend`.

use hyper::header::{HeaderValue, LOCATION, WWW_AUTHENTICATE};
use hyper::{Response, http::request};

use super::State;
use super::answer::{Body, Canned, text};
use super::backend::{self, Call};
use super::record::{self, Record};
use super::repositories::{Found, Repository};
use super::route::Route;
use super::tokens::Token;

/// What a git request is about.
pub(crate) struct Asked<'a> {
    pub(crate) route: Route,
    /// `owner/name`.
    pub(crate) name: &'a str,
    /// The path after the repository.
    pub(crate) rest: &'a str,
    pub(crate) head: &'a request::Parts,
}

/// Answers a git request; takes the body only if git is to read it.
pub(crate) async fn serve(
    state: &State,
    asked: Asked<'_>,
    body: &mut Option<record::Body>,
    record: &Record,
) -> Response<Body> {
    let authorization = asked.head.headers.get("authorization").and_then(|value| value.to_str().ok());
    let Some((index, token)) = state.tokens.find(authorization, state.now()) else { return challenge() };
    record.note(|request| request.token = Some(index));
    let found = state.repositories.lock().unwrap().find(asked.name);
    let (repository, moved) = match found {
        Some(Found::Here(repository)) => (repository, false),
        Some(Found::Moved(repository)) => (repository, true),
        None => return text(404, "Repository not found."),
    };
    if !repository.is_seen_by(&token) {
        return text(404, "Repository not found.");
    }
    let level = match asked.route {
        Route::PushDiscovery | Route::ReceivePack => "write",
        Route::Mint
        | Route::RevokeToken
        | Route::Repository
        | Route::Rest
        | Route::Graphql
        | Route::Storage
        | Route::FetchDiscovery
        | Route::UploadPack
        | Route::Other => "read",
    };
    if !token.may("contents", level) {
        return text(403, "Write access to repository not granted.");
    }
    record.note(|request| request.repository = Some(repository.name.clone()));
    if moved {
        return redirect(state, &repository, &asked);
    }
    run(state, &repository, &token, &asked, body.take()).await
}

async fn run(
    state: &State,
    repository: &Repository,
    token: &Token,
    asked: &Asked<'_>,
    body: Option<record::Body>,
) -> Response<Body> {
    let call = Call {
        head: asked.head,
        folder: &repository.folder,
        rest: asked.rest,
        workflows: token.may("workflows", "write"),
    };
    match backend::run(state, call, body).await {
        Ok(response) => response,
        Err(_died) => text(500, "git http-backend gave no answer"),
    }
}

fn challenge() -> Response<Body> {
    Canned::status(401)
        .header(WWW_AUTHENTICATE.as_str(), "Basic realm=\"GitHub\"")
        .body("text/plain", "Invalid username or token.")
        .to_response()
}

fn redirect(state: &State, repository: &Repository, asked: &Asked<'_>) -> Response<Body> {
    let query = asked.head.uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    let url = format!("{}/{}.git{}{query}", state.urls().git, repository.name, asked.rest);
    let mut answer = text(301, "");
    answer.headers_mut().insert(LOCATION, HeaderValue::try_from(url).expect("a URL"));
    answer
}

impl Repository {
    /// Whether a token works on it.
    pub(crate) fn is_seen_by(&self, token: &Token) -> bool {
        self.installed && token.repositories.as_ref().is_none_or(|ids| ids.contains(&self.id))
    }
}
