//! The API's part of the surface.

use http::{Method, Uri};
use percent_encoding::percent_decode_str;

use super::Route;
use super::path::{Readings, Slashes};
use crate::api::ApiRefusal;
use crate::refusal::Refusal;

/// Where the API begins. No account of the forge has this name.
const API: &str = "/api";

/// A REST request's target as the API gets it: path and query as they came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    path: String,
    query: Option<String>,
}

impl Target {
    /// The path, which begins with a slash.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Path and query under a path of the API's own, which is empty at most forges.
    #[must_use]
    pub fn under(&self, base: &str) -> String {
        let Self { path, query } = self;
        query.as_ref().map_or_else(|| format!("{base}{path}"), |query| format!("{base}{path}?{query}"))
    }

    /// Whether it may be answered with a file's content, which may look like anything.
    #[must_use]
    pub fn is_content(&self) -> bool {
        let segments: Vec<&str> = self.path.split('/').skip(1).collect();
        match segments.as_slice() {
            ["repos", _, _, rest @ ..] | ["repositories", _, rest @ ..] => {
                matches!(rest, ["contents", _, ..] | ["readme", ..] | ["git", "blobs", _])
            }
            _ => false,
        }
    }

    /// Whether it asks what the API is.
    #[must_use]
    pub fn is_meta(&self) -> bool {
        self.path == "/meta"
    }
}

