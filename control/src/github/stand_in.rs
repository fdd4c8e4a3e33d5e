//! A stand-in for GitHub's API on loopback: checks the App's JWT, mints what is asked, keeps every request, and can
//! be told to answer otherwise.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use rcgen::{KeyPair, PKCS_RSA_SHA256, RsaKeySize};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::{Config, GitHub};

/// The tests' time, in seconds of the epoch.
pub(super) const NOW: u64 = 1_800_000_000;
pub(super) const INSTALLATION: u64 = 77;
pub(super) const APP: &str = "1234";
/// The id of `acme/api`; another repository's is made of its name.
pub(super) const API: u64 = 42;
/// Length of the tokens given: longer than any that GitHub announced.
const TOKEN_CHARS: usize = 2048;

pub(super) fn now() -> SystemTime {
    at(0)
}

/// The tests' time, some seconds on.
pub(super) fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(NOW + seconds)
}

/// An App's key pair, in the forms it comes in.
pub(super) struct Keys(KeyPair);

impl Keys {
    pub(super) fn generate() -> Self {
        Self(KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048).unwrap())
    }

    pub(super) fn pkcs8(&self) -> String {
        self.0.serialize_pem()
    }

    /// What PKCS#8 wraps, after a header of 26 bytes for keys of this size.
    pub(super) fn pkcs1(&self) -> String {
        let encoded = STANDARD.encode(&self.0.serialized_der()[26..]);
        let lines: Vec<_> = encoded.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).unwrap()).collect();
        format!("-----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----\n", lines.join("\n"))
    }

    pub(super) fn public(&self) -> String {
        self.0.public_key_pem()
    }

    /// The claims of a JWT of this key.
    pub(super) fn verify(&self, jwt: &str) -> Option<Value> {
        let mut validation = Validation::new(Algorithm::RS256);
        validation.validate_exp = false;
        let key = DecodingKey::from_rsa_pem(self.public().as_bytes()).unwrap();
        jsonwebtoken::decode(jwt, &key, &validation).ok().map(|data| data.claims)
    }
}

/// One request as it came.
#[derive(Clone)]
pub(super) struct Seen {
    /// Method and path.
    pub(super) line: String,
    pub(super) headers: HeaderMap,
    pub(super) body: String,
}

/// An answer that the stand-in was told to give.
#[derive(Clone)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: String,
}

impl Reply {
    pub(super) fn new(status: u16, message: &str) -> Self {
        Self { status, headers: Vec::new(), body: json!({ "message": message }).to_string() }
    }

    pub(super) fn json(body: &Value) -> Self {
        Self { status: 200, headers: Vec::new(), body: body.to_string() }
    }

    pub(super) fn with(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_string()));
        self
    }
}

type Spoil = Box<dyn Fn(&mut Value) + Send>;

#[derive(Default)]
struct State {
    seen: Vec<Seen>,
    replies: VecDeque<Reply>,
    spoil: Option<Spoil>,
    minted: usize,
}

/// The server; it ends with the test's runtime.
pub(super) struct StandIn {
    state: Arc<Mutex<State>>,
    url: String,
}

fn keys() -> &'static Keys {
    static KEYS: OnceLock<Keys> = OnceLock::new();
    KEYS.get_or_init(Keys::generate)
}

impl StandIn {
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::<Mutex<State>>::default();
        let accepting = Arc::clone(&state);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let state = Arc::clone(&accepting);
                let service = service_fn(move |request| answer(Arc::clone(&state), request));
                tokio::spawn(
                    hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service),
                );
            }
        });
        Self { state, url }
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// A client of this server.
    pub(super) fn github(&self) -> GitHub {
        Self::github_as(config(&self.url))
    }

    /// A client of this server with other settings.
    pub(super) fn github_with_statuses(&self) -> GitHub {
        Self::github_as(Config { statuses: true, ..config(&self.url) })
    }

    fn github_as(config: Config) -> GitHub {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), keys().pkcs1()).unwrap();
        GitHub::new(&Config { app_key: file.path().to_owned(), ..config }).unwrap()
    }

    /// Answers the next request with this.
    pub(super) fn reply(&self, reply: Reply) {
        self.state.lock().unwrap().replies.push_back(reply);
    }

    /// Changes each answer that would be right.
    pub(super) fn spoil(&self, spoil: impl Fn(&mut Value) + Send + 'static) {
        self.state.lock().unwrap().spoil = Some(Box::new(spoil));
    }

    pub(super) fn seen(&self) -> Vec<Seen> {
        self.state.lock().unwrap().seen.clone()
    }

    /// Method and path of each request.
    pub(super) fn lines(&self) -> Vec<String> {
        self.seen().into_iter().map(|seen| seen.line).collect()
    }
}

