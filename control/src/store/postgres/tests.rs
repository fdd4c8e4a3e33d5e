//! What a server does that a file does not: it starts late, dies, hangs, fills up, and is another one afterwards.

mod controls;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use futures_util::future::join_all;
use gitdoor_proto::RunId;
use tokio::time::{sleep, timeout};

use super::server::Server;
use super::{Config, Failure, OpenError, Postgres, open};
use crate::clock;
use crate::fleet::ControlId;
use crate::push::{Closing, Command, Outcome, Push, PushId, PushedRef};
use crate::run::tests::{binding, run};
use crate::store::migration::Migration;
use crate::store::{Closed, Limit, Opened, Registered, Store, StoreError};

/// Far longer than an operation may take: what takes so long hangs.
const HANGS: Duration = Duration::from_mins(1);

/// Any number of pushes.
const ANY: Limit<'_> = Limit { most: u32::MAX, lapsed: &[] };

fn start() -> SystemTime {
    clock::from_micros(1_800_000_000_000_000)
}

fn id(text: &str) -> RunId {
    RunId::parse(text).unwrap()
}

/// A store that waits for its server, as most of what is promised here does not ask how long that takes.
async fn opened(server: &Server) -> Postgres {
    Postgres::open_patiently(&Config::new(&server.url("postgres"))).await.unwrap()
}

/// A store that gives its server up as soon as it does in life.
async fn impatient(server: &Server) -> Postgres {
    Postgres::open(&Config::new(&server.url("postgres"))).await.unwrap()
}

/// A single connection to a server that no store has been in.
fn single(server: &Server) -> super::Pool {
    let target = super::Target::new(&Config::new(&server.url("postgres"))).unwrap();
    super::Pool::new(target, 1, super::Patience::default()).unwrap()
}

async fn refused(server: &Server, database: &str) -> OpenError {
    Postgres::open(&Config::new(&server.url(database))).await.err().unwrap()
}

