//! A volume: one large preallocated file of payloads, divided into units of 4096 bytes.
//!
//! Unit 0 is the header. It is written once, when the file is created, and never allocated:
//! ```text
//! offset  size  what
//! 0       8     "CAIRNVOL"
//! 8       4     format version, 1 (integers little-endian)
//! 12      16    id of the store
//! 28      2     number of the slice
//! 30      4     number of the volume within the slice
//! 34      4054  zero
//! 4088    8     CRC-64/NVME of the first 4088 bytes
//! ```
//! All other bytes belong to payloads and check tables. The header identifies the file, so that a volume which was copied from
//! another store, or renamed, is refused. It is one unit with its check last, as all pages of the store are.
//!
//! Plain threads use this file to create, grow, punch, pre-write and flush volumes. Executors open the same file for direct
//! I/O themselves (`executor_files.rs`). A volume is never removed, and only an empty one is shortened (to its header). Other
//! space that is returned to the file system becomes holes.

use crate::device::file_map::AllocationMap;
use crate::device::files::{Files, VolumeFile};
use crate::error::{OpenContext, OpenError};
use crate::format::block::block_check;
use crate::format::extent::Extent;
use crate::format::superblock::StoreId;
use crate::limits::{UNIT_BYTES, VOLUME_BYTES_MAX};
use cairn_lmdb::FlushFailures;
use cairn_model::{u64_of, usize_of};
use cairn_sync::Mutex;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

const MAGIC: &[u8; 8] = b"CAIRNVOL";
const FORMAT: u32 = 1;

/// One MiB of zeros, aligned for direct I/O.
#[repr(align(4096))]
struct AlignedZeros([u8; 1 << 20]);
static ZEROS: AlignedZeros = AlignedZeros([0; 1 << 20]);

/// A header unit, aligned for direct I/O.
#[repr(align(4096))]
struct HeaderUnit([u8; 4096]);

/// One volume file.
#[derive(Debug)]
pub(crate) struct Volume {
    pub(crate) number: u32,
    pub(crate) path: PathBuf,
    file: VolumeFile,
    /// Length in units. All units except unit 0 can be allocated.
    units: AtomicU32,
    /// Whether a flush failed. The contents of the device are then unknown, and nothing more is written.
    failed: AtomicBool,
    /// Held during a flush. The kernel reports a failed write-back to one of two flushes at the same time; the other one would
    /// succeed although nothing is durable.
    flushing: Mutex<()>,
    /// Those of the device.
    flush_failures: FlushFailures,
}

/// A fault of a volume's file while it is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VolumeFault {
    /// The file is no longer at its path, or another file is.
    Missing,
    /// The file is shorter than when it was last measured.
    Truncated,
    /// The header differs from what was written, or cannot be read.
    Header,
}

/// Returns the numbers of the volumes in a slice's folder, which must be consecutive. Removes files that an interrupted
/// creation has left.
pub(crate) fn volume_numbers(files: &Files, slice_folder: &Path) -> Result<std::ops::Range<u32>, OpenError> {
    let folder = slice_folder.join("volumes");
    let mut numbers = std::collections::BTreeSet::new();
    for path in files.list(&folder).doing("reading", &folder)? {
        if path.extension().is_some_and(|extension| extension == "new") {
            files.remove(&path).doing("removing", &path)?;
        } else if let Some(number) = path.file_stem().and_then(|name| name.to_str()?.parse::<u32>().ok()) {
            numbers.insert(number);
        }
    }
    let count = u32::try_from(numbers.len()).expect("the numbers are distinct values of u32");
    match (0..count).find(|number| !numbers.contains(number)) {
        None if count > 0 => Ok(0..count),
        missing => Err(OpenError::Damaged {
            path: volume_path(slice_folder, missing.unwrap_or(0)),
            what: "the volume is missing".to_owned(),
        }),
    }
}

/// Returns the path of volume `number` in a slice's folder.
pub(crate) fn volume_path(slice_folder: &Path, number: u32) -> PathBuf {
    slice_folder.join("volumes").join(format!("{number:06}.vol"))
}

