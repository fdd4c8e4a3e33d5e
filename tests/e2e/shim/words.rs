//! What a shim that reads requests does with their heads, and what it says itself.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use gitdoor_tests::authority::Authority;
use gitdoor_tests::behind_shims_that_read;
use gitdoor_tests::port::Port;
use gitdoor_tests::raw::Request;
use gitdoor_tests::shim::{Backend, Kind, Shim};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_util::task::AbortOnDropHandle;

use super::behind;

behind_shims_that_read!(
    the_words_and_the_code_of_a_refusal_arrive,
    a_request_arrives_as_it_was_sent_and_with_a_trace,
    no_data_plane_is_said_in_words,
);

async fn the_words_and_the_code_of_a_refusal_arrive(kind: Kind) {
    let (world, shim, run) = behind(kind).await;
    let git = world.git_by(&shim.url(), &run.bearer).cloned("acme/api").await;
    git.commit("fix.txt", "fix\n").await;
    let push = git.run(&["push", "origin", "HEAD:main"]).await.code_is(1);
    let push = push.says("remote: gitdoor: this run may push branches of acme/api other than main");
    push.says("[remote rejected] HEAD -> main (refused: default branch)");
    world.github.create("acme/web");
    let elsewhere = git.run(&["push", &git.url("acme/web"), "HEAD:fix-x"]).await;
    elsewhere.code_is(128).says("remote: gitdoor: this run is bound to acme/api and may push nowhere else");
    let discovery = Request::get("/acme/web.git/info/refs?service=git-receive-pack").basic(&run.bearer);
    let answer = shim.door().send(discovery).await;
    assert_eq!((answer.status, answer.header("x-gitdoor-reason")), (403, Some("bound-elsewhere")));
    assert!(answer.header("x-request-id").is_some(), "{answer:?}");
    let nobody = shim.door().send(Request::get("/acme/api.git/info/refs?service=git-upload-pack")).await;
    assert_eq!((nobody.status, nobody.header("www-authenticate")), (401, Some("Basic realm=\"gitdoor\"")));
    world.finish().await;
}

/// Servers that answer every request with 302 and keep its head.
struct Heads {
    backends: [Backend; 2],
    kept: Arc<Mutex<Vec<String>>>,
    _accepting: Vec<AbortOnDropHandle<()>>,
}

impl Heads {
    async fn start(tls: Option<TlsAcceptor>) -> Self {
        let kept = Arc::<Mutex<Vec<String>>>::default();
        let (mut addresses, mut accepting) = (Vec::new(), Vec::new());
        // The third says that the others are ready.
        for tls in [tls.clone(), tls, None] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            addresses.push(listener.local_addr().unwrap());
            accepting.push(AbortOnDropHandle::new(tokio::spawn(accept(listener, tls, Arc::clone(&kept)))));
        }
        let backend = |address: SocketAddr| Backend { address, admin: addresses[2] };
        Self { backends: [backend(addresses[0]), backend(addresses[1])], kept, _accepting: accepting }
    }

    /// Of the request whose target begins so.
    fn of(&self, target: &str) -> String {
        let kept = self.kept.lock().unwrap();
        kept.iter().find(|head| head.starts_with(&format!("GET {target}"))).unwrap().clone()
    }
}

async fn accept(listener: TcpListener, tls: Option<TlsAcceptor>, kept: Arc<Mutex<Vec<String>>>) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let (tls, kept) = (tls.clone(), Arc::clone(&kept));
        tokio::spawn(async move {
            match tls {
                Some(tls) => answer(tls.accept(stream).await?, &kept).await,
                None => answer(stream, &kept).await,
            }
        });
    }
}

async fn answer(mut stream: impl AsyncRead + AsyncWrite + Unpin, kept: &Mutex<Vec<String>>) -> io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let status = if head.starts_with("GET /readyz") { "200 OK" } else { "302 Found" };
    kept.lock().unwrap().push(head);
    let answer = format!(
        "HTTP/1.1 {status}\r\nLocation: https://elsewhere.test/x\r\nX-Request-Id: r1\r\nCache-Control: private, \
         max-age=60\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
    );
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await
}

