//! Runs a blocking query on its own thread; concurrent callers share one result.
//!
//! An executor must not wait for a device, so queries that may block run here. Callers that arrive while the query runs
//! share the result of the next run, and there is a pause between two runs. A flood of requests therefore costs one
//! thread and a few runs a second.
//!
//! If the thread has died, callers get `None` at once. If it hangs, callers wait until it returns, so callers that must
//! not wait need a timeout.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cairn_sync::{Condvar, Mutex};
use futures_channel::oneshot;

/// A query with its thread. Dropping it ends the thread after the current run.
pub(crate) struct CoalescedQuery<T> {
    shared: Arc<Shared<T>>,
}

struct Shared<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

struct State<T> {
    /// The callers that wait for the next result. Their number is limited by the number of requests on the management
    /// plane. Callers that have gone away are removed when the next one arrives.
    waiting: Vec<oneshot::Sender<T>>,
    /// Whether the query was dropped or its thread has ended.
    is_closed: bool,
}

impl<T> Shared<T> {
    /// Waits until there is a caller, and then until `not_before`. Returns the waiting callers, or `None` when the
    /// query is closed.
    fn next_callers(&self, not_before: Instant) -> Option<Vec<oneshot::Sender<T>>> {
        let is_idle = |state: &mut State<T>| state.waiting.is_empty() && !state.is_closed;
        let mut state = self.changed.wait_while(self.state.lock(), is_idle);
        let pause = not_before.saturating_duration_since(Instant::now());
        if !pause.is_zero() {
            state = self.changed.wait_timeout_while(state, pause, |state| !state.is_closed);
        }
        (!state.is_closed).then(|| std::mem::take(&mut state.waiting))
    }

    /// Closes the query. Waiting callers get `None`.
    fn close(&self) {
        let mut state = self.state.lock();
        state.is_closed = true;
        state.waiting.clear();
        self.changed.notify_all();
    }
}

/// Closes the query when its thread ends in any way, also by a panic.
struct CloseOnDrop<T>(Arc<Shared<T>>);

impl<T> Drop for CloseOnDrop<T> {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl<T: Clone + Send + 'static> CoalescedQuery<T> {
    /// Starts the thread. It calls `query` at most once per `interval_min`.
    ///
    /// # Errors
    /// An error when the thread cannot be started.
    pub(crate) fn start(
        name: &str,
        interval_min: Duration,
        mut query: impl FnMut() -> T + Send + 'static,
    ) -> std::io::Result<Self> {
        let state = State { waiting: Vec::new(), is_closed: false };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
        let closing = CloseOnDrop(Arc::clone(&shared));
        std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            let mut not_before = Instant::now();
            while let Some(callers) = closing.0.next_callers(not_before) {
                not_before = Instant::now() + interval_min;
                let result = query();
                for caller in callers {
                    // The caller may have gone away.
                    let _ = caller.send(result.clone());
                }
            }
        })?;
        Ok(Self { shared })
    }

    /// Returns the result of the next run; `None` when the thread has died.
    pub(crate) async fn run(&self) -> Option<T> {
        let (caller, result) = oneshot::channel();
        {
            let mut state = self.shared.state.lock();
            if state.is_closed {
                return None;
            }
            state.waiting.retain(|caller| !caller.is_canceled());
            state.waiting.push(caller);
        }
        self.shared.changed.notify_one();
        result.await.ok()
    }
}

/// The thread is not joined, because it may hang.
impl<T> Drop for CoalescedQuery<T> {
    fn drop(&mut self) {
        self.shared.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_lite::future::{block_on, poll_once};
    use std::pin::pin;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::sync::mpsc::sync_channel;

    #[test]
    fn concurrent_callers_share_one_result() {
        let (begun, begins) = sync_channel(0);
        let (go_on, may_go_on) = sync_channel::<()>(0);
        let rounds = AtomicU32::new(0);
        let query = CoalescedQuery::start("query", Duration::ZERO, move || {
            begun.send(()).unwrap();
            may_go_on.recv().unwrap();
            rounds.fetch_add(1, Ordering::Relaxed)
        })
        .unwrap();
        let mut first = pin!(query.run());
        assert!(block_on(poll_once(first.as_mut())).is_none());
        begins.recv().unwrap();
        // These call while the first run is in progress.
        let mut later: Vec<_> = (0..100).map(|_| Box::pin(query.run())).collect();
        assert!(later.iter_mut().all(|call| block_on(poll_once(call)).is_none()));
        go_on.send(()).unwrap();
        assert_eq!(block_on(first), Some(0));
        begins.recv().unwrap();
        go_on.send(()).unwrap();
        for call in later {
            assert_eq!(block_on(call), Some(1), "the second run, and no further one");
        }
    }

    /// Only the first caller was told. Later callers waited forever, and `/metrics` with them.
    #[test]
    fn callers_of_dead_thread_get_none_at_once() {
        let query = CoalescedQuery::<()>::start("query", Duration::ZERO, || panic!("on purpose")).unwrap();
        let mut calls: Vec<_> = (0..3).map(|_| Box::pin(query.run())).collect();
        for call in &mut calls {
            assert_eq!(block_on(call), None);
        }
        assert_eq!(block_on(poll_once(query.run())), Some(None), "a later call does not wait");
    }

    #[test]
    fn callers_that_gave_up_on_hung_thread_are_removed() {
        let (begun, begins) = sync_channel(0);
        let (go_on, may_go_on) = sync_channel::<()>(0);
        let query = CoalescedQuery::start("query", Duration::ZERO, move || {
            begun.send(()).unwrap();
            // Hangs until the other end is dropped.
            let _ = may_go_on.recv();
        })
        .unwrap();
        let mut first = pin!(query.run());
        assert!(block_on(poll_once(first.as_mut())).is_none());
        begins.recv().unwrap();
        for _ in 0..100 {
            assert_eq!(block_on(poll_once(query.run())), None);
        }
        assert_eq!(query.shared.state.lock().waiting.len(), 1, "the last caller");
        drop(go_on);
        assert_eq!(block_on(first), Some(()));
    }

    #[test]
    fn runs_keep_minimum_interval() {
        const INTERVAL: Duration = Duration::from_millis(40);
        let query = CoalescedQuery::start("query", INTERVAL, Instant::now).unwrap();
        let before = Instant::now();
        block_on(query.run()).unwrap();
        let second = block_on(query.run()).unwrap();
        assert!(second - before >= INTERVAL, "{:?}", second - before);
    }
}