/// Returns the number of units in `bytes` bytes.
///
/// The engine never creates a file of 16 TiB or more. Units that an extent cannot address are not used.
fn units_in(bytes: u64) -> u32 {
    u32::try_from(bytes / UNIT_BYTES).unwrap_or(u32::MAX)
}

fn header(store: StoreId, slice: u16, number: u32) -> HeaderUnit {
    let mut unit = HeaderUnit([0; 4096]);
    let mut fields = Vec::with_capacity(34);
    fields.extend_from_slice(MAGIC);
    fields.extend_from_slice(&FORMAT.to_le_bytes());
    fields.extend_from_slice(&store.0);
    fields.extend_from_slice(&slice.to_le_bytes());
    fields.extend_from_slice(&number.to_le_bytes());
    unit.0[..fields.len()].copy_from_slice(&fields);
    let check = block_check(&unit.0[..4088]);
    unit.0[4088..].copy_from_slice(&check.to_le_bytes());
    unit
}

impl Volume {
    /// Creates a volume of `bytes` bytes. The volume and its name are durable when this returns.
    ///
    /// The file gets its name last. If there is a crash before that, the next start removes the file.
    pub(crate) fn create(
        files: &Files,
        flush_failures: &FlushFailures,
        folder: &Path,
        store: StoreId,
        slice: u16,
        number: u32,
        bytes: u64,
    ) -> io::Result<Self> {
        let path = volume_path(folder, number);
        let unnamed = path.with_extension("new");
        let file = files.create(&unnamed)?;
        let volume = Self {
            number,
            path,
            file,
            units: AtomicU32::new(0),
            failed: AtomicBool::new(false),
            flushing: Mutex::new(()),
            flush_failures: flush_failures.clone(),
        };
        let failures_before = flush_failures.count();
        let made = volume.grow_to(bytes).and_then(|()| {
            volume.file.write_all_at(&header(store, slice, number).0, 0)?;
            volume.flush_with(VolumeFile::sync_all)?;
            files.rename(&unnamed, &volume.path)?;
            // Not counted: it may fail for want of a descriptor, and then nothing but this volume is in doubt.
            files.sync_folder(&folder.join("volumes"))?;
            flush_failures.check_none_since(failures_before)
        });
        if let Err(error) = made {
            // No record refers to the file yet. Under either name it would obstruct the next attempt.
            let _ = files.remove(&unnamed);
            let _ = files.remove(&volume.path);
            return Err(error);
        }
        Ok(volume)
    }

    /// Opens a volume and checks that it belongs to this store, slice and number.
    pub(crate) fn open(
        files: &Files,
        flush_failures: &FlushFailures,
        folder: &Path,
        store: StoreId,
        slice: u16,
        number: u32,
    ) -> Result<Self, OpenError> {
        let path = volume_path(folder, number);
        let file = files.open(&path).doing("opening with direct I/O", &path)?;
        let mut found = HeaderUnit([0; 4096]);
        file.read_exact_at(&mut found.0, 0).doing("reading the header of", &path)?;
        if found.0 != header(store, slice, number).0 {
            let what =
                "the header is damaged, or the volume belongs to another store, slice or place".to_owned();
            return Err(OpenError::Damaged { path, what });
        }
        let units = units_in(file.length().doing("measuring", &path)?);
        Ok(Self {
            number,
            path,
            file,
            units: AtomicU32::new(units),
            failed: AtomicBool::new(false),
            flushing: Mutex::new(()),
            flush_failures: flush_failures.clone(),
        })
    }

    /// Returns the length in units.
    pub(crate) fn units(&self) -> u32 {
        self.units.load(Ordering::Acquire)
    }

    /// Returns the length in bytes, rounded down to whole units.
    pub(crate) fn bytes(&self) -> u64 {
        u64::from(self.units()) * UNIT_BYTES
    }

