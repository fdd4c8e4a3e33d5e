//! Who of several controls is alive, and who answers for what the dead left open.

use std::sync::Arc;

use futures_util::future::join_all;

use super::{ANY, opened, push, start};
use crate::fleet::ControlId;
use crate::push::Push;
use crate::run::tests::run;
use crate::store::Store;
use crate::store::postgres::server::Server;

#[tokio::test]
async fn the_pushes_of_a_dead_control_are_claimed_by_one_of_many_and_those_of_a_live_one_by_none() {
    let server = Server::start();
    let store = Arc::new(opened(&server).await);
    let control = |number: u8| ControlId::from_bytes([number; 16]);
    store.register(&run("r", start())).await.unwrap();
    let of = |owner: ControlId, number| Push { control: Some(owner), ..push("r", number) };
    for (owner, numbers) in [(1, 0..40), (2, 40..50)] {
        store.beat(control(owner)).await.unwrap();
        for number in numbers {
            store.open_push(&of(control(owner), number), 1, ANY, start()).await.unwrap();
        }
    }
    // Well before the fifteenth second, which comes while this is asked for.
    server.sql("postgres", "UPDATE controls SET seen_at = now() - interval '5 s'");
    assert!(store.claim_pushes(control(3)).await.unwrap().is_empty());
    let dead = "UPDATE controls SET seen_at = now() - interval '16 s' WHERE get_byte(control_id, 0) = 1";
    server.sql("postgres", dead);
    let claimants = [3, 4, 5].map(control);
    join_all(claimants.iter().map(|claimant| store.beat(*claimant))).await;
    let claims = join_all(claimants.iter().map(|claimant| store.claim_pushes(*claimant))).await;
    let mut claimed: Vec<_> = claims.into_iter().flat_map(Result::unwrap).map(|claimed| claimed.push).collect();
    claimed.sort_by_key(|push| *push.as_bytes());
    assert_eq!(claimed, (0..40).map(|number| push("r", number).id).collect::<Vec<_>>());
    // One that comes back finds what is still its own, and takes nothing back.
    store.beat(control(1)).await.unwrap();
    assert!(store.claim_pushes(control(1)).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_control_that_has_been_dead_for_long_is_forgotten() {
    let server = Server::start();
    let store = opened(&server).await;
    for number in [1, 2, 1] {
        store.beat(ControlId::from_bytes([number; 16])).await.unwrap();
    }
    let old = "UPDATE controls SET seen_at = now() - interval '25 h' WHERE get_byte(control_id, 0) = 1";
    server.sql("postgres", old);
    store.beat(ControlId::from_bytes([2; 16])).await.unwrap();
    assert_eq!(server.sql("postgres", "SELECT get_byte(control_id, 0) FROM controls"), "2");
}
