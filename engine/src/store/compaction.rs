//! Compaction of the running store: gives freed space in metadata and empty volumes back to the file system.
//!
//! One compaction runs at a time, on a thread of its own. It replaces one environment after the other by a compact copy while
//! requests are served (`lmdb/src/compact_open.rs`). After each step it rests for twice as long as the step took, so that
//! processors and device are left to the requests. It ends when the disk falls below the reserve. Then it truncates volumes
//! that hold nothing.

use crate::device::disk_space::DiskSpace;
use crate::error::EngineError;
use crate::limits::{
    COMPACTION_REST_FACTOR, COMPACTION_REST_MAX, GROWTH_BYTES_MIN, METADATA_HEADROOM, UNIT_BYTES,
};
use crate::slice::Slice;
use crate::store::Store;
use crate::store::compaction_status::CompactionStatus;
use crate::store::runtime::spawn_background;
use cairn_lmdb::{CopyProgress, Environment, OpenCompactOptions, OpenCompaction};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// An environment outside of the engine that is compacted with the store, for example that of the audit trail: the name of its
/// folder in the data folder, and the environment.
pub type OtherEnvironment = (&'static str, Arc<Environment>);

impl Store {
    /// Begins to compact the store and `others`. Returns at once; [`Store::compaction`] shows the progress.
    ///
    /// # Errors
    /// [`EngineError::AlreadyRunning`] when a compaction is running, [`EngineError::StorageFull`] when the copy of an
    /// environment does not fit above the reserve, [`EngineError::ShuttingDown`], and failures of the device.
    pub fn begin_compaction(self: &Arc<Self>, others: Vec<OtherEnvironment>) -> Result<(), EngineError> {
        if self.runtime.is_closing() {
            return Err(EngineError::ShuttingDown);
        }
        if self.background.compactions.is_running.swap(true, Ordering::SeqCst) {
            return Err(EngineError::AlreadyRunning("a compaction"));
        }
        let own = Arc::clone(self);
        let begun = self.refuse_without_space(&others).and_then(|()| {
            let environments = u32::try_from(self.slices.len() + 1 + others.len()).unwrap_or(u32::MAX);
            let started_at = Some(self.clocks.system.now());
            *self.background.compactions.lock() =
                CompactionStatus { environments, started_at, ..CompactionStatus::default() };
            let body = move || own.run_compaction(&others);
            let thread = spawn_background("compaction".to_owned(), self.disk.path(), body);
            thread.map_err(|error| EngineError::Io(error.to_string()))
        });
        match begun {
            Ok(thread) => {
                self.runtime.add(thread);
                Ok(())
            }
            Err(error) => {
                self.background.compactions.is_running.store(false, Ordering::SeqCst);
                Err(error)
            }
        }
    }

    /// Returns progress or result of the last compaction.
    #[must_use]
    pub fn compaction(&self) -> CompactionStatus {
        self.background.compactions.lock().clone()
    }

    fn refuse_without_space(&self, others: &[OtherEnvironment]) -> Result<(), EngineError> {
        let own = self.slices.iter().map(|slice| &slice.environment);
        let all =
            own.chain([&self.control.catalog.environment]).chain(others.iter().map(|(_, other)| &**other));
        let available = self.disk.measure();
        for environment in all {
            let needed = environment.compaction_need(METADATA_HEADROOM)?;
            if needed.is_some_and(|needed| needed > available) {
                return Err(EngineError::StorageFull);
            }
        }
        Ok(())
    }

    fn run_compaction(&self, others: &[OtherEnvironment]) {
        let done = self.compact_all(others);
        let status = {
            let mut status = self.background.compactions.lock();
            status.finished_at = Some(self.clocks.system.now());
            status.error = done.err();
            // Who sees the end may begin the next one at once.
            self.background.compactions.is_running.store(false, Ordering::SeqCst);
            status.clone()
        };
        if let Some(error) = &status.error {
            tracing::warn!(target: "service::engine", %error, "the compaction ended early: what was done before stays compact");
        } else {
            let CompactionStatus { bytes_before, bytes_after, volume_bytes_freed, pause_max, .. } = status;
            let pause_ms = u64::try_from(pause_max.as_millis()).unwrap_or(u64::MAX);
            tracing::info!(target: "service::engine", bytes_before, bytes_after, volume_bytes_freed, pause_ms, "the store was compacted");
        }
    }

    fn compact_all(&self, others: &[OtherEnvironment]) -> Result<(), String> {
        for slice in &self.slices {
            if let Some(reason) = slice.commits.stopped.get() {
                return Err(reason);
            }
            self.compact_environment(&format!("slices/{:02}/meta", slice.number), &slice.environment)?;
        }
        self.compact_environment("control", &self.control.catalog.environment)?;
        for (name, environment) in others {
            self.compact_environment(name, environment)?;
        }
        for slice in &self.slices {
            let freed = truncate_empty_volumes(slice, &self.disk);
            self.background.compactions.lock().volume_bytes_freed +=
                freed.map_err(|error| format!("truncating a volume of slice {}: {error}", slice.number))?;
        }
        Ok(())
    }

    fn compact_environment(&self, name: &str, environment: &Environment) -> Result<(), String> {
        let is_full = std::cell::Cell::new(false);
        let proceed = |progress: CopyProgress| {
            {
                let mut status = self.background.compactions.lock();
                (status.copied_bytes, status.expected_bytes) =
                    (progress.copied_bytes, progress.expected_bytes);
            }
            rest(progress.step);
            is_full.set(self.disk.measure() == 0);
            !is_full.get() && !self.runtime.is_closing()
        };
        let options = OpenCompactOptions {
            headroom_bytes: METADATA_HEADROOM,
            available_bytes: self.disk.measure(),
            proceed: &proceed,
        };
        let OpenCompaction { compaction, pause } = environment.compact(&options).map_err(|error| {
            if is_full.get() {
                format!("{name}: the free space of the disk fell below the reserve")
            } else {
                format!("{name}: {error}")
            }
        })?;
        let mut status = self.background.compactions.lock();
        status.environments_done += 1;
        (status.copied_bytes, status.expected_bytes) = (0, 0);
        status.bytes_before += compaction.bytes_before;
        status.bytes_after += compaction.bytes_after;
        status.records += compaction.records;
        status.pause_max = status.pause_max.max(pause);
        Ok(())
    }
}

/// Leaves the device to others after a step of a copy that took `step`.
#[expect(clippy::disallowed_methods, reason = "a thread of its own")]
pub(super) fn rest(step: Duration) {
    std::thread::sleep((step * COMPACTION_REST_FACTOR).min(COMPACTION_REST_MAX));
}

/// Truncates the volumes of a slice that hold nothing to their header. Returns the freed bytes.
///
/// The maintainer lets them grow again when space is needed.
fn truncate_empty_volumes(slice: &Slice, disk: &DiskSpace) -> Result<u64, EngineError> {
    let _none_grows = disk.growing.lock();
    // An inspection compares the extents of a snapshot with the lengths of the volumes, so none may run.
    let Ok(_no_inspection) = slice.change_log.follow(&slice.environment) else { return Ok(0) };
    let volumes = slice.space.volumes.read().clone();
    let mut freed = 0;
    for volume in volumes {
        if volume.bytes() <= GROWTH_BYTES_MIN || volume.failed() {
            continue;
        }
        let Some(allocated) = slice.space.allocator.take_empty_volume(volume.number, volume.units()) else {
            continue;
        };
        volume.truncate().map_err(|error| EngineError::Io(error.to_string()))?;
        freed += allocated * UNIT_BYTES;
    }
    Ok(freed)
}

#[cfg(test)]
mod tests {
    use crate::{EngineError, Store, StoreOptions};
    use std::sync::Arc;

    fn until_it_ends(store: &Arc<Store>) {
        while store.compaction().finished_at.is_none() {
            std::hint::spin_loop();
        }
    }

    #[test]
    fn one_compaction_runs_at_a_time_and_the_next_may_begin_at_its_end() {
        let folder = tempfile::tempdir_in(".").expect("a folder");
        let key = b"a master key of the tests, long enough".to_vec().into();
        let options = StoreOptions { slices: Some(1), ..StoreOptions::new(folder.path().to_owned(), key) };
        let store = Store::open(options).expect("the store opens");
        // A compaction ends with the volumes, and none changes its size meanwhile.
        let growing = store.disk.growing.lock();
        store.begin_compaction(Vec::new()).expect("begins");
        assert_eq!(store.begin_compaction(Vec::new()), Err(EngineError::AlreadyRunning("a compaction")));
        drop(growing);
        until_it_ends(&store);
        store.begin_compaction(Vec::new()).expect("begins");
        until_it_ends(&store);
        store.close();
    }
}
