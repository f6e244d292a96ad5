//! Runs blocking work on a few threads, from a bounded queue.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use cairn_sync::Mutex;
use futures_channel::oneshot;

use crate::error::SignInError;
use crate::limits::{QUEUE_MAX, THREADS_MAX};

type Task = Box<dyn FnOnce() + Send>;

/// Threads that are started when there is work, and end without it.
#[derive(Clone, Default)]
pub(crate) struct Tasks(Arc<Mutex<Waiting>>);

#[derive(Default)]
struct Waiting {
    queue: VecDeque<Task>,
    threads: usize,
}

impl Tasks {
    /// Runs `work` on a thread, and returns what it returns.
    ///
    /// # Errors
    /// `Busy` when the queue is full; `Unavailable` if no thread can be started, or `work` panics.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, SignInError> + Send + 'static,
    ) -> Result<T, SignInError> {
        let (reply, answer) = oneshot::channel();
        // The caller may have gone.
        self.submit(Box::new(move || drop(reply.send(work()))))?;
        let lost =
            |_| SignInError::Unavailable("the sign-in could not be processed; the log says why".to_owned());
        answer.await.map_err(lost)?
    }

    /// Queues work whose result nobody awaits.
    pub(crate) fn submit(&self, task: Task) -> Result<(), SignInError> {
        let mut waiting = self.0.lock();
        if waiting.queue.len() >= QUEUE_MAX {
            return Err(SignInError::Busy);
        }
        waiting.queue.push_back(task);
        if waiting.threads >= THREADS_MAX {
            return Ok(());
        }
        let own = self.clone();
        match std::thread::Builder::new().name("openid".to_owned()).spawn(move || own.work()) {
            Ok(_) => waiting.threads += 1,
            // The threads that run do it.
            Err(_) if waiting.threads > 0 => {}
            Err(error) => {
                waiting.queue.pop_back();
                return Err(SignInError::Unavailable(format!("no thread can be started: {error}")));
            }
        }
        Ok(())
    }

    /// Does what is queued, then ends.
    fn work(&self) {
        loop {
            let task = {
                let mut waiting = self.0.lock();
                let Some(task) = waiting.queue.pop_front() else {
                    waiting.threads -= 1;
                    return;
                };
                task
            };
            // The panic itself is in the log. It ends this sign-in and no other.
            let _ = catch_unwind(AssertUnwindSafe(task));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn threads_and_queue_are_bounded_and_a_panic_ends_only_its_task() {
        let tasks = Tasks::default();
        let (release, released) = channel::<()>();
        let released = Arc::new(Mutex::new(released));
        let (begun, begins) = channel();
        for _ in 0..THREADS_MAX {
            let (begun, released) = (begun.clone(), Arc::clone(&released));
            let wait = move || {
                begun.send(()).expect("the test waits");
                let _ = released.lock().recv();
            };
            tasks.submit(Box::new(wait)).expect("a thread");
            begins.recv().expect("it begins");
        }
        tasks.submit(Box::new(|| panic!("planted"))).expect("queued");
        let (done, dones) = channel();
        for _ in 1..QUEUE_MAX {
            let done = done.clone();
            tasks.submit(Box::new(move || done.send(()).expect("the test waits"))).expect("queued");
        }
        assert_eq!(tasks.submit(Box::new(|| {})), Err(SignInError::Busy));
        assert_eq!(tasks.0.lock().threads, THREADS_MAX);
        drop(release);
        for _ in 1..QUEUE_MAX {
            dones.recv().expect("each is done");
        }
    }
}
