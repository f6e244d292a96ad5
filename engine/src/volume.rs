//! A volume: one large preallocated file of payloads, divided into units of 4096 bytes.
//!
//! Unit 0 is the header, written once when the file is made and never handed out:
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
//! All other bytes belong to payloads and check tables. Executors have files of their own on it for direct I/O
//! (`disk.rs`); this is the side of plain threads: making, growing, giving space back, writing ahead and flushing.
//! A file never becomes shorter, and no volume is removed: what is given back are holes within it.

use crate::allocation::AllocationMap;
use crate::block::block_check;
use crate::error::{OpenContext, OpenError};
use crate::files::{Files, VolumeFile};
use crate::limits::{UNIT_BYTES, VOLUME_BYTES_MAX};
use crate::superblock::StoreId;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const MAGIC: &[u8; 8] = b"CAIRNVOL";
const FORMAT: u32 = 1;

/// A megabyte of zeros, aligned for direct I/O.
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
    /// Length in units; all of them may be handed out but unit 0.
    units: AtomicU64,
    /// A flush failed: what the device holds is unknown, so nothing is written here any more.
    failed: AtomicBool,
}

/// What can be wrong with a volume's file while it is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VolumeFault {
    /// It is gone from its place, or another file is there.
    Missing,
    /// It is shorter than what was handed out of it.
    Truncated,
    /// Its header unit is not what was written, or cannot be read.
    Header,
}

/// Numbers of the volumes in a slice's folder, which must follow one another. What an interrupted creation left is removed.
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
    let count = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
    match (0..count).find(|number| !numbers.contains(number)) {
        None if count > 0 => Ok(0..count),
        missing => Err(OpenError::Damaged {
            path: volume_path(slice_folder, missing.unwrap_or(0)),
            what: "the volume is missing".to_owned(),
        }),
    }
}

