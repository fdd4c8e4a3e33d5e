//! Pushes as other clients sent them: the ledger names exactly the refs that they name.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gitdoor_tests::raw::Request;
use gitdoor_tests::world::World;
use serde_json::Value;

use super::{assert_refusal, bound};
use crate::PROGRAM;

const RECORDED: &str = include_str!("../../wire/receive_pack_requests.json");

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

/// The request, coded and framed as its client did. Of a plain body the beginning is recorded.
fn request(recorded: &Value) -> Request {
    let body = recorded["gzip_body_b64"].as_str().unwrap_or(text(&recorded["plain_prefix_b64"]));
    let body = STANDARD.decode(body).unwrap();
    let request = if recorded["transfer"] == "chunked" {
        let media = "application/x-git-receive-pack-request";
        let request = Request::post("/acme/api.git/git-receive-pack").header("Content-Type", media);
        request.chunked(body.chunks(97))
    } else {
        Request::push("acme/api", body)
    };
    match recorded["content_encoding"].as_str() {
        Some(coding) => request.header("Content-Encoding", coding),
        None => request,
    }
}

#[tokio::test]
async fn the_ledger_names_what_each_recorded_client_pushed() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    let before = world.github.refs("acme/api");
    let recorded: Vec<Value> = serde_json::from_str(RECORDED).unwrap();
    assert_eq!(recorded.len(), 31);
    let mut read = 0;
    for recorded in recorded {
        let name = text(&recorded["name"]);
        let run = bound(&world).await;
        let answer = world.door(0).send(request(&recorded).basic(&run.bearer)).await;
        let expect = &recorded["expect"];
        let pushes = world.show(&run).await.pushes;
        if expect["push_cert"] == true || expect["push_options"].is_array() {
            assert_refusal(&answer, 400, "malformed-push", name);
            assert!(pushes.is_empty(), "{name}");
            continue;
        }
        read += 1;
        assert_eq!(answer.status, 200, "{name}: {}", answer.text());
        assert_eq!(pushes.len(), 1, "{name}");
        let named: Vec<[String; 3]> = pushes[0]
            .refs
            .iter()
            .map(|r| [r.old_oid.clone(), r.new_oid.clone(), String::from_utf8(r.ref_name.clone()).unwrap()])
            .collect();
        let expected: Vec<[String; 3]> = serde_json::from_value(expect["commands"].clone()).unwrap();
        assert_eq!(named, expected, "{name}");
        for reference in &pushes[0].refs {
            let line = format!("ng {} ", String::from_utf8_lossy(&reference.ref_name));
            assert!(answer.text().contains(&line), "{name}: {line}: {}", answer.text());
        }
    }
    assert_eq!(read, 29);
    // Their objects are not there, or not theirs to push: nothing landed.
    assert_eq!(world.github.refs("acme/api"), before);
    world.finish().await;
}
