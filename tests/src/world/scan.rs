//! The search for secrets where none may be: raw, base64 at any alignment, percent-encoded.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use aho_corasick::AhoCorasick;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

use super::World;
use crate::gh::HOSTS_FILE;
use crate::git::CREDENTIAL_FILE;

/// Characters of a secret that are searched for: enough to be no accident, few enough to find a cut one.
const NEEDLE: usize = 32;
/// The kind of secret that a sandbox may have.
const BEARER: &str = "bearer";
/// Files above this size are packs of test data.
const LARGEST: u64 = 8 << 20;

/// One secret in all its spellings.
#[derive(Clone)]
pub struct Secret {
    kind: &'static str,
    spellings: Vec<String>,
}

impl Secret {
    /// A secret of this kind, without a prefix that may be shown.
    pub fn new(kind: &'static str, text: &str) -> Self {
        let needle = text.get(..NEEDLE).unwrap_or(text);
        let percent = needle.bytes().map(|byte| {
            if byte.is_ascii_alphanumeric() { char::from(byte).to_string() } else { format!("%{byte:02X}") }
        });
        let mut spellings = vec![needle.to_owned(), percent.collect()];
        for shift in 0..3 {
            let shifted = [&vec![0_u8; shift], needle.as_bytes()].concat();
            spellings.push(inner(&STANDARD_NO_PAD.encode(&shifted), shift));
            spellings.push(inner(&URL_SAFE_NO_PAD.encode(&shifted), shift));
        }
        Self { kind, spellings }
    }

    /// Whether it is in here.
    pub fn is_in(&self, text: &str) -> bool {
        self.spellings.iter().any(|spelling| text.contains(spelling))
    }
}

/// The characters of a base64 text that depend on nothing but the needle.
fn inner(encoded: &str, shift: usize) -> String {
    let skip = [0, 2, 3][shift];
    encoded[skip..encoded.len() - 2].to_owned()
}

/// Many secrets, looked for in one pass.
struct Secrets {
    spellings: AhoCorasick,
    /// Of each spelling.
    kinds: Vec<&'static str>,
}

impl Secrets {
    fn new(secrets: &[Secret]) -> Self {
        let spelled = || secrets.iter().flat_map(|secret| secret.spellings.iter().map(|text| (text, secret.kind)));
        let spellings = AhoCorasick::new(spelled().map(|(text, _)| text)).expect("spellings");
        Self { spellings, kinds: spelled().map(|(_, kind)| kind).collect() }
    }

    fn assert_none_in(&self, place: &str, bytes: impl AsRef<[u8]>) {
        if let Some(found) = self.spellings.find(bytes.as_ref()) {
            panic!("a secret, {}, is in: {place}", self.kinds[found.pattern()]);
        }
    }
}

impl World {
    /// Asserts that no line of a part, no metric, no answer to a client and no file holds a bearer's secret, an
    /// installation token, a JWT or the App's key. The clients' own credential files are left out. What a client sent
    /// to somebody else may hold its bearer, and nothing of the forge.
    pub async fn scan_secrets(&self) {
        let secrets = Secrets::new(&self.secrets());
        for (part, text) in self.metrics().await {
            secrets.assert_none_in(&format!("metrics of {part}"), text);
        }
        self.scan_files_and_lines();
    }

    /// Every installation token, in all its spellings.
    pub fn token_secrets(&self) -> Vec<Secret> {
        self.github.tokens().iter().map(|token| Secret::new("installation token", &token.text[4..])).collect()
    }

    pub(crate) fn scan_files_and_lines(&self) {
        let mut all = self.secrets();
        let secrets = Secrets::new(&all);
        self.lines().iter().for_each(|line| secrets.assert_none_in("log line", line));
        for (command, printed) in self.transcript.lock().unwrap().iter() {
            secrets.assert_none_in(command, printed);
        }
        let stored = self.postgres.iter().flat_map(|postgres| files(postgres.folder()));
        for path in files(self.path()).into_iter().chain(stored) {
            secrets.assert_none_in(&path.display().to_string(), fs::read(&path).unwrap_or_default());
        }
        all.retain(|secret| secret.kind != BEARER);
        let forges = Secrets::new(&all);
        for request in self.recorder.requests() {
            forges.assert_none_in(&format!("request to {}", request.host), format!("{request:?}"));
            forges.assert_none_in("its body", &request.body);
        }
    }

    fn secrets(&self) -> Vec<Secret> {
        let mut secrets = self.token_secrets();
        let bearers = self.bearers.lock().unwrap();
        secrets.extend(bearers.iter().map(|bearer| Secret::new(BEARER, after_last_dot(bearer))));
        let mints = self.github.mints();
        let jwts = mints.iter().filter_map(|mint| mint.header("authorization"));
        secrets.extend(jwts.map(|jwt| Secret::new("JWT of the App", after_last_dot(jwt))));
        let key = fs::read_to_string(self.github.app_key_file()).expect("the App's key");
        secrets.extend(key.lines().nth(3).map(|line| Secret::new("key of the App", line)));
        secrets
    }
}

/// The secret of a bearer, the signature of a JWT.
fn after_last_dot(text: &str) -> &str {
    text.rsplit('.').next().unwrap_or(text)
}

/// All files below a folder but the clients' credentials.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(about) = entry.metadata() else { continue };
        if about.is_dir() {
            found.extend(files(&entry.path()));
        } else if about.is_file() && about.len() <= LARGEST && !holds_credential(&entry.file_name()) {
            found.push(entry.path());
        }
    }
    found
}

fn holds_credential(name: &OsStr) -> bool {
    name == CREDENTIAL_FILE || name == HOSTS_FILE
}
