//! Direct I/O on volumes from an executor. Only this file uses glommio's files.
//!
//! In a simulation the files are images in memory instead (`fault/simulated_disk.rs`). Without the feature `simulation` the
//! variants of simulated files have no values, so they cost nothing. Plain threads use `files.rs`.
//!
//! Each write runs in its own task, which is never cancelled. A write whose future was dropped could be lost or reach the
//! device later. So its space stays reserved until the task has ended, even if the client disconnects.

use crate::counters::ExecutorCounters;
use crate::device::files::Files;
use crate::fault::{Faults, SimulatedBuffer, SimulatedFile};
use crate::limits::UNIT_BYTES;
use cairn_model::{u64_of, usize_of};
use glommio::io::{DmaBuffer, DmaFile, OpenOptions, ReadResult};
use glommio::task::JoinHandle;
use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

/// The volumes that an executor has open.
pub(crate) struct Disk {
    files: Files,
    counters: Arc<ExecutorCounters>,
    open: RefCell<HashMap<(u16, u32), Rc<DiskFile>>>,
}

/// A volume that an executor has open.
pub(crate) struct DiskFile {
    handle: Handle,
    counters: Arc<ExecutorCounters>,
}

enum Handle {
    /// A file on the executor's ring.
    Direct(DmaFile),
    /// An image in memory.
    Simulated(SimulatedFile),
}

/// A write in progress. It completes with the value that its preparation returned.
pub(crate) type Write<T> = JoinHandle<io::Result<T>>;

/// The result of a read: at least the requested bytes, from an aligned offset.
pub(crate) enum ReadBytes {
    Direct(ReadResult),
    Simulated(SimulatedBuffer),
}

impl AsRef<[u8]> for ReadBytes {
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Direct(read) => read,
            Self::Simulated(read) => read.bytes(),
        }
    }
}

/// An aligned buffer for a write.
pub(crate) enum WriteBuffer {
    Direct(DmaBuffer),
    Simulated(SimulatedBuffer),
}

/// A filled buffer, shared by its write and the computation of its digest.
#[derive(Clone)]
pub(crate) enum SharedBuffer {
    Direct(Rc<DmaBuffer>),
    Simulated(SimulatedBuffer),
}

// Without the feature `simulation` the variants of simulated files take no space.
const _: () = assert!(
    size_of::<Faults>() > 0
        || size_of::<Handle>() == size_of::<DmaFile>()
            && size_of::<ReadBytes>() == size_of::<ReadResult>()
            && size_of::<WriteBuffer>() == size_of::<DmaBuffer>()
            && size_of::<SharedBuffer>() == size_of::<Rc<DmaBuffer>>()
);

impl WriteBuffer {
    /// Returns the buffer for reuse. `None` if it is still shared.
    pub(crate) fn unshare(buffer: SharedBuffer) -> Option<Self> {
        match buffer {
            SharedBuffer::Direct(buffer) => Rc::into_inner(buffer).map(Self::Direct),
            SharedBuffer::Simulated(buffer) => (!buffer.is_shared()).then(|| Self::Simulated(buffer)),
        }
    }

    /// Makes the buffer immutable, so that it can be shared.
    pub(crate) fn share(self) -> SharedBuffer {
        match self {
            Self::Direct(buffer) => SharedBuffer::Direct(Rc::new(buffer)),
            Self::Simulated(buffer) => SharedBuffer::Simulated(buffer),
        }
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Direct(buffer) => buffer.as_bytes_mut(),
            Self::Simulated(buffer) => buffer.bytes_mut(),
        }
    }
}

impl SharedBuffer {
    pub(crate) fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Direct(buffer) => buffer.as_bytes(),
            Self::Simulated(buffer) => buffer.bytes(),
        }
    }
}

impl Disk {
    pub(crate) fn new(files: Files, counters: Arc<ExecutorCounters>) -> Self {
        Self { files, counters, open: RefCell::default() }
    }

    /// Returns the file of a volume. Opens it on first use.
    pub(crate) async fn file(&self, slice: u16, volume: u32, path: &Path) -> io::Result<Rc<DiskFile>> {
        if let Some(file) = self.open.borrow().get(&(slice, volume)) {
            return Ok(Rc::clone(file));
        }
        let file = Rc::new(self.open_file(path).await?);
        // Another task may have opened the file during the await. Either of the two can be used.
        Ok(Rc::clone(self.open.borrow_mut().entry((slice, volume)).or_insert(file)))
    }

