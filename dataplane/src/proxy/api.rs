//! The API: REST resources and GraphQL queries, read with a token that only reads, and answered so that a client which
//! takes the door for GitHub Enterprise stays at the door.

mod answer;
mod describe;
mod query;

use gitdoor_proto::permit::Grant;
use gitdoor_proto::{Bearer, Permit, Token};
use http::header::AUTHORIZATION;
use http::uri::PathAndQuery;
use http::{Method, Response, StatusCode};
use hyper::body::Incoming;
use tokio::time::sleep;
use url::Url;

use super::discovery::{REPLICATION, YOUNG, may_be_replication};
use super::{Allowed, Exchange, Proxy};
use crate::api::ApiRefusal;
use crate::api::links::Links;
use crate::body::Body;
use crate::gate::GateError;
use crate::headers;
use crate::metrics;
use crate::refusal::Refusal;
use crate::route::{Readings, Target};
use crate::upstream::storage::{Redirects, place};
use crate::upstream::{ApiRequest, Asks, UpstreamError};

/// Where a redirect of the API leads.
enum Leads {
    /// To the API again: this is the door's URL of it.
    Back(String),
    /// To the storage, from where the file is fetched.
    Storage(Url),
    /// Elsewhere, as the operator wants it.
    Past(Url),
}

impl Proxy {
    /// Answers a request for a REST resource.
    pub(super) async fn rest(
        &self,
        exchange: &Exchange,
        allowed: Allowed,
        target: Target,
    ) -> Result<Response<Body>, Refusal> {
        exchange.record.path(target.path());
        let method = &exchange.head.method;
        let answer = self.ask_api(exchange, &allowed.granted.permit, Asks::Rest(method, &target)).await?;
        let location = match self.leads(exchange, &answer, &target)? {
            None => None,
            Some(Leads::Back(url)) => Some(url),
            Some(Leads::Past(url)) => Some(url.into()),
            Some(Leads::Storage(url)) => return self.stored(exchange, allowed, url).await,
        };
        self.answer_api(exchange, allowed, answer, answer::Of { target: Some(&target), location })
    }

    /// Answers a GraphQL query.
    pub(super) async fn graphql(
        &self,
        exchange: &mut Exchange,
        allowed: Allowed,
    ) -> Result<Response<Body>, Refusal> {
        let query = query::read(&exchange.head.headers, &mut exchange.inbound).await?;
        let answer = self.ask_api(exchange, &allowed.granted.permit, Asks::Graphql(query)).await?;
        if answer.status().is_redirection() {
            return Err(UpstreamError::Redirect.into());
        }
        self.answer_api(exchange, allowed, answer, answer::Of { target: None, location: None })
    }

    async fn ask_api(
        &self,
        exchange: &Exchange,
        permit: &Permit,
        asks: Asks<'_>,
    ) -> Result<Response<Incoming>, Refusal> {
        let token = api_token(permit)?;
        let request = ApiRequest { asks, client: &exchange.head.headers, token };
        let mut answer = self.upstream.send_api(&request).await?;
        if token.age < YOUNG && request.may_repeat() && may_be_replication(&answer) {
            sleep(REPLICATION).await;
            answer = self.upstream.send_api(&request).await?;
        }
        exchange.record.upstream(answer.status());
        metrics::rate_limit(answer.headers());
        Ok(answer)
    }

    /// Where an answer leads, if it does.
    fn leads(
        &self,
        exchange: &Exchange,
        answer: &Response<Incoming>,
        target: &Target,
    ) -> Result<Option<Leads>, Refusal> {
        if !answer.status().is_redirection() || answer.status() == StatusCode::NOT_MODIFIED {
            return Ok(None);
        }
        let asked = self.upstream.api_url(target);
        let url = asked.and_then(|asked| headers::location(answer, &asked)).ok_or(UpstreamError::Redirect)?;
        if let Some(back) = self.links(exchange)?.rewrite(url.as_str()) {
            return Ok(Some(Leads::Back(back)));
        }
        let storage = &self.upstream.config().storage;
        match storage.redirects {
            Redirects::Pass => Ok(Some(Leads::Past(url))),
            Redirects::Follow if storage.knows(&url) => Ok(Some(Leads::Storage(url))),
            Redirects::Follow => Err(ApiRefusal::Redirect(place(&url)).into()),
        }
    }

    /// Streams a file of the storage, as it is.
    async fn stored(&self, exchange: &Exchange, allowed: Allowed, url: Url) -> Result<Response<Body>, Refusal> {
        let Exchange { head, record, .. } = exchange;
        let answer = self.upstream.fetch_stored(&head.method, url, &head.headers).await?;
        record.upstream(answer.status());
        let (stored, incoming) = answer.into_parts();
        Ok(self.pass(exchange, allowed, (stored.status, headers::downward(&stored.headers)), incoming.into()))
    }

    /// The API's URLs under the name that the client asked for.
    fn links(&self, exchange: &Exchange) -> Result<Links, Refusal> {
        let host = headers::host(&exchange.head.uri, &exchange.head.headers).ok_or(Refusal::Host)?;
        Ok(Links::new(&self.bases, host))
    }
}

impl Exchange {
    /// A bearer that stands elsewhere than in its own header would go up from there.
    pub(super) fn keep_bearer(&self, bearer: &Bearer) -> Result<(), Refusal> {
        let shows = |text: &str| text.contains(bearer.expose_secret());
        let target = self.head.uri.path_and_query().map_or("", PathAndQuery::as_str);
        let mut others = self.head.headers.iter().filter(|(name, _)| *name != AUTHORIZATION);
        let in_header = others.any(|(_, value)| value.to_str().is_ok_and(shows));
        if in_header || Readings::of(target).may_show(shows) {
            Err(ApiRefusal::BearerAstray.into())
        } else {
            Ok(())
        }
    }

    /// Whether the answer has a head alone.
    fn is_head(&self) -> bool {
        self.head.method == Method::HEAD
    }
}

/// The token that a permit grants for the API: without it nothing goes up.
fn api_token(permit: &Permit) -> Result<&Token, Refusal> {
    match permit.grant() {
        Grant::Api { token } => Ok(token),
        Grant::Verified | Grant::Described(_) | Grant::Forward { .. } => Err(GateError::Unreadable.into()),
    }
}
