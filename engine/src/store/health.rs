//! Health checks of an open store: known failures, and small reads that a hung or broken device does not complete.

use crate::slice::Slice;
use crate::store::Store;
use std::sync::Arc;

impl Store {
    /// Checks that payloads can be stored and read: no flush has failed, the file system responds, and a unit of each slice
    /// can be read from the device.
    ///
    /// Blocks for as long as the device does, so only plain threads may call it.
    ///
    /// # Errors
    /// The reason, as a text for operators.
    pub fn check_storage(&self) -> Result<(), String> {
        let path = self.disk.path();
        rustix::fs::statvfs(path).map_err(|error| format!("{}: {error}", path.display()))?;
        self.slices.iter().try_for_each(check_volumes)
    }

    /// Checks that metadata can be read and changed: no commit has failed, and a record of each environment can be read.
    ///
    /// Blocks for as long as the device does, so only plain threads may call it.
    ///
    /// # Errors
    /// The reason, as a text for operators.
    pub fn check_metadata(&self) -> Result<(), String> {
        if let Some(reason) = self.stopped_reason() {
            return Err(reason);
        }
        for slice in &self.slices {
            slice.sequence().map_err(|error| format!("{}: {error}", slice.folder.display()))?;
        }
        self.control.catalog.check().map_err(|error| format!("the records of the buckets: {error}"))
    }

    /// Returns whether new data are refused: the disk has no room, or the device has failed. A device that fails without a
    /// word since the last change is not noticed.
    #[must_use]
    pub fn refuses_writes(&self) -> bool {
        self.disk_state().refuses_writes() || self.stopped_reason().is_some()
    }

    /// Returns why a slice or the catalog of buckets accepts no change, if that is so.
    fn stopped_reason(&self) -> Option<String> {
        let stopped = self.slices.iter().find_map(|slice| slice.commits.stopped.get());
        stopped.or_else(|| self.control.catalog.stopped_reason())
    }
}

fn check_volumes(slice: &Arc<Slice>) -> Result<(), String> {
    let volumes = slice.space.volumes.read().clone();
    if let Some(volume) = volumes.iter().find(|volume| volume.failed()) {
        return Err(format!("{} is read-only after a failed flush", volume.path.display()));
    }
    // All volumes of a slice are on the same device.
    let Some(first) = volumes.first() else { return Ok(()) };
    first.check_readable().map_err(|error| format!("{}: {error}", first.path.display()))
}
