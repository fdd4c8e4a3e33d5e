//! The door, asked with the workspace's bearer what its run may do (`GET /api/v3/gitdoor/run`), and whether it gets
//! anything from GitHub: `GET /api/v3/rate_limit`, which any token may ask and GitHub does not count.

use std::fs;
use std::path::Path;
use std::time::Duration;

use gitdoor_proto::Bearer;
use reqwest::header::{AUTHORIZATION, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Certificate, Client, StatusCode};
use serde::{Deserialize, Serialize};

use super::gh;
use super::surroundings::{Surroundings, text_of};
use crate::bearer;
use crate::client::root_cause;
use crate::env::{CONFIG, Door, EnvError};

/// How long the door may take.
const LIMIT: Duration = Duration::from_secs(10);
/// Most bytes of an answer.
const ANSWER_BYTES: usize = 64 << 10;

/// What a run may do, as the door says.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Run {
    #[serde(rename = "run_id")]
    pub(crate) id: String,
    pub(crate) identity: String,
    pub(crate) state: String,
    pub(crate) repository: Option<String>,
    pub(crate) expires_at: Option<String>,
    /// In words.
    pub(crate) summary: String,
    /// What may be pushed; null for a run that only reads.
    pub(crate) push: Option<serde_json::Value>,
}

/// How the door stands to the workspace.
#[derive(Debug)]
pub(crate) enum Standing {
    /// No door is known here.
    Unknown,
    /// No answer.
    Unreachable { host: String, cause: String },
    /// It does not take the bearer, or is no door.
    Refused { host: String, words: String },
    /// It does, and has no token that GitHub takes.
    CutOff { host: String, run: Run, words: String },
    /// It does, and all is well behind it.
    Open { host: String, run: Run },
}

/// Whom to ask, and with what.
pub(super) struct Asking {
    known: Option<(Door, Bearer)>,
    authorities: Vec<Certificate>,
}

impl Asking {
    /// As the flags say.
    pub(super) fn of_flags(
        host: Option<&Door>,
        bearer_file: Option<&Path>,
        ca: Option<&Path>,
    ) -> Result<Self, EnvError> {
        let known = host.zip(bearer_file).map(|(host, file)| Ok((host.clone(), bearer::read(file)?)));
        Ok(Self { known: known.transpose()?, authorities: ca.map(authorities).transpose()?.unwrap_or_default() })
    }

    /// Where the flags do not say, as gh's variables and files do.
    pub(super) fn or_known(self, surroundings: &Surroundings) -> Self {
        Self { known: self.known.or_else(|| known(surroundings)), ..self }
    }

    /// Asks.
    pub(super) async fn ask(self) -> Standing {
        let Some((door, bearer)) = self.known else { return Standing::Unknown };
        let host = door.to_string();
        match examine(&door, &bearer, self.authorities, host.clone()).await {
            Ok(standing) => standing,
            Err(why) => Standing::Unreachable { host, cause: root_cause(&why) },
        }
    }
}

async fn examine(
    door: &Door,
    bearer: &Bearer,
    authorities: Vec<Certificate>,
    host: String,
) -> Result<Standing, reqwest::Error> {
    let client = client(door, authorities)?;
    let (status, body) = exchange(&client, door, bearer, "gitdoor/run").await?;
    if status != StatusCode::OK {
        return Ok(Standing::Refused { host, words: words(status, &body, bearer) });
    }
    let Ok(run) = serde_json::from_slice(&body) else {
        return Ok(Standing::Refused { host, words: "what answers there is no door".to_owned() });
    };
    let (status, body) = exchange(&client, door, bearer, "rate_limit").await?;
    // A run that has spent its budget has still a door that works.
    if status.is_success() || status == StatusCode::TOO_MANY_REQUESTS {
        return Ok(Standing::Open { host, run });
    }
    Ok(Standing::CutOff { host, run, words: words(status, &body, bearer) })
}

/// The one host that gh has a bearer for, where gh finds it.
fn known(surroundings: &Surroundings) -> Option<(Door, Bearer)> {
    let named = surroundings.variable("GH_HOST");
    let stored = gh::files(surroundings).iter().find_map(|file| {
        let text = text_of(file)?;
        let (door, bearer) = gh::tokens(&text).into_iter().find_map(|(host, token)| {
            let is_it = named.is_none_or(|named| named.eq_ignore_ascii_case(host));
            if is_it { Door::parse(host).ok().zip(Bearer::parse(token).ok()) } else { None }
        })?;
        let socket = text_of(&file.with_file_name(CONFIG)).and_then(|config| gh::socket(&config));
        Some((socket.into_iter().fold(door, Door::at), bearer))
    });
    let variable = || Bearer::parse(surroundings.variable("GH_ENTERPRISE_TOKEN")?).ok();
    stored.or_else(|| Door::parse(named?).ok().zip(variable()))
}

fn authorities(path: &Path) -> Result<Vec<Certificate>, EnvError> {
    let unreadable = |why| EnvError::Unreadable { flag: "--ca", path: path.to_owned(), why };
    let pem = fs::read(path).map_err(unreadable)?;
    match Certificate::from_pem_bundle(&pem) {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) | Err(_) => Err(EnvError::NoCertificate(path.to_owned())),
    }
}

/// Goes by the socket, or by the proxy that git and gh would take, and nowhere else.
fn client(door: &Door, authorities: Vec<Certificate>) -> Result<Client, reqwest::Error> {
    let builder = Client::builder().redirect(Policy::none()).timeout(LIMIT);
    let builder = match door.socket() {
        Some(socket) => builder.unix_socket(socket),
        None => builder.https_only(true),
    };
    let builder = if authorities.is_empty() { builder } else { builder.tls_certs_only(authorities) };
    builder.build()
}

/// Reads what is at this path of the API.
async fn exchange(
    client: &Client,
    door: &Door,
    bearer: &Bearer,
    path: &str,
) -> Result<(StatusCode, Vec<u8>), reqwest::Error> {
    let mut request = client.get(format!("{}/api/v3/{path}", door.url()));
    // A bearer is plain text of which no header is made that could not be.
    if let Ok(mut credential) = HeaderValue::from_str(&format!("token {}", bearer.expose())) {
        credential.set_sensitive(true);
        request = request.header(AUTHORIZATION, credential);
    }
    let mut answer = request.send().await?;
    let mut body = Vec::new();
    while let Some(chunk) = answer.chunk().await?.filter(|_| body.len() < ANSWER_BYTES) {
        body.extend_from_slice(&chunk);
    }
    Ok((answer.status(), body))
}

/// What the answer says of itself. Whoever answers has the bearer, and could have put it there.
fn words(status: StatusCode, body: &[u8], bearer: &Bearer) -> String {
    #[derive(Deserialize)]
    struct Message {
        message: String,
    }
    match serde_json::from_slice(body) {
        Ok(Message { message }) if !message.contains(bearer.expose_secret()) => message,
        Ok(_) | Err(_) => format!("it answers {status}"),
    }
}
