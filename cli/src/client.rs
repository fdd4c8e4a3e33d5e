//! How control is asked: one call at a time.
//!
//! Controls are asked in the order they were given. Another is asked only when one could not be connected to or
//! answered that it is unavailable: after a silence it is not known what was done, and a late rotation would kill
//! the bearer that another control had just given out.

use std::error::Error;
use std::time::Duration;

use gitdoor_proto::endpoint::{Connector, Endpoint, TlsFiles, Unusable};
use gitdoor_proto::v1::runs_client::RunsClient;
use gitdoor_proto::v1::tokens_client::TokensClient;
use tonic::transport::Channel;
use tonic::{Code, Response, Status};

use crate::failure::{Attempt, Failure};

/// The controls, and how long each is waited for.
#[derive(Debug)]
pub(crate) struct Client {
    controls: Vec<Endpoint>,
    connector: Connector,
    patience: Duration,
}

impl Client {
    /// A client of these controls, all of which must be usable.
    pub(crate) fn new(controls: Vec<Endpoint>, tls: &TlsFiles, patience: Duration) -> Result<Self, Unusable> {
        let connector = Connector::new(&controls, tls)?;
        Ok(Self { controls, connector, patience })
    }

    /// The same client, waiting longer.
    pub(crate) fn with_patience(self, more: Duration) -> Self {
        Self { patience: self.patience.saturating_add(more), ..self }
    }

    /// Puts one question about runs, to the first control that can be asked.
    pub(crate) async fn ask<T>(
        &self,
        question: impl AsyncFn(RunsClient<Channel>) -> Result<Response<T>, Status>,
    ) -> Result<T, Failure> {
        self.put(async |channel| question(RunsClient::new(channel)).await).await
    }

    /// Puts one question about tokens, likewise.
    pub(crate) async fn ask_tokens<T>(
        &self,
        question: impl AsyncFn(TokensClient<Channel>) -> Result<Response<T>, Status>,
    ) -> Result<T, Failure> {
        self.put(async |channel| question(TokensClient::new(channel)).await).await
    }

    async fn put<T>(&self, question: impl AsyncFn(Channel) -> Result<Response<T>, Status>) -> Result<T, Failure> {
        let mut attempts = Vec::new();
        let mut unavailable = None;
        for control in &self.controls {
            match tokio::time::timeout(self.patience, self.ask_one(control, &question)).await {
                Ok(Answer::Given(answer)) => return Ok(answer),
                Ok(Answer::Refused(status)) => return Err(Failure::Refused(status)),
                Ok(Answer::Unreachable(cause)) => attempts.push(Attempt { control: control.to_string(), cause }),
                Ok(Answer::Unavailable(status)) => unavailable = Some(status),
                Err(_elapsed) => {
                    return Err(Failure::Silent { control: control.to_string(), patience: self.patience });
                }
            }
        }
        // What a control said tells more than that others were not there.
        Err(unavailable.map_or(Failure::Unreachable(attempts), Failure::Refused))
    }

    async fn ask_one<T>(
        &self,
        control: &Endpoint,
        question: &impl AsyncFn(Channel) -> Result<Response<T>, Status>,
    ) -> Answer<T> {
        let channel = match self.connect(control).await {
            Ok(channel) => channel,
            Err(cause) => return Answer::Unreachable(cause),
        };
        match question(channel).await {
            Ok(answer) => Answer::Given(answer.into_inner()),
            Err(status) if status.code() == Code::Unavailable => Answer::Unavailable(Box::new(status)),
            Err(status) => Answer::Refused(Box::new(status)),
        }
    }

    /// Connects to the first place of a control that is there.
    async fn connect(&self, control: &Endpoint) -> Result<Channel, String> {
        let addresses = control.resolve().await.map_err(|error| root_cause(&error))?;
        let mut cause = "its name leads nowhere".to_owned();
        for address in addresses {
            match self.connector.connect(&address).await {
                Ok(channel) => return Ok(channel),
                Err(error) => cause = root_cause(&error),
            }
        }
        Err(cause)
    }
}

enum Answer<T> {
    Given(T),
    Refused(Box<Status>),
    /// It was not asked.
    Unreachable(String),
    /// It says that it cannot now; another may.
    Unavailable(Box<Status>),
}

/// The innermost cause: "connection refused" says more than "transport error".
pub(crate) fn root_cause(error: &dyn Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}
