//! A clock for tests that stands still while servers and stores really work: what happens then needs no time, however slow
//! the machine is.

use std::pin::pin;
use std::sync::mpsc;
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::{advance, pause};

/// Of the machine's time: far longer than anything takes that waits for no other.
const HANGS: Duration = Duration::from_mins(1);
/// In so many steps time passes.
const STEPS: u32 = 20;

/// The clock of a test's runtime, stopped until the test ends.
pub(crate) struct Frozen {
    _until_dropped: mpsc::Sender<()>,
}

impl Frozen {
    pub(crate) fn new() -> Self {
        let (until_dropped, dropped) = mpsc::channel();
        // A paused clock goes on by itself where nothing is left to do, but not while a thread of its runtime is at work.
        drop(spawn_blocking(move || dropped.recv()));
        pause();
        Self { _until_dropped: until_dropped }
    }

    /// What a future comes to while no time passes.
    pub(crate) async fn at_once<T>(&self, future: impl Future<Output = T>) -> T {
        tokio::select! {
            done = future => done,
            () = real(HANGS) => panic!("it waits for a time that does not pass"),
        }
    }

    /// What a future comes to before so much time has passed. It passes in steps, with longer and longer for the work that
    /// each makes.
    pub(crate) async fn before<T>(&self, limit: Duration, future: impl Future<Output = T>) -> T {
        let mut future = pin!(future);
        let mut patience = Duration::from_millis(5);
        for _ in 1..STEPS {
            advance(limit / STEPS).await;
            tokio::select! {
                done = &mut future => return done,
                () = real(patience) => patience = (patience * 2).min(HANGS / STEPS),
            }
        }
        panic!("it takes at least {limit:?}");
    }
}

/// Waits by the machine's own clock.
async fn real(time: Duration) {
    let (_until_left, left) = mpsc::channel::<()>();
    drop(spawn_blocking(move || left.recv_timeout(time)).await);
}
