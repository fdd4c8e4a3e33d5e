//! What a run may do, told to the run itself.

use bytes::Bytes;
use gitdoor_proto::permit::Grant;
use gitdoor_proto::{Permit, v1};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use serde_json::{Value, json};
use v1::Identity;

use crate::body::Body;
use crate::gate::GateError;
use crate::proxy::Exchange;
use crate::refusal::Refusal;

impl Exchange {
    /// Answers with the policy of the run.
    pub(in crate::proxy) fn describe(&self, permit: &Permit) -> Result<Response<Body>, Refusal> {
        let Grant::Described(run) = permit.grant() else { return Err(GateError::Unreadable.into()) };
        let text = format!("{:#}\n", describe(run));
        let body = if self.is_head() { Bytes::new() } else { text.into() };
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json; charset=utf-8"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        Ok(self.respond(StatusCode::OK, headers, Body::full(body, self.record.clone())))
    }
}

fn describe(run: &v1::Run) -> Value {
    let options = run.options.clone().unwrap_or_default();
    let binding = run.binding.as_ref();
    json!({
        "run_id": run.run_id,
        "identity": identity(run.identity()),
        "state": "live",
        "expires_at": run.expires_at.as_ref().map(ToString::to_string),
        "repository": binding.map(|binding| &binding.repository),
        "repository_id": binding.map(|binding| binding.repository_id),
        "default_branch": binding.map(|binding| &binding.default_branch),
        "push": (run.identity() == Identity::Write).then(|| push(binding, &options)),
        "api": {
            "methods": ["GET", "HEAD"],
            "graphql": ["query"],
            "burst": options.api_burst,
            "rate": options.api_rate,
            "repositories": (!options.read_repositories.is_empty()).then_some(&options.read_repositories),
        },
        "summary": summary(run, &options),
    })
}

fn identity(identity: Identity) -> &'static str {
    match identity {
        Identity::Unspecified | Identity::None => "none",
        Identity::Read => "read",
        Identity::Write => "write",
    }
}

fn push(binding: Option<&v1::Binding>, options: &v1::RunOptions) -> Value {
    json!({
        "branches": (!options.branches.is_empty()).then_some(&options.branches),
        "except": binding.map(|binding| &binding.default_branches),
        "max_refs": (options.max_refs > 0).then_some(options.max_refs),
        "workflows": !options.no_workflows,
        "deletes": false,
        "tags": false,
    })
}

/// The same in words, for whoever reads only those.
fn summary(run: &v1::Run, options: &v1::RunOptions) -> String {
    let reads = match options.read_repositories.as_slice() {
        [] => "read every repository of the installation".to_owned(),
        names => format!("read {}", names.join(", ")),
    };
    let branches = match options.branches.as_slice() {
        [] => "branches".to_owned(),
        patterns => format!("branches that match {}", patterns.join(", ")),
    };
    match (run.identity(), &run.binding) {
        (Identity::Unspecified | Identity::None, _) => "This run has no access.".to_owned(),
        (Identity::Read, _) => format!("This run may {reads} with git, and through the API; it may not push."),
        (Identity::Write, None) => format!(
            "This run may {reads} with git, and through the API; it may push {branches} other than the default one, \
             no tags and no deletes, of the first repository that it pushes to."
        ),
        (Identity::Write, Some(binding)) => format!(
            "This run may {reads} with git, and through the API; it may push {branches} of {} other than {}, no tags \
             and no deletes.",
            binding.repository,
            binding.default_branches.join(", "),
        ),
    }
}
