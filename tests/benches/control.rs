//! What control costs with few runs in its store and with many: over its own gRPC, on SQLite and on PostgreSQL.
//!
//! `cargo bench -p gitdoor-tests`; `-- 20000` makes that the greater number of runs, which is a million without it.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "a benchmark fails by a panic and prints what it found"
)]

use std::collections::HashMap;
use std::time::{Duration, Instant};

use gitdoor_proto::v1::authorize_request::Intent;
use gitdoor_proto::v1::authorize_response::Verdict;
use gitdoor_proto::v1::gate_client::GateClient;
use gitdoor_proto::v1::session_request::Question;
use gitdoor_proto::v1::session_response::Answer;
use gitdoor_proto::v1::{self, Identity};
use gitdoor_tests::world::World;
use prost::Message as _;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;
use tonic::transport::Endpoint;

const PROGRAM: &str = env!("CARGO_BIN_EXE_demo");
/// The lesser number of runs.
const FEW: u64 = 1000;
/// Questions in work at once, for the rate.
const AT_ONCE: usize = 32;

#[derive(Clone, Copy)]
enum Kind {
    Sqlite,
    Postgres,
}

fn main() {
    // `cargo test --all-targets` builds and starts this too.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let many = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(1_000_000);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    println!("| store | runs | call | p50 us | p99 us | a second, 32 at once | store operations |");
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    for kind in [Kind::Sqlite, Kind::Postgres] {
        for rows in [FEW, many] {
            runtime.block_on(measure(kind, rows));
        }
    }
}

async fn measure(kind: Kind, rows: u64) {
    let mut bench = Bench::start(kind, rows).await;
    bench.line("register", 2000, async |bench, number| bench.register(number).await).await;
    bench.line("list 100", 500, async |bench, _| bench.list().await).await;
    let mut session = bench.session().await;
    for (name, count, intent) in [
        ("authorize verify", 10_000, Intent::Verify(v1::Verify {})),
        ("authorize fetch", 10_000, Intent::Fetch(v1::Fetch { repository: "acme/api".into() })),
        ("authorize push", 1500, push()),
    ] {
        let before = bench.operations().await;
        let mut times = Vec::new();
        for _ in 0..count {
            let began = Instant::now();
            session.send(bench.question(&intent)).await;
            session.permitted().await;
            times.push(began.elapsed());
        }
        let operations = bench.operations().await - before;
        let began = Instant::now();
        for asked in 0..count {
            session.send(bench.question(&intent)).await;
            if asked >= AT_ONCE {
                session.permitted().await;
            }
        }
        for _ in 0..AT_ONCE {
            session.permitted().await;
        }
        bench.print(name, &mut times, Some(began.elapsed()), operations);
    }
    if rows == FEW && matches!(kind, Kind::Sqlite) {
        session.print_bytes();
    }
}

fn push() -> Intent {
    let command = v1::PushCommand {
        old_oid: "0".repeat(40),
        new_oid: "a".repeat(40),
        ref_name: b"refs/heads/agent/fix-x".to_vec(),
    };
    Intent::Push(v1::PushIntent { repository: "acme/api".into(), commands: vec![command], key: Vec::new() })
}

/// A control with so many runs in its store, all of which have one secret.
struct Bench {
    world: World,
    name: &'static str,
    rows: u64,
    secret: String,
    step: u64,
    runs: v1::runs_client::RunsClient<tonic::transport::Channel>,
}

impl Bench {
    async fn start(kind: Kind, rows: u64) -> Self {
        let builder = World::builder(PROGRAM).control_flag("--log-level=warn");
        let (name, mut world) = match kind {
            Kind::Sqlite => ("SQLite", builder.start().await),
            Kind::Postgres => ("PostgreSQL", builder.controls(1).start().await),
        };
        world.github.create("acme/api");
        let seed =
            world.registration(Identity::Write).id("seed").repository("acme/api").send().await.expect("a run");
        let git = world.git(&seed);
        git.run(&["ls-remote", &git.url("acme/api")]).await.ok();
        world.control().stop(Duration::from_secs(20)).await;
        fill(kind, &mut world, rows);
        world.control().start_again().await;
        let runs = world.runs().await;
        let secret = seed.bearer.rsplit('.').next().expect("a secret").to_owned();
        Self { world, name, rows, secret, step: 0, runs }
    }

    fn any_run(&mut self) -> String {
        // Prime to every power of ten: each run comes once before any comes again, and far from the one before.
        self.step += 618_033;
        format!("run-{:08}", self.step % self.rows)
    }

    async fn register(&mut self, number: usize) {
        let request = v1::RegisterRunRequest {
            run_id: format!("new-{number}"),
            identity: Identity::Write.into(),
            ..v1::RegisterRunRequest::default()
        };
        self.runs.register_run(request).await.expect("a run");
    }

    async fn list(&mut self) {
        let request = v1::ListRunsRequest { page_size: 100, page_token: self.any_run() };
        self.runs.list_runs(request).await.expect("a page");
    }

