//! Plain HTTP, by a client that keeps its connections, as an agent's would.

use std::fs;

use gitdoor_proto::Bearer;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Certificate, Client};

use super::Unusable;
use super::args::Args;

/// A client with a run's bearer.
pub(super) struct Web {
    client: Client,
}

impl Web {
    /// It follows no redirect, and uses no proxy: what is measured is the door.
    pub(super) fn new(args: &Args, bearer: &Bearer) -> Result<Self, Unusable> {
        let mut headers = HeaderMap::new();
        // A bearer is plain text of which no header is made that could not be.
        if let Ok(mut credential) = HeaderValue::from_str(&format!("Bearer {}", bearer.expose())) {
            credential.set_sensitive(true);
            headers.insert(AUTHORIZATION, credential);
        }
        let builder =
            Client::builder().default_headers(headers).redirect(Policy::none()).no_proxy().https_only(true);
        let builder = builder.user_agent("gitdoor-load");
        let Some(path) = &args.ca else { return Ok(Self { client: builder.build()? }) };
        let unusable = || Unusable::Authorities { path: path.display().to_string() };
        let pem = fs::read(path).map_err(|_unreadable| unusable())?;
        let authorities = Certificate::from_pem_bundle(&pem).map_err(|_other| unusable())?;
        if authorities.is_empty() {
            return Err(unusable());
        }
        Ok(Self { client: builder.tls_certs_only(authorities).build()? })
    }

    /// Reads an answer to its end: its bytes, or why there is none, by the door's code where it has one.
    pub(super) async fn get(&self, url: &str) -> Result<u64, String> {
        let sent = self.client.get(url).send().await;
        let mut answer =
            sent.map_err(|why| if why.is_connect() { "unreachable" } else { "no answer" }.to_owned())?;
        let status = answer.status();
        let code = answer.headers().get("x-gitdoor-reason").and_then(|code| code.to_str().ok()).map(str::to_owned);
        let mut bytes = 0;
        while let Some(chunk) = answer.chunk().await.map_err(|_broken| "broken off".to_owned())? {
            bytes += chunk.len() as u64;
        }
        if status.is_success() { Ok(bytes) } else { Err(code.unwrap_or_else(|| format!("status {status}"))) }
    }
}
