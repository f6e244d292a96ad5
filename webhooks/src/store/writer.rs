//! The writer thread: makes everything that waits durable with one commit.
//!
//! There is no timer: latency is low when idle, and batches grow under load. A full disk does not stop the writer: outcomes wait
//! until there is space, and new deliveries and changes are refused. After a device failure nothing is written until the next
//! start, because the contents of the device are then unknown; deliveries whose outcomes are lost are made again.

use super::apply::{Batch, NewDeliveries, Outcome};
use super::changes::Changes;
use super::cleanup::{self, Retention, Step};
use super::delivery_record::Waiting;
use super::environment::WebhookStore;
use super::observer::Recorded;
use super::queue::{NewWork, Queue};
use super::seal::SealingKey;
use super::state::Shared;
use crate::error::{WebhookError, WebhookOpenError};
use crate::limits::RETENTION_CHECK_INTERVAL;
use cairn_model::Clock;
use futures_channel::oneshot;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long the writer waits before it tries again to write to a full disk.
const FULL_DISK_WAIT: Duration = Duration::from_secs(1);

/// Hands work to the writer thread.
pub(crate) struct Writer {
    pub(crate) shared: Arc<Shared>,
    queue: Arc<Queue>,
}

/// The writer thread, to be waited for.
pub(crate) struct WriterThread(Mutex<Option<JoinHandle<()>>>);

impl Writer {
    /// Opens the store. Nothing is written before [`Self::start`]. Blocks.
    ///
    /// # Errors
    /// [`WebhookOpenError`]; nothing was changed.
    pub(crate) fn open(
        folder: &Path,
        store: [u8; 16],
        master_key: &[u8],
        clock: Arc<dyn Clock>,
        retention: Duration,
    ) -> Result<Self, WebhookOpenError> {
        let io = |error| WebhookOpenError::Io { path: folder.to_owned(), error };
        let sealing = SealingKey::derive(master_key, store).map_err(io)?;
        let opened = WebhookStore::open(folder, store)?;
        let state = opened.load(folder, &sealing)?;
        let shared = Arc::new(Shared::new(opened, store, state, sealing, clock, retention));
        Ok(Self { shared, queue: Arc::default() })
    }

    /// Starts the thread.
    ///
    /// # Errors
    /// The operating system has no thread.
    pub(crate) fn start(&self) -> std::io::Result<WriterThread> {
        let (shared, queue) = (Arc::clone(&self.shared), Arc::clone(&self.queue));
        let run = move || {
            // A panic may leave a change half-done in memory.
            if catch_unwind(AssertUnwindSafe(|| Loop::new(&shared, &queue).run())).is_err() {
                tracing::error!(target: "service::webhooks", "the writer of webhooks panicked: the process ends");
                std::process::abort();
            }
        };
        let thread = std::thread::Builder::new().name("webhook-writer".to_owned()).spawn(run)?;
        Ok(WriterThread(Mutex::new(Some(thread))))
    }

    /// Makes a change on the writer's thread. When the future resolves, the change is durable and in force. Dropping the future
    /// does not cancel the change.
    pub(crate) async fn change<T: Send + 'static>(
        &self,
        change: impl FnOnce(&Changes<'_>) -> Result<T, WebhookError> + Send + 'static,
    ) -> Result<T, WebhookError> {
        let (reply, answer) = oneshot::channel();
        // The caller may have dropped its future; the reply is then ignored.
        self.queue.push_change(Box::new(move |changes| drop(reply.send(change(changes)))))?;
        answer.await.map_err(|_| WebhookError::ShuttingDown)?
    }

    /// Queues deliveries. Returns those that are durable. Blocks.
    pub(crate) fn queue(&self, new: NewDeliveries) -> Result<Vec<Waiting>, WebhookError> {
        let (reply, answer) = sync_channel(1);
        self.queue.push_new((new, reply))?;
        answer.recv().map_err(|_| WebhookError::ShuttingDown)?
    }

    /// Records an outcome later. Blocks while too many wait.
    pub(crate) fn record(&self, outcome: Outcome) {
        self.queue.push_outcome(outcome);
    }
}

impl WriterThread {
    /// Lets the writer do what waits, and waits for its end. Blocks.
    pub(crate) fn close(&self, writer: &Writer) {
        writer.queue.close();
        let thread = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // A panic of the thread has already ended the process.
            let _ = thread.join();
        }
    }
}

/// What the thread does.
struct Loop<'w> {
    shared: &'w Shared,
    queue: &'w Queue,
    /// Whether outcomes wait for space.
    is_waiting: bool,
    /// Whether the disk was full at the last attempt. Only changes of this are logged.
    lacks_space: bool,
    /// When log entries were last looked for that are too old, and none was found.
    retention_checked: Option<Instant>,
}

impl<'w> Loop<'w> {
    fn new(shared: &'w Shared, queue: &'w Queue) -> Self {
        Self { shared, queue, is_waiting: false, lacks_space: false, retention_checked: None }
    }