/// Whether a path is the API's: its refusals are JSON, whatever else is wrong.
#[must_use]
pub fn is_api(path: &str) -> bool {
    path.strip_prefix(API).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Finds the route of a request whose path is the API's.
pub(super) fn route(method: &Method, uri: &Uri) -> Result<Route, Refusal> {
    let path = uri.path().strip_prefix(API).unwrap_or_default();
    let beneath = |name: &str| path.strip_prefix(name).filter(|rest| rest.is_empty() || rest.starts_with('/'));
    if let Some(rest) = beneath("/v3") {
        return rest_route(method, if rest.is_empty() { "/" } else { rest }, uri.query());
    }
    if beneath("/uploads").is_some() {
        return Ok(Route::Uploads);
    }
    match path {
        "/graphql" if *method == Method::POST => Ok(Route::Graphql),
        "/graphql" => Err(Refusal::Method("POST")),
        _ => Err(Refusal::NoRoute),
    }
}

fn rest_route(method: &Method, path: &str, query: Option<&str>) -> Result<Route, Refusal> {
    let readings = Readings::of(path);
    if readings.hides_a_path(Slashes::Legal) {
        return Err(Refusal::BadPath);
    }
    let own = path == "/gitdoor" || path.starts_with("/gitdoor/");
    if readings.may_show(is_graphql) {
        return Err(Refusal::Method("POST to /api/graphql"));
    }
    if query.is_some_and(wraps_the_answer) {
        return Err(ApiRefusal::Callback.into());
    }
    match method {
        _ if own && path != "/gitdoor/run" => Err(Refusal::NoRoute),
        &Method::GET | &Method::HEAD if own => Ok(Route::Run),
        &Method::GET | &Method::HEAD => {
            Ok(Route::Rest(Target { path: path.to_owned(), query: query.map(str::to_owned) }))
        }
        _ => Err(ApiRefusal::ReadOnly.into()),
    }
}

/// Whether the API has GraphQL there: it is judged at a path of its own.
fn is_graphql(path: &str) -> bool {
    path.split('/').nth(1).is_some_and(|first| first.eq_ignore_ascii_case("graphql"))
}

/// Whether a query asks for JSONP, a script around the answer: <https://docs.github.com/en/rest/using-the-rest-api>.
fn wraps_the_answer(query: &str) -> bool {
    query.split(['&', ';']).any(|pair| {
        let name = pair.split('=').next().unwrap_or_default().replace('+', " ");
        let name = percent_decode_str(&name).decode_utf8_lossy().into_owned();
        name.trim().split('[').next().is_some_and(|name| name.eq_ignore_ascii_case("callback"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(method: &str, target: &str) -> Result<Route, Refusal> {
        Route::of(&method.parse().unwrap(), &target.parse().unwrap())
    }

    fn upstream(target: &str) -> String {
        match route("GET", target) {
            Ok(Route::Rest(target)) => target.under("/base"),
            other => panic!("{target}: {other:?}"),
        }
    }

    #[test]
    fn path_and_query_go_up_as_they_came() {
        for (target, expected) in [
            ("/api/v3", "/base/"),
            ("/api/v3/", "/base/"),
            ("/api/v3?a=b", "/base/?a=b"),
            ("/api/v3/repos/O/r", "/base/repos/O/r"),
            ("/api/v3/repos/o/r/git/ref/heads%2Ffix%20x?per_page=100&q=a%2Bb+c", {
                "/base/repos/o/r/git/ref/heads%2Ffix%20x?per_page=100&q=a%2Bb+c"
            }),
            ("/api/v3/repositories/1/issues?page=2", "/base/repositories/1/issues?page=2"),
            ("/api/v3/repos/o/r/compare/a...b", "/base/repos/o/r/compare/a...b"),
            ("/api/v3/repos/o/r/contents/caf%C3%A9", "/base/repos/o/r/contents/caf%C3%A9"),
            ("/api/v3/gitdoors", "/base/gitdoors"),
            ("/api/v3/meta?", "/base/meta?"),
        ] {
            assert_eq!(upstream(target), expected, "{target}");
        }
    }

    #[test]
    fn the_api_has_routes_of_its_own() {
        assert_eq!(route("POST", "/api/graphql?query=x").unwrap(), Route::Graphql);
        assert_eq!(route("GET", "/api/v3/gitdoor/run").unwrap(), Route::Run);
        assert_eq!(route("HEAD", "/api/v3/gitdoor/run").unwrap(), Route::Run);
        assert_eq!(route("POST", "/api/uploads/repos/o/r/releases/1/assets?name=x").unwrap(), Route::Uploads);
    }

    #[test]
    fn what_is_not_on_the_surface_is_refused_with_its_status() {
        for (method, target, expected) in [
            ("GET", "/api", 404),
            ("GET", "/api/", 404),
            ("GET", "/api/v4/user", 404),
            ("GET", "/api/v33/user", 404),
            ("GET", "/api/graphql/x", 404),
            ("GET", "/api/v3/gitdoor", 404),
            ("GET", "/api/v3/gitdoor/runs", 404),
            ("POST", "/api/v3/gitdoor/x", 404),
            ("GET", "/api/graphql", 405),
            ("PUT", "/api/graphql", 405),
            ("POST", "/api/v3/repos/o/r/issues", 405),
            ("PATCH", "/api/v3/repos/o/r", 405),
            ("DELETE", "/api/v3/repos/o/r/releases/1", 405),
            ("OPTIONS", "/api/v3/", 405),
            ("PROPFIND", "/api/v3/", 405),
            ("get", "/api/v3/", 405),
            ("POST", "/api/v3/gitdoor/run", 405),
            ("GET", "/api/v3/graphql?query={a}", 405),
            ("POST", "/api/v3/graphql", 405),
            ("GET", "/api/v3/GraphQL", 405),
            ("GET", "/api/v3/%67raphql/x", 405),
            ("GET", "/api/v3/%2567raphql", 405),
            ("GET", "/api/v3/graphql%2Fx", 405),
            ("GET", "/api/v3/user?callback=x", 400),
            ("GET", "/api/v3/user?a=b&%63allback[]=x", 400),
            ("GET", "/api/v3/user?a=b;Callback", 400),
            ("GET", "/api/v3//user", 400),
            ("GET", "/api/v3/repos/o/r/", 400),
            ("GET", "/api/v3/../graphql", 400),
            ("GET", "/api/v3/a/%2e%2e/b", 400),
            ("GET", "/api/v3/a/..%2fb", 400),
            ("GET", "/api/v3/a/..%252fb", 400),
            ("GET", "/api/v3/a%5cb", 400),
            ("GET", "/api/v3/a%00", 400),
            ("GET", "/api/v3/a%0d%0ab", 400),
            ("GET", "/api/v3/a%25252525", 400),
            ("GET", "/api%2fv3/user/info/refs", 400),
            ("GET", "/API/v3/info/refs", 400),
        ] {
            let status = route(method, target).map_or_else(|refusal| refusal.status().as_u16(), |_| 200);
            assert_eq!(status, expected, "{method} {target}");
        }
    }
}
