//! Waits for a bounded number of futures at the same time.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

/// Most futures of [`join_all`]: each time one of them makes progress, all that are left are polled.
pub const JOINED_MAX: usize = 128;

/// Waits for all futures, and returns their results in order.
///
/// # Panics
/// If there are more than [`JOINED_MAX`].
pub async fn join_all<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    assert!(futures.len() <= JOINED_MAX, "callers run larger numbers in groups");
    let mut running: Vec<Pin<Box<F>>> = futures.into_iter().map(Box::pin).collect();
    let mut results: Vec<Option<F::Output>> = running.iter().map(|_| None).collect();
    poll_fn(move |context| {
        let mut left = false;
        for (future, result) in running.iter_mut().zip(&mut results).filter(|(_, result)| result.is_none()) {
            match future.as_mut().poll(context) {
                Poll::Ready(found) => *result = Some(found),
                Poll::Pending => left = true,
            }
        }
        if left { Poll::Pending } else { Poll::Ready(results.drain(..).flatten().collect()) }
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::join_all;
    use futures_lite::future::{block_on, yield_now};

    #[test]
    fn results_are_in_order_whatever_ends_first() {
        let numbers: Vec<usize> = (0..20).collect();
        let futures = numbers.iter().map(|&number| async move {
            for _ in 0..(number * 7) % 20 {
                yield_now().await;
            }
            number
        });
        assert_eq!(block_on(join_all(futures.collect())), numbers);
        assert!(block_on(join_all(Vec::<std::future::Ready<u8>>::new())).is_empty());
    }
}
