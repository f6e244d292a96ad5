//! Direct I/O on volumes from an executor: the engine's only use of glommio's files.
//!
//! A write runs in a task of its own that nothing cancels: a write whose future is dropped may be lost or land later,
//! so the space that it goes to stays reserved until the task has ended, whatever becomes of the client.

use crate::limits::{UNIT_BYTES, UPLOAD_BYTES_PER_EXECUTOR};
use glommio::io::{DmaBuffer, DmaFile, OpenOptions, ReadResult};
use glommio::sync::Semaphore;
use glommio::task::JoinHandle;
use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// A bound on how much memory uploads take on one executor: counted in KiB, for glommio's semaphores count in units.
pub(crate) struct UploadBudget(Rc<Semaphore>);

/// Memory that was granted; given back when dropped.
pub(crate) struct Grant {
    budget: Rc<Semaphore>,
    kib: u64,
}

impl Drop for Grant {
    fn drop(&mut self) {
        self.budget.signal(self.kib);
    }
}

impl UploadBudget {
    pub(crate) fn new() -> Self {
        Self(Rc::new(Semaphore::new(UPLOAD_BYTES_PER_EXECUTOR / 1024)))
    }

    /// Waits until `bytes` bytes may be used.
    pub(crate) async fn grant(&self, bytes: usize) -> io::Result<Grant> {
        let kib = (bytes as u64).div_ceil(1024);
        self.0.acquire(kib).await.map_err(|_| io::Error::other("the executor is closing"))?;
        Ok(Grant { budget: Rc::clone(&self.0), kib })
    }
}

/// The volumes that an executor has open.
#[derive(Default)]
pub(crate) struct Disk {
    files: RefCell<HashMap<(u16, u32), Rc<DmaFile>>>,
}

/// A write under way.
pub(crate) type Write = JoinHandle<io::Result<()>>;

/// What a read gave: at least the bytes asked for, from an aligned start.
pub(crate) struct ReadBytes(ReadResult);

impl AsRef<[u8]> for ReadBytes {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// An aligned buffer that a write takes.
pub(crate) struct WriteBuffer(DmaBuffer);

/// A full buffer, shared by its write and its digest.
pub(crate) type SharedBuffer = Rc<DmaBuffer>;

impl WriteBuffer {
    /// No more changes: the buffer can be shared.
    pub(crate) fn share(self) -> SharedBuffer {
        Rc::new(self.0)
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        self.0.as_bytes_mut()
    }
}

impl Disk {
    /// The file of a volume, opened when it is first used.
    pub(crate) async fn file(&self, slice: u16, volume: u32, path: &Path) -> io::Result<Rc<DmaFile>> {
        if let Some(file) = self.files.borrow().get(&(slice, volume)) {
            return Ok(Rc::clone(file));
        }
        let path: PathBuf = path.to_owned();
        let file = OpenOptions::new().read(true).write(true).dma_open(path).await.map_err(io::Error::from)?;
        let file = Rc::new(file);
        // Another task may have opened it meanwhile: either of the two will do.
        Ok(Rc::clone(self.files.borrow_mut().entry((slice, volume)).or_insert(file)))
    }
}

/// A buffer of `bytes` bytes, rounded up to whole units.
pub(crate) fn write_buffer(file: &DmaFile, bytes: usize) -> WriteBuffer {
    let unit = usize::try_from(UNIT_BYTES).unwrap_or(4096);
    WriteBuffer(file.alloc_dma_buffer(bytes.next_multiple_of(unit)))
}

/// Begins to write `buffer`, whole units, at `offset`. `keep` lives until the write has ended.
pub(crate) fn write(
    file: &Rc<DmaFile>,
    offset: u64,
    buffer: SharedBuffer,
    keep: impl Sized + 'static,
) -> Write {
    let file = Rc::clone(file);
    glommio::spawn_local(async move {
        let bytes = buffer.len();
        let written = file.write_rc_at(buffer, offset).await;
        drop(keep);
        match written {
            Ok(count) if count == bytes => Ok(()),
            Ok(count) => {
                Err(io::Error::new(io::ErrorKind::WriteZero, format!("{count} of {bytes} bytes written")))
            }
            Err(error) => Err(error.into()),
        }
    })
    .detach()
}

/// Reads `bytes` bytes (a multiple of a unit) at `offset`.
pub(crate) async fn read(file: &DmaFile, offset: u64, bytes: usize) -> io::Result<ReadBytes> {
    let read = file.read_at_aligned(offset, bytes).await.map_err(io::Error::from)?;
    if read.len() < bytes {
        return Err(io::Error::new(
            io::ErrorKind::UnexpectedEof,
            format!("{} of {bytes} bytes read", read.len()),
        ));
    }
    Ok(ReadBytes(read))
}
