//! Discovery: the advertisement of a service. A first push discovery that the forge confirms binds the run.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use gitdoor_proto::permit::Grant;
use gitdoor_proto::{Bearer, RepositoryName, Token};
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use http::response::Parts;
use http::{HeaderMap, Response, StatusCode};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::time::{sleep, timeout};

use super::{Allowed, Exchange, Proxy, forwardable};
use crate::body::{Answer, Body, Outbound, Watch};
use crate::gate::Granted;
use crate::git::advertisement::Rewriter;
use crate::headers;
use crate::intent;
use crate::refusal::Refusal;
use crate::route::Service;
use crate::upstream::{GitRequest, UpstreamError, is_redirect};

/// A token this young may not have reached every replica of the forge.
pub(super) const YOUNG: Duration = Duration::from_secs(30);
/// Time for it to do so.
pub(super) const REPLICATION: Duration = Duration::from_secs(1);

impl Proxy {
    /// Asks the forge for an advertisement and passes it on.
    pub(super) async fn discover(
        &self,
        exchange: &mut Exchange,
        bearer: &Bearer,
        allowed: Allowed,
        service: Service,
        asked: RepositoryName,
    ) -> Result<Response<Body>, Refusal> {
        let (repository, _) = forwardable(&allowed.granted.permit)?;
        let (allowed, answered) = match self.ask(exchange, &allowed.granted, service, repository, None).await? {
            Asked::Answered(answered) => (allowed, answered),
            Asked::Moved(name) => {
                tracing::info!(request_id = exchange.record.id(), from = %asked, to = %name, "renamed repository");
                self.discover_renamed(exchange, bearer, allowed, service, &name).await?
            }
        };
        expect(&answered.head.headers, service, "advertisement")?;
        match service {
            Service::UploadPack => Ok(self.relay(exchange, allowed, answered)),
            Service::ReceivePack => self.advertise(exchange, allowed, answered).await,
        }
    }

    /// Follows a rename, one hop: a push is judged again under the new name.
    async fn discover_renamed(
        &self,
        exchange: &Exchange,
        bearer: &Bearer,
        mut allowed: Allowed,
        service: Service,
        name: &RepositoryName,
    ) -> Result<(Allowed, Box<Answered>), Refusal> {
        match service {
            Service::UploadPack => {}
            Service::ReceivePack => {
                let question = intent::discovery(name, true);
                allowed.granted = self.grant(exchange, bearer, question).await?;
            }
        }
        let asked = self.ask(exchange, &allowed.granted, service, name, None).await?;
        Ok((allowed, asked.or(UpstreamError::Redirect)?))
    }

    /// Sends what may be sent again: a discovery, or a fetch whose whole body is held.
    pub(super) async fn ask(
        &self,
        exchange: &Exchange,
        granted: &Granted,
        service: Service,
        repository: &RepositoryName,
        body: Option<Bytes>,
    ) -> Result<Asked, Refusal> {
        let (_, token) = forwardable(&granted.permit)?;
        let client = &exchange.head.headers;
        let discovery = body.is_none();
        let mut request = GitRequest { discovery, service, repository, client, token, length: None };
        let mut answer = self.upstream.send(request, Outbound::Full(body.clone())).await?;
        let replaced;
        if token.age < YOUNG && may_be_replication(&answer) {
            sleep(REPLICATION).await;
            answer = self.upstream.send(request, Outbound::Full(body.clone())).await?;
        }
        if answer.status() == StatusCode::UNAUTHORIZED {
            replaced = self.gate.replace_token(granted, token).await?;
            request.token = &replaced;
            answer = self.upstream.send(request, Outbound::Full(body)).await?;
        }
        exchange.record.upstream(answer.status());
        if is_redirect(answer.status()) {
            let name = self.upstream.redirect(&answer, &request).ok_or(UpstreamError::Redirect)?;
            return Ok(Asked::Moved(name));
        }
        match UpstreamError::of(answer.status(), answer.headers()) {
            None => Ok(Asked::Answered(Box::new(Answered::of(answer, request.token)?))),
            Some(error) => Err(error.into()),
        }
    }

