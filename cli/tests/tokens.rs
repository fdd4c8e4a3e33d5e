//! The commands about tokens, against a small `Tokens` server: what they ask, what they print and where, and what git
//! gets.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};

use gitdoor_proto::v1;
use tokio::net::UnixListener;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::transport::Server;
use tonic::{Request, Response, Status};
use v1::tokens_server::{Tokens, TokensServer};

/// A control that hands out one token.
#[derive(Clone, Default)]
struct Control {
    asked: Arc<Mutex<Vec<String>>>,
    refused: Arc<Mutex<Vec<String>>>,
    refusal: Option<Status>,
}

#[expect(clippy::unnecessary_wraps, reason = "the messages' fields are optional")]
fn at(seconds: i64) -> Option<prost_types::Timestamp> {
    Some(prost_types::Timestamp { seconds, nanos: 0 })
}

fn row() -> v1::MirrorToken {
    v1::MirrorToken {
        mirror_token_id: "m1".into(),
        repository: "Acme/Api".into(),
        repository_id: 42,
        token_id: "0123456789abcdef".into(),
        asked_by: "CN=\u{1b}[2Jmirror".into(),
        minted_at: at(1_800_000_000),
        handed_out_at: at(1_800_000_000),
        expires_at: at(1_800_003_600),
    }
}

#[tonic::async_trait]
impl Tokens for Control {
    async fn mint_mirror_token(
        &self,
        request: Request<v1::MintMirrorTokenRequest>,
    ) -> Result<Response<v1::MintMirrorTokenResponse>, Status> {
        let v1::MintMirrorTokenRequest { repository, refused_token_id } = request.into_inner();
        self.asked.lock().unwrap().push(repository);
        self.refused.lock().unwrap().push(refused_token_id);
        match &self.refusal {
            Some(refusal) => Err(refusal.clone()),
            None => Ok(Response::new(v1::MintMirrorTokenResponse {
                token: "ghs_hush".into(),
                mirror_token: Some(row()),
            })),
        }
    }

    async fn list_mirror_tokens(
        &self,
        request: Request<v1::ListMirrorTokensRequest>,
    ) -> Result<Response<v1::ListMirrorTokensResponse>, Status> {
        assert_eq!(request.into_inner().page_size, 1000);
        Ok(Response::new(v1::ListMirrorTokensResponse { mirror_tokens: vec![row()] }))
    }
}

struct Served {
    control: Control,
    socket: String,
    _folder: tempfile::TempDir,
    _runtime: tokio::runtime::Runtime,
}

fn serve(control: Control) -> Served {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.sock");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let unix = runtime.block_on(async { UnixListener::bind(&path).unwrap() });
    let service = TokensServer::new(control.clone());
    runtime.spawn(Server::builder().add_service(service).serve_with_incoming(UnixListenerStream::new(unix)));
    Served { control, socket: format!("unix:{}", path.display()), _folder: folder, _runtime: runtime }
}

impl Served {
    fn token(&self, args: &[&str], input: &str) -> Output {
        let mut command = Command::new(Path::new(env!("CARGO_BIN_EXE_gitdoor")));
        command.arg("token").args(args).args(["--control", &self.socket]).env_clear();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // One that reads no input may be gone by now.
        drop(child.stdin.take().unwrap().write_all(input.as_bytes()));
        child.wait_with_output().unwrap()
    }

    fn helper(&self, action: &str, input: &str) -> Output {
        self.token(&["mirror", "--repository", "acme/api", "--credential", action], input)
    }

    fn asked(&self) -> usize {
        self.control.asked.lock().unwrap().len()
    }
}

fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}

const GITHUB: &str = "protocol=https\nhost=github.com\n\n";

#[test]
fn a_mirrors_token_is_printed_alone_or_in_one_object() {
    let served = serve(Control::default());
    let plain = served.token(&["mirror", "--repository", "acme/api"], "");
    assert_eq!((plain.status.code(), stdout(&plain), stderr(&plain)), (Some(0), "ghs_hush\n", ""));
    let json = served.token(&["mirror", "--repository", "acme/api", "--json"], "");
    let expected = serde_json::json!({
        "token": "ghs_hush", "expires_at": "2027-01-15T09:00:00Z", "repository": "Acme/Api"
    });
    assert_eq!(serde_json::from_str::<serde_json::Value>(stdout(&json)).unwrap(), expected);
    assert_eq!(*served.control.asked.lock().unwrap(), ["acme/api", "acme/api"]);
}

