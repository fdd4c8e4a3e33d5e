//! The least that git takes for a git host: one advertisement, one answer to any push.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use gitdoor_tests::pkt::{self, FLUSH};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A server on a port of its own; it ends when it is dropped.
pub(super) struct Server {
    address: SocketAddr,
    script: Arc<Mutex<Script>>,
    accepting: JoinHandle<()>,
}

#[derive(Default)]
struct Script {
    refs: Vec<(String, String)>,
    capabilities: String,
    answer: Vec<u8>,
}

impl Server {
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let script = Arc::new(Mutex::new(Script::default()));
        let shared = Arc::clone(&script);
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&shared)));
            }
        });
        Self { address, script, accepting }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The refs that it has, by name.
    pub(super) fn has(&self, refs: &[(&str, &str)]) {
        let owned = refs.iter().map(|(name, id)| ((*name).to_owned(), (*id).to_owned()));
        self.script.lock().unwrap().refs = owned.collect();
    }

    /// What it advertises, and answers a push from now on.
    pub(super) fn answers(&self, capabilities: &str, answer: Vec<u8>) {
        let mut script = self.script.lock().unwrap();
        capabilities.clone_into(&mut script.capabilities);
        script.answer = answer;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Script {
    fn advertisement(&self) -> Vec<u8> {
        let mut body = [pkt::line("# service=git-receive-pack\n"), FLUSH.to_vec()].concat();
        for (number, (name, id)) in self.refs.iter().enumerate() {
            let tail = if number == 0 { format!("\0{}", self.capabilities) } else { String::new() };
            body.extend(pkt::line(format!("{id} {name}{tail}\n")));
        }
        [&body, FLUSH].concat()
    }
}

/// Answers one request and closes.
async fn serve(mut stream: TcpStream, script: Arc<Mutex<Script>>) {
    let mut read = Vec::new();
    let head = loop {
        if let Some(end) = read.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
        if stream.read_buf(&mut read).await.unwrap_or(0) == 0 {
            return;
        }
    };
    let text = String::from_utf8_lossy(&read[..head]).to_ascii_lowercase();
    let length = text.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok()).unwrap_or(0);
    while read.len() < head + length {
        if stream.read_buf(&mut read).await.unwrap_or(0) == 0 {
            return;
        }
    }
    let (kind, body) = {
        let script = script.lock().unwrap();
        if text.starts_with("get ") {
            ("advertisement", script.advertisement())
        } else {
            ("result", script.answer.clone())
        }
    };
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/x-git-receive-pack-{kind}\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n",
        body.len()
    );
    let _git_may_have_left = stream.write_all(&[head.as_bytes(), &body].concat()).await;
}
