//! The writer thread: makes one change after the other, and writes counted downloads.
//!
//! A full disk does not stop the writer: changes are refused until there is space, and counts wait in memory. After a device
//! failure nothing is written until the next start, because the contents of the device are then unknown.

use super::changes::Changes;
use super::environment::{LinkStore, open_error};
use super::seal::SealingKey;
use super::state::Shared;
use crate::error::{SharingError, SharingOpenError};
use crate::limits::{CHANGES_WAITING_MAX, USAGE_INTERVAL};
use crate::policy::SharingPolicy;
use crate::types::link::LinkKind;
use cairn_lmdb::Error;
use cairn_model::Clock;
use futures_channel::oneshot;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

type Change = Box<dyn FnOnce(&Changes<'_>) + Send>;

/// Hands changes to the writer thread.
pub(crate) struct Writer {
    pub(crate) shared: Arc<Shared>,
    changes: Mutex<Option<SyncSender<Change>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Writer {
    /// Opens the store and starts the thread. Blocks.
    ///
    /// # Errors
    /// [`SharingOpenError`]; nothing was changed.
    pub(crate) fn open(
        folder: &Path,
        store: [u8; 16],
        master_key: &[u8],
        policy: SharingPolicy,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, SharingOpenError> {
        let io = |error| SharingOpenError::Io { path: folder.to_owned(), error };
        let sealing = SealingKey::derive(master_key, store).map_err(io)?;
        let opened = LinkStore::open(folder, store)?;
        let counts = opened.check(folder)?;
        let shared = Arc::new(Shared::new(opened, policy, sealing, clock, counts));
        let (changes, queue) = sync_channel(CHANGES_WAITING_MAX);
        let own = Arc::clone(&shared);
        let run = move || {
            // A panic may leave a change half-done.
            if catch_unwind(AssertUnwindSafe(|| run(&own, &queue))).is_err() {
                tracing::error!(target: "service::sharing", "the writer of shares and embeds panicked: the process ends");
                std::process::abort();
            }
        };
        let thread = std::thread::Builder::new().name("sharing-writer".to_owned()).spawn(run).map_err(io)?;
        Ok(Self { shared, changes: Mutex::new(Some(changes)), thread: Mutex::new(Some(thread)) })
    }

    /// Makes a change on the writer's thread. When the future resolves, the change is durable. Dropping the future does not
    /// cancel the change.
    pub(crate) async fn change<T: Send + 'static>(
        &self,
        change: impl FnOnce(&Changes<'_>) -> Result<T, SharingError> + Send + 'static,
    ) -> Result<T, SharingError> {
        let (reply, answer) = oneshot::channel();
        // The caller may have dropped its future; the reply is then ignored.
        let change: Change = Box::new(move |changes| drop(reply.send(change(changes))));
        let sent = match &*self.changes.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(changes) => changes.try_send(change),
            None => return Err(SharingError::ShuttingDown),
        };
        sent?;
        answer.await.map_err(|_| SharingError::ShuttingDown)?
    }

    /// Lets the writer do what waits, and waits for its end. Blocks.
    pub(crate) fn close(&self) {
        drop(self.changes.lock().unwrap_or_else(PoisonError::into_inner).take());
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // A panic of the thread has already ended the process.
            let _ = thread.join();
        }
    }
}

fn run(shared: &Shared, queue: &Receiver<Change>) {
    let changes = Changes { shared };
    let mut flushed = Instant::now();
    loop {
        match queue.recv_timeout(USAGE_INTERVAL.saturating_sub(flushed.elapsed())) {
            Ok(change) => change(&changes),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                while changes.flush_usage().unwrap_or(false) {}
                return;
            }
        }
        if flushed.elapsed() >= USAGE_INTERVAL {
            // After a failure, which was logged, the counts stay in memory.
            let has_more = changes.flush_usage().unwrap_or(false);
            flushed = if has_more { flushed } else { Instant::now() };
        }
        // Extended now, while nobody waits, so that the next change finds written space.
        if shared.stopped.get().is_none() && LinkKind::ALL.iter().any(|kind| shared.count(*kind) > 0) {
            let _ = shared.store.keep_headroom();
        }
    }
}

impl Shared {
    /// Logs a failed commit, and stops the writer after one that leaves the device's contents unknown.
    pub(super) fn judge(&self, committed: Result<(), Error>) -> Result<(), SharingError> {
        committed.map_err(|error| {
            if !matches!(error, Error::Full) {
                tracing::error!(target: "service::sharing", %error, "the store of shares and embeds failed: nothing is changed until the service is started again");
                let _ = self.stopped.set(format!("nothing is changed after a failure: {error}; restart the service"));
            }
            error.into()
        })
    }
}

impl LinkStore {
    /// Compares the records with the totals of the environment, and counts the links. Blocks.
    fn check(&self, folder: &Path) -> Result<[u64; LinkKind::ALL.len()], SharingOpenError> {
        let failed = |error: Error| open_error(folder, error.into());
        let txn = self.environment.read().map_err(failed)?;
        let computed = txn.compute_totals(&self.all_tables()).map_err(failed)?;
        if computed != txn.totals().map_err(failed)? {
            let what = "records are missing: they do not match the stored totals".to_owned();
            return Err(SharingOpenError::Damaged { path: folder.to_owned(), what });
        }
        let count = |kind: LinkKind| {
            let keys = txn.keys(self.of(kind).links, &[]).map_err(failed)?;
            keys.map(|key| key.map(drop)).try_fold(0, |count, key| key.map(|()| count + 1)).map_err(failed)
        };
        let [shares, embeds] = LinkKind::ALL.map(count);
        Ok([shares?, embeds?])
    }
}