/// Waits until an operation works.
async fn working(store: &Postgres) {
    let works = async {
        while store.runs(None, 1).await.is_err() {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(HANGS, works).await.expect("the store recovers by itself");
}

/// Waits for what a server says.
async fn until(server: &Server, sql: &str, says: &str) {
    while server.sql("postgres", sql) != says {
        sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn three_controls_that_start_at_once_make_one_schema() {
    let server = Server::start();
    let config = Config::new(&server.url("postgres"));
    let stores = join_all((0..3).map(|_| Postgres::open(&config))).await;
    let stores: Vec<Postgres> = stores.into_iter().map(Result::unwrap).collect();
    let run = run("r", start());
    assert_eq!(stores[0].register(&run).await.unwrap(), Registered::Created(run.clone()));
    for store in &stores {
        assert_eq!(store.run(&run.id).await.unwrap(), Some(run.clone()));
    }
    assert_eq!(
        server.sql("postgres", "SELECT string_agg(version::text, ' ' ORDER BY version) FROM gitdoor_schema"),
        "1 2 3 4"
    );
}

#[tokio::test]
async fn a_newer_schema_is_refused() {
    let server = Server::start();
    drop(opened(&server).await);
    server.sql("postgres", "INSERT INTO gitdoor_schema VALUES (99)");
    let error = refused(&server, "postgres").await;
    assert!(matches!(error, OpenError::Newer { found: 99, .. }), "{error}");
    assert_eq!(error.to_string(), "its schema 99 is newer than this program's 4");
}

#[tokio::test]
async fn a_store_of_the_first_schema_is_brought_up_to_date_with_what_it_holds() {
    let server = Server::start();
    let pool = single(&server);
    open::migrate_to(&mut pool.first().await.unwrap(), &open::MIGRATIONS[..1]).await.unwrap();
    server.sql(
        "postgres",
        "INSERT INTO runs (run_id, identity, budget, options, bearer_hash, bearer_generation, registered_at, \
         expires_at) VALUES ('r', 'write', 1, '{}', decode(repeat('00', 32), 'hex'), 1, 1, 2); \
         INSERT INTO pushes (push_id, run_id, request_id, repository, outcome, request_bytes, opened_at) \
         VALUES (decode(repeat('00', 16), 'hex'), 'r', 'q', 'acme/api', 'open', 0, 1)",
    );
    let store = opened(&server).await;
    assert_eq!(store.mirror_tokens(1).await.unwrap(), []);
    let push = store.push(PushId::from_bytes([0; 16])).await.unwrap().unwrap();
    assert_eq!((push.outcome, push.control), (Outcome::Open, None));
    let times = "SELECT registered_at, expires_at, adopted_at IS NULL FROM runs WHERE run_id = 'r'";
    assert_eq!(server.sql("postgres", times), "1|2|t");
    assert_eq!(server.sql("postgres", "SELECT max(version) FROM gitdoor_schema"), "4");
}

#[tokio::test]
async fn a_migration_that_is_cut_leaves_nothing_behind() {
    let mut server = Server::start();
    let half = Migration { number: 1, sql: "CREATE TABLE half (x bigint)" };
    let long = [half, Migration { number: 2, sql: "CREATE TABLE whole (x bigint); SELECT pg_sleep(600)" }];
    let pool = single(&server);
    let mut client = pool.first().await.unwrap();
    let migration = tokio::spawn(async move { open::migrate_to(&mut client, &long).await });
    until(&server, "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'", "1").await;
    server.kill();
    let error = timeout(HANGS, migration).await.unwrap().unwrap().unwrap_err();
    assert!(matches!(error, OpenError::Migrate(_)), "{error}");
    server.restart();
    assert_eq!(server.sql("postgres", "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"), "0");
    opened(&server).await.register(&run("r", start())).await.unwrap();
}

#[tokio::test]
async fn what_is_no_place_for_a_store_is_refused_and_left_as_it_is() {
    let server = Server::start();
    server.sql("postgres", "CREATE TABLE runs (theirs text)");
    assert!(matches!(refused(&server, "postgres").await, OpenError::Migrate(_)));
    assert_eq!(server.sql("postgres", "SELECT to_regclass('gitdoor_schema') IS NULL"), "t");
    server
        .sql("postgres", "CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'");
    let error = refused(&server, "latin").await;
    assert!(error.to_string().contains("UTF8"), "{error}");
    assert!(matches!(refused(&server, "none").await, OpenError::Server(Failure::Connect(_))));
}

#[tokio::test]
async fn a_standby_is_refused_and_used_once_it_is_the_primary() {
    let mut server = Server::start();
    let store = opened(&server).await;
    server.kill();
    server.become_standby();
    server.restart();
    let error = refused(&server, "postgres").await;
    assert!(matches!(error, OpenError::Server(_)), "{error}");
    assert!(matches!(store.runs(None, 1).await, Err(StoreError::Postgres(_))));
    assert!(matches!(store.register(&run("r", start())).await, Err(StoreError::Postgres(_))));
    server.sql("postgres", "SELECT pg_promote()");
    working(&store).await;
    store.register(&run("r", start())).await.unwrap();
}

#[tokio::test]
async fn a_primary_that_becomes_read_only_is_left() {
    let server = Server::start();
    let store = opened(&server).await;
    let set = |value| {
        server.sql("postgres", &format!("ALTER SYSTEM SET default_transaction_read_only = {value}"));
        server.sql("postgres", "SELECT pg_reload_conf()");
    };
    set("on");
    let left = async {
        while store.register(&run("r", start())).await.is_ok() {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(HANGS, left).await.unwrap();
    // Its connections are not used any more, although they could still read.
    assert!(matches!(
        store.runs(None, 1).await,
        Err(StoreError::Postgres(Failure::Connect(_) | Failure::Unfit(_)))
    ));
    set("off");
    working(&store).await;
    assert!(store.register(&run("s", start())).await.is_ok());
}

#[tokio::test]
async fn an_answered_write_is_on_disk_whatever_the_servers_default() {
    let server = Server::start();
    for (default, used) in [("off", "on"), ("local", "on"), ("on", "on"), ("remote_apply", "remote_apply")] {
        server.sql("postgres", &format!("ALTER DATABASE postgres SET synchronous_commit = {default}"));
        let store = opened(&server).await;
        let shown = store
            .pool
            .read(async |db| Ok(db.query_one("SHOW synchronous_commit", &[]).await?.get::<_, String>(0)))
            .await;
        assert_eq!(shown.unwrap(), used, "{default}");
    }
}

#[tokio::test]
async fn connections_that_the_server_ended_are_replaced_and_no_reader_notices() {
    let server = Server::start();
    let store = opened(&server).await;
    join_all((0..8).map(|_| store.runs(None, 1))).await;
    for _ in 0..5 {
        let others = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = \
                      'gitdoor-control'";
        server.sql("postgres", others);
        store.runs(None, 1).await.unwrap();
        store.run(&id("r")).await.unwrap();
    }
}

#[tokio::test]
async fn look_ups_that_wait_together_share_a_query_and_each_gets_its_own() {
    let server = Server::start();
    let store = opened(&server).await;
    for number in 0..50 {
        store.register(&run(&format!("r{number}"), start())).await.unwrap();
    }
    let names: Vec<RunId> = (0..100).map(|number| id(&format!("r{number}"))).collect();
    let (blocker, connection) =
        tokio_postgres::connect(&server.url("postgres"), tokio_postgres::NoTls).await.unwrap();
    let connection = tokio::spawn(connection);
    blocker.batch_execute("BEGIN; LOCK TABLE runs").await.unwrap();
    let look_ups = join_all(names.iter().map(|name| store.run(name)));
    let released = async {
        let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
        // Whoever asked first had a query alone; the others had to wait.
        while blocker.query_one(waiting, &[]).await.unwrap().get::<_, i64>(0) == 0 {
            sleep(Duration::from_millis(5)).await;
        }
        let waiting: i64 = blocker.query_one(waiting, &[]).await.unwrap().get(0);
        blocker.batch_execute("COMMIT").await.unwrap();
        waiting
    };
    let (found, queries) = tokio::join!(look_ups, released);
    assert!(queries <= 2, "{queries}");
    for (number, (name, found)) in names.iter().zip(found).enumerate() {
        let expected = (number < 50).then(|| name.clone());
        assert_eq!(found.unwrap().map(|run| run.id), expected);
    }
    connection.abort();
}

#[tokio::test]
async fn who_comes_when_enough_wait_is_told_at_once_and_nobody_waits_for_ever() {
    let server = Server::start();
    let store = impatient(&server).await;
    store.register(&run("r", start())).await.unwrap();
    let (blocker, connection) =
        tokio_postgres::connect(&server.url("postgres"), tokio_postgres::NoTls).await.unwrap();
    let connection = tokio::spawn(connection);
    blocker.batch_execute("BEGIN; LOCK TABLE runs").await.unwrap();
    let revocations = join_all((0..400).map(|_| async { store.revoke(&id("r"), start()).await }));
    let outcomes = timeout(HANGS, revocations).await.expect("each has an answer");
    let busy = outcomes.iter().filter(|outcome| matches!(outcome, Err(StoreError::Busy))).count();
    let late = outcomes.iter().filter(|outcome| matches!(outcome, Err(StoreError::Postgres(_)))).count();
    // Four connections, and 32 that wait for each; those that waited in vain are told that it is busy, too.
    assert!(busy >= 400 - 4 * 33 && late >= 4 && busy + late == 400, "{busy} {late}");
    blocker.batch_execute("COMMIT").await.unwrap();
    working(&store).await;
    assert!(store.revoke(&id("r"), start()).await.unwrap().is_some());
    connection.abort();
}

#[tokio::test]
async fn no_number_of_lists_keeps_out_what_ends_runs_and_keeps_records() {
    let server = Server::start();
    let store = opened(&server).await;
    store.register(&run("r", start())).await.unwrap();
    let (blocker, connection) =
        tokio_postgres::connect(&server.url("postgres"), tokio_postgres::NoTls).await.unwrap();
    let connection = tokio::spawn(connection);
    // Lists stand still, and what is kept for does not ask this table.
    blocker.batch_execute("BEGIN; LOCK TABLE mirror_tokens").await.unwrap();
    let lists = join_all((0..400).map(|_| store.mirror_tokens(1)));
    let others = timeout(HANGS, async {
        let control = ControlId::from_bytes([1; 16]);
        store.beat(control).await.unwrap();
        assert!(store.run(&id("r")).await.unwrap().is_some());
        assert!(store.revoke(&id("r"), start()).await.unwrap().is_some());
        assert_eq!(store.unreported(&id("r")).await.unwrap(), []);
        assert_eq!(store.ended_since(start() - Duration::from_secs(1)).await.unwrap(), [id("r")]);
        assert_eq!(store.claim_pushes(control).await.unwrap(), []);
    });
    tokio::select! {
        biased;
        _ = lists => panic!("they stand still as long as the others ask"),
        done = others => done.expect("each has an answer"),
    }
    connection.abort();
}

#[tokio::test]
async fn a_server_that_is_gone_or_stands_still_is_an_error_and_not_a_wait() {
    let mut server = Server::start();
    let store = impatient(&server).await;
    let failing = async |store: &Postgres| {
        let (run, id, push) = (run("r", start()), id("r"), push("r", 1));
        let writes = async {
            assert!(store.register(&run).await.is_err());
            assert!(store.open_push(&push, 1, ANY, start()).await.is_err());
        };
        let reads = async { assert!(store.run(&id).await.is_err() && store.runs(None, 1).await.is_err()) };
        timeout(HANGS, async { tokio::join!(writes, reads) }).await.expect("an error, and not a wait");
    };
    server.signal("STOP");
    failing(&store).await;
    server.signal("CONT");
    working(&store).await;
    server.kill();
    failing(&store).await;
    server.restart();
    working(&store).await;
}

#[tokio::test]
async fn a_server_on_the_network_proves_its_name_and_takes_the_password_of_the_file() {
    // Has the port and does not listen, so that nobody else is given it before the server has.
    let place = tokio::net::TcpSocket::new_v4().unwrap();
    place.set_reuseaddr(true).unwrap();
    place.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let port = place.local_addr().unwrap().port();
    let made = |name: &str| rcgen::generate_simple_self_signed([name.to_owned()]).unwrap();
    let (own, other) = (made("localhost"), made("localhost"));
    let server = Server::start_with(
        port,
        &[
            ("postgresql.conf", "ssl = on\nlisten_addresses = '127.0.0.1'\n"),
            ("pg_hba.conf", "local all all trust\nhostssl all all 127.0.0.1/32 scram-sha-256\n"),
            ("server.crt", &own.cert.pem()),
            ("server.key", &own.signing_key.serialize_pem()),
        ],
    );
    server.sql("postgres", "ALTER USER gitdoor PASSWORD 'hush hush'");
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        Some(path)
    };
    let good = Config {
        password_file: file("password", "hush hush\n"),
        ca: file("ca", &own.cert.pem()),
        ..Config::new(&format!("postgres://gitdoor@localhost:{port}/postgres?sslmode=verify-full"))
    };
    Postgres::open(&good).await.unwrap().register(&run("r", start())).await.unwrap();
    let words = async |config: Config| {
        let error = crate::gate::cause(&Postgres::open(&config).await.err().unwrap());
        assert!(!error.contains("hush"), "{error}");
        error
    };
    let wrong = words(Config { ca: file("other", &other.cert.pem()), ..good.clone() }).await;
    assert!(wrong.contains("certificate"), "{wrong}");
    let wrong = words(Config { url: good.url.replace("localhost", "127.0.0.1"), ..good.clone() }).await;
    assert!(wrong.contains("certificate"), "{wrong}");
    let wrong = words(Config { password_file: file("wrong", "hushed"), ..good.clone() }).await;
    assert!(wrong.contains("password"), "{wrong}");
    let plain = words(Config { url: good.url.replace("verify-full", "disable"), ..good }).await;
    assert!(plain.contains("encryption"), "{plain}");
}

fn push(run: &str, number: u64) -> Push {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&number.to_be_bytes());
    let command = Command { old_oid: "0".repeat(40), new_oid: "a".repeat(40), ref_name: b"refs/heads/x".to_vec() };
    Push {
        id: PushId::from_bytes(bytes),
        run: id(run),
        request_id: "q".into(),
        repository: binding(start()).repository,
        refs: vec![PushedRef { command, refusal: None }],
        ticket: None,
        control: Some(ControlId::from_bytes([1; 16])),
        outcome: Outcome::Open,
        request_bytes: 0,
        opened_at: start(),
        closed_at: None,
    }
}

/// What was answered to one run after another, up to the given step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Nothing,
    Registered,
    Bound,
    Opened,
    Closed,
    Revoked,
}

/// Takes a run through its life until the store fails, and says how far it was told that it came.
async fn live(store: &Postgres, name: &str, number: u64) -> Step {
    let (id, push) = (id(name), push(name, number));
    if store.register(&run(name, start())).await.is_err() {
        return Step::Nothing;
    }
    let Ok(bound) = store.bind(&id, 1, &binding(start()), start()).await else { return Step::Registered };
    assert!(bound.unwrap().binding.is_some());
    let Ok(opened) = store.open_push(&push, 1, ANY, start()).await else { return Step::Bound };
    assert_eq!(opened, Opened::Open);
    let done = Closing { outcome: Outcome::Done, upstream_refusals: Vec::new(), request_bytes: 1, at: start() };
    let Ok(closed) = store.close_push(push.id, &done).await else { return Step::Opened };
    assert_eq!(closed, Closed::Now);
    let Ok(revoked) = store.revoke(&id, start()).await else { return Step::Closed };
    assert!(revoked.unwrap().revoked_at.is_some());
    Step::Revoked
}

/// How far a run came, as it is stored.
async fn stored(store: &Postgres, name: &str) -> Step {
    let Some(run) = store.run(&id(name)).await.unwrap() else { return Step::Nothing };
    let pushes = store.pushes(&run.id, None, 9).await.unwrap();
    match (run.revoked_at, pushes.first().map(|push| push.outcome), run.binding) {
        (Some(_), Some(Outcome::Done), Some(_)) => Step::Revoked,
        (None, Some(Outcome::Done), Some(_)) => Step::Closed,
        (None, Some(Outcome::Open), Some(_)) => Step::Opened,
        (None, None, Some(_)) => Step::Bound,
        (None, None, None) => Step::Registered,
        other => panic!("{name}: {other:?}"),
    }
}

#[tokio::test]
async fn no_answered_write_is_lost_when_the_server_is_killed_under_load() {
    let mut server = Server::start();
    let store = Arc::new(opened(&server).await);
    let (over, lived) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let workers: Vec<_> = (0..16_u64)
        .map(|worker| {
            let (store, over, lived) = (store.clone(), over.clone(), lived.clone());
            tokio::spawn(async move {
                let mut told = Vec::new();
                for number in 0.. {
                    let name = format!("w{worker}-{number}");
                    let step = live(&store, &name, worker << 32 | number).await;
                    told.push((name, step));
                    if step == Step::Revoked {
                        lived.fetch_add(1, Ordering::Relaxed);
                    } else {
                        sleep(Duration::from_millis(10)).await;
                    }
                    if over.load(Ordering::Relaxed) {
                        break;
                    }
                }
                told
            })
        })
        .collect();
    let more = async |runs: usize| {
        let goal = lived.load(Ordering::Relaxed) + runs;
        while lived.load(Ordering::Relaxed) < goal {
            sleep(Duration::from_millis(5)).await;
        }
    };
    for _ in 0..3 {
        timeout(HANGS, more(100)).await.expect("the work goes on by itself");
        server.kill();
        sleep(Duration::from_millis(50)).await;
        server.restart();
    }
    timeout(HANGS, more(100)).await.expect("the work goes on by itself");
    over.store(true, Ordering::Relaxed);
    let told: Vec<_> = join_all(workers).await.into_iter().flat_map(Result::unwrap).collect();
    let cut = told.iter().filter(|(_, step)| *step != Step::Revoked).count();
    assert!(cut > 0, "the server was killed while nothing was under way");
    for (name, step) in told {
        let found = stored(&store, &name).await;
        assert!(found >= step, "{name}: told {step:?}, stored {found:?}");
    }
}
