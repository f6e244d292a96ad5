//! Volume files for plain threads: creating, renaming, growing, writing and flushing.
//!
//! In the service they are files of the operating system, opened for direct I/O. In a simulation they are images in memory
//! (`fault/simulated_disk.rs`). Without the feature `simulation` that variant has no values, so it costs nothing. Executors
//! use `executor_files.rs`.

use crate::device::file_map::AllocationMap;
use crate::fault::{Faults, SimulatedFile, SimulatedFiles};
use crate::limits::UNIT_BYTES;
use cairn_lmdb::cannot_preallocate;
use rustix::fs::{FallocateFlags, Timespec, Timestamps, UTIME_NOW, futimens};
use rustix::io::{Errno, retry_on_intr};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// The files of a store's volumes.
#[derive(Clone, Default)]
pub(crate) enum Files {
    /// In the file system.
    #[default]
    System,
    /// In memory.
    Simulated(SimulatedFiles),
}

impl Files {
    /// Returns the simulated disk if `faults` has one, otherwise the file system.
    pub(crate) fn on(faults: &Faults) -> Self {
        faults.files().map_or(Self::System, Self::Simulated)
    }

    /// Returns the paths of the files in a folder.
    pub(crate) fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        match self {
            Self::System => std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect(),
            Self::Simulated(files) => Ok(files.list(folder)),
        }
    }

    /// Creates a file. Fails if the path already exists.
    pub(crate) fn create(&self, path: &Path) -> io::Result<VolumeFile> {
        match self {
            Self::System => open_direct(path, true).map(VolumeFile::System),
            Self::Simulated(files) => files.create(path).map(VolumeFile::Simulated),
        }
    }

    /// Opens an existing file, after waiting for writes that an earlier process has queued at the device.
    pub(crate) fn open(&self, path: &Path) -> io::Result<VolumeFile> {
        match self {
            Self::System => open_direct(path, false).inspect(wait_for_earlier_writes).map(VolumeFile::System),
            Self::Simulated(files) => files.open(path).map(VolumeFile::Simulated),
        }
    }

    /// Renames a file within its folder. Durable after [`Files::sync_folder`].
    pub(crate) fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        match self {
            Self::System => std::fs::rename(from, to),
            Self::Simulated(files) => files.rename(from, to),
        }
    }

    /// Removes a file.
    pub(crate) fn remove(&self, path: &Path) -> io::Result<()> {
        match self {
            Self::System => std::fs::remove_file(path),
            Self::Simulated(files) => files.remove(path),
        }
    }

    /// Makes the names in a folder durable.
    pub(crate) fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        match self {
            Self::System => File::open(folder)?.sync_all(),
            Self::Simulated(files) => files.sync_folder(folder),
        }
    }
}

fn open_direct(path: &Path, create: bool) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(create)
        .custom_flags(libc::O_DIRECT)
        .mode(0o600)
        .open(path)
}

/// Waits for direct writes that a killed process has queued at the device.
///
/// The space of such a write is free now and may be allocated at once. A device executes its queue in any order, so the old
/// write could overwrite a new one.
///
/// Preallocating existing space changes nothing. But ext4, XFS and Btrfs first wait for all direct I/O of the file
/// (`inode_dio_wait`). They wait even if the call then fails, for example because the disk is full, so its result is ignored.
fn wait_for_earlier_writes(file: &File) {
    let _ = fallocate(file, FallocateFlags::KEEP_SIZE, 0, UNIT_BYTES);
}

/// Calls fallocate(2), again if a signal has interrupted it.
fn fallocate(file: &File, flags: FallocateFlags, offset: u64, bytes: u64) -> Result<(), Errno> {
    retry_on_intr(|| rustix::fs::fallocate(file, flags, offset, bytes))
}

/// An open volume file. All offsets, lengths and buffers are aligned to whole units.
#[derive(Debug)]
pub(crate) enum VolumeFile {
    /// A file of the operating system, opened for direct I/O.
    System(File),
    /// An image in memory.
    Simulated(SimulatedFile),
}

// Without the feature `simulation` the variants of simulated files take no space.
const _: () = assert!(
    size_of::<Faults>() > 0 || size_of::<Files>() == 0 && size_of::<VolumeFile>() == size_of::<File>()
);