    fn run(mut self) {
        let mut wait = Duration::ZERO;
        loop {
            if self.is_waiting {
                self.queue.wait_change(FULL_DISK_WAIT);
            }
            let work = self.queue.take(wait);
            for change in work.changes {
                change(&Changes { shared: self.shared });
            }
            self.write(work.new, work.outcomes);
            if work.is_last {
                return;
            }
            wait = match self.clean_up() {
                Step::Removed => Duration::ZERO,
                Step::Idle => RETENTION_CHECK_INTERVAL,
            };
            // Extended now, while nobody waits, so that the next batch finds written space.
            if self.shared.stopped.get().is_none() && !self.shared.state().webhooks.is_empty() {
                let _ = self.shared.store.keep_headroom();
            }
        }
    }

    /// Writes new deliveries and outcomes.
    fn write(&mut self, new: Option<NewWork>, outcomes: Vec<Outcome>) {
        self.is_waiting = false;
        if new.is_none() && outcomes.is_empty() {
            return;
        }
        let written = self.shared.check_running().and_then(|()| {
            let nothing = NewDeliveries::default();
            let new = new.as_ref().map_or(&nothing, |(new, _)| new);
            let written = write_batch(self.shared, new, &outcomes);
            self.judge(written)
        });
        let (queued, recorded) = match written {
            Ok((queued, recorded)) => (Ok(queued), recorded),
            Err(error) => {
                if error == WebhookError::Full && !outcomes.is_empty() {
                    self.is_waiting = true;
                    self.queue.put_back(outcomes);
                }
                (Err(error), Vec::new())
            }
        };
        if let Some(observer) = self.shared.observer().filter(|_| !recorded.is_empty()) {
            observer.recorded(&recorded);
        }
        if let Some((_, reply)) = new {
            // Whoever asked may have ended.
            let _ = reply.send(queued);
        }
    }

    fn clean_up(&mut self) -> Step {
        let is_due = self.retention_checked.is_none_or(|time| time.elapsed() >= RETENTION_CHECK_INTERVAL);
        if self.shared.check_running().is_err() || self.shared.state().is_unused() {
            return Step::Idle;
        }
        let retention = if is_due { Retention::Due } else { Retention::NotDue };
        let now = self.shared.clock.now();
        let done = self
            .shared
            .store
            .keep_headroom_for_removal()
            .and_then(|()| cleanup::step(self.shared, now, retention));
        let step = self.judge(done).unwrap_or(Step::Idle);
        if step == Step::Idle && is_due {
            self.retention_checked = Some(Instant::now());
        }
        step
    }

    /// Logs a failure, and stops the writer after one that leaves the device's contents unknown.
    fn judge<T>(&mut self, written: Result<T, cairn_lmdb::Error>) -> Result<T, WebhookError> {
        let lacks_space = matches!(written, Err(cairn_lmdb::Error::Full));
        if std::mem::replace(&mut self.lacks_space, lacks_space) != lacks_space {
            if lacks_space {
                tracing::error!(target: "service::webhooks", "no space is left for webhooks: deliveries wait until there is");
            } else if written.is_ok() {
                tracing::info!(target: "service::webhooks", "there is space for webhooks again");
            }
        }
        written.map_err(|error| {
            if !matches!(error, cairn_lmdb::Error::Full | cairn_lmdb::Error::Corrupt { .. }) {
                tracing::error!(target: "service::webhooks", %error, "the store of webhooks failed: nothing is delivered until the service is started again");
                let _ = self
                    .shared
                    .stopped
                    .set(format!("nothing is delivered after a failure: {error}; restart the service"));
                if let Some(observer) = self.shared.observer() {
                    observer.failed();
                }
            }
            error.into()
        })
    }
}

fn write_batch(
    shared: &Shared,
    new: &NewDeliveries,
    outcomes: &[Outcome],
) -> Result<(Vec<Waiting>, Vec<Recorded>), cairn_lmdb::Error> {
    shared.store.keep_headroom()?;
    let mut batch = Batch::begin(shared)?;
    let queued = batch.queue(new, shared.clock.now())?;
    let recorded = outcomes.iter().map(|outcome| batch.record(outcome)).collect::<Result<_, _>>()?;
    batch.commit()?;
    Ok((queued, recorded))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::WebhookId;
    use cairn_model::SystemClock;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[derive(Default)]
    struct Failed(AtomicBool);

    impl crate::store::Observer for Failed {
        fn recorded(&self, _: &[Recorded]) {}

        fn changed(&self, _: WebhookId) {}

        fn failed(&self) {
            self.0.store(true, Ordering::SeqCst);
        }
    }

    /// After a failure of the device, attempts went on whose outcomes were lost. All of them were made again after the restart.
    #[test]
    fn delivery_ends_with_a_failure_of_the_device() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("unmade"), "").expect("writes");
        let clock = Arc::new(SystemClock);
        let writer =
            Writer::open(folder.path(), [7; 16], b"key", clock, Duration::from_secs(60)).expect("opens");
        let observer = Arc::<Failed>::default();
        writer.shared.observe(Arc::clone(&observer) as Arc<_>);
        let mut thread = Loop::new(&writer.shared, &writer.queue);
        let _ = thread.judge::<()>(Err(cairn_lmdb::Error::Full));
        assert!(!observer.0.load(Ordering::SeqCst), "a full disk is no failure");
        let _ = thread.judge::<()>(Err(cairn_lmdb::Error::Lmdb("a test".to_owned())));
        assert!(observer.0.load(Ordering::SeqCst) && writer.shared.check_running().is_err());
    }
}
