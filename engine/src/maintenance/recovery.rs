//! Recovery of a slice after a failed flush or commit.
//!
//! A flush that succeeds after a failed one proves nothing about what was written before. The kernel reports a failed
//! write-back once, to one file. A device may have dropped its cache, with writes to all files. So the failed flushes of the
//! whole store are counted ([`cairn_lmdb::FlushFailures`]). What was written before the last one is relied on only if an
//! earlier flush of it succeeded:
//!
//! * **Volumes.** Each payload has the number of failures before its first write. The committer refuses it if the number is
//!   another one after the flush. So every byte of an accepted payload was written after the last failure, and is flushed before
//!   its record is committed. Volumes have no dirty pages, because they are written with direct I/O.
//! * **Metadata with a commit log.** The pages since the last checkpoint may be lost. So no checkpoint is made any more. Every
//!   slice stops, also one that has seen no failure itself, and is recovered.
//! * **Recovered metadata.** The last acknowledged state is copied into a new file, which is flushed as a whole and replaces the
//!   old one (`Environment::renew`). Payloads that the failed transaction would have removed are still owned. Extents that it
//!   would have added stay out of use until the next start.
//!
//! Before that the device must pass a test several times in a row, some time apart. A file system that has shut itself down
//! after the error never passes it. Then the slice stays as it is, and only a restart helps.

use crate::device::disk_space::DiskSpace;
use crate::device::volume::Volume;
use crate::fault_reports::StoreFault;
use crate::limits::{METADATA_HEADROOM, RECOVERY_PAUSE_MAX, RECOVERY_PAUSE_MIN, RECOVERY_TESTS};
use crate::slice::Slice;
use cairn_lmdb::OpenCompactOptions;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Tries to recover a slice. Owned by its maintainer.
#[derive(Debug)]
pub(crate) struct Recovery {
    /// The time of the next test of the device. `None` while nothing has failed.
    next: Option<Instant>,
    pause: Duration,
    /// Tests that were passed in a row.
    passed: u32,
}

impl Recovery {
    pub(crate) const fn new() -> Self {
        Self { next: None, pause: RECOVERY_PAUSE_MIN, passed: 0 }
    }

    /// Tests the device if something has failed and it is time, and recovers the slice after enough passed tests.
    pub(crate) fn step(&mut self, slice: &Slice, disk: &DiskSpace, now: Instant) {
        let volumes = slice.space.volumes.read().clone();
        let failed: Vec<_> = volumes.iter().filter(|volume| volume.failed()).cloned().collect();
        if failed.is_empty() && !slice.commits.stopped.is_set() {
            *self = Self::new();
            return;
        }
        if now < *self.next.get_or_insert(now + self.pause) {
            return;
        }
        // All volumes of a slice are on the same device.
        let tested = if failed.is_empty() { &volumes } else { &failed };
        let is_working = tested.iter().all(|volume| volume.test_device().is_ok());
        self.passed = if is_working { self.passed + 1 } else { 0 };
        let recovered = self.passed >= RECOVERY_TESTS && recover(slice, disk, &failed);
        let is_testing = is_working && self.passed < RECOVERY_TESTS;
        self.pause = if recovered || is_testing {
            RECOVERY_PAUSE_MIN
        } else {
            (self.pause * 2).min(RECOVERY_PAUSE_MAX)
        };
        self.next = Some(Instant::now() + self.pause);
    }
}

/// Recovers volumes and metadata. Returns whether changes are accepted again.
fn recover(slice: &Slice, disk: &DiskSpace, failed: &[Arc<Volume>]) -> bool {
    if !failed.is_empty() {
        for volume in failed {
            volume.recover();
            let path = volume.path.display().to_string();
            slice.failures.reports.report(&StoreFault::ChangesResumed { what: &path });
        }
    }
    if !slice.commits.stopped.is_set() {
        return true;
    }
    let proceed = |_| !slice.space.maintenance.lock().stop;
    let options = OpenCompactOptions {
        headroom_bytes: METADATA_HEADROOM,
        available_bytes: disk.measure(),
        proceed: &proceed,
    };
    match slice.environment.renew(&options) {
        Ok(_) => {
            // The outcome of the failed commit is known now: the copy is of the state before it.
            slice.events.close();
            slice.commits.stopped.clear();
            let what = format!("slice {}", slice.number);
            slice.failures.reports.report(&StoreFault::ChangesResumed { what: &what });
            true
        }
        Err(error) => {
            tracing::warn!(target: "service::engine", slice = slice.number, %error, "the metadata could not be recovered: if this does not change, restart the service");
            false
        }
    }
}
