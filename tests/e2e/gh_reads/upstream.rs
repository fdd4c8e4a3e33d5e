//! A request of the upstream as a line, once what holds for all requests of its kind was seen to: it carries the token
//! for its purpose, no header but those that may go up, and nothing of the run.

use std::collections::BTreeMap;

use gitdoor_tests::github::{BodyEnd, Host, Request, Route};
use gitdoor_tests::wait::until;
use gitdoor_tests::world::Secret;
use url::form_urlencoded;

use super::Stage;

/// Headers that may go up, by host.
const API: &[&str] = &[
    "accept",
    "accept-encoding",
    "authorization",
    "content-length",
    "content-type",
    "graphql-features",
    "host",
    "time-zone",
    "user-agent",
    "x-github-api-version",
];
const GIT: &[&str] = &[
    "accept",
    "accept-encoding",
    "authorization",
    "content-length",
    "content-type",
    "git-protocol",
    "host",
    "pragma",
    "transfer-encoding",
    "user-agent",
];
const STORAGE: &[&str] = &["accept", "host"];

/// The requests that came after the first so many, minting left out: `GET /repos/acme/api`, `query RepositoryInfo`,
/// `git POST /acme/api.git/git-upload-pack`, `storage GET /blob/8100017-logs-77`. What went with another token than
/// one that reads is said to: `write git POST ...`.
pub(super) async fn lines(stage: &Stage, after: usize) -> Vec<String> {
    // Of two requests at once gh gives up the one that it needs no more, which may be on its way still.
    stage.world.quiet(0).await;
    until("every request is whole, or cut", async || came_after(stage, after).iter().all(is_whole_or_cut)).await;
    let requests = came_after(stage, after);
    let asked = requests.iter().filter(|request| request.route != Route::Mint && request.body_end != BodyEnd::Cut);
    asked.map(|request| line(stage, request)).collect()
}

fn came_after(stage: &Stage, after: usize) -> Vec<Request> {
    stage.world.github.requests().split_off(after)
}

fn is_whole_or_cut(request: &Request) -> bool {
    request.status.is_some() || (request.method == "POST" && request.body_end != BodyEnd::Open)
}

fn line(stage: &Stage, request: &Request) -> String {
    let github = &stage.world.github;
    let Request { method, path, .. } = request;
    let (url, headers, asked) = match (request.server, request.operation()) {
        (Host::Api, Some(operation)) => (github.api_url(), API, operation),
        (Host::Api, None) => (github.api_url(), API, format!("{method} {path}{}", query(request))),
        (Host::Git, _) => (github.url(), GIT, format!("git {method} {path}{}", query(request))),
        (Host::Storage, _) => (github.storage_url(), STORAGE, format!("storage {method} {path}")),
    };
    assert_eq!(format!("https://{}", request.host), url, "{asked}");
    let odd: Vec<_> = request.headers.keys().filter(|name| !headers.contains(&name.as_str())).collect();
    assert!(odd.is_empty(), "{asked}: {odd:?}");
    assert_says_nothing_of_the_run(stage, request);
    format!("{}{asked}", scope(stage, request))
}

/// What the token may do; nothing is said of reading everything, which is what the door is for.
fn scope(stage: &Stage, request: &Request) -> &'static str {
    if request.server == Host::Storage {
        assert_eq!(request.header("authorization"), None);
        return "";
    }
    let token = stage.world.github.token_of(request).unwrap();
    let permissions: BTreeMap<&str, &str> =
        token.permissions.iter().map(|(name, level)| (name.as_str(), level.as_str())).collect();
    match token.repositories.as_deref() {
        None => {
            assert_eq!(permissions, stage.readable.iter().map(|name| (*name, "read")).collect());
            ""
        }
        Some(repositories) => {
            let write = [("contents", "write"), ("metadata", "read"), ("workflows", "write")];
            assert_eq!((permissions, repositories), (write.into(), [stage.id].as_slice()));
            "write "
        }
    }
}

fn assert_says_nothing_of_the_run(stage: &Stage, request: &Request) {
    let bearer = Secret::new("bearer", stage.run.bearer.rsplit('.').next().unwrap());
    let Request { path, query, headers, body, .. } = request;
    for part in [format!("{path} {query:?} {headers:?}"), String::from_utf8_lossy(body).into_owned()] {
        assert!(!bearer.is_in(&part), "{path} has the bearer");
        assert!(!part.contains(&stage.run.id), "{path} names the run");
    }
}

/// The query with its parameters by name, since not every gh has them in one order.
fn query(request: &Request) -> String {
    let Some(query) = &request.query else { return String::new() };
    let mut pairs: Vec<_> = form_urlencoded::parse(query.as_bytes()).collect();
    pairs.sort();
    let pairs: Vec<_> = pairs.iter().map(|(name, value)| format!("{name}={value}")).collect();
    format!("?{}", pairs.join("&"))
}