    async fn open_file(&self, path: &Path) -> io::Result<DiskFile> {
        let handle = match &self.files {
            Files::System => {
                let path: PathBuf = path.to_owned();
                let file = OpenOptions::new().read(true).write(true).dma_open(path).await;
                Handle::Direct(file.map_err(io::Error::from)?)
            }
            Files::Simulated(files) => Handle::Simulated(files.open(path)?),
        };
        Ok(DiskFile { handle, counters: Arc::clone(&self.counters) })
    }
}

impl DiskFile {
    /// Returns the length in bytes.
    pub(crate) async fn length(&self) -> io::Result<u64> {
        match &self.handle {
            Handle::Direct(file) => file.file_size().await.map_err(io::Error::from),
            Handle::Simulated(file) => Ok(file.length()),
        }
    }
}

/// Allocates a buffer of `bytes` bytes, rounded up to whole units.
pub(crate) fn write_buffer(file: &DiskFile, bytes: usize) -> WriteBuffer {
    let bytes = bytes.next_multiple_of(usize_of(UNIT_BYTES));
    match &file.handle {
        Handle::Direct(file) => WriteBuffer::Direct(file.alloc_dma_buffer(bytes)),
        Handle::Simulated(file) => file.buffer(bytes, WriteBuffer::Simulated),
    }
}

/// Starts a task that writes the buffer of `prepared` at `offset`. `keep` is dropped when the write has ended.
///
/// # Panics
/// If the offset or the length of the buffer is not a multiple of a unit.
pub(crate) fn write<T: 'static>(
    file: &Rc<DiskFile>,
    offset: u64,
    prepared: impl Future<Output = io::Result<(SharedBuffer, T)>> + 'static,
    keep: impl Sized + 'static,
) -> Write<T> {
    let file = Rc::clone(file);
    glommio::spawn_local(async move {
        let (buffer, outcome) = prepared.await?;
        let bytes = buffer.as_bytes().len();
        assert!(is_aligned(offset) && is_aligned(u64_of(bytes)), "direct I/O writes whole units");
        let begun = Instant::now();
        let written = write_now(&file, offset, buffer).await;
        drop(keep);
        file.counters.writes.record_duration(begun.elapsed());
        match written? {
            count if count == bytes => {
                file.counters.written_bytes.add(u64_of(bytes));
                Ok(outcome)
            }
            count => {
                Err(io::Error::new(io::ErrorKind::WriteZero, format!("{count} of {bytes} bytes written")))
            }
        }
    })
    .detach()
}

async fn write_now(file: &DiskFile, offset: u64, buffer: SharedBuffer) -> io::Result<usize> {
    match (&file.handle, buffer) {
        (Handle::Direct(file), SharedBuffer::Direct(buffer)) => {
            file.write_rc_at(buffer, offset).await.map_err(io::Error::from)
        }
        (Handle::Simulated(file), SharedBuffer::Simulated(buffer)) => file.write(&buffer, offset).await,
        _ => unreachable!("a buffer is used with the file that it was allocated for"),
    }
}

/// Returns whether an offset or a length is a multiple of a unit.
const fn is_aligned(bytes: u64) -> bool {
    bytes.is_multiple_of(UNIT_BYTES)
}

/// Reads `bytes` bytes at `offset`.
///
/// # Errors
/// Any error of the device, or [`io::ErrorKind::UnexpectedEof`] if the file is shorter.
///
/// # Panics
/// If the offset or the length is not a multiple of a unit.
pub(crate) async fn read(file: &DiskFile, offset: u64, bytes: usize) -> io::Result<ReadBytes> {
    assert!(is_aligned(offset) && is_aligned(u64_of(bytes)), "direct I/O reads whole units");
    let begun = Instant::now();
    let read = read_now(file, offset, bytes).await;
    file.counters.reads.record_duration(begun.elapsed());
    let read = read?;
    file.counters.read_bytes.add(u64_of(read.as_ref().len()));
    if read.as_ref().len() < bytes {
        return Err(io::Error::new(
            io::ErrorKind::UnexpectedEof,
            format!("{} of {bytes} bytes read", read.as_ref().len()),
        ));
    }
    Ok(read)
}

async fn read_now(file: &DiskFile, offset: u64, bytes: usize) -> io::Result<ReadBytes> {
    match &file.handle {
        Handle::Direct(file) => {
            file.read_at_aligned(offset, bytes).await.map(ReadBytes::Direct).map_err(io::Error::from)
        }
        Handle::Simulated(file) => file.read(offset, bytes).await.map(ReadBytes::Simulated),
    }
}