    /// Inspects the file: its path, its length and its header.
    pub(crate) fn inspect(&self, store: StoreId, slice: u16) -> Vec<VolumeFault> {
        let mut faults = Vec::new();
        // Read before the file is measured, because the file may grow.
        let expected = self.bytes();
        if !self.file.is_at(&self.path) {
            faults.push(VolumeFault::Missing);
        }
        if self.file.length().map_or(true, |length| length < expected) {
            faults.push(VolumeFault::Truncated);
        }
        let mut found = HeaderUnit([0; 4096]);
        let read = self.file.read_exact_at(&mut found.0, 0);
        if read.is_err() || found.0 != header(store, slice, self.number).0 {
            faults.push(VolumeFault::Header);
        }
        faults
    }

    /// Reads the header unit from the device, to check that the device can be read. [`Self::inspect`] compares its contents.
    pub(crate) fn check_readable(&self) -> io::Result<()> {
        self.file.read_exact_at(&mut HeaderUnit([0; 4096]).0, 0)
    }

    /// Returns the number of bytes by which the volume can still grow.
    pub(crate) fn room(&self) -> u64 {
        VOLUME_BYTES_MAX.saturating_sub(self.bytes())
    }

    /// Preallocates up to a length of `bytes` bytes, durably.
    pub(crate) fn grow_to(&self, bytes: u64) -> io::Result<()> {
        self.check_writable()?;
        let failures_before = self.flush_failures.count();
        let now = self.bytes();
        let units = u32::try_from(bytes / UNIT_BYTES).expect("a volume has fewer than 2^32 units");
        let bytes = u64::from(units) * UNIT_BYTES;
        assert!(bytes >= now, "growing does not shorten a volume");
        if let Err(error) = self.file.allocate(now, bytes) {
            // Frees what was allocated before the failure. The new length is not published yet.
            if now > 0 {
                let _ = self.file.set_length(now);
            }
            return Err(error);
        }
        self.flush_with(VolumeFile::sync_all)?;
        self.flush_failures.check_none_since(failures_before)?;
        self.units.store(units, Ordering::Release);
        Ok(())
    }

    /// Truncates a volume to its header. The caller has taken all of its units out of the allocator.
    pub(crate) fn truncate(&self) -> io::Result<()> {
        self.check_writable()?;
        // First, so that nobody expects more than the file has.
        self.units.store(1, Ordering::Release);
        self.file.set_length(UNIT_BYTES)?;
        self.flush_with(VolumeFile::sync_all)
    }

    /// Reads which parts of the file the file system has allocated.
    pub(crate) fn allocation(&self) -> io::Result<AllocationMap> {
        self.file.allocation(self.bytes())
    }

    /// Returns free units to the file system. They read as zeros until they are allocated again.
    ///
    /// A crash may undo this. Free space then occupies more of the disk than necessary.
    pub(crate) fn punch(&self, extent: Extent) -> io::Result<()> {
        self.check_writable()?;
        self.assert_within(extent);
        self.file.punch(extent.offset(), extent.bytes())
    }

    /// Allocates units that were returned to the file system. The flush of data written to them makes this durable too.
    pub(crate) fn allocate(&self, extent: Extent) -> io::Result<()> {
        self.check_writable()?;
        self.assert_within(extent);
        self.file.allocate_within(extent.offset(), extent.bytes())
    }

    /// Writes zeros over free units, so that a later flush of them needs no journal commit of the file system.
    pub(crate) fn write_ahead(&self, extent: Extent) -> io::Result<()> {
        self.check_writable()?;
        self.assert_within(extent);
        let (mut at, end) = (extent.offset(), extent.offset() + extent.bytes());
        while at < end {
            let piece = usize_of(end - at).min(ZEROS.0.len());
            self.file.write_all_at(&ZEROS.0[..piece], at)?;
            at += u64_of(piece);
        }
        self.flush_with(VolumeFile::sync_data)
    }

    /// Makes all completed writes durable.
    ///
    /// After a failure the volume takes no more writes until it is recovered: the kernel reports a failed write-back once, so a
    /// second flush that succeeds would prove nothing.
    pub(crate) fn flush(&self) -> io::Result<()> {
        self.flush_with(VolumeFile::sync_data)
    }