/// Path of volume `number` in a slice's folder.
pub(crate) fn volume_path(slice_folder: &Path, number: u32) -> PathBuf {
    slice_folder.join("volumes").join(format!("{number:06}.vol"))
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
    /// Makes a new volume of `bytes` bytes; durable when this returns, its name included. It gets its name last: a crash
    /// leaves a file that the next start removes.
    pub(crate) fn create(
        files: &Files,
        folder: &Path,
        store: StoreId,
        slice: u16,
        number: u32,
        bytes: u64,
    ) -> io::Result<Self> {
        let path = volume_path(folder, number);
        let unnamed = path.with_extension("new");
        let file = files.create(&unnamed)?;
        let volume = Self { number, path, file, units: AtomicU64::new(0), failed: AtomicBool::new(false) };
        let made = volume.grow_to(bytes).and_then(|()| {
            volume.file.write_all_at(&header(store, slice, number).0, 0)?;
            volume.file.sync_all()?;
            files.rename(&unnamed, &volume.path)?;
            files.sync_folder(&folder.join("volumes"))
        });
        if let Err(error) = made {
            // No record names it yet. Under either name it would stand in the way of the next attempt.
            let _ = files.remove(&unnamed);
            let _ = files.remove(&volume.path);
            return Err(error);
        }
        Ok(volume)
    }

    /// Opens a volume and checks that it is the one that belongs here.
    pub(crate) fn open(
        files: &Files,
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
        let units = file.length().doing("measuring", &path)? / UNIT_BYTES;
        Ok(Self { number, path, file, units: AtomicU64::new(units), failed: AtomicBool::new(false) })
    }

    /// Length in units.
    pub(crate) fn units(&self) -> u64 {
        self.units.load(Ordering::Acquire)
    }

    /// Looks at the file itself: its place, its length, its header.
    pub(crate) fn examine(&self, store: StoreId, slice: u16) -> Vec<VolumeFault> {
        let mut faults = Vec::new();
        // Before the file is measured: it only grows.
        let expected = self.units() * UNIT_BYTES;
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

    /// Reads the header unit from the device. What it holds is compared by [`Self::examine`]: nothing that is served rests on it.
    pub(crate) fn check_readable(&self) -> io::Result<()> {
        self.file.read_exact_at(&mut HeaderUnit([0; 4096]).0, 0)
    }

    /// Bytes by which the volume can still grow.
    pub(crate) fn room(&self) -> u64 {
        VOLUME_BYTES_MAX.saturating_sub(self.units() * UNIT_BYTES)
    }

    /// Preallocates up to `bytes` bytes, durably.
    pub(crate) fn grow_to(&self, bytes: u64) -> io::Result<()> {
        self.usable()?;
        let bytes = bytes / UNIT_BYTES * UNIT_BYTES;
        let now = self.units() * UNIT_BYTES;
        if let Err(error) = self.file.allocate(now, bytes) {
            // What was allocated before the failure goes back; the length has not been announced.
            if now > 0 {
                let _ = self.file.set_length(now);
            }
            return Err(error);
        }
        self.synced(self.file.sync_all())?;
        self.units.store(bytes / UNIT_BYTES, Ordering::Release);
        Ok(())
    }

    /// What the file system has allocated of the file.
    pub(crate) fn allocation(&self) -> io::Result<AllocationMap> {
        self.file.allocation(self.units() * UNIT_BYTES)
    }

    /// Gives units that nobody owns back to the file system. They read as zeros until they are allocated again. A crash
    /// may undo it, which leaves free space where there could be less.
    pub(crate) fn punch(&self, first_unit: u64, units: u64) -> io::Result<()> {
        self.usable()?;
        self.file.punch(first_unit * UNIT_BYTES, units * UNIT_BYTES)
    }

    /// Allocates units that were given back, within the file's length. The flush of what is written there covers this
    /// change too, so it needs none of its own.
    pub(crate) fn allocate(&self, first_unit: u64, units: u64) -> io::Result<()> {
        self.usable()?;
        self.file.allocate_within(first_unit * UNIT_BYTES, units * UNIT_BYTES)
    }

    /// Writes zeros over units that nobody owns, so that a later flush of them needs no journal commit.
    pub(crate) fn write_ahead(&self, first_unit: u64, units: u64) -> io::Result<()> {
        self.usable()?;
        let (mut at, end) = (first_unit * UNIT_BYTES, (first_unit + units) * UNIT_BYTES);
        while at < end {
            let piece = usize::try_from(end - at).unwrap_or(usize::MAX).min(ZEROS.0.len());
            self.file.write_all_at(&ZEROS.0[..piece], at)?;
            at += piece as u64;
        }
        self.synced(self.file.sync_data())
    }

    /// Makes all completed writes durable. After a failure the volume takes no more writes: the kernel reports a
    /// failed write-back once, and a second flush that succeeds says nothing about it.
    pub(crate) fn flush(&self) -> io::Result<()> {
        self.usable()?;
        self.synced(self.file.sync_data())
    }

    fn usable(&self) -> io::Result<()> {
        if self.failed() {
            return Err(io::Error::other("the volume is read-only after a failed flush"));
        }
        Ok(())
    }

    /// Notes a failed flush, whoever asked for it: the kernel reports a failed write-back to a file once, so an error
    /// that one flush swallowed would let the next one succeed.
    fn synced(&self, flushed: io::Result<()>) -> io::Result<()> {
        flushed.inspect_err(|error| {
            self.failed.store(true, Ordering::Release);
            tracing::error!(target: "service::engine", path = %self.path.display(), %error, "flush failed: the volume is read-only now");
        })
    }

    /// Whether a flush failed.
    pub(crate) fn failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::Volume;
    use crate::error::OpenError;
    use crate::files::Files;
    use crate::superblock::StoreId;

    #[test]
    fn a_volume_of_another_store_slice_or_place_is_refused() {
        let folder = tempfile::tempdir_in(".").expect("a folder");
        std::fs::create_dir(folder.path().join("volumes")).expect("a folder");
        let (files, store) = (Files::System, StoreId([7; 16]));
        let volume = Volume::create(&files, folder.path(), store, 1, 0, 1 << 20).expect("makes");
        assert_eq!(volume.units(), 256);
        volume.write_ahead(1, 255).expect("writes");
        volume.grow_to(2 << 20).expect("grows");
        drop(volume);
        assert_eq!(Volume::open(&files, folder.path(), store, 1, 0).expect("opens").units(), 512);
        for (store, slice) in [(StoreId([8; 16]), 1), (store, 2)] {
            let refused = Volume::open(&files, folder.path(), store, slice, 0);
            assert!(matches!(refused, Err(OpenError::Damaged { .. })), "{refused:?}");
        }
        std::fs::rename(super::volume_path(folder.path(), 0), super::volume_path(folder.path(), 3))
            .expect("renames");
        assert!(Volume::open(&files, folder.path(), store, 1, 3).is_err());
    }
}