impl VolumeFile {
    /// Returns whether `path` still refers to this file.
    pub(crate) fn is_at(&self, path: &Path) -> bool {
        match self {
            Self::System(file) => {
                let identity = |found: std::fs::Metadata| (found.dev(), found.ino());
                let named = std::fs::metadata(path).map(identity).ok();
                named.is_some() && named == file.metadata().map(identity).ok()
            }
            // Only the store can rename or remove a simulated file.
            Self::Simulated(_) => true,
        }
    }

    /// Returns the length in bytes.
    pub(crate) fn length(&self) -> io::Result<u64> {
        match self {
            Self::System(file) => Ok(file.metadata()?.len()),
            Self::Simulated(file) => Ok(file.length()),
        }
    }

    pub(crate) fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        match self {
            Self::System(file) => file.read_exact_at(bytes, offset),
            Self::Simulated(file) => file.read_exact_at(bytes, offset),
        }
    }

    pub(crate) fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        match self {
            Self::System(file) => file.write_all_at(bytes, offset),
            Self::Simulated(file) => file.write_all_at(bytes, offset),
        }
    }

    /// Extends the file from `from` to a length of `to` bytes and preallocates the new space.
    ///
    /// A file system that cannot preallocate only gets the length, and its writes are slower.
    ///
    /// # Panics
    /// If `to` is less than `from`.
    pub(crate) fn allocate(&self, from: u64, to: u64) -> io::Result<()> {
        assert!(from <= to, "a file is extended, never shortened");
        match self {
            Self::System(file) => match fallocate(file, FallocateFlags::empty(), from, to - from) {
                Err(error) if cannot_preallocate(error) => file.set_len(to),
                done => Ok(done?),
            },
            Self::Simulated(file) => file.allocate(to),
        }
    }

    /// Returns the allocation map of the first `bytes` bytes. A simulated file has no holes.
    pub(crate) fn allocation(&self, bytes: u64) -> io::Result<AllocationMap> {
        match self {
            Self::System(file) => AllocationMap::of(file, bytes),
            Self::Simulated(_) => Ok(AllocationMap::written(bytes)),
        }
    }

    /// Frees the disk space of `bytes` bytes at `offset`. They then read as zeros.
    pub(crate) fn punch(&self, offset: u64, bytes: u64) -> io::Result<()> {
        match self {
            Self::System(file) => {
                let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
                Ok(fallocate(file, flags, offset, bytes)?)
            }
            Self::Simulated(file) => file.punch(offset, bytes),
        }
    }

    /// Preallocates `bytes` bytes at `offset`, within the length, if the file system supports it.
    pub(crate) fn allocate_within(&self, offset: u64, bytes: u64) -> io::Result<()> {
        match self {
            Self::System(file) => match fallocate(file, FallocateFlags::empty(), offset, bytes) {
                Err(error) if !cannot_preallocate(error) => Err(error.into()),
                _ => Ok(()),
            },
            Self::Simulated(file) => file.allocate(offset + bytes),
        }
    }

    pub(crate) fn set_length(&self, bytes: u64) -> io::Result<()> {
        match self {
            Self::System(file) => file.set_len(bytes),
            Self::Simulated(file) => file.set_length(bytes),
        }
    }

    /// Changes the file's times.
    pub(crate) fn touch(&self) -> io::Result<()> {
        match self {
            Self::System(file) => {
                // Both at once: whoever may write may do this, also if the file belongs to another user.
                let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
                Ok(futimens(file, &Timestamps { last_access: now, last_modification: now })?)
            }
            Self::Simulated(file) => file.touch(),
        }
    }

    pub(crate) const fn is_simulated(&self) -> bool {
        matches!(self, Self::Simulated(_))
    }

    /// Makes the contents, the length and all other metadata of the file durable.
    pub(crate) fn sync_all(&self) -> io::Result<()> {
        match self {
            Self::System(file) => file.sync_all(),
            Self::Simulated(file) => file.sync(),
        }
    }

    /// Makes the contents, and the length needed to read them, durable.
    pub(crate) fn sync_data(&self) -> io::Result<()> {
        match self {
            Self::System(file) => file.sync_data(),
            Self::Simulated(file) => file.sync(),
        }
    }
}
