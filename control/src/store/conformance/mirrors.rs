//! Tokens for mirrors.

use std::path::PathBuf;
use std::time::SystemTime;

use gitdoor_proto::RepositoryName;

use super::{ANY, Open, created, later, push};
use crate::mirror::{MirrorToken, MirrorTokenId};
use crate::store::Store;

/// A row that was handed out so many seconds on, and ends an hour later.
fn row(number: u8, seconds: u64) -> MirrorToken {
    MirrorToken {
        id: MirrorTokenId::from_bytes([number; 16]),
        repository: RepositoryName::parse("Acme/Api").unwrap(),
        repository_id: u64::MAX,
        token_id: format!("{number:016x}"),
        asked_by: number.is_multiple_of(2).then(|| "CN=mirror-\u{e4}".to_owned()),
        minted_at: later(0),
        handed_out_at: later(seconds),
        expires_at: later(seconds + 3600),
    }
}

async fn recorded<S: Store>(store: &S, rows: &[MirrorToken]) {
    for row in rows {
        store.record_mirror_token(row).await.unwrap();
    }
}

pub(super) async fn mirror_tokens_read_as_they_were_recorded_newest_first<S: Open>(store: S, path: PathBuf) {
    assert_eq!(store.mirror_tokens(9).await.unwrap(), []);
    recorded(&store, &[row(1, 10), row(3, 30), row(2, 20)]).await;
    assert_eq!(store.mirror_tokens(9).await.unwrap(), [row(3, 30), row(2, 20), row(1, 10)]);
    assert_eq!(store.mirror_tokens(2).await.unwrap(), [row(3, 30), row(2, 20)]);
    assert!(store.record_mirror_token(&row(1, 40)).await.is_err(), "an id is one row's");
    drop(store);
    let store = S::open_at(&path).await;
    assert_eq!(store.mirror_tokens(1).await.unwrap(), [row(3, 30)]);
}

pub(super) async fn mirror_tokens_go_with_the_runs_of_their_time<S: Store>(store: S, _: PathBuf) {
    created(&store, "old").await;
    store.open_push(&push("old", 1), 1, ANY, later(1)).await.unwrap();
    recorded(&store, &[row(1, 10), row(2, 20), row(3, 30), row(4, 86_400)]).await;
    assert_eq!(store.prune(SystemTime::UNIX_EPOCH, 2).await.unwrap(), 0);
    let mut batches = Vec::new();
    while batches.last() != Some(&0) {
        batches.push(store.prune(later(86_400), 2).await.unwrap());
    }
    assert_eq!(batches, [2, 2, 2, 1, 0]);
    assert_eq!(store.mirror_tokens(9).await.unwrap(), [row(4, 86_400)]);
}
