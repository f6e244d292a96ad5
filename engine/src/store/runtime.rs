//! The threads of an open store and its data folder's lock.

use crate::error::{OpenContext, OpenError};
use crate::store::background::lower_priority;
use cairn_sync::Mutex;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// The resources of an open store, held until it is closed.
pub(crate) struct Runtime {
    /// Set when the store closes. Ends a compaction and a warm-up.
    is_closing: AtomicBool,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// Locked until the store is closed.
    lock: File,
}

impl Runtime {
    /// Begins without threads. `lock` is the locked file of the data folder.
    pub(super) fn new(lock: File) -> Self {
        Self { is_closing: AtomicBool::new(false), threads: Mutex::default(), lock }
    }

    /// Returns whether the store is closing.
    pub(super) fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::SeqCst)
    }

    /// Notes that the store is closing.
    pub(super) fn begin_closing(&self) {
        self.is_closing.store(true, Ordering::SeqCst);
    }

    /// Adds a thread that the close of the store waits for, and forgets those that have ended.
    pub(super) fn add(&self, thread: JoinHandle<()>) {
        let mut threads = self.threads.lock();
        threads.retain(|thread| !thread.is_finished());
        threads.push(thread);
    }

    /// Waits for the end of all threads. Blocks.
    pub(super) fn join(&self) {
        for thread in std::mem::take(&mut *self.threads.lock()) {
            // A thread that panicked has ended the process already.
            let _ = thread.join();
        }
    }

    /// Releases the data folder.
    pub(super) fn unlock(&self) {
        // Not when the store is dropped: a task that its executor never completed keeps the store alive.
        if let Err(error) = rustix::fs::flock(&self.lock, rustix::fs::FlockOperation::Unlock) {
            tracing::warn!(target: "service::engine", %error, "the lock of the store could not be released");
        }
    }
}

/// Starts a thread of the store. A panic in it aborts the process, because its state is unknown. The next start recovers.
pub(super) fn spawn(
    name: String,
    data_dir: &Path,
    body: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>, OpenError> {
    let guarded = move || {
        if catch_unwind(AssertUnwindSafe(body)).is_err() {
            tracing::error!(target: "service::engine", "a thread of the store panicked: the process ends");
            std::process::abort();
        }
    };
    std::thread::Builder::new().name(name).spawn(guarded).doing("starting the threads of", data_dir)
}

/// As [`spawn`], with a lower priority than requests.
pub(super) fn spawn_background(
    name: String,
    data_dir: &Path,
    body: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>, OpenError> {
    spawn(name, data_dir, move || {
        lower_priority();
        body();
    })
}
