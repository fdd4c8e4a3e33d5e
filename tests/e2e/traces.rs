//! One request, found everywhere: by the id that the door gives it, and by the trace that a shim has made it part of.

use std::collections::BTreeSet;

use gitdoor_proto::v1::Identity;
use gitdoor_tests::raw::Request;
use gitdoor_tests::wait::until;
use gitdoor_tests::world::{Builder, Run, World, run_to_exit};
use serde_json::Value;

use crate::PROGRAM;

const TRACE_ID: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT_ID: &str = "00f067aa0ba902b7";
const TRACE_PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const FETCH: &str = "/acme/api.git/info/refs?service=git-upload-pack";

/// A world whose parts log in JSON, with a run that may push to `acme/api`.
async fn started(change: impl FnOnce(Builder) -> Builder) -> (World, Run) {
    let builder = World::builder(PROGRAM).control_flag("--log-format=json").dataplane_flag("--log-format=json");
    let world = change(builder).start().await;
    world.github.seed("acme/api").furnished().create();
    let run = world.register(Identity::Write).await;
    (world, run)
}

/// What control says of a request: its events, in order, once there are so many, which may still be on their way.
async fn said_of(world: &World, request_id: &str, least: usize) -> Vec<Value> {
    let of_it = |event: &Value| event["request_id"] == *request_id;
    let said = || world.control_events().into_iter().filter(of_it).collect::<Vec<_>>();
    until("control has told of it", async || said().len() >= least).await;
    said()
}

fn names(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["message"].as_str().unwrap()).collect()
}

/// `gitdoor run show`, with these arguments.
async fn shown(world: &World, run: &Run, more: &[&str]) -> String {
    let control = format!("--control={}", world.runs_address());
    let arguments = [&["run", "show", &run.id, &control], more].concat().into_iter().map(str::to_owned);
    let exit = run_to_exit(PROGRAM.as_ref(), "__gitdoor", &arguments.collect::<Vec<_>>()).await;
    assert_eq!(exit.code, Some(0), "{}", exit.stderr);
    exit.stdout
}

/// The pushes of a run, newest first.
async fn ledger(world: &World, run: &Run) -> Vec<Value> {
    let shown: Value = serde_json::from_str(&shown(world, run, &["--json"]).await).unwrap();
    shown["pushes"].as_array().unwrap().clone()
}

#[tokio::test]
async fn the_id_that_git_prints_of_a_refused_push_finds_it_in_both_logs_and_in_the_ledger() {
    let (world, run) = started(|builder| builder).await;
    let git = world.git(&run).cloned("acme/api").await;
    git.commit("a", "a").await;
    let refused = git.run(&["push", "origin", "HEAD:main"]).await.code_is(1).says("refused: default branch");
    let line = refused.stderr.lines().find_map(|line| line.strip_prefix("remote: gitdoor: request "));
    let id = line.unwrap().trim();
    let event = world.event("request_id", id).await;
    assert_eq!((&event["route"], &event["reason"]), (&"push".into(), &"default-branch".into()), "{event}");
    let said = said_of(&world, id, 1).await;
    assert_eq!(names(&said), ["authorize"], "{said:?}");
    assert_eq!((&said[0]["intent"], &said[0]["verdict"]), (&"push".into(), &"default-branch".into()));
    let pushes = ledger(&world, &run).await;
    assert_eq!((&pushes[0]["request_id"], &pushes[0]["outcome"]), (&id.into(), &"refused".into()), "{pushes:?}");
    assert!(shown(&world, &run, &[]).await.contains(id), "for people, too");
    world.finish().await;
}

