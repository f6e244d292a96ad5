//! The writer thread: makes everything that waits durable with one commit.
//!
//! There is no timer: latency is low when idle, and batches grow under load. On a full disk outcomes wait until there is space.
//! Deliveries whose outcomes are lost in a failure are made again.

use super::apply::{Batch, NewDeliveries, Outcome};
use super::changes::Changes;
use super::cleanup::{self, Retention, Step};
use super::delivery_record::Waiting;
use super::environment::WebhookStore;
use super::observer::Recorded;
use super::queue::{NewWork, Queue};
use super::seal::SecretKey;
use super::state::Shared;
use crate::error::WebhookError;
use crate::limits::RETENTION_CHECK_INTERVAL;
use crate::schema::SCHEMA;
use cairn_model::{AgeLimit, Clock};
use cairn_tables::{Space, StoreFailure, StoreOpenError, WriterThread};
use futures_channel::oneshot;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

/// The wait of the writer before it tries again to write to a full disk.
const FULL_DISK_WAIT: Duration = Duration::from_secs(1);

/// Hands work to the writer thread.
pub(crate) struct Writer {
    pub(crate) shared: Arc<Shared>,
    queue: Arc<Queue>,
}

impl Writer {
    /// Opens the store. Nothing is written before [`Self::start`]. Blocks.
    ///
    /// # Errors
    /// [`StoreOpenError`]; nothing was changed.
    pub(crate) fn open(
        folder: &Path,
        store: [u8; 16],
        master_key: &[u8],
        clock: Arc<dyn Clock>,
        age: AgeLimit,
    ) -> Result<Self, StoreOpenError> {
        let sealing = SecretKey::derive(master_key, store);
        let opened = WebhookStore::open(folder, store)?;
        let state = opened.load(&sealing)?;
        let shared = Arc::new(Shared::new(opened, store, state, sealing, clock, age));
        Ok(Self { shared, queue: Arc::default() })
    }

    /// Starts the thread.
    ///
    /// # Errors
    /// The operating system has no thread.
    pub(crate) fn start(&self) -> std::io::Result<WriterThread> {
        let (shared, queue) = (Arc::clone(&self.shared), Arc::clone(&self.queue));
        WriterThread::start("webhook-writer", &SCHEMA, move || Loop::new(&shared, &queue).run())
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
        answer.await.map_err(|_| StoreFailure::Closing)?
    }

    /// Queues deliveries. Returns those that are durable. Blocks.
    pub(crate) fn queue(&self, new: NewDeliveries) -> Result<Vec<Waiting>, StoreFailure> {
        let (reply, answer) = sync_channel(1);
        self.queue.push_new((new, reply))?;
        answer.recv().map_err(|_| StoreFailure::Closing)?
    }

    /// Records an outcome later. Blocks while too many wait.
    pub(crate) fn record(&self, outcome: Outcome) {
        self.queue.push_outcome(outcome);
    }

    /// Makes what waits durable, and joins the thread. Blocks.
    pub(crate) fn close(&self, thread: &WriterThread) {
        self.queue.close();
        thread.join();
    }
}

/// The loop of the thread.
struct Loop<'w> {
    shared: &'w Shared,
    queue: &'w Queue,
    /// Whether outcomes wait for space.
    is_waiting: bool,
    /// The time of the last search for log entries that are too old, if none was found.
    retention_checked: Option<Instant>,
}

impl<'w> Loop<'w> {
    fn new(shared: &'w Shared, queue: &'w Queue) -> Self {
        Self { shared, queue, is_waiting: false, retention_checked: None }
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
            if !self.shared.state().webhooks.is_empty() {
                self.shared.store.tables.restore_headroom();
            }
        }
    }

    /// Writes new deliveries and outcomes.
    fn write(&mut self, new: Option<NewWork>, outcomes: Vec<Outcome>) {
        self.is_waiting = false;
        if new.is_none() && outcomes.is_empty() {
            return;
        }
        let nothing = NewDeliveries::default();
        let wanted = new.as_ref().map_or(&nothing, |(new, _)| new);
        let written = self.shared.attempt(Space::Change, || write_batch(self.shared, wanted, &outcomes));
        let (queued, recorded) = match written {
            Ok((queued, recorded)) => (Ok(queued), recorded),
            Err(error) => {
                if error == StoreFailure::Full && !outcomes.is_empty() {
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
        if self.shared.store.tables.check().is_err() || self.shared.state().is_unused() {
            return Step::Idle;
        }
        let retention = if is_due { Retention::Due } else { Retention::NotDue };
        let now = self.shared.clock.now();
        let done = self.shared.attempt(Space::Removal, || cleanup::step(self.shared, now, retention));
        let step = done.unwrap_or(Step::Idle);
        if step == Step::Idle && is_due {
            self.retention_checked = Some(Instant::now());
        }
        step
    }
}

fn write_batch(
    shared: &Shared,
    new: &NewDeliveries,
    outcomes: &[Outcome],
) -> Result<(Vec<Waiting>, Vec<Recorded>), cairn_lmdb::Error> {
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
    use cairn_model::{AgeLimit, Clock, SystemClock};
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
        let folder = cairn_tables::testing::unmade_store();
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let age = AgeLimit { age_max: Duration::from_secs(60), clock: clock.clone() };
        let writer = Writer::open(folder.path(), [7; 16], b"key", clock, age).expect("opens");
        let observer = Arc::<Failed>::default();
        writer.shared.observe(Arc::clone(&observer) as Arc<_>);
        let fail = |error| writer.shared.attempt::<()>(Space::Change, || Err(error)).expect_err("fails");
        fail(cairn_lmdb::Error::Full);
        assert!(!observer.0.load(Ordering::SeqCst), "a full disk is no failure");
        fail(cairn_lmdb::Error::Lmdb("a test".to_owned()));
        assert!(observer.0.load(Ordering::SeqCst) && writer.shared.store.tables.check().is_err());
    }
}