    /// Tests whether the device works again after a failed flush: writes the header again, with the bytes that it has, flushes
    /// it with the file's metadata, and reads it back.
    pub(crate) fn test_device(&self) -> io::Result<()> {
        let mut header = HeaderUnit([0; 4096]);
        self.file.read_exact_at(&mut header.0, 0)?;
        self.file.write_all_at(&header.0, 0)?;
        // The file system commits its journal only for a change of metadata.
        self.file.touch()?;
        self.flush_failures.counted(self.file.sync_all())?;
        let mut found = HeaderUnit([0; 4096]);
        self.file.read_exact_at(&mut found.0, 0)?;
        if found.0 == header.0 { Ok(()) } else { Err(io::Error::other("the header was not read back")) }
    }

    /// Takes writes again. Payloads that began before the failed flush are refused.
    pub(crate) fn recover(&self) {
        self.failed.store(false, Ordering::Release);
    }

    fn check_writable(&self) -> io::Result<()> {
        if self.failed() {
            return Err(io::Error::other("the volume is read-only after a failed flush"));
        }
        Ok(())
    }

    /// Panics unless the units are in this volume and do not include its header.
    fn assert_within(&self, extent: Extent) {
        assert_eq!(extent.volume, self.number, "an extent is changed in its own volume");
        assert!(extent.start > 0, "the header of a volume is never free");
        let end = extent.start.checked_add(extent.units);
        assert!(end.is_some_and(|end| end <= self.units()), "an extent ends within its volume");
    }

    /// Flushes the file. A failure makes the volume read-only, whatever the flush was for: see [`Self::flush`].
    fn flush_with(&self, flush: impl FnOnce(&VolumeFile) -> io::Result<()>) -> io::Result<()> {
        // The simulation runs one thread at a time and may stop it in a flush. Nobody may wait for that one outside of a stop.
        let _one_at_a_time = (!self.file.is_simulated()).then(|| self.flushing.lock());
        self.check_writable()?;
        self.flush_failures.counted(flush(&self.file)).inspect_err(|error| {
            self.failed.store(true, Ordering::Release);
            tracing::error!(target: "service::engine", path = %self.path.display(), %error, "flush failed: the volume is read-only now");
        })
    }

    /// Returns whether a flush has failed.
    pub(crate) fn failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::Volume;
    use crate::device::files::Files;
    use crate::error::OpenError;
    use crate::format::extent::Extent;
    use crate::format::superblock::StoreId;
    use cairn_lmdb::FlushFailures;

    #[test]
    fn volume_of_another_store_slice_or_number_is_refused() {
        let folder = tempfile::tempdir_in(".").expect("a folder");
        std::fs::create_dir(folder.path().join("volumes")).expect("a folder");
        let (files, store) = (Files::System, StoreId([7; 16]));
        let volume = Volume::create(&files, &FlushFailures::default(), folder.path(), store, 1, 0, 1 << 20)
            .expect("creates");
        assert_eq!(volume.units(), 256);
        volume.write_ahead(Extent { volume: 0, start: 1, units: 255 }).expect("writes");
        volume.grow_to(2 << 20).expect("grows");
        drop(volume);
        assert_eq!(
            Volume::open(&files, &FlushFailures::default(), folder.path(), store, 1, 0)
                .expect("opens")
                .units(),
            512
        );
        for (store, slice) in [(StoreId([8; 16]), 1), (store, 2)] {
            let refused = Volume::open(&files, &FlushFailures::default(), folder.path(), store, slice, 0);
            assert!(matches!(refused, Err(OpenError::Damaged { .. })), "{refused:?}");
        }
        std::fs::rename(super::volume_path(folder.path(), 0), super::volume_path(folder.path(), 3))
            .expect("renames");
        assert!(Volume::open(&files, &FlushFailures::default(), folder.path(), store, 1, 3).is_err());
    }
}
