//! A thread that answers queries, one after the other.
//!
//! It is for reads that take too long for an executor.

use futures_channel::oneshot;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

type Query<S> = Box<dyn FnOnce(&S) + Send>;

/// Hands queries about a `S` to their thread.
pub struct ReaderThread<S> {
    queries: Mutex<Option<SyncSender<Query<S>>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// Why a query has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unanswered {
    /// Too many queries wait.
    Overloaded,
    /// The thread was closed.
    Closed,
    /// The query has panicked. The panic is in the log.
    Panicked,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<S: Send + Sync + 'static> ReaderThread<S> {
    /// Starts the thread. At most `waiting_max` queries wait for it.
    ///
    /// # Errors
    /// The operating system has no thread.
    pub fn start(name: &str, waiting_max: usize, shared: &Arc<S>) -> io::Result<Self> {
        let (queries, queue) = sync_channel::<Query<S>>(waiting_max);
        let shared = Arc::clone(shared);
        let run = move || queue.into_iter().for_each(|query| query(&shared));
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(run)?;
        Ok(Self { queries: Mutex::new(Some(queries)), thread: Mutex::new(Some(thread)) })
    }

    /// Answers a query on the thread. It is skipped if the caller has dropped the future before its turn.
    ///
    /// # Errors
    /// [`Unanswered`]. A panic ends only its query.
    pub async fn query<T: Send + 'static>(
        &self,
        query: impl FnOnce(&S) -> T + Send + 'static,
    ) -> Result<T, Unanswered> {
        let (reply, answer) = oneshot::channel();
        let query: Query<S> = Box::new(move |shared| {
            if !reply.is_canceled() {
                let answered = catch_unwind(AssertUnwindSafe(|| query(shared)));
                drop(reply.send(answered.map_err(|_| Unanswered::Panicked)));
            }
        });
        let sent = lock(&self.queries).as_ref().ok_or(Unanswered::Closed)?.try_send(query);
        sent.map_err(|refused| match refused {
            TrySendError::Full(_) => Unanswered::Overloaded,
            TrySendError::Disconnected(_) => Unanswered::Closed,
        })?;
        answer.await.unwrap_or(Err(Unanswered::Closed))
    }

    /// Lets the thread answer what waits, and waits for its end. Blocks.
    pub fn close(&self) {
        drop(lock(&self.queries).take());
        if let Some(thread) = lock(&self.thread).take() {
            // It has not panicked: panics of queries are caught.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ReaderThread, Unanswered};
    use futures_lite::future::{block_on, poll_once};
    use std::sync::Arc;
    use std::sync::mpsc::channel;

    /// A query that panicked ended the thread. All queries then failed until the next start, and the log did not say why.
    #[test]
    fn a_panic_ends_only_its_query() {
        let reader = ReaderThread::start("reader", 2, &Arc::new(7)).expect("starts");
        assert_eq!(block_on(reader.query(|_| -> u8 { panic!("a test") })), Err(Unanswered::Panicked));
        assert_eq!(block_on(reader.query(|seven| *seven)), Ok(7));
        reader.close();
        assert_eq!(block_on(reader.query(|seven| *seven)), Err(Unanswered::Closed));
    }

    #[test]
    fn queries_that_wait_are_limited() {
        let reader = ReaderThread::start("reader", 1, &Arc::new(())).expect("starts");
        let (begun, begins) = channel();
        let (end, ends) = channel::<()>();
        let mut first = Box::pin(reader.query(move |()| {
            begun.send(()).expect("somebody waits");
            ends.recv().is_err()
        }));
        assert!(block_on(poll_once(&mut first)).is_none());
        begins.recv().expect("the first query is being answered");
        let mut second = Box::pin(reader.query(|()| true));
        assert!(block_on(poll_once(&mut second)).is_none());
        assert_eq!(block_on(reader.query(|()| true)), Err(Unanswered::Overloaded));
        drop(end);
        assert_eq!((block_on(first), block_on(second)), (Ok(true), Ok(true)));
    }
}