    /// Passes an answer on as it is.
    pub(super) fn relay(&self, exchange: &Exchange, allowed: Allowed, answered: Box<Answered>) -> Response<Body> {
        let Answered { head, body } = *answered;
        self.pass(exchange, allowed, (head.status, headers::downward(&head.headers)), body)
    }

    /// Passes a push advertisement on, without what the door would refuse. No ref leaves before the run is bound.
    async fn advertise(
        &self,
        exchange: &Exchange,
        allowed: Allowed,
        answered: Box<Answered>,
    ) -> Result<Response<Body>, Refusal> {
        let Answered { mut head, mut body } = *answered;
        body.first = self.confirm(&mut body.incoming).await?;
        if let Grant::Forward { bind: true, .. } = allowed.granted.permit.grant() {
            self.gate.bind(&allowed.granted).await?;
        }
        head.headers.remove(CONTENT_LENGTH);
        let down = headers::downward(&head.headers);
        Ok(self.pass(exchange, allowed, (head.status, down), body))
    }

    /// Reads until the advertisement has shown that it is one; returns what of it may go on.
    async fn confirm(&self, incoming: &mut Incoming) -> Result<Bytes, UpstreamError> {
        let mut rewriter = Rewriter::new();
        let mut first = BytesMut::new();
        while !rewriter.confirmed() {
            let frame = timeout(self.upstream.config().idle_timeout, incoming.frame()).await;
            let frame = frame.map_err(|_elapsed| UpstreamError::Silent)?;
            let frame = frame.ok_or(UpstreamError::NotGit)?.map_err(|_broken| UpstreamError::Cut)?;
            if let Ok(bytes) = frame.into_data() {
                first.extend_from_slice(&rewriter.push(&bytes).map_err(|_malformed| UpstreamError::NotGit)?);
            }
        }
        Ok(first.freeze())
    }
}

/// What became of a question to the forge.
pub(super) enum Asked {
    Answered(Box<Answered>),
    /// The repository has this name now.
    Moved(RepositoryName),
}

impl Asked {
    /// The answer; a repository that has moved is this error.
    pub(super) fn or(self, moved: UpstreamError) -> Result<Box<Answered>, UpstreamError> {
        match self {
            Self::Answered(answered) => Ok(answered),
            Self::Moved(_) => Err(moved),
        }
    }
}

/// An answer that may be passed on: neither its head nor what will be passed on of its body shows the token.
pub(super) struct Answered {
    pub(super) head: Parts,
    pub(super) body: Answer,
}

impl Answered {
    /// The answer to a request that went up with this token.
    pub(super) fn of(answer: Response<Incoming>, token: &Token) -> Result<Self, UpstreamError> {
        let (head, incoming) = answer.into_parts();
        let watch = Watch::new(token, false);
        watch.head(&head.headers)?;
        Ok(Self { head, body: Answer::watched(incoming, watch) })
    }
}

/// Whether an answer may come from a replica that does not know the token yet. A limit of the forge's is none: to ask
/// again at once is what it forbids.
pub(super) fn may_be_replication(answer: &Response<Incoming>) -> bool {
    match UpstreamError::of(answer.status(), answer.headers()) {
        Some(UpstreamError::Unauthorized | UpstreamError::Forbidden) => true,
        Some(_) | None => false,
    }
}

/// An answer of another media type makes git fall back to dumb HTTP, and a fetch then does nothing and succeeds.
pub(super) fn expect(head: &HeaderMap, service: Service, kind: &str) -> Result<(), UpstreamError> {
    let media = head.get(CONTENT_TYPE).and_then(|media| media.to_str().ok()).unwrap_or_default();
    let media = media.split(';').next().unwrap_or_default().trim();
    if !media.eq_ignore_ascii_case(&format!("application/x-{}-{kind}", service.as_str())) {
        return Err(UpstreamError::NotGit);
    }
    match service {
        // It is read here, and was asked for as it is.
        Service::ReceivePack if is_coded(head) => Err(UpstreamError::Coded),
        Service::ReceivePack | Service::UploadPack => Ok(()),
    }
}

/// Whether an answer is in a coding.
fn is_coded(headers: &HeaderMap) -> bool {
    headers.get_all(CONTENT_ENCODING).iter().any(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity"))
}
