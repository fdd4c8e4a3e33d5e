//! The surface of the door: which requests there are. The path and the method decide, and nothing else.
//!
//! Smart HTTP: <https://git-scm.com/docs/http-protocol>. The paths of the API are those of GitHub Enterprise Server.

mod api;
mod path;

use gitdoor_proto::RepositoryName;
use http::{Method, Uri};

pub use self::api::{Target, is_api};
use crate::refusal::Refusal;

pub(crate) use self::path::Readings;
use self::path::Slashes;

/// A service of smart HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Service {
    /// Fetch and clone.
    UploadPack,
    /// Push.
    ReceivePack,
}

impl Service {
    /// The service's name in paths, queries and media types.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::UploadPack => "git-upload-pack",
            Self::ReceivePack => "git-receive-pack",
        }
    }
}

/// A request that the door serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Route {
    /// `GET /<owner>/<name>[.git]/info/refs?service=<service>`.
    Discovery(Service, RepositoryName),
    /// `POST /<owner>/<name>[.git]/<service>`.
    Rpc(Service, RepositoryName),
    /// `/<owner>/<name>[.git]/info/lfs/locks...`: refused in git-lfs's language.
    LfsLocks,
    /// Any other `/<owner>/<name>[.git]/info/lfs/...`.
    Lfs,
    /// `GET`, `HEAD /api/v3/...`.
    Rest(Target),
    /// `POST /api/graphql`.
    Graphql,
    /// `GET`, `HEAD /api/v3/gitdoor/run`: answered here.
    Run,
    /// `/api/uploads/...`: refused in words.
    Uploads,
}

impl Route {
    /// Finds the route of a request.
    pub fn of(method: &Method, uri: &Uri) -> Result<Self, Refusal> {
        let path = uri.path();
        if is_api(path) {
            return api::route(method, uri);
        }
        if Readings::of(path).hides_a_path(Slashes::Refused) {
            return Err(Refusal::BadPath);
        }
        let mut segments = path.split('/').skip(1);
        let (Some(owner), Some(name)) = (segments.next(), segments.next()) else {
            return Err(Refusal::NoRoute);
        };
        let rest: Vec<&str> = segments.take(4).collect();
        let action = Action::of(&rest).ok_or(Refusal::NoRoute)?;
        let name = name.strip_suffix(".git").unwrap_or(name);
        let repository = RepositoryName::from_segments(owner, name)?;
        action.route(method, uri.query(), repository)
    }

    /// The route as a metric's label.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Discovery(Service::UploadPack, _) => "fetch-discovery",
            Self::Discovery(Service::ReceivePack, _) => "push-discovery",
            Self::Rpc(Service::UploadPack, _) => "fetch",
            Self::Rpc(Service::ReceivePack, _) => "push",
            Self::LfsLocks | Self::Lfs => "lfs",
            Self::Rest(_) => "rest",
            Self::Graphql => "graphql",
            Self::Run => "run",
            Self::Uploads => "uploads",
        }
    }

    /// The repository that the request names.
    #[must_use]
    pub fn repository(&self) -> Option<&RepositoryName> {
        match self {
            Self::Discovery(_, repository) | Self::Rpc(_, repository) => Some(repository),
            Self::LfsLocks | Self::Lfs | Self::Rest(_) | Self::Graphql | Self::Run | Self::Uploads => None,
        }
    }
}

/// What follows the repository in a path.
#[derive(Clone, Copy)]
enum Action {
    InfoRefs,
    Rpc(Service),
    LfsLocks,
    Lfs,
}

impl Action {
    fn of(rest: &[&str]) -> Option<Self> {
        match rest {
            ["info", "refs"] => Some(Self::InfoRefs),
            ["git-upload-pack"] => Some(Self::Rpc(Service::UploadPack)),
            ["git-receive-pack"] => Some(Self::Rpc(Service::ReceivePack)),
            ["info", "lfs", "locks", ..] => Some(Self::LfsLocks),
            ["info", "lfs", ..] => Some(Self::Lfs),
            _ => None,
        }
    }

    fn route(self, method: &Method, query: Option<&str>, repository: RepositoryName) -> Result<Route, Refusal> {
        match self {
            Self::InfoRefs if *method != Method::GET => Err(Refusal::Method("GET")),
            Self::Rpc(_) if *method != Method::POST => Err(Refusal::Method("POST")),
            Self::InfoRefs => Ok(Route::Discovery(service(query).ok_or(Refusal::Service)?, repository)),
            Self::Rpc(service) => Ok(Route::Rpc(service, repository)),
            Self::LfsLocks => Ok(Route::LfsLocks),
            Self::Lfs => Ok(Route::Lfs),
        }
    }
}

