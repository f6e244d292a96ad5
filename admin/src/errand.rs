//! Questions whose answer may have to wait for a device, put to a plain thread: an executor must not wait for one.
//!
//! All who ask while an answer is being found share the next one, and between two answers there is a pause. So a flood of
//! requests costs no more than a few looks a second, and never more than the one thread. A thread that has died answers
//! nobody, and at once; one that hangs answers late or never, so who must not wait asks with a time limit.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_channel::oneshot;

/// See the file's first lines.
pub(crate) struct Errand<T> {
    shared: Arc<Shared<T>>,
}

struct Shared<T> {
    state: Mutex<State<T>>,
    asked: Condvar,
}

struct State<T> {
    /// Who waits for the next answer. As many as there are requests on the management plane, which is limited: those who
    /// have gone are forgotten when the next one asks.
    waiting: Vec<oneshot::Sender<T>>,
    /// Nobody can ask any more, or nobody answers any more.
    is_over: bool,
}

impl<T> Shared<T> {
    /// Nothing is left half-changed by a panic.
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until somebody asks, and from then until `not_before`. `None`: nobody can ask any more.
    fn next(&self, not_before: Instant) -> Option<Vec<oneshot::Sender<T>>> {
        let nobody = |state: &mut State<T>| state.waiting.is_empty() && !state.is_over;
        let mut state = self.asked.wait_while(self.lock(), nobody).unwrap_or_else(PoisonError::into_inner);
        let pause = not_before.saturating_duration_since(Instant::now());
        if !pause.is_zero() {
            let waited = self.asked.wait_timeout_while(state, pause, |state| !state.is_over);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        (!state.is_over).then(|| std::mem::take(&mut state.waiting))
    }

    /// From now on nobody is answered, nor waits.
    fn end(&self) {
        let mut state = self.lock();
        state.is_over = true;
        state.waiting.clear();
        self.asked.notify_all();
    }
}

/// Held by the thread: however it ends, those who wait are told.
struct Answering<T>(Arc<Shared<T>>);

impl<T> Drop for Answering<T> {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl<T: Clone + Send + 'static> Errand<T> {
    /// Starts the thread, which answers with what `find` gives, at most once in a `pause`.
    ///
    /// # Errors
    /// When no thread can be started.
    pub(crate) fn start(
        name: &str,
        pause: Duration,
        mut find: impl FnMut() -> T + Send + 'static,
    ) -> std::io::Result<Self> {
        let state = State { waiting: Vec::new(), is_over: false };
        let shared = Arc::new(Shared { state: Mutex::new(state), asked: Condvar::new() });
        let answering = Answering(Arc::clone(&shared));
        std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            let mut not_before = Instant::now();
            while let Some(waiting) = answering.0.next(not_before) {
                not_before = Instant::now() + pause;
                let found = find();
                for waiter in waiting {
                    // Who asked may have gone.
                    let _ = waiter.send(found.clone());
                }
            }
        })?;
        Ok(Self { shared })
    }

    /// The next answer; `None` when the thread has died.
    pub(crate) async fn ask(&self) -> Option<T> {
        let (waiter, answer) = oneshot::channel();
        {
            let mut state = self.shared.lock();
            if state.is_over {
                return None;
            }
            state.waiting.retain(|waiter| !waiter.is_canceled());
            state.waiting.push(waiter);
        }
        self.shared.asked.notify_one();
        answer.await.ok()
    }
}

/// The thread ends by itself; it is not waited for, for it may hang.
impl<T> Drop for Errand<T> {
    fn drop(&mut self) {
        self.shared.end();
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
    fn all_who_ask_meanwhile_share_one_answer() {
        let (begun, begins) = sync_channel(0);
        let (go_on, may_go_on) = sync_channel::<()>(0);
        let rounds = AtomicU32::new(0);
        let errand = Errand::start("errand", Duration::ZERO, move || {
            begun.send(()).unwrap();
            may_go_on.recv().unwrap();
            rounds.fetch_add(1, Ordering::Relaxed)
        })
        .unwrap();
        let mut first = pin!(errand.ask());
        assert!(block_on(poll_once(first.as_mut())).is_none());
        begins.recv().unwrap();
        // They ask while the first answer is under way.
        let mut later: Vec<_> = (0..100).map(|_| Box::pin(errand.ask())).collect();
        assert!(later.iter_mut().all(|asked| block_on(poll_once(asked)).is_none()));
        go_on.send(()).unwrap();
        assert_eq!(block_on(first), Some(0));
        begins.recv().unwrap();
        go_on.send(()).unwrap();
        for asked in later {
            assert_eq!(block_on(asked), Some(1), "the second answer, and no further one");
        }
    }

    /// Only the one who asked first was told: whoever asked later waited for ever among those whom nobody answers, and
    /// `/metrics` with them.
    #[test]
    fn a_thread_that_died_answers_nothing_to_anybody_at_once() {
        let errand = Errand::<()>::start("errand", Duration::ZERO, || panic!("on purpose")).unwrap();
        let mut asked: Vec<_> = (0..3).map(|_| Box::pin(errand.ask())).collect();
        for one in &mut asked {
            assert_eq!(block_on(one), None);
        }
        assert_eq!(block_on(poll_once(errand.ask())), Some(None), "later, without a wait");
    }

    #[test]
    fn those_who_gave_up_leave_no_trace_behind_a_thread_that_hangs() {
        let (begun, begins) = sync_channel(0);
        let (go_on, may_go_on) = sync_channel::<()>(0);
        let errand = Errand::start("errand", Duration::ZERO, move || {
            begun.send(()).unwrap();
            // Hangs until the other end is dropped.
            let _ = may_go_on.recv();
        })
        .unwrap();
        let mut first = pin!(errand.ask());
        assert!(block_on(poll_once(first.as_mut())).is_none());
        begins.recv().unwrap();
        for _ in 0..100 {
            assert_eq!(block_on(poll_once(errand.ask())), None);
        }
        assert_eq!(errand.shared.lock().waiting.len(), 1, "the last");
        drop(go_on);
        assert_eq!(block_on(first), Some(()));
    }

    #[test]
    fn answers_keep_their_distance() {
        const PAUSE: Duration = Duration::from_millis(40);
        let errand = Errand::start("errand", PAUSE, Instant::now).unwrap();
        let first = block_on(errand.ask()).unwrap();
        let second = block_on(errand.ask()).unwrap();
        assert!(second - first >= PAUSE, "{:?}", second - first);
    }
}
