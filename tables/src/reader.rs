//! Thread that answers the queries to a small store in order.
//!
//! Reads that take too long for an executor run there.

use crate::error::StoreFailure;
use cairn_sync::Mutex;
use futures_channel::oneshot;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

type Query<S> = Box<dyn FnOnce(&S) + Send>;

/// Hands queries about a `S` to their thread.
pub struct ReaderThread<S> {
    queries: Mutex<Option<SyncSender<Query<S>>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
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
    /// [`StoreFailure`]. A panic ends only its query, because it changes nothing; it is in the log.
    pub async fn query<T: Send + 'static>(
        &self,
        query: impl FnOnce(&S) -> T + Send + 'static,
    ) -> Result<T, StoreFailure> {
        let (reply, answer) = oneshot::channel();
        let query: Query<S> = Box::new(move |shared| {
            if !reply.is_canceled() {
                let answered = catch_unwind(AssertUnwindSafe(|| query(shared)));
                let panicked = |_| StoreFailure::Failed("a query panicked".to_owned());
                drop(reply.send(answered.map_err(panicked)));
            }
        });
        let sent = self.queries.lock().as_ref().ok_or(StoreFailure::Closing)?.try_send(query);
        sent.map_err(|refused| match refused {
            TrySendError::Full(_) => StoreFailure::Overloaded,
            TrySendError::Disconnected(_) => StoreFailure::Closing,
        })?;
        answer.await.unwrap_or(Err(StoreFailure::Closing))
    }

    /// Answers the queries that wait, and joins the thread. Blocks.
    pub fn close(&self) {
        drop(self.queries.lock().take());
        if let Some(thread) = self.thread.lock().take() {
            // It has not panicked: panics of queries are caught.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ReaderThread, StoreFailure};
    use futures_lite::future::{block_on, poll_once};
    use std::sync::Arc;
    use std::sync::mpsc::channel;

    /// A query that panicked ended the thread. All queries then failed until the next start, and the log did not say why.
    #[test]
    fn a_panic_ends_only_its_query() {
        let reader = ReaderThread::start("reader", 2, &Arc::new(7)).expect("starts");
        let panicked = block_on(reader.query(|_| -> u8 { panic!("a test") }));
        assert_eq!(panicked, Err(StoreFailure::Failed("a query panicked".to_owned())));
        assert_eq!(block_on(reader.query(|seven| *seven)), Ok(7));
        reader.close();
        assert_eq!(block_on(reader.query(|seven| *seven)), Err(StoreFailure::Closing));
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
        assert_eq!(block_on(reader.query(|()| true)), Err(StoreFailure::Overloaded));
        drop(end);
        assert_eq!((block_on(first), block_on(second)), (Ok(true), Ok(true)));
    }
}