pub(super) fn config(url: &str) -> Config {
    Config {
        api_url: url.to_owned(),
        ca: None,
        app_id: APP.to_owned(),
        app_key: "/nonexistent".into(),
        installation_id: INSTALLATION,
        statuses: false,
        connect_timeout: Duration::from_secs(5),
        overall_timeout: Duration::from_secs(5),
    }
}

async fn answer(state: Arc<Mutex<State>>, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let line = format!("{} {}", request.method(), request.uri());
    let (parts, mut incoming) = request.into_parts();
    let mut body = Vec::new();
    while let Some(frame) = incoming.frame().await {
        body.extend_from_slice(&frame.unwrap().into_data().unwrap());
    }
    let seen = Seen { line, headers: parts.headers, body: String::from_utf8(body).unwrap() };
    let mut state = state.lock().unwrap();
    state.seen.push(seen.clone());
    let reply = state.replies.pop_front().unwrap_or_else(|| state.usual(&seen));
    let mut response = Response::builder().status(reply.status);
    for (name, value) in reply.headers {
        response = response.header(name, value);
    }
    Ok(response.body(Full::from(reply.body)).unwrap())
}

impl State {
    fn usual(&mut self, seen: &Seen) -> Reply {
        let credential = seen.headers["authorization"].to_str().unwrap().strip_prefix("Bearer ").unwrap();
        let (status, mut body) = match seen.line.as_str() {
            "POST /app/installations/77/access_tokens" => {
                let Some(time) = time_of(credential) else {
                    return Reply::new(401, "A JSON web token could not be decoded");
                };
                self.minted += 1;
                (201, minted(&serde_json::from_str(&seen.body).unwrap(), self.minted, time))
            }
            "GET /repositories/42" if credential.starts_with("ghs_") => {
                (200, json!({ "id": API, "full_name": "acme/api", "default_branch": "trunk" }))
            }
            "DELETE /installation/token" if credential.starts_with("ghs_") => (204, Value::Null),
            _ => return Reply::new(401, "Bad credentials"),
        };
        if let Some(spoil) = self.spoil.as_ref().filter(|_| body.is_object()) {
            spoil(&mut body);
        }
        Reply { status, headers: Vec::new(), body: if status == 204 { String::new() } else { body.to_string() } }
    }
}

/// Checks an App's JWT as GitHub does, and tells the time at which it was signed.
fn time_of(jwt: &str) -> Option<SystemTime> {
    let claims = keys().verify(jwt)?;
    let (iat, exp) = (claims["iat"].as_u64()?, claims["exp"].as_u64()?);
    (claims["iss"] == APP && exp - iat <= 600).then(|| UNIX_EPOCH + Duration::from_secs(iat + 60))
}

/// What GitHub answers to this request.
fn minted(asked: &Value, number: usize, time: SystemTime) -> Value {
    let repository =
        |id: u64, name: &str| json!({ "id": id, "full_name": format!("acme/{name}"), "private": true });
    let named = asked["repositories"].as_array().map(|names| {
        let listed = names.iter().map(|name| repository(id_of(name.as_str().unwrap()), name.as_str().unwrap()));
        listed.collect::<Vec<_>>()
    });
    let numbered = asked["repository_ids"].as_array().map(|ids| vec![repository(ids[0].as_u64().unwrap(), "api")]);
    let mut answer = json!({
        "token": format!("ghs_{number}_{}", "x.Y-".repeat(TOKEN_CHARS / 4)),
        "expires_at": humantime::format_rfc3339_seconds(time + Duration::from_hours(1)).to_string(),
        "permissions": asked["permissions"],
        "repository_selection": "all",
    });
    if let Some(repositories) = named.or(numbered) {
        answer["repositories"] = repositories.into();
        answer["repository_selection"] = "selected".into();
    }
    answer
}

fn id_of(name: &str) -> u64 {
    if name.eq_ignore_ascii_case("api") { API } else { name.bytes().map(u64::from).sum() }
}
