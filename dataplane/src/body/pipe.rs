//! A pipe of one chunk between a task that reads and a body that is written. Its end has to be said: a pipe whose
//! feeding end just goes away has broken, and what hangs on it must not look whole.

use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::sync::mpsc;

/// What goes through.
enum Piece {
    Bytes(Bytes),
    End,
}

/// Nobody takes what is fed any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unwanted;

/// The end that is written into.
pub struct Feed(mpsc::Sender<Piece>);

/// The end that is read from.
pub struct Drink {
    pieces: mpsc::Receiver<Piece>,
    ended: bool,
}

/// The feeding end went away before it said the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Broken;

/// Makes a pipe.
#[must_use]
pub fn pipe() -> (Feed, Drink) {
    let (feed, pieces) = mpsc::channel(1);
    (Feed(feed), Drink { pieces, ended: false })
}

impl Feed {
    /// Hands bytes over, no faster than they are taken.
    pub async fn send(&self, bytes: Bytes) -> Result<(), Unwanted> {
        self.0.send(Piece::Bytes(bytes)).await.map_err(|_closed| Unwanted)
    }

    /// Says the end.
    pub async fn end(self) {
        // A reader that knows the length has left already.
        let _ = self.0.send(Piece::End).await;
    }

    /// Waits until nobody takes any more.
    pub async fn unwanted(&self) {
        self.0.closed().await;
    }
}

impl Drink {
    /// The next bytes; none: the end.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Broken>> {
        if self.ended {
            return Poll::Ready(Ok(None));
        }
        Poll::Ready(match ready!(self.pieces.poll_recv(cx)) {
            Some(Piece::Bytes(bytes)) => Ok(Some(bytes)),
            Some(Piece::End) => {
                self.ended = true;
                Ok(None)
            }
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
        feed.end().await;
        assert_eq!(poll_fn(|cx| drink.poll_next(cx)).await, Ok(None));
        assert_eq!(poll_fn(|cx| drink.poll_next(cx)).await, Ok(None));

        let (feed, mut drink) = pipe();
        drop(feed);
        assert_eq!(poll_fn(|cx| drink.poll_next(cx)).await, Err(Broken));
    }
}
