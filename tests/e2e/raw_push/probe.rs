//! A probe asks whether a push would be heard: it goes up as it is for a bound run, and tells nobody else more than no.

use gitdoor_proto::v1::Identity;
use gitdoor_tests::pkt::{self, FLUSH};
use gitdoor_tests::raw::Request;
use gitdoor_tests::world::World;

use super::{ID, assert_refusal, bound};
use crate::PROGRAM;

/// A shallow clone's push of nothing.
fn shallow() -> Vec<u8> {
    let line = || pkt::line(format!("shallow {ID}"));
    [&line(), &line(), FLUSH].concat()
}

#[tokio::test]
async fn a_probe_of_a_bound_run_goes_up_unchanged() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    let run = bound(&world).await;
    for body in [FLUSH.to_vec(), shallow()] {
        let whole = Request::push("acme/api", body.clone());
        let chunked = Request::post("/ACME/api/git-receive-pack").chunked(body.chunks(1));
        for request in [whole, chunked] {
            let media = "application/x-git-receive-pack-request";
            let request = request.header("Content-Type", media).basic(&run.bearer);
            let answer = world.door(0).send(request).await;
            assert_eq!(answer.status, 200, "{}", answer.text());
            assert_eq!(answer.header("content-type"), Some("application/x-git-receive-pack-result"));
            let went_up = world.github.pushes().pop().unwrap();
            assert_eq!(went_up.body, body);
            assert_eq!(went_up.header("content-type"), Some(media));
        }
    }
    assert_eq!(world.github.pushes().len(), 4);
    assert!(world.show(&run).await.pushes.is_empty());
    world.finish().await;
}

#[tokio::test]
async fn a_probe_of_any_other_run_is_refused_plainly_and_does_not_go_up() {
    let world = World::start(PROGRAM).await;
    world.github.create("acme/api");
    world.github.create("acme/web");
    let [elsewhere, unbound] = [bound(&world).await, world.register(Identity::Write).await];
    let [reader, none] = [world.register(Identity::Read).await, world.register(Identity::None).await];
    let wrong = bound(&world).await;
    world.rotate(&wrong).await;
    for (run, repository, status, code) in [
        (&elsewhere, "acme/web", 403, "bound-elsewhere"),
        (&unbound, "acme/api", 403, "run-unbound"),
        (&reader, "acme/api", 403, "identity-read"),
        (&none, "acme/api", 403, "identity-none"),
        (&wrong, "acme/api", 401, "bearer-wrong"),
    ] {
        for body in [FLUSH.to_vec(), shallow()] {
            let answer = world.door(0).send(Request::push(repository, body).basic(&run.bearer)).await;
            assert_refusal(&answer, status, code, code);
            assert_eq!(answer.header("content-type"), Some("text/plain; charset=utf-8"));
        }
    }
    assert!(world.github.pushes().is_empty());
    assert!(world.show(&unbound).await.run.unwrap().binding.is_none());
    world.finish().await;
}
