//! A queue for batches of imports.
//!
//! Imported versions share commits with the writes of clients, which wait for the whole commit. So few versions are imported
//! at a time.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use futures_channel::oneshot;

/// The turns of one executor: one part of a batch is committed at a time, and the others wait in the order in which they came.
/// At most as many wait as there are connections. Clones share the turns.
#[derive(Clone, Debug, Default)]
pub struct ImportTurns(Rc<RefCell<State>>);

#[derive(Debug, Default)]
struct State {
    is_taken: bool,
    waiting: VecDeque<oneshot::Sender<Turn>>,
}

/// A turn. The next one begins when it is dropped.
#[derive(Debug)]
pub(crate) struct Turn(Rc<RefCell<State>>);

impl ImportTurns {
    /// Waits for a turn.
    pub(crate) async fn next(&self) -> Turn {
        let (hand_over, turn) = oneshot::channel();
        {
            let mut state = self.0.borrow_mut();
            if !state.is_taken {
                state.is_taken = true;
                return Turn(Rc::clone(&self.0));
            }
            state.waiting.push_back(hand_over);
        }
        turn.await.expect("the holder of the turn passes it on")
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut state = self.0.borrow_mut();
        loop {
            match state.waiting.pop_front() {
                // Its request was given up.
                Some(next) if next.is_canceled() => {}
                Some(next) => {
                    drop(state);
                    // If the receiver is dropped, so is the turn in the channel, which then passes to the next one.
                    let _ = next.send(Self(Rc::clone(&self.0)));
                    return;
                }
                None => {
                    state.is_taken = false;
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ImportTurns;
    use futures_lite::future::{block_on, poll_once};

    #[test]
    fn turns_are_in_order_and_survive_requests_that_are_given_up() {
        block_on(async {
            let turns = ImportTurns::default();
            let first = turns.next().await;
            let (mut given_up, mut second) = (Box::pin(turns.next()), Box::pin(turns.next()));
            let (mut too_late, mut third) = (Box::pin(turns.next()), Box::pin(turns.next()));
            for waiting in [&mut given_up, &mut second, &mut too_late, &mut third] {
                assert!(poll_once(waiting).await.is_none(), "the first one has the turn");
            }
            drop(given_up);
            drop(first);
            let second = second.await;
            assert!(poll_once(&mut third).await.is_none(), "the second one has the turn");
            drop(second);
            // The turn was passed to this request, which is dropped before it is polled.
            drop(too_late);
            drop(third.await);
            drop(turns.next().await);
        });
    }
}