#[test]
fn git_gets_the_token_where_it_asks_for_it_and_nothing_elsewhere() {
    let served = serve(Control::default());
    let given = served.helper("get", GITHUB);
    let expected = "username=x-access-token\npassword=ghs_hush\npassword_expiry_utc=1800003600\n";
    assert_eq!((given.status.code(), stdout(&given), stderr(&given)), (Some(0), expected, ""));
    assert_eq!(served.asked(), 1);
    for action in ["store", "erase", "capability", "new-action"] {
        let silent = served.helper(action, GITHUB);
        assert_eq!((silent.status.code(), stdout(&silent), stderr(&silent)), (Some(0), "", ""), "{action}");
    }
    for question in ["protocol=http\nhost=github.com\n", "protocol=https\nhost=evil.example\n", ""] {
        let silent = served.helper("get", question);
        assert_eq!((silent.status.code(), stdout(&silent)), (Some(0), ""), "{question}");
        assert!(stderr(&silent).contains("this one is for https://github.com/acme/api alone"), "{question}");
    }
    let broken = served.helper("get", "protocol\n");
    assert_eq!((broken.status.code(), stdout(&broken)), (Some(1), ""));
    assert_eq!(served.asked(), 1, "control is asked only where its answer is handed on");
}

#[test]
fn a_token_that_the_host_refused_is_told_to_control_by_its_name_alone() {
    let served = serve(Control::default());
    for question in [
        "protocol=https\nhost=evil.example\nusername=x-access-token\npassword=ghs_hush\n",
        "protocol=https\nhost=github.com\npath=acme/web\npassword=ghs_hush\n",
        "protocol=https\nhost=github.com\nusername=x-access-token\n",
    ] {
        let silent = served.helper("erase", question);
        assert_eq!((silent.status.code(), stdout(&silent), stderr(&silent)), (Some(0), "", ""), "{question}");
    }
    assert_eq!(served.asked(), 0);
    let refused = "protocol=https\nhost=github.com\nusername=x-access-token\npassword=ghs_hush\n\n";
    let told = served.helper("erase", refused);
    assert_eq!((told.status.code(), stdout(&told), stderr(&told)), (Some(0), "", ""));
    assert_eq!(*served.control.refused.lock().unwrap(), [gitdoor_proto::token_id("ghs_hush")]);
    let twice = served.helper("erase", "protocol=https\nhost=github.com\npassword=a\npassword=b\n");
    assert_eq!(twice.status.code(), Some(1));
}

#[test]
fn a_refusal_is_told_in_words_and_git_gets_nothing() {
    for (status, advice) in [
        (Status::failed_precondition("no token for acme/api: the installation is suspended"), None),
        (Status::resource_exhausted("control has as many calls at once as it takes"), Some("ask again")),
    ] {
        let served = serve(Control { refusal: Some(status.clone()), ..Control::default() });
        for output in [served.helper("get", GITHUB), served.token(&["mirror", "--repository", "acme/api"], "")] {
            assert_eq!((output.status.code(), stdout(&output)), (Some(1), ""));
            assert!(stderr(&output).contains(status.message()), "{}", stderr(&output));
            assert!(stderr(&output).contains(advice.unwrap_or_default()), "{}", stderr(&output));
        }
    }
}

#[test]
fn a_helper_without_a_question_and_a_question_without_a_helper_are_usage_errors() {
    let served = serve(Control::default());
    for (args, words) in [
        (&["mirror", "--repository", "acme/api", "--credential"][..], "get, store or erase"),
        (&["mirror", "--repository", "acme/api", "get"], "--credential"),
    ] {
        let output = served.token(args, GITHUB);
        assert_eq!((output.status.code(), stdout(&output)), (Some(2), ""));
        assert!(stderr(&output).contains(words), "{}", stderr(&output));
    }
    assert_eq!(served.asked(), 0);
}

#[test]
fn what_was_handed_out_is_listed_and_no_subject_moves_the_cursor() {
    let served = serve(Control::default());
    let text = served.token(&["list"], "");
    assert_eq!(
        stdout(&text),
        "\
HANDED OUT            EXPIRES               TOKEN             REPOSITORY  ASKED BY
2027-01-15T08:00:00Z  2027-01-15T09:00:00Z  0123456789abcdef  Acme/Api    CN=\\u{1b}[2Jmirror
"
    );
    let json = served.token(&["list", "--json"], "");
    let value: serde_json::Value = serde_json::from_str(stdout(&json)).unwrap();
    assert_eq!(value["mirror_tokens"][0]["asked_by"], "CN=\u{1b}[2Jmirror");
}
