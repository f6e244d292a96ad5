//! Thread that changes a small store, with its queue.

use crate::error::StoreFailure;
use crate::schema::StoreSchema;
use cairn_sync::Mutex;
use futures_channel::oneshot;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// A thread that changes a store. A panic in it ends the process, because it may leave a change half-done.
pub struct WriterThread(Mutex<Option<JoinHandle<()>>>);

impl WriterThread {
    /// Starts the thread.
    ///
    /// # Errors
    /// The operating system has no thread.
    pub fn start(
        thread: &str,
        schema: &'static StoreSchema,
        run: impl FnOnce() + Send + 'static,
    ) -> io::Result<Self> {
        let guarded = move || {
            if catch_unwind(AssertUnwindSafe(run)).is_err() {
                tracing::error!(target: "service::tables", "the writer thread of {} panicked: the process ends", schema.name);
                std::process::abort();
            }
        };
        let thread = std::thread::Builder::new().name(thread.to_owned()).spawn(guarded)?;
        Ok(Self(Mutex::new(Some(thread))))
    }

    /// Waits for the end of the thread. Blocks. Its queue must be closed.
    pub fn join(&self) {
        let thread = self.0.lock().take();
        if let Some(thread) = thread {
            // A panic of the thread has already ended the process.
            let _ = thread.join();
        }
    }
}

/// A change that waits for the writer thread, which makes it with a `C`.
pub type Change<C> = Box<dyn FnOnce(&mut C) + Send>;

/// Hands changes to a writer thread, which makes one after the other.
pub struct Writer<C> {
    changes: Mutex<Option<SyncSender<Change<C>>>>,
    thread: WriterThread,
}

/// The changes that wait for a writer thread.
pub struct ChangeQueue<C>(Receiver<Change<C>>);

/// The result of [`ChangeQueue::next`].
pub enum Next<C> {
    /// The next change.
    Change(Change<C>),
    /// The timeout passed without a change.
    TimedOut,
    /// The queue is closed and empty.
    Closed,
}

impl<C> ChangeQueue<C> {
    /// Waits for the next change, at most for `timeout`.
    #[must_use]
    pub fn next(&self, timeout: Duration) -> Next<C> {
        match self.0.recv_timeout(timeout) {
            Ok(change) => Next::Change(change),
            Err(RecvTimeoutError::Timeout) => Next::TimedOut,
            Err(RecvTimeoutError::Disconnected) => Next::Closed,
        }
    }
}

impl<C: 'static> Writer<C> {
    /// Starts the thread. At most `waiting_max` changes wait for it.
    ///
    /// # Errors
    /// The operating system has no thread.
    pub fn start(
        thread: &str,
        schema: &'static StoreSchema,
        waiting_max: usize,
        run: impl FnOnce(ChangeQueue<C>) + Send + 'static,
    ) -> io::Result<Self> {
        let (changes, queue) = sync_channel(waiting_max);
        let thread = WriterThread::start(thread, schema, move || run(ChangeQueue(queue)))?;
        Ok(Self { changes: Mutex::new(Some(changes)), thread })
    }

    /// Makes a change on the thread. When the future resolves, the change is durable. Dropping the future does not cancel the
    /// change.
    ///
    /// # Errors
    /// [`StoreFailure::Overloaded`] and [`StoreFailure::Closing`], or what the change returns.
    pub async fn change<T, E>(
        &self,
        change: impl FnOnce(&mut C) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E>
    where
        T: Send + 'static,
        E: From<StoreFailure> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        // The caller may have dropped its future; the reply is then ignored.
        let change: Change<C> = Box::new(move |changes| drop(reply.send(change(changes))));
        let sent = match &*self.changes.lock() {
            Some(changes) => changes.try_send(change),
            None => return Err(StoreFailure::Closing.into()),
        };
        sent.map_err(|refused| match refused {
            TrySendError::Full(_) => StoreFailure::Overloaded,
            TrySendError::Disconnected(_) => StoreFailure::Closing,
        })?;
        answer.await.map_err(|_| StoreFailure::Closing)?
    }

    /// Refuses further changes, lets the thread make those that wait, and waits for its end. Blocks.
    pub fn close(&self) {
        drop(self.changes.lock().take());
        self.thread.join();
    }
}

#[cfg(test)]
mod tests {
    use super::{ChangeQueue, Next, Writer};
    use crate::error::StoreFailure;
    use crate::testing::SCHEMA;
    use futures_lite::future::{block_on, poll_once};
    use std::sync::mpsc::channel;
    use std::time::Duration;

    fn count(mut counted: u64) -> impl FnOnce(ChangeQueue<u64>) + Send {
        move |queue| {
            loop {
                match queue.next(Duration::from_secs(60)) {
                    Next::Change(change) => change(&mut counted),
                    Next::TimedOut => {}
                    Next::Closed => return,
                }
            }
        }
    }

    async fn add(writer: &Writer<u64>, value: u64) -> Result<u64, StoreFailure> {
        writer
            .change(move |counted| {
                *counted += value;
                Ok(*counted)
            })
            .await
    }

    #[test]
    fn changes_are_made_in_order_and_refused_after_the_end() {
        let writer = Writer::start("writer", &SCHEMA, 4, count(1)).expect("starts");
        assert_eq!(block_on(add(&writer, 2)), Ok(3));
        // Nobody waits for this one. It is made all the same.
        assert!(block_on(poll_once(add(&writer, 3))).is_none_or(|made| made == Ok(6)));
        assert_eq!(block_on(add(&writer, 4)), Ok(10));
        writer.close();
        assert_eq!(block_on(add(&writer, 1)), Err(StoreFailure::Closing));
    }

    #[test]
    fn changes_that_wait_are_limited() {
        let writer = Writer::start("writer", &SCHEMA, 1, count(0)).expect("starts");
        let (begun, begins) = channel();
        let (end, ends) = channel::<()>();
        let mut first = Box::pin(writer.change(move |_| {
            begun.send(()).expect("somebody waits");
            Ok::<_, StoreFailure>(ends.recv().is_err())
        }));
        assert!(block_on(poll_once(&mut first)).is_none());
        begins.recv().expect("the first change is being made");
        let mut second = Box::pin(add(&writer, 1));
        assert!(block_on(poll_once(&mut second)).is_none());
        assert_eq!(block_on(add(&writer, 1)), Err(StoreFailure::Overloaded));
        drop(end);
        assert_eq!((block_on(first), block_on(second)), (Ok(true), Ok(1)));
    }
}