    fn question(&mut self, intent: &Intent) -> Question {
        Question::Authorize(v1::AuthorizeRequest {
            run_id: self.any_run(),
            secret: self.secret.clone(),
            request_id: "0123456789abcdef0123456789abcdef".into(),
            intent: Some(intent.clone()),
            ..Default::default()
        })
    }

    async fn session(&self) -> Session {
        let socket = self.world.gate_address_of(0);
        let channel = Endpoint::from_shared(socket).expect("an address").connect().await.expect("control");
        let (questions, queue) = mpsc::channel(AT_ONCE);
        let answers = GateClient::new(channel).session(ReceiverStream::new(queue)).await.expect("a session");
        Session { questions, answers: answers.into_inner(), next: 0, ended: Vec::new(), sizes: HashMap::new() }
    }

    /// Store operations so far.
    async fn operations(&self) -> f64 {
        let text = self.world.control_admin("/metrics").await.text();
        let counts = text.lines().filter(|line| line.starts_with("gitdoor_control_store_operation_seconds_count"));
        counts.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
    }

    async fn line(&mut self, name: &str, count: usize, call: impl AsyncFn(&mut Self, usize)) {
        let before = self.operations().await;
        let mut times = Vec::new();
        for number in 0..count {
            let began = Instant::now();
            call(self, number).await;
            times.push(began.elapsed());
        }
        let operations = self.operations().await - before;
        self.print(name, &mut times, None, operations);
    }

    #[expect(clippy::cast_precision_loss, reason = "a figure to read")]
    fn print(&self, call: &str, times: &mut [Duration], at_once: Option<Duration>, operations: f64) {
        times.sort_unstable();
        let (p50, p99) = (times[times.len() / 2].as_micros(), times[times.len() * 99 / 100].as_micros());
        let count = times.len() as f64;
        let rate = at_once.map_or_else(String::new, |took| format!("{:.0}", count / took.as_secs_f64()));
        let (store, rows) = (self.name, self.rows);
        println!("| {store} | {rows} | {call} | {p50} | {p99} | {rate} | {:.2} |", operations / count);
    }
}

/// Copies the seed's row.
fn fill(kind: Kind, world: &mut World, rows: u64) {
    match kind {
        Kind::Sqlite => {
            let path = world.path().join("control/store.sqlite");
            let store = rusqlite::Connection::open(path).expect("the store");
            let sql = "SELECT group_concat(name) FROM pragma_table_info('runs') WHERE name <> 'run_id'";
            let columns: String = store.query_row(sql, [], |row| row.get(0)).expect("columns");
            let fill = format!(
                "WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < {rows}) \
                 INSERT INTO runs (run_id, {columns}) SELECT printf('run-%08d', i), {columns} FROM runs, n \
                 WHERE run_id = 'seed'"
            );
            store.execute(&fill, []).expect("rows");
        }
        Kind::Postgres => {
            let columns = "SELECT string_agg(column_name, ',') FROM information_schema.columns \
                           WHERE table_name = 'runs' AND column_name <> 'run_id'";
            let columns = world.postgres().sql(columns);
            world.postgres().sql(&format!(
                "INSERT INTO runs (run_id, {columns}) SELECT 'run-' || lpad(i::text, 8, '0'), {columns} \
                 FROM runs, generate_series(0, {rows} - 1) AS n (i) WHERE run_id = 'seed'"
            ));
            world.postgres().sql("ANALYZE");
        }
    }
}

struct Session {
    questions: mpsc::Sender<v1::SessionRequest>,
    answers: Streaming<v1::SessionResponse>,
    next: u64,
    /// Requests that have ended since the last question.
    ended: Vec<u64>,
    /// Bytes of the last question and answer of each kind.
    sizes: HashMap<&'static str, (usize, usize)>,
}

impl Session {
    async fn send(&mut self, question: Question) {
        self.next += 1;
        let request =
            v1::SessionRequest { id: self.next, ended: std::mem::take(&mut self.ended), question: Some(question) };
        let kind = match &request.question {
            Some(Question::Authorize(v1::AuthorizeRequest { intent: Some(Intent::Fetch(_)), .. })) => "fetch",
            Some(Question::Authorize(v1::AuthorizeRequest { intent: Some(Intent::Push(_)), .. })) => "push",
            _ => "verify",
        };
        self.sizes.entry(kind).or_default().0 = request.encoded_len();
        self.questions.send(request).await.expect("a session");
    }

    async fn permitted(&mut self) {
        let answer = self.answers.message().await.expect("a session").expect("an answer");
        let size = answer.encoded_len();
        self.ended.push(answer.id);
        let Some(Answer::Authorize(v1::AuthorizeResponse { verdict: Some(Verdict::Permit(permit)) })) =
            answer.answer
        else {
            panic!("not permitted: {answer:?}");
        };
        let kind = match (permit.lease, permit.token) {
            (Some(_), _) => "push",
            (None, Some(_)) => "fetch",
            (None, None) => "verify",
        };
        self.sizes.entry(kind).or_default().1 = size;
    }

    fn print_bytes(&self) {
        for kind in ["verify", "fetch", "push"] {
            let (question, answer) = self.sizes[kind];
            println!("\nauthorize {kind}: {question} bytes asked, {answer} answered");
        }
    }
}
