//! Wakes each executor regularly from another thread.
//!
//! glommio 0.9 can put an executor to sleep while tasks of it are ready to run. Before it runs them, it checks whether
//! something is due in the ring of its timers, such as the end of its own time slice. If so, it runs none of them, handles
//! that event, and sleeps until the next one. Event and check must come within microseconds of each other, so it takes a
//! busy machine. The tasks then wait for the next event in any ring of the executor. Without a heartbeat that may be a
//! client's next request: answers of finished commits were seen to take 90 s.
//!
//! A heartbeat is a wake-up of the executor's first task. What that task does then means nothing: any wake-up runs all tasks
//! that are ready. An executor may fall asleep in this way many times in succession, and each heartbeat wakes it again,
//! whether the task has run since the last one or not. The heartbeat once was a byte in one of four sockets of the task. A
//! socket wakes nothing until the task has read it, so an executor that fell asleep in this way five times slept for ever.
//!
//! The first task gives its waker away before it does anything else, because the executor may fall asleep in this way as
//! soon as it waits for the first time. It may even sleep before its first task has run; `executors.rs` sees to that.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::task::{Poll, Waker};
use std::thread;
use std::time::Instant;

use cairn_sync::Mutex;

use crate::limits::{HEARTBEAT_INTERVAL, HEARTBEAT_RETRY, HEARTBEATS_UNANSWERED_MAX};

/// Gives the first task of an executor to the thread.
#[derive(Clone)]
pub(super) struct Heartbeats(Sender<Arc<FirstTask>>);

/// The first task of an executor, as the thread sees it.
#[derive(Default)]
struct FirstTask {
    /// `None` before it has run, and after it has ended.
    waker: Mutex<Option<Waker>>,
    /// The number of wake-ups since it last ran.
    unanswered: AtomicU32,
}

/// Takes the waker back when it is dropped: on its executor, to which it belongs.
struct TakesWakerBack(Arc<FirstTask>);

impl Drop for TakesWakerBack {
    fn drop(&mut self) {
        self.0.waker.lock().take();
    }
}

impl FirstTask {
    /// The task runs, and is to be woken by this waker.
    fn begin(&self, waker: &Waker) {
        *self.waker.lock() = Some(waker.clone());
    }

    /// The task runs. Takes no lock: the thread may hold it for as long as a busy machine does not run it.
    fn answer(&self) {
        self.unanswered.store(0, Ordering::Relaxed);
    }

    /// Returns whether the task has not run since it was woken.
    fn is_late(&self) -> bool {
        self.unanswered.load(Ordering::Relaxed) > 0
    }

    /// Wakes the executor. One that has not answered for long is stopped or blocked: it has wake-ups enough, and each of them
    /// takes memory until it goes on.
    fn beat(&self) {
        if self.unanswered.load(Ordering::Relaxed) < HEARTBEATS_UNANSWERED_MAX
            && let Some(waker) = &*self.waker.lock()
        {
            self.unanswered.fetch_add(1, Ordering::Relaxed);
            waker.wake_by_ref();
        }
    }
}

impl Heartbeats {
    /// Starts the thread. It ends when all clones of this are gone and all executors have ended.
    ///
    /// # Errors
    /// An error when no thread can be started.
    pub(super) fn start() -> io::Result<Self> {
        let (sender, added) = channel();
        thread::Builder::new().name("heartbeat".to_owned()).spawn(move || beat_all(&added))?;
        Ok(Self(sender))
    }

    /// Runs `work` as the first task of the calling executor, and wakes the executor at least every [`HEARTBEAT_INTERVAL`]
    /// meanwhile.
    pub(super) async fn during(self, work: impl Future<Output = ()>) {
        let task = TakesWakerBack(Arc::default());
        self.0.send(Arc::clone(&task.0)).expect("the thread runs while there is a sender");
        drop(self);
        poll_fn(|context| {
            task.0.begin(context.waker());
            Poll::Ready(())
        })
        .await;
        let mut work = pin!(work);
        poll_fn(|context| {
            task.0.answer();
            work.as_mut().poll(context)
        })
        .await;
    }
}

/// Wakes each executor at each interval, and one that has not answered much sooner: it may have fallen asleep again.
fn beat_all(added: &Receiver<Arc<FirstTask>>) {
    let mut tasks: Vec<Arc<FirstTask>> = Vec::new();
    let mut has_starting = true;
    let mut due = Instant::now() + HEARTBEAT_INTERVAL;
    while has_starting || !tasks.is_empty() {
        let left = due.saturating_duration_since(Instant::now());
        let wait = if tasks.iter().any(|task| task.is_late()) { left.min(HEARTBEAT_RETRY) } else { left };
        match added.recv_timeout(wait) {
            Ok(task) => {
                tasks.push(task);
                continue;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                has_starting = false;
                thread::park_timeout(wait);
            }
        }
        // An executor that has ended has dropped its own.
        tasks.retain(|task| Arc::strong_count(task) > 1);
        let now = Instant::now();
        let is_due = due <= now;
        if is_due {
            due = now + HEARTBEAT_INTERVAL;
        }
        tasks.iter().filter(|task| is_due || task.is_late()).for_each(|task| task.beat());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_lite::future::{block_on, yield_now};
    use std::task::Wake;
    use std::time::Duration;

    /// Sends a message for each wake-up of a task.
    struct Notify(Sender<()>);

    impl Wake for Notify {
        fn wake(self: Arc<Self>) {
            let _ = self.0.send(());
        }
    }

    /// An executor once slept for ever when its first task was ready to run and did not: nothing woke it any more.
    #[test]
    fn a_task_that_does_not_run_is_woken_again_and_again() {
        let (sender, added) = channel();
        let beating = thread::spawn(move || beat_all(&added));
        let (woken, wakes) = channel();
        let task = Arc::new(FirstTask::default());
        task.begin(&Waker::from(Arc::new(Notify(woken))));
        sender.send(Arc::clone(&task)).unwrap();
        for _ in 0..6 {
            wakes.recv_timeout(Duration::from_secs(60)).expect("a heartbeat");
        }
        drop((sender, task));
        beating.join().unwrap();
    }

    /// Otherwise the wake-ups of a process that stands still would fill the memory.
    #[test]
    fn a_task_that_does_not_answer_for_long_is_left_alone_until_it_runs() {
        let (woken, wakes) = channel();
        let task = FirstTask::default();
        task.begin(&Waker::from(Arc::new(Notify(woken))));
        let beat_for_long = || (0..2 * HEARTBEATS_UNANSWERED_MAX).for_each(|_| task.beat());
        beat_for_long();
        assert_eq!(wakes.try_iter().count(), HEARTBEATS_UNANSWERED_MAX as usize);
        task.answer();
        beat_for_long();
        assert_eq!(wakes.try_iter().count(), HEARTBEATS_UNANSWERED_MAX as usize);
    }

    #[test]
    fn the_waker_is_given_away_before_the_work_begins_and_taken_back_at_its_end() {
        let (sender, added) = channel();
        let mut kept: Option<Arc<FirstTask>> = None;
        let work = async {
            let task: Arc<FirstTask> = added.try_recv().expect("the thread has it");
            assert!(task.waker.lock().is_some());
            yield_now().await;
            kept = Some(task);
        };
        block_on(Heartbeats(sender).during(work));
        assert!(kept.expect("the work has run").waker.lock().is_none());
    }
}
