//! Which of GitHub's routes a request is for.

use hyper::Method;

/// Which of the servers a request came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Host {
    /// Like github.com: repositories over git's protocol.
    Git,
    /// Like api.github.com: REST and GraphQL.
    Api,
    /// Like the hosts that logs, artifacts, assets and archives are downloaded from.
    Storage,
}

/// The kinds of requests, as faults and assertions name them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Route {
    /// `POST /app/installations/{id}/access_tokens`.
    Mint,
    /// `DELETE /installation/token`.
    RevokeToken,
    /// `GET /repos/{owner}/{name}` or `/repositories/{id}`.
    Repository,
    /// Anything else of the API but GraphQL.
    Rest,
    /// `POST /graphql`.
    Graphql,
    /// Anything of the storage host.
    Storage,
    /// `GET .../info/refs?service=git-upload-pack`.
    FetchDiscovery,
    /// `GET .../info/refs?service=git-receive-pack`.
    PushDiscovery,
    /// `POST .../git-upload-pack`.
    UploadPack,
    /// `POST .../git-receive-pack`.
    ReceivePack,
    /// Anything else of the git host.
    Other,
}

/// What a request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    /// A token of this installation.
    Mint(String),
    /// The end of the token that is sent along.
    RevokeToken,
    /// Anything of the REST API, with `owner/name` where the path begins with one.
    Rest(Option<String>),
    /// A GraphQL document.
    Graphql,
    /// A blob of the storage host.
    Blob,
    /// A repository over git: `owner/name`, and the rest of the path with its slash.
    Git(String, String),
    /// Nothing that is known here.
    Unknown,
}

/// Reads a request line.
pub(crate) fn route(host: Host, method: &Method, path: &str, query: Option<&str>) -> (Route, Target) {
    match host {
        Host::Git => git_route(method, path, query.unwrap_or_default()),
        Host::Api => api_route(method, path),
        Host::Storage => (Route::Storage, Target::Blob),
    }
}

fn api_route(method: &Method, path: &str) -> (Route, Target) {
    let segments: Vec<&str> = path.split('/').skip(1).collect();
    match (method.as_str(), segments.as_slice()) {
        ("POST", ["app", "installations", id, "access_tokens"]) => (Route::Mint, Target::Mint((*id).to_owned())),
        ("DELETE", ["installation", "token"]) => (Route::RevokeToken, Target::RevokeToken),
        ("POST", ["graphql"]) => (Route::Graphql, Target::Graphql),
        ("GET", ["repositories", _]) => (Route::Repository, Target::Rest(None)),
        ("GET", ["repos", owner, name]) => (Route::Repository, Target::Rest(Some(format!("{owner}/{name}")))),
        (_, ["repos", owner, name, ..]) => (Route::Rest, Target::Rest(Some(format!("{owner}/{name}")))),
        _ => (Route::Rest, Target::Rest(None)),
    }
}

fn git_route(method: &Method, path: &str, query: &str) -> (Route, Target) {
    let mut parts = path.splitn(4, '/').skip(1);
    let (Some(owner), Some(name), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
        return (Route::Other, Target::Unknown);
    };
    let name = name.strip_suffix(".git").unwrap_or(name);
    let route = match (method.as_str(), rest, query) {
        ("GET", "info/refs", "service=git-upload-pack") => Route::FetchDiscovery,
        ("GET", "info/refs", "service=git-receive-pack") => Route::PushDiscovery,
        ("POST", "git-upload-pack", _) => Route::UploadPack,
        ("POST", "git-receive-pack", _) => Route::ReceivePack,
        _ => return (Route::Other, Target::Unknown),
    };
    (route, Target::Git(format!("{owner}/{name}"), format!("/{rest}")))
}