/// The one service that a query names. Upstream gets a query made anew, so what else is in it does not matter.
fn service(query: Option<&str>) -> Option<Service> {
    let mut services = query?.split('&').filter_map(|pair| pair.strip_prefix("service="));
    let service = match services.next()? {
        "git-upload-pack" => Service::UploadPack,
        "git-receive-pack" => Service::ReceivePack,
        _ => return None,
    };
    // A name spelled in percent-encoding could be a second service to another reader.
    let plain = !query?.contains('%') && services.next().is_none();
    plain.then_some(service)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(method: &str, target: &str) -> Result<Route, Refusal> {
        Route::of(&method.parse().unwrap(), &target.parse().unwrap())
    }

    fn status(method: &str, target: &str) -> u16 {
        route(method, target).map_or_else(|refusal| refusal.status().as_u16(), |_| 200)
    }

    #[test]
    fn both_spellings_of_a_repository_are_served() {
        let repository = RepositoryName::parse("acme/api").unwrap();
        for target in
            ["/acme/api.git/info/refs?service=git-upload-pack", "/Acme/API/info/refs?service=git-upload-pack"]
        {
            assert_eq!(route("GET", target).unwrap(), Route::Discovery(Service::UploadPack, repository.clone()));
        }
        let push = Route::Rpc(Service::ReceivePack, repository);
        assert_eq!(route("POST", "/acme/api.git/git-receive-pack").unwrap(), push);
        // The path decides, whatever the query says.
        assert_eq!(route("POST", "/acme/api/git-receive-pack?service=git-upload-pack").unwrap(), push);
    }

    #[test]
    fn what_is_not_on_the_surface_is_refused_with_its_status() {
        for (method, target, expected) in [
            ("GET", "/", 404),
            ("GET", "/acme", 404),
            ("GET", "/acme/api.git", 404),
            ("GET", "/acme/api.git/HEAD", 404),
            ("GET", "/acme/api.git/objects/info/packs", 404),
            ("POST", "/acme/api.git/git-upload-archive", 404),
            ("GET", "/a/b/c/info/refs?service=git-upload-pack", 404),
            ("GET", "/acme/api/info/refs/x", 404),
            ("GET", "/acme/api.git/info/refs", 403),
            ("GET", "/acme/api.git/info/refs?service=x", 403),
            ("GET", "/acme/api.git/info/refs?service=git-upload-pack&service=git-receive-pack", 403),
            ("GET", "/acme/api.git/info/refs?service=git-upload-pack&servic%65=git-receive-pack", 403),
            ("GET", "/acme/api.git/info/refs?Service=git-upload-pack", 403),
            ("GET", "/acme/api.git/info/refs?service=Git-Upload-Pack", 403),
            ("HEAD", "/acme/api.git/info/refs?service=git-upload-pack", 405),
            ("GET", "/acme/api/git-upload-pack", 405),
            ("POST", "/acme/api/info/refs?service=git-upload-pack", 405),
            ("PUT", "/acme/api/git-receive-pack", 405),
            ("GET", "//acme/api/info/refs?service=git-upload-pack", 400),
            ("GET", "/acme//info/refs", 400),
            ("GET", "/acme/api/info/refs/?service=git-upload-pack", 400),
            ("GET", "/acme/%72/info/refs", 400),
            ("GET", "/acme/api.git/..%2f..%2fother/r.git/info/refs", 400),
            ("GET", "/acme/%252e%252e/info/refs", 400),
            ("GET", "/acme/../info/refs", 400),
            ("GET", "/acme/api%5c/info/refs", 400),
            ("GET", "/a/b%00/info/refs", 400),
            ("GET", "/acme/api.git.git/info/refs", 400),
            ("GET", "/acme/a%25252525/info/refs", 400),
            ("GET", "/acme/%ff/info/refs", 400),
        ] {
            assert_eq!(status(method, target), expected, "{method} {target}");
        }
    }

    #[test]
    fn lfs_has_routes_of_its_own() {
        assert_eq!(route("POST", "/acme/api.git/info/lfs/locks/verify").unwrap(), Route::LfsLocks);
        assert_eq!(route("POST", "/acme/api.git/info/lfs/objects/batch").unwrap(), Route::Lfs);
    }
}
