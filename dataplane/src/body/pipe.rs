//! A pipe of one chunk between a task that reads and a body that is written. Its end has to be said: a pipe whose
//! feeding end just goes away has broken, and what hangs on it must not look whole.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::sync::mpsc;

/// Nobody takes what is fed any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unwanted;

/// The end that is written into.
pub struct Feed {
    bytes: mpsc::Sender<Bytes>,
    whole: Arc<AtomicBool>,
}

/// The end that is read from.
pub struct Drink {
    bytes: mpsc::Receiver<Bytes>,
    whole: Arc<AtomicBool>,
}

/// The feeding end went away before it said the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Broken;

/// Makes a pipe.
#[must_use]
pub fn pipe() -> (Feed, Drink) {
    let (feed, drink) = mpsc::channel(1);
    let whole = Arc::new(AtomicBool::new(false));
    (Feed { bytes: feed, whole: Arc::clone(&whole) }, Drink { bytes: drink, whole })
}

impl Feed {
    /// Hands bytes over, no faster than they are taken.
    pub async fn send(&self, bytes: Bytes) -> Result<(), Unwanted> {
        self.bytes.send(bytes).await.map_err(|_closed| Unwanted)
    }

    /// Says the end. It waits for nobody: a reader may take its time, or know the length and never ask.
    pub fn end(self) {
        self.whole.store(true, Ordering::Release);
    }

    /// Waits until nobody takes any more.
    pub async fn unwanted(&self) {
        self.bytes.closed().await;
    }
}

impl Drink {
    /// The next bytes; none: the end.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Broken>> {
        Poll::Ready(match ready!(self.bytes.poll_recv(cx)) {
            Some(bytes) => Ok(Some(bytes)),
            None if self.whole.load(Ordering::Acquire) => Ok(None),
            None => Err(Broken),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;

    #[tokio::test]
    async fn only_an_end_that_was_said_is_an_end() {
        let (feed, mut drink) = pipe();
        feed.send(Bytes::from_static(b"a")).await.unwrap();
        assert_eq!(poll_fn(|cx| drink.poll_next(cx)).await, Ok(Some(Bytes::from_static(b"a"))));
        feed.end();
        assert_eq!(poll_fn(|cx| drink.poll_next(cx)).await, Ok(None));
        assert_eq!(poll_fn(|cx| drink.poll_next(cx)).await, Ok(None));

        let (feed, mut drink) = pipe();
        drop(feed);
        assert_eq!(poll_fn(|cx| drink.poll_next(cx)).await, Err(Broken));
    }
}
