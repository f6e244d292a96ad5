//! Hashes small payloads together, with SIMD lanes.
//!
//! Uploads that an executor reads in one round are complete shortly after each other. Each passes its payload and lets the
//! other tasks run. The first one that continues hashes all payloads that were passed meanwhile, in as many lanes as there are,
//! and the others find their digest. So nothing waits for a payload that has not arrived.

use cairn_md5::{digest_together, lanes_max};
use futures_lite::future::yield_now;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::{Rc, Weak};

/// The payloads of one executor that wait to be hashed.
#[derive(Default)]
pub(crate) struct InlineHasher {
    /// In the order in which they were passed. Those of cancelled uploads are gone.
    waiting: RefCell<VecDeque<Weak<Payload>>>,
}

struct Payload {
    bytes: Vec<u8>,
    digest: Cell<Option<[u8; 16]>>,
}

impl InlineHasher {
    /// Returns the MD5 of the bytes, and the bytes.
    pub(crate) async fn digest(&self, bytes: Vec<u8>) -> ([u8; 16], Vec<u8>) {
        let payload = Rc::new(Payload { bytes, digest: Cell::new(None) });
        self.waiting.borrow_mut().push_back(Rc::downgrade(&payload));
        yield_now().await;
        let digest = loop {
            match payload.digest.get() {
                Some(digest) => break digest,
                // Every round takes the first ones, so one of them is this payload's.
                None => self.hash_first(),
            }
        };
        let payload = Rc::into_inner(payload).expect("only its upload keeps a payload");
        (digest, payload.bytes)
    }

    /// Hashes the payloads that have waited longest, one in each lane.
    fn hash_first(&self) {
        let mut waiting = self.waiting.borrow_mut();
        let count = waiting.len().min(lanes_max());
        let payloads: Vec<_> = waiting.drain(..count).filter_map(|payload| payload.upgrade()).collect();
        let bytes: Vec<_> = payloads.iter().map(|payload| payload.bytes.as_slice()).collect();
        for (payload, digest) in payloads.iter().zip(digest_together(&bytes)) {
            payload.digest.set(Some(digest));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cairn_md5::md5_digest;
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    #[test]
    fn the_first_one_that_continues_hashes_all_and_cancelled_ones_are_left_out() {
        let hasher = InlineHasher::default();
        let mut context = Context::from_waker(Waker::noop());
        let bytes = |number: usize| vec![7; 1000 * number];
        let (mut first, mut last) = (pin!(hasher.digest(bytes(1))), pin!(hasher.digest(bytes(3))));
        assert!(first.as_mut().poll(&mut context).is_pending());
        {
            let mut cancelled = pin!(hasher.digest(bytes(2)));
            assert!(cancelled.as_mut().poll(&mut context).is_pending());
        }
        assert!(last.as_mut().poll(&mut context).is_pending());
        assert_eq!(hasher.waiting.borrow().iter().filter(|payload| payload.strong_count() > 0).count(), 2);
        let expected = |number| Poll::Ready((md5_digest(&bytes(number)), bytes(number)));
        assert_eq!(first.as_mut().poll(&mut context), expected(1));
        assert!(lanes_max() < 3 || hasher.waiting.borrow().is_empty());
        assert_eq!(last.as_mut().poll(&mut context), expected(3));
    }

    #[test]
    fn more_payloads_than_lanes_are_hashed_in_rounds() {
        let hasher = InlineHasher::default();
        let mut context = Context::from_waker(Waker::noop());
        let lengths = 0..2 * lanes_max() + 1;
        let mut digests: Vec<_> =
            lengths.clone().map(|length| Box::pin(hasher.digest(vec![1; length]))).collect();
        for digest in &mut digests {
            assert!(digest.as_mut().poll(&mut context).is_pending());
        }
        // The last one first: it needs all rounds.
        for (length, digest) in lengths.zip(&mut digests).rev() {
            assert_eq!(
                digest.as_mut().poll(&mut context),
                Poll::Ready((md5_digest(&vec![1; length]), vec![1; length]))
            );
        }
    }
}