async fn a_request_arrives_as_it_was_sent_and_with_a_trace(kind: Kind) {
    let folder = tempfile::tempdir().unwrap();
    let (authority, port) = (Authority::new("shim test"), Port::take());
    let leaf = authority.localhost();
    let file = folder.path().join("ca.pem");
    std::fs::write(&file, authority.pem()).unwrap();
    let tls = (kind != Kind::Worker).then(|| TlsAcceptor::from(leaf.server()));
    let heads = Heads::start(tls).await;
    let shim = Shim::before(kind, port, &heads.backends, &folder.path().join("shim"), (&leaf, &file), 1).await;
    let target = "/api/v3/repos/acme/api/contents/a%2Fb%20c//d?ref=x%2Fy&q=a+b";
    let request = Request::get(target).header("Authorization", "Basic abc").header("Git-Protocol", "version=2");
    // The edge says who the Worker's client is.
    let (request, client) = match kind {
        Kind::Worker => (request.header("CF-Connecting-IP", "192.0.2.7"), "192.0.2.7"),
        Kind::Nginx | Kind::Haproxy | Kind::Passthrough => (request, "127.0.0.1"),
    };
    let request = request.header("X-Forwarded-For", "198.51.100.1");
    let answer = shim.door().send(request.header("Accept-Encoding", "deflate, gzip, br, zstd")).await;
    assert_eq!((answer.status, answer.header("location")), (302, Some("https://elsewhere.test/x")));
    assert_eq!(answer.header("x-request-id"), Some("r1"));
    assert_eq!(answer.header("cache-control"), Some("private, max-age=60"));
    let head = heads.of(target).to_lowercase();
    assert!(head.starts_with(&format!("get {} http/1.1\r\n", target.to_lowercase())), "{head}");
    let host = format!("host: {}", shim.door().host);
    for line in
        [&host, "authorization: basic abc", "git-protocol: version=2", "accept-encoding: deflate, gzip, br, zstd"]
    {
        assert!(head.contains(&format!("\r\n{line}\r\n")), "{line}: {head}");
    }
    let clients: Vec<_> = head.lines().filter_map(|line| line.strip_prefix("x-forwarded-for: ")).collect();
    assert_eq!(clients, [client], "{head}");
    let trace = head.lines().find_map(|line| line.strip_prefix("traceparent: ")).unwrap();
    let parts: Vec<&str> = trace.split('-').collect();
    assert_eq!(
        (parts.len(), parts[0], parts[1].len(), parts[2].len(), parts[3]),
        (4, "00", 32, 16, "01"),
        "{head}"
    );
    assert!(parts.concat().bytes().all(|b| b.is_ascii_hexdigit()), "{head}");
    let own = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    shim.door().send(Request::get("/own").header("traceparent", own)).await;
    assert!(heads.of("/own").to_lowercase().contains(&format!("traceparent: {own}\r\n")));
}

async fn no_data_plane_is_said_in_words(kind: Kind) {
    let (mut world, shim, run) = behind(kind).await;
    for number in [0, 1] {
        world.dataplane(number).kill().await;
    }
    let answer = shim.door().send(Request::get("/acme/api.git/info/refs?service=git-upload-pack")).await;
    assert_eq!((answer.status, answer.header("retry-after")), (503, Some("5")), "{answer:?}");
    assert_eq!(answer.header("x-gitdoor-reason"), Some("shim-no-dataplane"));
    let git = world.git_by(&shim.url(), &run.bearer);
    let listed = git.run(&["ls-remote", &git.url("acme/api")]).await.code_is(128);
    listed.says("remote: gitdoor: no data plane answers").says("The requested URL returned error: 503");
    world.finish().await;
}
