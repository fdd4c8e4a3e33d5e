//! The pushes that are shown with a run: as many as fit an answer, and no more of the ledger is read than that.

use gitdoor_proto::{RunId, v1};

use super::page::Room;
use crate::store::{Store, StoreError};

/// Most pushes that are shown.
const MOST: usize = 500;
/// Pushes that are read at once. Each may have seven hundred refs: of all that are shown they are more than a store reads
/// in the time of an operation.
const AT_ONCE: u32 = 25;

/// The newest pushes of a run.
pub(crate) async fn pushes<S: Store>(store: &S, run: &RunId) -> Result<Vec<v1::Push>, StoreError> {
    let (mut shown, mut room, mut after) = (Vec::new(), Room::default(), None);
    while shown.len() < MOST {
        let read = store.pushes(run, after, AT_ONCE).await?;
        after = read.last().map(|push| push.id);
        let more = read.len() == AT_ONCE as usize;
        for push in read {
            let message = v1::Push::from(push);
            if !room.takes(&message) {
                return Ok(shown);
            }
            shown.push(message);
        }
        if !more {
            break;
        }
    }
    Ok(shown)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::clock::from_micros;
    use crate::push::{Command, Push, PushId, PushedRef};
    use crate::run::tests::run;
    use crate::store::Limit;
    use crate::store::sqlite::Sqlite;

    const PUSHES: u8 = 60;

    /// The first bytes of the ids that are shown of a run whose pushes have so many refs.
    async fn shown(refs: usize) -> Vec<u8> {
        let dir = tempfile::tempdir().unwrap();
        let store = Sqlite::open(&dir.path().join("store")).unwrap();
        let (run, any) = (run("r", from_micros(0)), Limit { most: u32::MAX, lapsed: &[] });
        store.register(&run).await.unwrap();
        for number in 1..=PUSHES {
            let opened_at = from_micros(0) + Duration::from_secs(number.into());
            let push = crate::push::tests::open_push(&run.id, PushId::from_bytes([number; 16]), opened_at);
            let command =
                Command { old_oid: "0".repeat(40), new_oid: "a".repeat(40), ref_name: b"refs/heads/x".to_vec() };
            let refs = vec![PushedRef { command, refusal: None }; refs];
            store.open_push(&Push { refs, ..push }, 1, any, from_micros(0)).await.unwrap();
        }
        let shown = pushes(&store, &run.id).await.unwrap();
        shown.iter().map(|push| u8::from_str_radix(push.push_id.get(..2).unwrap(), 16).unwrap()).collect()
    }

    #[tokio::test]
    async fn the_newest_pushes_are_shown_as_far_as_they_fit_an_answer() {
        let newest_first: Vec<u8> = (1..=PUSHES).rev().collect();
        assert_eq!(shown(1).await, newest_first);
        let large = shown(700).await;
        assert!((26..usize::from(PUSHES)).contains(&large.len()), "{}", large.len());
        assert_eq!(large, newest_first[..large.len()]);
    }
}
