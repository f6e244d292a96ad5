//! The reader thread: answers one query after the other until the webhooks are closed.
//!
//! What it reads takes too long for an executor.

use super::state::Shared;
use crate::error::{WebhookError, catch_panic};
use crate::limits::QUERIES_WAITING_MAX;
use futures_channel::oneshot;
use std::io;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

type Query = Box<dyn FnOnce(&Shared) + Send>;

/// Hands queries to the reader thread.
pub(crate) struct Reader {
    queries: Mutex<Option<SyncSender<Query>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Reader {
    /// Starts the thread.
    ///
    /// # Errors
    /// The operating system has no thread.
    pub(crate) fn start(shared: &Arc<Shared>) -> io::Result<Self> {
        let (queries, queue) = sync_channel::<Query>(QUERIES_WAITING_MAX);
        let shared = Arc::clone(shared);
        let run = move || queue.into_iter().for_each(|query| query(&shared));
        let thread = std::thread::Builder::new().name("webhook-reader".to_owned()).spawn(run)?;
        Ok(Self { queries: Mutex::new(Some(queries)), thread: Mutex::new(Some(thread)) })
    }

    /// Reads on the thread. The query is skipped if the caller has dropped the future before its turn.
    ///
    /// # Errors
    /// [`WebhookError::Overloaded`], or a failure.
    pub(crate) async fn query<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Shared) -> Result<T, WebhookError> + Send + 'static,
    ) -> Result<T, WebhookError> {
        let (reply, answer) = oneshot::channel();
        let query: Query = Box::new(move |shared| {
            if !reply.is_canceled() {
                drop(reply.send(catch_panic("a query", || query(shared))));
            }
        });
        let sent = match &*self.queries.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(queries) => queries.try_send(query),
            None => return Err(WebhookError::ShuttingDown),
        };
        sent.map_err(|refused| match refused {
            TrySendError::Full(_) => WebhookError::Overloaded,
            TrySendError::Disconnected(_) => WebhookError::ShuttingDown,
        })?;
        answer.await.map_err(|_| WebhookError::ShuttingDown)?
    }

    /// Lets the thread answer what waits, and waits for its end. Blocks.
    pub(crate) fn close(&self) {
        drop(self.queries.lock().unwrap_or_else(PoisonError::into_inner).take());
        if let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() {
            // It has not panicked: panics of queries are caught.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Writer;
    use cairn_model::SystemClock;
    use futures_lite::future::block_on;
    use std::time::Duration;

    /// A query that panicked ended the thread. All lists then failed until the next start, and the log did not say why.
    #[test]
    fn a_panic_ends_only_its_query() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("unmade"), "").expect("writes");
        let clock = Arc::new(SystemClock);
        let writer =
            Writer::open(folder.path(), [7; 16], b"key", clock, Duration::from_secs(60)).expect("opens");
        let reader = Reader::start(&writer.shared).expect("starts");
        let panicked = block_on(reader.query(|_| -> Result<u8, _> { panic!("a test") }));
        assert_eq!(panicked, Err(WebhookError::Failed("a query panicked".to_owned())));
        assert_eq!(block_on(reader.query(|_| Ok(7))), Ok(7));
        reader.close();
        assert_eq!(block_on(reader.query(|_| Ok(7))), Err(WebhookError::ShuttingDown));
    }
}
