//! A real Prometheus, the distribution's, that scrapes a world: its port and its data are its own, and it ends with the
//! test. And promtool, which comes with it.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStderr, Command};
use tokio::sync::oneshot;
use url::form_urlencoded::Serializer;

use crate::raw::{Door, Request};
use crate::wait::until;

/// How long it may take to serve.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long promtool may take, which computes as fast as the machine lets it.
const CHECKED: Duration = Duration::from_secs(100);

/// A running one.
pub struct Prometheus {
    address: SocketAddr,
    log: Arc<Mutex<Vec<String>>>,
    _process: Child,
}

impl Prometheus {
    /// Starts it with this configuration; it keeps its data in this folder, which is made.
    pub async fn start(folder: &Path, configuration: &str) -> Self {
        fs::create_dir(folder).expect("a folder");
        let file = folder.join("prometheus.yml");
        fs::write(&file, configuration).expect("a file");
        let mut command = command("prometheus");
        command.arg("--web.listen-address=127.0.0.1:0").arg(format!("--config.file={}", file.display()));
        command.arg(format!("--storage.tsdb.path={}", folder.join("data").display()));
        let mut process = command.spawn().expect("Debian's package prometheus: `tests/run machine` installs it");
        let log = Arc::default();
        let (tell, told) = oneshot::channel();
        tokio::spawn(follow(process.stderr.take().expect("a pipe"), Arc::clone(&log), tell));
        let told = tokio::time::timeout(PATIENCE, told).await.ok().and_then(Result::ok);
        let address = told.unwrap_or_else(|| panic!("Prometheus does not serve: {:#?}", log.lock().unwrap()));
        Self { address, log, _process: process }
    }

    /// What time it is for it, in seconds since 1970.
    pub async fn now(&self) -> f64 {
        self.get("/api/v1/query?query=time()").await["data"]["result"][0].as_f64().expect("a time")
    }

    /// Waits until it has scraped so many places once more.
    pub async fn scraped(&self, places: usize) {
        let since = self.now().await;
        let path = format!("/api/v1/query?query=timestamp(up)%3E{since}");
        until("everything was scraped", async || {
            self.get(&path).await["data"]["result"].as_array().is_some_and(|scraped| scraped.len() == places)
        })
        .await;
    }

    /// Every sample of an expression between two times, a second apart: of each series its labels and its values.
    /// What it refuses to evaluate is an error, in its words.
    pub async fn between(&self, expression: &str, start: f64, end: f64) -> Result<Vec<Value>, String> {
        let (start, end) = (start.to_string(), end.to_string());
        let form = [("query", expression), ("start", &start), ("end", &end), ("step", "1")];
        let form = Serializer::new(String::new()).extend_pairs(form).finish();
        let request =
            Request::post("/api/v1/query_range").header("Content-Type", "application/x-www-form-urlencoded");
        let answer = self.ask(request.body(form)).await;
        match answer["status"].as_str() {
            Some("success") => Ok(answer["data"]["result"].as_array().cloned().unwrap_or_default()),
            _ => Err(answer["error"].to_string()),
        }
    }

    /// The answer of its API at a path.
    pub async fn get(&self, path: &str) -> Value {
        self.ask(Request::get(path)).await
    }

    async fn ask(&self, request: Request) -> Value {
        let answer = Door::plain(self.address).send(request.header("Connection", "close")).await;
        let read = serde_json::from_slice(&answer.body);
        read.unwrap_or_else(|_| panic!("{}\n{:#?}", answer.text(), self.log.lock().unwrap()))
    }
}

/// Keeps what it logs, and tells where it listens once it is ready.
async fn follow(stream: ChildStderr, log: Arc<Mutex<Vec<String>>>, tell: oneshot::Sender<SocketAddr>) {
    let mut lines = BufReader::new(stream).lines();
    let (mut address, mut tell) = (None, Some(tell));
    while let Ok(Some(line)) = lines.next_line().await {
        if line.contains("msg=\"Listening on\"") {
            address = line.split_once("address=").and_then(|(_, address)| address.parse().ok());
        }
        if line.contains("ready to receive web requests")
            && let (Some(address), Some(tell)) = (address, tell.take())
        {
            let _nobody_waits = tell.send(address);
        }
        log.lock().unwrap().push(line);
    }
}

/// Runs promtool, and asserts that it has nothing to say against what it is given.
pub async fn promtool(arguments: &[&str], input: &str) {
    let mut child = command("promtool").args(arguments).stdin(Stdio::piped()).spawn().expect("Debian's promtool");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(input.as_bytes()).await.expect("to be read");
    drop(stdin);
    let output =
        tokio::time::timeout(CHECKED, child.wait_with_output()).await.expect("to end").expect("its output");
    let [out, err] = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(output.status.success() && err.is_empty(), "promtool {arguments:?}: {out}{err}");
}

fn command(program: &str) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    command
}
