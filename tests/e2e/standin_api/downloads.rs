//! Downloads: logs, artifacts, assets and archives lie on another host, which a signature opens and a credential closes.

use gitdoor_tests::github::{ASSET, Host};
use gitdoor_tests::raw::Request;

use super::{Ground, Json as _};

#[tokio::test]
async fn a_download_lies_elsewhere_and_opens_to_its_signature_alone() {
    let ground = Ground::new();
    let asset = Request::get("/repos/acme/api/releases/assets/5").header("Accept", "application/octet-stream");
    let path = ground.download(&ground.send_as(&ground.token, asset).await);
    let whole = ground.stored(Request::get(&path)).await;
    assert_eq!((whole.status, whole.body.as_slice()), (200, ASSET));
    assert_eq!(whole.header("content-disposition"), Some("attachment; filename=\"tool.tar.gz\""));
    let part = ground.stored(Request::get(&path).header("Range", "bytes=2-5")).await;
    assert_eq!((part.status, part.body.as_slice()), (206, &ASSET[2..6]));
    let range = format!("bytes 2-5/{}", ASSET.len());
    assert_eq!(part.header("content-range"), Some(range.as_str()));
    for (name, value) in [("Authorization", "token x"), ("Cookie", "a=b"), ("Token", "x")] {
        let refused = ground.stored(Request::get(&path).header(name, value)).await;
        assert_eq!(refused.status, 403, "{name}");
        assert!(refused.text().contains("<Code>AuthenticationFailed</Code>"), "{}", refused.text());
    }
    let unsigned = path.split('?').next().unwrap();
    assert_eq!(ground.stored(Request::get(unsigned)).await.status, 403);
    assert_eq!(ground.stored(Request::get(&format!("{unsigned}?sig=A"))).await.status, 403);
    let came = ground.github.downloads();
    assert!(came.iter().all(|request| request.server == Host::Storage && request.token.is_none()));
    assert_eq!(came[2].header("authorization"), Some("token x"));
}

#[tokio::test]
async fn logs_artifacts_and_archives_are_what_they_say() {
    let ground = Ground::new();
    for (path, begins) in [
        ("actions/runs/77/logs", &b"PK"[..]),
        ("actions/artifacts/4/zip", b"PK"),
        ("zipball/v1.0.0", b"PK"),
        ("tarball", b"\x1f\x8b"),
        ("actions/jobs/88/logs", b"2025-11-02T12:00:10.0000000Z Current runner"),
    ] {
        let there = ground.download(&ground.get(&format!("/repos/acme/api/{path}")).await);
        let answer = ground.stored(Request::get(&there)).await;
        assert!(answer.status == 200 && answer.body.starts_with(begins), "{path}: {}", answer.text());
    }
    let logs = ground.download(&ground.get("/repos/acme/api/actions/runs/77/logs").await);
    let logs = ground.stored(Request::get(&logs)).await.text();
    assert!(logs.contains("0_build.txt") && logs.contains("build/1_Set up job.txt"), "{logs}");
}

#[tokio::test]
async fn an_artifact_of_any_size_is_made_as_it_is_sent() {
    const SIZE: usize = 16 << 20;
    let ground = Ground::new();
    let id = ground.github.add_artifact("acme/api", 77, "large", SIZE as u64);
    let listed = ground.get("/repos/acme/api/actions/runs/77/artifacts").await.json();
    assert_eq!(listed["artifacts"][1]["size_in_bytes"], SIZE);
    let path = ground.download(&ground.get(&format!("/repos/acme/api/actions/artifacts/{id}/zip")).await);
    let whole = ground.stored(Request::get(&path)).await;
    assert_eq!((whole.complete, whole.body.len()), (true, SIZE));
    let middle = format!("bytes={}-{}", SIZE / 2, SIZE / 2 + 999);
    let part = ground.stored(Request::get(&path).header("Range", &middle)).await;
    assert_eq!(part.body, whole.body[SIZE / 2..SIZE / 2 + 1000]);
}
