//! Requests to the forge's API. They share the pool, since their bodies are small and were read whole.

use bytes::Bytes;
use gitdoor_proto::Token;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, HeaderValue, Method, Request, Response, Uri};
use hyper::body::Incoming;
use url::Url;

use super::{Upstream, UpstreamError, head};
use crate::body::Outbound;
use crate::headers;
use crate::route::Target;

/// The paths of GitHub Enterprise Server, whose REST and GraphQL lie side by side.
const ENTERPRISE_REST: &str = "/api/v3";
const ENTERPRISE_GRAPHQL: &str = "/api/graphql";

/// Where the API is.
#[derive(Debug, Clone)]
pub struct ApiSite {
    /// `https` or, for tests on loopback, `http`.
    pub scheme: Scheme,
    /// Host and port.
    pub authority: Authority,
    /// What stands before each path, without a slash at its end; mostly nothing.
    pub path: String,
}

impl ApiSite {
    /// Takes the site of a URL: scheme and authority, and its path without a slash at the end.
    #[must_use]
    pub fn new(scheme: Scheme, authority: Authority, path: &str) -> Self {
        Self { scheme, authority, path: path.trim_end_matches('/').to_owned() }
    }

    fn graphql(&self) -> String {
        match self.path.strip_suffix(ENTERPRISE_REST) {
            Some(before) => format!("{before}{ENTERPRISE_GRAPHQL}"),
            None => format!("{}/graphql", self.path),
        }
    }

    fn uri(&self, target: &str) -> Option<Uri> {
        let target: PathAndQuery = target.parse().ok()?;
        let uri = Uri::builder().scheme(self.scheme.clone()).authority(self.authority.clone());
        uri.path_and_query(target).build().ok()
    }
}

/// A request to the API.
#[derive(Debug, Clone)]
pub struct ApiRequest<'a> {
    /// What is asked.
    pub asks: Asks<'a>,
    /// The client's headers, of which the named ones go up.
    pub client: &'a HeaderMap,
    /// The token.
    pub token: &'a Token,
}

/// What is asked of the API.
#[derive(Debug, Clone)]
pub enum Asks<'a> {
    /// A REST resource, by GET or HEAD.
    Rest(&'a Method, &'a Target),
    /// A GraphQL query: the request's whole body.
    Graphql(Bytes),
}

impl ApiRequest<'_> {
    /// Whether asking twice is asking once.
    #[must_use]
    pub fn may_repeat(&self) -> bool {
        match self.asks {
            Asks::Rest(..) => true,
            Asks::Graphql(_) => false,
        }
    }
}

impl Upstream {
    /// Sends a request to the API and waits for the head of the answer.
    pub async fn send_api(&self, request: &ApiRequest<'_>) -> Result<Response<Incoming>, UpstreamError> {
        let request = self.build_api(request)?;
        head(&self.pool, request, self.config.head_timeout).await
    }

    /// The URL that a REST request goes to.
    #[must_use]
    pub fn api_url(&self, target: &Target) -> Option<Url> {
        let site = &self.config.api;
        Url::parse(&site.uri(&target.under(&site.path))?.to_string()).ok()
    }

    fn build_api(&self, request: &ApiRequest<'_>) -> Result<Request<Outbound>, UpstreamError> {
        let site = &self.config.api;
        let (method, target, body) = match &request.asks {
            Asks::Rest(method, target) => ((*method).clone(), target.under(&site.path), None),
            Asks::Graphql(body) => (Method::POST, site.graphql(), Some(body.clone())),
        };
        let credential = HeaderValue::try_from(format!("Bearer {}", request.token.expose()));
        let mut credential = credential.map_err(|_impossible| UpstreamError::Unsendable)?;
        credential.set_sensitive(true);
        let mut up = Request::new(Outbound::Full(body));
        *up.method_mut() = method;
        *up.uri_mut() = site.uri(&target).ok_or(UpstreamError::Unsendable)?;
        *up.headers_mut() = headers::upward_api(request.client, credential);
        if matches!(request.asks, Asks::Graphql(_)) {
            headers::copy(request.client, up.headers_mut(), &http::header::CONTENT_TYPE);
        }
        Ok(up)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn graphql_lies_beside_rest() {
        for (path, expected) in [
            ("", "/graphql"),
            ("/", "/graphql"),
            ("/api/v3", "/api/graphql"),
            ("/api/v3/", "/api/graphql"),
            ("/x/api/v3", "/x/api/graphql"),
            ("/x", "/x/graphql"),
        ] {
            let site = ApiSite::new(Scheme::HTTPS, Authority::from_static("api.test"), path);
            assert_eq!(site.graphql(), expected, "{path}");
        }
    }
}
