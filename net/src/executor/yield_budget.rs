//! Cooperative yielding for tasks that process fast bodies.
//!
//! Such a task never waits, so without this the other tasks of its executor would never run.

use futures_lite::future::yield_now;

/// Bytes that a task processes between two yields: about half a millisecond of MD5.
const BYTES_PER_YIELD: usize = 256 * 1024;

/// Counts the bytes that one task has processed since it last yielded.
#[derive(Default, Debug)]
pub struct YieldBudget {
    bytes: usize,
}

impl YieldBudget {
    /// Counts `count` processed bytes. Yields to the executor's other tasks when the budget is spent.
    pub async fn spend(&mut self, count: usize) {
        self.bytes += count;
        if self.bytes >= BYTES_PER_YIELD {
            self.bytes = 0;
            yield_now().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{BYTES_PER_YIELD, YieldBudget};
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Waker};

    #[test]
    fn a_spent_budget_yields_once() {
        let mut context = Context::from_waker(Waker::noop());
        let mut budget = YieldBudget::default();
        assert!(pin!(budget.spend(BYTES_PER_YIELD - 1)).poll(&mut context).is_ready());
        let mut yielding = pin!(budget.spend(1));
        assert!(yielding.as_mut().poll(&mut context).is_pending());
        assert!(yielding.as_mut().poll(&mut context).is_ready());
    }
}
