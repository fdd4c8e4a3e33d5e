use super::*;

use tokio::time::advance;

use crate::push::{Closing, Outcome};
use crate::store::sqlite::Sqlite;
use crate::store::{Limit, Store};

const FAR: SystemTime = SystemTime::UNIX_EPOCH;

fn far() -> SystemTime {
    FAR + Duration::from_hours(1)
}

fn run() -> RunId {
    RunId::parse("r").unwrap()
}

fn leases() -> Leases {
    Leases::new(ControlId::from_bytes([1; 16]))
}

fn push(number: u8) -> PushId {
    PushId::from_bytes([number; 16])
}

#[tokio::test(start_paused = true)]
async fn no_lease_is_granted_or_renewed_after_its_run_ended() {
    let leases = leases();
    leases.hold(&run(), push(1), far()).unwrap();
    leases.end(&run(), End::Revoked);
    assert_eq!(leases.renew(&run(), push(1), far()), Err(End::Revoked));
    assert_eq!(leases.hold(&run(), push(2), far()), Err(End::Revoked));
    assert_eq!(leases.hold(&run(), push(3), far()), Err(End::Revoked));
}

#[tokio::test(start_paused = true)]
async fn a_run_that_was_adopted_as_it_expired_goes_on() {
    let leases = leases();
    leases.hold(&run(), push(1), far()).unwrap();
    leases.expire(&run(), far());
    assert_eq!(leases.renew(&run(), push(1), far()), Err(End::Expired));
    let later = far() + Duration::from_hours(1);
    assert_eq!(leases.renew(&run(), push(1), later), Ok(true));
    assert_eq!(leases.news().0, []);
    leases.expire(&run(), later);
    assert_eq!(leases.renew(&run(), push(1), later), Err(End::Expired));
}

#[tokio::test(start_paused = true)]
async fn the_revocation_of_a_run_that_seemed_to_have_expired_is_told() {
    let leases = leases();
    leases.expire(&run(), far());
    let (_, mut news) = leases.news();
    leases.end(&run(), End::Revoked);
    leases.end(&run(), End::Revoked);
    leases.expire(&run(), far());
    assert_eq!(news.recv().await.unwrap(), Ended { run: run(), end: End::Revoked });
    assert!(news.is_empty());
    let later = far() + Duration::from_hours(1);
    assert_eq!(leases.hold(&run(), push(1), later), Err(End::Revoked));
}

#[tokio::test(start_paused = true)]
async fn a_control_that_could_not_say_that_it_is_alive_takes_each_push_for_anothers() {
    let leases = leases();
    leases.hold(&run(), push(1), far()).unwrap();
    advance(DOUBTFUL).await;
    assert_eq!(leases.renew(&run(), push(1), far()), Ok(false));
    leases.beaten();
    assert_eq!(leases.renew(&run(), push(1), far()), Ok(true));
}

#[tokio::test(start_paused = true)]
async fn a_push_counts_while_it_may_write_and_until_the_end_of_one_that_went_up_is_known() {
    let leases = leases();
    leases.hold(&run(), push(0), far()).unwrap();
    leases.hold(&run(), push(1), far()).unwrap();
    leases.sent(&run(), push(1), far());
    assert_eq!(leases.lapsed(&run()), []);
    advance(LEASE).await;
    assert_eq!(leases.lapsed(&run()), [push(0)]);
}

#[tokio::test(start_paused = true)]
async fn a_push_is_lost_ten_seconds_after_its_lease_and_not_before() {
    let leases = leases();
    leases.hold(&run(), push(1), far()).unwrap();
    leases.hold(&run(), push(2), far()).unwrap();
    advance(Duration::from_millis(11_999)).await;
    leases.sent(&run(), push(2), far());
    assert_eq!(leases.sweep(FAR), Swept::default());
    advance(Duration::from_millis(2)).await;
    assert_eq!(leases.sweep(FAR).lost, [(run(), push(1))]);
    leases.close(&run(), push(1));
    assert_eq!(leases.sweep(FAR), Swept::default());
}

#[tokio::test(start_paused = true)]
async fn the_expiry_of_a_run_is_told_once_and_ends_its_leases() {
    let leases = leases();
    let (_, mut news) = leases.news();
    leases.hold(&run(), push(1), far()).unwrap();
    assert_eq!(leases.sweep(far() - Duration::from_secs(1)), Swept::default());
    assert!(news.is_empty());
    for _ in 0..3 {
        assert_eq!(leases.sweep(far()).due, [run()]);
    }
    for _ in 0..3 {
        leases.end(&run(), End::Expired);
        assert_eq!(leases.sweep(far()), Swept::default());
    }
    assert_eq!(news.recv().await.unwrap(), Ended { run: run(), end: End::Expired });
    assert!(news.is_empty());
    assert_eq!(leases.renew(&run(), push(1), far()), Err(End::Expired));
}