#[tokio::test]
async fn the_id_of_a_push_in_the_ledger_finds_it_in_both_logs() {
    let (world, run) = started(|builder| builder).await;
    let git = world.git(&run).cloned("acme/api").await;
    git.commit("a", "a").await;
    git.run(&["push", "origin", "HEAD:fix-x"]).await.ok();
    let pushes = ledger(&world, &run).await;
    let id = pushes[0]["request_id"].as_str().unwrap();
    assert_eq!(pushes[0]["outcome"], "done");
    let event = world.event("request_id", id).await;
    assert_eq!((&event["route"], &event["outcome"]), (&"push".into(), &"done".into()), "{event}");
    let said = said_of(&world, id, 2).await;
    assert_eq!(names(&said), ["authorize", "report"], "{said:?}");
    assert_eq!((&said[0]["intent"], &said[1]["outcome"]), (&"push".into(), &"done".into()));
    // The discovery before it is a request of its own, which bound the run.
    let discovery = world.event("route", "push-discovery").await;
    let discovered = said_of(&world, discovery["request_id"].as_str().unwrap(), 2).await;
    assert_eq!(names(&discovered), ["authorize", "bind"], "{discovered:?}");
    // No id is there twice, and each has one event.
    let events = world.events();
    let ids: BTreeSet<_> = events.iter().map(|event| event["request_id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), events.len(), "{events:?}");
    world.finish().await;
}

#[tokio::test]
async fn a_trace_of_a_shim_is_in_both_logs_and_never_goes_up() {
    let (world, run) = started(|builder| builder.dataplane_flag("--shim=10.9.0.0/16,127.0.0.1")).await;
    let discovery = FETCH.replace("upload", "receive");
    for path in [FETCH, &discovery, "/api/v3/repos/acme/api"] {
        let request = Request::get(path).basic(&run.bearer).header("X-Forwarded-For", "192.0.2.1, 198.51.100.7");
        let request = request.header("traceparent", TRACE_PARENT).header("tracestate", "a=b");
        let answer = world.door(0).send(request).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let id = answer.header("x-request-id").unwrap();
        let event = world.event("request_id", id).await;
        let said = said_of(&world, id, 1).await;
        for event in said.iter().chain([&event]) {
            assert_eq!((&event["trace_id"], &event["parent_id"]), (&TRACE_ID.into(), &PARENT_ID.into()), "{event}");
        }
        assert_eq!(event["client"], "198.51.100.7");
    }
    let went_up = world.github.requests();
    assert!(went_up.len() >= 3);
    for request in went_up {
        for name in ["traceparent", "tracestate", "x-forwarded-for", "x-request-id"] {
            assert_eq!(request.header(name), None, "{request:?}");
        }
        assert!(!format!("{:?}", request.headers).contains(TRACE_ID));
    }
    world.finish().await;
}

#[tokio::test]
async fn a_push_keeps_the_trace_of_its_shim_to_its_report() {
    let (world, run) = started(|builder| builder.dataplane_flag("--shim=127.0.0.0/8")).await;
    let git = world.git(&run).cloned("acme/api").await;
    git.commit("a", "a").await;
    let header = format!("http.extraHeader=traceparent: {TRACE_PARENT}");
    git.run(&["-c", &header, "push", "origin", "HEAD:fix-x"]).await.ok();
    let pushes = ledger(&world, &run).await;
    let said = said_of(&world, pushes[0]["request_id"].as_str().unwrap(), 2).await;
    assert_eq!(names(&said), ["authorize", "report"], "{said:?}");
    assert!(said.iter().all(|event| event["trace_id"] == TRACE_ID), "{said:?}");
    world.finish().await;
}

#[tokio::test]
async fn a_client_that_is_no_shim_makes_its_requests_part_of_no_trace() {
    let (world, run) = started(|builder| builder.dataplane_flag("--shim=10.9.0.0/16,::1,unix")).await;
    let request = Request::get(FETCH).basic(&run.bearer).header("X-Forwarded-For", "198.51.100.7");
    let answer = world.door(0).send(request.header("traceparent", TRACE_PARENT)).await;
    assert_eq!(answer.status, 200);
    let id = answer.header("x-request-id").unwrap();
    let event = world.event("request_id", id).await;
    for event in said_of(&world, id, 1).await.iter().chain([&event]) {
        assert!(event.get("trace_id").is_none() && event.get("parent_id").is_none(), "{event}");
    }
    assert_eq!(event["client"], "127.0.0.1");
    assert!(!world.lines().iter().any(|line| line.contains(TRACE_ID)));
    world.finish().await;
}

#[tokio::test]
async fn a_shim_on_a_unix_socket_is_one_where_it_is_said_to_be() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("door.sock");
    let listen = format!("--listen=unix:{}", socket.display());
    let (world, run) =
        started(|builder| builder.plain().dataplane_flag(&listen).dataplane_flag("--shim=unix")).await;
    let request = Request::get(FETCH).basic(&run.bearer).header("traceparent", TRACE_PARENT);
    let answer = unix(&socket, request.header("Connection", "close")).await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    let event = world.event("trace_id", TRACE_ID).await;
    assert_eq!((&event["route"], event.get("client")), (&"fetch-discovery".into(), None), "{event}");
    let said = said_of(&world, event["request_id"].as_str().unwrap(), 1).await;
    assert!(said.iter().all(|event| event["parent_id"] == PARENT_ID), "{said:?}");
    world.finish().await;
}

/// What a request through a socket is answered.
async fn unix(socket: &std::path::Path, request: Request) -> String {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut stream = tokio::net::UnixStream::connect(socket).await.unwrap();
    stream.write_all(&request.to_bytes("localhost")).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn a_log_in_either_form_has_one_event_a_request_and_a_json_line_an_event() {
    for form in ["json", "text"] {
        let flag = format!("--log-format={form}");
        let world = World::builder(PROGRAM).control_flag(&flag).dataplane_flag(&flag).start().await;
        world.github.create("acme/api");
        let run = world.register(Identity::Read).await;
        let id = world.door(0).send(Request::get(FETCH).basic(&run.bearer)).await;
        let id = id.header("x-request-id").unwrap().to_owned();
        let of_it = || world.lines().into_iter().filter(|line| line.contains(&id)).collect::<Vec<_>>();
        until("both planes have told of it", async || of_it().len() >= 2).await;
        let lines = of_it();
        assert_eq!(lines.len(), 2, "{lines:?}");
        let parts: BTreeSet<_> = lines.iter().map(|line| line.split_once(": ").unwrap().0).collect();
        assert_eq!(parts, BTreeSet::from(["control", "dataplane-0"]), "{lines:?}");
        for line in &lines {
            let (_, text) = line.split_once(": ").unwrap();
            let object = serde_json::from_str::<Value>(text).is_ok_and(|event| event.is_object());
            assert_eq!(object, form == "json", "{line}");
        }
        world.finish().await;
    }
}
