//! The rate limits of the installation, which really count down.

use std::collections::BTreeMap;
use std::sync::Mutex;

use hyper::http::request;
use serde_json::{Value, json};

/// Names of the limits, what each allows in a window, and the window in seconds.
const LIMITS: [(&str, u64, i64); 4] =
    [("core", 5000, 3600), ("search", 30, 60), ("code_search", 10, 60), ("graphql", 5000, 3600)];

/// All limits.
#[derive(Debug)]
pub(crate) struct Limits(Mutex<BTreeMap<&'static str, Limit>>);

/// One limit in its present window.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limit {
    resource: &'static str,
    allowed: u64,
    used: u64,
    window: i64,
    reset: i64,
}

impl Default for Limits {
    fn default() -> Self {
        let limits = LIMITS
            .map(|(resource, allowed, window)| (resource, Limit { resource, allowed, used: 0, window, reset: 0 }));
        Self(Mutex::new(limits.into()))
    }
}

impl Limits {
    /// Counts a request; false if it is one too many.
    pub(crate) fn spend(&self, resource: &str, now: i64) -> (Limit, bool) {
        let mut limits = self.0.lock().unwrap();
        let limit = limits.get_mut(resource).expect("a limit");
        limit.turn(now);
        let within = limit.used < limit.allowed;
        limit.used += u64::from(within);
        (*limit, within)
    }

    /// Takes back what was counted last: an answer that nothing has changed costs nothing.
    pub(crate) fn give_back(&self, resource: &str) -> Limit {
        let mut limits = self.0.lock().unwrap();
        let limit = limits.get_mut(resource).expect("a limit");
        limit.used = limit.used.saturating_sub(1);
        *limit
    }

    /// Changes what one allows.
    pub(crate) fn set(&self, resource: &str, allowed: u64) {
        self.0.lock().unwrap().get_mut(resource).expect("core, search, code_search or graphql").allowed = allowed;
    }

    /// `GET /rate_limit`.
    pub(crate) fn to_json(&self, now: i64) -> Value {
        let mut limits = self.0.lock().unwrap();
        limits.values_mut().for_each(|limit| limit.turn(now));
        let resources: Value = limits.values().map(|limit| (limit.resource.to_owned(), limit.to_json())).collect();
        json!({ "rate": resources["core"].clone(), "resources": resources })
    }
}

impl Limit {
    /// Begins a new window if this one is over.
    fn turn(&mut self, now: i64) {
        if self.reset <= now {
            self.reset = now + self.window;
            self.used = 0;
        }
    }

    /// As `GET /rate_limit` and GraphQL show it.
    pub(crate) fn to_json(self) -> Value {
        json!({
            "limit": self.allowed,
            "used": self.used,
            "remaining": self.allowed.saturating_sub(self.used),
            "reset": self.reset,
            "resource": self.resource,
        })
    }

    /// The headers that every answer has.
    pub(crate) fn headers(self) -> [(&'static str, String); 5] {
        [
            ("x-ratelimit-limit", self.allowed.to_string()),
            ("x-ratelimit-remaining", self.allowed.saturating_sub(self.used).to_string()),
            ("x-ratelimit-reset", self.reset.to_string()),
            ("x-ratelimit-used", self.used.to_string()),
            ("x-ratelimit-resource", self.resource.to_owned()),
        ]
    }
}

/// Which limit a request counts against.
pub(crate) fn resource(head: &request::Parts) -> &'static str {
    match head.uri.path() {
        "/graphql" => "graphql",
        "/search/code" => "code_search",
        path if path.starts_with("/search/") => "search",
        _ => "core",
    }
}
