//! Taking turns: a body that arrives as fast as it is digested would never let its executor's other tasks run.

use futures_lite::future::yield_now;

/// Bytes between two turns: about half a millisecond of MD5.
const BYTES_PER_TURN: usize = 256 * 1024;

/// Counts the bytes of one body since its last turn.
#[derive(Default, Debug)]
pub struct Turns {
    bytes: usize,
}

impl Turns {
    /// Notes that `count` bytes have been worked on, and lets the other tasks run when it is their turn.
    pub async fn took(&mut self, count: usize) {
        self.bytes += count;
        if self.bytes >= BYTES_PER_TURN {
            self.bytes = 0;
            yield_now().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{BYTES_PER_TURN, Turns};
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Waker};

    #[test]
    fn a_turn_is_given_up_once_enough_bytes_have_passed() {
        let mut context = Context::from_waker(Waker::noop());
        let mut turns = Turns::default();
        assert!(pin!(turns.took(BYTES_PER_TURN - 1)).poll(&mut context).is_ready());
        let mut turn = pin!(turns.took(1));
        assert!(turn.as_mut().poll(&mut context).is_pending());
        assert!(turn.as_mut().poll(&mut context).is_ready());
    }
}