#[tokio::test(start_paused = true)]
async fn a_new_session_hears_of_the_ends_of_the_last_minutes() {
    let leases = leases();
    leases.end(&run(), End::Revoked);
    assert_eq!(leases.news().0, [Ended { run: run(), end: End::Revoked }]);
    advance(Duration::from_secs(181)).await;
    assert_eq!(leases.sweep(FAR), Swept::default());
    assert_eq!(leases.news().0, []);
}

#[tokio::test(start_paused = true)]
async fn a_prolonged_run_is_not_due_until_its_new_time() {
    let leases = leases();
    leases.hold(&run(), push(1), far()).unwrap();
    leases.prolong(&run(), far() + LEASE);
    assert_eq!(leases.sweep(far() + LEASE - Duration::from_micros(1)), Swept::default());
    // A renewal has read the run, too.
    assert!(leases.renew(&run(), push(1), far() + LEASE * 2).unwrap());
    assert_eq!(leases.sweep(far() + LEASE), Swept::default());
    assert_eq!(leases.sweep(far() + LEASE * 2).due, [run()]);
}

fn claimed(number: u8) -> Claimed {
    Claimed { push: push(number), run: run(), expires_at: far() }
}

#[tokio::test(start_paused = true)]
async fn a_claimed_push_has_no_lease_and_is_lost_unless_it_is_heard_of() {
    let leases = leases();
    leases.hold(&run(), push(1), far()).unwrap();
    let known = leases.known();
    assert_eq!(leases.claimed(&known, vec![claimed(1), claimed(2), claimed(3)]), 2);
    let mut lapsed = leases.lapsed(&run());
    lapsed.sort_by_key(|push| *push.as_bytes());
    assert_eq!(lapsed, [push(2), push(3)]);
    advance(LOST_AFTER / 2).await;
    assert!(leases.renew(&run(), push(3), far()).unwrap());
    assert_eq!(leases.sweep(FAR), Swept::default());
    advance(LOST_AFTER / 2).await;
    assert_eq!(leases.sweep(FAR).lost, [(run(), push(2))]);
}

#[tokio::test(start_paused = true)]
async fn a_push_that_has_gone_to_another_control_is_not_renewed_before_it_is_taken_back() {
    let leases = leases();
    leases.hold(&run(), push(1), far()).unwrap();
    let known = leases.known();
    // It began after the ledger was read.
    leases.hold(&run(), push(2), far()).unwrap();
    leases.claimed(&known, Vec::new());
    assert!(!leases.renew(&run(), push(1), far()).unwrap());
    assert!(leases.renew(&run(), push(2), far()).unwrap());
    leases.hold(&run(), push(1), far()).unwrap();
    assert!(leases.renew(&run(), push(1), far()).unwrap());
}

/// A store with a run that has ended and so many open pushes.
async fn ended(pushes: u8) -> (tempfile::TempDir, Sqlite) {
    let dir = tempfile::tempdir().unwrap();
    let store = Sqlite::open(&dir.path().join("store")).unwrap();
    store.register(&crate::run::tests::run("r", FAR)).await.unwrap();
    for number in 0..pushes {
        let row = crate::push::tests::open_push(&run(), push(number), FAR);
        store.open_push(&row, 1, Limit { most: u32::MAX, lapsed: &[] }, FAR).await.unwrap();
    }
    store.revoke(&run(), FAR).await.unwrap();
    (dir, store)
}

/// How long an ended run takes to settle.
async fn settling(store: &Sqlite) -> Duration {
    tokio::time::pause();
    let start = Instant::now();
    settled(store, &run(), start).await;
    let took = start.elapsed();
    tokio::time::resume();
    took
}

/// A lease, by a clock that goes from millisecond to millisecond.
fn a_lease() -> std::ops::Range<Duration> {
    LEASE..LEASE + Duration::from_millis(10)
}

#[tokio::test]
async fn a_run_without_pushes_settles_at_once() {
    let (_dir, store) = ended(0).await;
    assert_eq!(settling(&store).await, Duration::ZERO);
}

#[tokio::test]
async fn a_run_settles_a_lease_after_its_end_unless_each_push_was_reported() {
    let (_dir, store) = ended(2).await;
    let done = Closing { outcome: Outcome::Done, ..Closing::unknown(FAR) };
    assert!(a_lease().contains(&settling(&store).await));
    store.close_push(push(0), &done).await.unwrap();
    assert!(a_lease().contains(&settling(&store).await));
    // Nobody reported it.
    assert!(store.lose_push(push(1), ControlId::from_bytes([1; 16]), FAR).await.unwrap());
    assert!(a_lease().contains(&settling(&store).await));
    store.close_push(push(1), &done).await.unwrap();
    assert_eq!(settling(&store).await, Duration::ZERO);
}
