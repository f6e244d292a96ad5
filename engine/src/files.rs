//! The files that volumes lie in, as plain threads use them: making, naming, growing, writing and flushing.
//!
//! In the service they are files of the operating system opened for direct I/O. With the feature `simulation` they can be
//! images in memory instead, which forget what was not flushed (`simulation/disk.rs`); without it there is only one
//! variant, and nothing to choose between. The side of the executors is `disk.rs`.

use crate::allocation::AllocationMap;
use crate::limits::UNIT_BYTES;
#[cfg(feature = "simulation")]
use crate::simulation::{Simulation, disk::SimulatedFile};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
#[cfg(feature = "simulation")]
use std::sync::Arc;

/// Where the volumes of a store are.
#[derive(Clone, Default)]
pub(crate) enum Files {
    /// In the file system.
    #[default]
    System,
    /// In memory.
    #[cfg(feature = "simulation")]
    Simulated(Arc<Simulation>),
}

impl Files {
    /// Paths of the files in a folder.
    pub(crate) fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        match self {
            Self::System => std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect(),
            #[cfg(feature = "simulation")]
            Self::Simulated(simulation) => Ok(simulation.disk.list(folder)),
        }
    }

    /// Makes a file that must not be there yet.
    pub(crate) fn create(&self, path: &Path) -> io::Result<VolumeFile> {
        match self {
            Self::System => open_direct(path, true).map(VolumeFile::System),
            #[cfg(feature = "simulation")]
            Self::Simulated(simulation) => simulation.disk.create(path).map(VolumeFile::Simulated),
        }
    }

    /// Opens a file that is there, after the writes that an earlier process has left with the device.
    pub(crate) fn open(&self, path: &Path) -> io::Result<VolumeFile> {
        match self {
            Self::System => open_direct(path, false).inspect(wait_for_earlier_writes).map(VolumeFile::System),
            #[cfg(feature = "simulation")]
            Self::Simulated(simulation) => simulation.disk.open(path).map(VolumeFile::Simulated),
        }
    }

    /// Gives a file another name in its folder; durable after [`Files::sync_folder`].
    pub(crate) fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        match self {
            Self::System => std::fs::rename(from, to),
            #[cfg(feature = "simulation")]
            Self::Simulated(simulation) => simulation.disk.rename(from, to),
        }
    }

    /// Removes a name.
    pub(crate) fn remove(&self, path: &Path) -> io::Result<()> {
        match self {
            Self::System => std::fs::remove_file(path),
            #[cfg(feature = "simulation")]
            Self::Simulated(simulation) => simulation.disk.remove(path),
        }
    }

    /// Makes the names in a folder durable.
    pub(crate) fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        match self {
            Self::System => File::open(folder)?.sync_all(),
            #[cfg(feature = "simulation")]
            Self::Simulated(simulation) => simulation.disk.sync_folder(folder),
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

/// Waits for the direct writes that a killed process has left with the device. Their space is free now and may be handed
/// out at once; a device does its queue in any order, so the dead process's write could land on that of the living one.
///
/// Preallocating what is there changes nothing, but ext4, XFS and Btrfs wait for all direct I/O of a file before they
/// look at it (`inode_dio_wait`). They have waited when they refuse, too, on a full disk for example.
fn wait_for_earlier_writes(file: &File) {
    let _ = rustix::fs::fallocate(file, rustix::fs::FallocateFlags::KEEP_SIZE, 0, UNIT_BYTES);
}

/// One open file. All offsets, lengths and buffers are whole, aligned units.
#[derive(Debug)]
pub(crate) enum VolumeFile {
    /// Of the operating system, for direct I/O.
    System(File),
    /// In memory.
    #[cfg(feature = "simulation")]
    Simulated(SimulatedFile),
}

impl VolumeFile {
    /// Whether the file is still what its name leads to.
    pub(crate) fn is_at(&self, path: &Path) -> bool {
        match self {
            Self::System(file) => {
                let identity = |found: std::fs::Metadata| (found.dev(), found.ino());
                let named = std::fs::metadata(path).map(identity).ok();
                named.is_some() && named == file.metadata().map(identity).ok()
            }
            // Nobody but the store can rename or remove it.
            #[cfg(feature = "simulation")]
            Self::Simulated(_) => true,
        }
    }

    /// Length in bytes.
    pub(crate) fn length(&self) -> io::Result<u64> {
        match self {
            Self::System(file) => Ok(file.metadata()?.len()),
            #[cfg(feature = "simulation")]
            Self::Simulated(file) => Ok(file.length()),
        }
    }

    pub(crate) fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        match self {
            Self::System(file) => file.read_exact_at(bytes, offset),
            #[cfg(feature = "simulation")]
            Self::Simulated(file) => file.read_exact_at(bytes, offset),
        }
    }

    pub(crate) fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        match self {
            Self::System(file) => file.write_all_at(bytes, offset),
            #[cfg(feature = "simulation")]
            Self::Simulated(file) => file.write_all_at(bytes, offset),
        }
    }

    /// Preallocates from `from` up to a length of `to` bytes. A file system that cannot preallocate still works, slower.
    pub(crate) fn allocate(&self, from: u64, to: u64) -> io::Result<()> {
        match self {
            Self::System(file) => {
                let flags = rustix::fs::FallocateFlags::empty();
                match rustix::fs::fallocate(file, flags, from, to.saturating_sub(from)) {
                    Err(rustix::io::Errno::OPNOTSUPP) => file.set_len(to),
                    done => Ok(done?),
                }
            }
            #[cfg(feature = "simulation")]
            Self::Simulated(file) => file.allocate(to),
        }
    }

    /// What is allocated of the first `bytes` bytes. A disk in memory has no holes.
    pub(crate) fn allocation(&self, bytes: u64) -> io::Result<AllocationMap> {
        match self {
            Self::System(file) => AllocationMap::of(file, bytes),
            #[cfg(feature = "simulation")]
            Self::Simulated(_) => Ok(AllocationMap::written(bytes)),
        }
    }

    /// Gives the space of `bytes` bytes at `offset` back; they read as zeros from then on.
    pub(crate) fn punch(&self, offset: u64, bytes: u64) -> io::Result<()> {
        match self {
            Self::System(file) => {
                let flags = rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE;
                Ok(rustix::fs::fallocate(file, flags, offset, bytes)?)
            }
            #[cfg(feature = "simulation")]
            Self::Simulated(file) => file.punch(offset, bytes),
        }
    }

    /// Preallocates `bytes` bytes at `offset`, which lie within the length, as far as the file system can.
    pub(crate) fn allocate_within(&self, offset: u64, bytes: u64) -> io::Result<()> {
        match self {
            Self::System(file) => {
                match rustix::fs::fallocate(file, rustix::fs::FallocateFlags::empty(), offset, bytes) {
                    Ok(()) | Err(rustix::io::Errno::OPNOTSUPP) => Ok(()),
                    Err(error) => Err(error.into()),
                }
            }
            #[cfg(feature = "simulation")]
            Self::Simulated(file) => file.allocate(offset + bytes),
        }
    }

    pub(crate) fn set_length(&self, bytes: u64) -> io::Result<()> {
        match self {
            Self::System(file) => file.set_len(bytes),
            #[cfg(feature = "simulation")]
            Self::Simulated(file) => file.set_length(bytes),
        }
    }

    /// Makes contents and length durable, and all else that the file system keeps of the file.
    pub(crate) fn sync_all(&self) -> io::Result<()> {
        match self {
            Self::System(file) => file.sync_all(),
            #[cfg(feature = "simulation")]
            Self::Simulated(file) => file.sync(),
        }
    }

    /// Makes contents, and the length that they need, durable.
    pub(crate) fn sync_data(&self) -> io::Result<()> {
        match self {
            Self::System(file) => file.sync_data(),
            #[cfg(feature = "simulation")]
            Self::Simulated(file) => file.sync(),
        }
    }
}
